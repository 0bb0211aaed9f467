//! What a crash left undone behind an event is made true from the event alone, by whoever next holds the lock.
//!
//! Doing it again changes nothing.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::Write;

use super::error::Error;
use super::find::Board;
use super::log::{Entry, LeaseEntry};
use super::queue::Queue;
use super::replace::{Staged, sync_folder};
use super::restore::restored;
use super::seen::{Seen, old_path};
use crate::board::document::{Item, parse};
use crate::board::event::Kind;
use crate::board::lease::Lease;
use crate::board::merge::{merge, prose};
use crate::board::task::TaskId;
use crate::board::text::apply;
use crate::process::identity::boot_id;

/// Makes the files show what logged events say, but for the queues `left` to whoever takes over what was saved by hand. Doing
/// it again changes nothing: an item's text is the event's `before` (then it is redone), its `after` (then it was done), or a
/// person's (then it stands).
pub(super) fn redo(board: &Board, entries: &[Entry], left: &[String]) -> Result<(), Error> {
    let queue_of = |entry: &Entry| entry.queue.clone().filter(|queue| !left.contains(queue));
    let queues: BTreeSet<String> = entries.iter().filter(|entry| entry.changes_text()).filter_map(queue_of).collect();
    for queue in queues.iter().filter_map(|id| board.queue_by_id(id).ok()) {
        let own: Vec<&Entry> = entries.iter().filter(|entry| entry.queue.as_ref() == Some(&queue.id)).collect();
        show(board, &queue, &own)?;
    }
    entries.iter().try_for_each(|entry| set_lease(board, entry))
}

/// In one step, so that a queue shows all of them or none.
fn show(board: &Board, queue: &Queue, entries: &[&Entry]) -> Result<(), Error> {
    loop {
        let text = match board.read(queue) {
            // A person made it unreadable since, and has to mend it; others can't wait for that.
            Err(Error::NotText { .. }) => return Ok(()),
            text => text?,
        };
        let content = entries.iter().fold(text.content.clone(), |text, entry| redone(&text, entry).unwrap_or(text));
        if content == text.content {
            return Ok(());
        }
        let staged = Staged::durable(&queue.path, content.as_bytes())?;
        if staged.swap(Some(text.stamp), &old_path(board, queue), &board.path("queues"))?.is_some() {
            return Seen::forget(board, queue, text.stamp);
        }
        // Somebody saves at this very moment.
    }
}

pub(super) fn redone(content: &str, entry: &Entry) -> Option<String> {
    if let (true, Some(before), Some(after)) = (is_prose(entry), &entry.before, &entry.after) {
        let now = prose(content);
        let is_before = said(&now).eq(said(before));
        return is_before.then(|| merge(&now, content, after, &|_| false).text);
    }
    let (document, _) = parse(content);
    let is_before = |item: &&Item<'_>| {
        entry.before.as_ref().is_some_and(|before| document.block(item).trim_end() == before.trim_end())
    };
    let Some(after) = &entry.after else {
        let item = match &entry.task {
            Some(task) => document.find(task).filter(is_before),
            None => document.items().iter().find(is_before),
        };
        return Some(apply(content, &restored(&document, Some(item?), None)));
    };
    if entry.before.is_none() {
        let reads_so = |item: &Item<'_>| document.block(item).trim_end() == after.trim_end();
        let is_there = match &entry.task {
            Some(task) => document.find(task).is_some(),
            None => document.items().iter().any(reads_so),
        };
        return (!is_there).then(|| apply(content, &restored(&document, None, Some((after, entry.to)))));
    }
    // Where only its lane says what an item is, the text alone does not tell whether it was moved.
    let is_told = |item: &Item<'_>| entry.before.as_ref() != Some(after) || entry.to.is_none_or(|to| item.status == to);
    if document.items().iter().any(|item| document.block(item).trim_end() == after.trim_end() && is_told(item)) {
        return None;
    }
    let item = document.items().iter().find(is_before)?;
    Some(apply(content, &restored(&document, Some(item), Some((after, entry.to)))))
}

pub(super) fn set_lease(board: &Board, entry: &Entry) -> Result<(), Error> {
    let Some(task) = &entry.task else { return Ok(()) };
    let current = match board.lease(task) {
        Err(Error::Damaged { .. }) => {
            board.drop_lease(task)?;
            None
        }
        lease => lease?,
    };
    match &entry.lease {
        Some(LeaseEntry::Put(lease)) => {
            // It may have been renewed since.
            let same = current.as_ref().filter(|current| current.token == lease.token);
            let heartbeat_at = same.map_or(entry.time, |current| current.heartbeat_at.max(entry.time));
            let is_older = current.is_none_or(|current| current.token <= lease.token);
            let lease = Lease { heartbeat_at, ..(**lease).clone() };
            if is_older { board.stage_lease(&lease)?.put() } else { Ok(()) }
        }
        Some(LeaseEntry::Drop) => {
            let is_this = current.is_some_and(|current| Some(current.token) <= entry.token);
            if is_this { board.drop_lease(task) } else { Ok(()) }
        }
        None => Ok(()),
    }
}

