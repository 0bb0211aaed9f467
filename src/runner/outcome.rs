//! How a run ended, in words that the configuration and the board use too. It doesn't know what follows from it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::process::{Exit, Swept};

use super::signal::Signal;

/// How a run ended, decided from exit status, result event, error status, denials and time-outs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent gave its answer without an error. Whether the work is done is for the verification to say.
    Success,
    /// The agent, or its script, ended with an error of its own.
    Failed,
    /// Its time was up, or it gave no sign of life for too long.
    Timeout,
    /// It was ended from outside: a person, a signal, the hub.
    Killed,
    /// The provider's limit is reached; [`Ended::resets_at`] says until when, if that is known.
    UsageLimit,
    /// The provider failed, is overloaded or can't be reached.
    Overloaded,
    /// The account, its key, its credit or its right to the model: a person must mend it.
    Auth,
    /// The agent was not allowed to do what it needed, and did nothing.
    PermissionDenied,
    /// The agent waits for a person's answer (decided above, from the signal).
    Waiting,
    /// A limit of the run is reached: money, tokens, turns, memory, log.
    Budget,
    /// The agent gave its answer, but nothing was changed (decided above, from the worktree).
    Empty,
    /// The program ended without an answer, and nobody here ended it.
    Crashed,
    /// This machine, its board or its repository lacks what the run needs (decided above): a program, room, a sandbox.
    NotReady,
}

/// Why a run was ended from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// A person, a signal, the hub, a lost lease.
    Stop,
    Wall,
    Idle,
    Usd,
    Tokens,
    Memory,
    LogSize,
    /// The key was refused: trying on is in vain.
    Auth,
    /// It had given its answer and closed nothing: it is only tidied away.
    Lingering,
}

/// What was used up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub usd: f64,
    /// True where the tokens are those of the session's own record, since the program was killed before it could tell. What
    /// `usd` holds is then what it had told until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimate: bool,
    /// The same, a model each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Usage>,
}

/// A tool call that was not allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    pub tool: String,
    pub input: Value,
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub outcome: Outcome,
    /// One line for people.
    pub reason: String,
    pub exit: Exit,
    /// Why it was ended from here, if it was.
    pub ended_by_us: Option<EndReason>,
    pub usage: Usage,
    /// Model turns, where the program counts them.
    pub turns: u32,
    pub tool_calls: u32,
    /// The session to resume, if it can be: `None` if the program never began it or doesn't know it any more.
    pub session: Option<String>,
    /// The agent's final text.
    pub result: String,
    pub signal: Signal,
    pub denials: Vec<Denial>,
    /// When the provider's limit ends, if it said so.
    pub resets_at: Option<DateTime<Utc>>,
    /// Messages that were sent and never read, in order: they are to be sent again.
    pub undelivered: Vec<String>,
    #[serde(rename = "seconds", with = "seconds")]
    pub duration: Duration,
    /// Processes that the program had left running, and those that even SIGKILL did not end.
    #[serde(skip)]
    pub swept: Swept,
}

impl Ended {
    /// A run of which nothing more is known than how it ended.
    pub(super) fn of(outcome: Outcome, reason: String, exit: Exit, ended_by_us: Option<EndReason>) -> Ended {
        Ended {
            outcome,
            reason,
            exit,
            ended_by_us,
            usage: Usage::default(),
            turns: 0,
            tool_calls: 0,
            session: None,
            result: String::new(),
            signal: Signal::None,
            denials: Vec::new(),
            resets_at: None,
            undelivered: Vec::new(),
            duration: Duration::ZERO,
            swept: Swept::default(),
        }
    }
}

impl Outcome {
    pub const ALL: [Outcome; 13] = [
        Outcome::Success,
        Outcome::Failed,
        Outcome::Timeout,
        Outcome::Killed,
        Outcome::UsageLimit,
        Outcome::Overloaded,
        Outcome::Auth,
        Outcome::PermissionDenied,
        Outcome::Waiting,
        Outcome::Budget,
        Outcome::Empty,
        Outcome::Crashed,
        Outcome::NotReady,
    ];

