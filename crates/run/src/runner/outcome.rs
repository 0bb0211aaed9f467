//! How a run ended, in the words of the configuration and the board. Knows nothing of the effects.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::signal::Signal;
use tavern_sys::secrets::redact;

/// How a run ended, decided from exit status, result event, error status, denials and timeouts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent answered without an error. Verification decides whether the work is done.
    Success,
    /// The agent, or its script, ended with an error of its own.
    Failed,
    /// The time limit passed, or it showed no sign of life for too long.
    Timeout,
    /// It was ended from outside: by a person, a signal, the hub.
    Killed,
    /// The provider's limit is reached; [`SessionEnd::resets_at`] says until when, if that is known.
    UsageLimit,
    /// The provider failed, is overloaded or can't be reached.
    Overloaded,
    /// The account, its key, its credit or its access to the model: a person must fix it.
    Auth,
    /// The agent was denied the calls that it needed, and did nothing.
    PermissionDenied,
    /// The agent waits for a person's answer (decided above, from the signal).
    Waiting,
    /// A limit of the run is reached: money, tokens, turns, memory, log.
    Budget,
    /// A cap on the runs of its item, queue, day, drain or board is reached.
    Capped,
    /// The agent answered, but nothing was changed (decided above, from the worktree).
    Empty,
    /// The program ended without an answer, and was not ended from here.
    Crashed,
    /// Its script names a program that is not installed.
    NotFound,
    /// This machine, its board or its repository lacks a need of the run (decided above): a program, room, a sandbox.
    NotReady,
}

/// Why a run was ended from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// A person, a signal, the hub, a lost lease.
    Stop,
    Wall,
    Idle,
    Usd,
    Tokens,
    Memory,
    LogSize,
    /// A cap on many runs.
    Cap,
    /// It had answered but did not exit, so it is only cleaned up.
    Lingering,
}

/// Tokens and money used.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub usd: f64,
    /// True if the tokens come from the session's own record, since the program was killed before it reported them.
    /// `usd` is then the amount reported until that moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimate: bool,
    /// Usage by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Usage>,
}

/// A tool call that was not allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    pub tool: String,
    pub input: Value,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEnd {
    pub outcome: Outcome,
    /// One line for people.
    pub reason: String,
    pub usage: Usage,
    /// Model turns, if the program counts them.
    pub turns: u32,
    pub tool_calls: u32,
    /// The session to resume; `None` if the program never began it, or no longer knows it.
    pub session: Option<String>,
    /// The agent's final text, for people.
    pub result: String,
    /// The end of the agent's own text, in one piece: the only place of a verdict or a plan.
    pub answer: String,
    pub signal: Signal,
    pub denials: Vec<Denial>,
    /// Refused calls that a person can allow.
    pub refused: Vec<String>,
    /// When the provider's limit ends, if reported.
    pub resets_at: Option<DateTime<Utc>>,
}

impl SessionEnd {
    /// Redacts secrets in all texts.
    pub(super) fn without_secrets(self) -> SessionEnd {
        let told = |text: &str| redact(text).into_owned();
        let signal = match self.signal {
            Signal::Waiting(question) => Signal::Waiting(told(&question)),
            other => other,
        };
        let told_denial = |denial: Denial| {
            let input =
                serde_json::from_str(&redact(&denial.input.to_string())).unwrap_or_default();
            Denial { input, ..denial }
        };
        let denials = self.denials.into_iter().map(told_denial).collect();
        let refused = self.refused.iter().map(|call| told(call)).collect();
        SessionEnd {
            reason: told(&self.reason),
            result: told(&self.result),
            answer: told(&self.answer),
            signal,
            denials,
            refused,
            ..self
        }
    }

    /// Returns a successful end: the work is known to be done without a session.
    pub fn done(reason: String) -> SessionEnd {
        SessionEnd {
            signal: Signal::Done,
            ..SessionEnd::of(Outcome::Success, reason)
        }
    }

    /// Returns an end without further details.
    pub(super) fn of(outcome: Outcome, reason: String) -> SessionEnd {
        SessionEnd {
            outcome,
            reason,
            usage: Usage::default(),
            turns: 0,
            tool_calls: 0,
            session: None,
            result: String::new(),
            answer: String::new(),
            signal: Signal::None,
            denials: Vec::new(),
            refused: Vec::new(),
            resets_at: None,
        }
    }
}

