//! The board as it was: rebuilt from the present by taking events back.
//!
//! The log has items, each before and after every event; prose, front matter and the order of items are the present's.

use std::collections::HashMap;
use std::fs;

use super::baseline::Baseline;
use super::entry::{Entry, LeaseEntry};
use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use super::queue::Text;
use super::set_item::set_item;
use super::submit::Found;
use crate::board::document::{Document, Item, parse};
use crate::board::lease::Lease;
use crate::board::merge::bare;
use crate::board::task::{Status, TaskId, Timestamp};
use crate::board::text::apply;
use crate::clock;

/// A board as it was at a time.
#[derive(Clone, Debug)]
pub struct Then {
    pub at: Timestamp,
    /// Of each queue that there is now.
    pub texts: Vec<Text>,
    /// Where the log does not reach back so far: its beginning.
    pub begins: Option<Timestamp>,
    /// What the log tells of the asked for item's lease.
    lease: Option<Lease>,
}

/// What the first event after the time found.
#[derive(Default)]
struct First {
    seq: u64,
    /// Nothing: the item was not there.
    text: Option<String>,
    /// Nothing: no event tells, so it is what it is.
    status: Option<Status>,
}

impl Board {
    /// The board as it was at the end of the second `at`; with the lease of `task` then.
    pub fn then(&self, at: Timestamp, task: Option<&TaskId>) -> Result<Then, Error> {
        let mut past = Past { at, task, ..Past::default() };
        walk_log(self, None, &mut |entry| past.take(entry))?;
        let mut texts = Vec::new();
        for queue in self.queues()? {
            let Ok(mut text) = self.read(&queue) else { continue };
            // Saved since, and not in the log yet.
            let is_later = fs::metadata(&queue.path)
                .and_then(|file| file.modified())
                .is_ok_and(|modified| clock::whole_seconds(modified) > at);
            if let Some(seen) = Baseline::read(self, &queue).filter(|seen| is_later && seen.seq >= past.newest) {
                text.content = seen.content;
            }
            past.take_back(&mut text);
            texts.push(text);
        }
        let begins = if past.is_reached { None } else { Some(past.oldest.unwrap_or_else(clock::now)) };
        Ok(Then { at, texts, begins, lease: past.lease })
    }
}

impl Then {
    /// An item as it was.
    pub fn find(&self, id: &TaskId) -> Option<Found> {
        self.texts.iter().find_map(|text| {
            let (document, _) = parse(&text.content);
            let item = document.find(id)?;
            Some(Found {
                queue: text.queue.clone(),
                task: document.task(item, id.clone()),
                script: document.shell(item),
                block: document.block(item).to_owned(),
                line: item.line,
                quarantined: item.quarantined,
                lease: self.lease.clone().filter(|lease| lease.task == *id),
            })
        })
    }
}

#[derive(Default)]
struct Past<'i> {
    at: Timestamp,
    task: Option<&'i TaskId>,
    newest: u64,
    oldest: Option<Timestamp>,
    /// There is an event at or before the time.
    is_reached: bool,
    is_lease_known: bool,
    lease: Option<Lease>,
    /// By queue and item.
    first: HashMap<(String, TaskId), First>,
    /// Items without an ID: queue, before, after, status before; the newest first.
    nameless: Vec<Entry>,
}

impl Past<'_> {
    /// Takes in the next older event; false when nothing older is needed.
    fn take(&mut self, entry: Entry) -> bool {
        self.newest = self.newest.max(entry.seq);
        self.oldest = Some(entry.time);
        if self.is_reached || entry.time <= self.at {
            self.is_reached = true;
            if self.task.is_some()
                && self.task == entry.task.as_ref()
                && !self.is_lease_known
                && let Some(change) = entry.lease
            {
                self.is_lease_known = true;
                self.lease = match change {
                    LeaseEntry::Put(lease) => Some(*lease),
                    LeaseEntry::Drop => None,
                };
            }
            return self.task.is_some() && !self.is_lease_known;
        }
        match (&entry.queue, &entry.task) {
            (Some(queue), Some(task)) if entry.change.is_of_item() => {
                let first = self.first.entry((queue.clone(), task.clone())).or_default();
                first.seq = entry.seq;
                first.status = entry.change.from().or(first.status);
                first.text = entry.change.before().map(str::to_owned);
            }
            (Some(_), None) if entry.change.is_of_item() => self.nameless.push(entry),
            _ => {}
        }
        true
    }

    fn take_back(&self, text: &mut Text) {
        let mut changes: Vec<(&TaskId, &First)> = Vec::new();
        changes.extend(
            self.first.iter().filter(|((queue, _), _)| *queue == text.queue.id).map(|((_, id), first)| (id, first)),
        );
        // A part's own event is younger or older than one of the item that it is in: the newest are taken back first.
        changes.sort_by_key(|(_, first)| std::cmp::Reverse(first.seq));
        for (id, First { text: was, status, .. }) in changes {
            let (document, _) = parse(&text.content);
            let item = document.find(id);
            let edits = set_item(&document, item, was.as_deref().map(|was| (was, *status)));
            text.content = apply(&text.content, &edits);
        }
        for entry in self.nameless.iter().filter(|entry| entry.queue.as_ref() == Some(&text.queue.id)) {
            let (document, _) = parse(&text.content);
            let item = entry.change.after().map(|after| reading(&document, after));
            if item == Some(None) {
                // It has got an ID since, and was taken back with that.
                continue;
            }
            let was = entry.change.before().map(|was| (was, entry.change.from()));
            let edits = set_item(&document, item.flatten(), was);
            text.content = apply(&text.content, &edits);
        }
    }
}

fn reading<'d, 't>(document: &'d Document<'t>, block: &str) -> Option<&'d Item<'t>> {
    document.items().iter().find(|item| bare(document.block(item)) == bare(block))
}
