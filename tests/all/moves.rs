//! People move items and whole files between queues: an item stays the same one, and no work is done twice.

use std::fs;

use tavern_core::task::Status;

use crate::state::State;
use crate::support::{QUEUE, Scratch, has, queue_named};

const MAIN: &str = "## Pending\n\n- [ ] T-1: One\n- [ ] T-2: Two\n- [ ] T-3: Three\n- [ ] four\n\n## In Progress\n\n## Completed\n";

const WORK: &str = ".tavern/queues/work.md";

/// The board `MAIN`, with T-1 held. The holder's token is 1.
fn held() -> Scratch {
    let scratch = Scratch::board(MAIN);
    scratch
        .run(
            "tavern-claim",
            &["--task", "T-1", "--agent", "Frodo", "--quiet"],
        )
        .succeeds();
    scratch
}

/// Moves the lines with these IDs to the end of another queue's file.
fn cut_and_paste(scratch: &Scratch, from: &str, to: &str, ids: &[&str]) {
    let text = scratch.read(from);
    let is_cut = |line: &&str| ids.iter().any(|id| line.contains(&format!("] {id}:")));
    let (cut, left): (Vec<&str>, Vec<&str>) = text.split_inclusive('\n').partition(is_cut);
    let old = fs::read_to_string(scratch.work().join(to));
    let old = old.unwrap_or_else(|_| queue_named("work", ""));
    scratch.write(to, old + &cut.concat());
    scratch.write(from, left.concat());
}

/// Each item is there once, and its holder goes on with it.
#[track_caller]
fn is_held_once(scratch: &Scratch) {
    scratch.settle();
    let state = State::of(scratch);
    state.agrees();
    assert_eq!(
        state.items.keys().collect::<Vec<_>>(),
        ["T-1", "T-2", "T-3"],
        "{state:#?}"
    );
    assert_eq!(state.status("T-1"), Some(Status::InProgress), "{state:#?}");
    scratch
        .run("tavern-renew", &["T-1", "--token", "1"])
        .ends(0);
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", "1", "--failed", "no time"],
        )
        .ends(1);
    State::of(scratch).agrees();
    assert_eq!(State::of(scratch).task("T-1").state.attempt, 1);
    for id in ["T-2", "T-3"] {
        scratch
            .run("tavern-claim", &["--task", id, "--agent", "Sam"])
            .ends(0);
        scratch
            .run("tavern-claim", &["--task", id, "--agent", "Rosie"])
            .ends(3);
    }
}

#[test]
fn a_queue_that_is_renamed_takes_its_items_along() {
    let scratch = held();
    fs::rename(scratch.work().join(QUEUE), scratch.work().join(WORK)).expect("it is there");
    let text = scratch.read(WORK);
    scratch.settle();
    assert_eq!(scratch.read(WORK), text);
    assert!(!scratch.work().join(QUEUE).exists());
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says_not("lost")
        .says_not("copy");
    scratch
        .run("tavern-check", &["--fix"])
        .ends(0)
        .says("nothing can be fixed");
    scratch
        .run("tavern-log", &["T-1"])
        .says("T-1 was moved to work by hand");
    scratch
        .run("tavern-undo", &["T-2", "--list"])
        .says_not("T-2");
    is_held_once(&scratch);
    // A new one by the old name begins empty.
    scratch.write(QUEUE, "## Pending\n\n- [ ] five\n");
    scratch.settle();
    assert_eq!(scratch.queue(), "## Pending\n\n- [ ] five\n");
}

#[test]
fn a_plain_list_that_is_renamed_is_not_put_back() {
    let scratch = Scratch::board("- [ ] one\n- [ ] two\n");
    fs::rename(scratch.work().join(QUEUE), scratch.work().join(WORK)).expect("it is there");
    scratch
        .run("tavern-check", &["--fix"])
        .says("nothing can be fixed");
    scratch.settle();
    scratch
        .run("tavern-check", &["--fix"])
        .says("nothing can be fixed");
    assert!(!scratch.work().join(QUEUE).exists());
}

