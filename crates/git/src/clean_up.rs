//! Keeping `git gc` from running while objects are written that no reference names yet: with `--prune=now` it takes them.
//!
//! It is git's own lock, `gc.pid`: a clean-up that runs is waited for, and one that would begin meanwhile says that another runs.
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

/// How long a clean-up is waited for; after that it is hoped that it takes nothing.
const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(2);

/// While it lives no clean-up begins in the repository.
#[derive(Debug)]
pub(super) struct CleanUpHeld {
    /// git's lock, if it could be had.
    lock: Option<PathBuf>,
    /// Among Tavern's own, until `lock` is gone. It goes with a process that is killed.
    _own: FileLock,
}

impl Drop for CleanUpHeld {
    fn drop(&mut self) {
        // The next git sees that its process is gone.
        self.lock
            .iter()
            .for_each(|lock| drop(fs::remove_file(lock)));
    }
}

impl CleanUpHeld {
    /// Waits for one that runs in the repository with this git directory.
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

/// Takes the lock as git does, under one of its own that is there for a moment. False if a clean-up runs, or begins in this moment.
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
            // Who began was killed.
            if is_left(&begun) {
                gone(fs::remove_file(&begun))?;
            }
            return Ok(false);
        }
        // The file system has no hard links: a clean-up may begin in this moment.
        Err(_) => draft,
    };
    if is_held(lock) {
        return fs::remove_file(&own).map(|()| false);
    }
    fs::rename(&own, lock).map(|()| true)
}

/// By a clean-up that runs: a process that lives, and is none of Tavern's, since those have the other lock.
fn is_held(lock: &Path) -> bool {
    let (pid, own) = (pid_in(lock), std::process::id().to_string());
    pid.is_some_and(|pid| pid != own && is_alive(&pid))
}

/// By a process that has died.
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
