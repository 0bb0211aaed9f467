//! Who looks for work, and where.

use super::named_item::NamedItem;
use super::queue::Queue;
use tavern_core::eligible::{Roles, Seeker};
use tavern_core::lease::Holder;

/// Who looks for work, and where.
#[derive(Clone, Debug)]
pub struct Seek {
    pub agent: String,
    pub role: String,
    pub roles: Roles,
    /// A person sits down with the agent on `item`, whatever its status is.
    pub is_chat: bool,
    /// Looked at in this order; work in the first that has some is taken.
    pub queues: Vec<Queue>,
    /// Only this one, if it may be taken.
    pub item: Option<NamedItem>,
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
        Seeker {
            agent: &self.agent,
            role: Some(&self.role),
            roles: &self.roles,
        }
    }
}
