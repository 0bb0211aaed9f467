//! What a supervisor leaves that was killed at some step, and what the next one makes of it.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use tavern_core::task::Status;

use crate::state::{State, board, id};
use crate::support::{QUEUE, Running, Scratch, has, wait_until};

/// A board with this queue; `config` is added to what all have.
pub fn prepared(queue: &str, config: &str) -> Scratch {
    let queue = format!("# Main\n\n## Pending\n\n{queue}\n## Completed\n");
    Scratch::shell(&queue, &format!("base: main\ngrace: 1s\n{config}"))
}

pub fn agent(scratch: &Scratch, name: &str) -> Running {
    scratch
        .program("tavern-agent")
        .args(&["--until-empty", "--name", name])
        .start()
}

/// Waits until a script has made `~/NAME`.
fn wait_for(scratch: &Scratch, name: &str) {
    wait_until(&format!("~/{name} is there"), || {
        scratch.folder().join("home").join(name).exists()
    });
}

fn kill(running: Running) {
    running.signal(Signal::KILL);
    running.end().ends(None);
}

/// The next agent does all that is left, and nothing of the first one's lives.
#[track_caller]
fn the_next_one_completes(scratch: &Scratch) -> State {
    let ran = agent(scratch, "Sam").end().ends(0);
    let state = State::of(scratch);
    state.agrees();
    assert_eq!(
        state.status("T-1"),
        Some(Status::Completed),
        "{ran}\n{state:#?}"
    );
    assert_eq!(
        state.task("T-1").state.attempt,
        1,
        "no attempt was used: {ran}"
    );
    scratch.has_no_process();
    state
}

#[test]
fn a_merge_whose_maker_died_is_not_made_again_and_keeps_its_name() {
    let scratch = prepared(
        "- [ ] T-1: One\n  ```sh\n  echo 1 >one\n  ```\n- [ ] T-2: Two\n  ```sh\n  echo 2 >two\n  ```\n",
        "",
    );
    for task in ["T-1", "T-2"] {
        let claim = scratch
            .run("tavern-claim", &["--task", task, "--format", "env"])
            .succeeds();
        let run = |verb: &str| format!("eval \"export {claim}\"; {verb}");
        for verb in ["tavern-spawn -q", "tavern-report --done -q"] {
            scratch
                .command("sh".as_ref())
                .args(&["-c", &run(verb)])
                .run()
                .succeeds();
        }
    }
    let merge = scratch.program("tavern-merge").args(&["T-1"]);
    merge
        .variable("TAVERN_FAILPOINT", "integrate.advanced=kill")
        .run()
        .ends(None);
    let commit = scratch.git(&["rev-parse", "--short", "tavern/integration"]);
    assert_eq!(State::of(&scratch).status("T-1"), Some(Status::Approved));
    scratch.run("tavern-merge", &["T-2"]).succeeds();
    scratch.run("tavern-merge", &[]).succeeds();
    let state = State::of(&scratch);
    state.agrees();
    assert_eq!(state.task("T-1").commit(), Some(commit.as_str()));
    assert_ne!(state.task("T-2").commit(), state.task("T-1").commit());
    assert_eq!(
        scratch.git(&["log", "--first-parent", "--format=%s", "tavern/integration"]),
        "T-2: Two\nT-1: One\nBegin"
    );
}

/// A command that blocks the first time and leaves its pid in `~/NAME`; the next time that process must be gone (one that
/// nobody has reaped yet has no command line any more).
fn once(name: &str) -> String {
    format!(
        "if [ -e ~/{name} ]; then ! grep -qs sleep /proc/$(cat ~/{name})/cmdline; else touch dirt; (echo $$ >~/{name}.new; \
         mv ~/{name}.new ~/{name}); exec sleep 600; fi"
    )
}

#[test]
fn what_verifies_for_a_dead_supervisor_is_ended_before_the_worktree_is_handed_on() {
    let done_when = once("verifying");
    let (scratch, frodo) = verifying(&done_when);
    kill(frodo);
    assert!(
        !scratch.processes().is_empty(),
        "it lives without its supervisor"
    );
    the_next_one_completes(&scratch);
}

