//! The board's one lock: a blocking `flock` on `lock` in the private part, held for read, decide and write only.
//!
//! The file is never unlinked: a lock file that is removed is two locks.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fs2::FileExt;

use super::error::Error;
use super::find::Board;
use tavern_sys::files;

/// How long a program waits for the lock before it gives up with exit code 75.
const PATIENCE: Duration = Duration::from_secs(10);

/// Held until dropped; the kernel lets go of it when the process dies.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(board: &Board) -> Result<Lock, Error> {
        let path = board.private("lock");
        let file = match files::open_or_make(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Somebody has moved or removed the repository: nothing of it is made again where it was.
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

/// Blocks in the kernel's own queue rather than in a retry loop; a thread does it, so that the wait has an end.
fn wait(file: File, path: &Path) -> Result<Lock, Error> {
    let (sender, receiver) = mpsc::channel();
    let wait = move || {
        let locked = FileExt::lock(&file).map(|()| file);
        // When nobody listens any more the file is closed here, and the lock with it.
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
