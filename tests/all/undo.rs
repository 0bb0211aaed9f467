//! What was done to an item is taken back, and done again; never what somebody holds, nor what came since.

use tavern_core::event::Kind;
use tavern_core::task::Status;
use tavern_store::Entry;

use crate::state::{State, id};
use crate::support::{ARCHIVE, OWNED, QUEUE, Ran, Scratch, has};

fn items() -> String {
    OWNED.replace("T-1: one", "T-1: one (priority: 1)\n  Words under it.")
}

/// The order of items and words, without blank lines, indentation and what keeps lists apart.
pub fn words(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !["", "<!-- -->"].contains(line))
        .collect()
}

fn undo(scratch: &Scratch, arguments: &[&str]) -> Ran {
    scratch.run("tavern-undo", arguments)
}

#[test]
fn a_deletion_that_was_taken_for_an_old_save_is_told_and_nothing_is_undone() {
    let scratch = Scratch::board("- [ ] T-1: One\n");
    scratch.settle();
    let before = scratch.queue();
    scratch.run("tavern-add", &["--id", "T-7", "Seven"]).ends(0);
    let added = scratch.queue();
    scratch.write(QUEUE, &before);
    for arguments in [&[][..], &["T-7"], &["--dry-run"]] {
        undo(&scratch, arguments)
            .ends(4)
            .says("was an older text, and removed nothing: T-7 stayed")
            .says("hint: to remove it: tavern cancel T-7; to undo the change before: tavern undo --event ");
    }
    assert_eq!(scratch.queue(), added);
    // Other items' changes are undone as ever.
    undo(&scratch, &["T-1"]).ends(3).says("nothing to undo");
}

#[test]
fn a_dry_run_shows_that_a_deletion_by_hand_is_undone() {
    let scratch = Scratch::board(&items());
    scratch.settle();
    let whole = scratch.queue();
    scratch.write(QUEUE, whole.replace("- [ ] T-2: two\n", ""));
    let dry = undo(&scratch, &["--dry-run"]).succeeds();
    assert!(dry.starts_with("T-2 is back in main as pending"), "{dry}");
    assert!(!scratch.queue().contains("T-2"));
    assert_eq!(undo(&scratch, &[]).succeeds(), dry);
    assert_eq!(scratch.queue(), whole);
}

