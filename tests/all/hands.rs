//! Queues are edited by hand while programs work on them: a save from an old buffer undoes nothing, and no typed word is
//! lost.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tavern_core::task::{Status, Task};
use tavern_store::HAND;

use crate::state::State;
use crate::support::{OWNED, QUEUE, Scratch, has};

/// `OWNED`, whose cards are moved at each transition.
fn live() -> String {
    OWNED.replace("id: main\n", "id: main\nlive: true\n")
}

fn agent_of(task: &Task) -> Option<&str> {
    task.state.holder()?.agent.as_deref()
}

/// What was done by hand, as the log has it.
fn by_hand(scratch: &Scratch) -> Vec<String> {
    let log = State::of(scratch).log;
    let by_hand = log
        .iter()
        .filter(|entry| entry.agent.as_deref() == Some(HAND));
    let told = by_hand.map(|entry| {
        let task = entry.task.as_ref().map_or("-", |task| task.as_str());
        let to = entry
            .change
            .to()
            .map_or_else(String::new, |to| format!(" {to}"));
        format!("{} {task}{to}", entry.kind.as_str())
    });
    told.collect()
}

#[test]
fn a_save_takes_effect_and_shows_in_the_log_as_done_by_hand() {
    let scratch = Scratch::board(OWNED);
    let edited = OWNED
        .replace("- [ ] T-1: one\n", "- [x] T-1: one\n")
        .replace("- [ ] T-2: two\n", "")
        .replace("## Waiting\n", "## Waiting\n\n- [ ] T-2: two\n")
        .replace("T-3: three", "T-3: three (priority: 0)")
        .replace("- [ ] four\n", "- [ ] T-5: five\n");
    scratch.write(QUEUE, &edited);
    scratch.settle();
    assert_eq!(scratch.queue(), edited, "not a byte is changed");
    let expected = [
        "edited T-1 completed",
        "edited T-3",
        "added T-5 pending",
        "edited T-2 waiting",
        "removed -",
    ];
    let mut told = by_hand(&scratch);
    told.sort();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(told, expected);
    scratch
        .run("tavern-log", &["T-2"])
        .ends(0)
        .says("T-2 was moved from pending to waiting by hand");
    // And again: nothing is taken over twice.
    scratch.settle();
    assert_eq!(by_hand(&scratch).len(), expected.len());
}

#[test]
fn a_save_without_items_is_set_aside_until_a_person_edits() {
    let items: Vec<String> = (1..=4)
        .map(|number| format!("- [ ] T-{number}: Item {number}\n"))
        .collect();
    let full = format!("# Main\n\n## Pending\n\n{}\n## Completed\n", items.concat());
    let scratch = Scratch::board(&full);
    for (number, saved) in ["garbage\n", "# Main\n\n## Pending\n\n## Completed\n"]
        .into_iter()
        .enumerate()
    {
        let aside = format!(".git/tavern/seen/main.{}.aside", number + 1);
        // The same save twice is set aside once, and told of before any program has taken it over.
        for _ in 0..2 {
            scratch.write(QUEUE, saved);
            scratch.run("tavern-check", &[]).ends(8).says(&aside);
            scratch.run("tavern-drain", &[]).says(&aside);
            scratch.write(QUEUE, saved);
            scratch.run("tavern-status", &[]).says(&aside);
            scratch.run("tavern-reap", &[]).succeeds();
            assert!(
                items.iter().all(|item| scratch.queue().contains(item)),
                "{saved}\n{}",
                scratch.queue()
            );
        }
        assert_eq!(scratch.read(&aside), saved);
        scratch
            .run("tavern-log", &[])
            .says("; the queue is unchanged")
            .says(&aside);
        for program in ["tavern-check", "tavern-status", "tavern-drain"] {
            scratch
                .run(program, &[])
                .says("tavern edit --accept ")
                .says("tavern edit --discard ")
                .says(&aside);
        }
    }
    // What a person says becomes of it.
    let [garbage, empty] = [1, 2].map(|number| format!(".git/tavern/seen/main.{number}.aside"));
    scratch
        .run("tavern-edit", &["--discard", &garbage])
        .ends(0)
        .says("the save is discarded; main is unchanged");
    scratch
        .run("tavern-edit", &["--discard", &garbage])
        .ends(2)
        .says("is not a save that was set aside");
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Frodo"])
        .succeeds();
    scratch
        .run("tavern-edit", &["--accept", &empty])
        .ends(0)
        .says("T-4 was taken out of main by hand")
        .says("release T-1");
    scratch.run("tavern-check", &[]).says_not("aside");
    assert_eq!(
        State::of(&scratch).items.keys().collect::<Vec<_>>(),
        ["T-1"]
    );
    // What was taken out is no news.
    scratch.write(QUEUE, &full);
    scratch.settle();
    assert_eq!(State::of(&scratch).items.len(), 1);
    scratch.begin(&full);
    // What stands in another queue now was moved there.
    let work = format!("---\nid: work\n---\n{full}");
    scratch.write(".tavern/queues/work.md", &work);
    scratch.write(QUEUE, "# Main\n\n## Pending\n");
    scratch.settle();
    assert!(!scratch.queue().contains("T-1:"));
    // What was taken out as it had ended does not show again from an older buffer.
    scratch
        .run("tavern-release", &["T-1", "--cancel"])
        .succeeds();
    let cancelled = scratch.read(".tavern/queues/work.md");
    let line = cancelled
        .split_inclusive('\n')
        .find(|line| line.contains("T-1:"))
        .expect("it is there");
    scratch.change(".tavern/queues/work.md", line, "");
    scratch.settle();
    scratch.write(".tavern/queues/work.md", work);
    scratch.settle();
    let status = State::of(&scratch).status("T-1");
    assert!(
        matches!(status, None | Some(Status::Cancelled)),
        "{status:?}"
    );
}

#[test]
fn who_takes_back_their_own_edit_means_it() {
    let scratch = Scratch::board(OWNED);
    let edited = OWNED.replace("T-1: one", "T-1: one (priority: 0)");
    for text in [&edited, OWNED, &edited] {
        scratch.write(QUEUE, text);
        scratch.settle();
        assert_eq!(scratch.queue(), *text);
    }
}

