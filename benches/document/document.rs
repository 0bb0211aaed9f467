//! How fast queue documents are read, changed and checked, and how fast the next item is found: 1,000 and 10,000 items of
//! the ordinary kind. And how long one decision takes, whatever the queue.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pulldown_cmark::{Options, Parser};
use tavern_core::check::{check, first_of};
use tavern_core::decide::{LeaseChange, decide};
use tavern_core::document::{Document, Item, open, parse};
use tavern_core::eligible::{Others, Roles, Seeker, in_order, may_take};
use tavern_core::event::{Claim, Event, Purpose};
use tavern_core::key::Key;
use tavern_core::lease::Holder;
use tavern_core::patch::Patch;
use tavern_core::task::{Status, Task, TaskId, Timestamp};
use tavern_core::text::apply;

/// A queue as one looks after a while: most items done, some with keys, few with a task block.
fn queue(count: usize) -> String {
    let mut text = String::from(
        "---\nid: main\nname: Main queue\npriority: 2\n---\n\nProse.\n\n## Pending\n\n",
    );
    for n in 0..count / 4 {
        text.push_str(&format!(
            "- [ ] T-{n:04}: Add the endpoint number {n} (priority: {}, tags: [api])\n",
            n % 4
        ));
        if n % 2 == 0 {
            text.push_str(
                "  Follow specs/endpoints.md and keep the old path working for a release.\n",
            );
        }
        if n % 10 == 0 {
            text.push_str(
                "\n  ```yaml task\n  done_when:\n    - cargo test endpoints\n  touches: [src/api/**]\n  ```\n",
            );
        }
        if n % 8 == 7 {
            text.push_str(&format!("- [ ] W-{n:04}: Wait for it (after: T-{n:04})\n"));
        }
    }
    text.push_str("\n## In Progress\n\n- [ ] A-1: Held (agent: Frodo, attempt: 1, started: 2026-11-22T10:00:00Z)\n\n## Completed\n\n");
    for n in count / 4..count {
        text.push_str(&format!(
            "- [x] T-{n:04}: Set up the part number {n} (completed: 2026-11-21T15:00:00Z, commit: 1a2b3c4)\n  It was asked for by the team.\n"
        ));
    }
    text
}

fn benches(criterion: &mut Criterion) {
    for count in [1_000, 10_000] {
        let text = queue(count);
        let mut group = criterion.benchmark_group("document");
        group.throughput(Throughput::Bytes(text.len() as u64));
        // What reading costs at least: the Markdown parser alone.
        group.bench_with_input(
            BenchmarkId::new("markdown alone", count),
            &text,
            |bencher, text| {
                bencher.iter(|| {
                    Parser::new_ext(text, Options::ENABLE_TASKLISTS)
                        .into_offset_iter()
                        .count()
                });
            },
        );
        group.bench_with_input(BenchmarkId::new("parse", count), &text, |bencher, text| {
            bencher.iter(|| parse(black_box(text)).0.items().len());
        });
        let (document, _) = parse(&text);
        let last: TaskId = format!("T-{:04}", count - 1).parse().expect("it is an ID");
        let patch = Patch {
            status: Some(Status::InProgress),
            set: vec![
                (Key::Agent, Some("Sam".into())),
                (Key::Attempt, Some(1.into())),
            ],
            ..Patch::default()
        };
        group.bench_with_input(BenchmarkId::new("change", count), &text, |bencher, _| {
            bencher.iter(|| document.change(black_box(&document.items()[7]), &patch));
        });
        group.bench_with_input(
            BenchmarkId::new("change and apply", count),
            &text,
            |bencher, text| {
                bencher.iter(|| {
                    apply(
                        text,
                        &document.change(black_box(&document.items()[7]), &patch),
                    )
                    .len()
                });
            },
        );
        group.bench_with_input(
            BenchmarkId::new("read one item", count),
            &text,
            |bencher, text| {
                bencher.iter(|| open(black_box(text)).find(&last).map(|item| item.line));
            },
        );
        group.bench_with_input(
            BenchmarkId::new("next eligible", count),
            &text,
            |bencher, _| {
                bencher.iter(|| {
                    next(black_box(&document), "coder")
                        .expect("some are pending")
                        .line
                });
            },
        );
        // Every pending item is looked at, and none is for this role.
        group.bench_with_input(
            BenchmarkId::new("none eligible", count),
            &text,
            |bencher, _| {
                bencher.iter(|| next(black_box(&document), "nobody").is_none());
            },
        );
        // Likewise, each of them read by itself: grows with the count, not with its square.
        group.bench_with_input(
            BenchmarkId::new("none eligible, opened", count),
            &text,
            |bencher, text| {
                bencher.iter(|| next(&open(black_box(text)), "nobody").is_none());
            },
        );
        group.bench_with_input(BenchmarkId::new("check", count), &text, |bencher, _| {
            bencher.iter(|| {
                check(&[("main", &document)], &|_| None, &first_of)
                    .problems
                    .len()
            });
        });
        group.finish();
    }
}

/// The item that an agent of `role` would take.
fn next<'d, 't>(document: &'d Document<'t>, role: &str) -> Option<&'d Item<'t>> {
    let mut status_of = |id: &TaskId| document.find(id).map(|item| item.status);
    let roles = Roles {
        working: vec!["coder".to_owned()],
        ..Roles::default()
    };
    let seeker = Seeker {
        agent: "Sam",
        role: Some(role),
        roles: &roles,
    };
    let mut others = Others {
        status_of: &mut status_of,
        children_of: &mut |_| Vec::new(),
        at_work: &|| &[],
    };
    let mut may_be_taken =
        |item: &&Item<'_>| may_take(document, item, &seeker, NOW, &mut others).is_ok();
    in_order(document)
        .into_iter()
        .map(|at| document.item(at))
        .find(|item| may_be_taken(item))
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn decisions(criterion: &mut Criterion) {
    let task = Task::new("T-1".parse().expect("it is an ID"), "Add a login");
    let holder = Holder {
        host: "host".to_owned(),
        process: None,
    };
    let (agent, role) = ("Sam".to_owned(), "coder".to_owned());
    let claim = Event::Claim(Claim {
        agent,
        role,
        purpose: Purpose::Work,
        token: 7,
        seconds: 120,
        holder,
        reviewers: Vec::new(),
    });
    let mut group = criterion.benchmark_group("decide");
    group.bench_function("claim", |bencher| {
        bencher.iter(|| decide(black_box(&task), None, &claim, NOW).is_ok());
    });
    let change = decide(&task, None, &claim, NOW).expect("a pending item may be claimed");
    let LeaseChange::Put(lease) = change.lease else {
        unreachable!("a claim makes a lease")
    };
    let held = Task {
        state: change.state,
        ..task.clone()
    };
    let submit = |token| Event::Submit {
        token,
        commit: None,
        reviewers: Vec::new(),
        asks: None,
    };
    let done = submit(7);
    group.bench_function("report", |bencher| {
        bencher.iter(|| decide(black_box(&held), Some(&lease), &done, NOW).is_ok());
    });
    let stale = submit(6);
    group.bench_function("refusal", |bencher| {
        bencher.iter(|| decide(black_box(&held), Some(&lease), &stale, NOW).is_err());
    });
    group.finish();
}

criterion_group!(document, benches, decisions);
criterion_main!(document);
