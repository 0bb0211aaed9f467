//! Claiming the next item.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::archived::statuses;
use super::board::Board;
use super::change::{Change, Step};
use super::claim_request::ClaimRequest;
use super::error::Error;
use super::index::{ItemIndex, children, mint_from};
use super::log::is_logged;
use super::queue::Queue;
use super::submit::Note;
use super::transaction::View;
use tavern_core::decide::LeaseChange;
use tavern_core::document::{Document, Item};
use tavern_core::eligible::{Lack, Others, at_work, for_roles, in_order, may_take};
use tavern_core::event::{Claim, Event, Purpose};
use tavern_core::lease::{Lease, Token};
use tavern_core::task::{Status, Task, TaskId, Timestamp};

/// Whether an item may be claimed as far as its environment is concerned. Called while the lock is held, so it must be
/// quick and must not block.
pub type IsReady<'r> = dyn Fn(&str, &Document<'_>, &Item<'_>, Purpose) -> Result<(), Lack> + 'r;

/// An item claimed by the caller.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub queue: Queue,
    pub task: Task,
    pub lease: Lease,
    /// The item's `sh` block, for the shell runner.
    pub script: Option<String>,
    /// The item was worked on or discussed before, so the log may have more about it.
    pub has_history: bool,
    pub unknown: Unknown,
    children: OnceCell<Vec<Task>>,
}

impl Claimed {
    /// Describes an item that is held already.
    pub fn held(queue: Queue, task: Task, lease: Lease, script: Option<String>) -> Claimed {
        let (unknown, children) = Default::default();
        Claimed {
            queue,
            task,
            lease,
            script,
            has_history: true,
            unknown,
            children,
        }
    }

    /// Returns the item's children as of the holder's first call.
    pub fn children(&self, board: &Board) -> &[Task] {
        self.children.get_or_init(|| board.children(&self.task.id))
    }
}

/// The parts of a claim that a dry run can't know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unknown {
    /// The line of an item without an ID. The real claim draws an ID; the one shown is not on the board.
    pub id_at: Option<usize>,
    /// Unmerged external edits will be logged first, so the token shown and maybe later ones will be used up.
    pub token: bool,
}

/// Reasons why there is nothing to claim, and events that could change that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nothing {
    /// The earliest end of a back-off, or of a provider's limit.
    pub wake_at: Option<Timestamp>,
    /// The time at which a runner that waits for a person is tried anyway.
    pub retry_at: Option<Timestamp>,
    /// The number of items for other roles, or for other reviewers, by role.
    pub elsewhere: BTreeMap<String, usize>,
    /// The number of held items.
    pub under_way: usize,
}

impl Board {
    /// Claims the next eligible item under a lease, as one compare-and-set under the lock. A chat claims the named
    /// item in any status. Only items that pass `is_ready` are claimed.
    pub fn claim(
        &self,
        seek: &ClaimRequest,
        is_ready: &IsReady<'_>,
    ) -> Result<Result<Claimed, Nothing>, Error> {
        self.transact(|view| view.claim(seek, is_ready))
    }

    /// Returns true if `seek` could claim an item, now or after a back-off. Claims nothing and takes no lock.
    pub fn has_work_for(
        &self,
        seek: &ClaimRequest,
        now: Timestamp,
        is_ready: &IsReady<'_>,
    ) -> bool {
        let (open, nothing) = self.open_for(seek, now, is_ready);
        open > 0 || nothing.wake_at.is_some()
    }

    /// Returns the number of items that `seek` could claim now, and the obstacles to the others. Claims nothing and
    /// takes no lock.
    pub fn open_for(
        &self,
        seek: &ClaimRequest,
        now: Timestamp,
        is_ready: &IsReady<'_>,
    ) -> (usize, Nothing) {
        let index = ItemIndex::of(self);
        let (mut count, mut nothing) = (0, Nothing::default());
        let all = || self.queues_by_priority().unwrap_or_default();
        for queue in &seek.queues.clone().unwrap_or_else(all) {
            // An unreadable queue offers no work.
            let Ok(text) = self.read(queue) else { continue };
            let search = QueueSearch {
                board: self,
                index: &index,
                queue,
                is_ready,
                now,
            };
            let document = text.content.open();
            drop(search.each(&document, seek, &mut nothing, &mut |_, _| {
                count += 1;
                Ok(None::<()>)
            }));
        }
        (count, nothing)
    }
}

