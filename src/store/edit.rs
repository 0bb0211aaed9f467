//! What somebody made of a copy of a queue, merged into it as done by hand.
//!
//! Unlike a save it is known which text it rests on. The file goes before the log, as with every save: killed in between,
//! whoever next holds the lock takes it over.

use std::collections::HashSet;

use super::error::Error;
use super::find::Board;
use super::hand::{done_by_hand, note, settled};
use super::log::Entry;
use super::queue::Queue;
use super::replace::Staged;
use super::seen::{Seen, Sight, old_path};
use super::submit::{Locked, write_applied};
use crate::board::event::Kind;
use crate::board::merge::merge;
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

/// A save by somebody else in the very moment is tried again with; so often.
const MOST_TRIES: usize = 50;

impl Board {
    /// Merges `edited`, which somebody made of `copy`, into the queue as it is by now.
    pub fn edit(&self, queue: &Queue, copy: &str, edited: &str, now: Timestamp) -> Result<Edited, Error> {
        for _ in 0..MOST_TRIES {
            if let Some(edited) = self.try_edit(queue, copy, edited, now)? {
                return Ok(edited);
            }
        }
        Err(Error::Busy(0))
    }

    fn try_edit(&self, queue: &Queue, copy: &str, edited: &str, now: Timestamp) -> Result<Option<Edited>, Error> {
        let mut locked = Locked::new(self, now)?;
        let text = self.read_settled(queue)?;
        let held: HashSet<TaskId> = self.leased()?.into_iter().collect();
        let merged = merge(copy, &text.content, edited, &|id| held.contains(id));
        let conflicts: Vec<String> = merged.conflicts.iter().map(|conflict| settled(conflict, &held)).collect();
        if merged.text == text.content {
            return Ok(Some(Edited { is_changed: false, entries: Vec::new(), conflicts }));
        }
        let staged = Staged::durable(&queue.path, merged.text.as_bytes())?;
        let is_own = self.looks_after(queue);
        if is_own && !Sight::of(self, queue).is_of(self, &text) {
            return Ok(None);
        }
        let mut lines: Vec<Entry> = conflicts.iter().map(|conflict| note(queue, conflict.clone(), now)).collect();
        lines.extend(done_by_hand(queue, &text.content, &merged.text, now));
        let old = old_path(self, queue);
        let file = if is_own { Some(staged.swap(&old)?) } else { staged.swap_if(text.stamp, &old)? };
        if file.is_none() {
            return Ok(None);
        }
        locked.append(&mut lines)?;
        if is_own {
            Seen::write(self, queue, &merged.text, &Sight { file, old: Some(text.stamp) }, locked.seq)?;
        }
        write_applied(self, locked.seq)?;
        lines.retain(|line| line.kind != Kind::Noted);
        Ok(Some(Edited { is_changed: true, entries: lines, conflicts }))
    }
}
