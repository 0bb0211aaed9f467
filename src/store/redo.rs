//! What a crash left undone behind an event is made true from the event alone, by whoever next holds the lock.
//!
//! Doing it again changes nothing.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::error::Error;
use super::find::Board;
use super::hand::HAND;
use super::log::{Entry, LeaseEntry};
use super::replace::replace;
use super::restore::restored;
use crate::board::document::{Item, parse};
use crate::board::lease::Lease;
use crate::board::text::apply;

/// Makes the files show what a logged event says. Doing it again changes nothing: the item's text is the event's
/// `before` (then it is redone), its `after` (then it was done), or a person's (then it stands).
pub(super) fn redo(board: &Board, entry: &Entry) -> Result<(), Error> {
    // What was done by hand is in the file, or is merged into it.
    let is_ours = entry.agent.as_deref() != Some(HAND);
    let is_change = entry.before.is_some() || entry.after.is_some();
    if let (Some(queue), true, true) = (&entry.queue, is_change, is_ours)
        && let Ok(queue) = board.queue_by_id(queue)
    {
        match board.read(&queue) {
            Ok(text) => {
                if let Some(content) = redone(&text.content, entry) {
                    replace(&queue.path, content.as_bytes())?;
                }
            }
            // A person made it unreadable since, and has to mend it; others can't wait for that.
            Err(Error::NotText { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    set_lease(board, entry)
}

pub(super) fn redone(content: &str, entry: &Entry) -> Option<String> {
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
            let is_older = current.is_none_or(|current| current.token <= lease.token);
            let lease = Lease { heartbeat_at: entry.time, ..(**lease).clone() };
            if is_older { board.stage_lease(&lease)?.put() } else { Ok(()) }
        }
        Some(LeaseEntry::Drop) => {
            let is_this = current.is_some_and(|current| Some(current.token) <= entry.token);
            if is_this { board.drop_lease(task) } else { Ok(()) }
        }
        None => Ok(()),
    }
}

/// The number of the last event that the files show.
pub(super) fn read_applied(board: &Board) -> Option<u64> {
    fs::read_to_string(board.path("applied")).ok()?.trim().parse().ok()
}

/// Overwritten in place: ten digits are one write, and a power cut leaves an older number, which only means that
/// some events are looked at again.
pub(super) fn write_applied(board: &Board, seq: u64) -> Result<(), Error> {
    let path = board.path("applied");
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{seq:010}\n").as_bytes()))
        .map_err(Error::io("write", &path))
}
