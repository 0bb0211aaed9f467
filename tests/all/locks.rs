//! Locks that a killed git has left in the repository: removed when nobody can be behind them, and else left alone.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::Signal;

use crate::support::{CONFIG, Running, Scratch, wait_until};

const LATER: &str = "+3600";

fn board() -> Scratch {
    let scratch = Scratch::initialized();
    for number in 1..=2 {
        let script = format!("```sh\necho {number} >{number}\n```");
        scratch
            .run(
                "tavern-add",
                &["--id", &format!("T-{number}"), "-m", &script, "Do"],
            )
            .succeeds();
    }
    scratch.run("tavern-agent", &["--once"]).succeeds();
    scratch
}

/// A git in the middle of moving `reference`: it holds the lock, and has it closed.
fn holder(scratch: &Scratch, reference: &str) -> (Running, PathBuf) {
    let text = format!("start\nupdate {reference} HEAD\nprepare\n");
    fs::write(scratch.folder().join("input"), text).expect("the folder is ours");
    // The shell keeps the pipe open until it is told to end.
    let line = r#"(cat "$0"; exec sleep 600) | exec git update-ref --stdin"#;
    let input = scratch.folder().join("input").display().to_string();
    let running = scratch
        .command(Path::new("sh"))
        .args(&["-c", line, &input])
        .in_a_group()
        .start();
    let lock = scratch
        .work()
        .join(".git")
        .join(format!("{reference}.lock"));
    wait_until("git holds the lock", || lock.exists());
    (running, lock)
}

fn reaped(scratch: &Scratch, arguments: &[&str], now: &str) -> String {
    scratch.at(now, "tavern-reap", arguments).succeeds()
}

#[test]
fn a_lock_is_removed_once_its_git_is_dead_and_not_before() {
    let scratch = board();
    for reference in ["refs/heads/tavern/integration", "refs/tavern/salvage/T-9/1"] {
        let before = tavern_sys::clock::now().to_rfc3339();
        let (running, lock) = holder(&scratch, reference);
        assert_eq!(reaped(&scratch, &[], LATER), "", "its git lives");
        running.signal_group(Signal::KILL);
        running.end();
        scratch.has_no_process();
        assert_eq!(
            reaped(&scratch, &[], &before),
            "",
            "it is young: who made it may not be seen from here"
        );
        let planned = format!(
            "remove the lock {}, which a killed git has left\n",
            lock.display()
        );
        // What tidies up here in the background may be at work for a moment longer.
        wait_until("nobody can be behind it", || {
            reaped(&scratch, &["--dry-run"], LATER) == planned
        });
        assert!(lock.exists());
        wait_until("it is removed", || reaped(&scratch, &[], LATER) == planned);
        assert!(!lock.exists());
    }
}

#[test]
fn a_git_of_another_repository_keeps_no_lock_here() {
    let scratch = board();
    // git says so to what it starts: its own repository, wherever it is.
    let line = "git init --quiet \"$0\" && cd \"$0\" && sleep 600 | exec env -u OLDPWD GIT_DIR=.git git cat-file --batch-check";
    let other = scratch.folder().join("other").display().to_string();
    let running = scratch
        .command(Path::new("sh"))
        .args(&["-c", line, &other])
        .in_a_group()
        .start();
    wait_until("the other git runs", || {
        let table = tavern_sys::process::table::all();
        table.iter().any(|entry| {
            fs::read_link(format!("/proc/{}/cwd", entry.pid))
                .is_ok_and(|cwd| cwd == Path::new(&other))
                && is_git(entry.pid)
        })
    });
    let lock = scratch
        .work()
        .join(".git/refs/heads/tavern/integration.lock");
    File::create(&lock).expect("the folder is ours");
    // What tidies up here in the background may be at work for a moment longer.
    wait_until("the lock is removed", || {
        reaped(&scratch, &[], LATER);
        !lock.exists()
    });
    running.signal_group(Signal::KILL);
    running.end();
}

