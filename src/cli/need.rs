//! What waits for a person, and what they type for it.

use serde::Serialize;

use crate::board::document::{Document, Item};
use crate::board::task::{Mode, PERSON, Status, Task, TaskId};
use crate::store::Board;

use super::human;

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
    let id = &task.id;
    let reason = || task.reason().unwrap_or_default().to_owned();
    let (need, why, todo) = match task.status() {
        // Whoever is free takes it.
        Status::Waiting if task.answered().is_some() => return None,
        Status::Waiting => match task.question() {
            Some(question) => (What::Answer, question.to_owned(), format!("tavern tell {id} \"…\"")),
            None if task.mode() == Mode::Unify => {
                let children = board.children(id);
                let failed = &children.iter().find(|child| child.on_failure.keeps_waiting(child.status()))?.id;
                let todo = format!("tavern release {failed} --revive, or --cancel to go on without it");
                (What::Child, format!("its child {failed} failed"), todo)
            }
            None => (What::Release, reason(), format!("tavern release {id}")),
        },
        Status::Pending if task.waits_for_permission() => {
            (What::Permission, "may it be started?".to_owned(), format!("tavern report {id} --approve"))
        }
        Status::InReview if task.open_reviews(&task.reviewers(reviewers)).iter().any(|role| role == PERSON) => {
            let todo = format!("tavern report {id} --approve, or --reject \"…\"");
            (What::Approval, "may it be merged?".to_owned(), todo)
        }
        _ => return None,
    };
    Some(Need { need, why, todo })
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
    Some(if item.id.is_some() { need } else { Need { todo: "tavern check --fix gives it an ID".to_owned(), ..need } })
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
