//! The only way to change the board: lock, replay after a crash, merge external edits, decide, log, replace. Knows
//! no verb.
//!
//! The appended and synced event is the commit point. After a crash, the next process to take the lock replays
//! it (document, lease), from the event alone.
//! The lock is never held across a child process. It is held across git queries about commits (at most 64 moves of
//! HEAD, if a queue has external edits), and until a commit or a stash has read the replaced files.
#![expect(
    clippy::disallowed_methods,
    reason = "an editor is waited for, without the lock; folders are made"
)]

use std::collections::{BTreeMap, HashSet};
use std::thread;
use std::time::Duration;

use super::atomic_write::Staged;
use super::baseline::{Baseline, header, replaced, spent_path};
use super::board::Board;
use super::change::{Change, QueueRewrite, Rewrite, Step};
use super::checkpoint::{Checkpoint, read_applied, write_applied, write_shown};
use super::content::QueueVersion;
use super::entry::{Entry, LeaseEntry, TextChange};
use super::error::Error;
use super::external_edits::{KnownQueues, taken_over};
use super::file_version::{QueueFiles, Stamp};
use super::index::ItemIndex;
use super::lock::Lock;
use super::log::{Log, known_seq, tail_log};
use super::moved_items::moved;
use super::queue::{Queue, Text, has_too_many};
use super::recovery::{redo, redo_archive, set_lease, unshown};
use super::text_history::{self, SaveMark};
use tavern_core::event::Kind;
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::clock::{self, Deadline};
use tavern_sys::failpoint;
use tavern_sys::secrets::redact;

/// Time until an externally edited queue is checked again: an editor may be in the middle of writing it.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A longer save is not waited for: the decision is then based on the text before it.
const PATIENCE: Duration = Duration::from_millis(300);

/// The board at the time of a decision.
pub(super) struct View<'b> {
    pub(super) board: &'b Board,
    /// The last event's number.
    pub(super) last_seq: u64,
    /// The time of the decision: the caller may have waited for the lock.
    pub(super) now: Timestamp,
    /// The existing queues.
    pub(super) known: KnownQueues,
}

impl View<'_> {
    /// Reads a queue for the decision.
    pub(super) fn read(&self, queue: &Queue) -> Result<Text, Error> {
        if self.board.is_dry() {
            self.board.read(queue)
        } else {
            let known = self.known.headers.get(&queue.path).cloned();
            let header = known.or_else(|| header(self.board, queue));
            self.board.read_settled_by(queue, self.last_seq, header)
        }
    }

    /// Returns the stamps of `text`'s queue when it was read.
    pub(super) fn sight(&self, text: &Text) -> QueueFiles {
        QueueFiles::when_read(self.board, text)
    }

    /// Builds a change from successive steps; the first one applies to `text`.
    pub(super) fn change(&self, text: Text, steps: Vec<Step>) -> Change {
        let sight = self.sight(&text);
        if steps.iter().any(|step| !step.edits.is_empty()) {
            // The cached text is not used again; dropping it saves a copy.
            self.board.last_read.forget(&text.queue.path);
        } else if !self.board.looks_after(&text.queue) {
            // A task file outside of the board gets a baseline from now on, even if unchanged.
            let content = text.content.to_string();
            return Change::known(sight, text.queue, content, steps);
        }
        Change::of_queue(sight, text, steps)
    }
}

