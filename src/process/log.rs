//! A program's output as a locked file. The lock lives as long as anybody holds the file open as output, so it tells
//! whether the program, or an orphan of it, still runs, even after its supervisor died (as nq does).
#![expect(clippy::disallowed_methods, reason = "this room starts programs and owns their logs")]

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use fs2::FileExt;

/// Create (or go on with) the log at `path` and lock it. Hand the file over as the program's output and keep no copy.
///
/// # Errors
/// `WouldBlock` if the log is locked: an earlier program still writes to it. Otherwise what the system says.
pub fn create_log(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| named(path, &error))?;
    match FileExt::try_lock(&file) {
        Ok(()) => Ok(file),
        Err(fs2::TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            format!("`{}` is still written to by an earlier program", path.display()),
        )),
        Err(fs2::TryLockError::Error(error)) => Err(named(path, &error)),
    }
}

/// Returns whether a program that was started with this log, or an orphan that holds its output, still lives. False if
/// there is no such log.
///
/// # Errors
/// What the system says.
pub fn is_running(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(named(path, &error)),
    };
    // Shared, so that two who ask at the same time don't see each other; given back when the file is closed.
    match FileExt::try_lock_shared(&file) {
        Ok(()) => Ok(false),
        Err(fs2::TryLockError::WouldBlock) => Ok(true),
        Err(fs2::TryLockError::Error(error)) => Err(named(path, &error)),
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
        assert!(!is_running(&log).expect("a missing log is no error"));
        let mut spec = Spec::new("sh", folder.path()).args(["-c", "sleep 100 & exit 3"]);
        spec.stdout = create_log(&log).expect("the folder is writable").into();
        let mut child = start(spec).expect("sh starts");
        child.wait(Duration::from_secs(20)).expect("it ends at once");
        assert!(is_running(&log).expect("it can be asked"), "the orphan holds the log");
        let error = create_log(&log).expect_err("it is locked");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        child.sweep();
        // Another test's program may hold a copy of the open log for the moment between its fork and its exec.
        let deadline = clock::instant() + Duration::from_secs(20);
        while is_running(&log).expect("it can be asked") {
            assert!(clock::instant() < deadline, "the log stays locked");
            std::thread::yield_now();
        }
        create_log(&log).expect("it is free again");
    }
}