    /// As it is written in the configuration and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Failed => "failed",
            Outcome::Timeout => "timeout",
            Outcome::Killed => "killed",
            Outcome::UsageLimit => "usage_limit",
            Outcome::Overloaded => "overloaded",
            Outcome::Auth => "auth",
            Outcome::PermissionDenied => "permission_denied",
            Outcome::Waiting => "waiting",
            Outcome::Budget => "budget",
            Outcome::Empty => "empty",
            Outcome::Crashed => "crashed",
            Outcome::NotReady => "not_ready",
        }
    }
}

/// A word that names no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown outcome `{0}`")]
pub struct BadOutcome(String);

impl FromStr for Outcome {
    type Err = BadOutcome;

    fn from_str(text: &str) -> Result<Outcome, BadOutcome> {
        let found = Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == text);
        found.ok_or_else(|| BadOutcome(text.chars().take(80).collect()))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl EndReason {
    /// The outcome of a run that was ended for this reason before it gave an answer.
    pub fn outcome(self) -> Outcome {
        match self {
            EndReason::Stop | EndReason::Lingering => Outcome::Killed,
            EndReason::Wall | EndReason::Idle => Outcome::Timeout,
            EndReason::Usd | EndReason::Tokens | EndReason::Memory | EndReason::LogSize => Outcome::Budget,
            EndReason::Auth => Outcome::Auth,
        }
    }

    /// There is no time to be polite: it is filling the disk or the memory.
    pub fn is_urgent(self) -> bool {
        matches!(self, EndReason::LogSize | EndReason::Memory)
    }

    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            EndReason::Stop => "it was stopped",
            EndReason::Wall => "time limit reached",
            EndReason::Idle => "no sign of life for too long",
            EndReason::Usd => "money limit reached",
            EndReason::Tokens => "token limit reached",
            EndReason::Memory => "memory limit exceeded",
            EndReason::LogSize => "output limit exceeded",
            EndReason::Auth => "the provider refused the key",
            EndReason::Lingering => "it did not end after its answer",
        }
    }
}

impl Usage {
    /// Tokens read or written for the first time: all but those that came from the provider's cache. This is what a
    /// token limit counts; a long session reads its whole past from the cache again at every step.
    pub fn fresh(&self) -> u64 {
        self.input + self.output + self.cache_write
    }

    pub fn total(&self) -> u64 {
        self.fresh() + self.cache_read
    }

    /// `self` and `other` together.
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

/// A duration in records: seconds, as a number.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_over_can_be_written_down() {
        let ended = Ended {
            outcome: Outcome::UsageLimit,
            reason: "429".to_owned(),
            exit: Exit::Code(1),
            ended_by_us: Some(EndReason::LogSize),
            usage: Usage { usd: 0.5, ..Usage::default() },
            turns: 2,
            tool_calls: 3,
            session: Some("s".to_owned()),
            result: String::new(),
            signal: Signal::Waiting("red or blue?".to_owned()),
            denials: vec![Denial { tool: "Bash".to_owned(), input: Value::Null }],
            resets_at: DateTime::from_timestamp(1_795_314_466, 0),
            undelivered: vec!["hello".to_owned()],
            duration: Duration::from_millis(1500),
            swept: Swept::default(),
        };
        let json = serde_json::to_string(&ended).expect("it has no odd fields");
        assert!(json.contains(r#""outcome":"usage_limit""#) && json.contains(r#""seconds":1.5"#), "{json}");
        assert_eq!(serde_json::from_str::<Ended>(&json).expect("it was just written"), ended);
    }

    #[test]
    fn every_outcome_is_spelt_one_way() {
        for outcome in Outcome::ALL {
            let json = serde_json::to_value(outcome).expect("it is a word");
            assert_eq!(json, Value::from(outcome.as_str()));
            assert_eq!(outcome.as_str().parse(), Ok(outcome));
        }
    }
}
