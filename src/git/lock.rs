//! An advisory lock on a file, held between processes.
//!
//! The lock is `flock` on an open file description: whoever inherits the descriptor holds the lock too. So a `git` that is
//! given [`Lock::as_input`] keeps the lock until it ends, also when the process that took it has been killed.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use fs2::{FileExt, TryLockError};

use super::GitError;

/// How long [`Lock::take`] waits. Only administrative steps of some milliseconds are done under these locks.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Held from `take` until it and all inherited copies of the descriptor are gone. The file is never removed by it.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Waits for the lock, at most [`PATIENCE`]; makes the file, but not its folder.
    pub(super) fn take(path: &Path) -> Result<Lock, GitError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(GitError::io("open", path))?;
        let started = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match FileExt::try_lock(&file) {
                Ok(()) => return Ok(Lock { file }),
                Err(TryLockError::WouldBlock) if started.elapsed() >= PATIENCE => {
                    return Err(GitError::Busy { path: path.to_owned(), waited: PATIENCE });
                }
                Err(TryLockError::WouldBlock) => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                Err(TryLockError::Error(source)) => {
                    return Err(GitError::Io { doing: "lock", path: path.to_owned(), source });
                }
            }
        }
    }

    /// The lock on a file that is there, if nobody holds it. `None` also when the file is gone.
    pub(super) fn try_take_existing(path: &Path) -> Result<Option<Lock>, GitError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(GitError::Io { doing: "open", path: path.to_owned(), source }),
        };
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Some(Lock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(GitError::Io { doing: "lock", path: path.to_owned(), source }),
        }
    }

    /// Standard input for a child, which then holds the lock as well.
    pub(super) fn as_input(&self) -> Result<Stdio, GitError> {
        let copy = self.file.try_clone().map_err(GitError::io("share the lock", PathBuf::from("-")))?;
        Ok(Stdio::from(copy))
    }
}
