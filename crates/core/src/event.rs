//! Events that can happen to a task.
//!
//! An [`Event`] is a request of a program; [`super::decide`] returns its changes or the refusal. Knows
//! nothing of the log's spelling, which is the store's.

use serde::{Deserialize, Serialize};

use super::id::TaskId;
use super::lease::{Holder, Life, Token, Work};
use super::plan::Plan;
use super::status::{Mode, Status, Timestamp, words};

pub use super::status::Purpose;

/// A program's request. The holder of the task proves itself by its token.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An agent claims the task.
    Claim(Claim),
    /// The holder has made its worktree and is about to start its agent program.
    Start { token: Token, work: Work },
    /// The holder's work passed its `done_when` at `commit` (`None`: the task needs no repository).
    /// `reviewers` must approve it before its merge. If `asks` gives a reason, a person must too: the item
    /// gets `approve: merge`.
    Submit {
        token: Token,
        commit: Option<String>,
        reviewers: Vec<String>,
        asks: Option<String>,
    },
    /// A reviewer approves the work at `commit`.
    Approve {
        review: Review,
        commit: Option<String>,
    },
    /// A reviewer rejects the work with `findings`. After `most` rounds the task is given up.
    Reject {
        review: Review,
        findings: String,
        most: u32,
    },
    /// The holder has turned its item into others, which begin with the status `to`.
    Plan {
        token: Token,
        plan: Plan,
        to: Status,
    },
    /// The holder's work continues when its children have ended.
    Park { token: Token, children: Vec<TaskId> },
    /// The holder changes the mode.
    Shift { token: Token, mode: Mode },
    /// The holder has done the steps with these numbers, counted from 1.
    Tick { token: Token, steps: Vec<usize> },
    /// A person allows the task to start.
    Allow { by: String },
    /// The holder's run failed.
    Fail {
        token: Token,
        retry: Retry,
        reason: String,
    },
    /// The holder returns the task without fault.
    Return {
        token: Token,
        retry: Retry,
        reason: String,
    },
    /// A person takes the task from its holder.
    Withdraw {
        token: Token,
        retry: Retry,
        reason: Option<String>,
    },
    /// The holder asks a person.
    Ask { token: Token, question: String },
    /// The lease expired, or its holder is gone; sent by `tavern-reap` after it checked the holder.
    Reap {
        token: Option<Token>,
        life: Life,
        retry: Retry,
        reason: String,
    },
    /// The task has waited too long for a person or its children.
    Expire { reason: String },
    /// Approved work is on the integration branch at `commit`.
    Integrate { commit: Option<String> },
    /// Approved work could not be integrated.
    SendBack { retry: Retry, reason: String },
    /// A person answers or releases a waiting task, or ends its back-off.
    Resume { reason: Option<String> },
    /// A person takes a task from the dead letter lane.
    Revive { reason: Option<String> },
    /// A person reopens a completed or cancelled task.
    Reopen { reason: Option<String> },
    /// A person cancels a task.
    Cancel { reason: Option<String> },
}

/// The reviewer and its role.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// Token of the reviewing agent's lease; `None`: a person, without a lease.
    pub token: Option<Token>,
    pub by: String,
    /// The agent's role, or a person.
    pub role: String,
    /// All required approvers, one name for each approval.
    pub reviewers: Vec<String>,
}

/// The claiming agent, its role and the length of its lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub agent: String,
    pub role: String,
    pub purpose: Purpose,
    pub token: Token,
    /// Length of the lease in seconds.
    pub seconds: u32,
    pub holder: Holder,
    /// Default reviewers for items that name none.
    pub reviewers: Vec<String>,
}

/// Limits for another try of a returned task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    pub blame: Blame,
    /// Not to be claimed before this.
    pub not_before: Option<Timestamp>,
    /// Attempts after which it goes to the dead letter lane, or blameless returns after which it waits for a person.
    pub most: u32,
}

/// Blame for the return of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Uses an attempt.
    Agent,
    /// A usage limit, an overload, a killed supervisor, a pause or a lost race. It uses no attempt, but has a
    /// limit of its own against endless loops.
    Nobody,
}

impl Event {
    /// Returns the holder's token, if only the holder may send the event.
    pub fn token(&self) -> Option<Token> {
        match self {
            Event::Start { token, .. }
            | Event::Submit { token, .. }
            | Event::Plan { token, .. }
            | Event::Park { token, .. }
            | Event::Shift { token, .. }
            | Event::Tick { token, .. }
            | Event::Fail { token, .. }
            | Event::Return { token, .. }
            | Event::Withdraw { token, .. }
            | Event::Ask { token, .. } => Some(*token),
            Event::Approve { review, .. } | Event::Reject { review, .. } => review.token,
            _ => None,
        }
    }

