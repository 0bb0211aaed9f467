//! Undoes the newest events in a queue's text. Knows nothing of their times.
//!
//! Prose, front matter and the order of items stay as they are.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::entry::{Entry, TextChange};
use tavern_core::document::{Document, Item};
use tavern_core::event::Kind;
use tavern_core::merge::bare;
use tavern_core::rewrite::{apply_each, set_item};
use tavern_core::state::State;
use tavern_core::task::{Status, TaskId, Timestamp};

/// The changes to a queue's items since some moment.
#[derive(Default)]
pub(super) struct Since {
    first: HashMap<TaskId, First>,
    /// Changes of items without an ID, newest first.
    nameless: Vec<Entry>,
}

/// The item before its first event.
#[derive(Default)]
struct First {
    seq: u64,
    /// The text after its last event.
    left: Option<String>,
    /// `None`: the item did not exist.
    text: Option<String>,
    /// `None`: no event shows it, so the present status holds.
    status: Option<Status>,
}

impl Since {
    /// Adds the next older event of the queue.
    pub(super) fn add(&mut self, entry: Entry) {
        match &entry.task {
            _ if !entry.change.is_of_item() => {}
            Some(task) => {
                let left = || First {
                    left: entry.change.after().map(str::to_owned),
                    ..First::default()
                };
                let first = self.first.entry(task.clone()).or_insert_with(left);
                first.seq = entry.seq;
                first.status = entry.change.from().or(first.status);
                first.text = entry.change.before().map(str::to_owned);
            }
            None => match self
                .nameless
                .last_mut()
                .map(|newer| (newer.seq == entry.seq, &mut newer.change))
            {
                // The item was typed in one lane and moved to another; undoing both removes it.
                Some((true, change @ TextChange::Edited { .. })) => {
                    let (to, after) = (
                        change.to().unwrap_or(Status::Pending),
                        change.after().unwrap_or_default().to_owned(),
                    );
                    *change = TextChange::Added {
                        from: None,
                        to,
                        after,
                    };
                }
                _ => self.nameless.push(entry),
            },
        }
    }

    /// Sets the item's text and status; `None` removes it.
    pub(super) fn set(&mut self, task: TaskId, item: Option<(String, Status)>) {
        let (text, status) = item.unzip();
        let seq = u64::MAX - self.first.len() as u64;
        self.first.insert(
            task,
            First {
                seq,
                text,
                status,
                left: None,
            },
        );
    }

    /// Removes an item without an ID.
    pub(super) fn set_nameless(&mut self, block: &str, status: Status) {
        let change = TextChange::Added {
            from: None,
            to: status,
            after: block.to_owned(),
        };
        self.nameless.push(Entry {
            change,
            ..Entry::new(Kind::Moved, Timestamp::default())
        });
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = &TaskId> {
        self.first.keys()
    }

    pub(super) fn taken_back(&self, text: &str) -> String {
        // Events of a part may be older or newer than those of its parent item; the newest are undone first.
        let named = self
            .first
            .iter()
            .map(|(id, first)| (first.seq, Ok((id, first))));
        let mut steps: Vec<_> = named
            .chain(self.nameless.iter().map(|entry| (entry.seq, Err(entry))))
            .collect();
        steps.sort_by_key(|(seq, _)| Reverse(*seq));
        let together = steps.chunk_by(|(_, one), (_, next)| one.is_ok() && next.is_ok());
        together.fold(text.to_owned(), |text, together| {
            apply_each(text, together.to_vec(), &|document, (_, one)| match one {
                Ok((
                    id,
                    First {
                        text: was,
                        status,
                        left,
                        ..
                    },
                )) => {
                    // Of two items with the same ID, prefers the one in the log, then one that Tavern has written to.
                    let is_left = |item: &Item<'_>| {
                        left.as_deref().map(bare) == Some(bare(document.block(item)))
                    };
                    let has_state = |item| {
                        document
                            .task_as(item, TaskId::nobody(), Status::Pending)
                            .state
                            != State::default()
                    };
                    let named = document.named(id).into_iter().rev();
                    let item = named.max_by_key(|item| (is_left(item), has_state(item)));
                    set_item(document, item, was.as_deref().map(|was| (was, *status)))
                }
                Err(entry) => {
                    let item = entry.change.after().map(|after| reading(document, after));
                    // The item got an ID since, and was undone with that.
                    if item == Some(None) {
                        return Vec::new();
                    }
                    set_item(
                        document,
                        item.flatten(),
                        entry.change.before().map(|was| (was, entry.change.from())),
                    )
                }
            })
        })
    }
}

pub(super) fn reading<'d, 't>(document: &'d Document<'t>, block: &str) -> Option<&'d Item<'t>> {
    document
        .items()
        .iter()
        .find(|item| bare(document.block(item)) == bare(block))
}