impl Board {
    /// Changes the board as `decide` says; a dry run keeps the change in memory. Every step that may lack space or
    /// permission comes before the log, so an error means that nothing has happened. Once logged, the change stands,
    /// even if the files can't show it yet.
    pub(super) fn transact<R>(
        &self,
        decide: impl FnOnce(&View<'_>) -> Result<(Change, R), Error>,
    ) -> Result<R, Error> {
        if let Some(rehearsal) = &self.rehearsal {
            let last_seq = self.last_seq()? + rehearsal.events();
            let (mut change, told) = decide(&View {
                board: self,
                last_seq,
                now: clock::now(),
                known: KnownQueues {
                    queues: self.queues()?,
                    ..KnownQueues::default()
                },
            })?;
            change.number(last_seq);
            let content = |file| match file {
                Rewrite::Queue(rewrite) => Some((rewrite.queue.path, rewrite.content)),
                Rewrite::File { path, content } => Some((path, content)),
                Rewrite::Save { .. } => None,
            };
            rehearsal.keep(change.entries, change.files.into_iter().filter_map(content));
            return Ok(told);
        }
        let mut locked = Locked::new(self)?;
        let (change, told) = decide(&locked.view())?;
        let queues: Vec<Queue> = change.queues().cloned().collect();
        // On failure `applied` stays behind, and the next process to take the lock retries and reports the error.
        if locked.commit(change)?.is_ok() {
            queues.iter().for_each(|queue| locked.look_again(queue));
        }
        Ok(told)
    }

    /// Merges external edits, and finishes changes that a crash interrupted.
    pub fn settle(&self) -> Result<(), Error> {
        // A dry run takes no lock, which would merge them.
        let by_hand = if self.is_dry() {
            self.by_hand()?
        } else {
            Vec::new()
        };
        let mut come = HashSet::new();
        if let Some(rehearsal) = self.rehearsal.as_ref().filter(|_| !by_hand.is_empty()) {
            self.transact(|view| {
                let mut moved = moved(self, &by_hand, view.last_seq, view.now)?;
                come.extend(moved.entries.iter().filter_map(|entry| entry.task.clone()));
                // A file with external edits stays; only the text that they are compared with changes.
                moved.files.retain(|file| match file {
                    Rewrite::Queue(rewrite) if rewrite.is_shown => {
                        rehearsal.keep_baseline(&rewrite.queue.path, &rewrite.content);
                        false
                    }
                    _ => true,
                });
                Ok((moved, ()))
            })?;
        }
        let mut index = ItemIndex::of(self);
        for (queue, _) in by_hand
            .iter()
            .filter(|(queue, _)| self.rehearsed(&queue.path).is_none())
        {
            self.transact(|view| {
                let taken = taken_over(&index, view.last_seq, queue, &come, view.now)?;
                Ok((taken.unwrap_or_default(), ()))
            })?;
            index.look_again(queue);
        }
        self.transact(|_| {
            let queues = self.queues()?;
            self.remove_stale_states(&queues);
            for queue in queues {
                // On failure the file is outdated until the next look.
                drop(self.show_states(&queue));
            }
            Ok((Change::default(), ()))
        })
    }

    /// Returns the board as it will be once external edits are merged, for reading without the lock.
    pub fn settled(self) -> Result<Board, Error> {
        if self.is_settled()? {
            return Ok(self);
        }
        let board = self.dry();
        board.settle()?;
        Ok(board)
    }

    /// Returns whether [`Board::settle`] would change nothing, as far as is known without the lock.
    pub fn is_settled(&self) -> Result<bool, Error> {
        Ok(self.shows_all() && self.by_hand()?.is_empty())
    }

    /// Returns true if the files show all events of the log.
    pub(super) fn shows_all(&self) -> bool {
        read_applied(self).is_none_or(|applied| self.last_seq().is_ok_and(|last| last <= applied))
    }
}

/// The board while this process holds its lock, with everything replayed that a crash left behind.
struct Locked<'b> {
    board: &'b Board,
    log: Log,
    seq: u64,
    /// The last event that the files show even after a power cut, if known.
    synced: Option<u64>,
    /// When it got the lock.
    now: Timestamp,
    /// The existing queues.
    known: KnownQueues,
    _lock: Lock,
}

