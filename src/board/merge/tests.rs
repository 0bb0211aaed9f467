//! The rules of `specs/merge.md`, row for row, and what holds for any documents.

use super::conflict::MARK;
use super::*;
use crate::board::task::State;

fn merged(base: &str, ours: &str, theirs: &str) -> MergedText {
    merge(base, ours, theirs, &|_| false)
}

/// The text, where nothing contradicts.
fn clean(base: &str, ours: &str, theirs: &str) -> String {
    let merged = merged(base, ours, theirs);
    assert_eq!(merged.conflicts, [], "{}", merged.text);
    merged.text
}

const BASE: &str = "\
---
id: main
priority: 2
---

Prose of the owner.

## Pending

- [ ] T-1: one (priority: 1, tags: [a])
  Words of one.
- [ ] T-2: two
- [ ] three

## In Progress

## Completed

- [x] T-9: nine
";

#[test]
fn changes_of_different_items_are_both_taken() {
    let ours = BASE.replace("- [ ] T-1: one (priority: 1, tags: [a])\n  Words of one.\n", "").replace(
        "## In Progress\n",
        "## In Progress\n\n- [ ] T-1: one (priority: 1, tags: [a], agent: Frodo, attempt: 1)\n  Words of one.\n",
    );
    let theirs = BASE
        .replace("T-2: two", "T-2: two, and a half (priority: 0)")
        .replace("- [ ] three\n", "- [ ] three\n- [ ] four\n")
        .replace("Prose of the owner.", "Prose of the owner, said again.");
    let expected = "\
---
id: main
priority: 2
---

Prose of the owner, said again.

## Pending

- [ ] T-2: two, and a half (priority: 0)
- [ ] three
- [ ] four

## In Progress

- [ ] T-1: one (priority: 1, tags: [a], agent: Frodo, attempt: 1)
  Words of one.

## Completed

- [x] T-9: nine
";
    assert_eq!(clean(BASE, &ours, &theirs), expected);
    assert_eq!(clean(BASE, &theirs, &ours), expected);
}

#[test]
fn an_item_that_has_an_id_is_no_new_line_that_only_reads_like_it() {
    let old = "- [ ] T-6: Write tests for logout\n- [ ] Write tests for the parser\n";
    let new = "- [ ] Write tests for login\n- [ ] Write tests for a parser\n";
    let told = changes(old, new);
    let told: Vec<_> =
        told.iter().map(|item| (item.title.as_str(), item.before.is_some(), item.after.is_some())).collect();
    let expected = [
        ("Write tests for login", false, true),
        ("Write tests for a parser", true, true),
        ("Write tests for logout", true, false),
    ];
    assert_eq!(told, expected);
}

#[test]
fn one_item_is_merged_field_by_field() {
    let moved = |line: &str| {
        BASE.replace("- [ ] T-1: one (priority: 1, tags: [a])\n  Words of one.\n", "")
            .replace("## In Progress\n", &format!("## In Progress\n\n{line}"))
    };
    let ours = moved("- [ ] T-1: one (priority: 1, tags: [a, b], agent: Frodo)\n  Words of one.\n");
    let theirs = BASE.replace(
        "one (priority: 1, tags: [a])\n  Words of one.",
        "one, really (priority: 3, tags: [a, c], role: coder)\n  Words of one.\n  More words.",
    );
    let expected = moved(
        "- [ ] T-1: one, really (priority: 3, tags: [a, b, c], agent: Frodo, role: coder)\n  Words of one.\n  More words.\n",
    );
    assert_eq!(clean(BASE, &ours, &theirs), expected);
}

