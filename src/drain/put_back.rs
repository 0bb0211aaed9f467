//! Open boxes that a save brought of items that had ended before. These stay ended, and a person is told so.

use std::collections::HashSet;

use tavern_core::document::{Document, Item, parse};
use tavern_core::problem::listed;
use tavern_core::task::TaskId;
use tavern_store::{Board, Queue};

use crate::{Context, human};

/// The queues as they stand in their files, before any save is taken over.
pub(super) struct Saved(Vec<String>);

impl Saved {
    pub(super) fn of(board: &Board, queues: &[Queue]) -> Saved {
        let text = |queue| board.read(queue).map(|read| read.content.to_string());
        Saved(
            queues
                .iter()
                .map(|queue| text(queue).unwrap_or_default())
                .collect(),
        )
    }

    /// Tells of the items that were open in these texts and are not now. Returns whether there are any.
    pub(super) fn tell_of_ended(&self, context: &Context, board: &Board, queues: &[Queue]) -> bool {
        let mut is_any = false;
        for (queue, saved) in queues.iter().zip(&self.0) {
            let Ok(now) = board.read(queue) else { continue };
            // Nothing was put back in a text that stands.
            let ended = if *saved == *now.content {
                Vec::new()
            } else {
                ended(&parse(saved).0, &parse(&now.content).0)
            };
            let Some((first, _)) = ended.first() else {
                continue;
            };
            is_any = true;
            let names: Vec<String> = ended
                .iter()
                .map(|(id, title)| format!("{id} {}", human::title(title)))
                .collect();
            context.out.note(format!(
                "{}: {} ended before, and stay so: {}; to have one worked again: tavern release --reopen {first}",
                queue.id,
                human::count(ended.len(), "open item"),
                listed(&names),
            ));
        }
        is_any
    }
}

/// The items of `now` that have ended, and stood open in `saved`.
fn ended(saved: &Document<'_>, now: &Document<'_>) -> Vec<(TaskId, String)> {
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
        .filter_map(|item| Some((item.id.as_ref()?, now.title(item))))
        .filter(|(id, title)| open.contains(id.as_str()) || open.contains(title))
        .filter(|(_, title)| !still.contains(title))
        .map(|(id, title)| (id.clone(), title.to_owned()))
        .collect()
}

fn open_items<'d, 't>(document: &'d Document<'t>) -> impl Iterator<Item = &'d Item<'t>> {
    document
        .items()
        .iter()
        .filter(|item| !item.status.is_ended())
}
