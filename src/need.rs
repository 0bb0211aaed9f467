//! What waits for a person, and what they type for it.

use schemars::JsonSchema;
use serde::Serialize;

use tavern_core::eligible::Lack;
use tavern_core::need::{NeedKind, need_of};
use tavern_core::problem::listed;
use tavern_core::task::TaskId;
use tavern_run::readiness::lacks_of;
use tavern_store::{Board, NamedItem, Queue};

use super::{Context, hints, human};

/// One item that a person can free, and nobody else.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Need {
    pub need: NeedKind,
    /// The question, or why it waits.
    pub why: String,
    /// What to type.
    pub todo: String,
}

/// What an item that lacks all that needs of a person; `reason` is why it died.
pub(super) fn of(
    lacks: &[Lack],
    reason: Option<&str>,
    task: Option<&TaskId>,
    queue: &str,
) -> Option<Need> {
    let (lack, need, why) = need_of(lacks, reason)?;
    let todo = hints::lack(lack, task, Some(queue)).unwrap_or_default();
    Some(Need { need, why, todo })
}

/// What the item lacks here and now. Of settings that can't be read `tavern check` tells.
pub(super) fn lacks(
    context: &Context,
    board: &Board,
    item: &NamedItem,
    queue: &Queue,
) -> Vec<Lack> {
    let Ok(site) = context.light_site(board.clone()) else {
        return Vec::new();
    };
    lacks_of(&site.naming(std::slice::from_ref(queue)), queue, item)
}

/// What is said of a file that lies beside the queues.
pub(super) const NO_QUEUE: &str = "is no queue: nothing in it is worked";

/// Tells of queues that are gone, and of saves that were not believed, or not in all: whoever did that would wonder.
pub(super) fn tell_of_queues(context: &Context, board: &Board) {
    losses(board)
        .into_iter()
        .for_each(|words| context.out.note(words));
}

/// The same in words.
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
        let what = format!(
            "a save that lacks most of {}, or its end, was set aside in {}",
            aside.queue.id,
            aside.path.display()
        );
        told.push(format!(
            "{what}, and the queue stands as it was; {}",
            hints::of_aside(&aside)
        ));
    }
    told
}

/// That the newest save of `queue` lacks what goes by these `names`.
pub(super) fn stays(queue: &str, names: &[String]) -> String {
    format!(
        "an older text of {queue} was saved, and what it lacks stays: {}",
        listed(names)
    )
}

/// Tells of queues whose file is gone, of settings and of templates.
pub(super) fn tell_removed(context: &Context, board: &Board) {
    removed(board)
        .into_iter()
        .for_each(|words| context.out.note(words));
}

fn removed(board: &Board) -> Vec<String> {
    let mut told = Vec::new();
    for lost in board.removed_queues().unwrap_or_default() {
        let what = format!(
            "queue {} was removed, though something is left to do in it",
            lost.queue.id
        );
        told.push(format!("{what}; {}", hints::of_lost(board, &lost)));
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

/// In a line: who waits, for what, and what to type.
pub(super) fn sentence(place: &str, task: Option<&TaskId>, need: &Need) -> String {
    let name = task.map_or_else(|| place.to_owned(), ToString::to_string);
    let why = human::words(&need.why);
    let asks = if need.need == NeedKind::Answer {
        " asks"
    } else {
        ""
    };
    format!("{name}{asks}: {why} — {}", need.todo)
}
