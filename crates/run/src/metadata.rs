//! What `metadata.json` holds: what is known of a run, from its start to what it came to. Reads and writes nothing.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runner::{Outcome, Usage};
use tavern_core::cap::Spent;
use tavern_core::lease::Token;
use tavern_core::rule::Breach;
use tavern_core::task::{TaskId, Timestamp};

/// What `metadata.json` holds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Metadata {
    /// `<task>@<token>`.
    pub run: String,
    pub task: TaskId,
    pub title: String,
    pub queue: String,
    pub agent: String,
    pub role: String,
    pub attempt: u32,
    pub token: Token,
    pub runner: String,
    /// As the program says, else as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub worktree: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    pub started: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// What it came to; absent while it runs, and for ever if its supervisor died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The outcome in one line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The branch's tip when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether `done_when` passed at `commit`; absent if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// It ended well, and did not say that it is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// What the agent asks of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// When the provider's limit ends, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    #[serde(default)]
    pub usage: Usage,
    /// Model turns, where the program counts them.
    #[serde(default)]
    pub turns: u32,
    #[serde(default)]
    pub tool_calls: u32,
    /// What the agent wanted to do and was not allowed to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<String>,
    /// Calls that it was refused and that a person can allow, by `yes` to its question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The acts that are no part of its work, and that a rule of the board forbids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<Breach>,
    /// What a person was asked about, of work that is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<Breach>,
    /// The learnings that it was told, with its prompt or while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knowledge: Vec<String>,
    /// At most 150 characters.
    #[serde(default)]
    pub summary: String,
    /// The file is torn, empty or gone: what this holds comes from the log and the run's other files, and the rest is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

impl Metadata {
    /// Of the run of this claim; all else is still open.
    pub fn new(task: TaskId, token: Token, started: Timestamp) -> Metadata {
        Metadata {
            run: run_name(&task, token),
            task,
            title: String::new(),
            queue: String::new(),
            agent: String::new(),
            role: String::new(),
            attempt: 0,
            token,
            runner: String::new(),
            model: None,
            session: None,
            worktree: PathBuf::new(),
            branch: None,
            base: None,
            started,
            ended: None,
            outcome: None,
            reason: None,
            commit: None,
            verified: None,
            silent: false,
            question: None,
            resets_at: None,
            usage: Usage::default(),
            turns: 0,
            tool_calls: 0,
            denials: Vec::new(),
            refused: Vec::new(),
            acts: Vec::new(),
            breaches: Vec::new(),
            knowledge: Vec::new(),
            summary: String::new(),
            damaged: false,
        }
    }

    /// How it stands, in a word: its outcome, or `running` or `damaged`.
    pub fn state(&self) -> &'static str {
        match self.outcome {
            _ if self.damaged => "damaged",
            Some(outcome) => outcome.as_str(),
            None => "running",
        }
    }

    /// The text of its file.
    pub(super) fn file_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("metadata is plain data");
        text + "\n"
    }

    /// From start to end, or to `now` while it runs, in seconds.
    pub fn seconds(&self, now: Timestamp) -> i64 {
        (self.ended.unwrap_or(now) - self.started)
            .num_seconds()
            .max(0)
    }

    /// What it has used until its end, or `now`.
    pub fn spent(&self, now: Timestamp) -> Spent {
        Spent {
            run: self.run.clone(),
            task: self.task.clone(),
            queue: self.queue.clone(),
            agent: self.agent.clone(),
            started: self.started,
            usd: self.usage.usd,
            tokens: self.usage.fresh(),
            seconds: self.seconds(now),
        }
    }
}

/// The name of the run that a claim with this token makes.
pub fn run_name(task: &TaskId, token: Token) -> String {
    format!("{task}@{token}")
}
