//! Ended items leave the queue for its archive, and are still known there; killed anywhere, none is lost.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use tavern_core::document::parse;
use tavern_core::task::Status;
use tavern_sys::failpoint::LIST;

use crate::dice::is_in_slice;
use crate::fix::{begin_long_ago, files};
use crate::state::State;
use crate::support::{ARCHIVE, CONFIG, QUEUE, Scratch, has, wait_until};

fn board(queue: &str, archive: &str) -> Scratch {
    Scratch::shell(queue, &format!("base: main\narchive: {archive}\n")).tracked()
}

fn lanes(completed: &str) -> String {
    format!(
        "# Main\n\n## Pending\n\n- [ ] T-0: Go on (after: T-1)\n\n## Completed\n\n{completed}\n## Dead Letter\n"
    )
}

/// A board whose log begins long ago, when these lines were in its lane Completed.
fn ended_long_ago(completed: &str) -> Scratch {
    let scratch = board(&lanes(completed), "{after: 30d}");
    begin_long_ago(&scratch, "T-0");
    scratch
}

fn ids(text: &str) -> Vec<String> {
    let (document, problems) = parse(text);
    assert_eq!(problems, []);
    document
        .items()
        .iter()
        .filter_map(|item| Some(item.id.clone()?.to_string()))
        .collect()
}

fn archived(scratch: &Scratch) -> Vec<String> {
    ids(&fs::read_to_string(scratch.work().join(ARCHIVE)).unwrap_or_default())
}

#[test]
fn an_archived_item_is_still_known() {
    let scratch = ended_long_ago("- [x] T-1: One\n");
    // These two ended just now.
    let later = "- [ ] T-2: Two\n- [x] T-3: Three\n";
    scratch.write(QUEUE, lanes(&format!("- [x] T-1: One\n{later}")));
    scratch.run("tavern-check", &["--fix"]);
    let before = (scratch.queue(), files(&scratch).len());
    let plan = scratch.run("tavern-reap", &["--dry-run"]).succeeds();
    assert_eq!(plan, "move 1 ended item of queue main to its archive\n");
    assert_eq!(scratch.queue(), before.0);
    assert_eq!(scratch.run("tavern-reap", &[]).succeeds(), plan);
    assert_eq!(scratch.run("tavern-reap", &[]).succeeds(), "");
    assert_eq!(
        scratch.read(ARCHIVE),
        "# Archive of main\n\n- [x] T-1: One\n"
    );
    assert_eq!(scratch.queue(), lanes(later));
    State::of(&scratch).agrees();
    // Git has it.
    assert!(
        scratch
            .git(&["status", "--short", "--untracked-files=all"])
            .contains(ARCHIVE)
    );
    let status = scratch.run("tavern-status", &[]).succeeds();
    assert_eq!(
        status.lines().next(),
        Some(
            "main: 1 pending, 2 completed, 1 archived, 1 that no configured agent can take: tavern check"
        )
    );
    let one = scratch.run("tavern-status", &["T-1"]).succeeds();
    assert!(
        one.starts_with("T-1 One\n  status      completed\n  queue       archive/main, line 3\n"),
        "{one}"
    );
    scratch
        .run("tavern-status", &["T-0"])
        .ends(0)
        .says("T-1 (completed)");
    scratch
        .run("tavern-log", &["T-1"])
        .ends(0)
        .says("T-1 was moved to the archive");
    scratch.run("tavern-check", &[]).says_not("error");
    // Its ID is taken, what waited for it may go on, and it may come back.
    scratch
        .run("tavern-add", &["--id", "T-1", "Another"])
        .ends(4);
    scratch.run("tavern-release", &["T-1", "--revive"]).ends(4);
    scratch.run("tavern-claim", &["--task", "T-0"]).succeeds();
    assert_eq!(
        scratch
            .run("tavern-release", &["--reopen", "T-1"])
            .succeeds(),
        "T-1 is pending\n"
    );
    assert_eq!(scratch.read(ARCHIVE), "# Archive of main\n\n");
    let state = State::of(&scratch);
    state.agrees();
    assert_eq!(state.status("T-1"), Some(Status::Pending));
    has(&scratch.queue(), &["\n- [ ] T-1: One\n\n## Completed\n"]);
    assert_eq!(scratch.item("T-1")["reason"], "reopened");
}