#[test]
fn a_set_up_that_was_killed_is_ended_and_begun_again() {
    let queue = "- [ ] T-1: One\n  ```sh\n  test -e ready && echo 1 >one\n  ```\n";
    let scratch = prepared(
        queue,
        &format!("worktree:\n  setup: '{}; touch ready'\n", once("preparing")),
    );
    let frodo = agent(&scratch, "Frodo");
    wait_for(&scratch, "preparing");
    kill(frodo);
    the_next_one_completes(&scratch);
}

/// An agent that verifies the merge of T-1 with this command.
fn verifying(done_when: &str) -> (Scratch, Running) {
    let queue = format!(
        "- [ ] T-1: One\n  ```sh\n  echo 1 >one\n  ```\n\n  ```yaml task\n  done_when:\n    - '{done_when}'\n  ```\n"
    );
    let scratch = prepared(&queue, "");
    let frodo = agent(&scratch, "Frodo");
    wait_for(&scratch, "verifying");
    (scratch, frodo)
}

#[test]
fn what_verifies_a_merge_for_a_dead_supervisor_is_ended_and_its_traces_are_gone() {
    // Only in the worktree of merges.
    let done_when = format!(
        "case $PWD in *integration) test ! -e dirt && {{ {}; }} ;; esac",
        once("verifying")
    );
    let (scratch, frodo) = verifying(&done_when);
    kill(frodo);
    assert!(
        scratch
            .work()
            .join(".tavern/worktrees/integration/dirt")
            .exists()
    );
    assert_eq!(State::of(&scratch).status("T-1"), Some(Status::Approved));
    let state = the_next_one_completes(&scratch);
    assert!(state.leases.is_empty(), "{state:#?}");
    let shown = scratch.git(&[
        "show",
        "--format=%s",
        "--name-only",
        "-m",
        "--first-parent",
        "tavern/integration",
    ]);
    assert!(shown.ends_with("\none"), "{shown}");
}

#[test]
fn what_verifies_a_merge_for_a_dead_supervisor_is_ended_by_the_reaper() {
    let done_when = format!("case $PWD in *integration) {} ;; esac", once("verifying"));
    let (scratch, frodo) = verifying(&done_when);
    let while_it_works = scratch.run("tavern-reap", &[]).succeeds();
    assert_eq!(while_it_works, "", "a merge at work is left alone");
    kill(frodo);
    let plan = scratch.run("tavern-reap", &["--dry-run"]).succeeds();
    let done = scratch.run("tavern-reap", &[]).succeeds();
    assert_eq!(done, plan);
    assert!(
        done.contains("end the processes of run integration\n"),
        "{done}"
    );
    scratch.has_no_process();
}

#[test]
fn a_task_taken_by_force_is_not_worked_on_by_two() {
    let script = "echo $$ >~/first.new; mv ~/first.new ~/first; exec sleep 600";
    let scratch = prepared(
        &format!(
            "- [ ] T-1: One\n  ```sh\n  if [ -e ~/first ]; then ! grep -qs sleep /proc/$(cat ~/first)/cmdline && echo 1 >one; else {script}; fi\n  ```\n"
        ),
        "",
    );
    let frodo = scratch
        .program("tavern-agent")
        .args(&["--once", "--name", "Frodo"])
        .start();
    wait_for(&scratch, "first");
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .succeeds();
    the_next_one_completes(&scratch);
    let ran = frodo.end().ends(0);
    assert!(
        ran.stdout.contains("stale"),
        "the late holder is told: {ran}"
    );
    assert_eq!(State::of(&scratch).status("T-1"), Some(Status::Completed));
}

#[test]
fn a_lease_that_a_power_cut_left_empty_stops_nobody_else_and_is_written_again() {
    let scratch = prepared(
        "- [ ] T-1: One (worktree: false)\n- [ ] T-2: Two (worktree: false)\n",
        "",
    );
    scratch.run("tavern-claim", &["--task", "T-1"]).succeeds();
    scratch.write(".git/tavern/leases/T-1.yaml", "");
    scratch.run("tavern-claim", &[]).ends(0).says("T-2");
    let put_back = "write the lease of T-1 again, since its file was lost\n";
    assert_eq!(
        scratch.run("tavern-reap", &["--dry-run"]).succeeds(),
        put_back
    );
    assert_eq!(scratch.run("tavern-reap", &[]).succeeds(), put_back);
    assert_eq!(scratch.run("tavern-reap", &[]).succeeds(), "");
    assert_eq!(
        State::of(&scratch).leases.keys().collect::<Vec<_>>(),
        ["T-1", "T-2"]
    );
    State::of(&scratch).agrees();
}