/// What HEAD holds itself may have been put there by git: it is an old text. What is nearer to the newest rests on that.
#[test]
fn who_takes_back_what_was_typed_since_a_commit_in_a_newer_text_means_it() {
    let more = "two, as somebody told them on the phone, and all of it is to be done before the others are";
    let board = "## Draft\n\n## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n\n## Completed\n";
    let edits = [
        // Added, and taken out or renamed.
        (
            "- [ ] T-3: three\n",
            "- [ ] T-3: three\n- [ ] T-9: nine\n",
            "- [ ] T-3: three\n",
        ),
        (
            "- [ ] T-3: three\n",
            "- [ ] T-3: three\n- [ ] T-9: nine\n",
            "- [ ] T-3: three\n- [ ] NEW-9: nine\n",
        ),
        // Ticked, and moved.
        ("- [ ] T-1: one\n", "- [x] T-1: one\n", "- [ ] T-1: one\n"),
        (
            "## Pending\n\n- [ ] T-1: one\n",
            "- [ ] T-1: one\n\n## Pending\n\n",
            "## Pending\n\n- [ ] T-1: one\n",
        ),
        // Taken out, and put back.
        ("- [ ] T-1: one\n", "", "- [ ] T-1: one\n"),
    ];
    for ((from, to, back), is_put_by_git) in edits
        .into_iter()
        .flat_map(|edit| [(edit, false), (edit, true)])
    {
        let scratch = Scratch::board(board);
        scratch.commit(&["--all"], "Board");
        if is_put_by_git {
            scratch.git(&["rm", "--quiet", QUEUE]);
            scratch.git(&["reset", "--quiet", "--hard"]);
            scratch.settle();
        }
        let save = |text: &str| {
            scratch.write(QUEUE, text);
            scratch.settle();
            scratch.queue()
        };
        let edited = board.replace(from, to);
        assert_eq!(save(&edited), edited);
        assert_eq!(save(board), edited);
        scratch
            .run("tavern-log", &[])
            .says("an older text was saved");
        let edited = edited.replace("two", more);
        assert_eq!(save(&edited), edited);
        for typed in [", typed", ", typed, and more"] {
            let words = format!("{more}{typed}");
            let taken_back = board.replace(from, back).replace("two", &words);
            // An item that comes back into its lane may come last.
            let lines = |text: &str| {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            assert_eq!(lines(&save(&taken_back)), lines(&taken_back), "{to}");
        }
    }
}

#[test]
fn what_tavern_added_since_a_commit_stays_where_the_text_from_before_is_saved() {
    // Without more, and with words typed at the same time. The first is what HEAD holds, but git has not put it there.
    for typed in ["two", "two, typed"] {
        let scratch = Scratch::board(OWNED);
        scratch.commit(&["--all"], "Board");
        scratch.settle();
        scratch
            .run("tavern-add", &["another", "--id", "T-9"])
            .succeeds();
        let text = scratch.queue().replace("two", typed);
        let lacking = text.replace("- [ ] T-9: another\n", "");
        for _ in 0..2 {
            scratch.write(QUEUE, &lacking);
            scratch.settle();
            assert_eq!(scratch.queue(), text);
            scratch
                .run("tavern-status", &[])
                .says("what it lacks stays: T-9");
        }
        scratch
            .run("tavern-release", &["T-9", "--cancel"])
            .succeeds();
        scratch
            .run("tavern-status", &[])
            .says_not("what it lacks stays");
    }
}

#[test]
fn the_line_ends_of_a_save_are_those_of_the_file_also_while_an_item_is_held() {
    let board = "## Todo\n\n- [ ] T-1: one\n  Words.\n- [ ] T-2: two\n\n## Doing\n\n## Done\n";
    let scratch = Scratch::board(board);
    scratch.claim("T-1", &[]);
    for (from, to) in [("\n", "\r\n"), ("\r\n", "\n")] {
        let saved = scratch
            .queue()
            .replace(from, to)
            .replace("two", "two and more");
        scratch.write(QUEUE, &saved);
        scratch.settle();
        assert_eq!(scratch.queue(), saved);
    }
    scratch.change(QUEUE, "\n", "\r\n");
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .succeeds();
    let after = board.replace("two", "two and more and more");
    assert_eq!(scratch.queue(), after.replace('\n', "\r\n"));
}

#[test]
fn what_is_typed_at_the_end_of_a_line_stays_also_while_an_item_is_held() {
    let scratch = Scratch::board(
        "## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n  Words.\n\n- [ ] T-3: three\n",
    );
    scratch.claim("T-1", &[]);
    for (from, to) in [
        ("two\n", "two  \n"),
        ("Words.\n", "Words.\t\n\n \n"),
        ("three\n", "three  \n"),
        (")\n", ") 📅 2026-12-01  \n"),
    ] {
        let saved = scratch.queue().replace(from, to);
        scratch.write(QUEUE, &saved);
        scratch.settle();
        assert_eq!(scratch.queue(), saved);
    }
}

#[test]
fn a_held_item_cannot_be_edited_away() {
    let scratch = Scratch::board(OWNED);
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Frodo"])
        .succeeds();
    let held = scratch.queue();
    for edited in [
        held.replace("- [ ] T-1: one\n", ""),
        held.replace("[ ] T-1", "[x] T-1"),
    ] {
        scratch.write(QUEUE, edited);
        scratch.settle();
        assert_eq!(scratch.queue(), held);
        scratch.stands("T-1", "in_progress", 1);
        scratch
            .run("tavern-log", &["--last", "1"])
            .ends(0)
            .says("T-1")
            .says("it is held, so it was put back");
    }
    scratch.write(QUEUE, held.replace("T-1: one", "T-1: one, retitled"));
    scratch.settle();
    has(&scratch.queue(), &["- [ ] T-1: one, retitled\n"]);
    let item = scratch.stands("T-1", "in_progress", 1);
    assert_eq!(
        (&item["agent"], &item["title"]),
        (&"Frodo".into(), &"one, retitled".into())
    );
}

/// In the line as it stands, and in an old copy that is saved over it.
#[test]
fn a_mark_in_the_box_takes_a_held_item_from_its_holder_and_leaves_one_line() {
    let flat = "# List\n\n- [ ] Zero\n- [ ] One (priority: 1)\n  Words.\n- [ ] Two\n";
    let lanes = "## Todo\n\n- [ ] Zero\n- [ ] One (priority: 1)\n  Words.\n- [ ] Two\n\n## Doing\n\n## Done\n";
    for list in [
        flat,
        lanes,
        &flat.replace("One", "T-1: One"),
        &lanes.replace("One", "T-1: One"),
    ] {
        for (is_old, mark) in [(false, '-'), (true, '-'), (true, '/')] {
            let scratch = Scratch::board(list);
            let claimed = scratch.json("tavern-claim", &["--agent", "Frodo", "--task", "main:4"]);
            let (id, token) = (
                claimed["id"].as_str().expect("an ID").to_owned(),
                claimed["lease"]["token"].to_string(),
            );
            let line = |text: &str| {
                text.lines()
                    .find(|line| line.contains("One"))
                    .expect("it is there")
                    .to_owned()
            };
            let text = if is_old {
                list.to_owned()
            } else {
                scratch.queue()
            };
            scratch.write(
                QUEUE,
                text.replace(
                    &line(&text),
                    &line(&text).replacen("[ ]", &format!("[{mark}]"), 1),
                ),
            );
            scratch.settle();
            let marked = list.replace(&line(list), &format!("- [{mark}] {id}: One (priority: 1)"));
            assert_eq!(scratch.queue(), marked);
            scratch
                .run("tavern-log", &[&id])
                .says(&format!("it was marked `[{mark}]` by hand"));
            // Nobody holds it, and nobody gets it.
            scratch
                .run(
                    "tavern-report",
                    &[&id, "--token", &token, "--failed", "why"],
                )
                .ends(4);
            assert!(State::of(&scratch).leases.is_empty());
            State::of(&scratch).agrees();
            assert_eq!(scratch.queue(), marked);
            // It is as if nobody had taken it, and as if that had not been taken back.
            scratch.run("tavern-undo", &[&id]).succeeds();
            assert_eq!(scratch.queue(), list);
            scratch.run("tavern-undo", &[&id, "--redo"]).succeeds();
            assert_eq!(scratch.queue(), marked);
        }
    }
}

/// The copy is from before the claim. Without an ID its title tells which it is.
#[test]
fn a_title_that_is_changed_in_an_old_copy_is_that_of_the_item_that_is_held() {
    let flat = "# List\n\n- [ ] Zero\n- [ ] One (reason: slow disk)\n  Words.\n- [ ] Two\n";
    let lanes = "## Todo\n\n- [ ] Zero\n- [ ] One (reason: slow disk)\n  Words.\n- [ ] Two\n\n## Doing\n\n## Done\n";
    for list in [
        flat,
        lanes,
        &flat.replace("One", "T-1: One"),
        &lanes.replace("One", "T-1: One"),
    ] {
        for title in ["One (reason: slow network)", "Quite another thing"] {
            let scratch = Scratch::board(list);
            let claimed = scratch.json("tavern-claim", &["--agent", "Frodo", "--task", "main:4"]);
            let id = claimed["id"].as_str().expect("an ID");
            scratch.write(QUEUE, list.replace("One (reason: slow disk)", title));
            scratch.settle();
            if !list.contains("T-1: One") && !title.starts_with("One") {
                let held = format!("- [ ] {id}: One (reason: slow disk)");
                has(&scratch.queue(), &[&held, &format!("- [ ] {title}\n")]);
                assert_eq!(scratch.stands(id, "in_progress", 1)["agent"], "Frodo");
                continue;
            }
            let item = scratch.stands(id, "in_progress", 1);
            assert_eq!(
                (&item["agent"], &item["title"]),
                (&"Frodo".into(), &title.into())
            );
            scratch.run("tavern-release", &[id, "--force"]).succeeds();
            let line = format!("{id}: {title}");
            let expected = list
                .replace("T-1: ", "")
                .replace("One (reason: slow disk)", &line);
            assert_eq!(scratch.queue(), expected);
            State::of(&scratch).agrees();
        }
    }
    // What is new elsewhere, or one of two, is another item.
    let scratch = Scratch::board(flat);
    let claimed = scratch.json("tavern-claim", &["--agent", "Frodo", "--task", "main:4"]);
    let id = claimed["id"].as_str().expect("an ID");
    scratch.write(
        QUEUE,
        flat.replace("- [ ] One (reason: slow disk)\n  Words.\n", "")
            .replace("Two\n", "Two\n- [ ] Three\n"),
    );
    scratch.settle();
    has(
        &scratch.queue(),
        &[
            &format!("- [ ] {id}: One (reason: slow disk)"),
            "- [ ] Two\n- [ ] Three\n",
        ],
    );
    assert_eq!(scratch.stands(id, "in_progress", 1)["agent"], "Frodo");
}

/// Of an old copy the line ends are not told.
#[test]
fn the_bullet_the_indentation_and_the_end_of_a_line_of_a_held_item_stay_as_typed() {
    let flat = "# List\n\n- [ ] Zero\n- [ ] One\n  Words.\n  More.\n- [ ] Two\n";
    let lanes =
        "## Todo\n\n- [ ] Zero\n- [ ] One\n  Words.\n  More.\n- [ ] Two\n\n## Doing\n\n## Done\n";
    for (list, is_old) in [(flat, false), (flat, true), (lanes, false), (lanes, true)] {
        for (typed, is_end) in [
            ("* [ ] One\n  Words.", false),
            (" - [ ] One\n   Words.", false),
            ("- [ ] One\n  Words.\r", true),
        ] {
            if is_old && is_end {
                continue;
            }
            let scratch = Scratch::board(list);
            let claimed = scratch.json("tavern-claim", &["--agent", "Frodo", "--task", "main:4"]);
            let id = claimed["id"].as_str().expect("an ID");
            let text = if is_old {
                list.to_owned()
            } else {
                scratch.queue()
            };
            let line = text
                .lines()
                .find(|line| line.contains("One"))
                .expect("it is there");
            let new = typed.replacen("- [ ] One", line, 1).replacen(
                "* [ ] One",
                &line.replacen('-', "*", 1),
                1,
            );
            scratch.write(QUEUE, text.replace(&format!("{line}\n  Words."), &new));
            scratch.settle();
            scratch.run("tavern-release", &[id, "--force"]).succeeds();
            let named = typed.replace("One", &format!("{id}: One"));
            assert_eq!(scratch.queue(), list.replace("- [ ] One\n  Words.", &named));
        }
    }
}

#[test]
fn an_undo_of_a_mark_in_a_box_leaves_one_line() {
    let list = "# List\n\n- [ ] Zero\n- [ ] One\n  Words.\n- [ ] Two\n";
    let scratch = Scratch::board(list);
    let marked = list.replace("[ ] One", "[-] One");
    scratch.write(QUEUE, &marked);
    for (argument, expected) in [(&[][..], list), (&["--redo"], &marked), (&[], list)] {
        scratch.run("tavern-undo", argument).succeeds();
        assert_eq!(scratch.queue(), expected);
    }
}

#[test]
fn what_was_added_while_an_editor_was_open_is_put_back_once() {
    let scratch = Scratch::board(OWNED);
    let loaded = scratch.read(QUEUE);
    scratch
        .run("tavern-add", &["Write tests for logout", "--id", "T-6"])
        .succeeds();
    scratch.write(
        QUEUE,
        loaded.replace("- [ ] four\n", "- [ ] four\n- [ ] Write tests for login\n"),
    );
    let stays = "what it lacks stays: T-6";
    scratch.run("tavern-status", &[]).says(stays);
    scratch.settle();
    let text = scratch.read(QUEUE);
    let (added, typed) = (
        "- [ ] T-6: Write tests for logout\n",
        "- [ ] Write tests for login\n",
    );
    assert!(text.contains(added) && text.contains(typed), "{text}");
    for program in ["tavern-status", "tavern-check", "tavern-log"] {
        scratch.run(program, &[]).says(stays);
    }
    // Whoever takes it out of what they were shown saves the old text again, unless something else was done since.
    for is_taken_out in [false, true] {
        let lacking = scratch.queue().replace(added, "");
        scratch.write(QUEUE, &lacking);
        scratch.settle();
        if is_taken_out {
            assert_eq!(scratch.queue(), lacking);
            scratch.run("tavern-status", &[]).says_not(stays);
        } else {
            assert_eq!(scratch.queue(), text);
            scratch
                .run("tavern-status", &[])
                .says(stays)
                .says("tavern cancel ID");
            let title = "Another, which is longer than what is taken out";
            scratch.run("tavern-add", &[title]).succeeds();
        }
    }
}

#[test]
fn what_an_older_save_lacks_is_told_until_it_is_done_or_the_next_save() {
    let scratch = Scratch::board(OWNED);
    let loaded = scratch.read(QUEUE);
    // Of these the last has got an ID then, and is not lacking.
    (0..4).for_each(|_| drop(scratch.run("tavern-claim", &[]).ends(0)));
    scratch.write(
        QUEUE,
        format!("{}- [ ] Write docs, and tests\n", scratch.read(QUEUE)),
    );
    scratch
        .run("tavern-add", &["Write tests for logout", "--id", "T-6"])
        .succeeds();
    scratch.write(QUEUE, &loaded);
    scratch.settle();
    let told = || {
        scratch
            .run("tavern-status", &[])
            .stderr
            .lines()
            .find(|line| line.contains("stays"))
            .map(str::to_owned)
    };
    has(
        &told().expect("it is told"),
        &["stays: T-6, Write docs, and tests; to give one up: tavern cancel ID"],
    );
    scratch
        .run("tavern-release", &["T-6", "--cancel"])
        .succeeds();
    has(
        &told().expect("one is left"),
        &["stays: Write docs, and tests; to"],
    );
    scratch.write(
        QUEUE,
        scratch
            .read(QUEUE)
            .replace("- [ ] Write docs, and tests\n", ""),
    );
    assert_eq!(told(), None);
}

/// Each place in which somebody types: what is there, and what it becomes.
const PLACES: [(&str, &str); 7] = [
    ("- [ ] four\n", "- [ ] four\n- [ ] WORD\n"),
    ("- [ ] four\n", "- [ ] four\n- [ ] T-70: WORD\n"),
    ("- [ ] four\n", "- [ ] four\n  WORD\n"),
    ("- [ ] four\n", "- [ ] four WORD\n"),
    ("T-3: three\n", "T-3: three WORD\n"),
    ("Words of the owner.\n", "Words of the owner.\n\nWORD\n"),
    ("id: main\n", "id: main\nnote: WORD\n"),
];

/// A text from before somebody else saved tells its age by what Tavern did before or after that.
#[test]
fn what_one_editor_typed_stays_when_another_saves_an_older_text() {
    let (add, cancel) = (["Added", "--id", "T-99"], ["T-1", "--cancel"]);
    for (program, arguments, is_first) in [
        ("tavern-add", &add[..], true),
        ("tavern-release", &cancel, false),
    ] {
        for (from, to) in PLACES {
            let scratch = Scratch::board(OWNED);
            let run = |is_now: bool| is_now.then(|| scratch.run(program, arguments).succeeds());
            run(is_first);
            scratch.change(QUEUE, from, &to.replace("WORD", "Mine."));
            scratch.settle();
            run(!is_first);
            let done = State::of(&scratch).items;
            scratch.write(QUEUE, OWNED.replace("T-2: two", "T-2: two, theirs"));
            scratch.settle();
            let (text, items) = (scratch.queue(), State::of(&scratch).items);
            has(&text, &["Mine.", "T-2: two, theirs"]);
            assert_eq!(
                items.keys().collect::<Vec<_>>(),
                done.keys().collect::<Vec<_>>(),
                "{text}"
            );
            assert_eq!(items["T-1"], done["T-1"], "{text}");
        }
    }
}

/// Whoever is told that the file has changed, and saves all the same, has what they saved and not what was made of it.
#[test]
fn who_goes_on_with_an_old_text_finds_each_word_once() {
    for (from, to) in PLACES {
        for others_come_first in [true, false] {
            let scratch = Scratch::board(OWNED);
            let others = || {
                scratch.change(QUEUE, "T-2: two\n", "T-2: two\n  Another's.\n");
                scratch.settle();
                scratch
                    .run("tavern-release", &["T-1", "--cancel"])
                    .succeeds();
            };
            let save = |words: &str| {
                scratch.write(QUEUE, OWNED.replacen(from, &to.replace("WORD", words), 1));
                scratch.settle();
            };
            if others_come_first {
                others();
            }
            save("Mine");
            if !others_come_first {
                others();
            }
            save("Mine, and so on");
            let text = scratch.queue();
            assert_eq!(
                text.matches("Mine").count(),
                1,
                "{others_come_first} {text}"
            );
            has(&text, &["Mine, and so on", "Another's."]);
            assert!(!text.contains("conflict"), "{others_come_first} {text}");
            assert_eq!(
                State::of(&scratch).status("T-1"),
                Some(Status::Cancelled),
                "{text}"
            );
        }
    }
}

/// Two that go on in the same old text, each in their own words. What one of them says in the place of their own words takes
/// nothing of the other's away, however alike the two read.
#[test]
fn who_contradicts_in_an_old_text_again_and_again_is_said_once() {
    let scratch = Scratch::board(&OWNED.replace("T-1: one\n", "T-1: one\n  Its words.\n"));
    let loaded = scratch.queue();
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Frodo"])
        .succeeds();
    let places = [
        ("T-2: two", "T-2: two"),
        ("] four", "] four"),
        ("Words of the owner.", "Words"),
        ("Its words.", "Words"),
    ];
    let save = |words: &str| {
        let typed =
            |text: String, (from, to): &(&str, &str)| text.replace(from, &format!("{to} {words}"));
        scratch.write(QUEUE, places.iter().fold(loaded.clone(), typed));
        scratch.settle();
    };
    let mut told = ["Merry's", "Pippin's"].map(str::to_owned);
    for round in 1..=4 {
        for words in &mut told {
            *words = format!("{words}, {round}");
            save(words);
        }
    }
    let text = scratch.queue();
    for (words, times) in [
        ("Merry's, 1, 2, 3, 4", 4),
        ("Pippin's, 1, 2, 3, 4", 4),
        ("Merry's", 4),
        ("one side says", 2),
    ] {
        assert_eq!(text.matches(words).count(), times, "{words} {text}");
    }
    scratch.settle();
    assert_eq!(scratch.queue(), text);
    scratch.run("tavern-check", &[]).says("both sides changed");
    // Somebody else, or one of them in other words.
    save("Pippin's, 1, 2, 3, 5");
    let text = scratch.queue();
    for words in [
        "Merry's, 1, 2, 3, 4",
        "Pippin's, 1, 2, 3, 4",
        "Pippin's, 1, 2, 3, 5",
    ] {
        assert_eq!(text.matches(words).count(), 4, "{words} {text}");
    }
}

/// The text is an old one, though the item stands where it never stood.
#[test]
fn an_item_that_was_moved_by_hand_in_an_old_text_stays_as_it_ended_since() {
    let scratch = Scratch::board(OWNED);
    let token = scratch.claim("T-1", &["--agent", "Rosie"]);
    let held = scratch.queue();
    let line = held
        .lines()
        .find(|line| line.contains("T-1:"))
        .expect("it is there");
    let moved = held
        .replace(&format!("{line}\n"), "")
        .replace("- [ ] four\n", &format!("- [ ] four\n{line}\n"));
    scratch
        .run("tavern-release", &["T-1", "--token", &token])
        .succeeds();
    scratch
        .run("tavern-release", &["T-1", "--cancel"])
        .succeeds();
    scratch.write(QUEUE, moved);
    scratch.settle();
    assert_eq!(
        State::of(&scratch).status("T-1"),
        Some(Status::Cancelled),
        "{}",
        scratch.queue()
    );
}

/// What they saved stands beside what another typed, which they have not loaded.
#[test]
fn who_goes_on_beside_anothers_words_finds_each_word_once() {
    for place in ["- [ ] T-2: two\n", "Words of the owner.\n"] {
        let scratch = Scratch::board(OWNED);
        let save = |text: &str, words: &str| {
            scratch.write(QUEUE, text.replace(place, &format!("{place}{words}")));
            scratch.settle();
        };
        save(OWNED, "  Another's.\n");
        scratch.run("tavern-claim", &["--task", "T-1"]).succeeds();
        save(OWNED, "  Mine.\n");
        scratch.run("tavern-claim", &["--task", "T-3"]).succeeds();
        save(OWNED, "  Mine.\n  More.\n");
        let text = scratch.queue();
        for word in ["Another's.", "Mine.", "More."] {
            assert_eq!(text.matches(word).count(), 1, "{word}\n{text}");
        }
    }
}

/// Who retitles it in a text from before it got its ID retitles it.
#[test]
fn an_item_that_got_its_id_since_is_not_doubled_by_an_old_text_in_which_its_title_goes_on() {
    let scratch = Scratch::board("## Pending\n\n- [ ] One.\n\n## In Progress\n\n## Completed\n");
    let loaded = scratch.queue();
    scratch
        .run("tavern-claim", &["--agent", "Rosie"])
        .succeeds();
    scratch.write(QUEUE, loaded.replace("One.", "One. Two."));
    scratch.settle();
    let (text, state) = (scratch.queue(), State::of(&scratch));
    assert_eq!(text.matches("One.").count(), 1, "{text}");
    let tasks: Vec<_> = state.tasks.values().collect();
    assert!(
        tasks.len() == 1 && tasks[0].title == "One. Two.",
        "{state:#?}"
    );
    assert_eq!(agent_of(tasks[0]), Some("Rosie"));
}

#[test]
fn a_held_item_among_others_of_its_title_stays_itself_when_a_text_from_before_is_saved() {
    for loaded in [
        "# A\n- [ ] Run (priority: 3)\n# B\n- [ ] Run\n",
        "# A\n- [ ] Run\n# B\n- [ ] Run\n# C\n- [ ] Run\n",
    ] {
        let scratch = Scratch::board(loaded);
        scratch
            .run("tavern-claim", &["--task", "main:4"])
            .succeeds();
        let held = scratch.queue();
        scratch.write(QUEUE, loaded);
        scratch.settle();
        assert_eq!(scratch.queue(), held);
    }
}

/// Where it is put for the merge, the list is numbered.
#[test]
fn an_item_that_was_removed_and_is_gone_on_with_in_an_old_text_stands_without_markers() {
    let two = "- [ ] T-2: Two\n  Words.\n";
    let loaded = format!("- [ ] T-1: One\n\n{two}\nMore words.\n\n1. [x] T-3: Three\n");
    let scratch = Scratch::board(&loaded);
    scratch.run("tavern-claim", &["--task", "T-1"]).succeeds();
    for save in [
        loaded.replace(two, ""),
        loaded.replace("  Words.\n", "  More.\n  Words.\n"),
    ] {
        scratch.write(QUEUE, save);
        scratch.settle();
    }
    let text = scratch.queue();
    assert!(!text.contains("<<<<<<<"), "{text}");
    assert_eq!(
        text.matches("T-2: Two\n  More.\n  Words.\n").count(),
        1,
        "{text}"
    );
    assert_eq!(
        State::of(&scratch).status("T-1"),
        Some(Status::InProgress),
        "{text}"
    );
}

/// It goes by its title in the old text, which was gone on with.
#[test]
fn an_item_that_got_its_id_since_is_not_doubled_by_an_old_text_that_is_saved_again() {
    let scratch = Scratch::board("- [ ] One.\n");
    scratch
        .run("tavern-claim", &["--agent", "Rosie"])
        .succeeds();
    for _ in 0..2 {
        scratch.write(QUEUE, "- [ ] One. Two.\n");
        scratch.settle();
        assert_eq!(
            scratch.queue().matches("One. Two.").count(),
            1,
            "{}",
            scratch.queue()
        );
    }
}

/// Nobody knows it by its new title there, and what they typed in it before is the only sign.
#[test]
fn an_item_that_got_another_title_since_is_beside_what_an_old_text_goes_on_with_once() {
    let scratch = Scratch::board("- [ ] One.\n");
    let id = scratch.json("tavern-claim", &[])["id"]
        .as_str()
        .expect("an ID")
        .to_owned();
    let save = |text: &str| {
        scratch.write(QUEUE, text);
        scratch.settle();
    };
    save("- [ ] One.\n  Two.\n");
    scratch.change(QUEUE, &format!("{id}: One."), &format!("{id}: Three."));
    scratch.settle();
    save("- [ ] One.\n  Two.\n  Four.\n");
    save("- [ ] One.\n  Two.\n  Four.\n  Five.\n");
    let text = scratch.queue();
    has(
        &text,
        &[
            &format!("{id}: Three."),
            "- [ ] One.\n  Two.\n  Four.\n  Five.\n",
        ],
    );
    assert_eq!(
        (text.matches("Two.").count(), text.matches("- [").count()),
        (2, 2),
        "{text}"
    );
}

/// Nobody who has the old text open knows its new title, nor its ID.
#[test]
fn an_item_that_got_its_id_and_another_title_since_is_not_doubled_by_an_old_text() {
    for others in ["", "- [ ] Two.\n"] {
        let scratch = Scratch::board("- [ ] T-1: Other\n");
        scratch.change(
            QUEUE,
            "Other\n",
            &format!("Other\n- [ ] One.\n  Words.\n{others}"),
        );
        scratch.settle();
        let loaded = scratch.queue();
        scratch.run("tavern-claim", &["--task", "T-1"]).succeeds();
        let claimed = scratch.json("tavern-claim", &[]);
        let id = claimed["id"].as_str().expect("an ID");
        let token = claimed["lease"]["token"].to_string();
        scratch
            .run("tavern-release", &[id, "--token", &token])
            .succeeds();
        for [was, is] in [
            ["One.", "Seven."],
            ["Seven.", "Eight."],
            ["Eight.", "Nine."],
        ] {
            scratch.change(QUEUE, &format!("{id}: {was}"), &format!("{id}: {is}"));
            scratch.settle();
            scratch.write(QUEUE, loaded.replace("Other", &format!("Other {is}")));
            scratch.settle();
        }
        let text = scratch.queue();
        assert_eq!(text.matches("Words.").count(), 1, "{text}");
    }
}

#[test]
fn who_holds_an_item_reports_it_after_a_save_that_lacks_it() {
    let scratch = Scratch::board("- [ ] T-1: One\n");
    let old = scratch.queue();
    scratch
        .run("tavern-add", &["Two", "--id", "T-2"])
        .succeeds();
    scratch
        .run("tavern-claim", &["--task", "T-2", "--agent", "Rosie"])
        .succeeds();
    let token = State::of(&scratch).leases["T-2"].to_string();
    scratch.write(QUEUE, old.replace("One", "One, and more"));
    let told = scratch.run(
        "tavern-report",
        &["T-2", "--token", &token, "--failed", "no time"],
    );
    assert_eq!(told.stdout, "T-2 pending: no time\n", "{told}");
    has(&scratch.queue(), &["T-1: One, and more\n", "T-2: Two\n"]);
    assert_eq!(scratch.stands("T-2", "pending", 1)["reason"], "no time");
}

#[test]
fn what_is_held_is_shown_and_edited_after_a_save_that_lacks_it() {
    let scratch = Scratch::board(OWNED);
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Rosie"])
        .succeeds();
    let old = scratch
        .queue()
        .lines()
        .filter(|line| !line.contains("T-1"))
        .collect::<Vec<_>>()
        .join("\n");
    scratch.write(QUEUE, &old);
    let told = scratch
        .run("tavern-status", &[])
        .ends(0)
        .says("1 in progress")
        .says("T-1");
    assert_eq!(scratch.queue(), old, "to look changes nothing: {told}");
    scratch
        .program("tavern-edit")
        .args(&["T-1"])
        .variable("EDITOR", "sed -i s/one/more/")
        .run()
        .succeeds();
    has(&scratch.queue(), &["T-1: more\n"]);
    assert_eq!(scratch.stands("T-1", "in_progress", 1)["agent"], "Rosie");
}

#[test]
fn an_old_text_that_is_saved_again_and_again_is_told_once_until_something_changes() {
    let board = live();
    let scratch = Scratch::board(&board);
    scratch.run("tavern-claim", &["--task", "T-1"]).succeeds();
    let lacking = scratch
        .queue()
        .lines()
        .filter(|line| !line.contains("T-1"))
        .collect::<Vec<_>>()
        .join("\n");
    let save = |text: &String| {
        for _ in 0..3 {
            scratch.write(QUEUE, text);
            scratch.settle();
        }
        by_hand(&scratch).len()
    };
    let mut told = 0;
    for claim in ["T-2", "T-3"] {
        let [old, other, once, again, more] =
            [&board, &lacking, &board, &lacking, &board].map(save);
        let log = State::of(&scratch).log;
        assert!(told < old && old < other && once == more, "{log:?}");
        assert_eq!(once, again, "{log:?}");
        told = more;
        scratch.run("tavern-claim", &["--task", claim]).succeeds();
    }
}

#[test]
fn an_item_pasted_twice_is_nobodys_but_its_holders() {
    let scratch = Scratch::board(OWNED);
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Frodo"])
        .succeeds();
    let held = scratch.queue();
    let line = held
        .lines()
        .find(|line| line.contains("T-1:"))
        .expect("it is there")
        .to_owned();
    scratch.write(
        QUEUE,
        held.replace(
            "- [ ] T-2: two\n",
            &format!("- [ ] T-2: two\n{line}\n- [ ] T-2: two\n"),
        ),
    );
    for id in ["T-1", "T-2"] {
        scratch
            .run("tavern-claim", &["--task", id, "--agent", "Sam"])
            .ends(3);
    }
    scratch
        .run("tavern-check", &[])
        .says("`T-2` is also the ID of the item at line");
    let token = State::of(&scratch).leases["T-1"].to_string();
    scratch
        .run("tavern-release", &["T-1", "--token", &token])
        .succeeds();
    assert_eq!(State::of(&scratch).leases, BTreeMap::new());
    // All else goes on.
    scratch
        .run("tavern-claim", &["--task", "T-3", "--agent", "Sam"])
        .ends(0);
}

#[test]
fn a_queue_that_is_emptied_or_removed_is_put_back() {
    let scratch = Scratch::board(OWNED);
    for nothing in ["", "\0\0\0\n"] {
        scratch.write(QUEUE, nothing);
        scratch
            .run("tavern-check", &[])
            .ends(0)
            .says("this queue was emptied: Tavern has its text");
        scratch.settle();
        assert_eq!(scratch.queue(), OWNED);
    }
    scratch.write(".git/tavern/seen/main.old", "garbage");
    scratch.settle();
    assert_eq!(
        (
            scratch.queue(),
            scratch.read(".git/tavern/seen/main.1.aside")
        ),
        (OWNED.to_owned(), "garbage".to_owned())
    );
    scratch
        .run("tavern-log", &[])
        .ends(0)
        .says("main: the file was emptied; its items were put back");
    // Nobody holds anything: a person may remove a queue.
    let path = scratch.work().join(QUEUE);
    fs::remove_file(&path).expect("it is there");
    scratch.settle();
    assert!(!path.exists());
    scratch.write(QUEUE, OWNED);
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Frodo"])
        .succeeds();
    let held = scratch.queue();
    fs::remove_file(&path).expect("it is there");
    scratch.settle();
    assert_eq!(scratch.queue(), held);
    fs::remove_file(&path).expect("it is there");
    fs::create_dir(&path).expect("its place is free");
    let ran = scratch.run("tavern-claim", &["--agent", "Sam"]);
    assert_ne!(ran.code, Some(0), "{ran}");
    fs::remove_dir(&path).expect("it is empty");
    scratch.settle();
    assert_eq!(scratch.queue(), held);
}

/// Somebody saves at the very moment that a queue is put back, or that it is made to show what a killed program did.
#[test]
fn what_is_saved_while_a_queue_is_put_back_is_kept() {
    let claim = ["--task", "T-1", "--agent", "Frodo"];
    for (is_held, is_killed, program, arguments) in [
        (true, false, "tavern-reap", &[][..]),
        (false, false, "tavern-check", &["--fix"]),
        (true, true, "tavern-reap", &[]),
    ] {
        let scratch = Scratch::board(OWNED);
        if is_held {
            let point = if is_killed { "log.appended=kill" } else { "" };
            scratch.failing(point, "tavern-claim", &claim);
        }
        let loaded = scratch.queue();
        if !is_killed {
            fs::remove_file(scratch.work().join(QUEUE)).expect("it is there");
        }
        let program_held = scratch.holding("replace.synced@1", program, arguments);
        scratch.write(
            QUEUE,
            loaded.replace("- [ ] four\n", "- [ ] four\n- [ ] T-9: typed\n"),
        );
        program_held.goes_on();
        scratch.settle();
        let state = State::of(&scratch);
        state.agrees();
        assert_eq!(
            state.status("T-9"),
            Some(Status::Pending),
            "{program} {is_killed}: {}",
            scratch.queue()
        );
        let status = if is_held {
            Status::InProgress
        } else {
            Status::Pending
        };
        assert_eq!(
            state.status("T-1"),
            Some(status),
            "{program} {is_killed}: {}",
            scratch.queue()
        );
        assert_eq!(
            scratch.queue().matches("- [ ]").count(),
            5,
            "{program} {is_killed}: {}",
            scratch.queue()
        );
    }
}

/// A save from an old buffer, before anybody has made the queue show what a killed program did: it is told from a new one.
#[test]
fn an_old_save_after_a_program_was_killed_takes_nothing_out() {
    for (point, again) in [
        ("log.appended", ""),
        ("replace.renamed", ""),
        ("log.appended", "replace.renamed=kill@1"),
    ] {
        let scratch = Scratch::board(OWNED);
        scratch
            .run("tavern-add", &["--id", "T-9", "nine"])
            .succeeds();
        scratch
            .failing(
                format!("{point}=kill"),
                "tavern-claim",
                &["--task", "T-1", "--agent", "Frodo"],
            )
            .ends(None);
        scratch.write(QUEUE, OWNED.replace("T-3: three", "T-3: three, typed"));
        scratch.failing(again, "tavern-reap", &[]);
        scratch.settle();
        let text = scratch.queue();
        assert!(
            text.contains("T-9: nine") && text.contains("three, typed"),
            "{point} {again}: {text}"
        );
        assert_eq!(
            text.matches("T-1: one").count(),
            1,
            "{point} {again}: {text}"
        );
    }
}

/// Nobody waits for a slow editor, and what it has not written yet is not removed.
#[test]
fn a_save_counts_once_the_file_is_closed() {
    let scratch = Scratch::board(OWNED);
    let edited = OWNED
        .replace("- [ ] four\n", "- [ ] four\n- [ ] T-9: typed\n")
        .replace("T-1: one", "T-1: öne");
    // In the middle of a letter.
    let (half, rest) = edited
        .as_bytes()
        .split_at(edited.find('ö').expect("it is there") + 1);
    let mut file = File::create(scratch.work().join(QUEUE)).expect("the folder is ours");
    file.write_all(half).expect("there is room");
    scratch
        .run("tavern-claim", &["--task", "T-2", "--agent", "Frodo"])
        .succeeds();
    scratch
        .run("tavern-add", &["Write tests", "--id", "T-6"])
        .succeeds();
    assert_eq!(
        fs::read(scratch.work().join(QUEUE)).expect("it is there"),
        half
    );
    scratch.run("tavern-check", &[]).says("open for writing");
    file.write_all(rest).expect("there is room");
    drop(file);
    scratch.settle();
    has(
        &scratch.queue(),
        &[
            "T-1: öne",
            "T-2: two\n",
            "T-6: Write tests",
            "T-9: typed",
            "- [ ] four\n",
        ],
    );
    assert_eq!(scratch.stands("T-2", "in_progress", 1)["agent"], "Frodo");
    assert_eq!(
        by_hand(&scratch),
        ["noted -", "edited T-1", "added T-9 pending"]
    );
    scratch
        .run("tavern-log", &[])
        .says("what it lacks stays: T-6");
    State::of(&scratch).agrees();
}

/// Between the moment in which a program sees when the file was written, and the one in which it reads it, somebody writes it.
#[test]
fn a_save_while_a_program_reads_the_file_is_merged_as_any_other() {
    let board = || {
        let scratch = Scratch::board(OWNED);
        let old = scratch.queue();
        scratch.claim("T-1", &[]);
        (scratch, old)
    };
    let claim = ["--task", "T-2", "--agent", "Sam"];
    let told = board()
        .0
        .failing("queue.open=sleep:0", "tavern-claim", &claim)
        .ends(0);
    let looks = told.stderr.matches("queue.open").count();
    assert!(looks > 0, "{told}");
    for look in 1..=looks {
        let (scratch, old) = board();
        let held = scratch.holding(&format!("queue.open@{look}"), "tavern-claim", &claim);
        scratch.write(QUEUE, old.replace("T-3: three", "T-3: three, typed"));
        held.goes_on().succeeds();
        scratch.settle();
        has(
            &scratch.queue(),
            &["T-1: one\n", "T-2: two\n", "T-3: three, typed"],
        );
        scratch.stands("T-1", "in_progress", 1);
        assert_eq!(scratch.stands("T-2", "in_progress", 1)["agent"], "Sam");
        State::of(&scratch).agrees();
    }
}

/// An editor writes the file as one program is about to replace it, and still does as another one reads it.
#[test]
fn what_was_never_shown_stands_whoever_reads_the_file_in_the_middle_of_a_save() {
    let scratch = Scratch::board(&live());
    scratch.settle();
    let text = scratch.queue().replace("T-3: three", "T-3: three, typed");
    let held = scratch.holding(
        "replace.synced@1",
        "tavern-claim",
        &["--task", "T-1", "--agent", "Rosie"],
    );
    let file = File::options()
        .write(true)
        .truncate(true)
        .open(scratch.work().join(QUEUE))
        .expect("it is there");
    let write = || {
        file.write_all_at(text.as_bytes(), 0)
            .expect("there is room");
    };
    write();
    held.goes_on().succeeds();
    // Whenever it is read, it is written meanwhile.
    let is_claimed = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let claim = ["--task", "T-2", "--agent", "Sam"];
            let ran = scratch.failing("queue.open=sleep:30", "tavern-claim", &claim);
            is_claimed.store(true, Ordering::Relaxed);
            ran.ends(0);
        });
        while !is_claimed.load(Ordering::Relaxed) {
            write();
        }
    });
    drop(file);
    scratch.settle();
    has(
        &scratch.queue(),
        &["T-1: one\n", "T-2: two\n", "T-3: three, typed"],
    );
    for (id, agent) in [("T-1", "Rosie"), ("T-2", "Sam")] {
        assert_eq!(scratch.stands(id, "in_progress", 1)["agent"], agent);
    }
    State::of(&scratch).agrees();
}