fn is_git(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "git\n")
}

/// Made by hand, as if a git had been killed an hour ago.
fn left(scratch: &Scratch, name: &str) -> PathBuf {
    let lock = scratch.work().join(".git").join(name);
    fs::create_dir_all(lock.parent().expect("it is in a folder")).expect("the folder is ours");
    let file = File::create(&lock).expect("the folder is ours");
    let hour = Duration::from_secs(3600);
    file.set_modified(SystemTime::now() - hour)
        .expect("the file is ours");
    lock
}

#[test]
fn agents_go_on_over_locks_that_a_killed_git_has_left() {
    let scratch = board();
    // While the last of them is there, git never tidies up again.
    let refs = "refs/heads/tavern";
    let names = [
        &format!("{refs}/integration"),
        &format!("{refs}/T-2"),
        "packed-refs",
        "objects/maintenance",
    ];
    let locks = names.map(|name| left(&scratch, &format!("{name}.lock")));
    // The user's own: nobody but they can tell.
    let theirs = [
        "index.lock",
        "HEAD.lock",
        "config.lock",
        "refs/heads/main.lock",
    ]
    .map(|name| left(&scratch, name));
    let worked = scratch
        .run("tavern-agent", &["--until-empty"])
        .says("T-2 merged");
    assert_eq!(locks.map(|lock| lock.exists()), [false; 4], "{worked}");
    assert_eq!(reaped(&scratch, &[], LATER), "");
    assert!(
        theirs.iter().all(|lock| lock.exists()),
        "what Tavern never writes it does not touch"
    );
}

#[test]
fn a_git_that_is_killed_is_started_once_more_at_the_spot() {
    let scratch = board();
    // Each call, by its arguments, is killed the first time.
    let script = "#!/bin/sh\nmark=$HOME/$(echo \"$*\" | cksum | tr ' ' -)\n\
                  if ! test -e $mark; then echo >$mark; kill -9 $$; fi\nPATH=${PATH#*:} exec git \"$@\"\n";
    scratch.executable("../killed/git", script);
    let path = format!(
        "{}:{}",
        scratch.folder().join("killed").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let worked = scratch
        .program("tavern-agent")
        .args(&["--once"])
        .variable("PATH", path)
        .run();
    assert_eq!(
        scratch.item("T-2")["returns"],
        0,
        "{}",
        worked.says("T-2 merged")
    );
    let killed = fs::read_dir(scratch.folder().join("home"))
        .expect("the folder is ours")
        .count();
    assert!(killed > 0, "some git was killed");
}

#[test]
fn an_agent_can_commit_where_the_git_of_an_earlier_attempt_was_killed_at_it() {
    let scratch = board();
    let script = "```sh\nif ! test -e half; then touch half; exit 1; fi\ngit add --all && git commit --quiet -m Whole\n```";
    scratch
        .run("tavern-add", &["--id", "T-3", "-m", script, "Do"])
        .succeeds();
    scratch.write(CONFIG, "outcomes: {failed: {backoff: 0s}}\n");
    scratch.run("tavern-agent", &["--once"]).succeeds();
    scratch
        .run("tavern-agent", &["--once"])
        .says("T-3 failed, now pending");
    let admin = scratch.git(&["-C", ".tavern/worktrees/T-3", "rev-parse", "--git-dir"]);
    let admin = PathBuf::from(admin.trim());
    let admin = admin
        .strip_prefix(scratch.work().join(".git"))
        .expect("it is in the repository")
        .display();
    let names = ["index.lock", "HEAD.lock", "MERGE_RR.lock"].map(|name| format!("{admin}/{name}"));
    let mut locks = names.map(|name| left(&scratch, &name)).to_vec();
    locks.push(left(&scratch, "refs/heads/tavern/T-3.lock"));
    let again = scratch.run("tavern-agent", &["--once"]).says("T-3 merged");
    locks.retain(|lock| lock.exists());
    assert_eq!(locks, Vec::<PathBuf>::new(), "{again}");
}