#[test]
fn a_lease_of_a_clock_that_was_ahead_lasts_no_longer_than_others_once_it_is_right() {
    let scratch = prepared("- [ ] T-1: One\n", "lease: 60s\n");
    scratch
        .at("+18000", "tavern-claim", &["--task", "T-1"])
        .succeeds();
    scratch.at("+0", "tavern-reap", &[]).says_not("ran out");
    scratch.at("+30", "tavern-reap", &[]).says_not("ran out");
    scratch
        .at("+90", "tavern-reap", &[])
        .says("T-1")
        .says("its lease ran out");
}

#[test]
fn a_back_off_of_a_clock_that_was_ahead_ends_once_it_is_right_and_what_a_person_typed_stays() {
    let typed = "2099-01-01T00:00:00Z";
    let scratch = prepared(
        &format!("- [ ] T-1: One\n- [ ] T-2: Two (not_before: {typed})\n"),
        "runners: {shell: {kind: shell, backoff: 30s}}\n",
    );
    let token = scratch
        .at("+18000", "tavern-claim", &["--format", "json"])
        .json()["lease"]["token"]
        .to_string();
    scratch
        .at(
            "+18000",
            "tavern-report",
            &["T-1", "--token", &token, "--failed", "no"],
        )
        .ends(1);
    scratch.at("+0", "tavern-claim", &[]).ends(3);
    scratch
        .at("+0", "tavern-check", &[])
        .says("reset the back-off of T-1, which was written while the clock was ahead");
    scratch
        .at("+0", "tavern-reap", &[])
        .says("T-1")
        .says_not("T-2");
    scratch
        .at("+0", "tavern-claim", &["--task", "T-1"])
        .succeeds();
    assert!(scratch.queue().contains(typed), "{}", scratch.queue());
    // Who wants it tried now says so.
    scratch.run("tavern-release", &["T-2"]).succeeds();
    scratch
        .run("tavern-release", &["T-2"])
        .ends(4)
        .says("it is pending");
    scratch.run("tavern-claim", &["--task", "T-2"]).succeeds();
}

#[test]
fn who_waited_for_the_lock_has_a_lease_from_when_they_got_it() {
    let scratch = prepared("- [ ] T-1: One\n", "");
    let adding = scratch.holding("log.appended", "tavern-add", &["Two"]);
    let claiming = scratch
        .program("tavern-claim")
        .args(&["--format", "json"])
        .start();
    let pid = claiming.pid().as_raw_nonzero().to_string();
    let waits = |line: &str| line.contains("-> FLOCK") && line.split(' ').any(|word| word == pid);
    wait_until("it waits", || {
        fs::read_to_string("/proc/locks").is_ok_and(|locks| locks.lines().any(waits))
    });
    let begun = tavern_sys::clock::now();
    wait_until("its time is over", || tavern_sys::clock::now() > begun);
    let free = tavern_sys::clock::now();
    adding.goes_on().ends(0);
    let claimed = claiming.end().ends(0).json();
    let taken = scratch
        .records("tavern-log", &["T-1"])
        .pop()
        .expect("it was claimed");
    for time in [&claimed["lease"]["claimed_at"], &taken["time"]] {
        let time: tavern_core::task::Timestamp = time
            .as_str()
            .and_then(|time| time.parse().ok())
            .expect("a time");
        assert!(time >= free, "{claimed:#}\n{taken:#}");
    }
}

