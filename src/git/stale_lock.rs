//! Lock files that killed gits have left: found, told from those of living ones, waited for, removed.
//!
//! git makes `X.lock`, writes it, may close it, and renames it to `X`. So nobody having it open proves nothing: a git that
//! could have made it must be gone, too, and some seconds must have passed.
#![expect(clippy::disallowed_methods, reason = "git owns the worktrees, and waits for other processes of git")]

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use fs2::FileExt;

use super::GitError;
use super::registration;
use crate::clock;
use crate::process::file_in_use::may_be_in_use;

/// How long a lock of git's is waited for: longer than it takes to know that a killed git has left it. Unit tests make locks
/// by hand and want to see the error.
pub(super) const LOCK_PATIENCE: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(15) };

/// Between two tries.
pub(super) const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A program that can't be seen from here (in a container, say) holds a lock of Tavern's references for less than this.
const YOUNG: TimeDelta = TimeDelta::seconds(10);

/// The user's own index and HEAD may be locked for as long as somebody writes a commit message.
const YOUNG_OF_THE_USER: TimeDelta = TimeDelta::seconds(300);

/// Is this a lock of what only Tavern writes, or of what every git holds for a moment only?
pub(super) fn is_ours(common_dir: &Path, lock: &Path) -> bool {
    let Ok(name) = lock.strip_prefix(common_dir) else { return false };
    let roots = ["packed-refs.lock", "AUTO_MERGE.lock", "refs/heads/tavern", "refs/tavern", "worktrees"];
    roots.iter().any(|root| name.starts_with(root))
}

/// Removes a lock behind which nobody is any more. False if somebody is or may be, or if it is gone.
pub(super) fn remove(common_dir: &Path, main_worktree: &Path, lock: &Path) -> Result<bool, GitError> {
    if !is_stale(common_dir, main_worktree, lock)? {
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

/// Nobody is behind it any more.
pub(super) fn is_stale(common_dir: &Path, main_worktree: &Path, lock: &Path) -> Result<bool, GitError> {
    let Ok(metadata) = fs::symlink_metadata(lock) else { return Ok(false) };
    let Ok(written) = metadata.modified() else { return Ok(false) };
    let young = if is_ours(common_dir, lock) { YOUNG } else { YOUNG_OF_THE_USER };
    if !metadata.is_file() || clock::now() - DateTime::<Utc>::from(written) < young {
        return Ok(false);
    }
    let mut folders = vec![common_dir.to_owned(), main_worktree.to_owned()];
    folders.extend(registration::all(common_dir)?.into_iter().map(|entry| entry.path));
    Ok(!may_be_in_use("git", &folders, lock, written))
}
