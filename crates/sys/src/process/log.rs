//! A program's output as a locked file. The lock lives as long as anybody holds the file open as output, so no second
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

/// Create (or go on with) the log at `path` and lock it. Hand the file over as the program's output and keep no copy.
///
/// # Errors
/// `WouldBlock` if the log is locked: an earlier program still writes to it. Otherwise what the system says.
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

/// What a program prints by a socket, put into a log by us. What a program holds of a file or a pipe all that it starts can open again
/// under `/proc`: to cut it short, or to write there in its name. A socket nobody can.
///
/// What nobody has read yet is lost with us, so this is for a program that ends with us.
#[derive(Debug)]
pub struct RelayedLog {
    socket: UnixStream,
    copying: JoinHandle<()>,
}

impl RelayedLog {
    /// Puts what the program prints to the end of `log`.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin(mut log: File) -> io::Result<(RelayedLog, Stdio)> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut from = socket.try_clone()?;
        let copying = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                if io::copy(&mut from, &mut log).is_err() {
                    // It learns that nobody reads any more.
                    let _ = from.shutdown(Shutdown::Both);
                }
            })?;
        Ok((
            RelayedLog { socket, copying },
            Stdio::from(OwnedFd::from(theirs)),
        ))
    }

    /// Waits until all is in the log that was printed so far. What comes later is not read.
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