/// vim opens the file, and empties it a moment later. Meanwhile Tavern replaces it, and replaces it again.
#[test]
fn what_is_written_to_a_file_that_was_replaced_since_it_was_opened_is_not_lost() {
    let open = |scratch: &Scratch| {
        let file = File::options()
            .write(true)
            .open(scratch.work().join(QUEUE))
            .expect("it is there");
        (
            file,
            scratch.queue().replace("T-3: three", "T-3: three, typed"),
        )
    };
    let write = |(mut file, text): (File, String)| {
        file.set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()))
            .expect("there is room");
    };
    let claim = ["--task", "T-2", "--agent", "Sam"];
    for is_written_while_it_is_replaced in [false, true] {
        let scratch = Scratch::board(&live());
        scratch.settle();
        let opened = open(&scratch);
        scratch.claim("T-1", &[]);
        if is_written_while_it_is_replaced {
            let held = scratch.holding("replace.synced@1", "tavern-claim", &claim);
            write(opened);
            held.goes_on().succeeds();
        } else {
            scratch.run("tavern-claim", &claim).succeeds();
            scratch
                .run("tavern-add", &["Write tests", "--id", "T-6"])
                .succeeds();
            write(opened);
        }
        scratch.settle();
        has(
            &scratch.queue(),
            &["T-1: one\n", "T-2: two\n", "T-3: three, typed"],
        );
        scratch.stands("T-1", "in_progress", 1);
        assert_eq!(scratch.stands("T-2", "in_progress", 1)["agent"], "Sam");
        State::of(&scratch).agrees();
    }
}

