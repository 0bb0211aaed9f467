//! A repository with a board whose agents are the real CLI, and a provider that follows a script.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::stand_in::StandIn;
use super::workshop::{installed, wait_for_record};
use crate::support::{CONFIG, QUEUE, Run, Scratch, wait_until};

/// An item, and what does it.
pub const ITEM: &str = "- [ ] T-1: Write hello\n";
pub const COMMIT: &str = "echo hi > hello && git add -A && git commit -qm 'Say hello'";

pub struct Project {
    pub scratch: Scratch,
    pub provider: StandIn,
}

/// A step of the script in which the model runs `command`.
pub fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command, "description": "test"}})
}

/// A step of the script in which the model ends its turn with `text`.
pub fn say(text: &str) -> Value {
    json!({"text": text})
}

/// A step of the script in which the model answers in the form that is asked of it.
pub fn answer(input: Value) -> Value {
    let mut step = json!({"tool": "StructuredOutput"});
    step["input"] = input;
    step
}

/// A step for the session whose calls hold `marker`.
pub fn of(marker: &str, mut step: Value) -> Value {
    step["for"] = json!(marker);
    step
}

/// What stops a command of an agent's until [`Project::let_go`], and tells that it has come so far.
pub const HOLD: &str = "touch \"$HOME/held\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done";

impl Project {
    /// A board with the pending items `items`, and a provider that follows `steps`.
    pub fn new(items: &str, steps: Value) -> Project {
        Project::with(json!({}), items, steps)
    }

    /// The same, with `settings` over those of the tests.
    pub fn with(settings: Value, items: &str, steps: Value) -> Project {
        let project = Project {
            scratch: Scratch::repository(),
            provider: StandIn::start(steps),
        };
        project.scratch.run("tavern-init", &["--quiet"]).succeeds();
        let lanes = "## In Progress\n\n## Waiting\n\n## Completed\n\n## Dead Letter\n";
        project
            .scratch
            .write(QUEUE, format!("## Pending\n\n{items}\n{lanes}"));
        project.set(settings);
        project
    }

    /// Writes config.yaml: the settings of the tests, and `settings` over them.
    pub fn set(&self, settings: Value) {
        let home = self.scratch.folder().join("home");
        let at_once = json!({"backoff": "0s"});
        let mut config = json!({
            "base": "main",
            "grace": "2s",
            "roles": {"coder": {"runner": "claude", "idle": "60s", "prods": 0}},
            "runners": {"claude": {"program": installed(), "env": {
                "HOME": home,
                "ANTHROPIC_BASE_URL": self.provider.url(),
                "ANTHROPIC_API_KEY": "sk-ant-test-not-real",
                "CLAUDE_CODE_MAX_RETRIES": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
            }}},
            "outcomes": {
                "failed": at_once, "timeout": at_once, "crashed": at_once, "permission_denied": at_once,
                "budget": at_once, "empty": at_once,
            },
        });
        merge(&mut config, settings);
        // JSON is YAML.
        self.scratch.write(CONFIG, config.to_string());
    }

    /// Not every container and not every kernel lets a sandbox be made.
    pub fn has_sandboxes(&self) -> bool {
        let probe = [
            "-c",
            "bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --unshare-pid --unshare-ipc true",
        ];
        self.scratch.command("sh".as_ref()).args(&probe).run().code == Some(0)
    }

    /// An agent that works until nothing is left to do.
    pub fn agent(&self) -> Run {
        self.scratch.program("tavern-agent").args(&[
            "--name",
            "Frodo",
            "--until-empty",
            "--format",
            "json",
        ])
    }

    /// Lets an agent work until nothing is left to do; gives what it told.
    #[track_caller]
    pub fn work(&self) -> Vec<Value> {
        let ran = self.agent().run().ends(0);
        self.assert_tidy();
        ran.records()
    }

    /// The item as `tavern-status ID` has it.
    #[track_caller]
    pub fn item(&self, task: &str) -> Value {
        self.scratch.item(task)
    }

    /// The records of all runs, oldest first.
    #[track_caller]
    pub fn runs(&self) -> Vec<Value> {
        self.scratch.records("tavern-runs", &["list"])
    }

    /// The sessions of all runs, oldest first.
    #[track_caller]
    pub fn sessions(&self) -> Vec<Value> {
        self.runs()
            .iter()
            .map(|run| run["session"].clone())
            .collect()
    }

    /// The outcomes of all runs, oldest first.
    #[track_caller]
    pub fn outcomes(&self) -> Vec<String> {
        self.runs()
            .iter()
            .map(|run| run["outcome"].as_str().unwrap_or("none").to_owned())
            .collect()
    }

    /// The event log, a sentence a line.
    #[track_caller]
    pub fn log(&self) -> String {
        self.scratch.run("tavern-log", &[]).succeeds()
    }

    /// A file on the integration branch; `None` if it is not there.
    pub fn merged(&self, path: &str) -> Option<String> {
        let object = format!("tavern/integration:{path}");
        let ran = self
            .scratch
            .command("git".as_ref())
            .args(&["show", &object])
            .run();
        (ran.code == Some(0)).then_some(ran.stdout)
    }

    /// A path below an item's worktree.
    pub fn worktree(&self, task: &str, path: &str) -> PathBuf {
        self.scratch
            .work()
            .join(".tavern/worktrees")
            .join(task)
            .join(path)
    }

    /// Returns once an agent's command stands at [`HOLD`].
    #[track_caller]
    pub fn wait_for_hold(&self) {
        let held = self.scratch.folder().join("home/held");
        wait_until("an agent's command holds", || held.exists());
        // Killed before, it knows nothing of its session.
        wait_for_record(&self.scratch, "\"tool_use\"");
    }

    /// Lets commands go on that stand at [`HOLD`].
    pub fn let_go(&self) {
        self.scratch.write("../home/go", "");
    }

    /// Kills every process of the program `name` that belongs to this project.
    #[track_caller]
    pub fn kill(&self, name: &str) {
        let processes = self.scratch.processes();
        let pids = processes.iter().filter_map(|line| {
            let mut words = line.split(' ');
            let pid = words.next()?.parse().ok()?;
            words
                .next()
                .is_some_and(|program| program.rsplit('/').next() == Some(name))
                .then_some(pid)
        });
        let pids: Vec<Pid> = pids.filter_map(Pid::from_raw).collect();
        assert!(!pids.is_empty(), "no `{name}` runs: {processes:?}");
        for pid in pids {
            kill_process(pid, Signal::KILL).expect("it is ours");
        }
    }

    /// No process runs, nobody holds anything, and nothing half-written lies about.
    #[track_caller]
    pub fn assert_tidy(&self) {
        assert_eq!(
            self.scratch.processes(),
            Vec::<String>::new(),
            "processes are left"
        );
        for folder in [".git/tavern/leases", ".tavern/agents"] {
            let entries = std::fs::read_dir(self.scratch.work().join(folder)).expect("it is there");
            let names: Vec<_> = entries
                .filter_map(|entry| Some(entry.ok()?.file_name()))
                .collect();
            assert!(names.is_empty(), "{folder}: {names:?}");
        }
        self.scratch.run("tavern-check", &["--quiet"]).ends(0);
    }
}

/// `over` over `under`, key by key.
pub fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}
