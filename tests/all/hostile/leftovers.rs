//! What agents and their commands leave behind keeps nobody from going on: no git, no merge, no clean-up, no reaper.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use super::boxed::{board, is_done};
use crate::support::{AT_ONCE, CONFIG, Scratch, wait_until};

/// Runs the line, which ends by itself long before this.
#[track_caller]
fn ends(scratch: &Scratch, line: &str, code: i32) -> String {
    let words: Vec<&str> = ["-s", "KILL", "60", "tavern"]
        .into_iter()
        .chain(line.split(' '))
        .collect();
    scratch
        .command(Path::new("timeout"))
        .args(&words)
        .run()
        .ends(code)
        .stdout
}

/// Where git looks for files, also for a repository within.
const PIPES: &str = "mkdir -p q/.git/objects q/.git/refs; rm -f .gitattributes .gitignore q/.git/HEAD q/.git/config; \
    echo 'ref: refs/heads/x' >q/.git/HEAD; ln -s /dev/zero q/.git/config; mkfifo .gitattributes .gitignore";

#[test]
fn pipes_of_commands_hang_nobody() {
    let leaves = format!("{PIPES}; test -e x.txt");
    for (done_when, settings) in [
        (leaves.as_str(), json!({"max_attempts": 1})),
        (
            "true",
            json!({"max_attempts": 1, "worktree": {"setup": PIPES}}),
        ),
    ] {
        let Some(scratch) = board("echo x >x.txt", &[done_when], &settings) else {
            return;
        };
        ends(&scratch, "agent --until-empty --name Frodo", 0);
        is_done(&scratch);
        // Others are merged where these were verified.
        let script = "```sh\necho 1 >1.txt\n```";
        let words = [
            "Next",
            "--id",
            "T-3",
            "--done-when",
            "true",
            "--description",
            script,
        ];
        scratch.run("tavern-add", &words).succeeds();
        ends(&scratch, "agent --until-empty --name Sam", 0);
        assert_eq!(
            scratch.item("T-3")["status"],
            "completed",
            "{}",
            scratch.run("tavern-log", &[]).succeeds()
        );
        assert_eq!(ends(&scratch, "reap", 0), "");
    }
}

