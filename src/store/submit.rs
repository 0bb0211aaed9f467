//! Changing the board: lock, redo, read, decide, append, replace, lease.
//!
//! The appended and synced event is the commit point. What a crash left undone behind it (document, lease) is redone
//! by whoever next holds the lock, from the event alone. The lock is never held across git, a child or a sleep.
#![expect(clippy::disallowed_methods, reason = "an editor is waited for, without the lock")]

use std::thread;
use std::time::Duration;

use super::archive::{self, with_archived};
use super::error::Error;
use super::find::Board;
use super::lock::Lock;
use super::log::{Entry, LeaseEntry, Log, tail_log};
use super::queue::{Queue, Text};
use super::redo::{read_applied, redo, set_lease, unshown, write_shown};
use super::replace::Staged;
use super::seen::{Seen, Sight, old_path};
use super::shelf::{Shelf, mint};
use crate::board::decide::{Change, LeaseChange, decide};
use crate::board::document::{Document, Item, parse, parse_for};
use crate::board::edit::{NewItem, Patch, render};
use crate::board::event::{Event, Kind, Purpose};
use crate::board::front::Front;
use crate::board::lease::Lease;
use crate::board::task::{Status, Task, TaskId, Timestamp};
use crate::board::text::{Edit, apply};
use crate::failpoint;

pub(super) use super::redo::{redone, write_applied};

/// A queue that was saved by hand is looked at again after this: an editor may be in the middle of writing it.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// So often it is looked at before it is taken as it is.
const MOST_LOOKS: usize = 50;

/// An item as it stands.
#[derive(Clone, Debug)]
pub struct Found {
    pub queue: Queue,
    pub task: Task,
    /// Its `sh` block.
    pub script: Option<String>,
    /// Its exact text.
    pub block: String,
    /// Counted from 1.
    pub line: usize,
    pub quarantined: bool,
    pub lease: Option<Lease>,
}

/// A change that was made.
#[derive(Clone, Debug)]
pub struct Done {
    pub entry: Entry,
    pub queue: Queue,
    pub task: Task,
    pub lease: Option<Lease>,
}

/// What goes into the log line beside the event.
#[derive(Clone, Debug, Default)]
pub struct Note {
    pub agent: Option<String>,
    pub run: Option<String>,
}

impl Board {
    /// Applies `event` to `task`, wherever it is.
    pub fn submit(&self, task: &TaskId, event: &Event, note: &Note, now: Timestamp) -> Result<Done, Error> {
        let mut locked = Locked::new(self, now)?;
        let done = with_item(self, task, Board::read_settled, whole, |text, document, item| match event {
            Event::Plan { plan, to, .. } => locked.plan(text, task, event, note, now, plan, *to),
            _ => locked.transition(text, document, item, task, event, note, now),
        });
        match done {
            Err(Error::NoTask(_)) => locked.bring_back(task, event, note, now),
            done => done?,
        }
    }

    /// An item and all that is known of it, wherever it is: in a queue, else in an archive.
    pub fn task(&self, id: &TaskId) -> Result<Found, Error> {
        let lease = self.lease(id)?;
        let found = |text: &Text, document: &Document<'_>, item: &Item<'_>| Found {
            task: document.task(item, id.clone()),
            script: document.shell(item),
            block: document.block(item).to_owned(),
            line: item.line,
            quarantined: item.quarantined,
            lease: lease.clone(),
            queue: text.queue.clone(),
        };
        match with_item(self, id, Board::read, parse_for, found) {
            Err(Error::NoTask(_)) => with_archived(self, id, found),
            live => live,
        }
    }

    /// What [`Board::submit`] would do, without doing it.
    pub fn preview(&self, task: &TaskId, event: &Event, now: Timestamp) -> Result<Change, Error> {
        let lease = self.lease(task)?;
        let read = |_: &Text, document: &Document<'_>, item: &Item<'_>| {
            let is_sound = !item.quarantined;
            is_sound.then(|| document.task(item, task.clone())).ok_or_else(|| Error::Quarantined { task: task.clone() })
        };
        let read = match with_item(self, task, Board::read, parse_for, read) {
            Err(Error::NoTask(_)) => with_archived(self, task, read)?,
            live => live?,
        }?;
        Ok(decide(&read, lease.as_ref(), event, now)?)
    }

    /// Puts a new item into `queue`, by the given ID or a fresh one, and returns it as it stands there.
    pub fn add(&self, queue: &Queue, new: NewItem, status: Status, note: &Note, now: Timestamp) -> Result<Task, Error> {
        Locked::new(self, now)?.add(queue, new, &|_, _| Patch::default(), status, note, now)
    }

