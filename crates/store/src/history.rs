//! The board at an earlier time, rebuilt from the present by undoing events.
//!
//! The log has each item before and after every event; prose, front matter and the order of items are the present's.

use std::collections::HashMap;
use std::fs;

use super::baseline::Baseline;
use super::board::Board;
use super::entry::{Entry, LeaseEntry};
use super::error::Error;
use super::log::walk_log;
use super::queue::Text;
use super::rewind::Since;
use super::submit::Found;
use tavern_core::lease::Lease;
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::clock;

/// A board as it was at a time.
#[derive(Clone, Debug)]
pub struct Then {
    pub at: Timestamp,
    /// One for each present queue.
    pub texts: Vec<Text>,
    /// The beginning of the log, if it does not reach back that far.
    pub begins: Option<Timestamp>,
    /// The lease of the requested item, from the log.
    lease: Option<Lease>,
}

impl Board {
    /// Returns the board as it was at the end of the second `at`, with the lease of `task` then.
    pub fn then(&self, at: Timestamp, task: Option<&TaskId>) -> Result<Then, Error> {
        let mut past = Past {
            at,
            task,
            ..Past::default()
        };
        walk_log(self, None, &mut |entry| past.take(entry))?;
        let (mut texts, states) = (Vec::new(), self.states_then(at)?);
        for queue in self.queues()? {
            let Ok(mut text) = self.read(&queue) else {
                continue;
            };
            // Saved later, and not in the log yet.
            let is_later = fs::metadata(&queue.path)
                .and_then(|file| file.modified())
                .is_ok_and(|modified| clock::whole_seconds(modified) > at);
            if let Some(seen) =
                Baseline::read(self, &queue).filter(|seen| is_later && seen.seq >= past.newest)
            {
                text.content = seen.content.into();
            }
            if let Some(since) = past.since.get(&queue.id) {
                text.content = since.taken_back(&text.content).into();
            }
            texts.push(text.with_states(states.clone()));
        }
        let begins = if past.is_reached {
            None
        } else {
            Some(past.oldest.unwrap_or_else(clock::now))
        };
        Ok(Then {
            at,
            texts,
            begins,
            lease: past.lease,
        })
    }
}

impl Then {
    /// Returns an item as it was.
    pub fn find(&self, id: &TaskId) -> Option<Found> {
        self.texts.iter().find_map(|text| {
            let (document, _) = text.content.parse();
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
    /// By queue.
    since: HashMap<String, Since>,
}

impl Past<'_> {
    /// Processes the next older event; returns false if no older one is needed.
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
        if let Some(queue) = entry.queue.clone() {
            self.since.entry(queue).or_default().add(entry);
        }
        true
    }
}
