//! The origin of a queue's text according to git, and operations under way in the git directory.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::board::Board;
use super::git_queries::AskGit;
use super::queue::{Queue, Text};
use tavern_sys::clock;

/// An older lock was left by a killed git, or a person writes a commit message. An older index is no sign that HEAD
/// will move.
const LONGEST: Duration = Duration::from_secs(10);

/// Files in the git directory while a person resolves a conflict.
const UNDER_WAY: [&str; 5] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
];

impl Board {
    /// Whether `saved`, which git wrote, continues from the newest text. `None`: HEAD holds another text.
    pub(super) fn goes_on_by_git(&self, queue: &Queue, saved: &str, newest: &str) -> Option<bool> {
        let (ask, root, path) = self.whom_to_ask(queue)?;
        (ask.goes_on)(&root, &path, saved, newest)
    }

    /// Returns the queue's text in HEAD.
    pub(super) fn head_text(&self, queue: &Queue) -> Option<String> {
        let (ask, root, path) = self.whom_to_ask(queue)?;
        (ask.head_text)(&root, &path)
    }

    /// Returns the queries to git, the root, and the queue's path relative to it.
    pub(super) fn whom_to_ask(&self, queue: &Queue) -> Option<(AskGit, PathBuf, PathBuf)> {
        let root = fs::canonicalize(self.root()).ok()?;
        // The file may have been removed.
        let folder = || {
            Some(
                fs::canonicalize(queue.path.parent()?)
                    .ok()?
                    .join(queue.path.file_name()?),
            )
        };
        let file = fs::canonicalize(&queue.path).ok().or_else(folder)?;
        let path = file.strip_prefix(&root).ok()?.to_owned();
        Some((self.git?, root, path))
    }

    /// Returns true if git is writing files, or has just written one of `queues` and will move HEAD next.
    pub(super) fn is_git_at_work<'q>(&self, queues: impl IntoIterator<Item = &'q Queue>) -> bool {
        let is_new = |name: &str| self.in_git(name).is_some_and(|path| is_new(&path));
        is_new("index.lock")
            || is_new("HEAD.lock")
            || (is_new("index")
                && queues
                    .into_iter()
                    .any(|queue| self.is_bringing(queue).unwrap_or_default()))
    }

    /// Returns true if git may be reading files one by one, for a commit or a stash: an item moved between two files
    /// could be missed in both.
    pub(super) fn is_git_reading(&self) -> bool {
        let entries = self
            .in_git("")
            .and_then(|git| fs::read_dir(git).ok())
            .into_iter()
            .flatten()
            .flatten();
        // A stash has an index of its own.
        let is_lock = |name: &[u8]| name.starts_with(b"index") && name.ends_with(b".lock");
        entries
            .filter(|entry| is_lock(entry.file_name().as_bytes()))
            .any(|entry| is_new(&entry.path()))
    }

    fn is_bringing(&self, queue: &Queue) -> Option<bool> {
        let ((ask, root, path), text) = (self.whom_to_ask(queue)?, self.read_file(queue).ok()?);
        Some((ask.is_bringing)(&root, &path, &text.content))
    }

    /// Returns true if git left conflict markers in the queue for a person to resolve.
    pub(super) fn is_unresolved(&self, queue: &Queue) -> bool {
        let mut under_way = UNDER_WAY.iter().filter_map(|name| self.in_git(name));
        let has_markers = |text: Text| {
            text.content
                .lines()
                .any(|line| line.starts_with("<<<<<<< "))
        };
        under_way.any(|path| path.exists()) && self.read_file(queue).is_ok_and(has_markers)
    }

    fn in_git(&self, name: &str) -> Option<PathBuf> {
        self.private("")
            .parent()
            .filter(|_| self.private("") != self.path(""))
            .map(|git| git.join(name))
    }
}

fn is_new(path: &Path) -> bool {
    let age = fs::metadata(path)
        .and_then(|file| file.modified())
        .ok()
        .and_then(clock::since);
    age.is_some_and(|age| age < LONGEST)
}