#[test]
fn keys_of_a_task_block_are_merged_one_by_one() {
    let with = |keys: &str| format!("- [ ] T-1: one\n  Words.\n\n  ```yaml task\n{keys}  ```\n");
    let base = with("  done_when: cargo test\n  model: a\n");
    let ours = with("  done_when: cargo test --all\n  model: a\n");
    let theirs = with("  done_when: cargo test\n  # cheaper\n  model: b\n  runner: shell\n");
    let result = clean(&base, &ours, &theirs);
    let (document, problems) = parse(&result);
    assert_eq!(problems, [], "{result}");
    let task = document.task(&document.items()[0], "T-1".parse().expect("an ID"));
    assert_eq!(task.done_when, ["cargo test --all"], "{result}");
    assert_eq!((task.model.as_deref(), task.runner.as_deref()), (Some("b"), Some("shell")), "{result}");
}

#[test]
fn a_list_on_lines_of_its_own_is_taken_element_by_element() {
    let with = |keys: &str| format!("- [ ] T-1: one\n\n  ```yaml task\n{keys}  ```\n");
    let base = with("  done_when: cargo test\n");
    let ours = with("  done_when: cargo test\n  role: coder\n");
    for commands in [vec!["cargo test", "cargo clippy"], vec!["cargo clippy"]] {
        let lines: String = commands.iter().map(|command| format!("    - {command}\n")).collect();
        let result = clean(&base, &ours, &with(&format!("  done_when:\n{lines}")));
        let (document, problems) = parse(&result);
        assert_eq!(problems, [], "{result}");
        let task = document.task_of(&document.items()[0]);
        assert_eq!(
            (task.done_when, task.role.as_deref()),
            (commands.iter().map(|c| (*c).to_owned()).collect(), Some("coder")),
            "{result}"
        );
    }
}

#[test]
fn a_task_block_of_which_only_the_first_line_is_there_is_kept() {
    let base = "- [ ] T-4: odd (priority: 1)";
    let result =
        clean(base, &format!("{base}\n  ```yaml task\n## Pending"), "- [ ] T-4: odd (priority: 1, role: coder)");
    assert_eq!(result, "- [ ] T-4: odd (priority: 1, role: coder)\n  ```yaml task\n## Pending");
}

#[test]
fn what_contradicts_stands_from_both_sides_and_parses() {
    let rows = [
        ("title", "T-2: two", "T-2: zwei", "T-2: deux"),
        ("priority", "priority: 1", "priority: 3", "priority: 4"),
        ("text", "Words of one.", "Words of ours.", "Words of theirs."),
    ];
    for (what, old, mine, other) in rows {
        let (ours, theirs) = (BASE.replace(old, mine), BASE.replace(old, other));
        let merged = merged(BASE, &ours, &theirs);
        assert_eq!(merged.conflicts.len(), 1, "{what}: {}", merged.text);
        assert_eq!(merged.conflicts[0].what, what);
        for side in [mine, other] {
            let words = side.rsplit(": ").next().expect("a text has a last part");
            assert!(merged.text.contains(words), "{what}: {}", merged.text);
        }
        let found = marks(&merged.text);
        assert_eq!(found.len(), 1, "{what}: {}", merged.text);
        assert!(merged.text[found[0].span.clone()].starts_with(MARK));
        let (document, _) = parse(&merged.text);
        let count = document.items().len();
        assert_eq!(count, 4, "{what}: {}", merged.text);
        assert!(document.items().iter().all(|item| !item.quarantined), "{what}: {}", merged.text);
    }
}

#[test]
fn of_two_statuses_the_further_one_counts() {
    let ours = BASE.replace("- [ ] T-2: two", "- [x] T-2: two (commit: 1a2b3c4)");
    let theirs = BASE.replace("- [ ] T-2: two", "- [ ] T-2: two (status: waiting)");
    for (ours, theirs) in [(&ours, &theirs), (&theirs, &ours)] {
        let merged = merged(BASE, ours, theirs);
        let (document, _) = parse(&merged.text);
        let item = document.find(&"T-2".parse().expect("an ID")).expect("it is there");
        assert_eq!(item.status, Status::Completed, "{}", merged.text);
    }
}

