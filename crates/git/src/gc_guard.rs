//! Prevents `git gc` while objects are written that no reference names yet, since `--prune=now` would remove them.
//!
//! The lock is git's own, `gc.pid`. A running clean-up is waited for; a new one reports that another is running.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::GitError;
use super::lock::FileLock;
use tavern_sys::clock;
use tavern_sys::files::{self, gone};

/// How long to wait for a clean-up; after that the work goes on at its own risk.
const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(2);

/// While it lives, no clean-up starts in the repository.
#[derive(Debug)]
pub(super) struct CleanUpHeld {
    /// git's lock, if it was acquired.
    lock: Option<PathBuf>,
    /// The lock among Tavern's own processes, held until `lock` is gone. It ends with a killed process.
    _own: FileLock,
}

impl Drop for CleanUpHeld {
    fn drop(&mut self) {
        // On failure the next git sees that the process is gone.
        self.lock
            .iter()
            .for_each(|lock| drop(fs::remove_file(lock)));
    }
}

impl CleanUpHeld {
    /// Waits for a running clean-up of the repository with this git directory.
    pub(super) fn take(git_dir: &Path) -> Result<CleanUpHeld, GitError> {
        let locking = || GitError::io("lock clean-ups of", git_dir);
        let folder = git_dir.join("tavern");
        files::make_folder(&folder).map_err(locking())?;
        let own = FileLock::take(&folder.join("clean-up"))?;
        let lock = git_dir.join("gc.pid");
        let deadline = clock::instant() + PATIENCE;
        while !write(&lock, &folder).map_err(locking())? {
            if clock::instant() >= deadline {
                return Ok(CleanUpHeld {
                    lock: None,
                    _own: own,
                });
            }
            thread::sleep(PAUSE);
        }
        Ok(CleanUpHeld {
            lock: Some(lock),
            _own: own,
        })
    }
}

/// Takes the lock as git does, under a short-lived lock file. Returns false if a clean-up is running or starting.
fn write(lock: &Path, folder: &Path) -> io::Result<bool> {
    let (draft, begun) = (folder.join("gc.pid"), lock.with_extension("pid.lock"));
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    files::write(&draft, format!("{} {host}", std::process::id()).as_bytes())?;
    let own = match fs::hard_link(&draft, &begun) {
        Ok(()) => {
            fs::remove_file(draft)?;
            begun
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // The process that started it was killed.
            if is_left(&begun) {
                gone(fs::remove_file(&begun))?;
            }
            return Ok(false);
        }
        // On a file system without hard links a clean-up may start at the same moment.
        Err(_) => draft,
    };
    if is_held(lock) {
        return fs::remove_file(&own).map(|()| false);
    }
    fs::rename(&own, lock).map(|()| true)
}

/// Returns true if a running clean-up holds the lock: a live process other than this one. Other Tavern processes are
/// excluded by the other lock.
fn is_held(lock: &Path) -> bool {
    let (pid, own) = (pid_in(lock), std::process::id().to_string());
    pid.is_some_and(|pid| pid != own && is_alive(&pid))
}

/// Returns true if the lock belongs to a dead process.
fn is_left(lock: &Path) -> bool {
    pid_in(lock).is_some_and(|pid| !is_alive(&pid))
}

fn pid_in(lock: &Path) -> Option<String> {
    let text = files::read_text(lock).ok()?;
    let pid = text.split(' ').next().unwrap_or_default();
    (!pid.is_empty()).then(|| pid.to_owned())
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}
