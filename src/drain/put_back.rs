//! Open boxes that a save brought of items that had ended before. These stay ended, and a person is told so.

use std::collections::HashSet;

use tavern_core::document::{Document, Item, parse};
use tavern_core::problem::listed;
use tavern_core::task::{Status, TaskId};
use tavern_store::{Board, Queue};
use tavern_sys::files;

use crate::{Context, human};

/// The queues as they stand in their files, before any save is taken over.
pub(super) struct Saved(Vec<String>);

impl Saved {
    pub(super) fn of(queues: &[Queue]) -> Saved {
        let text = |queue: &Queue| files::read_text(&queue.path).unwrap_or_default();
        Saved(queues.iter().map(text).collect())
    }

    /// Tells of the items that were open in these texts and are not now. Returns whether there are any.
    pub(super) fn tell_of_ended(&self, context: &Context, board: &Board, queues: &[Queue]) -> bool {
        let mut is_any = false;
        for (queue, saved) in queues.iter().zip(&self.0) {
            let Ok(now) = board.read(queue) else { continue };
            // Nothing was put back in a text that stands.
            let ended = if saved.is_empty() || *saved == *now.content {
                Vec::new()
            } else {
                ended(&parse(saved).0, &now.content.parse().0)
            };
            let Some((first, _, status)) = ended.first() else {
                continue;
            };
            is_any = true;
            let names: Vec<String> = ended
                .iter()
                .map(|(id, title, _)| format!("{id} {}", human::title(title)))
                .collect();
            let back = if *status == Status::Dead {
                "--revive"
            } else {
                "--reopen"
            };
            context.out.note(format!(
                "{}: {} ended before, and stay so: {}; to have one worked again: tavern release {back} {first}",
                queue.id,
                human::count(ended.len(), "open item"),
                listed(&names),
            ));
        }
        is_any
    }
}

/// The items of `now` that have ended, and stood open in `saved`.
fn ended(saved: &Document<'_>, now: &Document<'_>) -> Vec<(TaskId, String, Status)> {
    let open: HashSet<&str> = open_items(saved)
        .map(|item| {
            item.id
                .as_ref()
                .map_or_else(|| saved.title(item), TaskId::as_str)
        })
        .collect();
    let still: HashSet<&str> = open_items(now).map(|item| now.title(item)).collect();
    let ended = now.items().iter().filter(|item| item.status.is_ended());
    ended
        .filter_map(|item| Some((item.id.as_ref()?, now.title(item), item.status)))
        .filter(|(id, title, _)| open.contains(id.as_str()) || open.contains(title))
        .filter(|(_, title, _)| !still.contains(title))
        .map(|(id, title, status)| (id.clone(), title.to_owned(), status))
        .collect()
}

fn open_items<'d, 't>(document: &'d Document<'t>) -> impl Iterator<Item = &'d Item<'t>> {
    document
        .items()
        .iter()
        .filter(|item| !item.status.is_ended())
}
