//! Statuses of an item, and modes of its holder. Knows no transition.

use chrono::{DateTime, Utc};
use serde_yaml::Value;

/// A moment, always in UTC, written as RFC 3339 with whole seconds.
pub type Timestamp = DateTime<Utc>;

/// An enum of words, each written as here in queues, in the log and in JSON, and with blanks for people.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$meaning])* $variant,)* }

        impl $name {
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.as_str().replace('_', " "))
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<$name, ()> {
                let text = text.replace([' ', '-'], "_");
                $name::ALL.into_iter().find(|word| word.as_str() == text).ok_or(())
            }
        }
    };
}

pub use words;

words! {
    /// The status of a task. `specs/states.md` has the transitions between these.
    Status {
        /// Not yet released for work.
        Draft "draft",
        /// May be claimed when its dependencies are completed and its back-off is over.
        Pending "pending",
        /// Held by an agent under a lease.
        InProgress "in_progress",
        /// Verified at one commit; waits for a reviewer.
        InReview "in_review",
        /// Held by a reviewer under a lease.
        Reviewing "reviewing",
        /// Parked for a person, its children or a limit.
        Waiting "waiting",
        /// Verified and approved at one commit; waits for integration.
        Approved "approved",
        /// Integrated (or ticked by a person).
        Completed "completed",
        /// Attempts used up; `tavern-release --revive` brings it back.
        Dead "dead",
        /// Given up by a person.
        Cancelled "cancelled",
    }
}

impl Status {
    /// Returns true if it is held under a lease.
    pub fn is_held(self) -> bool {
        matches!(self, Status::InProgress | Status::Reviewing)
    }

    /// Returns true if nothing more happens to it unless a person asks.
    pub fn is_ended(self) -> bool {
        matches!(self, Status::Completed | Status::Dead | Status::Cancelled)
    }

    /// Returns true if there is work left, for agents or a person: it is neither completed nor cancelled.
    pub fn is_unfinished(self) -> bool {
        !matches!(self, Status::Completed | Status::Cancelled)
    }
}

words! {
    /// The holder's mode. Any mode may follow any other.
    #[derive(Default)]
    Mode {
        #[default]
        Execute "execute",
        Delegate "delegate",
        Plan "plan",
        BreakUp "break_up",
        /// Its children have ended, and their results are combined.
        Unify "unify",
    }
}

words! {
    /// Effect on a parent when this child used up its attempts.
    #[derive(Default)]
    OnFailure {
        /// The child gets its attempts once more; after that a person is asked.
        Retry "retry",
        /// The parent waits until a person has looked after the child.
        Escalate "escalate",
        /// The parent is woken and informed.
        #[default]
        GoOn "go_on",
    }
}

impl OnFailure {
    /// Returns true if a child with this status keeps its parent waiting for a person.
    pub fn keeps_waiting(self, child: Status) -> bool {
        child == Status::Dead && self != OnFailure::GoOn
    }
}

words! {
    /// The expected result of an item.
    Expected {
        /// The agent's last message; a change is optional.
        Answer "answer",
        /// A change, independent of its commands.
        Change "change",
    }
}

words! {
    /// When a person has to approve an item.
    Consent {
        /// Before it is started.
        Start "start",
        /// Before its work is merged.
        Merge "merge",
    }
}

impl Consent {
    /// Parses the value of `approve`: start, merge, a list of these, or `both`.
    pub fn read_all<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<Vec<Consent>> {
        let mut moments = Vec::new();
        for word in words {
            match word {
                "both" => moments.extend(Consent::ALL),
                word => moments.push(word.parse().ok()?),
            }
        }
        Some(moments)
    }

    /// Returns the value of `approve` with `own` and the merge.
    pub fn with_merge(own: &[Consent]) -> Value {
        let is_own = |moment: &Consent| own.contains(moment) || *moment == Consent::Merge;
        let moments: Vec<&str> = Consent::ALL
            .into_iter()
            .filter(is_own)
            .map(Consent::as_str)
            .collect();
        if moments.len() == 1 {
            moments[0].into()
        } else {
            moments.into()
        }
    }
}

/// The purpose of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Work,
    /// To review work.
    Review,
    /// To chat with the agent: the item's status is restored afterwards.
    Chat,
}