impl<'b> Locked<'b> {
    /// Takes the lock and merges external edits, if their writers have finished.
    fn new(board: &'b Board) -> Result<Locked<'b>, Error> {
        let (mut before, mut end) = (Vec::new(), None);
        loop {
            let mut locked = Locked::open(Lock::take(board)?, board)?;
            let (known, mut by_hand) = board.look_for_saves()?;
            locked.known = known;
            // A person may take hours to resolve conflicts.
            by_hand.retain(|(queue, _)| !board.is_unresolved(queue));
            let is_busy =
                !by_hand.is_empty() && board.is_git_at_work(by_hand.iter().map(|(queue, _)| queue));
            let is_settled = !is_busy
                && by_hand == before
                && !by_hand
                    .iter()
                    .any(|(queue, sight)| sight.is_gone(queue) || sight.is_blank());
            // The deadline starts at the first look, however long the lock took.
            let is_last = end
                .get_or_insert_with(|| Deadline::after(PATIENCE))
                .has_passed();
            if is_settled || is_last {
                let moved = moved(board, &by_hand, locked.seq, locked.now)?;
                let come = moved
                    .entries
                    .iter()
                    .filter_map(|entry| entry.task.clone())
                    .collect();
                if !moved.files.is_empty() {
                    locked.commit(moved)??;
                    by_hand = board.by_hand()?;
                }
                let mut index = ItemIndex::of(board);
                for (queue, _) in &by_hand {
                    Baseline::forget_own(board, queue)?;
                    locked.take_over(&index, queue, &come)?;
                    index.look_again(queue);
                }
            }
            if by_hand.is_empty() {
                return Ok(locked);
            }
            // A queue may have been saved or put back meanwhile.
            let (known, again) = board.look_for_saves()?;
            if is_last || again.is_empty() {
                locked.known = known;
                return Ok(locked);
            }
            // git moves HEAD after it has released its lock.
            before = if is_busy { Vec::new() } else { by_hand };
            drop(locked);
            // Other processes may take the lock meanwhile.
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn open(lock: Lock, board: &'b Board) -> Result<Locked<'b>, Error> {
        let now = clock::now();
        let log = Log::open(board, now)?;
        let known = Checkpoint::read(board);
        let (shown, mut synced) = (
            known.as_ref().map(Checkpoint::shown),
            known.map(|it| it.synced),
        );
        let applied = shown.unwrap_or_else(|| log.last_seq().saturating_sub(1));
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
                    redo_archive(board, entries, &left)?;
                } else {
                    redo(board, entries, &left)?;
                }
            }
            write_applied(board, log.last_seq())?;
            synced = Some(log.last_seq());
        }
        board.keep_typed();
        let (last, known) = (log.last_seq(), shown.unwrap_or_else(|| known_seq(board)));
        let mut locked = Locked {
            board,
            log,
            seq: last.max(known),
            synced,
            now,
            known: KnownQueues::default(),
            _lock: lock,
        };
        if last < known {
            // Numbers continue, so that a token is never reused.
            let cause = format!(
                "the log was damaged: it ended with event {last}, and there had been {known}"
            );
            let note = Entry {
                cause: Some(cause),
                ..Entry::new(Kind::Noted, now)
            };
            drop(locked.commit(Change::notes(vec![note]))?);
        }
        if last == 0 {
            drop(locked.commit(Change::notes(board.shown_states(now)?))?);
        }
        if locked.seq == locked.log.last_seq() {
            // A failure shows where the states are needed.
            drop(board.learn_states(&locked.log));
        }
        Ok(locked)
    }

    fn view(&self) -> View<'b> {
        View {
            board: self.board,
            last_seq: self.seq,
            now: self.now,
            known: self.known.clone(),
        }
    }

    /// Merges external edits to `queue`, into which the items `come` may just have been moved.
    fn take_over(
        &mut self,
        index: &ItemIndex<'_>,
        queue: &Queue,
        come: &HashSet<TaskId>,
    ) -> Result<(), Error> {
        match taken_over(index, self.seq, queue, come, self.now)? {
            Some(change) => self.commit(change)?,
            None => Ok(()),
        }
    }

    /// Merges a save made at the moment of the replacement. If this fails, or the save is not finished, the next
    /// process to take the lock does it.
    fn look_again(&mut self, queue: &Queue) {
        let sight = QueueFiles::of(self.board, queue);
        let is_under_way = sight.is_gone(queue) || sight.is_blank();
        if !is_under_way && self.board.looks_after(queue) && !sight.is_seen(self.board, queue) {
            drop(self.take_over(&ItemIndex::of(self.board), queue, &HashSet::new()));
        }
    }

