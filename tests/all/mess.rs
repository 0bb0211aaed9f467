//! Agents that leave a mess: what they made is kept all the same, and what they did counts as theirs.

use std::path::Path;

use rustix::process::Signal;

use crate::support::{AT_ONCE, CONFIG, ENDLESS, QUEUE, Scratch, has, item, wait_until};

fn board(queue: &str, config: &str) -> Scratch {
    Scratch::shell(queue, &format!("{AT_ONCE}{config}"))
}

/// Lets an agent work on one item.
fn work_once(scratch: &Scratch) -> String {
    scratch.run("tavern-agent", &["--once"]).succeeds()
}

#[test]
fn commits_of_a_rebase_that_was_not_ended_are_kept_when_the_next_attempt_starts_over() {
    let script = "  if [ -e ~/once ]; then echo again >again; exit; fi
  touch ~/once
  for name in one two; do echo mine >$name; git add $name; git commit -qm Mine-$name; done
  git switch -qc side HEAD~2
  echo side >one; git add one; git commit -qm Side
  git switch -q tavern/T-1
  git rebase -q side\n";
    let scratch = board(&format!("- [ ] T-1: Rebase\n  ```sh\n{script}  ```\n"), "");
    assert!(work_once(&scratch).contains("failed"));
    // What it has made conflicts with what others have merged meanwhile.
    scratch.write("one", "theirs\n");
    scratch.commit(&["one"], "Theirs");
    assert!(work_once(&scratch).contains("merged"));
    let kept = scratch.git(&["log", "--format=%s", "--glob=refs/tavern/salvage/*"]);
    for name in ["Mine-one", "Mine-two", "Salvage T-1: Rebase"] {
        assert!(
            kept.lines().any(|line| line == name),
            "{name} is not among\n{kept}"
        );
    }
    // Whoever works on it next is told where.
    scratch
        .run("tavern-runs", &["cat", "T-1", "prompt.md"])
        .ends(0)
        .says("refs/tavern/salvage/T-1/");
}

#[test]
fn commits_on_no_branch_are_kept_where_the_worktree_was_deleted_after_them() {
    let script = "  if [ -e ~/once ]; then echo again >again; exit; fi
  touch ~/once
  git checkout -q --detach
  echo precious >work.txt; git add work.txt; git commit -qm Precious
  cd ..; rm -rf T-1
  exit 1\n";
    let scratch = board(
        &format!("- [ ] T-1: Leave nothing\n  ```sh\n{script}  ```\n"),
        "",
    );
    assert!(work_once(&scratch).contains("failed"));
    assert!(work_once(&scratch).contains("merged"));
    let kept = scratch.git(&["log", "--format=%s", "--glob=refs/tavern/*"]);
    assert!(kept.lines().any(|line| line == "Precious"), "{kept}");
}

