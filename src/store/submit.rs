//! Changing the board: lock, redo, read, decide, append, replace, lease.
//!
//! The appended and synced event is the commit point. What a crash left undone behind it (document, lease) is redone
//! by whoever next holds the lock, from the event alone. The lock is never held across git, a child or a sleep.
#![expect(clippy::disallowed_methods, reason = "an editor is waited for, without the lock")]

use std::slice;
use std::thread;
use std::time::Duration;

use super::archive::{self, with_archived};
use super::error::Error;
use super::find::Board;
use super::lock::Lock;
use super::log::{Entry, LeaseEntry, Log, tail_log};
use super::queue::{Queue, Text};
use super::redo::{read_applied, redo, set_lease};
use super::replace::Staged;
use super::seek::{Nothing, Seek, Stuck};
use super::seen::{Seen, Sight, old_path};
use super::shelf::{Shelf, mint};
use crate::board::decide::{Change, LeaseChange, decide};
use crate::board::document::{Document, Item, parse, parse_for};
use crate::board::edit::{NewItem, Patch, render};
use crate::board::eligible::Why;
use crate::board::event::{Claim, Event, Kind, Purpose};
use crate::board::lease::Lease;
use crate::board::task::{Status, Task, TaskId, Timestamp};
use crate::board::text::{Edit, apply};
use crate::failpoint;

pub(super) use super::redo::{redone, write_applied};

/// A queue that was saved by hand is looked at again after this: an editor may be in the middle of writing it.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// So often it is looked at before it is taken as it is.
const MOST_LOOKS: usize = 50;

/// A task in the caller's hands.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub queue: Queue,
    pub task: Task,
    pub lease: Lease,
    /// The item's `sh` block, for the shell runner.
    pub script: Option<String>,
    /// It was worked on or spoken of before: the log may have more of it.
    pub has_history: bool,
}

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
        let done = with_item(self, task, Board::read_settled, whole, |text, document, item| {
            locked.transition(text, document, item, task.clone(), event, note, now)
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

    /// Takes the next eligible item under a lease: one compare-and-set under the lock, never pick, then mark. For a chat
    /// the named one, whatever its status is.
    pub fn claim(&self, seek: &Seek, now: Timestamp) -> Result<Result<Claimed, Nothing>, Error> {
        let mut locked = Locked::new(self, now)?;
        if let (Some(task), true) = (&seek.task, seek.is_chat) {
            let taken = with_item(self, task, Board::read_settled, whole, |text, document, item| {
                locked.take(text, document, item, seek, Purpose::Chat, now)
            });
            return taken?.map(Ok);
        }
        let shelf = Shelf::of(self);
        let mut nothing = Nothing::default();
        for queue in &seek.queues {
            let text = match self.read_settled(queue) {
                Ok(text) => text,
                Err(error) if seek.queues.len() == 1 => return Err(error),
                // One queue that can't be read keeps nobody from working on the others.
                Err(error) => {
                    nothing.stuck.push(Stuck { queue: queue.id.clone(), line: 0, task: None, why: error.to_string() });
                    continue;
                }
            };
            let (document, _) = parse(&text.content);
            nothing.under_way += document.items().iter().filter(|item| item.status.is_held()).count();
            let taken = seek.look(&shelf, queue, &document, now, &mut |item, open| {
                let taken = match open {
                    // A lease for a pending item: a stale copy of the queue was saved over it; its holder keeps it.
                    Ok(_) if locked.is_leased(item)? => {
                        nothing.under_way += 1;
                        None
                    }
                    Ok(_) if is_double(&document, item, &|id| shelf.status_of(id, queue).is_some()) => {
                        nothing.count(queue, item, &Why::Quarantined);
                        None
                    }
                    Ok(purpose) => Some(locked.take(&text, &document, item, seek, purpose, now)?),
                    Err(why) => {
                        nothing.count(queue, item, &why);
                        None
                    }
                };
                Ok(taken)
            })?;
            if let Some(taken) = taken {
                return Ok(Ok(taken));
            }
        }
        Ok(Err(nothing))
    }

    /// Puts a new item into `queue`, by the given ID or a fresh one, and returns it as it stands there.
    pub fn add(&self, queue: &Queue, new: NewItem, status: Status, note: &Note, now: Timestamp) -> Result<Task, Error> {
        let mut locked = Locked::new(self, now)?;
        let text = self.read_settled(queue)?;
        let (document, _) = parse(&text.content);
        let shelf = Shelf::of(self);
        let mut is_taken = |id: &TaskId| document.find(id).is_some() || shelf.knows(id, queue);
        let id = match new.id.clone() {
            Some(id) if is_taken(&id) => return Err(Error::Taken(id)),
            Some(id) => id,
            None => mint(&mut is_taken),
        };
        let block = render(&NewItem { id: Some(id.clone()), ..new });
        let edits = document.add(status, &block);
        let content = apply(&text.content, &edits);
        let mut entry = Entry { to: Some(status), agent: note.agent.clone(), ..Entry::new(Kind::Added, now) };
        let written = written(&document, None, &edits, &content, &id, status);
        let (after, task) = written.ok_or_else(|| Error::Quarantined { task: id.clone() })?;
        entry.after = Some(after);
        entry.task = Some(id);
        entry.queue = Some(queue.id.clone());
        locked.commit(entry, Some((&text, &content)), &LeaseChange::Keep)?;
        Ok(task)
    }

    /// Writes a line to the log that changes no item.
    pub fn note(&self, entry: Entry, now: Timestamp) -> Result<(), Error> {
        Locked::new(self, now)?.commit(entry, None, &LeaseChange::Keep).map(|_| ())
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
        locked.commit(entry, None, &LeaseChange::Keep)?;
        Ok(true)
    }

    /// Finishes what a crash left half done: nothing else changes.
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
        locked.commit(entry, None, &LeaseChange::Drop)?;
        Ok(true)
    }
}

