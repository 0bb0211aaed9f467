//! The scripts in `scripts/`, which are loops over the small programs, run as people run them.

use std::fs;

use rustix::process::{Pid, Signal, test_kill_process};

use crate::support::{AT_ONCE, ENDLESS, Scratch, wait_until};

/// The process of [`ENDLESS`]' script, once it runs.
fn sleeper(scratch: &Scratch) -> Pid {
    let path = scratch.work().join("pid");
    let pid = || fs::read_to_string(&path).ok()?.trim().parse().ok();
    wait_until("the item's script runs", || pid().is_some());
    Pid::from_raw(pid().expect("it was just there")).expect("it is a pid")
}

/// Whose child it is.
fn parent(pid: Pid) -> Pid {
    let status =
        fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .expect("it has a parent");
    Pid::from_raw(line.trim().parse().expect("it is a number")).expect("it is a pid")
}

#[test]
fn a_shell_loop_works_the_queue_to_merged_commits() {
    let scratch = Scratch::repository();
    scratch
        .run("tavern-init", &["--quiet", "--runner", "shell", "--demo"])
        .succeeds();
    let unfit = scratch.run("tavern-add", &["No script"]).succeeds();
    let ran = scratch
        .script("agent-loop.sh")
        .args(&["--until-empty", "--role", "coder"])
        .run()
        .ends(0);
    assert!(
        ran.stdout.contains(
            "T-3 approved: the next agent merges it, or now: tavern merge T-3\nT-3 merged as "
        ),
        "{ran}"
    );
    for id in ["T-1", "T-2", "T-3"] {
        assert_eq!(scratch.item(id)["status"], "completed", "{id}");
    }
    let files = scratch.merged();
    assert_eq!(files, "README.md\ngreeting.txt\nmug.txt\nshout.txt");
    // What its runner can do nothing with is passed over, and said.
    assert_eq!(scratch.item(unfit.trim())["status"], "pending");
    assert!(
        ran.stderr
            .contains("it has no ```sh block, which the runner `shell` needs"),
        "{ran}"
    );
    assert_eq!(scratch.run("tavern-reap", &["--dry-run"]).succeeds(), "");
}

#[test]
fn who_waits_takes_what_comes_into_a_queue_that_is_made_meanwhile() {
    let scratch = Scratch::board("");
    let claim = scratch
        .program("tavern-claim")
        .args(&["--wait=60s"])
        .start();
    let files = format!("/proc/{}/fd", claim.pid().as_raw_nonzero());
    let watches = |file: fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|to| to.ends_with("anon_inode:inotify"))
    };
    wait_until("it watches", || {
        fs::read_dir(&files)
            .into_iter()
            .flatten()
            .flatten()
            .any(watches)
    });
    scratch.write(
        ".tavern/queues/other.md",
        "---\nid: other\n---\n- [ ] T-1: One\n",
    );
    claim.end().ends(0).says("T-1");
}

#[test]
fn stop_ends_a_waiting_loop_and_pause_holds_it() {
    let scratch = Scratch::pending("");
    scratch.write(".tavern/PAUSE", "lunch\n");
    let waiting = scratch.script("agent-loop.sh").start();
    scratch
        .run(
            "tavern-add",
            &["Sleep", "--id", "T-1", "-m", "```sh\ntrue\n```"],
        )
        .succeeds();
    // It has come to its wait, since it has cleared up before.
    wait_until("the loop has begun", || {
        scratch.work().join(".git/tavern/slots/reap").exists()
    });
    assert_eq!(scratch.item("T-1")["status"], "pending");
    // Under its name only when its text is in it: the loop is woken by the name.
    let written = scratch.write(".tavern/STOP.new", "that's all\n");
    fs::rename(&written, written.with_extension("")).expect("the folder is ours");
    waiting
        .end()
        .ends(0)
        .says("error: the board is stopped: that's all\nhint: to go on: tavern resume\n");
    assert_eq!(scratch.item("T-1")["status"], "pending");
}

#[test]
fn a_terminated_loop_gives_its_item_back_without_an_attempt() {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let scratch = Scratch::pending(ENDLESS);
        let running = scratch.script("agent-loop.sh").in_a_group().start();
        let sleeper = sleeper(&scratch);
        match name {
            // `kill` reaches the shell alone, Ctrl-C all of its group.
            "TERM" => running.signal(Signal::TERM),
            _ => running.signal_group(Signal::INT),
        }
        running.end().ends(code);
        let item = scratch.stands("T-1", "pending", 0);
        assert!(item["lease"].is_null(), "{name}: {item}");
        assert!(
            test_kill_process(sleeper).is_err(),
            "{name}: the script does not run any more"
        );
        assert_eq!(
            scratch.read(".tavern/worktrees/T-1/begun.txt"),
            "begun\n",
            "what it has done is kept"
        );
    }
}

