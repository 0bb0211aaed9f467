//! Finishes a logged event after a crash, from the event alone. The next process to take the lock does so.
//!
//! Replaying is idempotent.

use std::collections::{BTreeSet, HashMap};

use super::archived::{FOLDER, archive_of, content};
use super::atomic_write::{Replaced, Staged, replace};
use super::baseline::{self, Baseline, header, old_path};
use super::board::Board;
use super::entry::{Entry, LeaseEntry, TextChange};
use super::error::Error;
use super::file_version::{QueueFiles, Stamp};
use super::log::tail_log;
use super::queue::Queue;
use tavern_core::archive::{self, Gone};
use tavern_core::document::{Item, parse};
use tavern_core::lease::Lease;
use tavern_core::merge::{merge, prose};
use tavern_core::rewrite::{set_item, set_item_by};
use tavern_core::task::TaskId;
use tavern_core::text::apply;
use tavern_sys::files;

/// Makes the files show logged events, except for queues in `left`: their external edits are merged later. Idempotent:
/// an item's text is the event's `before` (then it is replayed), its `after` (then it was done), or a person's (then it
/// stays).
pub(super) fn redo(board: &Board, entries: &[Entry], left: &[String]) -> Result<(), Error> {
    let queue_of = |entry: &Entry| entry.queue.clone().filter(|queue| !left.contains(queue));
    let queues: BTreeSet<String> = entries
        .iter()
        .filter(|entry| entry.change != TextChange::Nothing)
        .filter_map(queue_of)
        .collect();
    for queue in queues.iter().filter_map(|id| board.queue_by_id(id).ok()) {
        let own: Vec<&Entry> = entries
            .iter()
            .filter(|entry| entry.queue.as_ref() == Some(&queue.id))
            .collect();
        show(board, &queue, &own)?;
    }
    entries.iter().try_for_each(|entry| set_lease(board, entry))
}

/// Shows all events in one step, so that a queue shows all of them or none.
fn show(board: &Board, queue: &Queue, entries: &[&Entry]) -> Result<(), Error> {
    loop {
        let text = match board.read_file(queue) {
            // A person made it unreadable since and has to fix it; others can't wait for that.
            Err(Error::NotText { .. } | Error::TooMany(_)) => return Ok(()),
            text => text?,
        };
        let content = entries
            .iter()
            .fold(text.content.to_string(), |text, entry| {
                redone(&text, entry).unwrap_or(text)
            });
        if text.content == *content {
            return Ok(());
        }
        let staged = Staged::durable(&queue.path, content.as_bytes())?;
        if staged
            .swap(
                Some(text.stamp),
                &replaced(board, queue),
                &board.path("queues"),
            )?
            .is_some()
        {
            return Baseline::forget(board, queue, text.stamp);
        }
        // Another process is saving at this moment; retry.
    }
}

/// A killed program may have replaced the file that it knew without recording it.
fn replaced(board: &Board, queue: &Queue) -> Replaced {
    let (path, seen) = (old_path(board, queue), header(board, queue));
    let own =
        Stamp::at(&path).filter(|old| seen.as_ref().is_some_and(|seen| seen.version.file == *old));
    baseline::replaced(board, queue, own.or(seen.and_then(|seen| seen.old)))
}

pub(super) fn redone(content: &str, entry: &Entry) -> Option<String> {
    let (document, _) = parse(content);
    let reads = |item: &Item<'_>, text: &str| document.block(item).trim_end() == text.trim_end();
    let reading = |text: &str| document.items().iter().find(|item| reads(item, text));
    let edits = match &entry.change {
        TextChange::Nothing => return None,
        TextChange::Prose { before, after } => {
            let now = prose(content);
            let is_before = text_lines(&now).eq(text_lines(before));
            return is_before.then(|| merge(&now, content, after, &|_| false).text);
        }
        TextChange::Removed { before, .. } => {
            let item = match &entry.task {
                Some(task) => document.find(task).filter(|item| reads(item, before)),
                None => reading(before),
            };
            set_item(&document, Some(item?), None)
        }
        TextChange::Added { to, after, .. } => {
            let there = entry
                .task
                .as_ref()
                .map_or_else(|| reading(after), |task| document.find(task));
            if there.is_some() {
                return None;
            }
            set_item_by(
                &document,
                None,
                Some((after, Some(*to))),
                entry.put.as_ref(),
            )
        }
        TextChange::Edited { before, after, .. } => {
            // If only the lane shows the status, the text alone does not tell whether the item was moved.
            let to = entry.change.to();
            let is_told =
                |item: &Item<'_>| before != after || to.is_none_or(|to| item.status == to);
            if document
                .items()
                .iter()
                .any(|item| reads(item, after) && is_told(item))
            {
                return None;
            }
            set_item_by(
                &document,
                Some(reading(before)?),
                Some((after, to)),
                entry.put.as_ref(),
            )
        }
    };
    Some(apply(content, &edits))
}

/// Returns the baseline with later events applied: a program was killed in between, or an editor saved at the same
/// moment.
pub(super) fn up_to_date(
    board: &Board,
    last: u64,
    queue: &Queue,
    seen: &Baseline,
) -> Result<String, Error> {
    let later = if seen.seq < last {
        tail_log(board, seen.seq)?
    } else {
        Vec::new()
    };
    let later = later
        .iter()
        .filter(|entry| entry.queue.as_ref() == Some(&queue.id));
    Ok(later.fold(seen.content.clone(), |text, entry| {
        redone(&text, entry).unwrap_or(text)
    }))
}

