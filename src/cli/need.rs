//! What waits for a person, and what they type for it.

use serde::Serialize;

use crate::board::document::{Document, Item, parse};
use crate::board::eligible::Lack;
use crate::board::task::{Mode, PERSON, Status, Task, TaskId};
use crate::run::Preflight;
use crate::store::{Board, Queue};

use super::{Context, hints, human};

/// One item that a person can free, and nobody else.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Need {
    pub need: What,
    /// The question, or why it waits.
    pub why: String,
    /// What to type.
    pub todo: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// Its agent asked a question.
    Answer,
    /// It came back too often.
    Release,
    /// It may be started only then.
    Permission,
    /// Its work may be merged only then.
    Approval,
    /// A child failed that it does not go on without.
    Child,
}

/// What `task` needs of a person. `reviewers` are those of items and queues that don't say.
pub(super) fn of(board: &Board, task: &Task, reviewers: &[String]) -> Option<Need> {
    let lack = lack(board, task, reviewers)?;
    let need = match &lack {
        Lack::Answer(_) => What::Answer,
        Lack::FailedChild(_) => What::Child,
        Lack::Permission => What::Permission,
        Lack::Approval => What::Approval,
        _ => What::Release,
    };
    let todo = hints::lack(&lack, Some(&task.id)).unwrap_or_default();
    let why = if let Lack::Answer(question) = lack { question } else { lack.to_string() };
    Some(Need { need, why, todo })
}

/// The same as what it lacks.
fn lack(board: &Board, task: &Task, reviewers: &[String]) -> Option<Lack> {
    match task.status() {
        // Whoever is free takes it.
        Status::Waiting if task.answered().is_some() => None,
        Status::Waiting => match task.question() {
            Some(question) => Some(Lack::Answer(question.to_owned())),
            None if task.mode() == Mode::Unify => {
                let children = board.children(&task.id);
                let failed = children.into_iter().find(|child| child.on_failure.keeps_waiting(child.status()))?;
                Some(Lack::FailedChild(failed.id))
            }
            None => Some(Lack::Release(task.reason().unwrap_or_default().to_owned())),
        },
        Status::Pending if task.waits_for_permission() => Some(Lack::Permission),
        Status::InReview => {
            let open = task.open_reviews(&task.reviewers(reviewers));
            open.iter().any(|role| role == PERSON).then_some(Lack::Approval)
        }
        _ => None,
    }
}

/// Likewise of an item in its queue; most need not be read in full.
pub(super) fn of_item(board: &Board, document: &Document<'_>, item: &Item<'_>, reviewers: &[String]) -> Option<Need> {
    let asks = || !document.front().approve.is_empty() || document.block(item).contains("approve");
    let may_need = match item.status {
        Status::Waiting | Status::InReview => true,
        Status::Pending => asks(),
        _ => false,
    };
    if !may_need {
        return None;
    }
    let need = of(board, &document.task_of(item), reviewers)?;
    Some(if item.id.is_some() {
        need
    } else {
        Need { todo: "give it an ID in its file first, such as T-7".to_owned(), ..need }
    })
}

/// What keeps agents from an item that is pending or in review, as it is here and now. Of settings that can't be read
/// `tavern check` tells.
pub(super) fn lacking(context: &Context, board: &Board, task: &Task, queue: &Queue) -> Option<Lack> {
    let is_ahead = matches!(task.status(), Status::Pending | Status::InReview);
    let site = context.light_site(board.clone()).ok().filter(|_| is_ahead)?;
    let text = board.read(queue).ok()?;
    let (document, _) = parse(&text.content);
    Preflight::of(&site).readiness(&document, document.find(&task.id)?).err()
}

/// In a line: who waits, for what, and what to type.
pub(super) fn sentence(place: &str, task: Option<&TaskId>, need: &Need) -> String {
    let name = task.map_or_else(|| place.to_owned(), ToString::to_string);
    let why = human::words(&need.why);
    match need.need {
        What::Answer => format!("{name} asks: {why} — {}", need.todo),
        _ => format!("{name}: {why} — {}", need.todo),
    }
}
