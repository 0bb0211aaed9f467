//! What a dry run has decided, in memory: each of its steps finds what the steps before it would have changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::entry::Entry;

/// Of a board of which nothing is written.
#[derive(Debug, Default)]
pub(super) struct Rehearsal(Mutex<Decided>);

#[derive(Debug, Default)]
struct Decided {
    entries: Vec<Entry>,
    files: HashMap<PathBuf, String>,
}

impl Rehearsal {
    /// How many events were decided.
    pub(super) fn events(&self) -> u64 {
        self.decided().entries.len() as u64
    }

    /// What was decided, the oldest first.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.decided().entries.clone()
    }

    /// The file's text, if that was changed.
    pub(super) fn text(&self, file: &Path) -> Option<String> {
        self.decided().files.get(file).cloned()
    }

    /// The files that were changed.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.decided().files.keys().cloned().collect()
    }

    /// Keeps a change: its events, and the new texts of files.
    pub(super) fn keep(&self, entries: Vec<Entry>, files: impl Iterator<Item = (PathBuf, String)>) {
        let mut decided = self.decided();
        decided.entries.extend(entries);
        decided.files.extend(files);
    }

    fn decided(&self) -> MutexGuard<'_, Decided> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
