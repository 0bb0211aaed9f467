//! Lock files left by killed git processes: found, distinguished from live ones, waited for, removed.
//!
//! git creates `X.lock`, writes it, may close it, and renames it to `X`. So a lock that no process has open may still
//! be live. It is stale only if no git is running that could have made it, and some seconds have passed.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use fs2::FileExt;
use walkdir::WalkDir;

use super::registration;
use super::{GitError, Repository};
use tavern_sys::clock;
use tavern_sys::process::file_in_use::may_be_in_use;

/// How long to wait for a lock of git: longer than it takes to detect that a killed git left it. Unit tests create
/// locks by hand and expect the error at once.
pub(super) const LOCK_PATIENCE: Duration = if cfg!(test) {
    Duration::ZERO
} else {
    Duration::from_secs(15)
};

/// Pause between two tries.
pub(super) const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A program that is invisible from here (in a container, for example) holds a lock of Tavern's references for less
/// time than this.
const YOUNG: TimeDelta = TimeDelta::seconds(10);

/// The user's own index and HEAD may be locked while the user writes a commit message.
const YOUNG_OF_THE_USER: TimeDelta = TimeDelta::seconds(300);

impl Repository {
    /// Returns stale locks of Tavern's references, of linked worktrees in `folder`, and of the files `others` in the
    /// git directory (the user's own), sorted.
    pub fn stale_locks(&self, folder: &Path, others: &[&str]) -> Result<Vec<PathBuf>, GitError> {
        let common = self.common_dir();
        let folder = registration::resolved(folder)?;
        let linked = registration::all(common)?
            .into_iter()
            .filter(|entry| entry.path.parent() == Some(&folder));
        let mut roots: Vec<PathBuf> = ["refs/heads/tavern", "refs/tavern"]
            .map(|name| common.join(name))
            .to_vec();
        roots.extend(linked.map(|entry| entry.admin));
        let walk = roots
            .iter()
            .flat_map(|root| WalkDir::new(root).into_iter().flatten());
        let mut locks: Vec<PathBuf> = walk.map(walkdir::DirEntry::into_path).collect();
        locks.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "lock")
        });
        // The last of these would keep git from running its maintenance ever again.
        locks.extend(
            [
                "packed-refs.lock",
                "AUTO_MERGE.lock",
                "objects/maintenance.lock",
            ]
            .map(|name| common.join(name)),
        );
        locks.extend(
            others
                .iter()
                .map(|name| common.join(format!("{name}.lock"))),
        );
        locks.sort();
        locks.dedup();
        let mut stale = Vec::new();
        for lock in locks {
            if self.is_stale(&lock)? {
                stale.push(lock);
            }
        }
        Ok(stale)
    }

    /// Waits until `lock` is free, for locks that git holds only briefly; a stale one is removed. Fails with
    /// [`GitError::LockedByGit`] if it stays, and at once if it is the user's.
    pub(super) fn await_lock(&self, lock: &Path) -> Result<(), GitError> {
        let deadline = clock::instant() + LOCK_PATIENCE;
        while lock.exists() {
            if self.is_ours(lock) && self.remove_stale_lock(lock)? {
                break;
            }
            if !self.is_ours(lock) || clock::instant() >= deadline {
                return Err(GitError::LockedByGit {
                    path: lock.to_owned(),
                });
            }
            thread::sleep(LOCK_PAUSE);
        }
        Ok(())
    }

    /// Removes a stale lock. Returns false if it is, or may be, in use, or if it is gone.
    pub fn remove_stale_lock(&self, lock: &Path) -> Result<bool, GitError> {
        if !self.is_stale(lock)? {
            return Ok(false);
        }
        let removing = || GitError::io("remove", lock);
        let file = match File::open(lock) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(removing()(error)),
        };
        // Only one of several processes may remove it: another git may create a new lock right after.
        if FileExt::try_lock(&file).is_err() {
            return Ok(false);
        }
        let seen = file.metadata().map_err(removing())?;
        match fs::symlink_metadata(lock) {
            Ok(there) if (there.dev(), there.ino()) == (seen.dev(), seen.ino()) => {}
            _ => return Ok(false),
        }
        fs::remove_file(lock).map_err(removing())?;
        Ok(true)
    }

    /// Returns true for locks on files that only Tavern writes, or that git holds only for a moment.
    pub(super) fn is_ours(&self, lock: &Path) -> bool {
        let Ok(name) = lock.strip_prefix(self.common_dir()) else {
            return false;
        };
        let roots = [
            "packed-refs.lock",
            "AUTO_MERGE.lock",
            "refs/heads/tavern",
            "refs/tavern",
            "worktrees",
        ];
        roots.iter().any(|root| name.starts_with(root))
    }

    /// Returns true if no process uses the lock any more.
    fn is_stale(&self, lock: &Path) -> Result<bool, GitError> {
        let Ok(metadata) = fs::symlink_metadata(lock) else {
            return Ok(false);
        };
        let Ok(written) = metadata.modified() else {
            return Ok(false);
        };
        let young = if self.is_ours(lock) {
            YOUNG
        } else {
            YOUNG_OF_THE_USER
        };
        if !metadata.is_file() || clock::now() - DateTime::<Utc>::from(written) < young {
            return Ok(false);
        }
        let mut folders = vec![
            self.common_dir().to_owned(),
            self.main_worktree().to_owned(),
        ];
        folders.extend(
            registration::all(self.common_dir())?
                .into_iter()
                .map(|entry| entry.path),
        );
        Ok(!may_be_in_use("git", &folders, lock, written))
    }
}
