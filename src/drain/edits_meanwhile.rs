//! External edits of items while a drain works.

use std::cell::Cell;

use crate::log::deed;
use tavern_core::event::Kind;
use tavern_run::Workspace;
use tavern_store::{Entry, HAND, Queue, tail_log};

/// The last log event that was read.
pub(super) struct ByHand(Cell<u64>);

/// The number of edits that are named at once.
const NAMED: usize = 5;

impl ByHand {
    /// Starts after the event `seq`.
    pub(super) fn since(seq: u64) -> ByHand {
        ByHand(Cell::new(seq))
    }

    /// Returns a line for each item of `queues` that a person added, changed or removed since the last call,
    /// and for edits that were rejected.
    pub(super) fn news(&self, workspace: &Workspace, queues: &[Queue]) -> Vec<String> {
        let since = tail_log(&workspace.board, self.0.get()).unwrap_or_default();
        self.0
            .set(since.last().map_or(self.0.get(), |entry| entry.seq));
        let is_ours = |entry: &&Entry| {
            queues
                .iter()
                .any(|queue| entry.queue.as_ref() == Some(&queue.id))
        };
        let line = |entry: &Entry| match entry.kind {
            Kind::Added | Kind::Edited | Kind::Removed if entry.is_of_item() => Some(deed(entry)),
            // An edit that was rejected.
            Kind::Noted => entry.cause.clone(),
            _ => None,
        };
        let all = since
            .iter()
            .filter(|entry| entry.actor() == Some(HAND))
            .filter(is_ours);
        let mut lines: Vec<String> = all.filter_map(line).collect();
        let more = lines.len().saturating_sub(NAMED);
        lines.truncate(NAMED);
        lines.extend((more > 0).then(|| format!("… and {more} more by hand: tavern log")));
        lines
    }
}