impl View<'_> {
    fn claim(
        &self,
        seek: &ClaimRequest,
        is_ready: &IsReady<'_>,
    ) -> Result<(Change, Result<Claimed, Nothing>), Error> {
        let board = self.board;
        let index = ItemIndex::among(board, &self.known.queues);
        let (mut nothing, mut unread) = (Nothing::default(), None);
        let all = || board.by_priority(self.known.queues.clone());
        for queue in &seek.queues.clone().unwrap_or_else(all) {
            let text = match self.read(queue) {
                Ok(text) => text,
                // An unreadable queue does not block the others; its error is returned only if they offer nothing.
                Err(error) => {
                    unread = unread.or(Some(error));
                    continue;
                }
            };
            let search = QueueSearch {
                board,
                index: &index,
                queue,
                is_ready,
                now: self.now,
            };
            let document = text.content.open();
            let found = search.each(&document, seek, &mut nothing, &mut |item, purpose| {
                let (mut held, step) =
                    match search.taken(&document, item, seek, purpose, self.last_seq + 1) {
                        // An item that can't be rewritten does not block the others.
                        Err(Error::Quarantined { .. }) if seek.item.is_none() => return Ok(None),
                        taken => taken?,
                    };
                if board.is_dry() {
                    let id_at = item.id.is_none().then_some(item.line);
                    held.unknown = Unknown {
                        id_at,
                        token: !board.by_hand()?.is_empty(),
                    };
                }
                Ok(Some((step, held)))
            })?;
            if let Some((step, held)) = found {
                return Ok((self.change(text, vec![step]), Ok(held)));
            }
        }
        unread.map_or(Ok((Change::default(), Err(nothing))), Err)
    }
}

/// A search of one queue for claimable items.
struct QueueSearch<'l> {
    board: &'l Board,
    index: &'l ItemIndex<'l>,
    queue: &'l Queue,
    is_ready: &'l IsReady<'l>,
    now: Timestamp,
}

/// A callback that takes an item for a purpose, or leaves it.
type Take<'t, R> = dyn FnMut(&Item<'_>, Purpose) -> Result<Option<R>, Error> + 't;

impl QueueSearch<'_> {
    /// Calls `take` with each claimable item until it takes one.
    fn each<R>(
        &self,
        document: &Document<'_>,
        seek: &ClaimRequest,
        nothing: &mut Nothing,
        take: &mut Take<'_, R>,
    ) -> Result<Option<R>, Error> {
        let (index, queue) = (self.index, self.queue);
        let named = seek
            .item
            .as_ref()
            .map(|name| name.index_in(queue, document));
        if let (Some(at), true) = (named, seek.is_chat) {
            return at.map_or(Ok(None), |at| take(document.item(at), Purpose::Chat));
        }
        // Built on the first dependency: a search of the items for each dependency would be quadratic.
        let own = OnceCell::new();
        let mut status_of = |id: &TaskId| {
            let own = own.get_or_init(|| statuses(document));
            own.get(id)
                .copied()
                .or_else(|| index.status_of(id, queue))
                .or_else(|| index.archived(id))
        };
        let mut children_of = |parent: &TaskId| {
            [children(document, parent), index.children_of(parent, queue)].concat()
        };
        let busy = OnceCell::new();
        let at_work = || {
            busy.get_or_init(|| [at_work(document), index.at_work(queue)].concat())
                .as_slice()
        };
        let mut others = Others {
            status_of: &mut status_of,
            children_of: &mut children_of,
            at_work: &at_work,
        };
        for at in in_order(document) {
            if named.is_some_and(|named| named != Some(at)) {
                continue;
            }
            let item = for_roles(document, document.item(at), &seek.roles);
            let item = item.as_ref();
            let may = may_take(document, item, &seek.seeker(), self.now, &mut others);
            let is_ready = |purpose| {
                (self.is_ready)(&self.queue.id, document, item, purpose).map(|()| purpose)
            };
            match may.and_then(is_ready) {
                // A pending item with a lease: a stale copy of the queue was saved over it. Its holder keeps it.
                Ok(_) if is_leased(self.board, item)? => nothing.under_way += 1,
                Ok(_) if is_double(document, item, &|id| index.is_copy(id, queue)) => {}
                Ok(purpose) => {
                    if let Some(taken) = take(item, purpose)? {
                        return Ok(Some(taken));
                    }
                }
                Err(lack) => nothing.count(lack),
            }
        }
        // Counted only if nothing was taken.
        let held = (0..document.count()).filter(|at| document.status_at(*at).is_held());
        // No local agent will end an item that another clone holds, or one that was saved with an error.
        let leased = held
            .map(|at| document.item(at))
            .filter(|item| !item.quarantined && is_leased(self.board, item).unwrap_or(true));
        nothing.under_way += leased.count();
        Ok(None)
    }

    fn taken(
        &self,
        document: &Document<'_>,
        item: &Item<'_>,
        seek: &ClaimRequest,
        purpose: Purpose,
        token: Token,
    ) -> Result<(Claimed, Step), Error> {
        let fresh = || {
            let worked_on = self.board.worked_on();
            let is_known =
                |id: &TaskId| document.find(id).is_some() || self.index.knows(id, self.queue);
            // An item that was removed and typed again is a new item.
            let was_known =
                |id: &TaskId| worked_on.contains(id) || is_logged(self.board, id).unwrap_or(true);
            mint_from(document.block(item), &|id| is_known(id) || was_known(id))
        };
        let id = item.id.clone().unwrap_or_else(fresh);
        let event = Event::Claim(Claim {
            agent: seek.agent.clone(),
            role: seek.role.clone(),
            purpose,
            token,
            seconds: seek.seconds,
            holder: seek.holder.clone(),
            reviewers: seek.roles.approving.clone(),
        });
        let script = document.shell(item);
        let has_history = has_history(&document.task(item, id.clone()));
        let note = Note {
            agent: Some(seek.agent.clone()),
            run: None,
        };
        let (step, task) = self
            .board
            .step(self.queue, document, item, id, &event, &note, self.now)?;
        let LeaseChange::Put(lease) = &step.lease else {
            unreachable!("a claim makes a lease")
        };
        let lease = (**lease).clone();
        Ok((
            Claimed {
                has_history,
                ..Claimed::held(self.queue.clone(), task, lease, script)
            },
            step,
        ))
    }
}