#[test]
fn what_is_open_in_an_archive_is_named() {
    let scratch = ended_long_ago("- [x] T-1: One\n  - [ ] a step that was left\n");
    scratch.settle();
    assert_eq!(archived(&scratch), ["T-1"]);
    scratch.run("tavern-check", &[]).ends(0).says_not("archive");
    let text = scratch.read(ARCHIVE);
    scratch.write(
        ARCHIVE,
        text.replace("- [x] T-1", "- [ ] T-1") + "- [ ] Two\n",
    );
    let told = "open items are in an archive, and agents do not take them there: T-1, Two";
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says(told)
        .says("move their lines to a queue");
}

#[test]
fn parts_go_and_come_back_with_the_whole() {
    let scratch = board(
        "- [x] T-1: One\n  - [x] T-1.1: Part\n- [x] T-2: Two\n  - [ ] T-2.1: Part\n",
        "{keep: 1}",
    );
    scratch.write(CONFIG, "archive: {keep: 1}\n");
    scratch.write(QUEUE, format!("{}- [x] T-3: Three\n", scratch.queue()));
    scratch.run("tavern-reap", &[]).succeeds();
    assert_eq!(archived(&scratch), ["T-1", "T-1.1"]);
    scratch
        .run("tavern-release", &["--reopen", "T-1.1"])
        .ends(4)
        .says("tavern reopen T-1");
    scratch
        .run("tavern-release", &["--reopen", "T-1"])
        .succeeds();
    scratch
        .run("tavern-release", &["--reopen", "T-1.1"])
        .succeeds();
    assert_eq!(archived(&scratch), [""; 0]);
    assert_eq!(State::of(&scratch).status("T-1.1"), Some(Status::Pending));
}

#[test]
fn an_agents_look_archives_and_a_task_file_is_left_alone() {
    let done = "- [x] T-1: One\n- [x] T-2: Two\n";
    let scratch = board(&lanes(done), "{keep: 1}");
    scratch.write("TODO.md", done.replace("T-", "X-"));
    scratch.write(".git/tavern/files", "TODO.md\n");
    scratch.run("tavern-agent", &["--until-empty"]);
    assert_eq!(archived(&scratch), ["T-1"]);
    assert_eq!(ids(&scratch.read("TODO.md")), ["X-1", "X-2"]);
    // An editor that still has the old text brings nothing back.
    scratch.write(QUEUE, lanes(done).replace("# Main", "# Main queue"));
    scratch.run("tavern-reap", &[]).succeeds();
    let queue = scratch.queue();
    assert!(
        queue.starts_with("# Main queue") && !queue.contains("T-1:"),
        "{queue}"
    );
    assert_eq!(archived(&scratch), ["T-1"]);
    // Nor does a merge of branches, though no log knows of it.
    fs::remove_dir_all(scratch.work().join(".git/tavern/events")).expect("it is there");
    fs::remove_dir_all(scratch.work().join(".git/tavern/seen")).expect("it is there");
    scratch.write(
        QUEUE,
        queue.replace("- [x] T-2", "- [x] T-1: One\n- [x] T-2"),
    );
    scratch.run("tavern-reap", &[]).succeeds();
    assert_eq!(
        (scratch.queue(), archived(&scratch)),
        (queue, vec!["T-1".to_owned()])
    );
}

#[test]
fn agents_archive_many_at_once_or_what_is_due_once_an_hour() {
    let scratch = board(&lanes(""), "{keep: 4}");
    for (more, now, moved) in [
        (4, "+0", 0),
        (1, "+60", 0),
        (1, "+120", 2),
        (1, "+180", 2),
        (0, "+7300", 3),
    ] {
        let done: String = (1..=more)
            .map(|number| format!("- [x] T{}-{number}: Item\n", &now[1..]))
            .collect();
        scratch.change(
            QUEUE,
            "## Completed\n\n",
            &format!("## Completed\n\n{done}"),
        );
        scratch.at(now, "tavern-agent", &["--until-empty"]);
        assert_eq!(archived(&scratch).len(), moved, "{more} more at {now}");
    }
}

