//! The children of an item.

use serde::Serialize;

use crate::board::task::{OnFailure, Status, Task, TaskId};
use crate::store::{Board, Then};

/// One of its children.
#[derive(Serialize)]
pub(super) struct Child {
    pub task: TaskId,
    pub title: String,
    pub status: Status,
    pub on_failure: OnFailure,
}

/// The children of an item, now or then.
pub(super) fn of(board: &Board, id: &TaskId, then: Option<&Then>) -> Vec<Child> {
    let tasks = match then {
        None => board.children(id),
        Some(then) => then.children(id),
    };
    let child =
        |task: Task| Child { status: task.status(), task: task.id, title: task.title, on_failure: task.on_failure };
    tasks.into_iter().map(child).collect()
}