/// Who only looks sees the text from before, and no half of one.
#[test]
fn what_is_being_saved_is_shown_as_it_was_before() {
    let items: String = (1..40)
        .map(|number| format!("- [ ] T-{number}: nünü {number}\n"))
        .collect();
    let scratch = Scratch::pending(&items);
    scratch.settle();
    let lines = [
        "tavern status",
        "tavern status T-39",
        "tavern status --stats",
        "tavern drain --dry-run",
        "tavern tell T-39 hello",
    ];
    // How long it has stood so is told, too.
    let run = |line: &str| {
        scratch
            .line(line)
            .variable("TAVERN_TEST_NOW", "2026-11-22T10:00:00Z")
            .run()
    };
    let before = lines.map(run);
    let whole = fs::read(scratch.work().join(QUEUE)).expect("it is there");
    let mut file = File::create(scratch.work().join(QUEUE)).expect("the folder is ours");
    let middle = whole
        .windows(2)
        .position(|two| two == "ü".as_bytes())
        .expect("there is one");
    let mut written = 0;
    for end in [0, middle, middle + 1, whole.len()] {
        file.write_all(&whole[written..end]).expect("there is room");
        written = end;
        for (line, before) in lines.iter().zip(&before) {
            let ran = run(line);
            assert_eq!(
                (ran.code, &ran.stdout),
                (before.code, &before.stdout),
                "{line}, {end}: {ran}"
            );
        }
    }
    drop(file);
    scratch.settle();
    assert_eq!(by_hand(&scratch), Vec::<String>::new());
}