/// What the one item of a document is.
fn state(text: &str) -> State {
    let (document, problems) = parse(text);
    assert_eq!(problems, [], "{text}");
    document.task_of(&document.items()[0]).state
}

#[test]
fn of_two_states_one_is_taken_whole() {
    let queue = |lane: &str, keys: &str| {
        let lanes = ["Pending", "In Progress", "In Review", "Waiting", "Completed", "Dead Letter"];
        let item = |name: &&str| if *name == lane { format!("\n- [ ] T-2: two ({keys})\n") } else { String::new() };
        lanes.map(|name| format!("## {name}\n{}\n", item(&name))).concat()
    };
    let pending = "tags: [a]";
    let approved = "status: approved, tags: [a], attempt: 1, commit: 1a2b3c4, approvals: [reviewer/Sam]";
    let in_review =
        "status: in_review, tags: [a], attempt: 1, author: Frodo, commit: 1a2b3c4, approvals: [reviewer/Sam]";
    let held = "status: in_progress, tags: [a], agent: Merry, attempt: 2, started: 2026-11-22T10:00:00Z";
    let dead = "status: dead, tags: [a], attempt: 3, reason: no, retried: true";
    let rows = [
        (pending, approved, held),
        (pending, in_review, held),
        (pending, dead, approved),
        (in_review, dead, held),
        // Of the same status the one with more attempts, then the one with a commit.
        (pending, "status: in_progress, agent: Sam, attempt: 1", held),
        (
            pending,
            "status: completed, commit: 1a2b3c4, completed: 2026-11-22T10:00:00Z",
            "status: completed, agent: Sam",
        ),
    ];
    for (base, one, other) in rows {
        let lane = |keys: &str| match keys.split([':', ',']).nth(1).map(str::trim) {
            Some("approved" | "in_review") => "In Review",
            Some("in_progress") => "In Progress",
            Some("completed") => "Completed",
            Some("dead") => "Dead Letter",
            _ => "Pending",
        };
        let bare = |keys: &str| format!("- [ ] T-2: two ({keys})\n");
        let in_lane = |keys: &str| queue(lane(keys), keys);
        for [base, one, other] in [[base, one, other].map(bare), [base, one, other].map(in_lane)] {
            let further = if rank(state(&one).status()) > rank(state(&other).status()) { &one } else { &other };
            let further = if state(&one).status() == Status::Completed { &one } else { further };
            for (ours, theirs) in [(&one, &other), (&other, &one)] {
                let merged = merged(&base, ours, theirs);
                assert_eq!(state(&merged.text), state(further), "{}", merged.text);
                assert!(!merged.text.contains(MARK), "{}", merged.text);
                // Not even as keys that mean nothing in that status.
                let known = ["agent", "attempt", "commit", "approvals", "reason", "retried", "author"];
                for key in known.iter().filter(|key| !further.contains(&format!("{key}:"))) {
                    assert!(!merged.text.contains(&format!("{key}:")), "{key} in {}", merged.text);
                }
            }
        }
    }
}

#[test]
fn statuses_are_ranked_as_the_specification_lists_them() {
    let rule = include_str!("../../../specs/merge.md").split("further on its way: ").nth(1).expect("the rule is there");
    let names: Vec<&str> = rule.split('.').next().expect("it ends").split(',').map(str::trim).collect();
    let mut ranked = Status::ALL;
    ranked.sort_by_key(|status| rank(*status));
    assert_eq!(ranked.map(Status::as_str), names[..]);
}

