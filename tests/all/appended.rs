//! Lines that people append to a queue, whose last lane may be one of what has ended: they are to be worked, whoever saves, claims
//! or appends at the same moment.

use std::fs::OpenOptions;
use std::io::Write;

use tavern_core::document::parse;
use tavern_core::task::Status;

use crate::state::State;
use crate::support::{QUEUE, Scratch, has, wait_until};

const LANES: [&str; 3] = ["Dead Letter", "Done", "Archive"];

/// What Tavern's newest text has replaced: who had the queue open writes there.
const OLD: &str = ".git/tavern/seen/main.old";

fn board(last: &str) -> Scratch {
    Scratch::board(&format!(
        "## Pending\n\n- [ ] T-1: first\n\n## In Progress\n\n## {last}\n"
    ))
}

/// The same, whose cards are moved at each transition.
fn live(last: &str) -> Scratch {
    Scratch::board(&format!(
        "---\nlive: true\n---\n## Pending\n\n- [ ] T-1: first\n\n## In Progress\n\n## {last}\n"
    ))
}

/// As `echo >>` does, with whatever file had the name when it was opened.
fn append(scratch: &Scratch, path: &str, title: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .open(scratch.work().join(path))
        .expect("it is there");
    writeln!(file, "- [ ] {title} (worktree: false, result: answer)").expect("it can be written");
}

/// Of each title how it stands, once.
#[track_caller]
fn stand(scratch: &Scratch, expected: &[(&str, Status)]) {
    scratch.settle();
    let (text, log) = (scratch.queue(), scratch.run("tavern-log", &[]).stdout);
    let (state, (document, _)) = (State::of(scratch), parse(&text));
    for (title, status) in expected {
        let found = document
            .items()
            .iter()
            .filter(|item| document.title(item) == *title);
        // What has no ID has the status of its place.
        let stands = found.map(|item| {
            let known = item.id.as_ref().and_then(|id| state.status(id.as_str()));
            known.unwrap_or(item.status)
        });
        assert_eq!(
            stands.collect::<Vec<_>>(),
            [*status],
            "{title}\n{text}\n{log}"
        );
    }
    state.agrees();
}

/// Takes the item of this title and finishes it.
fn work(scratch: &Scratch, title: &str) {
    let claimed = scratch
        .run("tavern-claim", &["--agent", "Frodo", "--format", "env"])
        .ends(0)
        .stdout;
    let told = |name: &str| {
        claimed
            .split_whitespace()
            .find_map(|word| word.strip_prefix(name))
            .expect("it is told")
    };
    let id = told("TAVERN_TASK=");
    scratch
        .run(
            "tavern-report",
            &[id, "--token", told("TAVERN_TOKEN="), "--done"],
        )
        .ends(0);
    assert!(
        scratch.queue().contains(&format!("[x] {id}: {title} (")),
        "{}",
        scratch.queue()
    );
}

#[test]
fn a_line_stays_pending_whoever_goes_on_in_the_text_that_it_was_appended_to() {
    use Status::{Completed, InProgress, Pending};
    for last in LANES {
        // An editor saves again, and again with more.
        let scratch = board(last);
        let mut buffer = scratch.queue();
        for title in ["a", "b", "c"] {
            buffer += &format!("- [ ] {title} (worktree: false, result: answer)\n");
            scratch.write(QUEUE, &buffer);
            scratch.settle();
            scratch.write(QUEUE, &buffer);
            stand(&scratch, &[(title, Pending)]);
        }
        stand(&scratch, &[("a", Pending), ("b", Pending), ("c", Pending)]);
        // Some have been worked since.
        scratch
            .run("tavern-claim", &["--task", "T-1", "--agent", "Sam"])
            .ends(0);
        scratch.write(QUEUE, &buffer);
        stand(
            &scratch,
            &[
                ("first", InProgress),
                ("a", Pending),
                ("b", Pending),
                ("c", Pending),
            ],
        );
        work(&scratch, "a");
        buffer += "- [ ] d\n";
        scratch.write(QUEUE, &buffer);
        stand(
            &scratch,
            &[
                ("a", Completed),
                ("b", Pending),
                ("c", Pending),
                ("d", Pending),
            ],
        );
        work(&scratch, "b");
        scratch.write(QUEUE, &buffer);
        stand(
            &scratch,
            &[
                ("first", InProgress),
                ("a", Completed),
                ("b", Completed),
                ("c", Pending),
                ("d", Pending),
            ],
        );
    }
}

