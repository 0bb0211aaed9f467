//! Slots: `flock`ed files that limit concurrency over all processes of a board. The kernel frees the slot of a process
//! that dies; the files are never unlinked. None is called `.lock`, which people remove from git directories.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use fs2::FileExt;

use super::board::Board;
use super::error::Error;
use tavern_core::task::Timestamp;
use tavern_sys::files;
use tavern_sys::interrupt::Interrupt;

/// How long a transition waits for other processes' commits.
const COMMIT_PATIENCE: Duration = Duration::from_secs(30);

const UPKEEP: &str = "upkeep";

/// A slot held by this process until dropped.
#[derive(Debug)]
pub struct Slot {
    name: String,
    /// `None` in a dry run.
    _file: Option<File>,
}

impl Slot {
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Board {
    /// Takes one of `limit` run slots; `None` if all are taken.
    pub fn run_slot(&self, limit: u32) -> Result<Option<Slot>, Error> {
        for number in 0..limit {
            if let Some(slot) = self.try_slot(&format!("run-{number}"))? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Takes the slot of agent `name`, so that no second agent has that name.
    pub fn agent_slot(&self, name: &str) -> Result<Option<Slot>, Error> {
        self.try_slot(&format!("agent-{name}"))
    }

    /// Waits for the single slot of integration; `None` if `interrupt` is raised first. Verifying a merge may take
    /// long.
    pub fn merge_slot(&self, interrupt: &Interrupt) -> Result<Option<Slot>, Error> {
        if let Some(slot) = self.try_merge_slot()? {
            return Ok(Some(slot));
        }
        let (tell, told) = channel();
        let _subscription = interrupt.subscribe({
            let tell = tell.clone();
            move || drop(tell.send(None))
        });
        let board = self.clone();
        self.apart(move || {
            // If the receiver is gone, the slot is released here.
            drop(tell.send(Some(board.wait_slot("merge"))));
        })?;
        match told.recv() {
            Ok(Some(slot)) => slot.map(Some),
            Ok(None) | Err(_) => Ok(None),
        }
    }

    /// Waits for the single slot of committing queues, with a timeout: another process's git may take too long.
    pub fn commit_slot(&self) -> Result<Slot, Error> {
        if let Some(slot) = self.try_slot("commit")? {
            return Ok(slot);
        }
        let (tell, told) = channel();
        let board = self.clone();
        self.apart(move || drop(tell.send(board.wait_slot("commit"))))?;
        told.recv_timeout(COMMIT_PATIENCE)
            .unwrap_or(Err(Error::Busy(COMMIT_PATIENCE.as_secs())))
    }

    /// Starts a thread that waits for a slot.
    fn apart(&self, wait: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let started = std::thread::Builder::new().spawn(wait);
        started
            .map(drop)
            .map_err(Error::io("wait in", &self.private("slots")))
    }

    pub fn try_merge_slot(&self) -> Result<Option<Slot>, Error> {
        self.try_slot("merge")
    }

    /// Waits for the single slot of a task's clean-up.
    pub fn reap_slot(&self) -> Result<Slot, Error> {
        self.wait_slot("reap")
    }

    /// Waits for the single slot of taking over a cell.
    pub fn cell_slot(&self) -> Result<Slot, Error> {
        self.wait_slot("cell")
    }

    /// Takes the single slot of watching runs; `None` if another process has it.
    pub fn try_watch_slot(&self) -> Result<Option<Slot>, Error> {
        self.try_slot("watch")
    }

    /// Takes the single slot of notifying people; `None` if another process has it.
    pub fn try_notice_slot(&self) -> Result<Option<Slot>, Error> {
        self.try_slot("notices")
    }

    pub fn try_reap_slot(&self) -> Result<Option<Slot>, Error> {
        self.try_slot("reap")
    }

    /// Takes the slot of periodic upkeep; `None` if another process has it, or took it less than `every` ago.
    pub fn try_upkeep_slot(&self, every: Duration, now: Timestamp) -> Result<Option<Slot>, Error> {
        let taken = fs::metadata(self.slot_path(UPKEEP)).and_then(|file| file.modified());
        let age = taken
            .ok()
            .and_then(|taken| (now - Timestamp::from(taken)).to_std().ok());
        if age.is_some_and(|age| age < every) {
            Ok(None)
        } else {
            self.try_slot(UPKEEP)
        }
    }

    /// Returns the path of the lock file that serialises `git worktree add` and `remove`.
    pub fn worktree_lock(&self) -> PathBuf {
        self.private("slots/worktrees")
    }

    fn try_slot(&self, name: &str) -> Result<Option<Slot>, Error> {
        if self.is_dry() {
            let is_taken = files::open(self.slot_path(name))
                .is_ok_and(|file| FileExt::try_lock(&file).is_err());
            return Ok((!is_taken).then(|| Slot {
                name: name.to_owned(),
                _file: None,
            }));
        }
        let (path, file) = self.open_slot(name)?;
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Some(Slot::taken(name, file))),
            Err(fs2::TryLockError::WouldBlock) => Ok(None),
            Err(fs2::TryLockError::Error(source)) => Err(Error::io("lock", &path)(source)),
        }
    }

    fn wait_slot(&self, name: &str) -> Result<Slot, Error> {
        if self.is_dry() {
            return Ok(Slot {
                name: name.to_owned(),
                _file: None,
            });
        }
        let (path, file) = self.open_slot(name)?;
        FileExt::lock(&file).map_err(Error::io("lock", &path))?;
        Ok(Slot::taken(name, file))
    }

    fn open_slot(&self, name: &str) -> Result<(PathBuf, File), Error> {
        let path = self.slot_path(name);
        let open = || files::open_or_make(&path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_folders()?;
                open()
            }
            other => other,
        };
        let file = file.map_err(Error::io("open", &path))?;
        Ok((path, file))
    }

    fn slot_path(&self, name: &str) -> PathBuf {
        self.private(&format!("slots/{name}"))
    }
}

impl Slot {
    /// Writes the process ID of the holder, for people to see with `cat`; the lock itself is the kernel's.
    fn taken(name: &str, mut file: File) -> Slot {
        drop(
            file.set_len(0)
                .and_then(|()| writeln!(file, "{}", std::process::id())),
        );
        Slot {
            name: name.to_owned(),
            _file: Some(file),
        }
    }
}
