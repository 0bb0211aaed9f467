//! A queue's text with its newest events taken back. Knows nothing of when they happened.
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

/// What was done to a queue's items since some moment.
#[derive(Default)]
pub(super) struct Since {
    first: HashMap<TaskId, First>,
    /// Changes of items without an ID; the newest first.
    nameless: Vec<Entry>,
}

/// What the first event found.
#[derive(Default)]
struct First {
    seq: u64,
    /// What the last one left.
    left: Option<String>,
    /// Nothing: the item was not there.
    text: Option<String>,
    /// Nothing: no event tells, so it is what it is.
    status: Option<Status>,
}

impl Since {
    /// Takes in the next older event of the queue.
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
                // It was typed in one lane and moved to another, and is not there without both.
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

    /// The item is to be so; `None`: not there.
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

    /// An item without an ID is not to be there.
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
        // A part's own event is younger or older than one of the item that it is in: the newest are taken back first.
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
                    // Of two with the same ID it is the one that the log tells of, else one that Tavern has written to.
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
                    // It has got an ID since, and was taken back with that.
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
