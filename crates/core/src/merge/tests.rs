//! The rules of `specs/merge.md`, row for row, and properties of any documents.

use super::*;

fn merged(base: &str, ours: &str, theirs: &str) -> MergedText {
    merge(base, ours, theirs, &|_| false)
}

/// The text, where nothing contradicts.
fn clean(base: &str, ours: &str, theirs: &str) -> String {
    let merged = merged(base, ours, theirs);
    assert_eq!(merged.conflicts, [], "{}", merged.text);
    merged.text
}

/// Base, two sides, the merged text, and the conflicts.
type Merged = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const ROWS: &[Merged] = &[
    // Items removed by one side go, unless the other changed them.
    (
        "- [ ] T-1: one\n- [ ] T-2: two\n",
        "- [ ] T-1: 1\n- [ ] T-2: two\n",
        "- [ ] T-1: one\n",
        "- [ ] T-1: 1\n",
        &[],
    ),
    (
        "- [ ] T-1: one\n- [ ] T-2: two\n",
        "- [ ] T-1: one\n",
        "- [ ] T-1: one\n- [ ] T-2: two (priority: 0)\n",
        "- [ ] T-1: one\n- [ ] T-2: two (priority: 0)\n",
        &["removed"],
    ),
    (
        "- [ ] T-1: one\n- [ ] T-2: two\n",
        "- [ ] T-1: one\n- [ ] T-2: two (priority: 0)\n",
        "- [ ] T-1: one\n",
        "- [ ] T-1: one\n- [ ] T-2: two (priority: 0)\n",
        &["removed"],
    ),
    // A new ID is no change; a claim is.
    (
        "- [ ] one\n- [ ] two\n",
        "- [ ] T-1: one\n- [ ] T-2: two\n",
        "- [ ] one\n",
        "- [ ] T-1: one\n",
        &[],
    ),
    (
        "- [ ] T-1: one\n- [ ] T-1: two\n",
        "- [ ] T-1: one\n- [ ] T-2: two\n",
        "- [ ] T-1: one\n",
        "- [ ] T-1: one\n",
        &[],
    ),
    (
        "- [ ] AC-1: one\n- [ ] AC-1: two\n",
        "- [ ] AC-1: one\n- [ ] T-2: AC-1: two\n",
        "- [ ] AC-1: one\n",
        "- [ ] AC-1: one\n",
        &[],
    ),
    (
        "- [ ] one\n- [ ] two (agent: bob)\n",
        "- [ ] one\n",
        "- [ ] one\n- [ ] T-2: two (agent: bob)\n",
        "- [ ] one\n",
        &[],
    ),
    (
        "- [ ] one\n- [ ] two\n",
        "- [ ] one\n",
        "- [ ] one\n- [ ] T-2: two (status: in_progress)\n",
        "- [ ] one\n- [ ] T-2: two (status: in_progress)\n",
        &["removed"],
    ),
    // The same new item is one, and two are two; of one ID there is one.
    (
        "- [ ] T-1: one\n",
        "- [ ] T-1: one\n- [ ] new\n- [ ] mine\n",
        "- [ ] T-1: one\n- [ ] new\n- [ ] other\n",
        "- [ ] T-1: one\n- [ ] new\n- [ ] mine\n- [ ] other\n",
        &[],
    ),
    (
        "- [ ] T-1: one\n",
        "- [ ] T-1: one\n- [ ] T-5: mine\n",
        "- [ ] T-1: one\n- [ ] T-5: urgent, and not mine\n",
        "- [ ] T-1: one\n- [ ] T-5: mine\n  <!-- conflict: title: urgent, and not mine -->\n",
        &["title"],
    ),
    // The line with an ID and a longer title is the item, not a new one with a similar title.
    (
        "- [ ] Write tests for the parser\n",
        "- [ ] T-1: Write tests for the parser, quickly\n- [ ] Write tests for the lexer\n",
        "- [x] Write tests for the parser\n",
        "- [x] T-1: Write tests for the parser, quickly\n- [ ] Write tests for the lexer\n",
        &[],
    ),
    (
        "- [ ] Write tests for the parser\n",
        "- [x] Write tests for the parser\n",
        "- [ ] T-1: Write tests for the parser, quickly\n- [ ] Write tests for the lexer\n",
        "- [x] T-1: Write tests for the parser, quickly\n- [ ] Write tests for the lexer\n",
        &[],
    ),
    (
        "- [ ] Write tests for the parser\n",
        "- [x] T-1: Write tests for the parser, all\n- [ ] Write tests for the lexer\n",
        "- [x] T-2: Write tests for the parser\n",
        "- [x] T-1: Write tests for the parser, all\n- [ ] Write tests for the lexer\n",
        &[],
    ),
    // The end of a line is merged by itself, blanks and names of blocks included.
    (
        "- [ ] T-1: one\n- [ ] T-2: two\n  Words.\n",
        "- [ ] T-1: one (status: in_progress)\n- [ ] T-2: two\n  Words.\n",
        "- [ ] T-1: one  \n- [ ] T-2: two\n  Words.\t\n",
        "- [ ] T-1: one (status: in_progress)  \n- [ ] T-2: two\n  Words.\t\n",
        &[],
    ),
    (
        "- [ ] T-1: one\n- [ ] T-2: two ^a\n",
        "- [x] T-1: ~~one~~\n  (status: cancelled)\n- [x] T-2: two ^a\n  (role: a)\n",
        "- [ ] T-1: one ^b\n- [ ] T-2: two\n  Words.\n",
        "- [x] T-1: ~~one~~ ^b\n  (status: cancelled)\n- [x] T-2: two\n  (role: a)\n  Words.\n",
        &[],
    ),
    (
        "- [ ] T-1: one\n",
        "- [ ] T-1: one 📅 2026-12-01\n",
        "- [ ] T-1: one 📅 2026-12-02\n",
        "- [ ] T-1: one 📅 2026-12-01\n  <!-- conflict: end of the line: 📅 2026-12-02 -->\n",
        &["end of the line"],
    ),
    // Two that a number tells apart are two.
    (
        "- [ ] Review chapter 2\n",
        "- [ ] T-1: Review chapter 2 (priority: 1)\n",
        "- [ ] Review chapter 14\n",
        "- [ ] T-1: Review chapter 2 (priority: 1)\n- [ ] Review chapter 14\n",
        &["removed"],
    ),
    // A new line that both have is one, even if one side changed the line before it.
    (
        "One.\n\n## Pending\n",
        "Uno.\n\nSeen.\n\nMine.\n\n## Pending\n",
        "One.\n\nSeen.\n\nOther.\n\n## Pending\n",
        "Uno.\n\nSeen.\n\nMine.\n\nOther.\n\n## Pending\n",
        &[],
    ),
    // An item that got its ID meanwhile has no twin.
    (
        "- [ ] three\n",
        "- [ ] T-3: three (status: waiting)\n",
        "- [ ] three, and more\n",
        "- [ ] T-3: three, and more (status: waiting)\n",
        &[],
    ),
    // One that has its ID on both sides, and another title on one, is no new line that reads like the old title.
    (
        "- [ ] Typed 12.\n",
        "- [ ] T-3: Typed 12.\n",
        "- [ ] T-3: Rewritten.\n- [ ] Typed 112.\n",
        "- [ ] T-3: Rewritten.\n- [ ] Typed 112.\n",
        &[],
    ),
    (
        "- [ ] Typed 12.\n",
        "- [ ] T-3: Rewritten.\n- [ ] Typed 112.\n",
        "- [ ] T-3: Typed 12.\n",
        "- [ ] T-3: Rewritten.\n- [ ] Typed 112.\n",
        &[],
    ),
    // Both sides added lines behind a line that one of them changed.
    (
        "One.\n\n## Pending\n",
        "One, and more.\n\nNew.\n\n## Pending\n",
        "One.\n\nNew.\n\n## Pending\n",
        "One, and more.\n\nNew.\n\n## Pending\n",
        &[],
    ),
    // To move an item and to change it.
    (
        "- [ ] T-1: one\n- [ ] T-2: two\n- [ ] three\n",
        "- [ ] T-1: one\n- [ ] T-2: two (priority: 0)\n- [ ] three\n",
        "- [ ] T-1: one\n- [ ] three\n- [ ] T-2: two\n",
        "- [ ] T-1: one\n- [ ] three\n- [ ] T-2: two (priority: 0)\n",
        &[],
    ),
    (
        "## Doing\n\n## Done\n",
        "## Doing\n\n- [ ] T-5: five\n\n## Done\n",
        "## Doing\n\n- [ ] T-6: six\n\n## Done\n",
        "## Doing\n\n- [ ] T-5: five\n- [ ] T-6: six\n\n## Done\n",
        &[],
    ),
    // Keys of a block one by one, lists element by element.
    (
        "- [ ] T-1: one\n  ```yaml task\n  done_when: ls\n  model: a\n  ```\n",
        "- [ ] T-1: one\n  ```yaml task\n  done_when: ls -l\n  model: a\n  ```\n",
        "- [ ] T-1: one\n  ```yaml task\n  done_when: ls\n  # cheaper\n  model: b\n  runner: shell\n  ```\n",
        "- [ ] T-1: one (runner: shell)\n  ```yaml task\n  done_when: ls -l\n  model: b\n  ```\n",
        &[],
    ),
    (
        "- [ ] T-1: one\n  ```yaml task\n  done_when: ls\n  ```\n",
        "- [ ] T-1: one\n  ```yaml task\n  done_when: ls\n  role: coder\n  ```\n",
        "- [ ] T-1: one\n  ```yaml task\n  done_when:\n    - ls\n    - pwd\n  ```\n",
        "- [ ] T-1: one\n  ```yaml task\n  done_when: [ls, pwd]\n  role: coder\n  ```\n",
        &[],
    ),
    (
        "- [ ] T-1: one\n  ```yaml task\n  done_when: ls\n  ```\n",
        "- [ ] T-1: one\n  ```yaml task\n  done_when: ls\n  role: coder\n  ```\n",
        "- [ ] T-1: one\n  ```yaml task\n  done_when:\n    - pwd\n  ```\n",
        "- [ ] T-1: one\n  ```yaml task\n  done_when: [pwd]\n  role: coder\n  ```\n",
        &[],
    ),
    // A block of which only the first line is there, and a title that is not.
    (
        "- [ ] T-4: odd (priority: 1)",
        "- [ ] T-4: odd (priority: 1)\n  ```yaml task\n## Pending",
        "- [ ] T-4: odd (priority: 1, role: coder)",
        "- [ ] T-4: odd (priority: 1, role: coder)\n  ```yaml task\n## Pending",
        &[],
    ),
    (
        "- [ ] T-1: a\n",
        "- [ ] T-1: \n- [ ] T-2: b\n",
        "- [ ] T-1: a (priority: 1)\n",
        "- [ ] T-1: (priority: 1) \n- [ ] T-2: b\n",
        &[],
    ),
    // Conflicts keep the text of both sides.
    (
        "- [ ] T-1: one (priority: 1)\n  Words.\n",
        "- [ ] T-1: un (priority: 3)\n  Words of ours.\n",
        "- [ ] T-1: uno (priority: 4)\n  Words of theirs.\n",
        "- [ ] T-1: un (priority: 3)\n  <!-- conflict: one side says -->\n  Words of ours.\n  <!-- conflict: the other side says -->\n  Words of theirs.\n  <!-- conflict: end -->\n  <!-- conflict: title: uno -->\n  <!-- conflict: priority: 4 -->\n",
        &["text", "title", "priority"],
    ),
];