#[test]
fn a_queue_that_cannot_be_read_for_a_moment_costs_nobody_a_worktree_or_a_lease() {
    let scratch = prepared("- [ ] T-1: One\n  ```sh\n  echo 1 >one\n  ```\n", "");
    let line = "tavern-claim --task T-1 --pid $$ -q; tavern-spawn T-1 --token 1 -q";
    scratch
        .command("sh".as_ref())
        .args(&["-c", line])
        .run()
        .succeeds();
    let text = scratch.queue();
    scratch.write(QUEUE, b"\xff\xfe half saved");
    scratch.run("tavern-reap", &[]);
    scratch.write(QUEUE, text);
    let state = State::of(&scratch);
    state.agrees();
    assert_eq!(state.leases.len(), 1);
    let work = scratch.work().join(".tavern/worktrees/T-1/one");
    assert!(work.exists());
    // Nor where it waits in the queue for its next attempt.
    scratch.run("tavern-reap", &[]).succeeds();
    let text = scratch.queue();
    assert_eq!(State::of(&scratch).status("T-1"), Some(Status::Pending));
    scratch.write(QUEUE, b"\xff\xfe half saved");
    scratch.run("tavern-reap", &[]);
    scratch.write(QUEUE, text);
    assert!(work.exists());
    the_next_one_completes(&scratch);
}

/// The queue's newest names may not have been on disk yet, and what was never synced is as before, gone or torn.
#[test]
fn a_power_cut_takes_back_no_event() {
    let item = |number: usize| format!("- [ ] T-{number}: item {number} (worktree: false)\n");
    for (queue_is_old, seen) in [
        (true, ""),
        (true, "torn"),
        (true, "gone"),
        (false, ""),
        (false, "gone"),
        (false, "torn"),
    ] {
        let scratch = prepared(&(1..4).map(item).collect::<String>(), "");
        let seen_files = || {
            ["main.md", "main.old"].map(|name| scratch.work().join(".git/tavern/seen").join(name))
        };
        scratch
            .run("tavern-add", &["--id", "T-4", "item 4"])
            .succeeds();
        let synced = scratch.queue();
        let was: Vec<Option<Vec<u8>>> = seen_files()
            .iter()
            .map(|path| fs::read(path).ok())
            .collect();
        scratch.run("tavern-claim", &["--task", "T-1"]).succeeds();
        scratch.run("tavern-claim", &["--task", "T-2"]).succeeds();
        scratch
            .run("tavern-report", &["T-2", "--token", "3", "--done"])
            .succeeds();
        // There and back again: the item reads as it did at first.
        scratch
            .run("tavern-release", &["T-3", "--cancel"])
            .succeeds();
        scratch.run("tavern-undo", &["T-3"]).succeeds();
        let before = State::of(&scratch);

        if queue_is_old {
            scratch.write(QUEUE, &synced);
        }
        for (path, was) in seen_files().iter().zip(was) {
            match (seen, was) {
                ("torn", _) if path.exists() => {
                    let bytes = fs::read(path).expect("it is there");
                    fs::write(path, &bytes[..bytes.len() / 2]).expect("the folder is ours");
                }
                ("gone", _) | ("", None) if path.exists() => {
                    fs::remove_file(path).expect("the folder is ours");
                }
                ("", Some(was)) => fs::write(path, was).expect("the folder is ours"),
                _ => {}
            }
        }
        let applied = scratch.read(".git/tavern/applied");
        let boot = applied
            .split_whitespace()
            .nth(2)
            .expect("it names the boot");
        scratch.write(
            ".git/tavern/applied",
            applied.replace(boot, &boot.replace(|_| true, "0")),
        );

        scratch
            .run("tavern-renew", &["T-1", "--token", "2"])
            .succeeds();
        let renewed = board(&scratch).lease(&id("T-1")).expect("it can be read");
        scratch
            .run("tavern-add", &["--id", "T-5", "item 5"])
            .succeeds();
        let state = State::of(&scratch);
        state.agrees();
        let told = format!("{queue_is_old} {seen}\n{before:#?}\n{state:#?}");
        for number in 1..5 {
            let item = format!("T-{number}");
            assert_eq!(
                state.items.get(&item),
                before.items.get(&item),
                "{item} {told}"
            );
        }
        assert_eq!(state.leases, before.leases, "{told}");
        assert_eq!(
            board(&scratch).lease(&id("T-1")).expect("it can be read"),
            renewed,
            "no heartbeat is taken back"
        );
        if !queue_is_old {
            let added = "- [ ] T-5: item 5\n";
            assert_eq!(
                state.texts["main"].replace(added, ""),
                before.texts["main"],
                "nothing has moved: {told}"
            );
        }
    }
}