#[test]
fn pipes_of_commands_that_fail_hang_no_reaper() {
    let leaves = format!("{PIPES}; false");
    let settings = json!({"max_attempts": 1, "worktree": {"keep": true}});
    let Some(scratch) = board("echo x >x.txt", &[&leaves], &settings) else {
        return;
    };
    ends(&scratch, "agent --until-empty --name Frodo", 0);
    assert_eq!(scratch.item("T-1")["status"], "dead");
    scratch.change(CONFIG, r#"{"keep":true}"#, r#"{"keep":false}"#);
    assert!(ends(&scratch, "reap", 0).contains("remove the worktree of T-1"));
    assert!(!scratch.work().join(".tavern/worktrees/T-1").exists());
    assert_eq!(scratch.git(&["show", "tavern/T-1:x.txt"]), "x");
}

/// A file of 100 GiB that takes no room on the disk.
#[test]
fn a_log_without_an_end_is_cut_off_by_who_follows_and_who_clears_up() {
    let script = "echo x >x.txt\nperl -e 'truncate(STDOUT, 100 << 30) or die'\necho DONE\n";
    for fault in ["", "run.ended=kill"] {
        let Some(scratch) = board(script, &["test -e x.txt"], &json!({"max_attempts": 1})) else {
            return;
        };
        let words = [
            "-s",
            "KILL",
            "60",
            "tavern",
            "agent",
            "--until-empty",
            "--name",
            "Frodo",
        ];
        let agent = scratch
            .command(Path::new("timeout"))
            .args(&words)
            .variable("TAVERN_FAILPOINT", fault)
            .run();
        if fault.is_empty() {
            agent.ends(0);
        } else {
            assert!(
                ends(&scratch, "reap", 0).contains("end the processes of run T-1@1"),
                "{agent}"
            );
        }
        // What was printed stays in a file of its own where not all of it could be put into the log.
        let run = scratch.work().join(".tavern/runs/T-1@1");
        let mut kept = String::new();
        for name in ["output.log", "stdout.part"] {
            let length = fs::metadata(run.join(name)).map_or(0, |file| file.len());
            assert!(length <= 513 << 20, "{fault}: {name}");
            kept += &fs::read_to_string(run.join(name)).unwrap_or_default();
        }
        assert!(
            kept.contains("[cut off by Tavern: of a log 512 MiB are kept at most]"),
            "{fault}: {kept}"
        );
    }
}

/// Puts so many letters into the mailbox that it takes minutes to answer them.
const FLOOD: &str = r#"echo x >x.txt
count=0
while [ $count -lt 900 ]; do
  read -r name </proc/sys/kernel/random/uuid
  printf '%s' '{"verb": "tell", "arguments": ["T-2", "Hello"], "input": ""}' >"$TAVERN_MAILBOX/out/$name.json"
  count=$((count + 1))
done
"#;

#[track_caller]
fn are_left_out(scratch: &Scratch) {
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert!(
        log.contains(" requests of its mailbox were not answered: it has ended"),
        "{log}"
    );
}

#[test]
fn letters_without_number_keep_no_run_from_its_end() {
    let Some(scratch) = board(&format!("{FLOOD}sleep 1\n"), &["test -e x.txt"], &json!({})) else {
        return;
    };
    ends(&scratch, "agent --until-empty --name Frodo", 0);
    is_done(&scratch);
    are_left_out(&scratch);
}

#[test]
fn letters_without_number_keep_no_signal_from_being_obeyed() {
    let script = format!("{FLOOD}: >begun\nsleep 600\n");
    let Some(scratch) = board(&script, &["test -e x.txt"], &json!({"grace": "1s"})) else {
        return;
    };
    let words = [
        "-s", "KILL", "60", "tavern", "agent", "--once", "--name", "Frodo",
    ];
    let agent = scratch.command(Path::new("timeout")).args(&words).start();
    wait_until("it works", || {
        scratch.work().join(".tavern/worktrees/T-1/begun").exists()
    });
    agent.signal(Signal::TERM);
    assert_eq!(agent.end().code, Some(143));
    are_left_out(&scratch);
    assert_eq!(scratch.item("T-1")["status"], "pending");
}

/// A user who is not root, to whom a mode means something.
const NOBODY: &str = "65534";

/// Runs the line of `sh` as a user who is not root, with no more open files than a program usually may have.
#[track_caller]
fn as_a_user(scratch: &Scratch, line: &str) -> String {
    let (user, folder) = (format!("{NOBODY}:{NOBODY}"), scratch.folder());
    let mut words = vec!["-s", "KILL", "60"];
    let (uid, gid) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    if rustix::process::getuid().is_root() {
        let all = ["-R", "--no-dereference", &user, &folder.to_string_lossy()];
        scratch
            .command(Path::new("chown"))
            .args(&all)
            .run()
            .succeeds();
        words.extend(["setpriv", "--clear-groups", &uid, &gid]);
    }
    let line = format!("ulimit -n 1024; {line}");
    words.extend(["sh", "-c", &line]);
    scratch
        .command(Path::new("timeout"))
        .args(&words)
        .run()
        .ends(0)
        .stdout
}

/// What removals have put aside and not removed yet, and cells.
fn put_aside(scratch: &Scratch) -> Vec<String> {
    let folders =
        [".tavern/worktrees", ".git/tavern-cells"].map(|folder| scratch.work().join(folder));
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "integration").collect()
}

/// What this script leaves goes with its worktree and its cell.
#[track_caller]
fn is_removed_that_is_left_by(script: &str) {
    let Some(scratch) = board(
        &format!("echo x >x.txt\n{script}\n"),
        &["test -e x.txt"],
        &json!({}),
    ) else {
        return;
    };
    as_a_user(&scratch, "tavern agent --until-empty --name Frodo");
    assert_eq!(as_a_user(&scratch, "tavern reap"), "");
    is_done(&scratch);
    assert_eq!(put_aside(&scratch), [""; 0]);
}

#[test]
fn folders_that_nobody_may_enter_are_removed() {
    is_removed_that_is_left_by(
        "chmod 000 \"$TAVERN_MAILBOX/out\"\nmkdir -p a/b/c/d/e/f\n\
         for path in a/b/c/d/e/f a/b/c/d/e a/b/c/d a/b/c a/b a; do chmod 000 \"$path\"; done",
    );
}

#[test]
fn folders_that_are_deeper_than_a_path_is_long_are_removed() {
    is_removed_that_is_left_by("perl -e 'for (1 .. 5000) { mkdir q(d); chdir q(d) or die }'");
}