#[test]
fn a_line_stays_pending_that_is_appended_to_a_file_that_is_replaced() {
    use Status::{Completed, Pending};
    for last in LANES {
        let scratch = board(last);
        append(&scratch, QUEUE, "a");
        scratch.settle();
        append(&scratch, OLD, "b");
        stand(&scratch, &[("a", Pending), ("b", Pending)]);
        append(&scratch, OLD, "c");
        append(&scratch, QUEUE, "d");
        stand(
            &scratch,
            &[
                ("a", Pending),
                ("b", Pending),
                ("c", Pending),
                ("d", Pending),
            ],
        );
        scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
        append(&scratch, OLD, "e");
        stand(&scratch, &[("a", Pending), ("d", Pending), ("e", Pending)]);
        work(&scratch, "a");
        append(&scratch, OLD, "f");
        stand(
            &scratch,
            &[
                ("a", Completed),
                ("b", Pending),
                ("e", Pending),
                ("f", Pending),
            ],
        );
    }
}

/// An editor has the file before it open still, so that there is no room for another.
#[test]
fn a_line_is_kept_that_is_appended_to_one_of_two_files_that_were_replaced() {
    let scratch = board("Completed");
    scratch.run("tavern-add", &["More"]).succeeds();
    let open = |path: &str| {
        OpenOptions::new()
            .append(true)
            .open(scratch.work().join(path))
            .expect("it is there")
    };
    let editor = open(OLD);
    let mut shell = open(QUEUE);
    for title in ["And more", "And still more"] {
        scratch.run("tavern-add", &[title]).succeeds();
    }
    shell.write_all(b"- [ ] Typed\n").expect("there is room");
    drop((editor, shell));
    scratch.settle();
    let queue = scratch.queue();
    has(&queue, &["Typed", "And more", "And still more"]);
    State::of(&scratch).agrees();
}

/// Whoever appended it has the file open still, or loads it again before Tavern has moved the line.
#[test]
fn a_line_stays_pending_that_head_does_not_have() {
    for path in [OLD, QUEUE] {
        let scratch = board("Completed");
        scratch.commit(&["--all"], "Board");
        append(&scratch, QUEUE, "a");
        let appended = scratch.queue();
        scratch.settle();
        scratch.write(
            path,
            appended.replace("T-1: first\n", "T-1: first\n  Words.\n"),
        );
        stand(&scratch, &[("a", Status::Pending)]);
        assert!(
            scratch.queue().contains("  Words.\n"),
            "{}",
            scratch.queue()
        );
    }
}

/// While a claim is about to replace the queue, in which it moves its card, after it has read it and after it has told the log.
#[test]
fn a_line_stays_pending_that_is_appended_while_another_is_claimed() {
    use Status::{InProgress, Pending};
    for last in LANES {
        for place in ["log.appended", "replace.synced", "replace.renamed"] {
            let scratch = live(last);
            append(&scratch, QUEUE, "a");
            scratch.settle();
            let claim = scratch.holding(place, "tavern-claim", &["--agent", "Frodo"]);
            append(&scratch, QUEUE, "b");
            append(&scratch, OLD, "c");
            claim.goes_on().ends(0);
            stand(
                &scratch,
                &[
                    ("first", InProgress),
                    ("a", Pending),
                    ("b", Pending),
                    ("c", Pending),
                ],
            );
            append(&scratch, OLD, "d");
            append(&scratch, QUEUE, "e");
            stand(
                &scratch,
                &[
                    ("a", Pending),
                    ("b", Pending),
                    ("c", Pending),
                    ("d", Pending),
                    ("e", Pending),
                ],
            );
        }
        // Or is killed there.
        for place in ["log.appended", "replace.renamed", "replace.synced"] {
            let scratch = live(last);
            append(&scratch, QUEUE, "a");
            scratch.failing(
                format!("{place}=kill"),
                "tavern-claim",
                &["--agent", "Frodo"],
            );
            append(&scratch, QUEUE, "b");
            stand(&scratch, &[("a", Pending), ("b", Pending)]);
            append(&scratch, OLD, "c");
            stand(&scratch, &[("a", Pending), ("b", Pending), ("c", Pending)]);
        }
    }
}