#[test]
fn approvals_of_one_commit_are_united_and_of_two_are_not() {
    let item = |keys: &str| format!("- [ ] T-2: two (status: {keys})\n");
    let asked = "in_review, author: Frodo, commit: 1a2b3c4";
    let names = |text: &str| {
        let state = state(text);
        let approvals = state.work().expect("it is in review").approvals.iter().map(ToString::to_string);
        (state.commit().expect("it is in review").to_owned(), approvals.collect::<Vec<_>>())
    };
    let rows = [
        ("", "reviewer/Sam", "reviewer/Merry@1a2b3c4", &["reviewer/Sam", "reviewer/Merry"][..]),
        ("reviewer/Sam", "reviewer/Sam, security/Pip", "", &["security/Pip"]),
    ];
    for (was, mine, other, expected) in rows {
        let with = |approvals: &str| item(&format!("{asked}, approvals: [{approvals}]"));
        let text = clean(&with(was), &with(mine), &with(other));
        assert_eq!(names(&text), ("1a2b3c4".into(), expected.iter().map(|&name| name.to_owned()).collect()), "{text}");
    }
    // Work that was done twice: the approvals of the one say nothing of the other.
    let base = item("in_progress, agent: Frodo, attempt: 1");
    let ours = item(&format!("{asked}, attempt: 1, approvals: [reviewer/Sam]"));
    let theirs = item("in_review, author: Pip, commit: 9a9b9c9, attempt: 1, approvals: [reviewer/Merry]");
    assert_eq!(names(&merged(&base, &ours, &theirs).text), ("1a2b3c4".into(), vec!["reviewer/Sam".to_owned()]));
}

#[test]
fn what_a_person_answers_is_never_lost() {
    let asked = "- [ ] T-2: two (status: waiting, question: \"red?\"; KEYS)\n".replace("; KEYS", "");
    let answered = asked.replace("\"red?\"", "\"red?\", answer: blue");
    for theirs in [
        asked.replace("waiting", "in_progress").replace("question: \"red?\"", "agent: Sam"),
        asked.replace("\"red?\"", "\"red?\", reason: late"),
    ] {
        for (ours, theirs) in [(&answered, &theirs), (&theirs, &answered)] {
            let text = clean(&asked, ours, theirs);
            assert!(text.contains("answer: blue"), "{text}");
        }
    }
}

#[test]
fn what_one_side_removed_goes_unless_the_other_changed_it() {
    let without = BASE.replace("- [ ] T-2: two\n", "");
    assert_eq!(clean(BASE, BASE, &without), without);
    assert_eq!(clean(BASE, &BASE.replace("three", "3"), &without), without.replace("three", "3"));
    let changed = BASE.replace("T-2: two", "T-2: two (priority: 0)");
    for (ours, theirs) in [(&changed, &without), (&without, &changed)] {
        let merged = merged(BASE, ours, theirs);
        assert!(merged.text.contains("- [ ] T-2: two (priority: 0)\n"), "{}", merged.text);
        assert_eq!(merged.conflicts, [Conflict { item: Some("T-2".into()), what: "removed".into() }]);
    }
}

#[test]
fn a_held_item_keeps_its_holder() {
    let held = |id: &TaskId| id.as_str() == "T-2";
    for theirs in [BASE.replace("- [ ] T-2: two\n", ""), BASE.replace("- [ ] T-2", "- [x] T-2")] {
        let merged = merge(BASE, BASE, &theirs, &held);
        assert_eq!(merged.text, BASE);
        assert_eq!(merged.conflicts.len(), 1);
    }
    let retitled = BASE.replace("T-2: two", "T-2: two, but better");
    assert_eq!(
        merge(BASE, BASE, &retitled, &held),
        MergedText { text: retitled.clone(), conflicts: vec![], has_markers: false }
    );
}

#[test]
fn the_same_new_item_is_one_and_two_are_two() {
    let ours = BASE.replace("- [ ] three\n", "- [ ] three\n- [ ] new\n- [ ] mine\n");
    let theirs = BASE.replace("- [ ] three\n", "- [ ] three\n- [ ] new\n- [ ] other\n");
    let expected = BASE.replace("- [ ] three\n", "- [ ] three\n- [ ] new\n- [ ] mine\n- [ ] other\n");
    assert_eq!(clean(BASE, &ours, &theirs), expected);
}

