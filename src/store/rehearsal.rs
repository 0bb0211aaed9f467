//! What a dry run has decided, in memory: each of its steps finds what the steps before it would have changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of a board of which nothing is written.
#[derive(Debug, Default)]
pub(super) struct Rehearsal(Mutex<Decided>);

#[derive(Debug, Default)]
struct Decided {
    events: u64,
    files: HashMap<PathBuf, String>,
}

impl Rehearsal {
    /// How many events were decided.
    pub(super) fn events(&self) -> u64 {
        self.decided().events
    }

    /// The file's text, if that was changed.
    pub(super) fn text(&self, file: &Path) -> Option<String> {
        self.decided().files.get(file).cloned()
    }

    /// The files that were changed.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.decided().files.keys().cloned().collect()
    }

    /// Keeps a change: so many events, and the new texts of files.
    pub(super) fn keep(&self, events: usize, files: impl Iterator<Item = (PathBuf, String)>) {
        let mut decided = self.decided();
        decided.events += events as u64;
        decided.files.extend(files);
    }

    fn decided(&self) -> MutexGuard<'_, Decided> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