/// The file never showed what was edited: it was appended to in the moment of its replacement.
#[test]
fn what_was_edited_stays_where_a_line_is_appended_at_the_same_moment() {
    for place in ["log.appended", "replace.synced"] {
        let scratch = Scratch::board(
            "Words.\n\n## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n",
        );
        let script = "s/T-1: one/T-1: one, edited/; /T-2/d; s/Words/Other words/; $ a - [ ] four";
        let editor = format!("sed -i '{script}'");
        let go = scratch.folder().join("go");
        let edit = scratch.program("tavern-edit").variable("EDITOR", &editor);
        let edit = edit
            .variable("TAVERN_FAILPOINT", format!("{place}=hold:{}", go.display()))
            .start();
        wait_until("it is there", || go.with_extension("held").exists());
        append(&scratch, QUEUE, "a");
        std::fs::write(&go, "").expect("the folder is ours");
        edit.end().ends(0);
        scratch.settle();
        let queue = scratch.queue();
        let mut titles: Vec<&str> = queue
            .lines()
            .filter_map(|line| line.strip_prefix("- [ ] "))
            .collect();
        titles.sort_unstable();
        let expected = [
            "T-1: one, edited",
            "T-3: three",
            "a (worktree: false, result: answer)",
            "four",
        ];
        assert_eq!(titles, expected, "{place}\n{queue}");
        assert!(queue.starts_with("Other words.\n"), "{queue}");
    }
}

/// A person shelves it, or has done it.
#[test]
fn a_line_that_was_moved_or_ticked_once_it_was_known_stays_so() {
    for last in LANES {
        let scratch = board(last);
        let line = "- [ ] a (worktree: false, result: answer)\n";
        append(&scratch, QUEUE, "a");
        scratch.settle();
        // Ticked where it stands, and not.
        let pending = scratch.queue();
        let ticked = pending.replace(line, &line.replace("[ ]", "[x]"));
        scratch.write(QUEUE, &ticked);
        stand(&scratch, &[("a", Status::Completed)]);
        assert_eq!(scratch.queue(), ticked);
        scratch.write(QUEUE, &pending);
        stand(&scratch, &[("a", Status::Pending)]);
        // Moved by who knows what was done since.
        scratch.run("tavern-claim", &["--agent", "Frodo"]).ends(0);
        scratch
            .run(
                "tavern-add",
                &["More", "--description", &"More words. ".repeat(9)],
            )
            .ends(0);
        let saved = scratch.queue().replace(line, "") + line;
        scratch.write(QUEUE, &saved);
        let shelved = if last == "Dead Letter" {
            Status::Dead
        } else {
            Status::Completed
        };
        stand(&scratch, &[("a", shelved), ("first", Status::InProgress)]);
        assert_eq!(scratch.queue(), saved);
        // Or taken out at once, in the text that it was appended to too.
        for is_loaded in [true, false] {
            let scratch = board(last);
            let before = scratch.queue();
            append(&scratch, QUEUE, "a");
            scratch.settle();
            let saved = if is_loaded {
                scratch.queue().replace(line, "")
            } else {
                before
            };
            scratch.write(QUEUE, &saved);
            scratch.settle();
            assert!(!scratch.queue().contains(line), "{}", scratch.queue());
        }
    }
}