#[test]
fn the_reap_loop_clears_up_and_obeys_stop() {
    let scratch = Scratch::pending(ENDLESS);
    let loop_of_one = scratch.script("agent-loop.sh").start();
    let sleeper = sleeper(&scratch);
    let spawn = parent(sleeper);
    loop_of_one.kill();
    let reaping = scratch
        .script("reap-loop.sh")
        .variable("EVERY", "0.1")
        .start();
    wait_until("the item is free", || {
        scratch.item("T-1")["status"] == "pending"
    });
    wait_until("script and supervisor have ended", || {
        test_kill_process(sleeper).is_err() && test_kill_process(spawn).is_err()
    });
    scratch.write(".tavern/STOP", "");
    reaping.end().ends(0).says("give T-1 back from loop-");
}

#[test]
fn what_may_pass_ends_no_loop_and_a_wrong_command_line_does() {
    for name in ["agent-loop.sh", "reap-loop.sh"] {
        let scratch = Scratch::repository();
        scratch.script(name).args(&["--no-such-flag"]).run().ends(2);
        let said = scratch.folder().join("said");
        let running = scratch
            .script(name)
            .variable("EVERY", "0.1")
            .told_to(&said)
            .start();
        let failed = || {
            fs::read_to_string(&said)
                .unwrap_or_default()
                .matches("error: no board")
                .count()
        };
        wait_until("it has tried again", || failed() > 6);
        scratch
            .run("tavern-init", &["--quiet", "--runner", "shell"])
            .succeeds();
        let written = scratch.write(".tavern/STOP.new", "");
        fs::rename(&written, written.with_extension("")).expect("the folder is ours");
        running.end().ends(0);
    }
}

#[test]
fn the_demo_script_is_the_demo() {
    let scratch = Scratch::empty();
    let ran = scratch
        .script("demo.sh")
        .args(&["--format", "json"])
        .run()
        .ends(0);
    assert_eq!(ran.json()["command"], "git status --short --branch");
}

#[test]
fn an_idle_agent_takes_what_another_queue_has_set_free() {
    let work = "  ```sh\n  echo 1 >one.txt\n  ```\n";
    let scratch = Scratch::pending(&format!("- [ ] T-1: Then (after: B-1)\n{work}"));
    scratch.write(".tavern/queues/b.md", "---\nid: b\n---\n- [ ] B-1: First\n");
    let agent = scratch
        .program("tavern-agent")
        .args(&["--queue", "main", "--name", "Frodo"])
        .start();
    let is_idle = || {
        scratch
            .run("tavern-status", &[])
            .stdout
            .contains("Frodo      waiting")
    };
    wait_until("it waits", is_idle);
    scratch.write(".tavern/queues/b.md", "---\nid: b\n---\n- [x] B-1: First\n");
    wait_until("T-1 is done", || {
        scratch.item("T-1")["status"] == "completed"
    });
    agent.signal(Signal::INT);
    agent.end().ends(130);
}

#[test]
fn a_claim_gives_back_what_a_dead_holder_or_an_old_lease_keeps() {
    let scratch = Scratch::shell("- [ ] T-1: One\n- [ ] T-2: Two\n", AT_ONCE);
    let mut holder = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("sleep starts");
    let pid = holder.id().to_string();
    scratch.claim("T-1", &["--agent", "Frodo", "--pid", &pid]);
    scratch.claim("T-2", &["--agent", "Sam", "--lease", "10m"]);
    scratch.run("tavern-claim", &["--agent", "Merry"]).ends(3);
    holder.kill().expect("it is ours");
    holder.wait().expect("it is ours");
    let taken = scratch.json("tavern-claim", &["--agent", "Merry", "--lease", "2h"]);
    assert_eq!(taken["id"], "T-1", "{taken:#}");
    assert_eq!(taken["lease"]["agent"], "Merry");
    scratch.run("tavern-claim", &["--agent", "Pippin"]).ends(3);
    scratch
        .at("+700", "tavern-claim", &["--agent", "Pippin"])
        .ends(0)
        .says("T-2");
    // What a shell has set for its own output is not the reaper's.
    scratch
        .program("tavern-claim")
        .variable("TAVERN_TEST_NOW", "+2000")
        .variable("TAVERN_FORMAT", "env")
        .args(&["--agent", "Bilbo"])
        .run()
        .ends(0)
        .says("TAVERN_TASK=T-2");
    // A dry run gives nothing back.
    scratch.at("+90000", "tavern-claim", &["--dry-run"]).ends(3);
    assert_eq!(scratch.item("T-2")["lease"]["agent"], "Bilbo");
}

#[test]
fn who_waits_for_work_is_woken_when_a_lease_ends() {
    let scratch = Scratch::shell("- [ ] T-1: One\n", AT_ONCE);
    scratch.claim("T-1", &["--agent", "Frodo", "--lease", "1s"]);
    scratch
        .run("tavern-claim", &["--agent", "Sam", "--wait=60s"])
        .ends(0)
        .says("T-1");
    assert_eq!(scratch.item("T-1")["lease"]["agent"], "Sam");
}
