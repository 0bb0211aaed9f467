//! The contents of `metadata.json`: the record of a run, from its start to its result. Reads and writes nothing.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runner::{Outcome, Usage};
use tavern_core::cap::Spent;
use tavern_core::lease::Token;
use tavern_core::rule::Breach;
use tavern_core::task::{TaskId, Timestamp};

/// The contents of `metadata.json`.
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
    /// The model as the program reports it, else as requested.
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
    /// Its result; absent while it runs, and for ever if its supervisor died.
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
    /// It ended well, but did not report that it is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// The agent's question to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// When the provider's limit ends, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    #[serde(default)]
    pub usage: Usage,
    /// Model turns, where the program counts them.
    #[serde(default)]
    pub turns: u32,
    #[serde(default)]
    pub tool_calls: u32,
    /// Actions that the agent tried and was denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<String>,
    /// Refused calls that a person can allow, by `yes` to its question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Acts outside of its work that a rule of the board forbids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<Breach>,
    /// Breaches by done work that a person was asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<Breach>,
    /// The learnings that it received, in its prompt or while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knowledge: Vec<String>,
    /// At most 150 characters.
    #[serde(default)]
    pub summary: String,
    /// The file is torn, empty or gone: the values come from the log and the run's other files, and the rest is
    /// unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

impl Metadata {
    /// Returns the record for the run of this claim; all other fields are unset.
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

    /// Returns its state in a word: its outcome, or `running` or `damaged`.
    pub fn state(&self) -> &'static str {
        match self.outcome {
            _ if self.damaged => "damaged",
            Some(outcome) => outcome.as_str(),
            None => "running",
        }
    }

    /// Returns the text of its file.
    pub(super) fn file_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("metadata is plain data");
        text + "\n"
    }

    /// Returns its duration in seconds, until its end or `now`.
    pub fn seconds(&self, now: Timestamp) -> i64 {
        (self.ended.unwrap_or(now) - self.started)
            .num_seconds()
            .max(0)
    }

    /// Returns its usage until its end, or `now`.
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

/// Returns the name of the run for a claim with this token.
pub fn run_name(task: &TaskId, token: Token) -> String {
    format!("{task}@{token}")
}