#[test]
fn an_item_that_both_added_by_one_id_is_one() {
    let with = |item: &str| BASE.replace("- [ ] three\n", &format!("- [ ] three\n{item}"));
    let merged = merged(BASE, &with("- [ ] T-5: mine\n"), &with("- [ ] T-5: urgent, and not mine\n"));
    assert_eq!(merged.text, with(&format!("- [ ] T-5: mine\n  {MARK}title: urgent, and not mine -->\n")));
    assert_eq!(merged.conflicts, [Conflict { item: Some("T-5".into()), what: "title".into() }]);
}

#[test]
fn an_item_that_got_its_id_meanwhile_has_no_twin() {
    let ours = BASE.replace("- [ ] three", "- [ ] T-3: three (status: waiting)");
    let theirs = BASE.replace("- [ ] three", "- [ ] three, and more");
    let expected = BASE.replace("- [ ] three", "- [ ] T-3: three, and more (status: waiting)");
    assert_eq!(clean(BASE, &ours, &theirs), expected);
}

#[test]
fn reordering_and_changing_are_both_taken() {
    let ours = BASE.replace("T-2: two", "T-2: two (priority: 0)");
    let theirs = BASE.replace("- [ ] T-2: two\n- [ ] three\n", "- [ ] three\n- [ ] T-2: two\n");
    let expected = BASE.replace("- [ ] T-2: two\n- [ ] three\n", "- [ ] three\n- [ ] T-2: two (priority: 0)\n");
    assert_eq!(clean(BASE, &ours, &theirs), expected);
    assert_eq!(clean(BASE, &theirs, &ours), expected);
}

#[test]
fn items_added_by_both_to_an_empty_lane_are_both_there() {
    let lane = |item: &str| BASE.replace("## In Progress\n", &format!("## In Progress\n\n{item}"));
    let (ours, theirs) = (lane("- [ ] T-5: five\n"), lane("- [ ] T-6: six\n"));
    assert_eq!(clean(BASE, &ours, &theirs), lane("- [ ] T-5: five\n- [ ] T-6: six\n"));
}

#[test]
fn an_item_without_a_title_is_merged_like_any_other() {
    let base = "- [ ] T-1: a\n";
    let merged = merged(base, "- [ ] T-1: \n- [ ] T-2: b\n", "- [ ] T-1: a (priority: 1)\n");
    assert!(merged.text.contains("T-1:") && merged.text.contains("priority: 1"), "{}", merged.text);
    assert!(merged.text.contains("- [ ] T-2: b\n"), "{}", merged.text);
}

mod properties {
    use std::collections::{BTreeMap, BTreeSet};
    use std::ops::Range;

    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use proptest::sample::select;

    use super::*;
    use crate::board::edit::Patch;
    use crate::board::key::Key;
    use crate::board::lossless::{documents, wild_documents};
    use crate::board::text::{Edit, apply};

    /// What a program or a person does to one item, or beside it.
    #[derive(Clone, Debug)]
    enum Step {
        Status(usize, Status),
        Priority(usize, u8),
        Retitle(usize),
        Describe(usize),
        Delete(usize),
        Add,
        Up(usize),
    }

    fn id(number: usize) -> TaskId {
        format!("T-{number}").parse().expect("it is an ID")
    }

