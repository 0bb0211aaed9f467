//! Restores missing or damaged leases from the log. Leases that the log does not know were taken in another clone, or
//! typed.

use super::board::Board;
use super::change::Change;
use super::entry::{Entry, LeaseEntry};
use super::error::Error;
use super::log::walk_log;
use super::submit::with_item;
use super::transaction::View;
use tavern_core::event::Kind;
use tavern_core::lease::{Lease, Token};
use tavern_core::task::{Task, TaskId};
use tavern_sys::clock;

impl Board {
    /// Returns the lease of an item, even if its file is lost.
    pub fn lease_of(&self, task: &Task) -> Result<Option<Lease>, Error> {
        match self.lease(&task.id) {
            Ok(None) | Err(Error::Damaged { .. }) => self.lost_lease(task),
            lease => lease,
        }
    }

    /// Returns true if the lease file is missing or damaged.
    pub fn has_lost_lease(&self, task: &TaskId) -> bool {
        matches!(self.lease(task), Ok(None) | Err(Error::Damaged { .. }))
    }

    /// Returns the lease of a held item from the log. Its heartbeat, lost with the file, is set to now.
    pub fn lost_lease(&self, task: &Task) -> Result<Option<Lease>, Error> {
        let Some(holding) = task.state.holder() else {
            return Ok(None);
        };
        let mut logged = None;
        walk_log(self, Some(&task.id), &mut |entry| {
            logged = entry.lease;
            logged.is_none()
        })?;
        let Some(LeaseEntry::Put(lease)) = logged else {
            return Ok(None);
        };
        // git may have brought the claim of another clone.
        let is_holders = holding.agent.as_ref() == Some(&lease.agent);
        Ok(is_holders.then(|| Lease {
            heartbeat_at: clock::now(),
            ..*lease
        }))
    }

    /// Writes the file of a lost lease again. Returns false if that is no longer needed.
    pub fn put_back_lease(&self, task: &TaskId, token: Token) -> Result<bool, Error> {
        self.transact(|view| {
            Ok(view
                .put_back_lease(task, token)?
                .map_or((Change::default(), false), |(put, _)| (put, true)))
        })
    }
}

impl View<'_> {
    /// Returns the change that restores the lease, and the lease.
    pub(super) fn put_back_lease(
        &self,
        task: &TaskId,
        token: Token,
    ) -> Result<Option<(Change, Lease)>, Error> {
        if !self.board.has_lost_lease(task) {
            return Ok(None);
        }
        let found = with_item(
            self.board,
            task,
            |queue| self.read(queue),
            |_, document, item| document.task_of(item),
        );
        let Ok((_, task)) = found else {
            return Ok(None);
        };
        let lost = self
            .board
            .lost_lease(&task)?
            .filter(|lease| lease.token == token);
        Ok(lost.map(|lease| {
            let entry = Entry {
                task: Some(task.id),
                agent: Some(lease.agent.clone()),
                token: Some(token),
                cause: Some("its lease file was lost and is restored".to_owned()),
                lease: Some(LeaseEntry::Put(Box::new(lease.clone()))),
                ..Entry::new(Kind::Noted, self.now)
            };
            (Change::notes(vec![entry]), lease)
        }))
    }
}
