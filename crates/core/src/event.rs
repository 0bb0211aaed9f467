//! Everything that can happen to a task.
//!
//! An [`Event`] is what a program asks for; [`super::decide`] says what it changes or why not. Knows nothing of the
//! log's spelling, which is the store's.

use serde::{Deserialize, Serialize};

use super::id::TaskId;
use super::lease::{Holder, Life, Token, Work};
use super::plan::Plan;
use super::status::{Mode, Status, Timestamp, words};

pub use super::status::Purpose;

/// What a program asks for. Whoever holds the task shows it by its token.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An agent takes the task for work.
    Claim(Claim),
    /// The holder has made its worktree and is about to start its agent program.
    Start { token: Token, work: Work },
    /// The holder's work passed its `done_when` at `commit` (`None`: the task needs no repository). `reviewers` have to
    /// approve it before it is merged. So does a person where `asks` says why: the item says so (`approve: merge`) from then on.
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
    /// A reviewer gives the work back with `findings`. After `most` rounds it is given up.
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
    /// The holder's work goes on when its children have ended.
    Park { token: Token, children: Vec<TaskId> },
    /// The holder does something else with it from now on.
    Shift { token: Token, mode: Mode },
    /// The holder has done the steps with these numbers, counted from 1.
    Tick { token: Token, steps: Vec<usize> },
    /// A person allows the task to be started.
    Allow { by: String },
    /// The holder's run failed.
    Fail {
        token: Token,
        retry: Retry,
        reason: String,
    },
    /// The holder gives the task back through nobody's fault.
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
    /// The holder needs a person.
    Ask { token: Token, question: String },
    /// The lease ran out, or its holder is gone; sent by `tavern-reap`, which has looked after the holder.
    Reap {
        token: Option<Token>,
        life: Life,
        retry: Retry,
        reason: String,
    },
    /// It has waited for too long, for a person or for its children.
    Expire { reason: String },
    /// Approved work is on the integration branch at `commit`.
    Integrate { commit: Option<String> },
    /// Approved work could not be integrated.
    SendBack { retry: Retry, reason: String },
    /// A person answers or releases a waiting task, or ends its back-off.
    Resume { reason: Option<String> },
    /// A person takes a task from the dead letter lane.
    Revive { reason: Option<String> },
    /// A person wants a completed or cancelled task done again.
    Reopen { reason: Option<String> },
    /// A person gives a task up.
    Cancel { reason: Option<String> },
}

/// Who reviews, as what.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// Of the reviewing agent's lease; `None`: a person, who needs none.
    pub token: Option<Token>,
    pub by: String,
    /// The agent's role, or a person.
    pub role: String,
    /// All who have to approve, one name for each approval.
    pub reviewers: Vec<String>,
}

/// Who claims, as what and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub agent: String,
    pub role: String,
    pub purpose: Purpose,
    pub token: Token,
    /// Length of the lease in seconds.
    pub seconds: u32,
    pub holder: Holder,
    /// Who has to approve items that name nobody.
    pub reviewers: Vec<String>,
}

/// How a task that comes back is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    pub blame: Blame,
    /// Not to be claimed before this.
    pub not_before: Option<Timestamp>,
    /// Attempts (or blameless returns) after which it goes to the dead letter lane (or waits for a person).
    pub most: u32,
}

/// Whose fault it was that a task came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// It uses an attempt.
    Agent,
    /// A usage limit, an overload, a killed supervisor, a pause, a lost race: no attempt is used, but a bound of its
    /// own keeps it from looping for ever.
    Nobody,
}

impl Event {
    /// Of the holder, if nobody else may send it.
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

    /// The same with what was said in other words.
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

    /// The reason that came with it, for the log.
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
        /// Put aside until its children have ended.
        Parked "parked",
        /// Its holder changed the mode.
        Shifted "shifted",
        /// Its holder has done steps of it.
        Ticked "ticked",
        /// A person has allowed it to start.
        Allowed "allowed",
        Failed "failed",
        Returned "returned",
        Withdrawn "withdrawn",
        Asked "asked",
        Reaped "reaped",
        /// It had waited for too long.
        Expired "expired",
        Integrated "integrated",
        SentBack "sent_back",
        Resumed "resumed",
        Revived "revived",
        Reopened "reopened",
        Cancelled "cancelled",
        /// A person changed it in its queue.
        Edited "edited",
        /// A person took it out of its queue.
        Removed "removed",
        /// A person put it into another queue: a line for each of the two.
        Moved "moved",
        /// What an earlier event did was taken back.
        Undone "undone",
        /// What was taken back was done again.
        Redone "redone",
        /// It had ended, and was moved from its queue to the archive.
        Archived "archived",
        /// Somebody wrote to whoever works on it; the cause is the text, the agent the sender, the run that of an agent that
        /// sent it.
        Sent "sent",
        /// Its agent was given a message; the cause is its text, the agent whoever sent it.
        Told "told",
        /// Somebody has noted what they found out, in the work of this task if in any's; the cause is how it begins, and its ID.
        Learned "learned",
        /// While its agent ran something changed in the repository outside of its worktree.
        Strayed "strayed",
        /// What it does was found to be a sign of trouble; the cause says of which, and what was done.
        Diagnosed "diagnosed",
        /// A runner takes nothing until a person has seen to it; the cause is its name, a colon, and why.
        Closed "closed",
        /// Something worth knowing that changed no task: a violation, a conflict with the base, an ended orphan.
        Noted "noted",
    }
}