pub(super) fn set_lease(board: &Board, entry: &Entry) -> Result<(), Error> {
    let Some(task) = &entry.task else {
        return Ok(());
    };
    let current = match board.lease(task) {
        Err(Error::Damaged { .. }) => {
            board.drop_lease(task)?;
            None
        }
        lease => lease?,
    };
    match &entry.lease {
        Some(LeaseEntry::Put(lease)) => {
            // The lease may have been renewed since.
            let same = current
                .as_ref()
                .filter(|current| current.token == lease.token);
            let heartbeat_at =
                same.map_or(entry.time, |current| current.heartbeat_at.max(entry.time));
            let is_older = current.is_none_or(|current| current.token <= lease.token);
            let lease = Lease {
                heartbeat_at,
                ..(**lease).clone()
            };
            if is_older {
                board.stage_lease(&lease)?.put()
            } else {
                Ok(())
            }
        }
        Some(LeaseEntry::Drop) => {
            let is_this = current.is_some_and(|current| Some(current.token) <= entry.token);
            if is_this {
                board.drop_lease(task)
            } else {
                Ok(())
            }
        }
        None => Ok(()),
    }
}

/// Drops events that need no replay: if the queue shows an item's last event, it shows the earlier ones too.
pub(super) fn unshown(board: &Board, mut entries: Vec<Entry>) -> Vec<Entry> {
    let mut last: HashMap<(Option<String>, Option<TaskId>), (usize, usize)> = HashMap::new();
    for (at, entry) in entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.change.after().is_some() && entry.task.is_some())
    {
        let (count, newest) = last
            .entry((entry.queue.clone(), entry.task.clone()))
            .or_default();
        (*count, *newest) = (*count + 1, at);
    }
    last.retain(|_, (count, newest)| *count > 1 && is_shown(board, &entries[*newest]));
    let mut at = 0..;
    entries.retain(|entry| {
        let at = at.next();
        last.get(&(entry.queue.clone(), entry.task.clone()))
            .is_none_or(|(_, newest)| at >= Some(*newest))
    });
    entries
}

fn is_shown(board: &Board, entry: &Entry) -> bool {
    let queue = entry
        .queue
        .as_ref()
        .and_then(|queue| board.queue_by_id(queue).ok());
    let Some(text) = queue.and_then(|queue| board.read_file(&queue).ok()) else {
        return false;
    };
    let (document, _) = parse(&text.content);
    let item = entry.task.as_ref().and_then(|task| document.find(task));
    item.is_some_and(|item| {
        let reads_so = entry
            .change
            .after()
            .is_some_and(|after| document.block(item).trim_end() == after.trim_end());
        reads_so && entry.change.to().is_none_or(|to| item.status == to)
    })
}

/// Returns the lines that are not blank.
pub(super) fn text_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
}

fn make_folder(board: &Board) -> Result<(), Error> {
    let folder = board.path(FOLDER);
    files::make_folder(&folder).map_err(Error::io("create the folder", &folder))
}

/// Replays the archiving of items of one queue. Idempotent; an item that a person changed since stays.
pub(super) fn redo_archive(
    board: &Board,
    entries: &[Entry],
    left_to_merge: &[String],
) -> Result<(), Error> {
    let Some(queue) = entries
        .first()
        .and_then(|entry| board.queue_by_id(entry.queue.as_ref()?).ok())
    else {
        return Ok(());
    };
    let Some(own) = archive_of(board, &queue) else {
        return Ok(());
    };
    let text = match board.read_file(&queue) {
        Err(Error::NotText { .. } | Error::TooMany(_)) => return Ok(()),
        text => text?,
    };
    let sight = QueueFiles::of(board, &queue);
    let is_seen = sight.is_seen(board, &queue);
    let old = content(board, &own)?;
    let (mut left, mut archived) = (text.content.to_string(), old.clone());
    let gone: Vec<Gone> = entries
        .iter()
        .filter_map(|entry| match &entry.change {
            TextChange::Removed { from, before } => Some(Gone {
                id: entry.task.clone(),
                status: *from,
                block: before.clone(),
            }),
            _ => None,
        })
        .collect();
    if let Some(moved) = archive::together(&left, &archived, &gone) {
        (left, archived) = (moved.queue, moved.archive);
    } else {
        // A person changed some of them.
        for gone in gone.chunks(1) {
            if let Some(moved) = archive::together(&left, &archived, gone) {
                (left, archived) = (moved.queue, moved.archive);
            }
        }
    }
    if archived != old {
        make_folder(board)?;
        replace(&own.path, archived.as_bytes())?;
    }
    if text.content != *left && !left_to_merge.contains(&queue.id) {
        let staged = Staged::durable(&queue.path, left.as_bytes())?;
        match staged.swap(
            Some(text.stamp),
            &replaced(board, &queue),
            &board.path("queues"),
        )? {
            Some(file) if is_seen => {
                let seq = entries.last().map_or(0, |last| last.seq);
                Baseline::write(
                    board,
                    &queue,
                    &left,
                    &QueueFiles {
                        file: Some(file),
                        old: Some(text.stamp),
                    },
                    seq,
                )?;
            }
            Some(_) => Baseline::forget(board, &queue, text.stamp)?,
            // Another process is saving at this moment; the archived items are removed when that save is merged.
            None => {}
        }
    }
    Ok(())
}
