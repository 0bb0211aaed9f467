//! What a run came to. It knows how an agent's answer becomes a result, and nothing of what follows for the item.

use super::review::Verdict;
use crate::board::plan::Plan;
use crate::board::task::{TaskId, Timestamp};
use crate::runner::{Ended, Outcome, Signal};

/// How an agent's part of a run ended: with something that is looked at before it counts, or with what stands as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAnswer {
    /// It says that it is done: its work is to be verified, its plan to be read. The text is for people.
    Done(String),
    /// It judged work that may have moved on meanwhile.
    Verdict(Verdict),
    Result(RunResult),
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub enum RunResult {
    /// Work that passed its verification at `commit`; none where it needs no repository.
    Passed {
        commit: Option<String>,
        reason: String,
    },
    /// Work that waits for children, which are named.
    Parked(Vec<TaskId>),
    /// Work in review was judged. The reason is the verdict in a line, or that the work has moved on.
    Reviewed {
        verdict: Verdict,
        reason: String,
    },
    Planned {
        plan: Plan,
        reason: String,
    },
    /// A person is asked this.
    Asks(String),
    /// The agent, its program or its work failed.
    Failed {
        outcome: Outcome,
        reason: String,
    },
    /// `done_when` was run and did not pass.
    Refuted(String),
    /// The provider of `runner` failed, or refused; until when, if it said so.
    ProviderFailed {
        outcome: Outcome,
        runner: Option<String>,
        reason: String,
        resets_at: Option<Timestamp>,
    },
    /// It could not begin or go on here: what this machine, its board or its repository lacks, and what to type.
    NotReady(String),
}

impl AgentAnswer {
    /// What the end of the program says by its structure, not by its words; only a successful end may ask a question.
    pub fn of(ended: &Ended, runner: &str) -> AgentAnswer {
        match (ended.outcome, &ended.signal) {
            (Outcome::Success, Signal::Waiting(question)) => RunResult::Asks(question.clone()).into(),
            (Outcome::Success, _) => AgentAnswer::Done(ended.reason.clone()),
            (outcome, _) => RunResult::of(outcome, Some(runner), &ended.reason, ended.resets_at).into(),
        }
    }

    pub fn outcome(&self) -> Outcome {
        match self {
            AgentAnswer::Done(_) | AgentAnswer::Verdict(_) => Outcome::Success,
            AgentAnswer::Result(result) => result.outcome(),
        }
    }

    /// In one line, for people.
    pub fn reason(&self) -> String {
        match self {
            AgentAnswer::Done(reason) => reason.clone(),
            AgentAnswer::Verdict(verdict) => verdict.line(),
            AgentAnswer::Result(result) => result.reason(),
        }
    }

    pub fn result(&self) -> Option<&RunResult> {
        match self {
            AgentAnswer::Result(result) => Some(result),
            AgentAnswer::Done(_) | AgentAnswer::Verdict(_) => None,
        }
    }
}

impl From<RunResult> for AgentAnswer {
    fn from(result: RunResult) -> AgentAnswer {
        AgentAnswer::Result(result)
    }
}

impl RunResult {
    /// Of a run that did not succeed.
    pub fn of(outcome: Outcome, runner: Option<&str>, reason: &str, resets_at: Option<Timestamp>) -> RunResult {
        let reason = reason.to_owned();
        match outcome {
            Outcome::Waiting => RunResult::Asks(reason),
            Outcome::NotReady => RunResult::NotReady(reason),
            Outcome::UsageLimit | Outcome::Overloaded | Outcome::Auth => {
                RunResult::ProviderFailed { outcome, runner: runner.map(str::to_owned), reason, resets_at }
            }
            outcome => RunResult::Failed { outcome, reason },
        }
    }

    /// The fault is the agent's, or its work's.
    pub fn failed(reason: impl Into<String>) -> RunResult {
        RunResult::Failed { outcome: Outcome::Failed, reason: reason.into() }
    }

    pub fn outcome(&self) -> Outcome {
        match self {
            RunResult::Passed { .. }
            | RunResult::Parked(_)
            | RunResult::Reviewed { .. }
            | RunResult::Planned { .. } => Outcome::Success,
            RunResult::Asks(_) => Outcome::Waiting,
            RunResult::Refuted(_) => Outcome::Failed,
            RunResult::Failed { outcome, .. } | RunResult::ProviderFailed { outcome, .. } => *outcome,
            RunResult::NotReady(_) => Outcome::NotReady,
        }
    }

    /// In one line, for the item, the log and people.
    pub fn reason(&self) -> String {
        match self {
            RunResult::Parked(children) => {
                let names: Vec<&str> = children.iter().map(TaskId::as_str).collect();
                format!("waits for its children: {}", names.join(", "))
            }
            RunResult::Passed { reason, .. }
            | RunResult::Reviewed { reason, .. }
            | RunResult::Planned { reason, .. }
            | RunResult::Failed { reason, .. }
            | RunResult::ProviderFailed { reason, .. }
            | RunResult::Asks(reason)
            | RunResult::Refuted(reason)
            | RunResult::NotReady(reason) => reason.clone(),
        }
    }

    /// The commit that passed.
    pub fn commit(&self) -> Option<&str> {
        match self {
            RunResult::Passed { commit, .. } => commit.as_deref(),
            _ => None,
        }
    }

    /// When the provider's limit ends, if it said so.
    pub fn resets_at(&self) -> Option<Timestamp> {
        match self {
            RunResult::ProviderFailed { resets_at, .. } => *resets_at,
            _ => None,
        }
    }

    /// What is asked of a person.
    pub fn question(&self) -> Option<&str> {
        match self {
            RunResult::Asks(question) => Some(question),
            _ => None,
        }
    }
}
