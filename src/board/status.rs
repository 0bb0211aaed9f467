//! The words for where an item stands and what its holder does with it. Knows no transition.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A moment, always in UTC, written as RFC 3339 with whole seconds.
pub type Timestamp = DateTime<Utc>;

/// Where a task stands. `specs/states.md` draws the arrows between these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not yet released for work.
    Draft,
    /// May be claimed when its dependencies are completed and its back-off is over.
    Pending,
    /// Held by an agent under a lease.
    InProgress,
    /// Verified at one commit; waits for a reviewer.
    InReview,
    /// Held by a reviewer under a lease.
    Reviewing,
    /// Parked for a person, its children or a limit.
    Waiting,
    /// Verified and approved at one commit; waits for integration.
    Approved,
    /// Integrated (or ticked by a person).
    Completed,
    /// Attempts used up; `tavern-release --revive` brings it back.
    Dead,
    /// Given up by a person.
    Cancelled,
}

impl Status {
    pub const ALL: [Status; 10] = [
        Status::Draft,
        Status::Pending,
        Status::InProgress,
        Status::InReview,
        Status::Reviewing,
        Status::Waiting,
        Status::Approved,
        Status::Completed,
        Status::Dead,
        Status::Cancelled,
    ];

    /// As written in `status:` and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Draft => "draft",
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::InReview => "in_review",
            Status::Reviewing => "reviewing",
            Status::Waiting => "waiting",
            Status::Approved => "approved",
            Status::Completed => "completed",
            Status::Dead => "dead",
            Status::Cancelled => "cancelled",
        }
    }

    /// Somebody holds it under a lease.
    pub fn is_held(self) -> bool {
        matches!(self, Status::InProgress | Status::Reviewing)
    }

    /// Nothing more will be done to it unless a person asks.
    pub fn is_ended(self) -> bool {
        matches!(self, Status::Completed | Status::Dead | Status::Cancelled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Status {
    type Err = ();

    fn from_str(text: &str) -> Result<Status, ()> {
        Status::ALL.into_iter().find(|status| status.as_str() == text).ok_or(())
    }
}

/// What the holder of a task is doing with it. Any of them may follow any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Execute,
    Delegate,
    Plan,
    BreakUp,
    /// Its children have ended; what they made is put together.
    Unify,
}

impl Mode {
    pub const ALL: [Mode; 5] = [Mode::Execute, Mode::Delegate, Mode::Plan, Mode::BreakUp, Mode::Unify];

    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Execute => "execute",
            Mode::Delegate => "delegate",
            Mode::Plan => "plan",
            Mode::BreakUp => "break_up",
            Mode::Unify => "unify",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Mode, ()> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or(())
    }
}

/// What it means to a parent that this child used up its attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The child gets its attempts once more, with a clear head; after that a person is asked.
    Retry,
    /// The parent waits until a person has looked after the child.
    Escalate,
    /// The parent is woken and told.
    #[default]
    GoOn,
}

impl OnFailure {
    pub const ALL: [OnFailure; 3] = [OnFailure::Retry, OnFailure::Escalate, OnFailure::GoOn];

    pub fn as_str(self) -> &'static str {
        match self {
            OnFailure::Retry => "retry",
            OnFailure::Escalate => "escalate",
            OnFailure::GoOn => "go_on",
        }
    }

    /// A child with this status keeps its parent waiting for a person.
    pub fn keeps_waiting(self, child: Status) -> bool {
        child == Status::Dead && self != OnFailure::GoOn
    }
}

impl FromStr for OnFailure {
    type Err = ();

    fn from_str(text: &str) -> Result<OnFailure, ()> {
        OnFailure::ALL.into_iter().find(|then| then.as_str() == text).ok_or(())
    }
}

/// When a person is asked about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// Before it is started.
    Start,
    /// Before its work is merged.
    Merge,
}

impl Consent {
    pub const ALL: [Consent; 2] = [Consent::Start, Consent::Merge];

    pub fn as_str(self) -> &'static str {
        match self {
            Consent::Start => "start",
            Consent::Merge => "merge",
        }
    }

    /// Reads the value of `approve`: start, merge, a list of these, or `both`.
    pub fn read_all<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<Vec<Consent>> {
        let mut moments = Vec::new();
        for word in words {
            match word {
                "both" => moments.extend(Consent::ALL),
                word => moments.push(Consent::ALL.into_iter().find(|moment| moment.as_str() == word)?),
            }
        }
        Some(moments)
    }
}

/// What a claim is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Work,
    /// To look at work that is in review.
    Review,
    /// A person sits down with the agent: whatever the item's status is, it has it again afterwards.
    Chat,
}
