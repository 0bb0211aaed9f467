//! Since when items have their status, from the log. Items without an ID are found by their text.

use std::collections::HashMap;

use tavern_core::document::{Document, Item};
use tavern_core::event::Kind;
use tavern_core::task::{TaskId, Timestamp};
use tavern_store::{Board, Entry, Text};

/// Time since which each item has its status, after the events passed so far.
#[derive(Default)]
pub struct StandingSince<'a> {
    by_id: HashMap<&'a TaskId, Timestamp>,
    by_text: HashMap<&'a str, Timestamp>,
    /// Time of the first event of a queue: items without events were there by then.
    queues: HashMap<&'a str, Timestamp>,
}

impl<'a> StandingSince<'a> {
    /// Passes all `entries`, the oldest first.
    pub fn after(entries: &'a [Entry]) -> StandingSince<'a> {
        let mut standing = StandingSince::default();
        for entry in entries {
            standing.pass(entry);
        }
        standing
    }

    /// Passes the next event. Returns since when its item had its previous status, or the latest possible time.
    pub fn pass(&mut self, entry: &'a Entry) -> Option<Timestamp> {
        if let Some(queue) = &entry.queue {
            self.queues.entry(queue).or_insert(entry.time);
        }
        if !entry.is_of_item() {
            return None;
        }
        let before = entry.task.as_ref().and_then(|task| self.by_id.remove(task));
        let before = before.or_else(|| self.by_text.remove(entry.change.before()?));
        let before = before.or_else(|| {
            Some(entry)
                .filter(|entry| entry.kind != Kind::Added)
                .and(self.queues.get(entry.queue.as_deref()?).copied())
        });
        let at = entry.to().map(|_| entry.time).or(before);
        let is_gone = entry.change.before().is_some() && entry.change.after().is_none();
        match (at, &entry.task, entry.change.after()) {
            (Some(at), Some(task), _) if !is_gone => drop(self.by_id.insert(task, at)),
            (Some(at), None, Some(after)) => drop(self.by_text.insert(after, at)),
            _ => {}
        }
        before
    }

    /// Returns since when an item has its status. If the log lacks the item, this is the latest possible time: when its
    /// file was saved, or else when the log began.
    pub fn of(
        &self,
        board: &Board,
        text: &Text,
        document: &Document<'_>,
        item: &Item<'_>,
    ) -> Option<Timestamp> {
        let known = item.id.as_ref().and_then(|id| self.by_id.get(id));
        let known = known
            .or_else(|| self.by_text.get(document.block(item)))
            .copied();
        // In a dry run a save may not be logged yet.
        let begun = self
            .queues
            .get(text.queue.id.as_str())
            .copied()
            .filter(|_| !board.is_dry());
        known.or_else(|| begun.into_iter().chain(text.saved_at()).min())
    }
}
