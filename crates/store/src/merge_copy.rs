//! Merges an edited copy of a queue into it, as an external edit.
//!
//! Unlike with a save, the merge base is known.

use std::collections::HashSet;

use super::appended_lines::with_appended;
use super::archived::statuses;
use super::baseline::SetAside;
use super::board::Board;
use super::change::Change;
use super::conflict_notes::Settled;
use super::edit_entries::{Copies, done_by_hand, note};
use super::entry::Entry;
use super::error::Error;
use super::external_edits::{tell_status, with_ended};
use super::held_items::{with_held, with_ids, with_own_ids};
use super::index::ItemIndex;
use super::queue::Queue;
use super::rewind::Since;
use super::withdrawn_items::{Marks, end_hold};
use tavern_core::document::open;
use tavern_core::event::Kind;
use tavern_core::merge::merge;
use tavern_core::task::TaskId;
use tavern_sys::files;

/// The result of an edit.
#[derive(Clone, Debug)]
pub struct Edited {
    /// False if the queue is unchanged, byte for byte.
    pub is_changed: bool,
    /// The new log entries: items added, edited or removed.
    pub entries: Vec<Entry>,
    /// Conflicts with concurrent changes, and how each was resolved.
    pub conflicts: Vec<Settled>,
}

impl Board {
    /// Makes the queue read like the save that was set aside, except for held items.
    pub fn accept(&self, aside: &SetAside) -> Result<Edited, Error> {
        let saved = files::read_text(&aside.path).map_err(Error::io("read", &aside.path))?;
        self.edit(&aside.queue, &self.read(&aside.queue)?.content, &saved)
    }

    /// Restores an earlier text of the queue, except for held items. Items that have ended since stay ended; archived
    /// and moved items stay where they are.
    pub fn restore(&self, queue: &Queue, kept: &str) -> Result<Edited, Error> {
        let (text, index) = (self.read(queue)?, ItemIndex::of(self));
        let (now, states) = (text.content.open(), self.states()?);
        let mut went = Since::default();
        let ids = open(kept);
        let ids = ids.items().iter().filter_map(|item| item.id.clone());
        ids.filter(|id| now.find(id).is_none() && index.knows(id, queue))
            .for_each(|id| went.set(id, None));
        let (restored, _) = with_ended(&went.taken_back(kept), &|id| {
            let remembered = || states.get(id)?.status();
            now.find(id).map(|item| item.status).or_else(remembered)
        });
        self.edit(queue, &text.content, &restored)
    }

    /// Merges `edited`, which is based on `copy`, into the current queue.
    pub fn edit(&self, queue: &Queue, copy: &str, edited: &str) -> Result<Edited, Error> {
        self.transact(|view| {
            let text = view.read(queue)?;
            let held = self.held_in(queue)?;
            // An editor may save a text loaded before an item of the copy got its ID.
            let (marks, edited) = Marks::of(edited, &text.content, &held);
            let index = ItemIndex::of(self);
            let is_known = |id: &TaskId| index.knows(id, queue);
            let edited = with_ids(&edited, copy, &held);
            let (edited, _) = with_own_ids(&edited, copy, [&held, &HashSet::new()], &is_known);
            let mut merged = merge(copy, &text.content, &edited, &|id| held.contains(id));
            let lost = marks.causes().collect();
            merged.text = marks.put(with_held(merged.text, &text.content, &held));
            let conflicts = merged
                .conflicts
                .into_iter()
                .map(|conflict| Settled::of(conflict, &held));
            let conflicts: Vec<Settled> = conflicts.collect();
            merged.text = with_appended(Some(&text.content), merged.text, &is_known);
            if text.content == *merged.text {
                let unchanged = Edited {
                    is_changed: false,
                    entries: Vec::new(),
                    conflicts,
                };
                return Ok((Change::default(), unchanged));
            }
            let mut entries: Vec<Entry> = conflicts
                .iter()
                .map(|conflict| note(queue, conflict.to_string(), view.now))
                .collect();
            let own = statuses(&text.content.open());
            let copies = Copies::of(&index, queue, &own, &merged.text);
            let done = done_by_hand(&copies, &text.content, &merged.text, view.now).into_iter();
            let states = self.states()?;
            entries.extend(done.map(|mut entry| {
                tell_status(&states, &mut entry);
                end_hold(self, &mut entry, &lost);
                entry
            }));
            let mut change =
                Change::rewrite(text.queue.clone(), view.sight(&text), merged.text, entries);
            change.number(view.last_seq);
            let told = change
                .entries
                .iter()
                .filter(|entry| entry.kind != Kind::Noted)
                .cloned()
                .collect();
            Ok((
                change,
                Edited {
                    is_changed: true,
                    entries: told,
                    conflicts,
                },
            ))
        })
    }
}