#[test]
fn items_that_are_cut_and_pasted_into_another_queue_are_moved() {
    for old in [
        "",
        "# Work\n\n## In Progress\n\n- [ ] T-3: Three\n\n## Pending\n\n",
    ] {
        let scratch = held();
        if !old.is_empty() {
            scratch.change(QUEUE, "- [ ] T-3: Three\n", "");
            scratch.write(
                WORK,
                queue_named(
                    "work",
                    &old.replace("## In Progress\n\n- [ ] T-3: Three\n\n", ""),
                ) + "- [ ] T-3: Three\n",
            );
            scratch.settle();
        }
        cut_and_paste(&scratch, QUEUE, WORK, &["T-1", "T-2"]);
        scratch.settle();
        has(&scratch.read(WORK), &["T-1: One\n", "T-2: Two\n"]);
        assert_eq!(scratch.stands("T-1", "in_progress", 1)["agent"], "Frodo");
        assert!(
            !scratch.queue().contains("T-1") && !scratch.queue().contains("T-2"),
            "{}",
            scratch.queue()
        );
        is_held_once(&scratch);
        // And back.
        scratch.run("tavern-release", &["T-2", "--force"]).ends(0);
        cut_and_paste(&scratch, WORK, QUEUE, &["T-1", "T-2"]);
        scratch.settle();
        State::of(&scratch).agrees();
        assert_eq!(State::of(&scratch).items.len(), 3);
    }
}

/// A file that is emptied is otherwise taken for a broken save.
#[test]
fn the_only_line_of_a_list_is_moved_once_also_without_an_id() {
    let scratch = Scratch::board(MAIN);
    let line = "- [ ] an idea\n  with words\n";
    scratch.write(WORK, queue_named("work", line));
    scratch.settle();
    let main = format!("{MAIN}\n").replace("- [ ] four\n", &format!("- [ ] four\n{line}"));
    scratch.write(QUEUE, &main);
    scratch.write(WORK, "");
    scratch.settle();
    assert_eq!(
        [scratch.read(QUEUE), scratch.read(WORK)],
        [main, String::new()]
    );
}