#[test]
fn an_item_is_found_while_a_save_from_before_it_got_its_id_waits_to_be_merged() {
    let named = [
        "status ID",
        "tell ID hello",
        "add child --parent ID",
        "log ID",
        "release ID --cancel",
    ];
    for line in named {
        let scratch = Scratch::board("## Pending\n\n- [ ] one\n");
        let old = scratch.queue();
        let claimed = scratch.json("tavern-claim", &[]);
        let (id, token) = (
            claimed["id"].as_str().expect("it has one"),
            claimed["lease"]["token"].to_string(),
        );
        scratch
            .run("tavern-release", &[id, "--token", &token])
            .succeeds();
        scratch.write(QUEUE, format!("{old}\nTyped.\n"));
        scratch
            .line(&format!("tavern {}", line.replace("ID", id)))
            .run()
            .ends(0);
        scratch.settle();
        has(&scratch.queue(), &[id, "Typed."]);
        assert_eq!(
            scratch.queue().matches("one").count(),
            1,
            "{}",
            scratch.queue()
        );
    }
}

/// An editor that keeps a backup renames the old file, and writes the new one then.
#[test]
fn who_holds_an_item_reports_it_while_an_editor_has_put_the_file_aside() {
    for line in [
        "tavern-report T-1 --failed x",
        "tavern-report T-1 --waiting which?",
        "tavern-release T-1",
        "tavern-renew T-1",
    ] {
        let scratch = Scratch::board("## Pending\n\n- [ ] T-1: one\n\n## In Progress\n");
        let token = scratch.claim("T-1", &[]);
        let text = scratch.queue();
        fs::rename(scratch.work().join(QUEUE), scratch.work().join("backup")).expect("it is there");
        let ran = scratch.line(&format!("{line} --token {token}")).run();
        assert!(
            matches!(ran.code, Some(0 | 1 | 8)) && !ran.stdout.is_empty(),
            "{line}: {ran}"
        );
        scratch.write(QUEUE, text);
        scratch.settle();
        assert_eq!(scratch.queue().matches("one").count(), 1, "{line}");
    }
}

