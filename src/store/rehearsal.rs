//! The board of a dry run: whatever changes it is decided as ever, and kept in memory. Nothing is written and no lock is
//! taken, and each step finds what the steps before it have decided.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::change::{Change, Rewrite};
use super::find::Board;
use super::queue::Queue;

/// What was decided so far.
#[derive(Debug, Default)]
pub(super) struct Rehearsal(Mutex<Decided>);

#[derive(Debug, Default)]
struct Decided {
    events: u64,
    queues: HashMap<PathBuf, String>,
}

impl Board {
    /// The same board, of which nothing is written from now on.
    pub fn dry(mut self) -> Board {
        self.rehearsal = Some(Arc::default());
        self
    }

    /// Nothing of it is written: what is done beside the board is to be left out too.
    pub fn is_dry(&self) -> bool {
        self.rehearsal.is_some()
    }
}

impl Rehearsal {
    /// How many events were decided.
    pub(super) fn events(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).events
    }

    /// The queue's text, if that was changed.
    pub(super) fn text(&self, queue: &Queue) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).queues.get(&queue.path).cloned()
    }

    pub(super) fn keep(&self, change: Change) {
        let mut decided = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        decided.events += change.entries.len() as u64;
        for file in change.files {
            if let Rewrite::Queue(rewrite) = file {
                decided.queues.insert(rewrite.queue.path, rewrite.content);
            }
        }
    }
}