/// Pasted and saved, and only then cut, it has its newest state. Cut first, it is what is pasted.
#[test]
fn an_item_that_is_moved_by_two_saves_is_there_once() {
    let scratch = Scratch::board(MAIN);
    let old = scratch.queue();
    scratch.write(WORK, queue_named("work", "- [ ] T-1: One\n  And more.\n"));
    scratch.settle();
    scratch
        .run(
            "tavern-claim",
            &["--agent", "Frodo", "--quiet", "--task", "T-1"],
        )
        .ends(0);
    let token = State::of(&scratch).leases["T-1"].to_string();
    scratch.write(
        QUEUE,
        scratch
            .queue()
            .lines()
            .filter(|line| !line.contains("T-1"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    scratch.settle();
    has(&scratch.read(WORK), &["T-1: One\n  And more."]);
    assert_eq!(scratch.stands("T-1", "in_progress", 1)["agent"], "Frodo");
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &token, "--failed", "no time"],
        )
        .ends(1);
    State::of(&scratch).agrees();
    scratch.run("tavern-release", &["T-2", "--cancel"]).ends(0);
    scratch.write(
        QUEUE,
        scratch
            .queue()
            .lines()
            .filter(|line| !line.contains("T-2"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    scratch.settle();
    let line = old
        .lines()
        .find(|line| line.contains("T-2"))
        .expect("it is there");
    scratch.write(WORK, format!("{}{line}\n", scratch.read(WORK)));
    scratch.settle();
    let state = State::of(&scratch);
    state.agrees();
    assert_eq!(state.status("T-2"), Some(Status::Cancelled), "{state:#?}");
}

/// It was not cut: whoever saves the text had never seen it.
#[test]
fn what_an_old_text_lacks_stays_where_it_is_though_a_copy_of_it_stands_elsewhere() {
    for is_held in [false, true] {
        let scratch = Scratch::board(MAIN);
        let loaded = scratch.queue();
        scratch.change(QUEUE, "- [ ] four\n", "- [ ] four\n- [ ] T-7: Seven\n");
        scratch.settle();
        let copy = queue_named("work", "- [ ] T-7: Seven\n");
        scratch.write(WORK, &copy);
        scratch.settle();
        for id in ["T-1", "T-7"].iter().take(if is_held { 2 } else { 1 }) {
            scratch.claim(id, &[]);
        }
        let line = scratch
            .queue()
            .lines()
            .find(|line| line.contains("T-7"))
            .expect("it is there")
            .to_owned();
        scratch.change(QUEUE, &line, &format!("{line}\n  Words."));
        scratch.settle();
        scratch.write(QUEUE, loaded.replace("four", "four, typed"));
        scratch.settle();
        has(
            &scratch.queue(),
            &[&format!("{line}\n  Words.\n"), "four, typed"],
        );
        assert_eq!(scratch.read(WORK), copy);
        scratch
            .run("tavern-log", &[])
            .says("what it lacks stays: T-7")
            .says_not("moved to work");
    }
}

#[test]
fn an_item_whose_copy_was_pasted_before_goes_along_with_what_was_typed_since() {
    let scratch = Scratch::board(MAIN);
    scratch.write(WORK, queue_named("work", "- [ ] T-3: Three\n"));
    scratch.settle();
    scratch.change(QUEUE, "- [ ] T-3: Three\n", "- [ ] T-3: Three\n  Words.\n");
    scratch.settle();
    scratch.change(QUEUE, "- [ ] T-3: Three\n  Words.\n", "");
    scratch.settle();
    assert_eq!(
        scratch.read(WORK),
        queue_named("work", "- [ ] T-3: Three\n  Words.\n")
    );
    assert!(!scratch.queue().contains("T-3"), "{}", scratch.queue());
    let log = State::of(&scratch).log.len();
    scratch.settle();
    assert_eq!(State::of(&scratch).log.len(), log);
}

#[test]
fn a_copy_of_a_queue_is_worked_by_nobody() {
    let sh = "\n  ```sh\n  true\n  ```";
    let text = MAIN
        .replace("- [ ] four\n", "")
        .replace(": Two", &format!(": Two (result: answer){sh}"));
    let text = text
        .replace(": One", ": One (role: planner)")
        .replace(": Three", ": Three (role: planner)");
    let scratch = Scratch::board(&text);
    let backup = ".tavern/queues/backup.md";
    scratch.write(backup, queue_named("backup", &text));
    scratch.settle();
    let log = State::of(&scratch).log.len();
    scratch.settle();
    assert_eq!(State::of(&scratch).log.len(), log, "it is told once");
    // The work goes on, and what is done in the one place stays undone in the other.
    scratch.run("tavern-drain", &[]).says("1 of 6 completed");
    assert_eq!(scratch.read(backup), queue_named("backup", &text));
    let told = scratch
        .run("tavern-check", &[])
        .says("this and 2 more are copies of items in .tavern/queues/main.md");
    assert!(!told.stdout.contains("duplicate"), "{told}");
    scratch
        .run("tavern-check", &["--fix"])
        .says("nothing can be fixed automatically");
    scratch
        .run("tavern-claim", &["--queue", "backup", "--agent", "Sam"])
        .ends(3)
        .says("copies of items in main");
    scratch
        .run("tavern-status", &["T-2"])
        .says("completed")
        .says("main, line");
    scratch.run("tavern-release", &["T-3", "--cancel"]).ends(0);
    has(&scratch.queue(), &["- [x] T-3: ~~Three~~"]);
    // A copy with another title is something else.
    scratch.change(backup, "T-3: Three", "T-3: Another");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("`T-3` is also the ID")
        .says("tavern check --fix");
    scratch
        .run("tavern-check", &["--fix"])
        .says("\n-- [ ] T-3: Another (role: planner)\n");
    has(&scratch.queue(), &["- [x] T-3: ~~Three~~"]);
    State::of(&scratch)
        .items
        .keys()
        .for_each(|id| assert_ne!(id, "T-3#2"));
    // Whoever removes the item leaves the copy as the item.
    fs::remove_file(scratch.work().join(QUEUE)).expect("it is there");
    scratch.settle();
    assert_eq!(
        State::of(&scratch).status("T-2"),
        Some(Status::Completed),
        "{}",
        scratch.read(backup)
    );
}

/// As other programs call a copy that they leave beside a file.
const COPIES: [&str; 7] = [
    "main copy",
    "main (conflicted copy 2026-11-29)",
    "main.sync-conflict-20261129-101010-ABCDEF",
    "main_BACKUP_123",
    "main.orig",
    "main-LAPTOP",
    "Copy of main",
];

#[test]
fn a_copy_beside_a_queue_is_told_and_never_worked() {
    let sh = "  ```sh\n  echo 1 >>\"$HOME/ran\"; echo 1 >1.txt\n  ```\n";
    let items = format!("\n## Pending\n\n- [ ] One\n{sh}\n## Completed\n");
    for text in [queue_named("main", &items), items] {
        let scratch = Scratch::board(&text);
        let copy = |name: &str| scratch.write(format!(".tavern/queues/{name}.md"), &text);
        COPIES.iter().for_each(|name| drop(copy(name)));
        let told =
            COPIES.map(|name| format!("queues/{name}.md is not a queue: agents skip its items"));
        let drain = || scratch.run("tavern-drain", &["--agents", "1"]).ends(0);
        let (drained, status) = (drain(), scratch.run("tavern-status", &[]).ends(0));
        for told in &told {
            assert!(drained.stderr.contains(told), "{told}: {drained}");
            assert!(format!("{status}").contains(told), "{told}: {status}");
        }
        let check = scratch.run("tavern-check", &[]).ends(0);
        let warnings = check
            .stdout
            .matches("this is not a queue: agents skip its items");
        assert_eq!(warnings.count(), COPIES.len(), "{check}");
        // Renamed beside its copies it is the same queue.
        fs::rename(scratch.work().join(QUEUE), scratch.work().join(WORK)).expect("it is there");
        drain();
        scratch.run("tavern-check", &["--fix"]).ends(0);
        drain();
        assert_eq!(scratch.read("../home/ran"), "1\n", "{drained}");
        assert!(!scratch.work().join(QUEUE).exists());
        // What says so is one.
        scratch.write(
            ".tavern/queues/ideas.md",
            queue_named(
                "ideas",
                &text.replace("One", "Two").replace("1.txt", "2.txt"),
            ),
        );
        drain();
        assert_eq!(scratch.read("../home/ran"), "1\n1\n");
    }
}

#[test]
fn a_queue_that_is_moved_over_another_brings_nothing_back() {
    let item = |title: &str| {
        let sh = format!("echo {title} >>\"$HOME/ran\"; echo 1 >{title}.txt");
        format!("\n## Pending\n\n- [ ] {title}\n  ```sh\n  {sh}\n  ```\n\n## Completed\n")
    };
    let scratch = Scratch::board(&queue_named("main", &item("One")));
    scratch.write(WORK, queue_named("work", &item("Two")));
    scratch.commit(&[".tavern"], "Queues");
    let drain = || drop(scratch.run("tavern-drain", &["--agents", "1"]).ends(0));
    drain();
    scratch.git(&["mv", "--force", WORK, QUEUE]);
    drain();
    scratch.run("tavern-check", &["--fix"]).ends(0);
    drain();
    assert_eq!(scratch.read("../home/ran"), "One\nTwo\n");
}

/// The queue of the copy comes first in every list.
#[test]
fn a_copy_stays_one_after_another_was_named_first() {
    let scratch = Scratch::board("");
    scratch.write(WORK, queue_named("work", MAIN));
    scratch.settle();
    scratch.write(".tavern/queues/backup.md", queue_named("backup", MAIN));
    scratch.settle();
    scratch
        .run(
            "tavern-claim",
            &["--queue", "backup", "--task", "T-1", "--agent", "Frodo"],
        )
        .ends(3);
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Frodo"])
        .ends(0);
    let is_held = || {
        let item = scratch.stands("T-1", "in_progress", 1);
        assert_eq!(
            (&item["agent"], &item["queue"]),
            (&"Frodo".into(), &"work".into())
        );
    };
    is_held();
    scratch.change(".tavern/queues/backup.md", "- [ ] T-1: One\n", "");
    scratch.settle();
    is_held();
    assert_eq!(State::of(&scratch).leases.len(), 1);
    scratch
        .run(
            "tavern-renew",
            &[
                "T-1",
                "--token",
                &State::of(&scratch).leases["T-1"].to_string(),
            ],
        )
        .ends(0);
}

/// Whoever holds an item carries it to its end, wherever a person has put it meanwhile.
#[test]
fn an_item_that_is_moved_while_an_agent_works_it_is_merged_and_counted() {
    let script = "touch \"$HOME/started\"; until test -e \"$HOME/go\"; do sleep 0.05; done; echo done > done.txt";
    let text = format!("## Pending\n\n- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n");
    let works: [&[&str]; 3] = [
        &["tavern-agent", "--until-empty"],
        &["tavern-drain", "main"],
        &["tavern-drain", "--agents", "2"],
    ];
    for work in works {
        for is_renamed in [false, true] {
            let scratch = Scratch::board(&format!("{text}\n## In Progress\n\n## Completed\n"));
            let working = scratch.program(work[0]).args(&work[1..]).start();
            crate::support::wait_until("it has started", || {
                scratch.folder().join("home/started").exists()
            });
            if is_renamed {
                fs::rename(scratch.work().join(QUEUE), scratch.work().join(WORK))
                    .expect("it is there");
            } else {
                let old = scratch.queue();
                let item = &old[old.find("- [ ] T-1").expect("it is there")
                    ..old.find("\n## Completed").expect("a lane")];
                scratch.write(WORK, queue_named("work", item));
                scratch.write(QUEUE, old.replace(item, ""));
            }
            scratch.settle();
            fs::write(scratch.folder().join("home/go"), "").expect("the folder is ours");
            let ran = working.end().ends(0);
            if work[0] == "tavern-drain" {
                ran.says("T-1 merged as").says("1 of 1 completed, 0 left");
            }
            let state = State::of(&scratch);
            state.agrees();
            assert_eq!(state.status("T-1"), Some(Status::Completed), "{work:?}");
            assert!(scratch.merged().contains("done.txt"));
            assert_eq!(scratch.work().join(QUEUE).exists(), !is_renamed);
        }
    }
}

#[test]
fn a_drain_works_what_comes_into_a_queue_that_was_made_meanwhile() {
    let script =
        "touch \"$HOME/started\"; until test -e \"$HOME/go\"; do sleep 0.05; done; echo 1 > 1.txt";
    let queue = format!(
        "## Pending\n\n- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n- [ ] T-2: Two (after: T-1)\n  ```sh\n  echo 2 > 2.txt\n  ```\n\n## Completed\n"
    );
    let scratch = Scratch::board(&queue);
    let draining = scratch.program("tavern-drain").start();
    crate::support::wait_until("it has started", || {
        scratch.folder().join("home/started").exists()
    });
    let (old, item) = (
        scratch.queue(),
        "- [ ] T-2: Two (after: T-1)\n  ```sh\n  echo 2 > 2.txt\n  ```\n",
    );
    let work = format!("## Pending\n\n{item}\n## Completed\n");
    scratch.write(WORK, queue_named("work", &work));
    scratch.write(QUEUE, old.replace(item, ""));
    scratch.settle();
    fs::write(scratch.folder().join("home/go"), "").expect("the folder is ours");
    draining.end().ends(0);
    assert_eq!(scratch.stands("T-2", "completed", 1)["queue"], "work");
}

/// What is looked at without the lock is as it will be.
#[test]
fn the_newest_item_is_shown_once_after_it_was_moved() {
    let scratch = Scratch::board("## Pending\n\n- [ ] T-1: One\n");
    scratch.add_queue("work");
    scratch.settle();
    scratch.run("tavern-add", &["--id", "T-9", "Nine"]).ends(0);
    cut_and_paste(&scratch, QUEUE, WORK, &["T-9"]);
    for _ in 0..2 {
        let shown = scratch.run("tavern-status", &["--items"]).succeeds();
        has(&shown, &["main: 1 pending", "work: 1 pending"]);
        assert_eq!(shown.matches("Nine").count(), 1, "{shown}");
        scratch.settle();
    }
    assert!(!scratch.queue().contains("T-9") && scratch.read(WORK).contains("T-9"));
}

#[test]
fn status_shows_an_item_that_was_just_moved_once() {
    let scratch = held();
    cut_and_paste(&scratch, QUEUE, WORK, &["T-1", "T-2"]);
    let told = scratch
        .run("tavern-status", &["--items"])
        .ends(0)
        .says_not("problem");
    assert_eq!(told.stdout.matches("T-1").count(), 1, "{told}");
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("work, line");
    is_held_once(&scratch);
}

/// `echo '- [ ] x' >> main.md` writes into the last lane.
#[test]
fn a_line_that_is_appended_is_pending_whatever_lane_is_last() {
    let append = |scratch: &Scratch, lines: &str| scratch.write(QUEUE, scratch.queue() + lines);
    // Also before any program has seen the queue, and in what `tavern init` wrote.
    let scratch = Scratch::initialized();
    append(
        &scratch,
        "- [ ] one (result: answer)\n  ```sh\n  true\n  ```\n- [ ] two (role: planner)\n",
    );
    append(&scratch, "- [ ] T-9: Nine (role: planner)\n");
    scratch
        .run("tavern-drain", &["--runner", "shell"])
        .says("1 of 3 completed, 2 left");
    let (two, nine) = (
        "- [ ] two (role: planner)\n",
        "- [ ] T-9: Nine (role: planner)\n",
    );
    assert!(
        scratch
            .queue()
            .ends_with(&format!("## Pending\n{two}{nine}")),
        "{}",
        scratch.queue()
    );
    // As an earlier version wrote it.
    let scratch = Scratch::shell("## Pending\n\n## Completed\n\n## Dead Letter\n", "");
    append(&scratch, two);
    scratch.settle();
    assert_eq!(
        scratch.queue(),
        format!("## Pending\n\n{two}\n## Completed\n\n## Dead Letter\n")
    );
    for last in ["Completed", "Dead Letter", "Archive"] {
        let scratch = Scratch::board(&format!(
            "## Pending\n\n- [ ] one\n- [ ] two\n\n## {last}\n\n- [ ] OLD-1: old\n"
        ));
        append(&scratch, "- [ ] three\n- [x] four\n- [ ] OLD-5: five\n");
        // One with an ID may have been completed elsewhere, but nothing dies elsewhere.
        let is_dead_letter = last == "Dead Letter";
        let told = if is_dead_letter {
            "4 pending"
        } else {
            "3 pending"
        };
        scratch.run("tavern-status", &[]).says(told);
        scratch.settle();
        let (pending, rest) = (scratch.queue(), scratch.queue());
        let (pending, rest) = (
            pending.split("## ").nth(1).expect("a lane"),
            rest.split("## ").last().expect("a lane").to_owned(),
        );
        has(pending, &["- [ ] one\n", "- [ ] two\n", "- [ ] three\n"]);
        has(&rest, &["- [x] four\n"]);
        let five = if is_dead_letter { pending } else { &rest };
        has(five, &["- [ ] OLD-5: five\n"]);
        scratch
            .run("tavern-log", &[])
            .says("`three` of main was added as pending by hand");
        // Whoever moves there what was known means it.
        scratch.write(
            QUEUE,
            format!("{}- [ ] one\n", scratch.queue().replace("- [ ] one\n", "")),
        );
        scratch.settle();
        assert!(
            scratch.queue().ends_with("- [ ] one\n"),
            "{}",
            scratch.queue()
        );
        let before = scratch.queue();
        scratch.settle();
        assert_eq!(scratch.queue(), before);
    }
    let scratch = Scratch::board("## Pending\n\n## Dead Letter\n");
    append(&scratch, "- [ ] T-9: Nine\n");
    scratch.settle();
    assert_eq!(State::of(&scratch).status("T-9"), Some(Status::Pending));
    // Without a lane to go to it stays, and says what it is.
    let scratch = Scratch::board("## Doing\n\n## Done\n");
    append(&scratch, "- [ ] one\n");
    scratch.settle();
    assert_eq!(
        scratch.queue(),
        "## Doing\n\n## Done\n- [ ] one (status: pending)\n"
    );
}

/// Whoever saves, an item that somebody holds keeps its ID and its status, and its holder goes on.
#[test]
fn what_is_held_is_held_whatever_a_save_makes_of_it() {
    let goes_on = |scratch: &Scratch, id: &str| {
        scratch.settle();
        let state = State::of(scratch);
        state.agrees();
        assert_eq!(state.status(id), Some(Status::InProgress), "{state:#?}");
        scratch
            .run(
                "tavern-report",
                &[id, "--token", "1", "--failed", "no time"],
            )
            .ends(1);
    };
    // The heading that it stands under goes, or becomes another.
    for heading in ["", "## Notes\n"] {
        let scratch = held();
        scratch.write(QUEUE, scratch.queue().replace("## In Progress\n", heading));
        goes_on(&scratch, "T-1");
    }
    // Somebody goes on in a text from before it got its ID, with lines below the last heading.
    let scratch = Scratch::board("## Pending\n\n## In Progress\n\n## Dead Letter\n");
    let mut old = scratch.queue() + "- [ ] one\n- [ ] two\n- [ ] three\n";
    scratch.write(QUEUE, &old);
    let claimed = scratch
        .run("tavern-claim", &["--agent", "Frodo"])
        .ends(0)
        .stdout;
    let id = claimed
        .split_whitespace()
        .next()
        .expect("it tells the ID")
        .to_owned();
    for line in ["- [ ] four\n", "- [ ] five\n", "- [ ] six\n"] {
        old += line;
        scratch.write(QUEUE, &old);
        scratch.settle();
    }
    let text = scratch.queue();
    assert_eq!(
        [": one", "] one"].map(|name| text.matches(name).count()),
        [1, 0],
        "{text}"
    );
    let state = State::of(&scratch);
    state.agrees();
    assert_eq!(state.status(&id), Some(Status::InProgress), "{state:#?}");
    // A text without items is accepted.
    let scratch = held();
    scratch.write(QUEUE, "## Todo\nfoo\n## Done\n");
    scratch.settle();
    scratch
        .run(
            "tavern-edit",
            &["--accept", ".git/tavern/seen/main.1.aside"],
        )
        .ends(0);
    goes_on(&scratch, "T-1");
}