#[test]
fn work_is_kept_where_its_item_is_told_later_that_it_needs_no_repository() {
    let script = "  if [ -e ~/once ]; then exit; fi
  touch ~/once
  echo precious >work.txt
  exit 1\n";
    let scratch = board(
        &format!("- [ ] T-1: Change my mind\n  ```sh\n{script}  ```\n"),
        "",
    );
    assert!(work_once(&scratch).contains("failed"));
    scratch.stands("T-1", "pending", 1);
    scratch.change(QUEUE, "my mind\n", "my mind (worktree: false)\n");
    assert!(work_once(&scratch).contains("completed"));
    let kept = scratch.git(&["log", "--all", "--format=%s", "--", "work.txt"]);
    assert_eq!(kept, "Salvage T-1: Change my mind");
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn what_is_made_in_a_folder_without_a_repository_is_kept_with_its_run() {
    let script = |last: &str| {
        format!("  ```sh\n  mkdir notes\n  echo precious >notes/text\n  {last}\n  ```\n")
    };
    let item =
        |id: &str, last: &str| format!("- [ ] {id}: Look (worktree: false)\n{}", script(last));
    let scratch = board(
        &(item("T-1", "true") + &item("T-2", "false")),
        "max_attempts: 1\n",
    );
    scratch.run("tavern-agent", &["--until-empty"]);
    for id in ["T-1", "T-2"] {
        let run = scratch.json("tavern-runs", &["list", id]);
        let run = run["run"].as_str().expect("a run has a name");
        assert_eq!(
            scratch.read(format!(".tavern/runs/{run}/files/notes/text")),
            "precious\n"
        );
        assert!(!scratch.work().join(".tavern/worktrees").join(id).exists());
    }
}

/// Above the folder of an item is the user's own repository.
#[test]
fn git_in_a_folder_without_a_repository_takes_no_other() {
    let line = "git add -A && git commit -qm Reached; true";
    for (keys, lose) in [("worktree: false", ""), ("priority: 1", "rm -rf .git; ")] {
        for runner in ["shell", "own"] {
            let script = format!("{lose}{line}");
            let item = format!(
                "- [ ] T-1: Work ({keys}, runner: {runner})\n  ```sh\n  {script}\n  ```\n  ```yaml task\n  done_when: [{line:?}]\n  ```\n"
            );
            let command = serde_json::json!({"own": {"kind": "command", "command": ["/bin/sh", "-c", script]}});
            let scratch = board(&item, &format!("max_attempts: 1\nrunners: {command}\n"));
            scratch.write("mine.txt", "mine\n");
            drop(scratch.run("tavern-agent", &["--once"]));
            let told = |line: &str| scratch.git(&line.split(' ').collect::<Vec<_>>());
            assert!(
                !told("log --all --format=%s").contains("Reached"),
                "{keys}, {runner}"
            );
            assert_eq!(
                told("status --short -- mine.txt"),
                "?? mine.txt",
                "{keys}, {runner}"
            );
        }
    }
}

/// Outcome and reason of each run, oldest first.
fn outcomes(scratch: &Scratch) -> Vec<(String, String)> {
    let runs = scratch.records("tavern-runs", &["list"]).into_iter();
    let text =
        |run: &serde_json::Value, name: &str| run[name].as_str().unwrap_or("none").to_owned();
    runs.map(|run| (text(&run, "outcome"), text(&run, "reason")))
        .collect()
}

#[test]
fn a_mess_that_keeps_work_from_being_looked_at_is_an_attempt() {
    let diverge = "echo mine >a; git add a; git commit -qm Mine
  git switch -qc side-$TAVERN_TOKEN HEAD~1; echo side >a; git add a; git commit -qm Side; git switch -q -";
    for (mess, told) in [
        (
            "cd /; rm -rf \"$TAVERN_WORKTREE\"".to_owned(),
            "is not a linked worktree",
        ),
        (
            format!("{diverge}; git merge -q - || true"),
            "unresolved conflicts",
        ),
        (
            format!("{diverge}; git rebase -q - || true"),
            "in the middle of a rebase",
        ),
    ] {
        let scratch = board(
            &format!("- [ ] T-1: Mess\n  ```sh\n  {mess}\n  ```\n"),
            "max_attempts: 1\n",
        );
        let said = work_once(&scratch);
        assert!(said.contains("T-1 failed, now dead"), "{mess}: {said}");
        let (outcome, reason) = outcomes(&scratch).remove(0);
        assert!(
            outcome == "failed" && reason.contains(told),
            "{mess}: {outcome}: {reason}"
        );
    }
}

#[test]
fn a_run_whose_program_could_not_be_started_has_ended() {
    let scratch = board(
        "- [ ] T-1: Do it\n",
        "runners: {mine: {kind: command, command: [/bin/mine]}}\n",
    );
    let program = scratch.executable("mine", "#!/no/such/interpreter\n");
    let config = scratch
        .read(CONFIG)
        .replace("/bin/mine", &program.display().to_string());
    let config = config.replace("not_ready: {backoff: 0s}", "not_ready: {backoff: 1h}");
    scratch.write(CONFIG, config);
    let said = scratch
        .run("tavern-agent", &["--once", "--runner", "mine"])
        .succeeds();
    assert!(
        said.contains("T-1 not_ready, now pending: can't start the agent"),
        "{said}"
    );
    // Not at once again, and for nobody's fault.
    assert!(said.contains("; again at "), "{said}");
    let item = scratch.stands("T-1", "pending", 0);
    has(&item["reason"].to_string(), &["can't start the agent"]);
    assert_eq!(item["returns"], 1);
    let (outcome, reason) = outcomes(&scratch).remove(0);
    assert!(
        outcome == "not_ready" && reason.contains("can't start the agent"),
        "{outcome}: {reason}"
    );
}

#[test]
fn a_holder_that_slept_while_another_took_its_task_leaves_the_worktree_alone() {
    let scratch = board(ENDLESS, "lease: 1s\n");
    let late = scratch.program("tavern-agent").args(&["--once"]).start();
    wait_until("it has begun", || scratch.work().join("pid").exists());
    late.signal(Signal::STOP);
    wait_until("its task is given back", || {
        scratch.run("tavern-reap", &[]).succeeds();
        scratch.item("T-1")["returns"] == 1
    });
    scratch.run("tavern-claim", &["--task", "T-1"]).succeeds();
    let worktree = scratch.work().join(".tavern/worktrees/T-1");
    let git = |arguments| {
        scratch
            .command(Path::new("git"))
            .within(&worktree)
            .args(arguments)
            .run()
    };
    git(&["switch", "--quiet", "--detach"]).succeeds();
    git(&["commit", "--quiet", "--allow-empty", "--message=Half"]).succeeds();
    late.signal(Signal::CONT);
    late.end().succeeds();
    git(&["symbolic-ref", "--quiet", "HEAD"]).ends(1);
    assert!(
        !scratch
            .git(&["log", "--format=%s", "tavern/T-1"])
            .contains("Half")
    );
}

#[test]
fn what_a_dead_supervisor_left_running_is_ended_also_when_its_item_was_taken_from_it() {
    let scratch = board(ENDLESS, "");
    let agent = scratch.program("tavern-agent").args(&["--once"]).start();
    wait_until("it has begun", || scratch.work().join("pid").exists());
    agent.kill();
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .succeeds();
    scratch.run("tavern-reap", &[]).succeeds();
    scratch.has_no_process();
    assert_eq!(
        outcomes(&scratch),
        [("killed".to_owned(), "its supervisor died".to_owned())]
    );
}

#[test]
fn what_the_checks_of_one_item_leave_where_merges_are_verified_stops_no_other() {
    // The second one is in nobody's way who is root.
    for check in [
        "git switch --quiet --create checked-$$",
        "mkdir -p left/in; touch left/in/file; chmod -R a-w left",
    ] {
        let item = |id: &str, check: &str| {
            format!("- [ ] {id}: Do it (done_when: ['{check}'])\n  ```sh\n  touch {id}\n  ```\n")
        };
        let scratch = board(&(item("T-1", check) + &item("T-2", "test ! -e left")), "");
        scratch.run("tavern-agent", &["--until-empty"]).succeeds();
        assert_eq!(scratch.merged(), "README.md\nT-1\nT-2");
    }
}

#[test]
fn a_worktree_that_can_not_be_removed_keeps_nothing_else_from_being_cleared() {
    // One that it hides from the run's own git directory.
    let script = "git --git-dir=../../../.git worktree add -q -b inner inner\n  echo precious >inner/file\n  touch made";
    let scratch = board(
        &format!("- [ ] T-1: Nest\n  ```sh\n  {script}\n  ```\n"),
        "",
    );
    assert!(work_once(&scratch).contains("merged"));
    let gone = scratch
        .program("tavern-agent")
        .args(&["--name", "Sam"])
        .start();
    let file = scratch.work().join(".tavern/agents/Sam.yaml");
    wait_until("another agent waits", || file.exists());
    gone.kill();
    scratch
        .run("tavern-reap", &[])
        .ends(4)
        .says("inner")
        .says("Sam");
    assert!(!file.exists());
    assert_eq!(
        scratch.read(".tavern/worktrees/T-1/inner/file"),
        "precious\n"
    );
}

#[test]
fn nobody_is_asked_for_a_password() {
    let ask = "printf \"protocol=https\\nhost=example.org\\n\\n\" | git credential fill";
    let queue = format!(
        "- [ ] T-1: Push (done_when: ['! {{ {ask}; }}'])\n  ```sh\n  {ask} || touch made\n  ```\n"
    );
    let scratch = board(&queue, &format!("worktree: {{setup: '{ask} || true'}}\n"));
    let program = scratch.executable("ask", "#!/bin/sh\ntouch ~/asked\necho secret\n");
    let agent = scratch
        .program("tavern-agent")
        .args(&["--once"])
        .variable("SSH_ASKPASS", &program);
    // As the terminals of editors set it.
    let agent = agent.variable("GIT_ASKPASS", &program);
    agent.without("GIT_TERMINAL_PROMPT").run().succeeds();
    assert!(!scratch.folder().join("home/asked").exists());
    assert_eq!(scratch.merged(), "README.md\nmade");
}

/// Where it works, and all that is told of it, may go at any moment: that is not the work's fault.
#[test]
fn git_clean_in_the_middle_of_a_run_uses_no_attempt_and_ends_no_agent() {
    for (flags, is_worktree_gone) in [("-fdxq", false), ("-ffdxq", true)] {
        for is_committed in [false, true] {
            let script = format!(
                "[ -e ~/cleaned ] || {{ touch ~/cleaned; (cd ../../.. && git clean {flags}); }}\n  echo 1 > 1.txt"
            );
            let items = format!(
                "- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n{}",
                item("T-2", "")
            );
            let scratch = Scratch::shell(
                &format!("## Pending\n\n{items}"),
                &format!("base: main\n{AT_ONCE}"),
            );
            if is_committed {
                scratch.commit(&["--all"], "Board");
            }
            let ran = scratch
                .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
                .ends(0);
            let told = "the folder of its run was removed while it ran, as `git clean -fdx` does";
            if is_worktree_gone {
                ran.says(&format!("T-1 not_ready, now pending: {told}"))
                    .says("T-2 merged as");
            } else {
                scratch.run("tavern-log", &["T-1"]).says(told);
            }
            for id in ["T-1", "T-2"] {
                scratch.stands(id, "completed", 1);
            }
        }
    }
}
