//! Lock files that killed gits have left: found, told from those of living ones, waited for, removed.
//!
//! git makes `X.lock`, writes it, may close it, and renames it to `X`. So nobody having it open proves nothing: a git that
//! could have made it must be gone, too, and some seconds must have passed.
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

/// How long a lock of git's is waited for: longer than it takes to know that a killed git has left it. Unit tests make locks
/// by hand and want to see the error.
pub(super) const LOCK_PATIENCE: Duration = if cfg!(test) {
    Duration::ZERO
} else {
    Duration::from_secs(15)
};

/// Between two tries.
pub(super) const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A program that can't be seen from here (in a container, say) holds a lock of Tavern's references for less than this.
const YOUNG: TimeDelta = TimeDelta::seconds(10);

/// The user's own index and HEAD may be locked for as long as somebody writes a commit message.
const YOUNG_OF_THE_USER: TimeDelta = TimeDelta::seconds(300);

impl Repository {
    /// Locks of Tavern's references, of the linked worktrees in `folder` and of the files that `others` names in the git
    /// directory (the user's own), which a killed git has left, in order.
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
        // While the last of them is there, git never tidies up again by itself.
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

    /// Returns when nobody holds `lock`, which no git holds for long: one that a killed git has left is removed.
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

    /// Removes a lock behind which nobody is any more. False if somebody is or may be, or if it is gone.
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
        // Of several who have seen it one removes it: another git may make a new one as soon as it is gone.
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

    /// Returns whether this locks what only Tavern writes, or what every git holds for a moment only.
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

    /// Nobody is behind it any more.
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
