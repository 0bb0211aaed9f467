//! The children of an item, and what a person can do for one that waits for them.

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

/// What a person can do for an item that waits for its children.
pub(super) fn to_do(id: &TaskId, children: &[Child]) -> Vec<String> {
    let failed = |child: &&Child| child.on_failure.keeps_waiting(child.status);
    let mut what: Vec<String> = children
        .iter()
        .filter(failed)
        .map(|child| {
            let child = &child.task;
            format!(
                "{child} failed: tavern release {child} --revive, or go on without it: tavern release {child} --cancel"
            )
        })
        .collect();
    if what.is_empty() {
        what.push(format!("nothing: it goes on when its children have ended; to go on before: tavern release {id}"));
    }
    what
}
