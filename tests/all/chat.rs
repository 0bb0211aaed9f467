//! `tavern-agent --chat`, before a terminal of util-linux's `script`: a person talks with the agent of an item, which is
//! afterwards as it was.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use tavern_sys::process::table;

use crate::support::{CONFIG, Ran, Scratch, program, wait_until};
use crate::terminal::Terminal;

/// Works at the terminal only: keeps what is typed, and what else it sees.
const AGENT: &str = r#"#!/bin/sh
test -t 0 || exit 9
trap 'echo interrupted >>"$NOTES/said"' INT
mkdir -p "$NOTES"
cp "$1" "$NOTES/prompt"
pwd >"$NOTES/pwd"
echo "$TAVERN_TASK $TAVERN_TOKEN $GIT_EDITOR" >"$NOTES/env"
setsid sleep 1000 &
touch "$NOTES/ready"
while read -r line || kill -0 $$; do
    case $line in
    quit) exit 3 ;;
    *) echo "$line" >>"$NOTES/said" ; echo "$line" >>work.txt ;;
    esac
done
"#;

/// One that has failed once, one that has, too, and asks, and one that is dead.
const ITEMS: &str = "## Pending\n\n- [ ] T-1: Paint it\n  With care.\n- [ ] T-2: Ask\n\n## Completed\n\n## Dead Letter\n\n\
    - [ ] T-3: Three (max_attempts: 1)\n";

struct Talk {
    scratch: Scratch,
    terminal: Terminal,
}

/// The board after a talk about this item.
#[track_caller]
fn is_as_it_was(scratch: &Scratch, task: &str) {
    let (status, attempt, key, said) = match task {
        "T-1" => ("pending", 1, "reason", "later"),
        "T-2" => ("waiting", 1, "question", "red or blue?"),
        _ => ("dead", 1, "reason", "no"),
    };
    let item = scratch.stands(task, status, attempt);
    assert_eq!((&item[key], &item["returns"]), (&said.into(), &0.into()));
    assert_eq!(scratch.queue(), ITEMS);
}

fn board() -> Scratch {
    let three = "- [ ] T-3: Three (max_attempts: 1)\n";
    let queue = ITEMS
        .replace(&format!("\n{three}"), "")
        .replace("T-2: Ask\n", &format!("T-2: Ask\n{three}"));
    let scratch = Scratch::with_agent(AGENT, &queue, "grace: 1s\n");
    scratch.change(CONFIG, "agent.sh]", "agent.sh, \"{prompt_file}\"]");
    for (id, how, why, code) in [
        ("T-1", "--failed", "later", 1),
        ("T-2", "--failed", "not yet", 1),
        ("T-2", "--waiting", "red or blue?", 8),
        ("T-3", "--failed", "no", 1),
    ] {
        let token = scratch.claim(id, &[]);
        scratch
            .run("tavern-report", &[id, "--token", &token, how, why])
            .ends(code);
    }
    assert_eq!(scratch.queue(), ITEMS);
    scratch
}

impl Talk {
    /// Begins one in a terminal of its own, and waits until the program reads.
    fn begin(scratch: Scratch, task: &str) -> Talk {
        let line = format!(
            "{} --chat {task} --name Frodo",
            program("tavern-agent").display()
        );
        let terminal = Terminal::start(&scratch, &line);
        let ready = scratch.folder().join("home/notes/ready");
        wait_until("the program has the terminal", || ready.exists());
        Talk { scratch, terminal }
    }

    fn hears(&self, text: &str) {
        let said = self.scratch.folder().join("home/notes/said");
        wait_until(text, || {
            std::fs::read_to_string(&said).is_ok_and(|said| said.contains(text))
        });
    }

    /// The supervisor.
    fn agent(&self) -> Pid {
        let folder = self.scratch.folder();
        let is_it = |pid: u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("tavern-agent\0--chat")
                && cwd.starts_with(&folder)
        };
        let pid = table::all()
            .into_iter()
            .map(|entry| entry.pid)
            .find(|pid| is_it(*pid))
            .expect("it runs");
        Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid")
    }

    /// Its exit code, and all that was shown.
    fn end(self) -> (Scratch, Ran) {
        (self.scratch, self.terminal.end())
    }
}