    /// Stages, logs and shows a change.
    ///
    /// # Errors
    /// The outer one: nothing has happened. The inner one: the change is logged, but the files don't show it.
    fn commit(&mut self, mut change: Change) -> Result<Result<(), Error>, Error> {
        if change.entries.is_empty() && change.files.is_empty() {
            return Ok(Ok(()));
        }
        // Once an item of a task file outside of the board is held, every program reads that file.
        if change.entries.iter().any(|entry| entry.lease.is_some()) {
            change.queues().try_for_each(|queue| {
                let is_new = !self.board.looks_after(queue);
                self.board.remember(queue)?;
                // An editor may have the file open as it is now.
                match self.board.read_file(queue) {
                    Ok(text) if is_new => {
                        text_history::keep(self.board, queue, None, &text.content, None)
                    }
                    _ => Ok(()),
                }
            })?;
        }
        change.number(self.seq);
        let Change { mut entries, files } = change;
        if let Some(actor) = self.board.actor() {
            entries.iter_mut().for_each(|entry| entry.done_by(actor));
        }
        for words in entries
            .iter_mut()
            .flat_map(|entry| [&mut entry.cause, &mut entry.agent, &mut entry.by])
            .flatten()
        {
            *words = redact(words).into_owned();
        }
        let first = entries.first().map(|entry| (entry.seq, entry.time));
        let files: Vec<(Rewrite, Option<Staged>)> = files
            .into_iter()
            .map(|file| stage(self.board, file, first.as_ref()))
            .collect::<Result<_, Error>>()?;
        let stage_lease = |entry: &Entry| match &entry.lease {
            Some(LeaseEntry::Put(lease)) => self.board.stage_lease(lease).map(Some),
            Some(LeaseEntry::Drop) | None => Ok(None),
        };
        let leases: Vec<Option<Staged>> = entries
            .iter()
            .map(stage_lease)
            .collect::<Result<_, Error>>()?;
        // Without `applied`, all events but the last are assumed to be shown.
        if entries.len() > 1 && self.synced.is_none() {
            write_applied(self.board, self.seq)?;
            self.synced = Some(self.seq);
        }
        self.log.append(&entries)?;
        self.seq += entries.len() as u64;
        // Without a new snapshot, the log is read from the last one on.
        drop(self.board.add_states(&entries));
        let shown = self.show(&entries, leases, files);
        self.show_states(&entries);
        if entries.is_empty() {
            // Without an event, nothing could be replayed.
            return shown
                .and_then(|()| write_applied(self.board, self.seq))
                .map(Ok);
        }
        let written = shown.and_then(|()| write_shown(self.board, self.seq, self.synced));
        Ok(written.map(|synced| self.synced = Some(synced)))
    }

    /// Updates the state files after the events. The next update makes up for a failure.
    fn show_states(&self, entries: &[Entry]) {
        let board = self.board;
        let is_removed = |entry: &&Entry| matches!(entry.change, TextChange::Removed { .. });
        let of_items = entries
            .iter()
            .filter(|entry| entry.state.is_some() || is_removed(entry));
        let mut queues: BTreeMap<&str, bool> = BTreeMap::new();
        for (entry, id) in of_items.filter_map(|entry| Some((entry, entry.queue.as_deref()?))) {
            *queues.entry(id).or_default() |= entry.is_end();
        }
        for (id, is_end) in queues {
            let mut queues = self.known.queues.iter();
            let known = queues.find(|queue| queue.id == id).cloned();
            let Some(queue) = known.or_else(|| board.queue_by_id(id).ok()) else {
                continue;
            };
            if is_end || board.may_show_states(&queue) {
                drop(board.show_states_at(&queue, self.seq));
            }
        }
    }

