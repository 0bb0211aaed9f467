//! What people, editors and git did to a queue since Tavern last wrote it: taken over, merged and logged.
//!
//! Editors lock nothing and save whole files, so a save may rest on an older text than the newest. The queue as Tavern
//! last wrote it is kept in `seen/`; where the file differs, the log tells which version the saver had loaded, and the
//! three are merged. A transition is never undone by a save, and nothing typed is ever dropped.

use std::collections::HashSet;
use std::fs;

use crate::board::document::{Document, parse};
use crate::board::event::Kind;
use crate::board::merge::{Changed, changes, merge};
use crate::board::task::{TaskId, Timestamp};

use super::error::Error;
use super::loaded::loaded;
use super::log::{Entry, walk_back};
use super::queue::{Queue, Stamp, Text};
use super::replace::{Staged, replace};
use super::seen::{Seen, Sight, old_path};
use super::submit::{Locked, redone, write_applied};

/// Who did what was done by hand, in the log.
pub const HAND: &str = "hand";

impl Locked<'_> {
    /// Takes over what was done to `queue` by other hands than Tavern's. Nothing if nothing was.
    pub(super) fn take_over(&mut self, queue: &Queue, now: Timestamp) -> Result<(), Error> {
        // What can't be read is reported by whoever needs it.
        let mut sight = Sight::of(self.board, queue);
        if sight.is_gone(queue) {
            self.put_back(queue, now)?;
            sight = Sight::of(self.board, queue);
        }
        let Ok(text) = self.board.read(queue) else { return Ok(()) };
        sight.file = Some(text.stamp);
        let Some(seen) = Seen::read(self.board, queue) else {
            return Seen::write(self.board, queue, &text.content, &sight, self.seq);
        };
        let mut ours = seen.content;
        if seen.seq < self.seq {
            // A program was killed after its event and before this was kept.
            let mut later = Vec::new();
            walk_back(self.board, &mut |line| {
                let Ok(entry) = serde_json::from_slice::<Entry>(line) else { return true };
                let is_later = entry.seq > seen.seq;
                later.extend(is_later.then_some(entry));
                is_later
            })?;
            for entry in later.iter().rev().filter(|entry| entry.queue.as_ref() == Some(&queue.id)) {
                ours = redone(&ours, entry).unwrap_or(ours);
            }
        }
        if text.content == ours {
            Seen::write(self.board, queue, &ours, &sight, self.seq)?;
        } else {
            ours = self.reconcile(&text, &text.content, &ours, sight.old, now)?;
        }
        if seen.old == sight.old {
            return Ok(());
        }
        // Somebody had the replaced file open, or saved in the very moment of the replacement.
        let old = fs::read_to_string(old_path(self.board, queue)).unwrap_or_default();
        let Ok(text) = self.board.read(queue) else { return Ok(()) };
        if old.trim().is_empty() || text.content != ours {
            return Ok(());
        }
        self.reconcile(&text, &old, &ours, sight.old, now).map(drop)
    }

    /// Merges what somebody saved with ours, and logs what was changed by hand. `text` is what the file says now, `old`
    /// the stamp of the replaced one. Returns what the queue then says.
    fn reconcile(
        &mut self,
        text: &Text,
        saved: &str,
        ours: &str,
        old: Option<Stamp>,
        now: Timestamp,
    ) -> Result<String, Error> {
        let (board, queue) = (self.board, &text.queue);
        let held: HashSet<TaskId> = board.leased()?.into_iter().collect();
        let is_held = |id: &TaskId| held.contains(id);
        let mut entries = Vec::new();
        let note = |cause: String| {
            let mut entry = Entry::new(Kind::Noted, now);
            entry.queue = Some(queue.id.clone());
            entry.agent = Some(HAND.to_owned());
            entry.cause = Some(cause);
            entry
        };
        let is_emptied = saved.trim().is_empty() && !parse(ours).0.items().is_empty();
        let merged = if is_emptied {
            // No editor's save, but a broken one, or a `>` too many: items are removed one by one, or with their file.
            entries.push(note("the file was emptied; its items were put back".to_owned()));
            ours.to_owned()
        } else {
            let loaded = loaded(board, queue, ours, saved)?;
            let merged = merge(&loaded.text, ours, saved, &is_held);
            let back = put_back(saved, &merged.text, &loaded.stale);
            if !back.is_empty() {
                entries.push(note(format!("an older copy was saved; what was newer was put back: {}", names(&back))));
            }
            entries.extend(merged.conflicts.iter().map(|conflict| {
                let item = conflict.item.as_deref().unwrap_or("the text");
                let why = match conflict.what.as_str() {
                    "removed" | "status" if conflict.item.as_ref().is_some_and(|item| is_named(item, &held)) => {
                        "it is held, so it was put back: tavern-release takes it from its holder"
                    }
                    _ => "both versions are kept: tavern-check shows where",
                };
                note(format!("{item}: {} was changed by hand and by others; {why}", conflict.what))
            }));
            merged.text
        };
        entries.extend(changes(ours, &merged).into_iter().map(|changed| by_hand(queue, changed, now)));
        let staged = if merged == text.content { None } else { Some(Staged::durable(&queue.path, merged.as_bytes())?) };
        for entry in &mut entries {
            self.seq += 1;
            entry.seq = self.seq;
        }
        self.log.append(&entries)?;
        let sight = match staged {
            Some(staged) => Sight { file: Some(staged.swap(&old_path(board, queue))?), old: Some(text.stamp) },
            None => Sight { file: Some(text.stamp), old },
        };
        Seen::write(board, queue, &merged, &sight, self.seq)?;
        write_applied(board, self.seq)?;
        Ok(merged)
    }

    /// The queues that were written to by other hands, and how they stand; also one whose file has gone while somebody
    /// holds an item of it.
    pub(super) fn by_hand(&self) -> Result<Vec<(Queue, Sight)>, Error> {
        let mut queues = self.board.queues()?;
        let mut gone = Seen::queues(self.board);
        gone.retain(|id| queues.iter().all(|queue| queue.id != *id));
        if !gone.is_empty() {
            let leases = self.board.leases()?;
            let is_needed = |id: &String| leases.iter().any(|lease| lease.queue == *id);
            queues.extend(gone.iter().filter(|id| is_needed(id)).map(|id| self.board.queue_of(id)));
        }
        let looks = queues.into_iter().map(|queue| {
            let sight = Sight::of(self.board, &queue);
            (queue, sight)
        });
        Ok(looks.filter(|(queue, sight)| !sight.is_seen(self.board, queue)).collect())
    }

    /// Puts a queue back whose file has gone.
    fn put_back(&mut self, queue: &Queue, now: Timestamp) -> Result<(), Error> {
        let Some(seen) = Seen::read(self.board, queue) else { return Ok(()) };
        let mut entry = Entry::new(Kind::Noted, now);
        entry.queue = Some(queue.id.clone());
        entry.agent = Some(HAND.to_owned());
        entry.cause = Some("the file was removed while an item of it is held; it was put back".to_owned());
        self.seq += 1;
        entry.seq = self.seq;
        self.log.append(&[entry])?;
        replace(&queue.path, seen.content.as_bytes())
    }
}

