//! How fast queue documents are read, changed and checked: 1,000 and 10,000 items of the ordinary kind.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pulldown_cmark::{Options, Parser};
use tavern::board::check::check;
use tavern::board::document::parse;
use tavern::board::edit::Patch;
use tavern::board::task::Status;
use tavern::board::text::apply;

/// A queue as one looks after a while: most items done, some with keys, few with a task block.
fn queue(count: usize) -> String {
    let mut text = String::from("---\nid: main\nname: Main queue\npriority: 2\n---\n\nProse.\n\n## Pending\n\n");
    for n in 0..count / 4 {
        text.push_str(&format!("- [ ] T-{n:04}: Add the endpoint number {n} (priority: {}, tags: [api])\n", n % 4));
        if n % 2 == 0 {
            text.push_str("  Follow specs/endpoints.md and keep the old path working for a release.\n");
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
        group.bench_with_input(BenchmarkId::new("markdown alone", count), &text, |bencher, text| {
            bencher.iter(|| Parser::new_ext(text, Options::ENABLE_TASKLISTS).into_offset_iter().count());
        });
        group.bench_with_input(BenchmarkId::new("parse", count), &text, |bencher, text| {
            bencher.iter(|| parse(black_box(text)).0.items().len());
        });
        let (document, _) = parse(&text);
        let patch = Patch {
            status: Some(Status::InProgress),
            set: vec![("agent", Some("Sam".into())), ("attempt", Some(1.into()))],
            ..Patch::default()
        };
        group.bench_with_input(BenchmarkId::new("change", count), &text, |bencher, _| {
            bencher.iter(|| document.change(black_box(&document.items()[7]), &patch));
        });
        group.bench_with_input(BenchmarkId::new("change and apply", count), &text, |bencher, text| {
            bencher.iter(|| apply(text, &document.change(black_box(&document.items()[7]), &patch)).len());
        });
        group.bench_with_input(BenchmarkId::new("check", count), &text, |bencher, _| {
            bencher.iter(|| check(&[("main", &document)], &|_| None).problems.len());
        });
        group.finish();
    }
}

criterion_group!(document, benches);
criterion_main!(document);
