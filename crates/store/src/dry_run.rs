//! The decisions of a dry run, in memory: each step sees the changes of earlier steps.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::entry::Entry;

/// The dry run of a board; nothing is written.
#[derive(Debug, Default)]
pub(super) struct DryRunState(Mutex<Decided>);

#[derive(Debug, Default)]
struct Decided {
    entries: Vec<Entry>,
    files: HashMap<PathBuf, String>,
    /// The known texts of queues with external edits, by the queue's path.
    baselines: HashMap<PathBuf, String>,
}

impl DryRunState {
    /// Returns the number of decided events.
    pub(super) fn events(&self) -> u64 {
        self.decided().entries.len() as u64
    }

    /// Returns the decided events, oldest first.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.decided().entries.clone()
    }

    /// Returns the file's text, if it was changed.
    pub(super) fn text(&self, file: &Path) -> Option<String> {
        self.decided().files.get(file).cloned()
    }

    /// Returns the known text of the queue at `path`, if it was changed.
    pub(super) fn baseline(&self, path: &Path) -> Option<String> {
        self.decided().baselines.get(path).cloned()
    }

    /// Records the known text of the queue at `path`; its file stays.
    pub(super) fn keep_baseline(&self, path: &Path, text: &str) {
        let baselines = &mut self.decided().baselines;
        baselines.insert(path.to_owned(), text.to_owned());
    }

    /// Returns the changed files.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.decided().files.keys().cloned().collect()
    }

    /// Adds a change: its events, and the new texts of files.
    pub(super) fn keep(&self, entries: Vec<Entry>, files: impl Iterator<Item = (PathBuf, String)>) {
        let mut decided = self.decided();
        decided.entries.extend(entries);
        decided.files.extend(files);
    }

    fn decided(&self) -> MutexGuard<'_, Decided> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
