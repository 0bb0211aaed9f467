//! Leases whose files have gone: the log knows them. What it doesn't know was taken in another clone, or typed.

use super::change::Change;
use super::entry::LeaseEntry;
use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use super::submit::with_item;
use super::transaction::View;
use crate::board::lease::{Lease, Token};
use crate::board::task::{Task, TaskId};
use crate::clock;

impl Board {
    /// The lease of an item, also where its file has gone while it is held. Then it lasts from now: the heartbeat went with the file.
    pub fn lease_of(&self, task: &Task) -> Result<Option<Lease>, Error> {
        let (lease, holding) = (self.lease(&task.id)?, task.state.holder());
        let Some(holding) = holding.filter(|_| lease.is_none()) else { return Ok(lease) };
        let mut logged = None;
        walk_log(self, Some(&task.id), &mut |entry| {
            logged = entry.lease;
            logged.is_none()
        })?;
        let Some(LeaseEntry::Put(lease)) = logged else { return Ok(None) };
        // git may have brought that another clone has taken it.
        let is_holders = holding.agent.as_ref() == Some(&lease.agent);
        Ok(is_holders.then(|| Lease { heartbeat_at: clock::now(), ..*lease }))
    }

    /// Writes the file of a lease again that has gone; false if that is no longer called for.
    pub fn put_back_lease(&self, task: &TaskId, token: Token) -> Result<bool, Error> {
        self.transact(|view| Ok((Change::default(), view.put_back_lease(task, token)?)))
    }
}

impl View<'_> {
    pub(super) fn put_back_lease(&self, task: &TaskId, token: Token) -> Result<bool, Error> {
        let board = self.board;
        // One that can't be read has not gone.
        if !matches!(board.lease(task), Ok(None)) {
            return Ok(false);
        }
        let found = with_item(board, task, |queue| self.read(queue), |_, document, item| document.task_of(item));
        let Ok((_, task)) = found else { return Ok(false) };
        let lost = board.lease_of(&task)?.filter(|lease| lease.token == token);
        lost.map_or(Ok(false), |lease| board.stage_lease(&lease)?.put().map(|()| true))
    }
}