    /// Makes files and leases show the events.
    fn show(
        &self,
        entries: &[Entry],
        leases: Vec<Option<Staged>>,
        files: Vec<(Rewrite, Option<Staged>)>,
    ) -> Result<(), Error> {
        let stopped = || Error::io("go on after", self.board.dir());
        if !entries.is_empty() {
            failpoint::hit("log.appended").map_err(stopped())?;
        }
        for (file, staged) in files {
            match (file, staged) {
                (Rewrite::Save { .. }, _) => {}
                (Rewrite::File { .. }, staged) => {
                    staged.map_or(Ok(()), Staged::put)?;
                    failpoint::hit("archive.written").map_err(stopped())?;
                    // A commit or a stash that has begun since has read the old version of this file, and must also
                    // read the old queue.
                    let end = Deadline::after(PATIENCE);
                    while self.board.is_git_reading() && !end.has_passed() {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                (Rewrite::Queue(rewrite), staged) => {
                    self.show_queue(rewrite, staged)?;
                }
            }
        }
        failpoint::hit("submit.replaced").map_err(stopped())?;
        for (entry, lease) in entries.iter().zip(leases) {
            match lease {
                Some(staged) => staged.put()?,
                None => set_lease(self.board, entry)?,
            }
        }
        failpoint::hit("submit.leased").map_err(stopped())
    }

    fn show_queue(&self, rewrite: QueueRewrite, staged: Option<Staged>) -> Result<(), Error> {
        let QueueRewrite {
            queue,
            expected,
            content,
            ..
        } = rewrite;
        let keep =
            |sight: &QueueFiles| Baseline::write(self.board, &queue, &content, sight, self.seq);
        let Some(staged) = staged else {
            return keep(&expected);
        };
        let old = replaced(self.board, &queue, expected.old);
        let found = QueueFiles::of(self.board, &queue);
        let file = if found == expected {
            staged.swap(expected.file, &old, &self.board.path("queues"))?
        } else {
            None
        };
        match (file, expected.file) {
            // This queue has no baseline to compare with. If it was saved at this moment, the next process to take the
            // lock replays the change.
            (file, _) if !self.board.looks_after(&queue) => file.map(drop).ok_or(Error::Busy(0)),
            (Some(new), replaced) => {
                let sight = QueueFiles {
                    file: Some(new),
                    old: replaced.or(expected.old),
                };
                keep(&sight)?;
                let version = QueueVersion {
                    file: new,
                    seq: self.seq,
                };
                self.board
                    .last_read
                    .keep(&queue.path, version, content.into());
                Ok(())
            }
            // The queue was saved between the check and now. The two are merged, or the next editor to load it would
            // see half of each.
            (None, _) => {
                let unknown = QueueFiles {
                    file: Some(Stamp::NONE),
                    ..expected
                };
                keep(&unknown)
            }
        }
    }
}

/// Stages the new content of a file; stores an external save with the `first` event of its merge.
fn stage(
    board: &Board,
    file: Rewrite,
    first: Option<&(u64, Timestamp)>,
) -> Result<(Rewrite, Option<Staged>), Error> {
    let staged = match &file {
        Rewrite::Queue(QueueRewrite { is_shown: true, .. }) => return Ok((file, None)),
        Rewrite::Save {
            queue,
            known,
            text,
            base,
            writer,
        } => {
            let (event, time) = first.copied().unwrap_or_else(|| (0, clock::now()));
            let mark = SaveMark {
                base: *base,
                writer: *writer,
                event,
            };
            text_history::keep(board, queue, Some(known), text, Some((mark, time)))?;
            return Ok((file, None));
        }
        Rewrite::Queue(QueueRewrite { queue, content, .. }) if has_too_many(content) => {
            return Err(Error::TooMany(queue.path.clone()));
        }
        Rewrite::Queue(QueueRewrite { queue, content, .. }) => {
            Staged::over(&spent_path(board, queue), &queue.path, content.as_bytes())?
        }
        Rewrite::File { path, content } => Staged::durable(path, content.as_bytes())?,
    };
    Ok((file, Some(staged)))
}