#[test]
fn other_words_than_those_of_an_item_that_ended_are_a_new_item() {
    let base = "- [ ] T-1: one\n- [ ] Write tests for the parser\n";
    let ours = "- [x] T-1: one\n- [x] T-2: Write tests for the parser\n";
    let theirs = "- [x] T-1: one\n- [ ] Write tests for the lexer\n";
    let merged = merge(base, ours, theirs, &|_| false).text;
    assert!(
        merged.contains("- [x] T-2: Write tests for the parser\n"),
        "{merged}"
    );
    assert!(
        merged.contains("- [ ] Write tests for the lexer\n"),
        "{merged}"
    );
    // The same words may be an old text.
    let merged = merge(base, ours, base, &|_| false).text;
    assert_eq!(merged, ours);
}

#[test]
fn each_rule_as_it_reads() {
    for (base, ours, theirs, expected, contradictions) in ROWS {
        let merged = merged(base, ours, theirs);
        assert_eq!(merged.text, *expected);
        let what: Vec<&str> = merged
            .conflicts
            .iter()
            .map(|conflict| conflict.what.as_str())
            .collect();
        assert_eq!(what, *contradictions, "{}", merged.text);
        // A removed item that the other side changed stays, without a marker.
        let marked = contradictions.iter().filter(|what| **what != "removed");
        assert_eq!(marks(&merged.text).len(), marked.count(), "{}", merged.text);
        assert!(
            parse(&merged.text)
                .0
                .items()
                .iter()
                .all(|item| item.title.is_empty() || !item.quarantined)
        );
    }
}

