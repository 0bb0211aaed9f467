//! The locks that a killed git has left in a repository: found, waited for and removed.

#![expect(clippy::disallowed_methods, reason = "git waits for other processes of git")]

use std::path::{Path, PathBuf};
use std::thread;

use walkdir::WalkDir;

use super::registration;
use super::stale_lock::{LOCK_PATIENCE, LOCK_PAUSE, is_stale, remove};
use super::{GitError, Repository};
use crate::clock;

/// What is at the top of the user's own git directory, and Tavern writes only where it commits the queues.
const OF_THE_USER: [&str; 2] = ["index.lock", "HEAD.lock"];

impl Repository {
    /// Locks of references and of the linked worktrees in `folder` that a killed git has left, in order. Of the user's own
    /// references only that of `branch`; of the user's index and `HEAD` if `with_checkout`.
    pub fn stale_locks(&self, folder: &Path, branch: &str, with_checkout: bool) -> Result<Vec<PathBuf>, GitError> {
        let common = self.common_dir();
        let folder = registration::resolved(folder)?;
        let linked = registration::all(common)?.into_iter().filter(|entry| entry.path.parent() == Some(&folder));
        let mut roots: Vec<PathBuf> = ["refs/heads/tavern", "refs/tavern"].map(|name| common.join(name)).to_vec();
        roots.extend(linked.map(|entry| entry.admin));
        let walk = roots.iter().flat_map(|root| WalkDir::new(root).into_iter().flatten());
        let mut locks: Vec<PathBuf> = walk.map(walkdir::DirEntry::into_path).collect();
        locks.retain(|path| path.extension().is_some_and(|extension| extension == "lock"));
        // While the last of them is there, git never tidies up again by itself.
        locks.extend(["packed-refs.lock", "AUTO_MERGE.lock", "objects/maintenance.lock"].map(|name| common.join(name)));
        locks.push(common.join(format!("refs/heads/{branch}.lock")));
        locks.extend(OF_THE_USER.iter().filter(|_| with_checkout).map(|name| common.join(name)));
        locks.sort();
        locks.dedup();
        let mut stale = Vec::new();
        for lock in locks {
            if is_stale(common, self.main_worktree(), &lock)? {
                stale.push(lock);
            }
        }
        Ok(stale)
    }

    /// Returns when nobody holds `lock`, which no git holds for long: one that a killed git has left is removed.
    /// [`GitError::LockedByGit`] if it stays.
    pub(super) fn await_lock(&self, lock: &Path) -> Result<(), GitError> {
        let deadline = clock::instant() + LOCK_PATIENCE;
        while lock.exists() && !remove(self.common_dir(), self.main_worktree(), lock)? {
            if clock::instant() >= deadline {
                return Err(GitError::LockedByGit { path: lock.to_owned() });
            }
            thread::sleep(LOCK_PAUSE);
        }
        Ok(())
    }

    /// Removes one of [`Repository::stale_locks`], unless somebody is behind it by now. True if it was removed.
    pub fn remove_stale_lock(&self, lock: &Path) -> Result<bool, GitError> {
        remove(self.common_dir(), self.main_worktree(), lock)
    }
}