#[test]
fn a_log_that_was_removed_takes_no_work_with_it() {
    let script = "echo half > half.txt; git add .; git commit -qm Half; touch ~/begun; while [ -e ~/wait ]; do sleep 0.05; done";
    for is_killed in [true, false] {
        let scratch = prepared(
            &format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n"),
            "lease: 3s\n",
        );
        scratch.run("tavern-add", &["Two"]).succeeds();
        scratch.write("../home/wait", "");
        let frodo = scratch
            .program("tavern-agent")
            .args(&["--once", "--name", "Frodo"])
            .start();
        wait_for(&scratch, "begun");
        let token = scratch.item("T-1")["lease"]["token"]
            .as_u64()
            .expect("it is held");
        // Its agent looks at once what has become of its item, and may make a file there meanwhile.
        wait_until("it is removed", || {
            fs::remove_dir_all(scratch.work().join(".git/tavern")).is_ok()
        });
        if is_killed {
            kill(frodo);
        } else {
            frodo.end().ends(0).says("T-1 blocked");
        }
        scratch.settle();
        // What shows the states has told that it was begun.
        scratch.stands("T-1", "pending", 1);
        scratch.has_no_process();
        has(&scratch.git(&["show", "tavern/T-1"]), &["+half"]);
        let next: u64 = scratch.claim("T-1", &[]).parse().expect("a number");
        assert!(next > token, "{next} after {token}");
        scratch
            .run("tavern-renew", &["T-1", "--token", &token.to_string()])
            .ends(4);
    }
}

