//! `tavern-agent --chat`, before a terminal of util-linux's `script`: a person talks with the agent of an item, which is
//! afterwards as it was.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use tavern::process::table;

use crate::support::{Running, Scratch, program, wait_until};

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

const QUEUE: &str = "## Pending\n\n- [ ] T-1: Paint it (attempt: 1)\n  With care.\n\n## Waiting\n\n\
    - [ ] T-2: Ask (question: red or blue?, attempt: 1)\n\n## Completed\n\n## Dead Letter\n\n- [ ] T-3: Three (attempt: 3, reason: no)\n";

struct Talk {
    scratch: Scratch,
    running: Option<Running>,
    terminal: File,
}

fn board() -> Scratch {
    let scratch = Scratch::repository();
    let agent = scratch.executable("../home/agent.sh", AGENT);
    scratch.run("tavern-init", &["--quiet"]).succeeds();
    let notes = scratch.folder().join("home/notes");
    let config = format!(
        "base: main\ngrace: 1s\nroles: {{coder: {{runner: own}}}}\nrunners:\n  own:\n    command: [{}, \"{{prompt_file}}\"]\n    \
         env: {{NOTES: {}}}\n",
        agent.display(),
        notes.display()
    );
    scratch.write(".tavern/config.yaml", config);
    scratch.write(".tavern/queues/main.md", QUEUE);
    scratch.settle();
    scratch
}

impl Talk {
    /// Begins one in a terminal of its own, and waits until the program reads.
    fn begin(scratch: Scratch, task: &str) -> Talk {
        let keys = scratch.folder().join("home/keys");
        scratch.command(Path::new("mkfifo")).args(&[&keys.display().to_string()]).run().succeeds();
        let line = format!("exec {} --chat {task} --name Frodo", program("tavern-agent").display());
        let typed = format!("exec script -qec '{line}' /dev/null <'{}'", keys.display());
        let running = scratch.command(Path::new("sh")).args(&["-c", &typed]).start();
        let terminal = OpenOptions::new().write(true).open(&keys).expect("script reads it");
        let ready = scratch.folder().join("home/notes/ready");
        wait_until("the program has the terminal", || ready.exists());
        Talk { scratch, running: Some(running), terminal }
    }

    fn type_in(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).expect("script reads it");
    }

    fn note(&self, name: &str) -> String {
        std::fs::read_to_string(self.scratch.folder().join("home/notes").join(name)).unwrap_or_default()
    }

    fn hears(&self, text: &str) {
        wait_until(text, || self.note("said").contains(text));
    }

    /// The supervisor.
    fn agent(&self) -> Pid {
        let folder = self.scratch.folder();
        let is_it = |pid: u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("tavern-agent\0--chat") && cwd.starts_with(&folder)
        };
        let pid = table::all().into_iter().map(|entry| entry.pid).find(|pid| is_it(*pid)).expect("it runs");
        Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid")
    }

    fn end(&mut self) -> crate::support::Ran {
        self.running.take().expect("it is ended once").end()
    }

    fn queue(&self) -> String {
        self.scratch.read(".tavern/queues/main.md")
    }
}

#[test]
fn a_person_talks_with_the_agent_and_the_item_is_as_it_was() {
    for task in ["T-1", "T-2", "T-3"] {
        let mut talk = Talk::begin(board(), task);
        talk.type_in("hello\n");
        talk.hears("hello");
        // Held by a lease, and by nobody else meanwhile.
        assert!(talk.queue().contains(&format!("- [ ] {task}")) && talk.queue() != QUEUE);
        talk.scratch.run("tavern-claim", &["--task", task, "--agent", "Sam"]).says("Frodo");
        talk.scratch.run("tavern-status", &[]).ends(0).says("Frodo      working").says("talks with a person");
        let other = talk.scratch.command(Path::new("script")).args(&[
            "-qec",
            &format!("{} --chat {task} --name Sam", program("tavern-agent").display()),
            "/dev/null",
        ]);
        other.run().ends(4).says("is held by Frodo");
        // Ctrl-C is the program's.
        talk.type_in("\u{3}");
        talk.hears("interrupted");
        talk.type_in("more\nquit\n");
        let ran = talk.end().ends(0);
        assert_eq!(talk.queue(), QUEUE, "{ran}");
        let hint = match task {
            "T-1" => "tavern-agent --once",
            "T-2" => "tavern-tell T-2",
            _ => "tavern-release T-3 --revive",
        };
        ran.says("as it was; your work is in").says(hint);

        // Nothing is thrown away, and nothing left running.
        let worktree = format!(".tavern/worktrees/{task}");
        assert_eq!(talk.scratch.read(format!("{worktree}/work.txt")).lines().next_back(), Some("more"));
        assert_eq!(talk.note("pwd").trim(), talk.scratch.work().join(&worktree).display().to_string());
        assert_eq!(
            talk.note("env").split_whitespace().count(),
            2,
            "a person's git has an editor: {}",
            talk.note("env")
        );
        talk.scratch.has_no_process();
        let run = talk.scratch.run("tavern-runs", &["list", "--format", "json"]).succeeds();
        assert!(run.contains("\"outcome\":\"success\"") && run.contains("\"reason\":\"chat\""), "{run}");
        let prompt = talk.note("prompt");
        assert!(prompt.contains(&format!("Task: {task}: ")), "{prompt}");
        let token = talk.note("env").split_whitespace().nth(1).expect("a token").to_owned();
        assert_eq!(talk.scratch.read(format!(".tavern/runs/{task}@{token}/prompt.md")), prompt);
        let log = talk.scratch.run("tavern-log", &[task]).succeeds();
        assert!(log.contains(&format!("Frodo took {task} to talk with a person")), "{log}");
        assert!(std::fs::read_dir(talk.scratch.work().join(".tavern/leases")).expect("it is there").count() == 0);
    }
}

#[test]
fn a_talk_that_dies_leaves_the_item_as_it_was() {
    for signal in [Signal::KILL, Signal::HUP, Signal::TERM] {
        let mut talk = Talk::begin(board(), "T-2");
        talk.type_in("half\n");
        talk.hears("half");
        kill_process(talk.agent(), signal).expect("it is ours");
        let ran = talk.end();
        if signal == Signal::KILL {
            talk.scratch.run("tavern-reap", &[]).ends(0).says("give T-2 back from Frodo");
        } else {
            assert_eq!(ran.code, Some(143), "{ran}");
        }
        assert_eq!(talk.queue(), QUEUE, "{ran}");
        assert_eq!(talk.scratch.read(".tavern/worktrees/T-2/work.txt"), "half\n");
        talk.scratch.has_no_process();
    }
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let scratch = board();
    let ran = scratch.run("tavern-agent", &["--chat", "T-2"]).ends(2);
    ran.says("standard input is none").says("tavern-tell T-2").says("tavern-agent --once");
    let foreseen = scratch.run("tavern-agent", &["--chat", "T-2", "--dry-run"]).succeeds();
    assert!(foreseen.starts_with("cd ") && foreseen.contains("agent.sh") && foreseen.contains("T-2@"), "{foreseen}");
    assert_eq!(scratch.read(".tavern/queues/main.md"), QUEUE);
    scratch.run("tavern-agent", &["--chat", "T-9", "--dry-run"]).ends(2);
}