#[test]
fn who_goes_on_in_the_middle_of_a_title_that_another_saw_contradicts_nobody() {
    let scratch = Scratch::board("## Pending\n\n- [ ] T-1: item 1\n- [ ] T-2: two\n");
    let old = scratch.queue();
    for (title, event) in [("item b 1", "T-2"), ("item a b 1", "T-2")] {
        scratch.write(QUEUE, old.replace("item 1", title));
        scratch.settle();
        let token = scratch.claim(event, &[]);
        scratch
            .run("tavern-release", &[event, "--token", &token])
            .succeeds();
    }
    scratch.write(QUEUE, old.replace("item 1", "item c a b 1"));
    scratch.settle();
    has(&scratch.queue(), &["T-1: item c a b 1\n"]);
    assert!(!scratch.queue().contains("conflict"), "{}", scratch.queue());
}

/// Who goes on in an old text knows the lines that they have typed there, whatever others have made of what stands beside them.
#[test]
fn a_line_between_the_items_stands_once_however_old_the_text_is_in_which_somebody_goes_on() {
    let scratch =
        Scratch::board("Old.\n\n## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n\n## In Progress\n");
    let save = |text: &str| {
        scratch.write(QUEUE, text);
        scratch.settle();
    };
    let typed =
        |text: &str, line: &str| text.replace("## Pending", &format!("{line}\n\n## Pending"));
    scratch.settle();
    let loaded = scratch.queue();
    save(&typed(&scratch.queue(), "Another's."));
    scratch.claim("T-1", &[]);
    let loaded = typed(&loaded, "Typed.");
    save(&loaded);
    save(&scratch.queue().replace("Old.", "New."));
    save(&loaded.replace("two", "two, typed"));
    let queue = scratch.queue();
    for words in ["New.", "Another's.", "Typed.", "two, typed", "T-1: one\n"] {
        assert_eq!(queue.matches(words).count(), 1, "{words}: {queue}");
    }
    scratch.stands("T-1", "in_progress", 1);
}