#[test]
fn a_line_that_is_appended_to_one_without_an_end_is_a_line_of_its_own() {
    use Status::{Completed, Pending};
    let text = "## Pending\n\n- [ ] T-1: first\n\n## Done\n\n- [x] T-2: last";
    // Tavern has written the queue since, or has only seen it.
    for is_written in [true, false] {
        let scratch = Scratch::board(text);
        if is_written {
            scratch.run("tavern-claim", &["--agent", "Frodo"]).ends(0);
        }
        append(&scratch, QUEUE, "a");
        append(&scratch, QUEUE, "b");
        stand(
            &scratch,
            &[("last", Completed), ("a", Pending), ("b", Pending)],
        );
        append(&scratch, OLD, "c");
        stand(
            &scratch,
            &[
                ("last", Completed),
                ("a", Pending),
                ("b", Pending),
                ("c", Pending),
            ],
        );
        scratch
            .run("tavern-check", &[])
            .ends(0)
            .says_not("begins in the middle");
    }
    // What nobody saw before is named.
    let scratch = Scratch::board(&format!("{text}- [ ] a\n- [ ] same\n- [ ] same\n"));
    scratch
        .run("tavern-check", &[])
        .says("an item begins in the middle of this line: `- [ ] a`");
    scratch.change(QUEUE, "## Done\n", "- [ ] b\n- [ ] b\n\n## Done\n");
    scratch
        .run("tavern-check", &[])
        .says("this item repeats the item in line 5; agents work on both");
}

#[test]
fn what_ended_stays_so_beside_a_new_line_of_the_same_words_in_the_dead_letter_lane() {
    let scratch = Scratch::board("## Pending\n\n## Done\n\n- [ ] a\n\n## Dead Letter\n\n- [ ] a\n");
    scratch.settle();
    assert_eq!(
        scratch.queue(),
        "## Pending\n\n- [ ] a\n\n## Done\n\n- [ ] a\n\n## Dead Letter\n"
    );
}

/// Each of them would read as it should without the others.
#[test]
fn lines_that_are_moved_together_read_as_each_does_alone() {
    for (text, moved) in [
        (
            "## Pending\n\n  - [ ] T-1: one\n\n## Dead Letter\n\n- [ ] a\n\nText.\n\n  - [ ] b\n    - sub\n",
            "## Pending\n\n  - [ ] T-1: one\n- [ ] a\n- [ ] b\n  - sub\n\n## Dead Letter\n\nText.\n",
        ),
        (
            "## Pending\n\n- [ ] T-1: one\n\n## Dead Letter\n\n- [x] T-2: two\n1. [ ] a\n1) [ ] b\n  - [x] T-3: three\n",
            "## Pending\n\n- [ ] T-1: one\n1. [ ] a\n\n<!-- -->\n\n1) [ ] b\n\n<!-- -->\n\n\n## Dead Letter\n\n- [x] T-2: two\n\n<!-- -->\n\n  - [x] T-3: three\n",
        ),
    ] {
        assert_eq!(Scratch::board(text).queue(), moved);
    }
}

#[test]
fn dead_cards_behind_a_rule_leave_the_heading_below_them_as_it_was() {
    let (cards, below) = ("- [ ] a, b\n  c\n- [ ] b\n", "## Later\n\n- [ ] c\n");
    let kanban = "---\nkanban-plugin: board\n---\n\n## Pending\n\n- [ ] p\n\n";
    let scratch = Scratch::board(&format!("{kanban}## Failed\n\n***\n\n{cards}\n{below}"));
    scratch.settle();
    has(&scratch.queue(), &["- [ ] p\n- [ ] a, b\n  c\n", below]);
    let items = scratch.records("tavern-status", &[])[1]["items"].clone();
    assert_eq!(
        items,
        serde_json::json!({"pending": 4}),
        "{}",
        scratch.queue()
    );
}
