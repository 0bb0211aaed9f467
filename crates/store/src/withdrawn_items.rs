//! Held items that their owner takes from the agents by a mark in the box: `[-]`.

use std::collections::{HashMap, HashSet};

use super::board::Board;
use super::entry::{Entry, LeaseEntry};
use tavern_core::document::open;
use tavern_core::marked_item::MarkedItem;
use tavern_core::state::State;
use tavern_core::task::TaskId;
use tavern_core::text::{Edit, apply};

/// The marks of held items.
pub(super) struct Marks(HashMap<TaskId, String>);

impl Marks {
    /// Returns the marks that `saved` adds to `held` items of `ours`, and `saved` with open boxes in their place, ready
    /// to be merged.
    pub(super) fn of(saved: &str, ours: &str, held: &HashSet<TaskId>) -> (Marks, String) {
        let mut marks = Marks(HashMap::new());
        let mut new = if held.is_empty() {
            Vec::new()
        } else {
            MarkedItem::new_in(saved, ours)
        };
        if new.is_empty() {
            return (marks, saved.to_owned());
        }
        let ([mine, theirs], mut opened) = ([ours, saved].map(open), Vec::new());
        let nameless = |title: &str| {
            [&mine, &theirs].map(|document| {
                let items = document
                    .items()
                    .iter()
                    .filter(|item| item.id.is_none() && document.title(item) == title);
                items.count()
            })
        };
        for item in mine.items().iter().filter(|item| !item.nested) {
            let Some(id) = item
                .id
                .as_ref()
                .filter(|id| held.contains(*id) && theirs.find(id).is_none())
            else {
                continue;
            };
            let (title, is_id) = (mine.title(item), |marked: &MarkedItem| {
                marked.id.as_ref() == Some(id)
            });
            // An old text may have the item without its ID.
            let [here, there] = nameless(title);
            let is_it = |marked: &MarkedItem| there <= here && marked.may_be(None, title);
            let found = new
                .iter()
                .position(is_id)
                .or_else(|| new.iter().position(is_it));
            if let Some(marked) = found.map(|at| new.remove(at)) {
                marks
                    .0
                    .insert(id.clone(), saved[marked.mark.clone()].to_owned());
                opened.push(Edit::replace(marked.mark, " "));
            }
        }
        opened.sort_by_key(|edit| edit.span.start);
        (marks, apply(saved, &opened))
    }

    /// Returns for each item why it is no longer held.
    pub(super) fn causes(&self) -> impl Iterator<Item = (TaskId, String)> {
        let cause = |(id, mark): (&TaskId, &String)| {
            (
                id.clone(),
                format!(
                    "it was marked `[{mark}]` by hand; its work is kept, on tavern/{id} or under refs/tavern/salvage/{id}"
                ),
            )
        };
        self.0.iter().map(cause)
    }

    /// Returns `text` with the marks in the items' boxes, as if they had never been claimed.
    pub(super) fn put(self, mut text: String) -> String {
        for (id, mark) in self.0 {
            let free = {
                let document = open(&text);
                let Some(item) = document.find(&id) else {
                    continue;
                };
                let patch = document.showing(item, &State::default());
                apply(&text, &document.change(item, &patch))
            };
            let document = open(&free);
            let at = document
                .find(&id)
                .map(|item| item.box_char..item.box_char + 1);
            text = apply(
                &free,
                &at.map(|at| Edit::replace(at, &*mark))
                    .into_iter()
                    .collect::<Vec<_>>(),
            );
        }
        text
    }
}

/// Makes the event of an item that its holder has `lost` end the lease, for the given cause.
pub(super) fn end_hold(board: &Board, entry: &mut Entry, lost: &HashMap<TaskId, String>) {
    let Some((id, cause)) = entry.task.as_ref().and_then(|id| lost.get_key_value(id)) else {
        return;
    };
    entry.cause = Some(cause.clone());
    entry.token = board.lease(id).ok().flatten().map(|lease| lease.token);
    entry.lease = entry.token.map(|_| LeaseEntry::Drop);
}
