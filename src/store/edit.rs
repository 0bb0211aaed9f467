//! What somebody made of a copy of a queue, merged into it as done by hand.
//!
//! Unlike a save it is known which text it rests on. The file goes before the log, as with every save: killed in between,
//! whoever next holds the lock takes it over.

use std::collections::HashSet;

use super::error::Error;
use super::find::Board;
use super::hand::HAND;
use super::log::Entry;
use super::queue::Queue;
use super::replace::Staged;
use super::seen::{Seen, Sight, old_path};
use super::submit::{Locked, write_applied};
use crate::board::event::Kind;
use crate::board::merge::{Changed, changes, merge};
use crate::board::task::{TaskId, Timestamp};

/// What came of it.
#[derive(Clone, Debug)]
pub struct Edited {
    /// Not a byte of the queue is another if this is false.
    pub is_changed: bool,
    /// The log's new lines: items that were added, edited or removed.
    pub entries: Vec<Entry>,
    /// What others changed meanwhile, each in its own way.
    pub conflicts: Vec<String>,
}

impl Board {
    /// Merges `edited`, which somebody made of `copy`, into the queue as it is by now.
    pub fn edit(&self, queue: &Queue, copy: &str, edited: &str, now: Timestamp) -> Result<Edited, Error> {
        let mut locked = Locked::new(self, now)?;
        let text = self.read(queue)?;
        let held: HashSet<TaskId> = self.leased()?.into_iter().collect();
        let merged = merge(copy, &text.content, edited, &|id| held.contains(id));
        let is_held = |item: &Option<String>| {
            item.as_ref().is_some_and(|item| item.parse().is_ok_and(|id: TaskId| held.contains(&id)))
        };
        let conflicts: Vec<String> = merged
            .conflicts
            .iter()
            .map(|conflict| {
                let item = conflict.item.as_deref().unwrap_or("the text");
                let why = match conflict.what.as_str() {
                    "removed" | "status" if is_held(&conflict.item) => {
                        "it is held, so it stays as it is: tavern-release takes it from its holder"
                    }
                    _ => "both versions are kept: tavern-check shows where",
                };
                format!("{item}: {} was changed by others too; {why}", conflict.what)
            })
            .collect();
        if merged.text == text.content {
            return Ok(Edited { is_changed: false, entries: Vec::new(), conflicts });
        }
        let mut entries: Vec<Entry> =
            changes(&text.content, &merged.text).into_iter().map(|changed| by_hand(queue, changed, now)).collect();
        let notes = conflicts.iter().map(|conflict| {
            let mut entry = Entry::new(Kind::Noted, now);
            entry.queue = Some(queue.id.clone());
            entry.agent = Some(HAND.to_owned());
            entry.cause = Some(conflict.clone());
            entry
        });
        let mut lines: Vec<Entry> = notes.chain(entries.drain(..)).collect();
        for line in &mut lines {
            locked.seq += 1;
            line.seq = locked.seq;
        }
        let staged = Staged::durable(&queue.path, merged.text.as_bytes())?;
        let file = staged.swap(&old_path(self, queue))?;
        locked.log.append(&lines)?;
        let sight = Sight { file: Some(file), old: Some(text.stamp) };
        Seen::write(self, queue, &merged.text, &sight, locked.seq)?;
        write_applied(self, locked.seq)?;
        lines.retain(|line| line.kind != Kind::Noted);
        Ok(Edited { is_changed: true, entries: lines, conflicts })
    }
}

fn by_hand(queue: &Queue, changed: Changed, now: Timestamp) -> Entry {
    let kind = match (&changed.before, &changed.after) {
        (None, _) => Kind::Added,
        (_, None) => Kind::Removed,
        _ => Kind::Edited,
    };
    let mut entry = Entry::new(kind, now);
    entry.queue = Some(queue.id.clone());
    entry.agent = Some(HAND.to_owned());
    let (from, to) = (changed.before.as_ref().map(|item| item.1), changed.after.as_ref().map(|item| item.1));
    if from != to {
        (entry.from, entry.to) = (from, to);
    }
    if changed.task.is_none() {
        entry.cause = Some(format!("`{}`", changed.title.chars().take(120).collect::<String>()));
    }
    entry.task = changed.task;
    entry.before = changed.before.map(|item| item.0);
    entry.after = changed.after.map(|item| item.0);
    entry
}