    /// What `event` makes of an item; nothing is written.
    #[expect(clippy::too_many_arguments, reason = "an item in its document, and what happens to it")]
    pub(super) fn step(
        &self,
        queue: &Queue,
        document: &Document<'_>,
        item: &Item<'_>,
        id: TaskId,
        event: &Event,
        note: &Note,
        now: Timestamp,
    ) -> Result<(Step, Task), Error> {
        if item.quarantined {
            return Err(Error::Quarantined { task: id });
        }
        let task = document.task(item, id.clone());
        let lease = self.lease(&id)?;
        let mut change = decide(&task, lease.as_ref(), event, now)?;
        if let LeaseChange::Put(lease) = &mut change.lease {
            lease.queue.clone_from(&queue.id);
        }
        let mut entry = Entry::new(event.kind(), now);
        entry.task = Some(id.clone());
        entry.queue = Some(queue.id.clone());
        entry.agent = note.agent.clone().or_else(|| lease.as_ref().map(|lease| lease.agent.clone()));
        entry.token = match &change.lease {
            LeaseChange::Put(lease) => Some(lease.token),
            _ => lease.as_ref().map(|lease| lease.token),
        };
        let work = lease.as_ref().and_then(|lease| lease.work.as_ref());
        entry.run = note.run.clone().or_else(|| work.map(|work| work.run.clone()));
        entry.cause = match event {
            // A person typed it into the queue.
            Event::Claim(claim) if claim.purpose == Purpose::Chat => None,
            Event::Claim(_) if task.question().is_some() => task.answered(),
            Event::Claim(claim) if claim.purpose == Purpose::Work && task.state.is_parked() => {
                Some("its children have ended".to_owned())
            }
            Event::Park { children, .. } => {
                let names: Vec<&str> = children.iter().map(TaskId::as_str).collect();
                Some(names.join(", "))
            }
            _ => event.reason().map(str::to_owned),
        };
        if let Event::Submit { commit, .. } | Event::Approve { commit, .. } | Event::Integrate { commit } = event {
            entry.commit.clone_from(commit);
        }
        if change.state.status() != task.status() {
            entry.from = Some(task.status());
            entry.to = Some(change.state.status());
        }
        let is_same = item.id.is_some() && change.state == task.state;
        let patch = Patch { id: item.id.is_none().then(|| id.clone()), ..Patch::from(&change.state) };
        let edits = if is_same { Vec::new() } else { document.change(item, &patch) };
        let content = apply(document.text(), &edits);
        let written = written(document, Some(item), &edits, &content, &id, change.state.status());
        let (after, task) = written.ok_or_else(|| Error::Quarantined { task: id.clone() })?;
        if !edits.is_empty() {
            entry.before = Some(document.block(item).to_owned());
            entry.after = Some(after);
        }
        let content = (!edits.is_empty()).then_some(content);
        Ok((Step { entry, content, edits, lease: change.lease }, task))
    }

    /// Writes a line to the log that changes no item.
    pub fn note(&self, entry: Entry, now: Timestamp) -> Result<(), Error> {
        Locked::new(self, now)?.commit(&[entry.into()], None).map(|_| ())
    }

    /// Removes a lease's file that can't be read. False if it is gone, or can be read by now.
    pub fn drop_damaged_lease(&self, task: &TaskId, now: Timestamp) -> Result<bool, Error> {
        let mut locked = Locked::new(self, now)?;
        if !matches!(self.lease(task), Err(Error::Damaged { .. })) {
            return Ok(false);
        }
        self.drop_lease(task)?;
        let mut entry = Entry::new(Kind::Noted, now);
        entry.task = Some(task.clone());
        entry.cause = Some("its lease could not be read and was removed".into());
        locked.commit(&[entry.into()], None)?;
        Ok(true)
    }

    /// Whether [`Board::settle`] would change nothing, as far as can be told without the lock.
    pub fn is_settled(&self) -> Result<bool, Error> {
        let is_shown = read_applied(self).is_none_or(|applied| self.last_seq().is_ok_and(|last| last <= applied));
        Ok(is_shown && self.by_hand()?.is_empty())
    }

    /// Takes over what was saved by hand, and finishes what a crash left half done.
    pub fn settle(&self, now: Timestamp) -> Result<(), Error> {
        Locked::new(self, now).map(drop)
    }