#[test]
fn a_transition_is_taken_back_and_made_again_any_number_of_times() {
    let scratch = Scratch::board(&items());
    scratch
        .run("tavern-release", &["T-2", "--cancel", "-m", "no"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-1", "--cancel", "-m", "never"])
        .succeeds();
    let cancelled = scratch.queue();
    let dry = undo(&scratch, &["--dry-run"]).succeeds();
    assert!(dry.starts_with("T-1 is pending again: event"), "{dry}");
    assert_eq!(scratch.queue(), cancelled);
    let told = undo(&scratch, &[]).succeeds();
    assert_eq!(told, dry, "what --dry-run prints is what is done");
    assert!(
        told.contains("\n  + - [ ] T-1: one (priority: 1)\n"),
        "{told}"
    );
    // One undo after the other goes further back.
    undo(&scratch, &[]).succeeds();
    let state = State::of(&scratch);
    state.agrees();
    assert_eq!(
        state.items["T-1"],
        (
            Status::Pending,
            "- [ ] T-1: one (priority: 1)\n  Words under it.\n".to_owned()
        )
    );
    assert_eq!(
        state.items["T-2"],
        (Status::Pending, "- [ ] T-2: two\n".to_owned())
    );
    // And so does the other way; what is done again can be taken back again.
    undo(&scratch, &["--redo"]).succeeds();
    undo(&scratch, &["--redo"]).succeeds();
    assert_eq!(scratch.queue().matches("- [x]").count(), 2);
    undo(&scratch, &["--redo"]).ends(3);
    undo(&scratch, &[]).succeeds();
    let state = State::of(&scratch);
    state.agrees();
    assert_eq!(
        (state.status("T-1"), state.status("T-2")),
        (Some(Status::Pending), Some(Status::Cancelled))
    );
    assert!(scratch.queue().contains("Words of the owner.\n"));
}

#[test]
fn a_named_event_is_taken_back_once() {
    let scratch = Scratch::board(&items());
    scratch
        .run("tavern-release", &["T-1", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-2", "--cancel"])
        .succeeds();
    let event = newest(&scratch, |entry| {
        entry.task.as_ref().is_some_and(|id| id.as_str() == "T-1")
    });
    let record = scratch.json("tavern-undo", &["--event", &event]);
    assert_eq!(
        (&record["task"], &record["status"], &record["kind"]),
        (&"T-1".into(), &"pending".into(), &"cancelled".into())
    );
    undo(&scratch, &["--event", &event])
        .ends(4)
        .says("was already undone");
    let by = record["undone_by"].to_string();
    undo(&scratch, &["--event", &by]).succeeds();
    assert_eq!(State::of(&scratch).status("T-1"), Some(Status::Cancelled));
    undo(&scratch, &["--event", "4711"]).ends(2);
    let list = undo(&scratch, &["--list"]).succeeds();
    assert_eq!(list.lines().count(), 3, "{list}");
}

#[test]
fn a_deletion_by_hand_comes_back_where_its_lane_is() {
    let scratch = Scratch::board(&items());
    let without = items()
        .replace("- [ ] T-1: one (priority: 1)\n  Words under it.\n", "")
        .replace("- [ ] four\n", "");
    scratch.write(QUEUE, &without);
    undo(&scratch, &["T-1"]).succeeds();
    // An item without an ID is the last event.
    let event = newest(&scratch, |entry| {
        entry.task.is_none() && entry.change.before().is_some()
    });
    let told = undo(&scratch, &["--event", &event]).succeeds();
    assert!(
        told.starts_with("`four` is back in main as pending"),
        "{told}"
    );
    assert_eq!(scratch.queue(), items());
    State::of(&scratch).agrees();
    // Out again, and what is out can't be taken out.
    undo(&scratch, &["--redo", "T-1"]).succeeds();
    assert_eq!(State::of(&scratch).status("T-1"), None);
    State::of(&scratch).agrees();
}

/// With an ID and without, at the start, in the middle and at the end of what stands under a heading, and with a neighbour gone, too.
#[test]
fn what_was_taken_out_or_retyped_by_hand_comes_back_where_it_stood() {
    let lists = [
        "# List\n\n## One\n\n- [ ] a1\n- [ ] T-1: a2\n  Words.\n- [x] a3\n\n## Two\n\n- [ ] b1\n\n- [ ] T-2: b2\n\nThe end.\n",
        "## Todo\n\n- [ ] a1\n- [ ] T-1: a2\n\n### Later\n\n- Group\n  - [ ] a3\n  - [ ] a4\n\n## Done\n\n- [x] T-2: b2\n- [x] b3\n",
    ];
    for list in lists {
        let lines = list.replace("\n  Words", "\0Words");
        let lines = lines
            .split_inclusive('\n')
            .filter(|line| line.contains("- ["));
        let blocks: Vec<String> = lines.map(|line| line.replace('\0', "\n  ")).collect();
        for (at, block) in blocks.iter().enumerate() {
            // Where nothing is left under a heading it is at the end there.
            let next = blocks
                .get(at + 1)
                .filter(|next| !next.contains("b2"))
                .unwrap_or(block);
            let (boxed, _) = block.split_at(block.find(']').expect("it has a box") + 2);
            let retyped = list.replace(block, &format!("{boxed}Quite another thing\n"));
            let several = list.replace(block, "").replace(next, "");
            for saved in [list.replace(block, ""), several, retyped] {
                let scratch = Scratch::board(list);
                scratch.write(QUEUE, &saved);
                scratch.settle();
                assert_eq!(scratch.queue(), saved);
                while undo(&scratch, &[]).code == Some(0) {}
                assert_eq!(words(&scratch.queue()), words(list), "{saved}");
                while undo(&scratch, &["--redo"]).code == Some(0) {}
                assert_eq!(words(&scratch.queue()), words(&saved));
            }
        }
    }
    // What was typed meanwhile stays, and what came back stands beside it.
    let scratch = Scratch::board(lists[0]);
    scratch.write(QUEUE, lists[0].replace("- [ ] T-1: a2\n  Words.\n", ""));
    scratch.settle();
    scratch.change(QUEUE, "- [ ] a1\n", "- [ ] a1\n- [ ] new\n");
    undo(&scratch, &["T-1"]).succeeds();
    has(
        &scratch.queue(),
        &["- [ ] a1\n- [ ] new\n- [ ] T-1: a2\n  Words.\n- [x] a3\n"],
    );
}

#[test]
fn a_change_of_what_headings_mean_is_no_move_of_their_items() {
    let text = "---\nkanban-plugin: board\n---\n\n## Todo\n\n- [ ] one\n\n## Fertig\n\n- [ ] two\n";
    let lanes = (
        "kanban-plugin: board\n",
        "kanban-plugin: board\nlanes: {Fertig: completed}\n",
    );
    for (from, to) in [
        lanes,
        ("## Fertig\n", "## Done\n"),
        ("## Todo\n", "## Done\n"),
    ] {
        let scratch = Scratch::board(text);
        let saved = text.replace(from, to);
        scratch.write(QUEUE, &saved);
        scratch.settle();
        let hint =
            "change the headings, or `lanes` in the front matter, back by hand: tavern edit main";
        undo(&scratch, &[])
            .ends(4)
            .says("changed the lanes of main")
            .says(hint);
        assert_eq!(scratch.queue(), saved);
    }
    // What was moved comes back to its place.
    let text = text
        .replace("Fertig", "Done")
        .replace("- [ ] one\n", "- [ ] one\n- [ ] three\n");
    let scratch = Scratch::board(&text);
    scratch.write(
        QUEUE,
        text.replace("- [ ] one\n", "")
            .replace("- [ ] two\n", "- [x] one\n- [ ] two\n"),
    );
    scratch.settle();
    undo(&scratch, &[]).succeeds();
    assert_eq!(scratch.queue(), text);
}

/// The number of the newest event that `is_it`.
fn newest(scratch: &Scratch, is_it: impl Fn(&Entry) -> bool) -> String {
    let log = State::of(scratch).log;
    log.iter()
        .rev()
        .find(|entry| is_it(entry))
        .expect("it is in the log")
        .seq
        .to_string()
}

#[test]
fn an_edit_by_hand_is_taken_back_beside_what_came_since() {
    let scratch = Scratch::board(&items());
    scratch.write(
        QUEUE,
        items().replace("T-1: one (priority: 1)", "T-1: one, better (priority: 1)"),
    );
    scratch.settle();
    let first = newest(&scratch, |_| true);
    scratch.change(QUEUE, "Words under it.", "Words under it.\n  More words.");
    scratch.settle();
    undo(&scratch, &["--event", &first]).succeeds();
    let state = State::of(&scratch);
    state.agrees();
    assert_eq!(
        state.items["T-1"].1,
        "- [ ] T-1: one (priority: 1)\n  Words under it.\n  More words.\n"
    );
    // What contradicts is refused, and it is said what happened.
    scratch.change(QUEUE, "T-2: two", "T-2: second");
    scratch.settle();
    let event = newest(&scratch, |_| true);
    scratch.change(QUEUE, "T-2: second", "T-2: seventh");
    undo(&scratch, &["--event", &event])
        .ends(4)
        .says("T-2 has changed since event")
        .says("T-2 was edited");
    assert!(scratch.queue().contains("T-2: seventh"));
}

#[test]
fn what_somebody_holds_or_held_is_left_alone() {
    let scratch = Scratch::board(&items());
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Frodo"])
        .succeeds();
    undo(&scratch, &["T-1"])
        .ends(4)
        .says("hint: take it from its holder: tavern release T-1 --force");
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .succeeds();
    // What was claimed and given back is as if it had not been claimed.
    undo(&scratch, &["T-1"]).succeeds();
    assert_eq!(scratch.queue(), items());
    undo(&scratch, &["T-1"]).ends(3);
    let token = scratch.claim("T-1", &[]);
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &token, "--waiting", "what?"],
        )
        .ends(8);
    undo(&scratch, &["T-1"]).succeeds();
    assert_eq!(scratch.queue(), items());
    State::of(&scratch).agrees();
}

#[test]
fn a_claim_is_taken_back_with_what_its_holder_did_and_without_what_was_typed() {
    let text = "## Todo\n\n- [ ] T-1: one\n- [ ] two\n  - [ ] a step\n\n## Doing\n\n## Done\n";
    for report in [&["--mode", "plan"][..], &["--step", "1"], &[]] {
        let scratch = Scratch::board(text);
        scratch
            .run("tavern-release", &["T-1", "--cancel"])
            .succeeds();
        let without_first = scratch.queue();
        let lease =
            scratch.json("tavern-claim", &["--task", "main:3", "--agent", "Frodo"])["lease"].take();
        let (name, token) = (
            lease["task"].as_str().expect("it has an ID now"),
            lease["token"].to_string(),
        );
        if report.is_empty() {
            scratch.change(QUEUE, "  - [ ] a step", "  Typed.\n  - [ ] a step");
            scratch.settle();
        } else {
            scratch
                .run(
                    "tavern-report",
                    &[&[name, "--token", &token], report].concat(),
                )
                .succeeds();
        }
        scratch.run("tavern-release", &[name, "--force"]).succeeds();
        let told = undo(&scratch, &[]).succeeds();
        if report.is_empty() {
            assert_eq!(
                scratch.queue(),
                without_first.replace("  - [ ] a step", "  Typed.\n  - [ ] a step")
            );
            let list = undo(&scratch, &["--list"]).succeeds();
            assert!(
                list.contains("was edited by hand"),
                "it has no ID any more: {list}"
            );
            undo(&scratch, &[]).succeeds();
            assert!(!scratch.queue().contains("Typed."), "{}", scratch.queue());
        } else {
            assert_eq!(scratch.queue(), without_first, "{told}");
        }
        undo(&scratch, &[]).ends(0).says("T-1 is pending again");
        undo(&scratch, &[]).ends(3);
    }
}

#[test]
fn what_an_undo_leaves_has_the_order_that_it_had_however_its_list_is_indented() {
    for text in [
        "## Todo\n\n- X\n  - [ ] T-1: B\n  - [ ] c (after: T-9)\n\n## Doing\n\n## Done\n- [x] d\n",
        "# Todo\n\n - [ ] T-1: B\n\n# Waiting\n\n# Done",
        "# Todo\n- X\n  - [ ] T-1: B\n# Doing\n# Waiting\n# Done",
        "# Todo\n- [ ] T-1: B (status: pending)\n# Waiting\n- [ ] c",
        " - [ ] T-1: B (status: pending)",
    ] {
        for way in ["asked", "cancelled"] {
            let scratch = Scratch::board(text);
            match way {
                "asked" => {
                    let token = scratch.claim("T-1", &[]);
                    scratch
                        .run(
                            "tavern-report",
                            &["T-1", "--token", &token, "--waiting", "what?"],
                        )
                        .ends(8);
                }
                _ => drop(
                    scratch
                        .run("tavern-release", &["T-1", "--cancel"])
                        .succeeds(),
                ),
            }
            let is_asked = way == "asked";
            assert_eq!(scratch.queue() == text, is_asked);
            while scratch.item("T-1")["status"] != "pending" {
                undo(&scratch, &["T-1"]).succeeds();
            }
            assert_eq!(words(&scratch.queue()), words(text), "{way}");
        }
    }
}

#[test]
fn each_line_has_its_own_end_back() {
    for list in [
        "## Pending\n\n- [ ] T-1: one\r\n  words\n- [ ] T-2: two\n\n## Completed\n",
        "## Pending\r\n\r\n- [ ] T-1: one\n  words\r\n- [ ] T-2: two\r\n\r\n## Completed\r\n",
    ] {
        let scratch = Scratch::board(list);
        let is_taken_back = || {
            assert_ne!(scratch.queue(), list);
            undo(&scratch, &[]).succeeds();
            assert_eq!(scratch.queue(), list);
        };
        scratch
            .run("tavern-release", &["T-1", "--cancel"])
            .succeeds();
        is_taken_back();
        for (from, to) in [
            ("  words", "  more"),
            ("  words\n", ""),
            ("  words\r\n", ""),
            ("one", "one more"),
        ] {
            if list.contains(from) {
                scratch.change(QUEUE, from, to);
                scratch.settle();
                is_taken_back();
            }
        }
    }
}

#[test]
fn what_check_has_mended_is_taken_back_and_made_again() {
    let text = "## Pending\n\n- [ ] T-1: one\n- [ ] T-1: two\n- [ ] three (after: T-1)\n- [ ] T-1: four\n\n## Completed\n";
    let scratch = Scratch::board(text);
    scratch.run("tavern-check", &["--fix"]);
    let mended = scratch.queue();
    assert_eq!(mended.matches("] T-1: ").count(), 1, "{mended}");
    undo(&scratch, &[]).ends(0).says("T-1 is as before");
    let first = scratch.queue();
    undo(&scratch, &[]).succeeds();
    assert_eq!(scratch.queue(), text);
    undo(&scratch, &["--redo"]).succeeds();
    assert_eq!(scratch.queue(), first);
    undo(&scratch, &["--redo"]).succeeds();
    assert_eq!(scratch.queue(), mended);
    // An ID that somebody holds is not given to another item.
    scratch.claim("T-1", &[]);
    undo(&scratch, &[]).ends(4).says("`T-1` is held");
    assert_eq!(scratch.queue().matches("] T-1: ").count(), 1);
}

#[test]
fn what_was_added_is_taken_out_and_an_empty_log_has_nothing() {
    let scratch = Scratch::initialized();
    undo(&scratch, &[]).ends(3);
    let before = scratch.queue();
    scratch
        .run("tavern-add", &["Write it", "--id", "T-9"])
        .succeeds();
    let told = undo(&scratch, &[]).succeeds();
    assert!(told.starts_with("T-9 is out of main again"), "{told}");
    assert_eq!(scratch.queue(), before);
    undo(&scratch, &[]).ends(3);
    undo(&scratch, &["--redo"]).succeeds();
    assert_eq!(State::of(&scratch).status("T-9"), Some(Status::Pending));
    State::of(&scratch).agrees();
}

#[test]
fn the_log_tells_an_items_whole_life_in_words() {
    let scratch = Scratch::board(&items());
    let edit = |from: &str, to: &str| {
        let text = scratch.queue();
        assert!(text.contains(from), "{from}\n{text}");
        scratch.write(QUEUE, text.replacen(from, to, 1));
        scratch.settle();
    };
    edit("## In Progress\n", "- [ ] T-7: Write\n\n## In Progress\n");
    edit("T-7: Write", "T-7: Write it (priority: 1)\n  Soon.");
    scratch
        .run("tavern-claim", &["--task", "T-7", "--agent", "Frodo"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-7", "--force", "-m", "lunch"])
        .succeeds();
    edit("- [ ] T-7", "- [x] T-7");
    undo(&scratch, &["T-7"]).succeeds();
    // Without what was done since it would be the text from before it was there.
    scratch
        .run(
            "tavern-add",
            &["More, which is longer than what is taken out"],
        )
        .succeeds();
    edit("- [ ] T-7: Write it (priority: 1)\n  Soon.\n", "");
    undo(&scratch, &["T-7"]).succeeds();
    undo(&scratch, &["T-7", "--redo"]).succeeds();
    let told = scratch.run("tavern-log", &["T-7"]).succeeds();
    let told: Vec<&str> = told.lines().map(|line| &line[27..]).collect();
    let expected = [
        "T-7 was added as pending by hand: Write",
        "T-7 was edited by hand: now `Write it`, priority, description",
        "Frodo claimed T-7",
        "T-7 was taken from Frodo by a person, now pending: lunch",
        "T-7 was moved from pending to completed by hand",
        "T-7 was made pending again: event 5 (edited) was undone",
        "T-7 was taken out of main by hand",
        "T-7 was put back as pending: event 8 (removed) was undone",
        "T-7 was taken out of main again: event 9 (undone) was undone",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_merge_is_taken_back_by_the_line_that_an_undo_is_refused_with() {
    let scratch = Scratch::initialized();
    scratch.write(QUEUE, "## Pending\n\n- [ ] T-1: one\n\n  ```sh\n  echo a > a\n  git add a && git commit -qm a\n  ```\n\n## Completed\n");
    scratch.run("tavern-drain", &["--agents", "1"]).succeeds();
    let queue = scratch.queue();
    let ran = undo(&scratch, &["T-1"]).ends(4).says("T-1 was merged as ");
    assert_eq!(scratch.queue(), queue);
    let listed = undo(&scratch, &["--list"]);
    assert!(!listed.stdout.contains("was merged"), "{listed}");
    let line = ran
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("hint: "))
        .expect("it is named");
    let before = scratch.git(&["status", "--branch", "--short"]);
    scratch
        .command(std::path::Path::new("sh"))
        .args(&["-ec", line])
        .run()
        .succeeds();
    assert_eq!(
        scratch.git(&["status", "--branch", "--short"]),
        before,
        "the checkout is as it was"
    );
    assert_eq!(scratch.git(&["ls-tree", "tavern/integration", "a"]), "");
    // It is worked anew, and its work is merged anew.
    assert_eq!(scratch.item("T-1")["status"], "pending");
    scratch.run("tavern-drain", &["--agents", "1"]).succeeds();
    assert!(scratch.merged().lines().any(|file| file == "a"));
}

#[test]
fn what_was_archived_since_stays_there_and_is_brought_back_by_its_name() {
    let scratch = Scratch::shell(&items(), "base: main\narchive: {keep: 1}\n");
    scratch.settle();
    scratch.change(QUEUE, "[ ] T-1", "[x] T-1");
    scratch.settle();
    scratch.change(QUEUE, "[ ] T-2", "[x] T-2");
    scratch.settle();
    scratch.settle();
    let archive = scratch.read(ARCHIVE);
    assert!(archive.contains("- [x] T-1: one"), "{archive}");
    let list = undo(&scratch, &["--list"]).succeeds();
    assert!(
        !list.contains("archive"),
        "to put it away changed nothing that could be taken back: {list}"
    );
    let ticked = newest(&scratch, |entry| {
        entry.kind != Kind::Archived && entry.task == Some(id("T-1"))
    });
    assert!(
        list.contains("T-2") && !list.contains("T-1"),
        "what is archived is not offered: {list}"
    );
    for arguments in [&["--event", &ticked][..], &["T-1"]] {
        undo(&scratch, arguments)
            .ends(4)
            .says("`T-1` is in the archive")
            .says("tavern reopen T-1");
    }
    assert_eq!(scratch.read(ARCHIVE), archive);
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says_not("was removed");
    // The last change is that of the other.
    undo(&scratch, &[]).ends(0).says("T-2 is pending again");
    scratch
        .run("tavern-release", &["T-1", "--reopen"])
        .succeeds();
    State::of(&scratch).agrees();
    // Back again, it is as it was in the archive, and nowhere else than it would be without.
    undo(&scratch, &[]).ends(0).says("T-1 is completed again");
    State::of(&scratch).agrees();
    scratch.stands("T-1", "completed", 0);
    undo(&scratch, &["--redo"])
        .ends(0)
        .says("T-1 is pending again");
    scratch.stands("T-1", "pending", 0);
    undo(&scratch, &[]).ends(0);
    scratch.settle();
    let places = scratch.read(ARCHIVE) + &scratch.queue();
    assert_eq!(places.matches("T-1: one").count(), 1, "{places}");
}

#[test]
fn words_between_items_are_no_items() {
    let scratch = Scratch::board(&items());
    scratch.write(QUEUE, items().replace("T-2: two", "T-2: zwei"));
    scratch.settle();
    scratch.change(QUEUE, "## Waiting", "Words.\n\n## Waiting");
    scratch.settle();
    assert!(
        !undo(&scratch, &["--list"])
            .succeeds()
            .contains("the text around")
    );
    undo(&scratch, &[]).ends(0).says("T-2 is as before");
    has(&scratch.queue(), &["T-2: two", "Words."]);
}
