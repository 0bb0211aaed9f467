//! A change of the board as decided, before any of it is written.

use std::mem;
use std::path::PathBuf;

use super::entry::{Entry, LeaseEntry};
use super::file_version::QueueFiles;
use super::queue::{Queue, Text};
use super::text_history::Writer;
use tavern_core::decide::LeaseChange;
use tavern_core::text::{Edit, apply_in_place};

/// The entries to log and the files to replace, atomically.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) entries: Vec<Entry>,
    /// Replaced in this order, after the entries are logged.
    pub(super) files: Vec<Rewrite>,
}

/// A file and its new content.
#[derive(Debug)]
pub(super) enum Rewrite {
    Queue(QueueRewrite),
    /// A file that only Tavern writes.
    File {
        path: PathBuf,
        content: String,
    },
    /// An external save as it was made, kept beside a known text.
    Save {
        queue: Queue,
        known: String,
        text: String,
        /// The digest of its merge base.
        base: u64,
        writer: Writer,
    },
}

/// A new text of a queue, which other programs may save at any moment.
#[derive(Debug)]
pub(super) struct QueueRewrite {
    pub(super) queue: Queue,
    /// The stamps of its files at the decision. If they differ by now, both texts are merged.
    pub(super) expected: QueueFiles,
    pub(super) content: String,
    /// The file has `content` already; only the baseline is written.
    pub(super) is_shown: bool,
}

/// An event, with its edits to a queue and its change of a lease.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) entry: Entry,
    /// Edits to the text that the previous steps left. Empty if the queue stays as it is.
    pub(super) edits: Vec<Edit>,
    pub(super) lease: LeaseChange,
}

impl Change {
    /// Builds a change from successive steps; the first one applies to `text`, which was read under the lock (in a dry
    /// run without).
    pub(super) fn of_queue(sight: QueueFiles, text: Text, mut steps: Vec<Step>) -> Change {
        let edits = steps
            .iter_mut()
            .map(|step| mem::take(&mut step.edits))
            .filter(|edits| !edits.is_empty());
        let edits: Vec<Vec<Edit>> = edits.collect();
        let entries = steps.into_iter().map(Step::into_entry).collect();
        if edits.is_empty() {
            return Change::notes(entries);
        }
        let Text { queue, content, .. } = text;
        let mut content = content.into_string();
        edits
            .iter()
            .for_each(|edits| apply_in_place(&mut content, edits));
        Change::rewrite(queue, sight, content, entries)
    }

    /// Builds a change of steps that leave the queue's text as it is; Tavern stores it as the baseline.
    pub(super) fn known(
        sight: QueueFiles,
        queue: Queue,
        content: String,
        steps: Vec<Step>,
    ) -> Change {
        let rewrite = QueueRewrite {
            queue,
            expected: sight,
            content,
            is_shown: true,
        };
        Change {
            entries: steps.into_iter().map(Step::into_entry).collect(),
            files: vec![Rewrite::Queue(rewrite)],
        }
    }

    /// Builds a change that replaces the queue's files, as of `sight`, with `content`.
    pub(super) fn rewrite(
        queue: Queue,
        sight: QueueFiles,
        content: String,
        entries: Vec<Entry>,
    ) -> Change {
        let rewrite = QueueRewrite {
            queue,
            expected: sight,
            content,
            is_shown: false,
        };
        Change {
            entries,
            files: vec![Rewrite::Queue(rewrite)],
        }
    }

    /// Builds a change that only logs entries.
    pub(super) fn notes(entries: Vec<Entry>) -> Change {
        Change {
            entries,
            files: Vec::new(),
        }
    }

    /// Returns the queues with replaced files.
    pub(super) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.files.iter().filter_map(|file| match file {
            Rewrite::Queue(rewrite) => Some(&rewrite.queue),
            Rewrite::File { .. } | Rewrite::Save { .. } => None,
        })
    }

    /// Numbers the entries, starting after `last`, and ties them together.
    pub(super) fn number(&mut self, last: u64) {
        let end = last + self.entries.len() as u64;
        for (entry, seq) in self.entries.iter_mut().zip(last + 1..) {
            entry.seq = seq;
            entry.through = (seq < end).then_some(end);
        }
    }
}

impl Step {
    /// Returns the entry to log.
    fn into_entry(self) -> Entry {
        let Step {
            mut entry, lease, ..
        } = self;
        entry.lease = match lease {
            LeaseChange::Put(lease) => Some(LeaseEntry::Put(lease)),
            LeaseChange::Drop if entry.token.is_some() => Some(LeaseEntry::Drop),
            LeaseChange::Drop | LeaseChange::Keep => None,
        };
        entry
    }
}

impl From<Entry> for Step {
    /// Makes a step that only logs.
    fn from(entry: Entry) -> Step {
        Step {
            entry,
            edits: Vec::new(),
            lease: LeaseChange::Keep,
        }
    }
}
