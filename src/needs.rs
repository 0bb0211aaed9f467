//! The items that wait for a person, and the command that helps each.

use schemars::JsonSchema;
use serde::Serialize;

use tavern_core::eligible::Lack;
use tavern_core::need::{NeedKind, need_of};
use tavern_core::problem::listed;
use tavern_core::task::TaskId;
use tavern_run::readiness::lacks_of;
use tavern_store::{Board, NamedItem, Queue};

use super::{Context, format, hints};

/// An item that only a person can free.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Need {
    pub need: NeedKind,
    /// The question, or the reason why it waits.
    pub why: String,
    /// The command to type.
    pub todo: String,
}

/// Returns the need for a person among `lacks`; `reason` is why the item died.
pub(super) fn of(
    lacks: &[Lack],
    reason: Option<&str>,
    task: Option<&TaskId>,
    queue: &str,
) -> Option<Need> {
    let (lack, need, why) = need_of(lacks, reason)?;
    let todo = hints::lack(lack, task, Some(queue)).unwrap_or_default();
    let todo = match reason.and_then(hints::limit) {
        Some(limit) => format!("raise `budget: {{{limit}: …}}` of it or of its role; {todo}"),
        None => todo,
    };
    Some(Need { need, why, todo })
}

/// Returns the item's lacks at present; empty if the settings can't be read, which `tavern check` reports.
pub(super) fn lacks(
    context: &Context,
    board: &Board,
    item: &NamedItem,
    queue: &Queue,
) -> Vec<Lack> {
    let Ok(workspace) = context.light_site(board.clone()) else {
        return Vec::new();
    };
    lacks_of(&workspace.naming(std::slice::from_ref(queue)), queue, item)
}

/// Message about a file beside the queues that is no queue.
pub(super) const NO_QUEUE: &str = "is not a queue: agents skip its items";

/// Notes removed queues, files that are no queues, and saves of an older text.
pub(super) fn tell_of_queues(context: &Context, board: &Board) {
    losses(board)
        .into_iter()
        .for_each(|words| context.out.note(words));
}

/// Returns these notes as text.
pub(super) fn losses(board: &Board) -> Vec<String> {
    let mut told = removed(board);
    for queue in board.strangers().unwrap_or_default() {
        let file = queue.path.file_name().unwrap_or_default().display();
        told.push(format!(
            "queues/{file} {NO_QUEUE}; {}",
            hints::of_stranger(&queue)
        ));
    }
    for (queue, names) in board.stays().unwrap_or_default() {
        told.push(format!("{}; {}", stays(&queue, &names), hints::OF_STAYS));
    }
    for aside in board.set_aside() {
        let note = format!(
            "a save that lacks most of {}, or its end, was set aside in {}",
            aside.queue.id,
            aside.path.display()
        );
        told.push(format!(
            "{note}, and the queue is unchanged; {}",
            hints::of_aside(&aside)
        ));
    }
    told
}

/// Returns the note that the newest save of `queue` lacks the items `names`, which stay.
pub(super) fn stays(queue: &str, names: &[String]) -> String {
    format!(
        "an older text of {queue} was saved, and what it lacks stays: {}",
        listed(names)
    )
}

/// Notes removed files of queues, settings and templates.
pub(super) fn tell_removed(context: &Context, board: &Board) {
    removed(board)
        .into_iter()
        .for_each(|words| context.out.note(words));
}

fn removed(board: &Board) -> Vec<String> {
    let mut told = Vec::new();
    for lost in board.removed_queues().unwrap_or_default() {
        let note = format!("queue {} was removed with open items", lost.queue.id);
        told.push(format!("{note}; {}", hints::of_lost(board, &lost)));
    }
    for lost in board.lost_files() {
        told.push(format!(
            "{} was {}; {}",
            lost.queue.id,
            lost.how(),
            hints::of_lost(board, &lost)
        ));
    }
    told
}

/// Returns one line with the item, its need, and the command to type.
pub(super) fn sentence(place: &str, task: Option<&TaskId>, need: &Need) -> String {
    let name = task.map_or_else(|| place.to_owned(), ToString::to_string);
    let why = format::words(&need.why);
    let asks = if need.need == NeedKind::Answer {
        " asks"
    } else {
        ""
    };
    format!("{name}{asks}: {why} — {}", need.todo)
}
