//! A program's output as a locked file. The lock lives as long as any process has the file open as output. So no second
//! program writes to it while the first, or an orphan of it, still runs, even after its supervisor died (as nq does).

use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::thread::{self, JoinHandle};

use fs2::FileExt;

use crate::files;

/// Opens or creates the log at `path` and locks it. Pass the file on as the program's output and keep no copy.
///
/// # Errors
/// `WouldBlock` if the log is locked: an earlier program still writes to it. Otherwise the system's error.
pub fn create_log(path: &Path) -> io::Result<File> {
    let file = files::open_to_append(path).map_err(|error| named(path, &error))?;
    match FileExt::try_lock(&file) {
        Ok(()) => Ok(file),
        Err(fs2::TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            format!(
                "`{}` is still written to by an earlier program",
                path.display()
            ),
        )),
        Err(fs2::TryLockError::Error(error)) => Err(named(path, &error)),
    }
}

/// A program's output, sent over a socket and written to a log by us. The program's children can reopen a file or a
/// pipe under `/proc`, to truncate it or to write in its name. A socket can't be reopened.
///
/// Unread output is lost if we end, so this is for a program that ends with us.
#[derive(Debug)]
pub struct RelayedLog {
    socket: UnixStream,
    copying: JoinHandle<()>,
}

impl RelayedLog {
    /// Appends the program's output to `log`.
    ///
    /// # Errors
    /// The system's error.
    pub fn begin(mut log: File) -> io::Result<(RelayedLog, Stdio)> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut from = socket.try_clone()?;
        let copying = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                if io::copy(&mut from, &mut log).is_err() {
                    // Tells the program that its output is no longer read.
                    let _ = from.shutdown(Shutdown::Both);
                }
            })?;
        Ok((
            RelayedLog { socket, copying },
            Stdio::from(OwnedFd::from(theirs)),
        ))
    }

    /// Waits until all output so far is in the log. Later output is not read.
    pub fn finish(self) {
        let _ = self.socket.shutdown(Shutdown::Read);
        let _ = self.copying.join();
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::process::start::{Spec, start};
    use std::time::Duration;

    #[test]
    fn the_lock_lives_as_long_as_the_program_or_its_orphan() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = folder.path().join("log");
        let mut spec = Spec::new("sh", folder.path()).args(["-c", "sleep 100 & exit 3"]);
        spec.stdout = create_log(&log).expect("the folder is writable").into();
        let mut child = start(spec).expect("sh starts");
        child
            .wait(Duration::from_secs(20))
            .expect("it ends at once");
        let error = create_log(&log).expect_err("the orphan holds the log");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        child.sweep();
        // Another test's program may hold a copy of the open log for the moment between its fork and its exec.
        let deadline = clock::instant() + Duration::from_secs(20);
        while create_log(&log).is_err() {
            assert!(clock::instant() < deadline, "the log stays locked");
            thread::yield_now();
        }
    }
}
