//! The live mode of the Claude CLI.

use std::env::temp_dir;
use std::time::Duration;

use serde_json::{Value, json};

use super::conversation::{Link, Urgency, Wire};
use super::event::AgentEvent;
use super::forbidden::{TOOLS, breaches, forbids, may_forbid};
use super::job::{Job, Opening};
use super::outcome::Usage;
use super::permission::{self, Leave};
use super::reading::Reading;
use super::stream;
use super::transcript::Transcript;

/// A Claude CLI that reads and writes JSON lines.
pub(super) struct ClaudeLink {
    job: Job,
    requests: u32,
    /// The session's usage before this run; `None` until the CLI has reported it. Figures of CLI 2.1.330 and later
    /// include it.
    before: Option<Usage>,
    transcript: Transcript,
}

impl ClaudeLink {
    pub(super) fn of(job: &Job) -> ClaudeLink {
        ClaudeLink {
            job: job.clone(),
            requests: 0,
            before: (job.opening == Opening::New).then(Usage::default),
            transcript: Transcript::of(job),
        }
    }

    fn request(&mut self, request: &Value, wire: &Wire) {
        self.requests += 1;
        let id = format!("tavern-{}", self.requests);
        wire.send(&json!({"type": "control_request", "request_id": id, "request": request}));
    }

    /// Reduces the event's figures to those of this run. `None` if it reports the usage before the run.
    fn of_this_run(&mut self, mut event: AgentEvent) -> Option<AgentEvent> {
        match (&mut event, &self.before) {
            (AgentEvent::Spent { usage }, None) => {
                self.before = Some(usage.clone());
                return None;
            }
            (AgentEvent::Spent { usage }, Some(before)) => *usage = usage.since(before),
            (AgentEvent::Turn(turn), Some(before)) => turn.usage = turn.usage.since(before),
            _ => {}
        }
        Some(event)
    }
}

impl Link for ClaudeLink {
    fn open(&mut self, wire: &Wire) {
        if may_forbid(&self.job.forbids) {
            // In seconds; after that a call is made without a decision.
            let hook = json!([{"matcher": TOOLS, "hookCallbackIds": ["rules"], "timeout": 60}]);
            let hooks = json!({"subtype": "initialize", "hooks": {permission::HOOK: hook}});
            self.request(&hooks, wire);
        }
        if self.before.is_none() {
            self.ask_usage(wire);
        }
        wire.send(&user_message(&self.job.prompt));
    }

    fn read(&mut self, line: &str, _wire: &Wire) -> Vec<AgentEvent> {
        let events = stream::read(line).into_iter();
        events.filter_map(|event| self.of_this_run(event)).collect()
    }

    fn say(&mut self, text: &str, urgency: Urgency, wire: &Wire) -> bool {
        let mut message = user_message(text);
        if urgency == Urgency::Now {
            message["priority"] = json!("now");
        }
        wire.send(&message)
    }

    fn ask_usage(&mut self, wire: &Wire) {
        self.request(&json!({"subtype": "get_usage"}), wire);
    }

    fn reply(&mut self, request: &str, input: &Value, is: Leave, wire: &Wire) {
        wire.send(&permission::reply(request, input, is));
    }

    fn verdict(&mut self, request: &str, tool: &str, input: &Value, wire: &Wire) {
        let places = [&*self.job.worktree, &*temp_dir()];
        let breach = forbids(breaches(&self.job.forbids, places, tool, input));
        wire.send(&permission::verdict(request, breach.as_ref()));
    }

    fn interrupt(&mut self, wire: &Wire) {
        self.request(&json!({"subtype": "interrupt"}), wire);
    }

    /// The CLI waits 5 s for its background shells.
    fn linger(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn session(&self, _reading: &Reading) -> Option<String> {
        let is_there = self.transcript.is_there();
        is_there.then(|| self.job.session.clone())
    }

    fn recorded(&self) -> Usage {
        self.transcript.usage()
    }
}

fn user_message(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}})
}