#[test]
fn whoever_saves_what_is_older_than_two_saves_of_another_takes_nothing_out() {
    let scratch = Scratch::pending("- [ ] T-1: one\n");
    let save = |text: &str| {
        scratch.write(QUEUE, text);
        scratch.settle();
    };
    scratch.settle();
    let loaded = scratch.queue();
    // Somebody else adds an item, and goes on in their own text when it has got its ID and is held.
    let theirs = loaded.replace("- [ ] T-1", "- [ ] fresh (priority: 0)\n- [ ] T-1");
    save(&theirs);
    let claimed = scratch.json("tavern-claim", &[]);
    save(&format!("{theirs}- [ ] second\n"));
    let id = claimed["lease"]["task"]
        .as_str()
        .expect("it has got one")
        .to_owned();
    scratch.run("tavern-release", &[&id, "--force"]).succeeds();
    save(&loaded.replace("one", "one, says the first"));
    has(
        &scratch.queue(),
        &[
            "T-1: one, says the first",
            "- [ ] second",
            &format!("{id}: fresh"),
        ],
    );
}

#[test]
fn a_save_that_takes_most_items_out_is_set_aside_until_a_person_accepts_it() {
    let items = |numbers: std::ops::RangeInclusive<u32>| -> String {
        numbers
            .map(|number| format!("- [ ] T-{number}: Item {number}\n"))
            .collect()
    };
    let done = "\n## Completed\n\n- [x] T-9: Done\n";
    let full = format!("## Pending\n\n{}{done}", items(1..=8));
    let half = format!("## Pending\n\n{}", items(1..=2));
    for saved in [half.clone(), full.replace("- [ ]", "- \\[ ]")] {
        let scratch = Scratch::board(&full);
        scratch.settle();
        scratch.write(QUEUE, &saved);
        let aside = ".git/tavern/seen/main.1.aside";
        scratch
            .run("tavern-check", &[])
            .says(aside)
            .says("tavern edit --accept ");
        scratch.run("tavern-reap", &[]).succeeds();
        assert_eq!(scratch.queue(), full);
        assert_eq!(scratch.read(aside), saved);
        scratch.run("tavern-edit", &["--accept", aside]).ends(0);
        assert_eq!(scratch.queue(), saved);
        scratch.run("tavern-check", &[]).says_not(aside);
    }
    // Whoever takes out a few, puts others in their place, or ticks them, means it.
    let few = format!("## Pending\n\n{}{done}", items(1..=4));
    let others = format!("## Pending\n\n{}{done}", items(11..=18));
    for saved in [
        few,
        others,
        full.replace("- [ ]", "- [x]"),
        full.replace("- [x] T-9: Done\n", ""),
    ] {
        let scratch = Scratch::board(&full);
        scratch.settle();
        scratch.write(QUEUE, &saved);
        scratch.settle();
        assert_eq!(scratch.queue(), saved);
    }
}

#[test]
fn who_writes_another_list_means_it() {
    let scratch = Scratch::board(
        "## Pending\n\n- [ ] T-1: one\n  ```sh\n  true\n  ```\n\n## In Progress\n\n## Completed\n",
    );
    for other in [
        "- [ ] T-9: nine\n  ```sh\n  false\n  ```\n",
        "## Todo\n\n- [ ] T-7: se",
    ] {
        scratch.write(QUEUE, other);
        scratch.settle();
        assert_eq!(scratch.queue(), other);
    }
}

/// A full disk, a killed editor or a `>` leaves the beginning of a text, also while somebody holds its items.
#[test]
fn a_save_that_breaks_off_is_set_aside_also_while_items_are_held() {
    let lanes = "## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n\n## In Progress\n\n## Waiting\n\n## Completed\n";
    let aside = ".git/tavern/seen/main.1.aside";
    for ends_with in [
        "- [ ]",
        "- [ ] T-1: one\n",
        "T-2: tw",
        "## In P",
        "## Compl",
    ] {
        let scratch = Scratch::board(lanes);
        scratch.claim("T-2", &["--agent", "Frodo"]);
        let full = scratch.queue();
        let end = full.find(ends_with).expect("it is there") + ends_with.len();
        let half = &full[..end];
        scratch.write(QUEUE, half);
        scratch.settle();
        assert_eq!(scratch.queue(), full, "{half}");
        assert_eq!(scratch.read(aside), half);
        scratch
            .run("tavern-status", &[])
            .says(aside)
            .says("tavern edit --discard ");
    }
    // One word of a person's own does not make it whole; and who takes an empty lane out, or ticks all, means it.
    let scratch = Scratch::board(lanes);
    let full = scratch.queue();
    scratch.write(
        QUEUE,
        full.replace("one", "one and a half")
            .split_once("## Wait")
            .expect("it is there")
            .0
            .to_owned()
            + "## Wa",
    );
    scratch.settle();
    assert_eq!(scratch.queue(), full);
    for meant in [
        full.replace("\n## Completed\n", ""),
        full.replace("\n## Waiting\n", ""),
        full.replace("[ ]", "[x]"),
    ] {
        scratch.begin(&full);
        scratch.write(QUEUE, &meant);
        scratch.settle();
        assert_eq!(scratch.queue(), meant);
    }
}

/// Its ID is made from its text; one that was taken out keeps its own, and its history.
#[test]
fn what_was_taken_out_and_is_typed_again_is_another_item() {
    let typed = "## Pending\n\n- [ ] Do it\n- [ ] T-2: two\n";
    let scratch = Scratch::board(typed);
    let take = || {
        scratch.json("tavern-claim", &[])["lease"]["task"]
            .as_str()
            .expect("an ID")
            .to_owned()
    };
    let first = take();
    scratch
        .run("tavern-release", &[&first, "--force"])
        .succeeds();
    scratch.claim("T-2", &[]);
    let title = "another, which is longer than what is taken out";
    scratch.run("tavern-add", &[title]).succeeds();
    let line = format!("- [ ] {first}: Do it\n");
    scratch.change(QUEUE, &line, "");
    scratch.settle();
    // That is an old text.
    scratch.write(QUEUE, typed);
    scratch.settle();
    assert!(!scratch.queue().contains("Do it"), "{}", scratch.queue());
    scratch.change(QUEUE, "- [ ] T-2", "- [ ] Do it\n- [ ] T-2");
    scratch.settle();
    let second = take();
    assert_ne!(first, second);
    scratch.run("tavern-log", &[&second]).says_not("taken out");
}

