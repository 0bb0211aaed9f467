//! The board's one lock: a blocking `flock` on `.tavern/lock`, held for read, decide and write only.
//!
//! The file is never unlinked: a lock file that is removed is two locks.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use fs2::FileExt;

use super::error::Error;
use super::find::Board;

/// How long a program waits for the lock before it gives up with exit code 75.
const PATIENCE: Duration = Duration::from_secs(10);

/// Held until dropped; the kernel lets go of it when the process dies.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(board: &Board) -> Result<Lock, Error> {
        Lock::begin(board)?.wait(&|| true)
    }

    /// Takes it at once if nobody has it.
    pub(super) fn begin(board: &Board) -> Result<Wanted, Error> {
        let path = board.path("lock");
        let file = match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                board.make_folders()?;
                open(&path)
            }
            other => other,
        }
        .map_err(Error::io("open", &path))?;
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Wanted { file, path, is_taken: true }),
            Err(fs2::TryLockError::WouldBlock) => Ok(Wanted { file, path, is_taken: false }),
            Err(fs2::TryLockError::Error(source)) => Err(Error::io("lock", &path)(source)),
        }
    }
}

/// The lock, taken or to be waited for.
#[derive(Debug)]
pub(super) struct Wanted {
    file: File,
    path: PathBuf,
    pub(super) is_taken: bool,
}

impl Wanted {
    /// Waits until it is there. When patience ends `may_give_up` is asked, and if it says no, once more.
    pub(super) fn wait(self, may_give_up: &dyn Fn() -> bool) -> Result<Lock, Error> {
        if self.is_taken { Ok(Lock { _file: self.file }) } else { wait(self.file, &self.path, may_give_up) }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Blocks in the kernel's own queue rather than in a retry loop; a thread does it, so that the wait has an end.
fn wait(file: File, path: &Path, may_give_up: &dyn Fn() -> bool) -> Result<Lock, Error> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let locked = FileExt::lock(&file).map(|()| file);
        // When nobody listens any more the file is closed here, and the lock with it.
        drop(sender.send(locked));
    });
    let mut received = receiver.recv_timeout(PATIENCE);
    if matches!(received, Err(RecvTimeoutError::Timeout)) && !may_give_up() {
        received = receiver.recv_timeout(PATIENCE);
    }
    match received {
        Ok(Ok(file)) => Ok(Lock { _file: file }),
        Ok(Err(source)) => Err(Error::io("lock", path)(source)),
        Err(_) => Err(Error::Busy(PATIENCE.as_secs())),
    }
}