    /// Removes a lease whose item nobody holds any more (a person ticked or deleted it by hand).
    pub fn drop_stray_lease(&self, lease: &Lease, now: Timestamp) -> Result<bool, Error> {
        let mut locked = Locked::new(self, now)?;
        let is_held =
            match with_item(self, &lease.task, Board::read_settled, parse_for, |_, _, item| item.status.is_held()) {
                Ok(is_held) => is_held,
                Err(Error::NoTask(_)) => false,
                Err(error) => return Err(error),
            };
        if is_held || self.lease(&lease.task)?.is_none_or(|current| current.token != lease.token) {
            return Ok(false);
        }
        let mut entry = Entry::new(Kind::Noted, now);
        entry.task = Some(lease.task.clone());
        entry.agent = Some(lease.agent.clone());
        entry.token = Some(lease.token);
        entry.cause = Some("the item is no longer in progress; its lease was removed".into());
        locked.commit(&[Step { lease: LeaseChange::Drop, ..entry.into() }], None)?;
        Ok(true)
    }
}

/// The board while this process holds its lock, with everything redone that a crash left behind.
pub(super) struct Locked<'b> {
    pub(super) board: &'b Board,
    pub(super) log: Log,
    pub(super) seq: u64,
    _lock: Lock,
}

impl<'b> Locked<'b> {
    /// Also takes over what was saved by hand, once whoever is writing has finished.
    pub(super) fn new(board: &'b Board, now: Timestamp) -> Result<Locked<'b>, Error> {
        Locked::under(Lock::take(board)?, board, now)
    }

    /// As [`Locked::new`], with a lock that was taken.
    pub(super) fn under(lock: Lock, board: &'b Board, now: Timestamp) -> Result<Locked<'b>, Error> {
        let mut lock = Some(lock);
        let mut before = Vec::new();
        for look in 0.. {
            let lock = lock.take().map_or_else(|| Lock::take(board), Ok)?;
            let mut locked = Locked::open(lock, board, now)?;
            let by_hand = board.by_hand()?;
            let is_settled =
                by_hand == before && !by_hand.iter().any(|(queue, sight)| sight.is_gone(queue) || sight.is_blank());
            if is_settled || look == MOST_LOOKS {
                for (queue, _) in &by_hand {
                    Seen::forget_own(board, queue)?;
                    locked.take_over(queue, now)?;
                }
            }
            // Somebody may have saved meanwhile.
            if by_hand.is_empty() || look == MOST_LOOKS || board.by_hand()?.is_empty() {
                return Ok(locked);
            }
            before = by_hand;
            drop(locked);
            // Others may have the lock meanwhile.
            thread::sleep(BETWEEN_LOOKS);
        }
        unreachable!("the last look returns")
    }

    fn open(lock: Lock, board: &'b Board, now: Timestamp) -> Result<Locked<'b>, Error> {
        let log = Log::open(board, now)?;
        let applied = read_applied(board).unwrap_or_else(|| log.last_seq().saturating_sub(1));
        if applied < log.last_seq() {
            log.sync()?;
            let entries = unshown(board, tail_log(board, applied)?);
            let left = board.left_to_merge()?;
            let is_move = |entry: &Entry| entry.kind == Kind::Archived;
            let are_one = |one: &Entry, next: &Entry| match (is_move(one), is_move(next)) {
                (true, true) => one.queue == next.queue,
                (one, next) => one == next,
            };
            for entries in entries.chunk_by(are_one) {
                if is_move(&entries[0]) {
                    archive::redo(board, entries, &left)?;
                } else {
                    redo(board, entries, &left)?;
                }
            }
            write_applied(board, log.last_seq())?;
        }
        // If the log was cleaned away, the numbers still go on: a token is never given twice.
        let seq = log.last_seq().max(applied);
        Ok(Locked { board, log, seq, _lock: lock })
    }

    /// As [`Board::add`]; `more` are keys that the item has besides, told from how it reads alone and the queue's front.
    pub(super) fn add(
        &mut self,
        queue: &Queue,
        new: NewItem,
        more: &dyn Fn(&Task, &Front) -> Patch,
        status: Status,
        note: &Note,
        now: Timestamp,
    ) -> Result<Task, Error> {
        let text = self.board.read_settled(queue)?;
        let (document, _) = parse(&text.content);
        let shelf = Shelf::of(self.board);
        let mut is_taken = |id: &TaskId| document.find(id).is_some() || shelf.knows(id, queue);
        let id = match new.id.clone() {
            Some(id) if is_taken(&id) => return Err(Error::Taken(id)),
            Some(id) => id,
            None => mint(&mut is_taken),
        };
        let block = render(&NewItem { id: Some(id.clone()), ..new });
        let block = {
            let (alone, _) = parse(&block);
            let edits =
                alone.find(&id).map(|item| alone.change(item, &more(&alone.task(item, id.clone()), document.front())));
            apply(&block, &edits.unwrap_or_default())
        };
        let edits = document.add(status, &block);
        let content = apply(&text.content, &edits);
        let mut entry = Entry { to: Some(status), agent: note.agent.clone(), ..Entry::new(Kind::Added, now) };
        let written = written(&document, None, &edits, &content, &id, status);
        let (after, task) = written.ok_or_else(|| Error::Quarantined { task: id.clone() })?;
        entry.after = Some(after);
        entry.task = Some(id);
        entry.queue = Some(queue.id.clone());
        self.commit(&[Step { content: Some(content), edits, ..entry.into() }], Some(&text))?;
        Ok(task)
    }

    #[expect(clippy::too_many_arguments, reason = "an item in its document, and what happens to it")]
    fn transition(
        &mut self,
        text: &Text,
        document: &Document<'_>,
        item: &Item<'_>,
        id: &TaskId,
        event: &Event,
        note: &Note,
        now: Timestamp,
    ) -> Result<Done, Error> {
        let (step, task) = self.board.step(&text.queue, document, item, id.clone(), event, note, now)?;
        let lease = match &step.lease {
            LeaseChange::Put(lease) => Some((**lease).clone()),
            LeaseChange::Keep => self.board.lease(id)?,
            LeaseChange::Drop => None,
        };
        let entry = self.commit(&[step], Some(text))?;
        Ok(Done { entry, queue: text.queue.clone(), task, lease })
    }

    /// Appends the events of steps that rest on one another, the first one on `text`, then makes them true; returns the
    /// first event. All that may lack room or leave is done before an event is there, so that an error means that nothing
    /// has happened; once it is there it stands, also if the files can't show it yet.
    pub(super) fn commit(&mut self, steps: &[Step], text: Option<&Text>) -> Result<Entry, Error> {
        let content = steps.iter().rev().find_map(|step| step.content.as_ref());
        let document = text
            .zip(content)
            .map(|(text, content)| {
                Ok::<_, Error>((text, content, Staged::durable(&text.queue.path, content.as_bytes())?))
            })
            .transpose()?;
        let stage = |step: &Step| match &step.lease {
            LeaseChange::Put(lease) => self.board.stage_lease(lease).map(Some),
            LeaseChange::Drop | LeaseChange::Keep => Ok(None),
        };
        let leases: Vec<Option<Staged>> = steps.iter().map(stage).collect::<Result<_, Error>>()?;
        let mut entries: Vec<Entry> = steps.iter().map(Step::entry).collect();
        for (entry, seq) in entries.iter_mut().zip(self.seq + 1..) {
            entry.seq = seq;
        }
        self.log.append(&entries)?;
        self.seq += entries.len() as u64;
        let changed = document.as_ref().map(|(text, ..)| *text);
        // `applied` stays behind where this fails, and whoever next holds the lock tries again, and says so if it can't.
        let edits: Vec<&[Edit]> = steps.iter().map(|step| step.edits.as_slice()).collect();
        let shown = self.show(entries.iter().zip(leases), document, &edits);
        let first = entries.swap_remove(0);
        if shown.and_then(|()| write_shown(self.board, self.seq)).is_err() {
            return Ok(first);
        }
        // Somebody saved in the very moment of the replacement. If it fails, or if they are still about it, it is done
        // when the lock is next taken.
        if let Some(text) = changed {
            let sight = Sight::of(self.board, &text.queue);
            let is_under_way = sight.is_gone(&text.queue) || sight.is_blank();
            if !is_under_way && !sight.is_seen(self.board, &text.queue) {
                drop(self.take_over(&text.queue, first.time));
            }
        }
        Ok(first)
    }

    /// Makes queue and leases show the events.
    fn show<'e>(
        &self,
        events: impl Iterator<Item = (&'e Entry, Option<Staged>)>,
        document: Option<(&Text, &String, Staged)>,
        edits: &[&[Edit]],
    ) -> Result<(), Error> {
        failpoint::hit("log.appended").map_err(Error::io("go on after", self.board.dir()))?;
        if let Some((text, content, staged)) = document {
            let is_ours = Sight::of(self.board, &text.queue).is_of(self.board, text);
            let old = old_path(self.board, &text.queue);
            match if is_ours { staged.swap_soon(text.stamp, &old, &self.board.path("queues"))? } else { None } {
                Some(file) => {
                    let sight = Sight { file: Some(file), old: Some(text.stamp) };
                    Seen::follow(self.board, text, edits, content, &sight, self.seq)?;
                }
                // Somebody saved the queue between our look and now: the two are merged, or what they load next would be
                // half old and half new.
                None => Seen::doubt(self.board, &text.queue)?,
            }
        }
        failpoint::hit("submit.replaced").map_err(Error::io("go on after", self.board.dir()))?;
        for (entry, lease) in events {
            match lease {
                Some(staged) => staged.put()?,
                None => set_lease(self.board, entry)?,
            }
        }
        failpoint::hit("submit.leased").map_err(Error::io("go on after", self.board.dir()))
    }
}

/// An event, and what it makes of a queue and of a lease; nothing is written yet.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) entry: Entry,
    /// Nothing if the queue stays as it is.
    pub(super) content: Option<String>,
    /// What makes that of the text before, where it is known.
    pub(super) edits: Vec<Edit>,
    pub(super) lease: LeaseChange,
}

impl Step {
    /// The event as it is logged.
    fn entry(&self) -> Entry {
        let mut entry = self.entry.clone();
        entry.lease = match &self.lease {
            LeaseChange::Put(lease) => Some(LeaseEntry::Put(lease.clone())),
            LeaseChange::Drop if entry.token.is_some() => Some(LeaseEntry::Drop),
            LeaseChange::Drop | LeaseChange::Keep => None,
        };
        entry
    }
}

impl From<Entry> for Step {
    /// A line of the log that changes nothing.
    fn from(entry: Entry) -> Step {
        Step { entry, content: None, edits: Vec::new(), lease: LeaseChange::Keep }
    }
}

/// The text and the task that `edits` leave of an item; `content` is the whole document after them. `None` if it doesn't
/// read as the item with that status.
pub(super) fn written(
    document: &Document<'_>,
    item: Option<&Item<'_>>,
    edits: &[Edit],
    content: &str,
    id: &TaskId,
    status: Status,
) -> Option<(String, Task)> {
    let in_full = || {
        let (after, _) = parse(content);
        let item = after.find(id).filter(|item| item.status == status)?;
        Some((after.block(item).to_owned(), after.task(item, id.clone())))
    };
    let plainly = document.written(item, edits, id, status);
    debug_assert!(plainly.is_none() || plainly == in_full(), "{plainly:?} is not {:?}", in_full());
    plainly.or_else(in_full)
}

/// A document that an item of may be changed: with all of its items.
fn whole<'t>(text: &'t str, _: &TaskId) -> Document<'t> {
    parse(text).0
}

