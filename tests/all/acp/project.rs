//! A repository with a board whose agents are the scripted program.

use serde_json::{Value, json};

use super::scripted::{SCRIPT, command_line};
use crate::claude::project::merge;
use crate::support::{CONFIG, QUEUE, Run, Scratch};

pub const ITEM: &str = "- [ ] T-1: Write hello (done_when: grep -q hi hello)\n";
pub const COMMIT: &str = "echo hi > hello && git add -A && git commit -qm 'Say hello'";

pub struct Project {
    pub scratch: Scratch,
}

/// A step in which the agent says `text`.
pub fn say(text: &str) -> Value {
    json!({"do": [{"say": text}]})
}

/// A step in which the agent runs `command` and then says `text`.
pub fn run(command: &str, text: &str) -> Value {
    json!({"do": [{"say": "I look."}, {"sh": command}, {"say": text}]})
}

/// A step in which the provider fails.
pub fn fail(error: Value) -> Value {
    let mut step = json!({"do": [{}]});
    step["do"][0]["error"] = error;
    step
}

impl Project {
    /// A board with the pending items `items`, and an agent that follows `steps`.
    pub fn new(items: &str, steps: Value) -> Project {
        Project::with(json!({}), items, json!({}), steps)
    }

    /// The same, with `settings` over those of the tests, and an agent with these `habits`.
    pub fn with(settings: Value, items: &str, mut habits: Value, steps: Value) -> Project {
        let scratch = Scratch::repository();
        scratch.run("tavern-init", &["--quiet"]).succeeds();
        let lanes =
            "## In Progress\n\n## In Review\n\n## Waiting\n\n## Completed\n\n## Dead Letter\n";
        scratch.write(QUEUE, format!("## Pending\n\n{items}\n{lanes}"));
        habits["steps"] = steps;
        let script = scratch.write("../home/acp.json", habits.to_string());
        let at_once = json!({"backoff": "0s"});
        let role = json!({"runner": "agent", "idle": "60s", "prods": 1});
        let mut config = json!({
            "base": "main",
            "grace": "2s",
            "roles": {"coder": role, "reviewer": {"runner": "agent", "prods": 1}, "planner": {"runner": "agent", "prods": 1}},
            "runners": {"agent": {"kind": "acp", "command": command_line(), "env": {SCRIPT: script}}},
            "outcomes": {"failed": at_once, "timeout": at_once, "crashed": at_once, "empty": at_once},
        });
        merge(&mut config, settings);
        scratch.write(CONFIG, config.to_string());
        Project { scratch }
    }

    pub fn agent(&self, role: &str) -> Run {
        self.scratch.program("tavern-agent").args(&[
            "--name",
            &format!("Frodo-{role}"),
            "--role",
            role,
            "--until-empty",
        ])
    }

    /// Lets an agent of this role do one run.
    #[track_caller]
    pub fn run_once(&self, role: &str) {
        self.agent(role).args(&["--once"]).run();
        self.scratch.has_no_process();
    }

    /// Lets an agent of this role work until nothing is left to do; gives its output.
    #[track_caller]
    pub fn work_as(&self, role: &str) -> String {
        let ran = self.agent(role).run().ends(0);
        self.scratch.has_no_process();
        format!("{}{}", ran.stdout, ran.stderr)
    }

    #[track_caller]
    pub fn work(&self) -> String {
        self.work_as("coder")
    }

    /// The records of all runs, oldest first.
    #[track_caller]
    pub fn runs(&self) -> Vec<Value> {
        self.scratch.records("tavern-runs", &["list"])
    }

    /// Each run's outcome, oldest first.
    #[track_caller]
    pub fn outcomes(&self) -> Vec<String> {
        let of = |run: &Value| run["outcome"].as_str().unwrap_or("none").to_owned();
        self.runs().iter().map(of).collect()
    }

    /// All messages to the agent by this method, over all runs.
    pub fn sent(&self, method: &str) -> Vec<Value> {
        let all = self.scratch.read("../home/acp.seen");
        let lines = all
            .lines()
            .map(|line| serde_json::from_str(line).expect("it is JSON"));
        lines
            .filter(|line: &Value| line["method"] == method)
            .collect()
    }

    /// The prompts, over all runs.
    pub fn prompts(&self) -> Vec<String> {
        let text = |prompt: Value| {
            let parts = prompt["params"]["prompt"]
                .as_array()
                .expect("it has parts")
                .clone();
            let texts = parts
                .iter()
                .map(|part| part["text"].as_str().unwrap_or_default());
            texts.collect::<Vec<_>>().join("\n---\n")
        };
        self.sent("session/prompt").into_iter().map(text).collect()
    }

    #[track_caller]
    pub fn log(&self) -> String {
        self.scratch.run("tavern-log", &[]).succeeds()
    }
}