    /// `side` makes what is new on two sides differ.
    fn done(text: &str, step: &Step, side: &str) -> String {
        let (document, _) = parse(text);
        let find = |number: &usize| document.find(&id(*number));
        let edits = match step {
            Step::Status(number, status) => find(number).map_or_else(Vec::new, |item| {
                document.change(item, &Patch { status: Some(*status), ..Patch::default() })
            }),
            Step::Priority(number, priority) => find(number).map_or_else(Vec::new, |item| {
                document
                    .change(item, &Patch { set: vec![(Key::Priority, Some((*priority).into()))], ..Patch::default() })
            }),
            Step::Retitle(number) => find(number).map_or_else(Vec::new, |item| {
                vec![Edit::replace(item.title.clone(), format!("{} by {side}", document.title(item)))]
            }),
            Step::Describe(number) => find(number).map_or_else(Vec::new, |item| {
                vec![Edit::insert(item.span.end, format!("  Words of {side} on {number}.\n"))]
            }),
            Step::Delete(number) => find(number).map_or_else(Vec::new, |item| vec![Edit::delete(item.span.clone())]),
            Step::Add => document.add(Status::Pending, &format!("- [ ] new of {side}\n")),
            Step::Up(number) => find(number).map_or_else(Vec::new, |item| {
                let above = document.items().iter().rev().find(|other| other.span.end == item.span.start);
                above.map_or_else(Vec::new, |above| {
                    let block = document.block(item).to_owned();
                    vec![Edit::delete(item.span.clone()), Edit::insert(above.span.start, block)]
                })
            }),
        };
        apply(text, &edits)
    }

    fn steps(numbers: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
        let number = || numbers.clone();
        vec(
            prop_oneof![
                4 => (number(), select(&Status::ALL[..])).prop_map(|(number, status)| Step::Status(number, status)),
                2 => (number(), 0u8..10).prop_map(|(number, priority)| Step::Priority(number, priority)),
                2 => number().prop_map(Step::Retitle),
                2 => number().prop_map(Step::Describe),
                1 => number().prop_map(Step::Delete),
                1 => number().prop_map(Step::Up),
                1 => proptest::prelude::Just(Step::Add),
            ],
            0..5,
        )
    }

    /// A queue of ten items, with lanes or without.
    fn queues() -> impl Strategy<Value = String> {
        let with_lanes = "# Q\n\nProse.\n\n## Pending\n\n- [ ] T-0: a\n- [ ] T-1: b\n  text\n- [ ] T-2: c\n- [ ] T-3: d (priority: 1)\n- [ ] T-4: e\n\n## In Progress\n\n- [ ] T-5: f\n\n## Waiting\n\n## Completed\n\n- [x] T-6: g\n- [x] T-7: h\n\n## Dead Letter\n\n- [ ] T-8: i\n- [ ] T-9: j\n";
        let loose = "Prose.\n\n- [ ] T-0: a\n\n- [ ] T-1: b\n  text\n\n- [ ] T-2: c\n- [ ] T-3: d\n- [ ] T-4: e\n\nMore prose.\n\n1. [ ] T-5: f\n2. [x] T-6: g\n3. [ ] T-7: h\n\n* [ ] T-8: i\n* [ ] T-9: j\n";
        select(vec![with_lanes.to_owned(), loose.to_owned(), with_lanes.replace('\n', "\r\n")])
    }

