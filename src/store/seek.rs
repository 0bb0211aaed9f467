//! Who looks for work, and where.

use serde::{Deserialize, Serialize};

use super::leases::no_process;
use super::queue::Queue;
use crate::board::document::{Document, Item};
use crate::board::eligible::{Lack, Seeker};
use crate::board::event::Purpose;
use crate::board::lease::Holder;
use crate::board::task::{TaskId, Timestamp};

/// Who looks for work, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seek {
    pub agent: String,
    pub role: String,
    /// Its role looks at others' work.
    pub reviews: bool,
    /// Who has to approve the work on items and queues that don't say.
    pub reviewers: Vec<String>,
    /// A person sits down with the agent on `task`, whatever its status is.
    pub is_chat: bool,
    /// Looked at in this order; work in the first that has some is taken.
    pub queues: Vec<Queue>,
    /// Only this task, if it may be taken.
    pub task: Option<TaskId>,
    /// Length of the lease in seconds.
    pub seconds: u32,
    pub holder: Holder,
    /// The runner of items and queues that name none.
    pub runner: String,
    /// The runner of all items, whatever they name.
    pub only_runner: Option<String>,
    /// Runners that a provider's limit has closed, with its end: their items are in back-off until then.
    pub closed: Vec<(String, Timestamp)>,
    /// Runners that run an item's own `sh` block and can do nothing with an item that has none.
    pub scripted: Vec<String>,
}

impl Seek {
    pub(super) fn seeker(&self) -> Seeker<'_> {
        Seeker { agent: &self.agent, role: &self.role, reviews: self.reviews, reviewers: &self.reviewers }
    }

    /// Another may take for it: what it would take does not depend on who asks.
    pub(super) fn may_be_served(&self) -> bool {
        !self.is_chat && !self.reviews
    }

    /// One of them may take what the other may, but for the item that one of them names.
    pub(super) fn is_like(&self, other: &Seek) -> bool {
        let of_nobody = |seek: &Seek| {
            let (agent, holder) = (String::new(), no_process());
            Seek { agent, holder, seconds: 0, task: None, ..seek.clone() }
        };
        of_nobody(self) == of_nobody(other)
    }

    /// Can its program do something with the item now?
    pub(super) fn is_fit(&self, document: &Document<'_>, item: &Item, purpose: Purpose) -> Result<(), Lack> {
        let placeholder = TaskId::nobody();
        // What runs the work says nothing of what looks at it.
        let own = || document.task(item, placeholder).runner.filter(|_| purpose == Purpose::Work);
        let named = || own().unwrap_or_else(|| self.runner.clone());
        let runner = self.only_runner.clone().unwrap_or_else(named);
        if let Some((_, until)) = self.closed.iter().find(|(closed, _)| *closed == runner) {
            return Err(Lack::BackOff(*until));
        }
        let is_scripted = self.scripted.contains(&runner);
        let role = self.role.clone();
        match purpose {
            Purpose::Review if is_scripted => Err(Lack::NoJudge { runner, role }),
            _ if is_scripted && document.shell(item).is_none() => Err(Lack::NoScript { runner, role }),
            _ => Ok(()),
        }
    }
}