#[test]
fn an_item_that_has_an_id_is_no_new_line_that_only_reads_like_it() {
    let old = "- [ ] T-6: Write tests for logout\n- [ ] Write tests for the parser\n";
    let new = "- [ ] Write tests for login\n- [ ] Write tests for a parser\n";
    let told = changes(old, new);
    let told: Vec<_> = told
        .iter()
        .map(|item| {
            (
                item.title.as_str(),
                item.before.is_some(),
                item.after.is_some(),
            )
        })
        .collect();
    let expected = [
        ("Write tests for login", false, true),
        ("Write tests for a parser", true, true),
        ("Write tests for logout", true, false),
    ];
    assert_eq!(told, expected);
}

#[test]
fn statuses_are_ranked_as_the_specification_lists_them() {
    let rule = include_str!("../../../../specs/merge.md")
        .split("further on its way: ")
        .nth(1)
        .expect("the rule is there");
    let names: Vec<&str> = rule
        .split('.')
        .next()
        .expect("it ends")
        .split(',')
        .map(str::trim)
        .collect();
    let mut ranked = Status::ALL;
    ranked.sort_by_key(|status| rank(*status));
    assert_eq!(ranked.map(Status::as_str), names[..]);
}

/// One side has the mark of its encoding before the first item, as some editors write it.
#[test]
fn what_the_other_side_typed_stays_beside_a_byte_order_mark() {
    let [with, without] = [
        "\u{feff}- [ ] plain item\n  ## Pending\n",
        "- [ ] plain item\nPending\n  text of an item\n",
    ];
    for (base, mark) in [("", "\u{feff}"), ("\u{feff}", "")] {
        for (ours, theirs) in [(with, without), (without, with)] {
            let merged = merged(base, ours, theirs).text;
            assert!(
                merged.contains("## Pending\n") && merged.contains("\n  text of an item\n"),
                "{merged:?}"
            );
            assert_eq!(
                merged.strip_prefix('\u{feff}').is_some(),
                !mark.is_empty(),
                "{merged:?}"
            );
        }
    }
}