#[test]
fn work_goes_on_in_its_worktree_after_the_repository_was_moved() {
    let script = "if [ -e more.txt ]; then git add .; git commit -qm Rest; exit; fi
  echo half > half.txt; git add .; git commit -qm Half; echo more > more.txt; touch ~/begun; sleep 600";
    let scratch = prepared(&format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n"), "");
    let frodo = agent(&scratch, "Frodo");
    wait_for(&scratch, "begun");
    let moved = scratch.folder().join("moved");
    fs::rename(scratch.work(), &moved).expect("the folder is ours");
    kill(frodo);
    scratch
        .program("tavern-agent")
        .within(&moved)
        .args(&["--until-empty"])
        .run()
        .ends(0)
        .says("T-1 merged");
    let files = scratch.command(Path::new("git")).within(&moved).args(&[
        "ls-tree",
        "--name-only",
        "tavern/integration",
    ]);
    has(&files.run().stdout, &["half.txt", "more.txt"]);
    assert!(
        !scratch.work().exists(),
        "nothing is made again where it was"
    );
    scratch.has_no_process();
    fs::rename(&moved, scratch.work()).expect("the folder is ours");
}

#[test]
fn git_may_switch_clean_and_stash_under_work_that_is_held() {
    let scratch = prepared("", "");
    scratch.commit(&["--all"], "board");
    scratch.git(&["branch", "other"]);
    for id in ["T-1", "T-2", "T-3", "T-4"] {
        scratch.run("tavern-add", &["--id", id, "Item"]).succeeds();
    }
    scratch.commit(&[QUEUE], "items");
    scratch.change(QUEUE, "- [ ] T-1", "- [x] T-1");
    let token = scratch.claim("T-2", &[]);
    let all = [
        Status::Completed,
        Status::InProgress,
        Status::Pending,
        Status::Pending,
    ]
    .map(Some);
    let stands = |when: &str, expected: [Option<Status>; 4]| {
        scratch.run("tavern-reap", &[]).ends(0);
        let state = State::of(&scratch);
        let statuses = ["T-1", "T-2", "T-3", "T-4"].map(|id| state.status(id));
        assert_eq!(statuses, expected, "{when}");
        state.agrees();
    };
    for arguments in [
        &["checkout", "--quiet", "--force", "other"][..],
        &["checkout", "--quiet", "--force", "main"],
        &["reset", "--quiet", "--hard", "HEAD~"],
        &["reset", "--quiet", "--hard", "ORIG_HEAD"],
        &["clean", "-fdxq"],
        &["stash", "--quiet", "--all"],
        &["stash", "pop", "--quiet"],
    ] {
        // A stash comes back over a queue that is as it was committed, and over no file of its states.
        if arguments == ["stash", "pop", "--quiet"] {
            scratch.git(&["checkout", "--quiet", "--force", "HEAD"]);
            fs::remove_file(scratch.work().join(".tavern/queues/main.state.yaml"))
                .expect("it was written again");
        }
        scratch.git(arguments);
        stands(&arguments.join(" "), all);
    }
    // The whole board is removed, and made again: its items are back.
    fs::remove_dir_all(scratch.work().join(".tavern")).expect("it is there");
    scratch
        .run("tavern-init", &["--runner", "shell"])
        .ends(0)
        .says("rm -r .tavern .git/tavern");
    stands("init", all);
    scratch
        .run("tavern-release", &["T-2", "--token", "99"])
        .ends(4);
    scratch
        .run("tavern-release", &["T-2", "--token", &token])
        .succeeds();
    let number = |token: &str| token.parse::<u64>().expect("a number");
    assert!(number(&scratch.claim("T-2", &[])) > number(&token));
}

#[test]
fn the_log_of_an_older_version_is_moved_once_but_not_one_that_came_with_a_clone() {
    let scratch = prepared(
        "- [ ] T-1: One (worktree: false)\n- [ ] T-2: Two (worktree: false)\n",
        "",
    );
    let token = scratch.claim("T-1", &[]);
    let (private, board) = (
        scratch.work().join(".git/tavern"),
        scratch.work().join(".tavern"),
    );
    for name in ["applied", "events", "leases", "seen", "slots"] {
        fs::rename(private.join(name), board.join(name)).expect("it is there");
    }
    scratch.run("tavern-claim", &[]).ends(1).says("tavern init");
    scratch.git(&["add", "--force", ".tavern/events"]);
    scratch.run("tavern-init", &[]).ends(4).says("git rm");
    scratch.git(&["rm", "--quiet", "--cached", "-r", ".tavern/events"]);
    scratch
        .run("tavern-init", &["--dry-run"])
        .ends(0)
        .says("would move");
    scratch.run("tavern-init", &[]).ends(0).says("moved");
    State::of(&scratch).agrees();
    let number = |token: &str| token.parse::<u64>().expect("a number");
    assert!(number(&scratch.claim("T-2", &[])) > number(&token));
}

/// An agent program that keeps its prompts, and fails until `home/steps/well` is there.
const TRIES: &str = "#!/bin/sh -eu\nmkdir -p \"$NOTES\"\ncat >\"$NOTES/$(ls \"$NOTES\" | wc -l)\"\n\
    [ -e \"$STEPS/well\" ] || { echo 'no such table' >&2; exit 3; }\necho x >>x; echo DONE\n";

#[test]
fn what_is_revived_or_reopened_without_a_word_is_told_its_past() {
    let queue = "- [ ] T-1: One (max_attempts: 1, done_when: test -s x)\n";
    let scratch = Scratch::with_agent(TRIES, queue, "");
    let work = || {
        let line = ["--until-empty", "--name", "Frodo"];
        scratch.run("tavern-agent", &line).ends(0);
    };
    scratch
        .run("tavern-tell", &["T-1", "Mind the table."])
        .ends(0);
    work();
    assert_eq!(scratch.item("T-1")["status"], "dead");
    scratch.run("tavern-release", &["T-1", "--revive"]).ends(0);
    work();
    has(&scratch.note("1"), &["no such table", "Mind the table."]);
    scratch.run("tavern-release", &["T-1", "--revive"]).ends(0);
    scratch.write("../home/steps/well", "");
    work();
    assert_eq!(scratch.item("T-1")["status"], "completed");
    scratch.run("tavern-release", &["T-1", "--reopen"]).ends(0);
    work();
    has(&scratch.note("3"), &["no such table", "Mind the table."]);
}
