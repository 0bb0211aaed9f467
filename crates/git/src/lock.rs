//! An advisory lock on a file, held between processes.
//!
//! The lock is `flock` on an open file description, so a process that inherits the descriptor holds it too. A `git`
//! that gets [`FileLock::share`] keeps the lock until it ends, even if the process that took it is killed.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fs2::{FileExt, TryLockError};

use super::GitError;
use tavern_sys::clock;
use tavern_sys::files;

/// How long [`FileLock::take`] waits. Only administrative steps of a few milliseconds run under these locks.
const PATIENCE: Duration = Duration::from_secs(60);

/// Held from `take` until it and all inherited copies of the descriptor are closed. It never removes the file.
#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
}

impl FileLock {
    /// Waits for the lock, at most [`PATIENCE`]; creates the file, but not its folder.
    pub(super) fn take(path: &Path) -> Result<FileLock, GitError> {
        let file = files::open_or_make(path).map_err(GitError::io("open", path))?;
        let started = clock::instant();
        let mut pause = Duration::from_millis(1);
        loop {
            match FileExt::try_lock(&file) {
                Ok(()) => return Ok(FileLock { file }),
                Err(TryLockError::WouldBlock) if started.elapsed() >= PATIENCE => {
                    return Err(GitError::Busy {
                        path: path.to_owned(),
                        waited: PATIENCE,
                    });
                }
                Err(TryLockError::WouldBlock) => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                Err(TryLockError::Error(source)) => {
                    return Err(GitError::Io {
                        doing: "lock",
                        path: path.to_owned(),
                        source,
                    });
                }
            }
        }
    }

    /// Takes the lock on an existing file; `None` if it is held or the file is gone.
    pub(super) fn try_take_existing(path: &Path) -> Result<Option<FileLock>, GitError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(GitError::Io {
                    doing: "open",
                    path: path.to_owned(),
                    source,
                });
            }
        };
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Some(FileLock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(GitError::Io {
                doing: "lock",
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// For the standard input of a child, which then holds the lock as well.
    pub(super) fn share(&self) -> Result<File, GitError> {
        self.file
            .try_clone()
            .map_err(GitError::io("share the lock", Path::new("-")))
    }
}