/// At the end of a line nothing tells a save that broke off from one that is meant. Where it takes nothing along that somebody
/// typed, it is no matter which it was.
#[test]
fn a_save_that_lacks_the_last_lanes_is_believed_if_they_were_empty() {
    let begin =
        "## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n\n## In Progress\n";
    for (rest, is_meant) in [
        ("\n## Completed\n", true),
        ("\n## Waiting\n\n## Completed\n", true),
        (
            "\n## In Review\n\n## Waiting\n\n## Completed\n\n## Dead Letter\n",
            true,
        ),
        ("\n## Waiting\n\nWords.\n", false),
        ("\n## Waiting\n\n- [ ] T-4: four\n", false),
        ("\n## Completed\n\n- [x] T-5: five\n", false),
        ("\n## Waiting\n\n## Completed\n\n- [x] five\n", false),
    ] {
        for is_held in [false, true] {
            let scratch = Scratch::board(&format!("{begin}{rest}"));
            if is_held {
                scratch.claim("T-3", &[]);
            }
            let full = scratch.queue();
            let saved = full.strip_suffix(rest).expect("it ends so");
            scratch.write(QUEUE, saved);
            scratch.settle();
            assert_eq!(scratch.queue(), if is_meant { saved } else { &full });
            assert_eq!(
                scratch
                    .work()
                    .join(".git/tavern/seen/main.1.aside")
                    .exists(),
                !is_meant,
                "{rest}"
            );
            // What lacks a lane is worked all the same.
            if is_held {
                scratch
                    .run("tavern-release", &["T-3", "--force"])
                    .succeeds();
                scratch
                    .run("tavern-release", &["T-1", "--cancel"])
                    .succeeds();
                scratch.stands("T-1", "cancelled", 0);
            }
        }
    }
}

#[test]
fn a_save_that_takes_most_words_out_is_set_aside() {
    let words = |times: usize| "What they said of it on the phone that day.\n".repeat(times);
    let item = format!(
        "- [ ] T-2: two\n  {}\n",
        "What the agent should know of it. ".repeat(12)
    );
    let full = format!("{}\n## Pending\n\n- [ ] T-1: one\n{item}", words(16));
    for (saved, is_meant) in [
        (full.replace(&words(16), &words(1)), false),
        (full.replace(&words(16), &words(12)), true),
        (
            full.replace(
                &words(16),
                &"All of it put in other words by somebody who knows.\n".repeat(8),
            ),
            true,
        ),
        (full.replace(&item, ""), true),
    ] {
        let scratch = Scratch::board(&full);
        scratch.write(QUEUE, &saved);
        scratch.settle();
        assert_eq!(scratch.queue(), *if is_meant { &saved } else { &full });
    }
}

#[test]
fn a_held_item_keeps_its_id_whatever_is_typed_there() {
    let board = || {
        let scratch = Scratch::board(OWNED);
        let token = scratch.claim("T-1", &["--agent", "Frodo"]);
        scratch.claim("T-2", &["--agent", "Frodo"]);
        let held = scratch.queue();
        (scratch, token, held)
    };
    for (from, to, told) in [
        ("T-1: one", "X-1: one", "T-1: it was given X-1 by hand"),
        (
            "T-1: one",
            "X-1: one and only",
            "T-1: it was given X-1 by hand",
        ),
        ("T-1: one", "one", "T-1: it was given no ID by hand"),
        ("T-1: one", "T-3: one", "T-1: it was given T-3 by hand"),
    ] {
        let (scratch, token, held) = board();
        scratch.write(QUEUE, held.replace(from, to));
        scratch
            .run("tavern-status", &["T-1"])
            .ends(0)
            .says("Frodo")
            .says(&token);
        scratch.settle();
        let state = State::of(&scratch);
        assert_eq!(
            state.items.keys().collect::<Vec<_>>(),
            ["T-1", "T-2", "T-3"],
            "{}",
            scratch.queue()
        );
        assert_eq!(state.status("T-1"), Some(Status::InProgress));
        let title = to.split_once(": ").map_or(to, |(_, title)| title);
        let task = state.task("T-1");
        assert_eq!(
            (task.title.as_str(), agent_of(task)),
            (title, Some("Frodo"))
        );
        scratch.run("tavern-log", &[]).says(told);
        scratch
            .run("tavern-check", &[])
            .says_not("no agent holds this");
        scratch
            .run("tavern-renew", &["T-1", "--token", &token])
            .succeeds();
    }
    // With another title and without its ID it is another item, and what is held stays.
    let (scratch, token, held) = board();
    scratch.write(QUEUE, held.replace("T-1: one", "First of all"));
    scratch.settle();
    has(
        &scratch.queue(),
        &["- [ ] T-1: one\n", "- [ ] First of all\n"],
    );
    scratch
        .run("tavern-renew", &["T-1", "--token", &token])
        .succeeds();
    // A copy of what is held is held by nobody, also where it is typed as held.
    let (scratch, _, held) = board();
    let lane = "## In Progress\n";
    scratch.write(
        QUEUE,
        held.replace(lane, &format!("{lane}\n- [ ] X-1: one\n")),
    );
    scratch.settle();
    scratch.stands("T-1", "in_progress", 1);
    scratch
        .run("tavern-check", &[])
        .says("no agent holds this")
        .says("tavern release X-1 --force");
    scratch
        .run("tavern-release", &["X-1", "--force"])
        .succeeds();
    assert_eq!(State::of(&scratch).status("X-1"), Some(Status::Pending));
    scratch
        .run("tavern-check", &[])
        .says_not("no agent holds this");
}

/// All its files are others then than those that Tavern knows.
#[test]
fn a_copy_of_a_board_reads_as_the_board_does() {
    let scratch = Scratch::board(OWNED);
    scratch.change(QUEUE, "T-1: one", "T-1: one, but not on Fridays");
    scratch
        .run("tavern-add", &["another", "--id", "T-9"])
        .succeeds();
    scratch.change(QUEUE, ", but not on Fridays", "");
    scratch.settle();
    let log = State::of(&scratch).log.len();
    let ways = [
        "cp -a . ../copy",
        "cp -r . ../copy",
        "mkdir ../copy; tar -c . | tar -xC ../copy",
    ];
    for (way, typed) in ways.iter().flat_map(|way| [(way, ""), (way, "\nTyped.\n")]) {
        scratch
            .command("sh".as_ref())
            .args(&["-c", &format!("rm -rf ../copy; {way}")])
            .run()
            .succeeds();
        let copy = scratch.folder().join("copy");
        // In that without its times nobody knows whether somebody had typed in the replaced file.
        let typed = if *way == ways[0] { typed } else { "" };
        let text = scratch.queue() + typed;
        fs::write(copy.join(QUEUE), &text).expect("the folder is ours");
        scratch
            .program("tavern-reap")
            .within(&copy)
            .run()
            .succeeds();
        assert_eq!(
            fs::read_to_string(copy.join(QUEUE)).expect("it is there"),
            text,
            "{way}"
        );
        let told = scratch.program("tavern-log").within(&copy).run().stdout;
        assert_eq!(
            told.lines().count(),
            log + usize::from(!typed.is_empty()),
            "{way}\n{told}"
        );
    }
}

/// Nobody has loaded the queue since the item was added, as far as the log tells.
#[test]
fn an_item_that_a_person_gives_another_id_is_there_once() {
    let scratch = Scratch::pending("- [ ] T-1: one\n");
    scratch.settle();
    let added = scratch
        .run("tavern-add", &["Zed"])
        .succeeds()
        .trim()
        .to_owned();
    scratch.change(QUEUE, &added, "AUTH-12");
    let saved = scratch.queue();
    scratch.settle();
    assert_eq!(scratch.queue(), saved);
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert!(!log.contains("an older text"), "{log}");
    // By its old ID it is nobody's from then on, and another of its words is another item.
    scratch.run("tavern-status", &[&added]).ends(2);
    scratch.run("tavern-add", &["Zed"]).succeeds();
    assert_eq!(scratch.queue().matches("Zed").count(), 2);
}

#[test]
fn a_file_of_the_past_is_written_over_once_nobody_has_it_open() {
    let scratch = Scratch::board("- [ ] T-1: one\n");
    let add = |times| {
        for _ in 0..times {
            scratch
                .run("tavern-add", &["another, which is longer than that"])
                .succeeds();
        }
    };
    let path = scratch.work().join(QUEUE);
    add(3);
    let (said, mut reading) = (scratch.queue(), File::open(&path).expect("it is there"));
    add(4);
    let mut read = String::new();
    reading.read_to_string(&mut read).expect("it is text");
    assert_eq!(read, said);
    assert_eq!(scratch.queue().matches("another").count(), 7);
    // A file with another name is not written over either.
    let kept = scratch.work().join("kept.md");
    fs::hard_link(&path, &kept).expect("one disk");
    let said = scratch.queue();
    add(4);
    assert_eq!(fs::read_to_string(&kept).expect("it is there"), said);
    add(3);
    scratch.write("now", "");
    let made = |path| fs::metadata(scratch.work().join(path)).and_then(|file| file.created());
    let Ok(now) = made("now") else { return };
    add(1);
    assert!(
        made(QUEUE).expect("it was told just now") < now,
        "a new file was made"
    );
}
