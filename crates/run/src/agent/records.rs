//! An agent's reports of its work, as records and in words.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::runner::Outcome;
use crate::{Ruling, RunResult, ShownBy};
use tavern_core::task::{Status, TaskId, Timestamp};
use tavern_sys::clock;

/// An agent's report of its work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentRecord {
    Claimed {
        /// `None` in a dry run of an item that would receive its ID with the claim.
        task: Option<TaskId>,
        title: String,
        attempt: u32,
        runner: String,
        /// In a dry run: the commands that would run for it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commands: Vec<String>,
    },
    Ended {
        task: TaskId,
        run: String,
        outcome: Outcome,
        reason: String,
        status: Status,
        /// Tavern's own commands have passed at its commit.
        #[serde(default)]
        verified: bool,
        /// No command shows that it is done, and its agent did not report so.
        #[serde(default)]
        silent: bool,
        /// The end of its back-off.
        again_at: Option<Timestamp>,
    },
    /// The item was turned into others: their IDs, or the planner's words if there are none.
    Planned {
        task: TaskId,
        run: String,
        reason: String,
    },
    Reviewed {
        task: TaskId,
        run: String,
        verdict: Ruling,
        reason: String,
        status: Status,
    },
    /// In a dry run: the item is approved.
    WouldMerge {
        task: TaskId,
    },
    Integrated {
        task: TaskId,
        commit: Option<String>,
    },
    SentBack {
        task: TaskId,
        reason: String,
    },
    Blocked {
        task: TaskId,
        why: String,
    },
    /// The provider's limit, overload or refusal: no agent of the board uses the runner until then.
    Closed {
        runner: String,
        until: Timestamp,
        reason: String,
        hint: Option<String>,
    },
    /// A planner was needed, and a planning item was queued.
    Woken {
        task: TaskId,
        trigger: String,
    },
    Cleared {
        what: String,
    },
    /// The queues could not be committed to git; the next commit includes the changes.
    Uncommitted {
        why: String,
    },
    /// An item could not be started here, and keeps its status.
    Skipped {
        task: Option<TaskId>,
        title: String,
        why: String,
    },
    /// No item could be started here.
    Hindered {
        why: String,
    },
    Waiting {
        why: String,
        /// Set if only time ends the wait.
        #[serde(default)]
        until: Option<Timestamp>,
    },
}

impl AgentRecord {
    /// Reports the end of `run` with `result`. Its item now has `status`, and may be claimed again at `again_at`.
    pub(super) fn of(
        result: &RunResult,
        task: TaskId,
        run: String,
        status: Status,
        again_at: Option<Timestamp>,
    ) -> AgentRecord {
        if let RunResult::Reviewed { verdict, reason } = result {
            return AgentRecord::Reviewed {
                task,
                run,
                verdict: verdict.verdict,
                reason: reason.clone(),
                status,
            };
        }
        let shown_by = match result {
            RunResult::Passed { shown_by, .. } => Some(*shown_by),
            _ => None,
        };
        AgentRecord::Ended {
            task,
            run,
            outcome: result.outcome(),
            reason: result.reason(),
            status,
            verified: shown_by == Some(ShownBy::Commands),
            silent: shown_by == Some(ShownBy::Nothing),
            again_at,
        }
    }

    /// Returns the item that is dead after this.
    pub fn gives_up(&self) -> Option<&TaskId> {
        match self {
            AgentRecord::Ended { task, status, .. }
            | AgentRecord::Reviewed { task, status, .. } => {
                Some(task).filter(|_| *status == Status::Dead)
            }
            _ => None,
        }
    }

    /// Returns true if this reports progress only, and asks for no command.
    pub fn is_progress(&self) -> bool {
        matches!(
            self,
            AgentRecord::Claimed { .. }
                | AgentRecord::Ended { .. }
                | AgentRecord::Planned { .. }
                | AgentRecord::Reviewed { .. }
                | AgentRecord::Integrated { .. }
                | AgentRecord::SentBack { .. }
        )
    }