#[test]
fn what_a_person_answers_is_never_lost() {
    let asked = "- [ ] T-2: two (status: waiting)\n".to_owned();
    let answered = asked.replace("waiting", "waiting, answer: blue");
    for theirs in [
        asked.replace("waiting", "in_progress"),
        asked.replace("two", "second"),
    ] {
        for (ours, theirs) in [(&answered, &theirs), (&theirs, &answered)] {
            let text = clean(&asked, ours, theirs);
            assert!(text.contains("answer: blue"), "{text}");
        }
    }
}

/// Of a text that one side wrote anew only the lines contradict that the other one changed.
#[test]
fn as_little_as_possible_stands_from_both_sides() {
    let base = "# Q\n\nOne.\nTwo.\n\n## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n\n## Waiting\n";
    let ours = base
        .replace("Two.", "Two of ours.")
        .replace("T-2: two", "T-2: two of ours")
        .replace("\n## Waiting\n", "");
    let theirs = "Theirs.\n\n- [ ] T-2: two\n- [ ] new\n";
    let merged = merged(base, &ours, theirs);
    let expected = "<!-- conflict: one side says -->\nTwo of ours.\n<!-- conflict: the other side says -->\nTheirs.\n<!-- conflict: end -->\n- [ ] T-2: two of ours\n- [ ] new\n";
    assert_eq!(
        (merged.text.as_str(), merged.has_markers),
        (expected, false)
    );
}

/// Items never conflict with the lines around them: they go before the markers, and an earlier conflict is not
/// marked again.
#[test]
fn no_item_stands_between_marks_and_no_mark_in_another() {
    let marks = "<!-- conflict: one side says -->\n<!-- conflict: the other side says -->\nNew.\n<!-- conflict: end -->\n";
    let base = "## In Progress\n\nHere.\n\nOld.\n\n## Waiting\n- [ ] T-1: one\n";
    let theirs = base.replace("Old.\n", "New.\n- [ ] T-3: three\n");
    let items = "- [ ] T-2: two\n";
    let ours = base.replace("Old.\n\n", &format!("{items}\n{marks}"));
    let expected = base.replace("Old.\n\n", &format!("{items}- [ ] T-3: three\n\n{marks}"));
    assert_eq!(merged(base, &ours, &theirs).text, expected);
}

