//! Keeping `git gc` from running while objects are written that no reference names yet: with `--prune=now` it takes them.
//!
//! It is git's own lock, `gc.pid`: a clean-up that runs is waited for, and one that would begin meanwhile says that another runs.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::GitError;
use tavern_sys::clock;
use tavern_sys::files;

/// How long a clean-up is waited for; after that it is hoped that it takes nothing.
const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(2);

/// While it lives no clean-up begins in the repository.
#[derive(Debug)]
pub(super) struct CleanUpHeld {
    /// git's lock, if it could be had.
    lock: Option<PathBuf>,
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
        let lock = take(git_dir).map_err(GitError::io("lock clean-ups of", git_dir))?;
        Ok(CleanUpHeld { lock })
    }
}

fn take(git_dir: &Path) -> io::Result<Option<PathBuf>> {
    let (lock, draft) = (git_dir.join("gc.pid"), git_dir.join("gc.pid.lock"));
    let deadline = clock::instant() + PATIENCE;
    while clock::instant() < deadline {
        match fs::File::create_new(&draft) {
            Ok(mut file) => {
                if !is_held(&lock) {
                    let host = rustix::system::uname();
                    let written = write!(
                        file,
                        "{} {}",
                        std::process::id(),
                        host.nodename().to_string_lossy()
                    );
                    return written
                        .and_then(|()| fs::rename(&draft, &lock))
                        .map(|()| Some(lock));
                }
                fs::remove_file(&draft)?;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        thread::sleep(PAUSE);
    }
    Ok(None)
}

/// By a process of this machine that lives.
fn is_held(lock: &Path) -> bool {
    let text = files::read_text(lock).unwrap_or_default();
    let pid = text.split(' ').next().unwrap_or_default();
    !pid.is_empty() && Path::new("/proc").join(pid).exists()
}
