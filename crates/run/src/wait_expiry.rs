//! Waiting items, and when their wait expires (`max_wait`).

use chrono::TimeDelta;

use super::error::Error;
use super::workspace::Workspace;
use tavern_core::document::Document;
use tavern_core::task::{Status, Task, TaskId, Timestamp};
use tavern_store::walk_log;

/// The end of an item's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    pub task: TaskId,
    pub at: Timestamp,
    pub why: String,
}

/// Returns the expiries of all waiting items with a limit.
pub fn expiries(workspace: &Workspace) -> Result<Vec<Expiry>, Error> {
    let mut all = Vec::new();
    for text in workspace
        .board
        .queues()?
        .iter()
        .filter_map(|queue| workspace.board.read(queue).ok())
    {
        all.extend(expiries_in(workspace, &text.content.open())?);
    }
    Ok(all)
}

/// The same for one document. Items never expire if the log has no start of their wait.
pub fn expiries_in(workspace: &Workspace, document: &Document<'_>) -> Result<Vec<Expiry>, Error> {
    let mut all = Vec::new();
    for at in (0..document.count()).filter(|at| document.status_at(*at) == Status::Waiting) {
        let item = document.item(at);
        let task = document.task_of(item);
        let limit = task.max_wait.unwrap_or(workspace.config.max_wait);
        if item.id.is_none() || item.quarantined || limit.is_zero() || !is_held_up(workspace, &task)
        {
            continue;
        }
        let end = |since: Timestamp| {
            TimeDelta::from_std(limit.duration())
                .ok()
                .and_then(|limit| since.checked_add_signed(limit))
        };
        let Some(at) = waits_since(workspace, &task.id)?.and_then(end) else {
            continue;
        };
        let why = match (task.question(), task.state.is_parked()) {
            (Some(question), _) => format!("no answer within {limit}: {question}"),
            (None, true) => format!("its children did not end within {limit}"),
            (None, false) => format!(
                "not released within {limit}: {}",
                task.reason().unwrap_or("it waits")
            ),
        };
        all.push(Expiry {
            task: task.id,
            at,
            why,
        });
    }
    Ok(all)
}

/// Returns true if no agent could continue it.
fn is_held_up(workspace: &Workspace, task: &Task) -> bool {
    let has_ended =
        |child: &Task| child.status().is_ended() && !child.on_failure.keeps_waiting(child.status());
    let is_parked = task.state.is_parked() && task.question().is_none();
    task.answered().is_none()
        && !(is_parked && workspace.board.children(&task.id).iter().all(has_ended))
}

fn waits_since(workspace: &Workspace, task: &TaskId) -> Result<Option<Timestamp>, Error> {
    let mut since = None;
    walk_log(&workspace.board, Some(task), &mut |entry| {
        let begins = entry.to() == Some(Status::Waiting) && entry.from() != Some(Status::Waiting);
        since = begins.then_some(entry.time);
        !begins
    })?;
    Ok(since)
}
