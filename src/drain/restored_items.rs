//! Ended items that a save brought back as open. They stay ended, and a note says so.

use std::collections::HashSet;

use tavern_core::document::{Document, Item, parse};
use tavern_core::problem::listed;
use tavern_core::task::{Status, TaskId};
use tavern_store::{Board, Queue};
use tavern_sys::files;

use crate::{Context, format};

/// The texts of the queues' files before saves are taken over.
pub(super) struct Saved(Vec<String>);

impl Saved {
    pub(super) fn of(queues: &[Queue]) -> Saved {
        let text = |queue: &Queue| files::read_text(&queue.path).unwrap_or_default();
        Saved(queues.iter().map(text).collect())
    }

    /// Prints the items that are open in these texts but have ended. Returns true if there are any.
    pub(super) fn tell_of_ended(&self, context: &Context, board: &Board, queues: &[Queue]) -> bool {
        let mut is_any = false;
        for (queue, saved) in queues.iter().zip(&self.0) {
            let Ok(now) = board.read(queue) else { continue };
            // An unchanged text has no such items.
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
                .map(|(id, title, _)| format!("{id} {}", format::title(title)))
                .collect();
            let back = if *status == Status::Dead {
                "retry"
            } else {
                "reopen"
            };
            context.out.note(format!(
                "{}: {} ended before, and stay ended: {}; to retry one: tavern {back} {first}",
                queue.id,
                format::count(ended.len(), "open item"),
                listed(&names),
            ));
        }
        is_any
    }
}

/// Returns the items that are ended in `now`, and open in `saved`.
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