#[test]
fn what_can_not_be_removed_is_not_told_as_removed() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let scratch = Scratch::board("- [ ] T-1: Work\n");
    as_a_user(&scratch, "tavern reap");
    let theirs = scratch.write(".tavern/worktrees/.tavern-removed-1/theirs/file", "");
    let line = "TAVERN_TEST_NOW=+3600 tavern reap; echo $?";
    let words = [
        "--clear-groups",
        "--reuid=65534",
        "--regid=65534",
        "sh",
        "-c",
        line,
    ];
    let said = scratch
        .command(Path::new("setpriv"))
        .args(&words)
        .run()
        .ends(0);
    assert_eq!(said.stdout, "1\n", "{said}");
    assert!(
        theirs.exists() && said.stderr.contains("can't remove"),
        "{said}"
    );
    assert!(said.stderr.contains("sudo rm -r "), "{said}");
}

/// As a container leaves them, too.
#[test]
fn files_of_another_user_keep_no_work_from_being_merged_and_are_told() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let scratch = Scratch::shell(
        "- [ ] T-1: Work (review: person)\n  ```sh\n  echo x >x.txt\n  ```\n",
        AT_ONCE,
    );
    as_a_user(&scratch, "tavern agent --once --name Frodo");
    scratch.write(".tavern/worktrees/T-1/target/debug/file", "");
    let line = "tavern approve T-1 && tavern merge && tavern log T-1";
    let words = [
        "--clear-groups",
        "--reuid=65534",
        "--regid=65534",
        "sh",
        "-c",
        line,
    ];
    let said = scratch
        .command(Path::new("setpriv"))
        .args(&words)
        .run()
        .ends(0);
    said.says("T-1 merged as")
        .says("its worktree was not removed: can't remove")
        .says("files of another user are in it: sudo rm -r ")
        .says("the work in its worktree is kept at `refs/tavern/salvage/T-1/1`");
}

/// As a container leaves them that has worked in the worktree as root.
#[test]
fn folders_of_another_user_in_a_worktree_keep_no_git_from_work() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let scratch = Scratch::shell(
        "- [ ] T-1: Work\n  ```sh\n  echo x >x.txt\n  exit 1\n  ```\n",
        &format!("max_attempts: 2\n{AT_ONCE}"),
    );
    as_a_user(&scratch, "tavern agent --once --name Frodo");
    let theirs = scratch.work().join(".tavern/worktrees/T-1/theirs");
    for (folder, mode) in [("closed", "711"), ("open", "755")] {
        let line = format!(
            "mkdir -p {0}/{folder}; mkfifo {0}/{folder}/pipe; chmod {mode} {0}/{folder}",
            theirs.display()
        );
        scratch
            .command(Path::new("sh"))
            .args(&["-c", &line])
            .run()
            .succeeds();
    }
    let words = [
        "-s",
        "KILL",
        "60",
        "setpriv",
        "--clear-groups",
        "--reuid=65534",
        "--regid=65534",
    ];
    let agent = scratch
        .command(Path::new("timeout"))
        .args(&words)
        .args(&["tavern", "agent", "--once", "--name", "Sam"]);
    agent.run().ends(0);
    scratch.stands("T-1", "dead", 2);
}

/// No thread or program can be started, however many there are already.
#[test]
fn a_full_table_of_processes_is_an_error_with_what_helps() {
    // Only root can become a user of whom nothing else runs.
    if !rustix::process::getuid().is_root() {
        return;
    }
    let ids = [
        "--clear-groups",
        "--reuid=54321",
        "--regid=54321",
        "prlimit",
    ];
    for (line, limits) in [
        ("agent --once --name Frodo", 2..10),
        ("drain --agents 1", 2..7),
    ] {
        for limit in limits {
            let scratch = Scratch::pending("- [ ] T-1: Work\n  ```sh\n  echo x >x.txt\n  ```\n");
            let folder = scratch.folder();
            let all = ["-R", "54321:54321", &folder.to_string_lossy()];
            scratch
                .command(Path::new("chown"))
                .args(&all)
                .run()
                .succeeds();
            let most = format!("--nproc={limit}");
            let words = line.split(' ').collect::<Vec<_>>();
            let ran = scratch
                .command(Path::new("setpriv"))
                .args(&ids)
                .args(&[&most, "tavern"])
                .args(&words)
                .run();
            assert!(!ran.stderr.contains("panicked"), "{most} {line}: {ran}");
            assert!(
                ran.code == Some(0) || ran.stderr.contains("too many processes run: end some"),
                "{most} {line}: {ran}"
            );
        }
    }
}