fn is_named(item: &str, held: &HashSet<TaskId>) -> bool {
    item.parse().is_ok_and(|id: TaskId| held.contains(&id))
}

fn names(ids: &[TaskId]) -> String {
    let names: Vec<&str> = ids.iter().take(8).map(TaskId::as_str).collect();
    let more = ids.len().saturating_sub(names.len());
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}

fn by_hand(queue: &Queue, changed: Changed, now: Timestamp) -> Entry {
    let kind = match (&changed.before, &changed.after) {
        (None, _) => Kind::Added,
        (_, None) => Kind::Removed,
        _ => Kind::Edited,
    };
    let mut entry = Entry::new(kind, now);
    entry.task = changed.task;
    entry.queue = Some(queue.id.clone());
    entry.agent = Some(HAND.to_owned());
    let (from, to) = (changed.before.as_ref().map(|item| item.1), changed.after.as_ref().map(|item| item.1));
    if from != to {
        (entry.from, entry.to) = (from, to);
    }
    if entry.task.is_none() {
        entry.cause = Some(format!("`{}`", changed.title.chars().take(120).collect::<String>()));
    }
    entry.before = changed.before.map(|item| item.0);
    entry.after = changed.after.map(|item| item.0);
    entry
}

/// Of the items that were older in the save than ours, those that the result has otherwise than the save.
fn put_back(saved: &str, merged: &str, stale: &[TaskId]) -> Vec<TaskId> {
    let (saved, merged) = (parse(saved).0, parse(merged).0);
    let block = |document: &Document<'_>, id: &TaskId| document.find(id).map(|item| bare(document.block(item)));
    stale.iter().filter(|id| block(&saved, id) != block(&merged, id)).cloned().collect()
}

/// An item's text, whatever its line ends.
pub(super) fn bare(block: &str) -> String {
    block.trim_end().replace("\r\n", "\n")
}