impl Outcome {
    /// The name of each outcome in the configuration and in records.
    pub const NAMES: [(Outcome, &str); 15] = [
        (Outcome::Success, "success"),
        (Outcome::Failed, "failed"),
        (Outcome::Timeout, "timeout"),
        (Outcome::Killed, "killed"),
        (Outcome::UsageLimit, "usage_limit"),
        (Outcome::Overloaded, "overloaded"),
        (Outcome::Auth, "auth"),
        (Outcome::PermissionDenied, "permission_denied"),
        (Outcome::Waiting, "waiting"),
        (Outcome::Budget, "budget"),
        (Outcome::Capped, "capped"),
        (Outcome::Empty, "empty"),
        (Outcome::Crashed, "crashed"),
        (Outcome::NotFound, "not_found"),
        (Outcome::NotReady, "not_ready"),
    ];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        Outcome::NAMES[self as usize].1
    }
}

/// A word that names no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown outcome `{0}`")]
pub struct BadOutcome(String);

impl FromStr for Outcome {
    type Err = BadOutcome;

    fn from_str(text: &str) -> Result<Outcome, BadOutcome> {
        let found = Outcome::NAMES.into_iter().find(|(_, name)| *name == text);
        found
            .map(|(outcome, _)| outcome)
            .ok_or_else(|| BadOutcome(text.chars().take(80).collect()))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl EndReason {
    /// Returns the outcome of a run that was ended for this reason before it answered.
    pub fn outcome(self) -> Outcome {
        match self {
            EndReason::Stop | EndReason::Lingering => Outcome::Killed,
            EndReason::Wall | EndReason::Idle => Outcome::Timeout,
            EndReason::Usd | EndReason::Tokens | EndReason::Memory | EndReason::LogSize => {
                Outcome::Budget
            }
            EndReason::Cap => Outcome::Capped,
        }
    }

    /// Returns true if it must be killed at once, since it fills the disk or the memory.
    pub fn is_urgent(self) -> bool {
        matches!(self, EndReason::LogSize | EndReason::Memory)
    }

    /// Describes it for people.
    pub fn describe(self) -> &'static str {
        match self {
            EndReason::Stop => "it was stopped",
            EndReason::Wall => "time limit reached",
            EndReason::Idle => "no sign of life for too long",
            EndReason::Usd => "money limit reached",
            EndReason::Tokens => "token limit reached",
            EndReason::Memory => "memory limit exceeded",
            EndReason::LogSize => "output limit exceeded",
            EndReason::Cap => "a budget is spent",
            EndReason::Lingering => "it did not end after its answer",
        }
    }
}

impl Usage {
    /// Returns the tokens read or written for the first time: all but those from the provider's cache. Token limits
    /// count these, since a long session reads its whole past from the cache at every step.
    pub fn fresh(&self) -> u64 {
        self.input + self.output + self.cache_write
    }

    pub fn total(&self) -> u64 {
        self.fresh() + self.cache_read
    }

    /// Returns true if any usage is known; some programs report none.
    pub fn is_known(&self) -> bool {
        self.total() > 0 || self.usd > 0.0
    }

    /// Returns the usage since `before`.
    pub fn since(&self, before: &Usage) -> Usage {
        let models = self.models.iter().map(|(model, usage)| {
            let was = before.models.get(model);
            (
                model.clone(),
                was.map_or_else(|| usage.clone(), |was| usage.since(was)),
            )
        });
        let models = models.filter(|(_, usage)| usage.total() > 0);
        Usage {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cache_read: self.cache_read.saturating_sub(before.cache_read),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
            usd: (self.usd - before.usd).max(0.0),
            is_estimate: self.is_estimate,
            models: models.collect(),
        }
    }

    /// Adds `other` to `self`.
    pub fn add(&mut self, other: &Usage) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.usd += other.usd;
        self.is_estimate |= other.is_estimate;
        for (model, usage) in &other.models {
            self.models.entry(model.clone()).or_default().add(usage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_spelt_one_way() {
        for (outcome, name) in Outcome::NAMES {
            let json = serde_json::to_value(outcome).expect("it is a word");
            assert_eq!((json, outcome.as_str()), (Value::from(name), name));
            assert_eq!(name.parse(), Ok(outcome));
        }
    }
}
