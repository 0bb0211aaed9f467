//! Writing what `tavern-check --fix` has mended: under the lock, and only over the very text that was looked at.

use std::fs;
use std::path::PathBuf;

use crate::board::document::parse;
use crate::board::event::Kind;
use crate::board::task::Timestamp;

use super::error::Error;
use super::find::Board;
use super::log::Entry;
use super::queue::Queue;
use super::redo::{read_applied, write_applied};
use super::replace::Staged;
use super::seen::{Seen, Sight, old_path, path};
use super::submit::Locked;

/// Who did what `tavern-check --fix` has done, in the log.
pub const CHECK: &str = "check";

/// A queue whose file was removed or emptied, and the text that Tavern has seen in it.
#[derive(Clone, Debug)]
pub struct Lost {
    pub queue: Queue,
    pub text: String,
    /// There is no file; else it is there, and empty.
    pub is_gone: bool,
}

impl Board {
    /// Queues whose file was removed though something is left to do in it, or emptied, though Tavern knows its text. One
    /// whose items are in another queue by now was renamed.
    pub fn lost_queues(&self) -> Result<Vec<Lost>, Error> {
        let queues = self.queues()?;
        let mut lost = Vec::new();
        for id in Seen::queues(self) {
            let queue = self.queue_of(&id);
            let is_gone = fs::symlink_metadata(&queue.path).is_err();
            let is_emptied = || self.read(&queue).is_ok_and(|text| text.content.trim().is_empty());
            if !is_gone && !is_emptied() {
                continue;
            }
            let Some(seen) = Seen::read(self, &queue) else { continue };
            let (document, _) = parse(&seen.content);
            let mut items = document.items().iter();
            let is_wanted = if is_gone { items.any(|item| !item.status.is_ended()) } else { items.next().is_some() };
            let is_elsewhere = || {
                queues.iter().filter(|other| other.id != id).filter_map(|other| self.read(other).ok()).any(|text| {
                    let (other, _) = parse(&text.content);
                    document.items().iter().filter_map(|item| item.id.as_ref()).any(|id| other.find(id).is_some())
                })
            };
            if is_wanted && !is_elsewhere() {
                lost.push(Lost { queue, text: seen.content, is_gone });
            }
        }
        lost.sort_by(|one, other| one.queue.id.cmp(&other.queue.id));
        Ok(lost)
    }

    /// The file that its text is known from.
    pub fn seen_path(&self, queue: &Queue) -> PathBuf {
        path(self, queue)
    }

    /// Puts a lost queue back. False if it is there again.
    pub fn put_back(&self, lost: &Lost, now: Timestamp) -> Result<bool, Error> {
        // What was emptied is put back by whoever takes the lock.
        let mut locked = Locked::new(self, now)?;
        if !lost.is_gone || fs::symlink_metadata(&lost.queue.path).is_ok() {
            return Ok(!lost.is_gone);
        }
        let mut entry = note(&lost.queue, now);
        entry.cause = Some("the file was removed; it was put back".to_owned());
        locked.put_back(&lost.queue, entry)?;
        write_applied(self, locked.seq)?;
        Ok(true)
    }

    /// Replaces the queue's text `before` by `after`, which has the same items but for what was mended; `done` says in
    /// words what that was. False, and nothing is changed, if somebody else has changed the queue meanwhile.
    pub fn mend(
        &self,
        queue: &Queue,
        before: &str,
        after: &str,
        done: &[String],
        now: Timestamp,
    ) -> Result<bool, Error> {
        let mut locked = Locked::new(self, now)?;
        let text = self.read(queue)?;
        if text.content != before {
            return Ok(false);
        }
        let mut entries: Vec<Entry> =
            done.iter().map(|done| Entry { cause: Some(done.clone()), ..note(queue, now) }).collect();
        let (old, new) = (parse(before).0, parse(after).0);
        // With conflict markers other items go than come, and only the words tell of it.
        if old.items().len() == new.items().len() {
            let changed = old.items().iter().zip(new.items()).filter(|(was, is)| {
                is.within.is_none() && (old.block(was) != new.block(is) || was.status != is.status)
            });
            entries.extend(changed.map(|(was, is)| {
                let mut entry = Entry { kind: Kind::Edited, task: is.id.clone(), ..note(queue, now) };
                if was.status != is.status {
                    (entry.from, entry.to) = (Some(was.status), Some(is.status));
                }
                if old.block(was) != new.block(is) {
                    entry.before = Some(old.block(was).to_owned());
                    entry.after = Some(new.block(is).to_owned());
                }
                entry
            }));
        }
        let staged = Staged::durable(&queue.path, after.as_bytes())?;
        if self.read(queue)?.stamp != text.stamp {
            return Ok(false);
        }
        locked.append(&mut entries)?;
        if self.looks_after(queue) {
            let file = staged.swap(&old_path(self, queue))?;
            let sight = Sight { file: Some(file), old: Some(text.stamp) };
            Seen::write(self, queue, after, &sight, locked.seq)?;
        } else {
            staged.put()?;
        }
        write_applied(self, locked.seq)?;
        Ok(true)
    }
}

impl Locked<'_> {
    /// Numbers the entries and commits them all at once.
    pub(super) fn append(&mut self, entries: &mut [Entry]) -> Result<(), Error> {
        // On a new board it would be taken for granted that all events but the last are shown.
        if read_applied(self.board).is_none() {
            write_applied(self.board, self.seq)?;
        }
        for (entry, seq) in entries.iter_mut().zip(self.seq + 1..) {
            entry.seq = seq;
        }
        self.log.append(entries)?;
        self.seq = entries.last().map_or(self.seq, |last| last.seq);
        Ok(())
    }
}

fn note(queue: &Queue, now: Timestamp) -> Entry {
    let mut entry = Entry::new(Kind::Noted, now);
    entry.queue = Some(queue.id.clone());
    entry.agent = Some(CHECK.to_owned());
    entry
}
