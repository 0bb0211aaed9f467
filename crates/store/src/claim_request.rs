//! A request for work.

use super::named_item::NamedItem;
use super::queue::Queue;
use tavern_core::eligible::{Roles, Seeker};
use tavern_core::lease::Holder;

/// A request for work: the agent, and where it looks.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    pub agent: String,
    pub role: String,
    pub roles: Roles,
    /// A person chats with the agent on `item`, in any status.
    pub is_chat: bool,
    /// Searched in this order; the first queue with work is used. `None`: all of the board's, by priority.
    pub queues: Option<Vec<Queue>>,
    /// If set, only this item may be claimed.
    pub item: Option<NamedItem>,
    /// Length of the lease in seconds.
    pub seconds: u32,
    pub holder: Holder,
    /// An agent program will do the work; items that it can't work on are skipped.
    pub is_for_program: bool,
    /// The runner for all items, overriding theirs.
    pub runner: Option<String>,
}

impl ClaimRequest {
    pub fn seeker(&self) -> Seeker<'_> {
        Seeker {
            agent: &self.agent,
            role: Some(&self.role),
            roles: &self.roles,
        }
    }
}