/// Returns true if the item was worked on or discussed.
fn has_history(task: &Task) -> bool {
    let is_used = task.state.attempt + task.state.returns + task.state.rounds > 0;
    task.reason().is_some() || is_used || task.status() != Status::Pending
}

fn is_leased(board: &Board, item: &Item<'_>) -> Result<bool, Error> {
    match &item.id {
        // A damaged lease counts as held until `tavern-reap` has handled it.
        Some(id) => match board.lease(id) {
            Err(Error::Damaged { .. }) => Ok(true),
            lease => Ok(lease?.is_some()),
        },
        None => Ok(false),
    }
}

/// Returns true if the ID is ambiguous: another item here has it, or this is a copy of an item in another queue.
/// (Cycles and unknown dependencies need no check: such items are never eligible.)
fn is_double(document: &Document<'_>, item: &Item<'_>, is_copy: &dyn Fn(&TaskId) -> bool) -> bool {
    let Some(id) = &item.id else { return false };
    document.named(id).len() > 1 || is_copy(id)
}

impl Nothing {
    fn count(&mut self, lack: Lack) {
        match lack {
            Lack::Role(role) | Lack::Reviewer(role) => {
                *self.elsewhere.entry(role).or_default() += 1;
            }
            Lack::BackOff(until)
            | Lack::Closed {
                until,
                needs_person: false,
                ..
            } => {
                self.wake_at = self.wake_at.into_iter().chain([until]).min();
            }
            Lack::Closed { until, .. } => {
                self.retry_at = self.retry_at.into_iter().chain([until]).min();
            }
            _ => {}
        }
    }

    /// Returns true if neither other agents nor time can give the caller work. Held items may come back. Where
    /// `others_have_work`, so may items for other roles: rejected work, planned items. Items that only a person could
    /// free do not count.
    pub fn is_over(&self, others_have_work: impl FnOnce() -> bool) -> bool {
        let comes_back = self.under_way > 0 || self.wake_at.is_some();
        !comes_back && (self.elsewhere.is_empty() || !others_have_work())
    }

    /// Returns the time to look again if nothing changes before.
    pub fn look_again(&self) -> Option<Timestamp> {
        self.wake_at.into_iter().chain(self.retry_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn who_can_be_given_nothing_by_work_or_time_is_done() {
        let (soon, later) = (
            Timestamp::default(),
            Timestamp::default() + TimeDelta::hours(1),
        );
        let closed = |needs_person| Lack::Closed {
            runner: "claude".to_owned(),
            until: later,
            needs_person,
        };
        let coder = || Lack::Role("coder".to_owned());
        // The lacks, whether others have work: whether it is over, and when to look again.
        let rows = [
            (vec![], false, true, None),
            (vec![], true, true, None),
            (
                vec![Lack::Permission, Lack::NoRunner("x".to_owned())],
                true,
                true,
                None,
            ),
            (vec![Lack::BackOff(soon)], false, false, Some(soon)),
            (
                vec![closed(false), Lack::BackOff(soon)],
                false,
                false,
                Some(soon),
            ),
            (vec![closed(false)], false, false, Some(later)),
            (vec![closed(true)], false, true, Some(later)),
            (
                vec![closed(true), Lack::BackOff(soon)],
                false,
                false,
                Some(soon),
            ),
            (vec![coder()], false, true, None),
            (vec![coder()], true, false, None),
            (
                vec![Lack::Reviewer("reviewer".to_owned()), closed(true)],
                true,
                false,
                Some(later),
            ),
        ];
        for (lacks, others, is_over, look_again) in rows {
            let mut nothing = Nothing::default();
            lacks.iter().cloned().for_each(|lack| nothing.count(lack));
            assert_eq!(
                (nothing.is_over(|| others), nothing.look_again()),
                (is_over, look_again),
                "{lacks:?}, {others}"
            );
            nothing.under_way = 1;
            assert!(!nothing.is_over(|| others), "{lacks:?}");
        }
    }
}