    /// The event's name in the log, in JSON and in refusals.
    pub fn kind(&self) -> Kind {
        match self {
            Event::Claim(_) => Kind::Claimed,
            Event::Start { .. } => Kind::Started,
            Event::Submit { .. } => Kind::Submitted,
            Event::Approve { .. } => Kind::Approved,
            Event::Reject { .. } => Kind::Rejected,
            Event::Plan { .. } => Kind::Planned,
            Event::Park { .. } => Kind::Parked,
            Event::Shift { .. } => Kind::Shifted,
            Event::Tick { .. } => Kind::Ticked,
            Event::Allow { .. } => Kind::Allowed,
            Event::Fail { .. } => Kind::Failed,
            Event::Return { .. } => Kind::Returned,
            Event::Withdraw { .. } => Kind::Withdrawn,
            Event::Ask { .. } => Kind::Asked,
            Event::Reap { .. } => Kind::Reaped,
            Event::Expire { .. } => Kind::Expired,
            Event::Integrate { .. } => Kind::Integrated,
            Event::SendBack { .. } => Kind::SentBack,
            Event::Resume { .. } => Kind::Resumed,
            Event::Revive { .. } => Kind::Revived,
            Event::Reopen { .. } => Kind::Reopened,
            Event::Cancel { .. } => Kind::Cancelled,
        }
    }

    /// Returns the event with its texts mapped by the function.
    pub fn with_words(mut self, told: impl Fn(&str) -> String) -> Event {
        match &mut self {
            Event::Fail { reason, .. }
            | Event::Return { reason, .. }
            | Event::Reap { reason, .. }
            | Event::Expire { reason }
            | Event::SendBack { reason, .. }
            | Event::Ask {
                question: reason, ..
            }
            | Event::Reject {
                findings: reason, ..
            } => *reason = told(reason),
            Event::Withdraw { reason, .. }
            | Event::Resume { reason }
            | Event::Revive { reason }
            | Event::Reopen { reason }
            | Event::Cancel { reason } => *reason = reason.as_deref().map(told),
            Event::Plan { plan, .. } => plan.tell(&told),
            _ => {}
        }
        self
    }

    /// Returns the event's reason, for the log.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Event::Fail { reason, .. }
            | Event::Return { reason, .. }
            | Event::Reap { reason, .. }
            | Event::Expire { reason }
            | Event::SendBack { reason, .. } => Some(reason),
            Event::Ask { question, .. } => Some(question),
            Event::Reject { findings, .. } => Some(findings),
            Event::Shift { mode, .. } => Some(mode.as_str()),
            Event::Withdraw { reason, .. }
            | Event::Resume { reason }
            | Event::Revive { reason }
            | Event::Reopen { reason }
            | Event::Cancel { reason } => reason.as_deref(),
            _ => None,
        }
    }
}

words! {
    /// The kinds of lines in the event log.
    Kind {
        Added "added",
        Claimed "claimed",
        Started "started",
        Submitted "submitted",
        Approved "approved",
        Rejected "rejected",
        /// Turned into other items.
        Planned "planned",
        /// Set aside until its children have ended.
        Parked "parked",
        /// Its holder changed the mode.
        Shifted "shifted",
        /// Its holder has done some of its steps.
        Ticked "ticked",
        /// A person has allowed it to start.
        Allowed "allowed",
        Failed "failed",
        Returned "returned",
        Withdrawn "withdrawn",
        Asked "asked",
        Reaped "reaped",
        /// It has waited too long.
        Expired "expired",
        Integrated "integrated",
        SentBack "sent_back",
        Resumed "resumed",
        Revived "revived",
        Reopened "reopened",
        Cancelled "cancelled",
        /// A person changed it in its queue.
        Edited "edited",
        /// A person removed it from its queue.
        Removed "removed",
        /// A person moved it to another queue: one line for each of the two.
        Moved "moved",
        /// An earlier event was undone.
        Undone "undone",
        /// An undone event was done again.
        Redone "redone",
        /// It had ended, and was moved from its queue to the archive.
        Archived "archived",
        /// A message was sent to the holder. The cause is the text, the agent the sender, and the run that of
        /// a sending agent.
        Sent "sent",
        /// Its agent received a message; the cause is its text, the agent the sender.
        Told "told",
        /// A learning was noted, in the work on this task if on any. The cause is its ID and beginning.
        Learned "learned",
        /// The repository changed outside of the worktree while its agent ran.
        Strayed "strayed",
        /// Its run was diagnosed; the cause holds the symptom and the reaction.
        Diagnosed "diagnosed",
        /// A runner is closed until a person fixes it; the cause is its name, a colon, and the reason.
        Closed "closed",
        /// A note that changed no task: a violation, a conflict with the base, an ended orphan.
        Noted "noted",
    }
}