/// Text written around a conflict stays beside it, and text that a version has already is not added again.
#[test]
fn a_conflict_stands_in_no_other() {
    let text = |middle: &str| format!("Zero.\n\n{middle}\n## Pending\n");
    let conflict = |more: &str| {
        format!(
            "<!-- conflict: one side says -->\nOne.\n\nTwo.\n<!-- conflict: the other side says -->\nThree.\n{more}<!-- conflict: end -->\n"
        )
    };
    let ours = text(&format!("Before.\n\n{}\nBehind.\n", conflict("")));
    for (theirs, expected) in [
        ("Two.\n", ours.clone()),
        ("Before.\n\nOne.\n\nTwo.\n", ours.clone()),
        ("One.\n\nFour.\n", {
            let more = "<!-- conflict: the other side says -->\nOne.\n\nFour.\n";
            text(&format!("Before.\n\n{}\nBehind.\n", conflict(more)))
        }),
        ("Behind.\n\nFour.\n", {
            let more = "<!-- conflict: the other side says -->\nFour.\n";
            text(&format!("Before.\n\n{}\nBehind.\n", conflict(more)))
        }),
    ] {
        assert_eq!(
            merged(&text("Old.\n"), &ours, &text(theirs)).text,
            expected,
            "{theirs}"
        );
    }
}

/// An old text that shares a line with a version adds at most one version with each save.
#[test]
fn a_contradiction_is_taken_as_a_whole_whatever_an_old_text_has_in_common_with_it() {
    let text = |middle: &str| format!("Zero.\n\n{middle}\n## Pending\n");
    let conflict = |versions: &[&str]| {
        let versions = versions.join("<!-- conflict: the other side says -->\n");
        text(&format!(
            "<!-- conflict: one side says -->\n{versions}<!-- conflict: end -->\n"
        ))
    };
    let (whole, second, third) = (
        "One.\nTwo.\n\nThree.\n",
        "Two.\n\nFour.\n",
        "Two.\n\nFive.\n",
    );
    let ours = conflict(&[whole, second, third]);
    assert_eq!(merged(&text("Two.\n"), &ours, &text(third)).text, ours);
    let six = "Two.\n\nSix.\n";
    assert_eq!(
        merged(&text(third), &ours, &text(six)).text,
        conflict(&[whole, second, third, six])
    );
    // The common beginning goes before the markers.
    let (loaded, empty) = (text("Two.\n"), conflict(&["Two.\n\nFour.\n", ""]));
    let expected = conflict(&["Four.\n", "Five.\n"]).replacen("<!--", "Two.\n\n<!--", 1);
    assert_eq!(merged(&loaded, &empty, &text(third)).text, expected);
    // Both have gone on between the marks.
    let (base, theirs) = (
        conflict(&[whole, second]),
        conflict(&[whole, "Two.\n\nFour and more.\n"]),
    );
    assert_eq!(
        merged(&base, &ours, &theirs).text,
        conflict(&[whole, "Two.\n\nFour and more.\n", third])
    );
}

#[test]
fn a_line_that_an_open_fence_swallows_is_not_taken_out_with_its_item() {
    let base = "## Pending\n## Pending\n***\n## Pending\n## Waiting\n    - [ ] four in";
    let merged = merged(
        base,
        "- [ ] plain item\n  ```yaml task\n## Waiting\n    - src/**",
        "",
    );
    assert!(
        merged.text.contains("- src/**") && merged.text.contains("plain item"),
        "{}",
        merged.text
    );
}

#[test]
fn a_held_item_keeps_its_holder() {
    let (base, held) = ("- [ ] T-1: one\n- [ ] T-2: two\n", |id: &TaskId| {
        id.as_str() == "T-2"
    });
    for (theirs, expected, contradictions) in [
        ("- [ ] T-1: one\n", base, 1),
        ("- [ ] T-1: one\n- [x] T-2: two\n", base, 1),
        (
            "- [ ] T-1: one\n- [ ] T-2: 2\n",
            "- [ ] T-1: one\n- [ ] T-2: 2\n",
            0,
        ),
    ] {
        let merged = merge(base, base, theirs, &held);
        assert_eq!(
            (merged.text.as_str(), merged.conflicts.len()),
            (expected, contradictions)
        );
    }
}