/// Of several events of one item, where the queue shows the last one all others are shown: to make them again would only
/// lead there by a detour.
pub(super) fn unshown(board: &Board, mut entries: Vec<Entry>) -> Vec<Entry> {
    let mut last: HashMap<(Option<String>, Option<TaskId>), (usize, usize)> = HashMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.after.is_some() && entry.task.is_some()) {
        let (count, newest) = last.entry((entry.queue.clone(), entry.task.clone())).or_default();
        (*count, *newest) = (*count + 1, at);
    }
    last.retain(|_, (count, newest)| *count > 1 && is_shown(board, &entries[*newest]));
    let mut at = 0..;
    entries.retain(|entry| {
        let at = at.next();
        last.get(&(entry.queue.clone(), entry.task.clone())).is_none_or(|(_, newest)| at >= Some(*newest))
    });
    entries
}

fn is_shown(board: &Board, entry: &Entry) -> bool {
    let queue = entry.queue.as_ref().and_then(|queue| board.queue_by_id(queue).ok());
    let Some(text) = queue.and_then(|queue| board.read(&queue).ok()) else { return false };
    let (document, _) = parse(&text.content);
    let item = entry.task.as_ref().and_then(|task| document.find(task));
    item.is_some_and(|item| {
        let reads_so = entry.after.as_ref().is_some_and(|after| document.block(item).trim_end() == after.trim_end());
        reads_so && entry.to.is_none_or(|to| item.status == to)
    })
}

/// It tells of the text around the items, and of none of them.
pub(super) fn is_prose(entry: &Entry) -> bool {
    let has_item = |text: &Option<String>| text.as_ref().is_some_and(|text| !parse(text).0.items().is_empty());
    entry.task.is_none() && entry.kind == Kind::Edited && !has_item(&entry.before) && !has_item(&entry.after)
}

/// Lines that say something.
pub(super) fn said(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty())
}

/// So many events may be shown by files whose names are not on disk yet: after a power cut they are shown again.
const MOST_UNSYNCED: u64 = 64;

/// What `applied` says.
struct Applied {
    /// The last event that the files show.
    seq: u64,
    /// The last one that they show whatever happens.
    synced: u64,
    /// The boot in which the former holds.
    boot: String,
}

impl Applied {
    fn read(board: &Board) -> Option<Applied> {
        let text = fs::read_to_string(board.path("applied")).ok()?;
        let mut words = text.split_whitespace();
        let seq = words.next()?.parse().ok()?;
        // Before there was more than the number all was synced.
        let synced = words.next().map_or(Some(seq), |synced| synced.parse().ok())?;
        Some(Applied { seq, synced, boot: words.next().map_or_else(|| boot_id().to_owned(), str::to_owned) })
    }

    /// Overwritten in place: it is one write of a length that never changes, and a power cut leaves older numbers, which
    /// only mean that some events are looked at again.
    fn write(&self, board: &Board) -> Result<(), Error> {
        let path = board.path("applied");
        let Applied { seq, synced, boot } = self;
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{seq:010} {synced:010} {boot}\n").as_bytes()))
            .map_err(Error::io("write", &path))
    }
}

/// What a program left undone it left since this machine was started: no file has lost its newest name.
pub(super) fn is_of_this_boot(board: &Board) -> bool {
    Applied::read(board).is_some_and(|applied| applied.boot == boot_id())
}

/// The number of the last event that the files are known to show.
pub(super) fn read_applied(board: &Board) -> Option<u64> {
    let applied = Applied::read(board)?;
    Some(if applied.boot == boot_id() { applied.seq } else { applied.synced })
}

/// The files show all events up to this one, and a power cut changes nothing of it.
pub(super) fn write_applied(board: &Board, seq: u64) -> Result<(), Error> {
    let queues = board.path("queues");
    if queues.is_dir() {
        sync_folder(&queues.join("any"))?;
    }
    Applied { seq, synced: seq, boot: boot_id().to_owned() }.write(board)
}

/// The files show all events up to this one, and the names of the newest files of the board's queues may not be on disk.
pub(super) fn write_shown(board: &Board, seq: u64) -> Result<(), Error> {
    match Applied::read(board) {
        Some(Applied { synced, .. }) if seq < synced + MOST_UNSYNCED => {
            Applied { seq, synced, boot: boot_id().to_owned() }.write(board)
        }
        _ => write_applied(board, seq),
    }
}