#[test]
fn a_thousand_items_killed_anywhere_are_each_in_one_place() {
    const ITEMS: usize = 1_000;
    let done: String = (1..=ITEMS)
        .map(|number| format!("- [x] T-{number}: Item {number}\n"))
        .collect();
    let all: Vec<String> = (1..=ITEMS).map(|number| format!("T-{number}")).collect();
    let mut reached = Vec::new();
    let in_slice = (0..).zip(LIST).filter(|(nth, _)| is_in_slice(*nth, 8));
    let names: Vec<&str> = in_slice.map(|(_, (name, _))| *name).collect();
    for name in &names {
        for nth in 1.. {
            let scratch = board(&lanes(&done), "{keep: 10}");
            let plan = format!("{name}=kill@{nth}");
            let ran = scratch.failing(&plan, "tavern-reap", &[]);
            if ran.code.is_some() {
                break;
            }
            reached.push(plan.clone());
            let (left, moved) = (ids(&scratch.queue()), archived(&scratch));
            let is_somewhere = |id: &&String| left.contains(id) || moved.contains(id);
            assert_eq!(all.iter().filter(is_somewhere).count(), ITEMS, "{plan}");
            scratch.run("tavern-reap", &[]).succeeds();
            let (left, moved) = (ids(&scratch.queue()), archived(&scratch));
            assert!(moved == all[..ITEMS - 10], "{plan}");
            assert!(left[1..] == all[ITEMS - 10..], "{plan}");
            State::of(&scratch).agrees();
            assert_eq!(scratch.run("tavern-reap", &[]).succeeds(), "", "{plan}");
        }
    }
    for plan in [
        "log.appended=kill@1",
        "archive.written=kill@1",
        "replace.written=kill@2",
        "log.torn=kill@1",
    ] {
        let is_in_slice = names.iter().any(|name| plan.starts_with(name));
        assert!(
            !is_in_slice || reached.iter().any(|reached| reached == plan),
            "{plan} of {reached:?}"
        );
    }
}

#[test]
fn what_does_not_say_when_it_was_completed_is_as_old_as_the_log_tells() {
    // T-5 and one item without an ID had ended when the log began.
    let first = lanes("- [x] T-5: Five\n- [x] Once\n").replace("(after: T-1)", "");
    let open = "- [ ] T-1: One\n- [ ] T-2: Two\n- [ ] T-3: Three\n- [ ] Later\n";
    let scratch = board(
        &first.replace("- [ ] T-0", &format!("{open}- [ ] T-0")),
        "{after: 30d}",
    );
    let at = |day: u32, program: &str, arguments: &[&str]| {
        let now = format!("+{}", day * 86_400);
        scratch.at(now, program, arguments).succeeds()
    };
    at(0, "tavern-claim", &["--task", "T-0"]);
    at(0, "tavern-release", &["T-0", "--force"]);
    let ticked = scratch
        .queue()
        .replace("[ ] T-1", "[x] T-1")
        .replace("[ ] Later", "[x] Later");
    scratch.write(QUEUE, ticked);
    at(10, "tavern-reap", &[]);
    at(20, "tavern-release", &["T-2", "--cancel"]);
    let gone = |day: u32, ids: &[&str]| {
        let planned = at(day, "tavern-reap", &["--dry-run"]);
        assert_eq!(at(day, "tavern-reap", &[]), planned, "day {day}");
        assert_eq!(
            archived(&scratch),
            ids,
            "day {day}: {planned}{}",
            scratch.queue()
        );
    };
    gone(29, &[]);
    gone(34, &["T-5"]);
    let has = |title: &str| scratch.read(ARCHIVE).contains(title);
    assert!(has("Once") && !has("Later"), "{}", scratch.read(ARCHIVE));
    gone(44, &["T-5", "T-1"]);
    assert!(has("Later"), "{}", scratch.read(ARCHIVE));
    gone(54, &["T-5", "T-1", "T-2"]);
    State::of(&scratch).agrees();
}