    /// Returns the run that this ends.
    pub fn run(&self) -> Option<&str> {
        match self {
            AgentRecord::Ended { run, .. }
            | AgentRecord::Planned { run, .. }
            | AgentRecord::Reviewed { run, .. } => Some(run),
            _ => None,
        }
    }

    /// Returns true if this completes an item.
    pub fn completes(&self) -> bool {
        match self {
            AgentRecord::Ended { status, .. } | AgentRecord::Reviewed { status, .. } => {
                *status == Status::Completed
            }
            AgentRecord::Planned { .. } | AgentRecord::Integrated { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for AgentRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentRecord::Claimed {
                task: None, title, ..
            } => write!(f, "`{title}` claimed, and given an ID"),
            AgentRecord::Claimed {
                task: Some(task),
                title,
                attempt: 1,
                ..
            } => write!(f, "{task} claimed: {title}"),
            AgentRecord::Claimed {
                task: Some(task),
                title,
                attempt,
                ..
            } => {
                write!(f, "{task} claimed, attempt {attempt}: {title}")
            }
            AgentRecord::Ended {
                task,
                status,
                silent: true,
                reason,
                ..
            } => write!(f, "{task} {status}: {reason}"),
            AgentRecord::Ended {
                task,
                status,
                verified,
                outcome: Outcome::Success,
                ..
            } if matches!(
                status,
                Status::Approved | Status::InReview | Status::Completed
            ) =>
            {
                let verified = if *verified { " and verified" } else { "" };
                let now = match status {
                    Status::InReview => ", now in review",
                    Status::Completed => ", now completed",
                    _ => "",
                };
                write!(f, "{task} done{verified}{now}")
            }
            AgentRecord::Planned { task, reason, .. } => write!(f, "{task} planned: {reason}"),
            AgentRecord::Ended {
                task,
                status: Status::Waiting,
                outcome: Outcome::Success,
                reason,
                ..
            } => {
                write!(f, "{task} {reason}")
            }
            AgentRecord::Ended {
                task,
                status: Status::Waiting,
                outcome: Outcome::Waiting,
                reason,
                ..
            } => {
                write!(f, "{task} asks: {reason}")
            }
            AgentRecord::Reviewed {
                task,
                reason,
                status: Status::Approved,
                ..
            } => write!(f, "{task} {reason}"),
            AgentRecord::Reviewed {
                task,
                reason,
                status,
                ..
            } => write!(f, "{task} {reason}, now {status}"),
            AgentRecord::Ended {
                task,
                status,
                outcome,
                reason,
                again_at,
                ..
            } => {
                write!(f, "{task} {outcome}, now {status}: {reason}")?;
                again_at.map_or(Ok(()), |at| write!(f, "; again at {}", clock::shown(at)))
            }
            AgentRecord::WouldMerge { task } => write!(f, "{task} would be merged"),
            AgentRecord::Integrated {
                task,
                commit: Some(commit),
            } => write!(f, "{task} merged as {commit}"),
            AgentRecord::Integrated { task, commit: None } => write!(f, "{task} completed"),
            AgentRecord::SentBack { task, reason } => write!(f, "{task} sent back: {reason}"),
            AgentRecord::Blocked { task, why } => write!(f, "{task} blocked: {why}"),
            AgentRecord::Closed {
                runner,
                until,
                reason,
                hint,
            } => {
                write!(
                    f,
                    "runner {runner} is closed until {}: {reason}",
                    clock::shown(*until)
                )?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
            }
            AgentRecord::Woken { task, trigger } => write!(f, "{task} queued: {trigger}"),
            AgentRecord::Cleared { what } => write!(f, "cleared up: {what}"),
            AgentRecord::Skipped {
                task: Some(task),
                why,
                ..
            } => write!(f, "{task} skipped: {why}"),
            AgentRecord::Skipped {
                task: None,
                title,
                why,
            } => write!(f, "`{title}` skipped: {why}"),
            AgentRecord::Hindered { why } => write!(f, "can't start anything: {why}"),
            AgentRecord::Uncommitted { why } | AgentRecord::Waiting { why, .. } => f.write_str(why),
        }
    }
}