#[test]
fn a_person_talks_with_the_agent_and_the_item_is_as_it_was() {
    for task in ["T-1", "T-2", "T-3"] {
        let mut talk = Talk::begin(board(), task);
        talk.terminal.type_in("hello\n");
        talk.hears("hello");
        // Held by a lease, and by nobody else meanwhile.
        let held = talk.scratch.item(task);
        assert_eq!(
            (&held["status"], &held["lease"]["agent"]),
            (&"in_progress".into(), &"Frodo".into())
        );
        talk.scratch
            .run("tavern-claim", &["--task", task, "--agent", "Sam"])
            .says("Frodo");
        talk.scratch
            .run("tavern-status", &[])
            .ends(0)
            .says("Frodo      working")
            .says("talks with a person");
        let other = talk.scratch.command(Path::new("script")).args(&[
            "-qec",
            &format!(
                "{} --chat {task} --name Sam",
                program("tavern-agent").display()
            ),
            "/dev/null",
        ]);
        other.run().ends(4).says("is held by Frodo");
        // Ctrl-C is the program's.
        talk.terminal.type_in("\u{3}");
        talk.hears("interrupted");
        talk.terminal.type_in("more\nquit\n");
        let (scratch, ran) = talk.end();
        let ran = ran.ends(0);
        is_as_it_was(&scratch, task);
        let hint = match task {
            "T-1" => "tavern agent --once",
            "T-2" => "tavern answer T-2",
            _ => "tavern retry T-3",
        };
        ran.says("unchanged; your work is in").says(hint);

        // Nothing is thrown away, and nothing left running.
        let worktree = format!(".tavern/worktrees/{task}");
        assert_eq!(
            scratch
                .read(format!("{worktree}/work.txt"))
                .lines()
                .next_back(),
            Some("more")
        );
        assert_eq!(
            scratch.note("pwd").trim(),
            scratch.work().join(&worktree).display().to_string()
        );
        let env = scratch.note("env");
        assert_eq!(
            env.split_whitespace().count(),
            2,
            "a person's git has an editor: {env}"
        );
        scratch.has_no_process();
        let run = scratch
            .run("tavern-runs", &["list", "--format", "json"])
            .succeeds();
        assert!(
            run.contains("\"outcome\":\"success\"") && run.contains("\"reason\":\"chat\""),
            "{run}"
        );
        let prompt = scratch.note("prompt");
        assert!(prompt.contains(&format!("Task: {task}: ")), "{prompt}");
        assert!(
            prompt.contains("a person talks with you") && !prompt.contains("unattended"),
            "{prompt}"
        );
        let token = env.split_whitespace().nth(1).expect("a token");
        assert_eq!(
            scratch.read(format!(".tavern/runs/{task}@{token}/prompt.md")),
            prompt
        );
        scratch
            .run("tavern-log", &[task])
            .ends(0)
            .says(&format!("Frodo took {task} to talk with a person"));
        assert!(
            std::fs::read_dir(scratch.work().join(".git/tavern/leases"))
                .expect("it is there")
                .count()
                == 0
        );
    }
}

#[test]
fn a_talk_that_dies_leaves_the_item_as_it_was() {
    for signal in [Signal::KILL, Signal::HUP, Signal::TERM] {
        let mut talk = Talk::begin(board(), "T-2");
        talk.terminal.type_in("half\n");
        talk.hears("half");
        kill_process(talk.agent(), signal).expect("it is ours");
        let (scratch, ran) = talk.end();
        if signal == Signal::KILL {
            scratch
                .run("tavern-reap", &[])
                .ends(0)
                .says("give T-2 back from Frodo");
        } else {
            assert_eq!(ran.code, Some(143), "{ran}");
        }
        is_as_it_was(&scratch, "T-2");
        assert_eq!(scratch.read(".tavern/worktrees/T-2/work.txt"), "half\n");
        scratch.has_no_process();
    }
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let scratch = board();
    let ran = scratch.run("tavern-agent", &["--chat", "T-2"]).ends(2);
    ran.says("standard input is not one")
        .says("tavern tell T-2")
        .says("tavern agent --once");
    let foreseen = scratch
        .run("tavern-agent", &["--chat", "T-2", "--dry-run"])
        .succeeds();
    assert!(
        foreseen.starts_with("cd ") && foreseen.contains("agent.sh") && foreseen.contains("T-2@"),
        "{foreseen}"
    );
    assert_eq!(scratch.queue(), ITEMS);
    scratch
        .run("tavern-agent", &["--chat", "T-9", "--dry-run"])
        .ends(2);
}
