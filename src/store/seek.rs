//! Who looks for work, and where.

use serde::{Deserialize, Serialize};

use super::leases::no_process;
use super::queue::Queue;
use crate::board::eligible::{Roles, Seeker};
use crate::board::lease::Holder;
use crate::board::task::TaskId;

/// Who looks for work, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seek {
    pub agent: String,
    pub role: String,
    pub roles: Roles,
    /// A person sits down with the agent on `task`, whatever its status is.
    pub is_chat: bool,
    /// Looked at in this order; work in the first that has some is taken.
    pub queues: Vec<Queue>,
    /// Only this task, if it may be taken.
    pub task: Option<TaskId>,
    /// Length of the lease in seconds.
    pub seconds: u32,
    pub holder: Holder,
    /// An agent program will work on it: items that it could do nothing with are passed over.
    pub is_for_program: bool,
    /// The runner of all items, whatever they name.
    pub runner: Option<String>,
}

impl Seek {
    pub fn seeker(&self) -> Seeker<'_> {
        Seeker { agent: &self.agent, role: Some(&self.role), roles: &self.roles }
    }

    /// Another may take for it: what it would take does not depend on who asks.
    pub(super) fn may_be_served(&self) -> bool {
        !self.is_chat && !self.roles.reviewing.contains(&self.role)
    }

    /// One of them may take what the other may, but for the item that one of them names.
    pub(super) fn is_like(&self, other: &Seek) -> bool {
        let of_nobody = |seek: &Seek| {
            let (agent, holder) = (String::new(), no_process());
            Seek { agent, holder, seconds: 0, task: None, ..seek.clone() }
        };
        of_nobody(self) == of_nobody(other)
    }
}
