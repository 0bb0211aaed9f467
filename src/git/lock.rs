//! An advisory lock on a file, held between processes.
//!
//! The lock is `flock` on an open file description: whoever inherits the descriptor holds the lock too. So a `git` that is
//! given [`FileLock::share`] keeps the lock until it ends, also when the process that took it has been killed.
#![expect(clippy::disallowed_methods, reason = "git owns the worktrees, and waits for other processes of git")]

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::thread;
use std::time::Duration;

use fs2::{FileExt, TryLockError};

use super::GitError;
use crate::clock;

/// How long [`FileLock::take`] waits. Only administrative steps of some milliseconds are done under these locks.
const PATIENCE: Duration = Duration::from_secs(60);

/// Held from `take` until it and all inherited copies of the descriptor are gone. The file is never removed by it.
#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
}

impl FileLock {
    /// Waits for the lock, at most [`PATIENCE`]; makes the file, but not its folder.
    pub(super) fn take(path: &Path) -> Result<FileLock, GitError> {
        FileLock::take_within(path, PATIENCE)
    }

    fn take_within(path: &Path, patience: Duration) -> Result<FileLock, GitError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(GitError::io("open", path))?;
        let started = clock::instant();
        let mut pause = Duration::from_millis(1);
        loop {
            match FileExt::try_lock(&file) {
                Ok(()) => return Ok(FileLock { file }),
                Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                    return Err(GitError::Busy { path: path.to_owned(), waited: patience });
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
    pub(super) fn try_take_existing(path: &Path) -> Result<Option<FileLock>, GitError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(GitError::Io { doing: "open", path: path.to_owned(), source }),
        };
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Some(FileLock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(GitError::Io { doing: "lock", path: path.to_owned(), source }),
        }
    }

    /// For a child's standard input: it then holds the lock as well.
    pub(super) fn share(&self) -> Result<File, GitError> {
        self.file.try_clone().map_err(GitError::io("share the lock", Path::new("-")))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and break files on purpose")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn it_is_held_as_long_as_anybody_has_the_descriptor() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("lock");
        let lock = FileLock::take(&path).expect("nobody holds it");
        let late = FileLock::take_within(&path, Duration::ZERO);
        assert!(matches!(&late, Err(GitError::Busy { path: busy, .. }) if *busy == path), "{late:?}");
        assert!(FileLock::try_take_existing(&path).expect("it can be opened").is_none());
        let mut child = Command::new("sleep")
            .arg("600")
            .stdin(lock.share().expect("it is open"))
            .spawn()
            .expect("sleep is everywhere");
        drop(lock);
        assert!(FileLock::try_take_existing(&path).expect("it can be opened").is_none(), "the child holds it");
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        FileLock::take(&path).expect("the child has ended");
        assert!(FileLock::try_take_existing(&folder.path().join("none")).expect("that is no error").is_none());
    }
}
