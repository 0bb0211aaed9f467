//! The board's one lock: a blocking `flock` on `lock` in the private part, held only to read, decide and write.
//!
//! The file is never unlinked: after a removal, two processes could hold two locks.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fs2::FileExt;

use super::board::Board;
use super::error::Error;
use tavern_sys::files;

/// How long a program waits for the lock before it gives up with exit code 75.
const PATIENCE: Duration = Duration::from_secs(10);

/// The held lock. Dropping it, or the death of the process, releases it.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(board: &Board) -> Result<Lock, Error> {
        let path = board.private("lock");
        let file = match files::open_or_make(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // If the repository was moved or removed, nothing is created at its old path.
                fs::metadata(board.root()).map_err(Error::io("enter", board.root()))?;
                board.make_folders()?;
                files::open_or_make(&path)
            }
            other => other,
        }
        .map_err(Error::io("open", &path))?;
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Lock { _file: file }),
            Err(fs2::TryLockError::WouldBlock) => wait(file, &path),
            Err(fs2::TryLockError::Error(source)) => Err(Error::io("lock", &path)(source)),
        }
    }
}

/// Blocks in the kernel's queue rather than in a retry loop. A thread does so, to allow a timeout.
fn wait(file: File, path: &Path) -> Result<Lock, Error> {
    let (sender, receiver) = mpsc::channel();
    let wait = move || {
        let locked = FileExt::lock(&file).map(|()| file);
        // After the timeout the file is closed here, which releases the lock.
        drop(sender.send(locked));
    };
    let started = thread::Builder::new().spawn(wait);
    started.map_err(Error::io("wait for", path))?;
    match receiver.recv_timeout(PATIENCE) {
        Ok(Ok(file)) => Ok(Lock { _file: file }),
        Ok(Err(source)) => Err(Error::io("lock", path)(source)),
        Err(_) => Err(Error::Busy(PATIENCE.as_secs())),
    }
}
