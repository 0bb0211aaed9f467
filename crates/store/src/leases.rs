//! Lease files `leases/<task>.yaml`: one per held item, replaced whole, never synced (no process outlives a power cut).
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::SystemTime;

use chrono::TimeDelta;

use super::atomic_write::Staged;
use super::board::Board;
use super::change::Change;
use super::error::{Error, moved_away};
use super::queue::Queue;
use tavern_core::decide::Refusal;
use tavern_core::lease::{Holder, Lease, Life, Token};
use tavern_core::task::{TaskId, Timestamp};
use tavern_core::yaml;
use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::process::identity;

/// The most that the clocks of two hosts may differ.
const AHEAD: TimeDelta = TimeDelta::seconds(5);

impl Board {
    /// Returns the lease of `task`, if it is held.
    pub fn lease(&self, task: &TaskId) -> Result<Option<Lease>, Error> {
        Ok(self.open_lease(task)?.map(|(lease, _)| lease))
    }

    fn open_lease(&self, task: &TaskId) -> Result<Option<(Lease, File)>, Error> {
        let path = self.lease_path(task);
        let damaged = |why: String| Error::Damaged {
            path: path.clone(),
            why,
        };
        let read = || -> io::Result<(String, SystemTime, File)> {
            let file = files::open(&path)?;
            let text = files::text(files::read_all(&file)?)?;
            let modified = file.metadata()?.modified()?;
            Ok((text, modified, file))
        };
        let (text, modified, file) = match read() {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidData | ErrorKind::IsADirectory
                ) =>
            {
                return Err(damaged(error.to_string()));
            }
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let lease: Lease = yaml::read(&text).map_err(|error| damaged(error.to_string()))?;
        let (now, mut heartbeat_at) = (clock::now(), Timestamp::from(modified));
        if heartbeat_at > now + AHEAD && !self.is_dry() {
            // The clock was ahead and is right now: from here on the lease lasts no longer than any other. If the write
            // fails, a later reader does it.
            heartbeat_at = now;
            drop(file.set_modified(now.into()));
        }
        Ok(Some((
            Lease {
                heartbeat_at,
                ..lease
            },
            file,
        )))
    }

    /// Returns the path of a task's lease, whether it exists or not.
    pub fn lease_path(&self, task: &TaskId) -> PathBuf {
        self.private(&format!("leases/{task}.yaml"))
    }

    /// Returns all leases, ordered by task. `tavern-check` reports damaged ones.
    pub fn leases(&self) -> Result<Vec<Lease>, Error> {
        let leases = self
            .leased()?
            .into_iter()
            .filter_map(|task| self.lease(&task).ok().flatten())
            .collect();
        Ok(leases)
    }

    /// Returns the tasks with damaged leases.
    pub fn damaged_leases(&self) -> Result<Vec<TaskId>, Error> {
        let is_damaged = |task: &TaskId| matches!(self.lease(task), Err(Error::Damaged { .. }));
        Ok(self.leased()?.into_iter().filter(is_damaged).collect())
    }

    /// Returns the tasks that have a lease file, in order.
    pub fn leased(&self) -> Result<Vec<TaskId>, Error> {
        let folder = self.private("leases");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("list", &folder)(error)),
        };
        let mut tasks: Vec<TaskId> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".yaml")?
                    .parse()
                    .ok()
            })
            .collect();
        tasks.sort();
        Ok(tasks)
    }

    /// Returns true if an item of `queue` is held.
    pub(super) fn is_held_in(&self, queue: &Queue) -> Result<bool, Error> {
        Ok(self.leases()?.iter().any(|lease| lease.queue == queue.id))
    }

    /// Returns the held tasks of `queue`, and those with an unreadable lease.
    pub(super) fn held_in(&self, queue: &Queue) -> Result<HashSet<TaskId>, Error> {
        let is_here = |task: &TaskId| match self.lease(task) {
            Ok(lease) => lease.is_some_and(|lease| lease.queue == queue.id),
            Err(_) => true,
        };
        Ok(self.leased()?.into_iter().filter(is_here).collect())
    }

    /// Renews the lease that `token` holds, without the board's lock. The heartbeat is the modification time of the
    /// very file that was read, so a replaced holder renews nothing.
    pub fn renew(&self, task: &TaskId, token: Token) -> Result<Lease, Error> {
        let renewed = self.renew_shown(task, token, clock::now());
        let is_sure = match &renewed {
            // An expired lease may be in the middle of being released.
            Ok((lease, _)) => lease.is_live(clock::now()),
            // The lease file may be lost.
            Err(Error::Refused(Refusal::NoLease { .. }) | Error::Damaged { .. }) => false,
            // The claim may be logged while its file is not written yet.
            Err(Error::Refused(_)) => self.is_settled()?,
            Err(_) => true,
        };
        let (_, renewed) = if is_sure || self.is_dry() {
            renewed?
        } else {
            self.transact(|view| match view.put_back_lease(task, token)? {
                Some((change, lease)) => Ok((change, (lease.clone(), lease))),
                None => Ok((Change::default(), self.renew_shown(task, token, view.now)?)),
            })?
        };
        Ok(renewed)
    }

    /// Renews the lease; returns it as it was and as it is now.
    fn renew_shown(
        &self,
        task: &TaskId,
        token: Token,
        now: Timestamp,
    ) -> Result<(Lease, Lease), Error> {
        let no_lease = || Refusal::NoLease {
            task: task.clone(),
            given: token,
        };
        let (lease, file) = self.open_lease(task)?.ok_or_else(no_lease)?;
        if lease.token != token {
            let (agent, current) = (lease.agent, lease.token);
            return Err(Refusal::StaleToken {
                task: task.clone(),
                given: token,
                agent,
                current,
            }
            .into());
        }
        // A clock that was set back must not end a lease early.
        let heartbeat_at = now.max(lease.heartbeat_at);
        if !self.is_dry() {
            file.set_modified(heartbeat_at.into())
                .map_err(Error::io("renew", &self.lease_path(task)))?;
        }
        Ok((
            lease.clone(),
            Lease {
                heartbeat_at,
                ..lease
            },
        ))
    }

    /// Stages the lease's file.
    pub(super) fn stage_lease(&self, lease: &Lease) -> Result<Staged, Error> {
        let text = serde_yaml::to_string(lease).expect("a lease is plain data");
        let path = self.lease_path(&lease.task);
        if path.is_dir() {
            self.drop_lease(&lease.task)?;
        }
        let stage = || Staged::volatile(&path, &[text.as_bytes()], Some(lease.heartbeat_at.into()));
        stage().or_else(|_| self.make_folders().and_then(|()| stage()))
    }

    pub(super) fn drop_lease(&self, task: &TaskId) -> Result<(), Error> {
        let path = self.lease_path(task);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                fs::rename(&path, moved_away(&path)).map_err(Error::io("move", &path))
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Returns this process as a holder.
pub fn this_process() -> Holder {
    holder(std::process::id())
}

/// Returns the process `pid` of this host as a holder.
pub fn holder(pid: u32) -> Holder {
    Holder {
        host: host(),
        process: identity::identify(pid),
    }
}

/// Returns a holder without a process; only the expiry ends its lease.
pub fn no_process() -> Holder {
    Holder {
        host: host(),
        process: None,
    }
}

/// Returns whether the holder still lives, as far as this host can tell.
pub fn life(holder: &Holder) -> Life {
    holder
        .process
        .as_ref()
        .filter(|_| holder.host == host())
        .map_or(Life::Unknown, identity::life)
}

/// Returns this host's name.
pub fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