/// Another item goes by the same ID, here or in another queue: it is not known which of them is meant. (Circles and
/// unknown dependencies need no look here: their items are never eligible.)
fn is_double(document: &Document<'_>, item: &Item<'_>, is_elsewhere: &dyn Fn(&TaskId) -> bool) -> bool {
    let Some(id) = &item.id else { return false };
    document.items().iter().filter(|other| other.id == item.id).nth(1).is_some() || is_elsewhere(id)
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
        let mut before = Vec::new();
        for look in 0.. {
            let mut locked = Locked::open(board, now)?;
            let by_hand = locked.by_hand()?;
            let is_settled =
                by_hand == before && !by_hand.iter().any(|(queue, sight)| sight.is_gone(queue) || sight.is_blank());
            if is_settled || look == MOST_LOOKS {
                for (queue, _) in &by_hand {
                    Seen::forget_own(board, queue)?;
                    locked.take_over(queue, now)?;
                }
            }
            // Somebody may have saved meanwhile.
            if by_hand.is_empty() || look == MOST_LOOKS || locked.by_hand()?.is_empty() {
                return Ok(locked);
            }
            before = by_hand;
            drop(locked);
            // Others may have the lock meanwhile.
            thread::sleep(BETWEEN_LOOKS);
        }
        unreachable!("the last look returns")
    }

    fn open(board: &'b Board, now: Timestamp) -> Result<Locked<'b>, Error> {
        let lock = Lock::take(board)?;
        let log = Log::open(board, now)?;
        let applied = read_applied(board).unwrap_or_else(|| log.last_seq().saturating_sub(1));
        if applied < log.last_seq() {
            let entries = tail_log(board, applied)?;
            let is_one_move =
                |one: &Entry, next: &Entry| [one.kind, next.kind] == [Kind::Archived; 2] && one.queue == next.queue;
            for entries in entries.chunk_by(is_one_move) {
                match entries[0].kind {
                    Kind::Archived => archive::redo(board, entries)?,
                    _ => redo(board, &entries[0])?,
                }
            }
            write_applied(board, log.last_seq())?;
        }
        // If the log was cleaned away, the numbers still go on: a token is never given twice.
        let seq = log.last_seq().max(applied);
        Ok(Locked { board, log, seq, _lock: lock })
    }

    fn is_leased(&self, item: &Item<'_>) -> Result<bool, Error> {
        match &item.id {
            // One that can't be read is somebody's until `tavern-reap` has looked after it.
            Some(id) => match self.board.lease(id) {
                Err(Error::Damaged { .. }) => Ok(true),
                lease => Ok(lease?.is_some()),
            },
            None => Ok(false),
        }
    }

    fn take(
        &mut self,
        text: &Text,
        document: &Document<'_>,
        item: &Item<'_>,
        seek: &Seek,
        purpose: Purpose,
        now: Timestamp,
    ) -> Result<Claimed, Error> {
        let shelf = Shelf::of(self.board);
        let mut is_taken = |id: &TaskId| document.find(id).is_some() || shelf.knows(id, &text.queue);
        let id = item.id.clone().unwrap_or_else(|| mint(&mut is_taken));
        let event = Event::Claim(Claim {
            agent: seek.agent.clone(),
            role: seek.role.clone(),
            purpose,
            token: self.seq + 1,
            seconds: seek.seconds,
            holder: seek.holder.clone(),
        });
        let script = document.shell(item);
        let before = document.task(item, id.clone());
        let has_history = before.reason.is_some()
            || before.attempt + before.returns + before.rounds > 0
            || before.status != Status::Pending;
        let note = Note { agent: Some(seek.agent.clone()), run: None };
        let done = self.transition(text, document, item, id, &event, &note, now)?;
        let lease = done.lease.expect("a claim makes a lease");
        Ok(Claimed { queue: done.queue, task: done.task, lease, script, has_history })
    }

    #[expect(clippy::too_many_arguments, reason = "an item in its document, and what happens to it")]
    fn transition(
        &mut self,
        text: &Text,
        document: &Document<'_>,
        item: &Item<'_>,
        id: TaskId,
        event: &Event,
        note: &Note,
        now: Timestamp,
    ) -> Result<Done, Error> {
        if item.quarantined {
            return Err(Error::Quarantined { task: id });
        }
        let task = document.task(item, id.clone());
        let lease = self.board.lease(&id)?;
        let mut change = decide(&task, lease.as_ref(), event, now)?;
        if let LeaseChange::Put(lease) = &mut change.lease {
            lease.queue.clone_from(&text.queue.id);
        }
        if item.id.is_none() {
            change.patch.id = Some(id.clone());
        }
        let mut entry = Entry::new(event.kind(), now);
        entry.task = Some(id.clone());
        entry.queue = Some(text.queue.id.clone());
        entry.agent = note.agent.clone().or_else(|| lease.as_ref().map(|lease| lease.agent.clone()));
        entry.token = match &change.lease {
            LeaseChange::Put(lease) => Some(lease.token),
            _ => lease.as_ref().map(|lease| lease.token),
        };
        let work = lease.as_ref().and_then(|lease| lease.work.as_ref());
        entry.run = note.run.clone().or_else(|| work.map(|work| work.run.clone()));
        entry.cause = event.reason().map(str::to_owned);
        if matches!(event, Event::Claim(_)) {
            // A person typed it into the queue.
            entry.cause = task.answered();
        }
        if let Event::Submit { commit, .. } | Event::Approve { commit, .. } | Event::Integrate { commit } = event {
            entry.commit.clone_from(commit);
        }
        if change.to != task.status {
            entry.from = Some(task.status);
            entry.to = Some(change.to);
        }
        let edits = if change.patch == Patch::default() { Vec::new() } else { document.change(item, &change.patch) };
        let content = apply(&text.content, &edits);
        let written = written(document, Some(item), &edits, &content, &id, change.to);
        let (after, task) = written.ok_or_else(|| Error::Quarantined { task: id.clone() })?;
        if !edits.is_empty() {
            entry.before = Some(document.block(item).to_owned());
            entry.after = Some(after);
        }
        let changed = (!edits.is_empty()).then_some((text, content.as_str()));
        let entry = self.commit(entry, changed, &change.lease)?;
        let lease = match change.lease {
            LeaseChange::Put(lease) => Some(*lease),
            LeaseChange::Keep => lease,
            LeaseChange::Drop => None,
        };
        Ok(Done { entry, queue: text.queue.clone(), task, lease })
    }

    /// Appends the event, then makes it true. All that may lack room or leave is done before the event is there, so
    /// that an error means that nothing has happened; once it is there it stands, also if the files can't show it yet.
    pub(super) fn commit(
        &mut self,
        mut entry: Entry,
        changed: Option<(&Text, &str)>,
        lease: &LeaseChange,
    ) -> Result<Entry, Error> {
        entry.seq = self.seq + 1;
        entry.lease = match lease {
            LeaseChange::Put(lease) => Some(LeaseEntry::Put(lease.clone())),
            LeaseChange::Drop if entry.token.is_some() => Some(LeaseEntry::Drop),
            LeaseChange::Drop | LeaseChange::Keep => None,
        };
        let document = changed
            .map(|(text, content)| {
                Ok::<_, Error>((text, content, Staged::durable(&text.queue.path, content.as_bytes())?))
            })
            .transpose()?;
        let lease = match lease {
            LeaseChange::Put(lease) => Some(self.board.stage_lease(lease)?),
            LeaseChange::Drop | LeaseChange::Keep => None,
        };
        self.log.append(slice::from_ref(&entry))?;
        self.seq = entry.seq;
        // `applied` stays behind where this fails, and whoever next holds the lock tries again, and says so if it can't.
        let shown = self.show(&entry, document, lease);
        if shown.and_then(|()| write_applied(self.board, self.seq)).is_err() {
            return Ok(entry);
        }
        // Somebody saved in the very moment of the replacement. If it fails, or if they are still about it, it is done
        // when the lock is next taken.
        if let Some((text, _)) = changed {
            let sight = Sight::of(self.board, &text.queue);
            let is_under_way = sight.is_gone(&text.queue) || sight.is_blank();
            if !is_under_way && !sight.is_seen(self.board, &text.queue) {
                drop(self.take_over(&text.queue, entry.time));
            }
        }
        Ok(entry)
    }

    /// Makes queue and lease show the event.
    fn show(&self, entry: &Entry, document: Option<(&Text, &str, Staged)>, lease: Option<Staged>) -> Result<(), Error> {
        failpoint::hit("log.appended").map_err(Error::io("go on after", self.board.dir()))?;
        match document {
            Some((text, content, staged)) if Sight::of(self.board, &text.queue).is_of(self.board, text) => {
                let file = staged.swap(&old_path(self.board, &text.queue))?;
                let sight = Sight { file: Some(file), old: Some(text.stamp) };
                Seen::write(self.board, &text.queue, content, &sight, self.seq)?;
            }
            // Somebody saved the queue between our look and now: the two are merged, or what they load next would be
            // half old and half new.
            Some((text, _, _)) => Seen::doubt(self.board, &text.queue)?,
            None => {}
        }
        failpoint::hit("submit.replaced").map_err(Error::io("go on after", self.board.dir()))?;
        match lease {
            Some(staged) => staged.put()?,
            None => set_lease(self.board, entry)?,
        }
        failpoint::hit("submit.leased").map_err(Error::io("go on after", self.board.dir()))
    }
}

/// The text and the task that `edits` leave of an item; `content` is the whole document after them.
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
        after.find(id).map(|item| (after.block(item).to_owned(), after.task(item, id.clone())))
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