    /// What each item says.
    fn told(text: &str) -> BTreeMap<String, (Status, String, u8, String)> {
        let (document, _) = parse(text);
        let items = document.items().iter().map(|item| {
            let name = item.id.as_ref().map_or(document.title(item), TaskId::as_str).to_owned();
            (name, (item.status, document.title(item).to_owned(), item.priority, document.description(item)))
        });
        items.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        /// Two sides that change different items: each item is as the side left it that changed it, and nothing
        /// contradicts.
        #[test]
        fn different_items_never_conflict(base in queues(), mine in steps(0..5), other in steps(5..10)) {
            let ours = mine.iter().fold(base.clone(), |text, step| done(&text, step, "ours"));
            let theirs = other.iter().fold(base.clone(), |text, step| done(&text, step, "theirs"));
            let (was, mine, other) = (told(&base), told(&ours), told(&theirs));
            let names: BTreeSet<&String> = mine.keys().chain(other.keys()).collect();
            let expected: BTreeMap<String, _> = names.into_iter().filter_map(|name| {
                let side = if mine.get(name) == was.get(name) { &other } else { &mine };
                side.get(name).map(|item| (name.clone(), item.clone()))
            }).collect();
            for (ours, theirs) in [(&ours, &theirs), (&theirs, &ours)] {
                let merged = merged(&base, ours, theirs);
                prop_assert_eq!(&merged.conflicts, &Vec::<Conflict>::new(), "{}", merged.text);
                prop_assert_eq!(told(&merged.text), expected.clone(), "{}", merged.text);
            }
        }

        /// Three branches come to the same, in whatever order they are merged, and also one commit after the other.
        #[test]
        fn three_branches_merge_in_any_order(base in queues(), a in steps(0..3), b in steps(3..6), c in steps(6..10)) {
            let made = |steps: &[Step], side: &str| steps.iter().fold(base.clone(), |text, step| done(&text, step, side));
            let sides = [made(&a, "one"), made(&b, "two"), made(&c, "three")];
            let mut results = Vec::new();
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let [first, second, third] = order.map(|place| &sides[place]);
                let result = merged(&base, &merged(&base, first, second).text, third);
                prop_assert_eq!(&result.conflicts, &Vec::<Conflict>::new(), "{}", result.text);
                results.push(told(&result.text));
            }
            // As a rebase has it: each commit of a branch is taken by itself.
            let mut text = merged(&base, &sides[0], &sides[1]).text;
            let mut was = base.clone();
            for step in &c {
                let now = done(&was, step, "three");
                text = merged(&was, &text, &now).text;
                was = now;
            }
            results.push(told(&text));
            for result in &results[1..] {
                prop_assert_eq!(result, &results[0]);
            }
        }

        /// Two sides that change the same items: no item that a side has changed or added is lost, no word of a
        /// description, and the result can be merged again.
        #[test]
        fn nothing_is_lost_on_the_same_items(base in queues(), mine in steps(0..4), other in steps(0..4)) {
            let ours = mine.iter().fold(base.clone(), |text, step| done(&text, step, "ours"));
            let theirs = other.iter().fold(base.clone(), |text, step| done(&text, step, "theirs"));
            let merged = merged(&base, &ours, &theirs);
            let (was, now) = (told(&base), told(&merged.text));
            for side in [told(&ours), told(&theirs)] {
                for (name, (_, _, _, text)) in side.iter().filter(|(name, item)| was.get(*name) != Some(item)) {
                    prop_assert!(now.contains_key(name), "{name} is lost:\n{}", merged.text);
                    for line in text.lines() {
                        prop_assert!(now[name].3.contains(line), "`{line}` is lost:\n{}", merged.text);
                    }
                }
            }
            prop_assert_eq!(told(&super::merged(&base, &ours, &merged.text).text), now);
        }

        /// Whatever the texts: a side that changed nothing changes nothing.
        #[test]
        fn one_sided_changes_are_taken_byte_for_byte(base in documents(), side in documents()) {
            prop_assert_eq!(merged(&base, &base, &side).text, side.clone());
            prop_assert_eq!(merged(&base, &side, &base).text, side.clone());
            prop_assert_eq!(merged(&base, &side, &side).text, side);
        }

        /// Whatever the texts: no line that a side added is lost, and nothing panics.
        #[test]
        fn no_added_line_is_lost(base in documents(), ours in documents(), theirs in documents()) {
            let merged = merged(&base, &ours, &theirs);
            for side in [&ours, &theirs] {
                for line in side.lines().filter(|line| !base.contains(line.trim()) && !line.contains('[')) {
                    prop_assert!(merged.text.contains(line.trim()), "{line:?} is lost:\n{:?}", merged.text);
                }
            }
        }

        #[test]
        fn nothing_panics(base in wild_documents(), ours in wild_documents(), theirs in wild_documents()) {
            merged(&base, &ours, &theirs);
            merge(&base, &base, &theirs, &|_| true);
        }
    }
}