/// Calls `then` with `task` where it stands, read by `read`: the lease says in which queue, else all are searched.
fn with_item<R>(
    board: &Board,
    task: &TaskId,
    text_of: fn(&Board, &Queue) -> Result<Text, Error>,
    read: for<'t> fn(&'t str, &TaskId) -> Document<'t>,
    then: impl FnOnce(&Text, &Document<'_>, &Item<'_>) -> R,
) -> Result<R, Error> {
    let leased = board.lease(task).ok().flatten().map(|lease| board.queue_of(&lease.queue));
    let mut unreadable = None;
    for queue in leased.into_iter().chain(board.queues()?) {
        let text = match text_of(board, &queue) {
            Ok(text) if text.content.contains(task.as_str()) => text,
            Ok(_) => continue,
            Err(error) => {
                unreadable = Some(error);
                continue;
            }
        };
        let document = read(&text.content, task);
        // Of an item that was pasted twice the one counts that somebody holds.
        let mut named = document.items().iter().filter(|item| item.id.as_ref() == Some(task));
        if let Some(item) = named.clone().find(|item| item.status.is_held()).or_else(|| named.next()) {
            return Ok(then(&text, &document, item));
        }
    }
    // It may be in the one that can't be read.
    Err(unreadable.unwrap_or_else(|| Error::NoTask(task.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_is_not_read_back_is_not_written() {
        let text = "- [ ] T-1: a (reason: see [x)\n";
        let (document, _) = parse(text);
        let (item, id) = (&document.items()[0], "T-1".parse().expect("an ID"));
        let written = |at: &str, key: &str| {
            let edits = [Edit::insert(text.find(at).expect("it is there"), key)];
            written(&document, Some(item), &edits, &apply(text, &edits), &id, Status::InProgress)
        };
        assert!(
            written("reason", "status: in_progress, ").is_some_and(|(_, task)| task.status() == Status::InProgress)
        );
        assert_eq!(written(")", ", status: in_progress"), None);
    }
}