mod properties {
    use std::collections::{BTreeMap, BTreeSet};
    use std::ops::Range;

    use proptest::collection::vec;
    use proptest::prelude::{
        ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };
    use proptest::sample::select;

    use super::*;
    use crate::key::Key;
    use crate::lossless::{documents, wild_documents};
    use crate::patch::Patch;
    use crate::text::{Edit, apply};

    /// A change of one item, or beside it, by a program or a person.
    #[derive(Clone, Debug)]
    enum Step {
        Status(usize, Status),
        Priority(usize, u8),
        Retitle(usize),
        Describe(usize),
        Delete(usize),
        Add,
        Up(usize),
        /// This heading, counted from above, becomes another line.
        Heading(usize, &'static str),
        /// A line comes before the one with this number.
        Line(usize, &'static str),
    }

    fn id(number: usize) -> TaskId {
        format!("T-{number}").parse().expect("it is an ID")
    }

    /// `side` makes additions of two sides differ.
    fn done(text: &str, step: &Step, side: &str) -> String {
        let (document, _) = parse(text);
        let find = |number: &usize| document.find(&id(*number));
        let edits = match step {
            Step::Status(number, status) => find(number).map_or_else(Vec::new, |item| {
                document.change(
                    item,
                    &Patch {
                        status: Some(*status),
                        ..Patch::default()
                    },
                )
            }),
            Step::Priority(number, priority) => find(number).map_or_else(Vec::new, |item| {
                document.change(
                    item,
                    &Patch {
                        set: vec![(Key::Priority, Some((*priority).into()))],
                        ..Patch::default()
                    },
                )
            }),
            Step::Retitle(number) => find(number).map_or_else(Vec::new, |item| {
                vec![Edit::replace(
                    item.title.clone(),
                    format!("{} by {side}", document.title(item)),
                )]
            }),
            Step::Describe(number) => find(number).map_or_else(Vec::new, |item| {
                vec![Edit::insert(
                    item.span.end,
                    format!("  Words of {side} on {number}.\n"),
                )]
            }),
            Step::Delete(number) => {
                find(number).map_or_else(Vec::new, |item| vec![Edit::delete(item.span.clone())])
            }
            Step::Add => document.add(Status::Pending, &format!("- [ ] new of {side}\n")),
            Step::Heading(number, line) => {
                let headings = text
                    .match_indices('#')
                    .filter(|(at, _)| text[..*at].ends_with('\n'));
                headings
                    .map(|(at, _)| at)
                    .nth(*number)
                    .map_or_else(Vec::new, |at| {
                        vec![Edit::replace(
                            at..markup::line_end(text, at, text.len()),
                            *line,
                        )]
                    })
            }
            Step::Line(number, line) => {
                let at: usize = text.split_inclusive('\n').take(*number).map(str::len).sum();
                vec![Edit::insert(at, *line)]
            }
            Step::Up(number) => find(number).map_or_else(Vec::new, |item| {
                let above = document
                    .items()
                    .iter()
                    .rev()
                    .find(|other| other.span.end == item.span.start);
                above.map_or_else(Vec::new, |above| {
                    let block = document.block(item).to_owned();
                    vec![
                        Edit::delete(item.span.clone()),
                        Edit::insert(above.span.start, block),
                    ]
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

    /// Rewritings of a whole queue, or of its headings.
    fn rewritings(
        numbers: Range<usize>,
    ) -> impl Strategy<Value = (Option<&'static str>, Vec<Step>)> {
        let whole = select(vec![
            "## Todo\nfoo\n## Done\n- [ ] T-1: b\n",
            "- [ ] T-1: b\n- [ ] new\n",
            "# Ideas\n\n- [ ] T-1: b\n\n## Later\n\n- [ ] x\n",
            "1. [ ] T-1: b\n2. [ ] T-2: c\n",
        ]);
        let line = select(vec![
            "",
            "## Notes\n",
            "# Done\n",
            "### Doing\n",
            "## Blocked\n",
            "***\n",
            "words\n",
        ]);
        let place = prop_oneof![
            (0usize..6, line.clone()).prop_map(|(number, line)| Step::Heading(number, line)),
            (0usize..20, line).prop_map(|(number, line)| Step::Line(number, line)),
        ];
        let steps =
            (steps(numbers), vec(place, 0..4)).prop_map(|(steps, places)| [places, steps].concat());
        (proptest::option::weighted(0.2, whole), steps)
    }

    /// A queue of ten items, with lanes or without.
    fn queues() -> impl Strategy<Value = String> {
        let with_lanes = "# Q\n\nProse.\n\n## Pending\n\n- [ ] T-0: a\n- [ ] T-1: b\n  text\n- [ ] T-2: c\n- [ ] T-3: d (priority: 1)\n- [ ] T-4: e\n\n## In Progress\n\n- [ ] T-5: f\n\n## Waiting\n\n## Completed\n\n- [x] T-6: g\n- [x] T-7: h\n\n## Dead Letter\n\n- [ ] T-8: i\n- [ ] T-9: j\n";
        let loose = "Prose.\n\n- [ ] T-0: a\n\n- [ ] T-1: b\n  text\n\n- [ ] T-2: c\n- [ ] T-3: d\n- [ ] T-4: e\n\nMore prose.\n\n1. [ ] T-5: f\n2. [x] T-6: g\n3. [ ] T-7: h\n\n* [ ] T-8: i\n* [ ] T-9: j\n";
        select(vec![
            with_lanes.to_owned(),
            loose.to_owned(),
            with_lanes.replace('\n', "\r\n"),
        ])
    }

    /// The status and texts of each item.
    fn told(text: &str) -> BTreeMap<String, (Status, String, u8, String)> {
        let (document, _) = parse(text);
        let items = document.items().iter().map(|item| {
            let name = item
                .id
                .as_ref()
                .map_or(document.title(item), TaskId::as_str)
                .to_owned();
            (
                name,
                (
                    item.status,
                    document.title(item).to_owned(),
                    item.priority,
                    document.description(item),
                ),
            )
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

        /// Three branches merge to the same text in any order, and also one commit after the other.
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

        /// If the items of both sides can be read, so can those of the result, with any headings and lines.
        /// It has no git markers, held items are unchanged, and no item moves under a heading that is no lane's.
        #[test]
        fn items_are_merged_whatever_stands_around_them(base in queues(), mine in rewritings(0..10), other in rewritings(0..10)) {
            let made = |(whole, steps): &(Option<&str>, Vec<Step>), side: &str| {
                let base = whole.map_or_else(|| base.clone(), str::to_owned);
                steps.iter().fold(base, |text, step| done(&text, step, side))
            };
            let (ours, theirs) = (made(&mine, "ours"), made(&other, "theirs"));
            let merged = merge(&base, &ours, &theirs, &|held| *held == id(5));
            prop_assert!(!merged.has_markers, "{}", merged.text);
            let [(mine, _), (other, _), (now, _)] = [&ours, &theirs, &merged.text].map(|text| parse(text));
            if let Some(held) = mine.find(&id(5)) {
                let found = now.find(&id(5)).map(|item| item.status);
                prop_assert_eq!(found, Some(held.status), "{}", merged.text);
            }
            for item in now.items().iter().filter(|item| item.quarantined) {
                let was = [&mine, &other].map(|side| item.id.as_ref().and_then(|id| side.find(id)));
                prop_assert!(was.iter().flatten().any(|item| item.quarantined) || item.id.is_none(), "{}", merged.text);
            }
        }

        /// For any texts, an unchanged side changes nothing.
        #[test]
        fn one_sided_changes_are_taken_byte_for_byte(base in documents(), side in documents()) {
            prop_assert_eq!(merged(&base, &base, &side).text, side.clone());
            prop_assert_eq!(merged(&base, &side, &base).text, side.clone());
            prop_assert_eq!(merged(&base, &side, &side).text, side);
        }

        /// For any texts, the merge keeps each added line of words, and never panics.
        #[test]
        fn no_added_line_is_lost(base in documents(), ours in documents(), theirs in documents()) {
            let merged = merged(&base, &ours, &theirs);
            for side in [&ours, &theirs] {
                let lines = side.lines().map(|line| line.trim_start_matches('\u{feff}').trim());
                for line in lines.filter(|line| !base.contains(line) && !line.contains(['[', '('])) {
                    prop_assert!(merged.text.contains(line), "{line:?} is lost:\n{:?}", merged.text);
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