#[test]
fn a_drain_counts_what_was_archived_meanwhile() {
    let items = |range: std::ops::RangeInclusive<u32>| -> String {
        range
            .map(|id| format!("- [ ] T-{id}: It\n  ```sh\n  echo {id} >>{id}\n  ```\n"))
            .collect()
    };
    let old = "- [x] T-8: Old\n  - [x] T-8.1: Part\n- [x] T-9: Given up (status: cancelled)\n";
    let scratch = board(&(items(1..=4) + old), "{keep: 1}");
    let drain = || {
        let summary = scratch.json("tavern-drain", &["--agents", "1"]);
        (
            summary["completed"].as_u64(),
            summary["cancelled"].as_u64(),
            archived(&scratch).len(),
        )
    };
    assert_eq!(drain(), (Some(4), Some(0), 6));
    // What had ended before is not counted; what is done again counts once.
    scratch
        .run("tavern-release", &["T-1", "--reopen"])
        .succeeds();
    let (completed, cancelled, _) = drain();
    assert_eq!((completed, cancelled), (Some(1), Some(0)));
}

/// git takes queue and archive back to what another branch has of them: what was archived since is in one of them still.
#[test]
fn a_branch_switched_under_an_archive_loses_no_item() {
    let items = "- [ ] T-1: One\n- [ ] T-2: Two\n- [ ] T-3: Three (after: T-1)\n";
    let scratch = board(
        &format!("## Pending\n\n{items}\n## Completed\n"),
        "{keep: 1}",
    );
    scratch.settle();
    scratch.commit(&["--all"], "Board");
    scratch.git(&["branch", "older"]);
    scratch
        .run("tavern-release", &["T-1", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-2", "--cancel"])
        .succeeds();
    scratch.settle();
    assert_eq!(archived(&scratch), ["T-1"]);
    scratch.commit(&["--all"], "Archived");
    scratch.git(&["switch", "--quiet", "older"]);
    assert_eq!(archived(&scratch), [""; 0]);
    scratch.run("tavern-add", &["More"]).succeeds();
    let state = State::of(&scratch);
    for task in ["T-1", "T-2"] {
        assert_eq!(
            state.status(task),
            Some(Status::Cancelled),
            "{}",
            scratch.queue()
        );
    }
    scratch.run("tavern-check", &["--quiet"]).ends(0);
    scratch.settle();
    assert_eq!(archived(&scratch).len(), 1);
}

/// git reads the archive before the queue, and what comes from one into the other in between would be in neither.
#[test]
fn what_git_commits_or_stashes_in_the_middle_of_an_archive_has_all_items() {
    for (line, index, made) in [
        ("commit -qam More", "index", "HEAD"),
        ("stash push -q", "index.stash", "stash"),
    ] {
        let done = "- [x] T-1: One\n";
        let scratch = ended_long_ago(done);
        scratch.write(QUEUE, lanes(""));
        scratch.write(ARCHIVE, "# Archive of main\n");
        scratch.write(".gitattributes", "**/archive/main.md filter=slow\n");
        scratch.commit(&["--all"], "Board");
        let wait = "while [ ! -e ~/go ]; do sleep 0.02; done";
        let clean =
            format!("cat; case ${{GIT_INDEX_FILE:-}} in *{index}*|'') : >~/reads; {wait};; esac");
        scratch.git(&["config", "filter.slow.clean", &clean]);
        scratch.write(ARCHIVE, "# Archive of main\n\nOld ones.\n");
        scratch.write(QUEUE, lanes(done));
        let git = scratch
            .command(Path::new("git"))
            .args(&line.split(' ').collect::<Vec<_>>())
            .start();
        wait_until("git reads the archive", || {
            scratch.folder().join("home/reads").exists()
        });
        scratch.run("tavern-reap", &[]).succeeds();
        scratch.write("../home/go", "");
        git.end().succeeds();
        let [queue, archive] =
            [QUEUE, ARCHIVE].map(|path| scratch.git(&["show", &format!("{made}:{path}")]));
        has(&format!("{queue}{archive}"), &["T-1: One", "Old ones."]);
        if made == "stash" {
            scratch.git(&["stash", "pop", "-q"]);
        }
        scratch.run("tavern-reap", &[]).succeeds();
        assert_eq!(archived(&scratch), ["T-1"], "{line}");
    }
}

/// Somebody has the text from before open, in which it is pending.
#[test]
fn what_is_typed_in_an_item_that_was_archived_meanwhile_is_kept_and_brings_nothing_back() {
    let items = "- [ ] T-1: One\n- [ ] T-2: Two\n- [ ] T-3: Three\n";
    let scratch = board(
        &format!("## Pending\n\n{items}\n## Completed\n"),
        "{keep: 1}",
    );
    scratch.settle();
    let buffer = scratch.queue();
    scratch
        .run("tavern-release", &["T-1", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-2", "--cancel"])
        .succeeds();
    scratch.settle();
    assert_eq!(archived(&scratch), ["T-1"]);
    scratch.write(QUEUE, buffer.replace("Three", "Three and more"));
    scratch.settle();
    assert_eq!(
        (ids(&scratch.queue()), archived(&scratch)),
        (vec!["T-3".into(), "T-2".into()], vec!["T-1".into()])
    );
    scratch.write(
        QUEUE,
        buffer
            .replace("One", "One and more")
            .replace("Three", "Three and more"),
    );
    scratch.run("tavern-add", &["Another"]).succeeds();
    scratch.stands("T-1", "cancelled", 0);
    State::of(&scratch).agrees();
    // It takes the other's place once it is due again.
    scratch
        .run("tavern-release", &["T-3", "--cancel"])
        .succeeds();
    scratch.settle();
    assert_eq!(archived(&scratch), ["T-2", "T-1"]);
    has(&scratch.read(ARCHIVE), &["T-1: ~~One and more~~"]);
}

/// The old text goes to the file that the archiving has replaced, which an editor had opened before.
#[test]
fn what_is_typed_in_an_item_while_it_is_archived_is_kept_and_brings_nothing_back() {
    let items = "- [ ] T-1: One\n- [ ] T-2: Two\n- [ ] T-3: Three\n";
    let scratch = board(
        &format!("## Pending\n\n{items}\n## Completed\n"),
        "{keep: 9}",
    );
    scratch.settle();
    let buffer = scratch.queue();
    scratch
        .run("tavern-release", &["T-1", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-2", "--cancel"])
        .succeeds();
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(false)
        .open(scratch.work().join(QUEUE))
        .expect("it is there");
    scratch.write(CONFIG, "archive: {keep: 1}\n");
    scratch.settle();
    assert_eq!(archived(&scratch), ["T-1"]);
    file.set_len(0).expect("it is open");
    file.write_all(buffer.replace("One", "One\n  and more").as_bytes())
        .expect("it is open");
    drop(file);
    scratch.settle();
    scratch.stands("T-1", "cancelled", 0);
    State::of(&scratch).agrees();
    assert_eq!(
        format!("{}{}", scratch.queue(), scratch.read(ARCHIVE))
            .matches("and more")
            .count(),
        1
    );
}

/// A buffer, or a branch, has an item that is archived as it was before somebody else typed in it.
#[test]
fn what_others_typed_in_an_item_before_it_was_archived_stays_in_the_archive() {
    let done = "- [x] T-1: One\n- [x] T-2: Two\n";
    let begin = || {
        let scratch = board(&lanes(done), "{keep: 2}");
        scratch.settle();
        scratch.commit(&["--all"], "Board");
        scratch.git(&["branch", "older"]);
        let buffer = scratch.queue();
        scratch.write(QUEUE, buffer.replace("One", "One and more"));
        scratch.run("tavern-check", &["--fix"]);
        scratch.write(CONFIG, scratch.read(CONFIG).replace("keep: 2", "keep: 1"));
        scratch.run("tavern-reap", &[]).succeeds();
        assert_eq!(archived(&scratch), ["T-1"]);
        (scratch, buffer)
    };
    let ends = |scratch: Scratch| {
        scratch.settle();
        scratch.write(CONFIG, scratch.read(CONFIG).replace("keep: 1", "after: 1s"));
        scratch.at("+60", "tavern-reap", &[]).succeeds();
        assert_eq!(archived(&scratch).len(), 2, "{}", scratch.queue());
        has(&scratch.read(ARCHIVE), &["One and more", "T-2: Two"]);
    };
    for (from, to) in [
        ("Go on", "Go on, friend"),
        ("# Main\n", "# Main\n\nSome words.\n"),
        ("Two", "Two, too"),
    ] {
        let (scratch, buffer) = begin();
        scratch.write(QUEUE, buffer.replace(from, to));
        scratch.settle();
        has(&(scratch.queue() + &scratch.read(ARCHIVE)), &[to]);
        ends(scratch);
    }
}
