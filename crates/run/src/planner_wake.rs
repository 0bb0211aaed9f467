//! A planner with nothing to do checks whether the board needs one.

use super::error::Error;
use super::trust::Trust;
use super::workspace::Workspace;
use tavern_core::event::Kind;
use tavern_core::planner_wake::{Known, PlannerNeed, needs};
use tavern_core::task::{Status, Task, TaskId};
use tavern_store::config::Does;
use tavern_store::{Note, Queue, walk_log};

/// Queues a planning item for the first state of `queues` for which agents of `role` have not been woken yet.
///
/// # Errors
/// The board can't be read or written.
pub fn wake(
    workspace: &Workspace,
    queues: &[Queue],
    role: &str,
    note: &Note,
) -> Result<Option<PlannerNeed>, Error> {
    let causes = &workspace.config.plan.wake;
    if causes.is_empty() || workspace.role(role)?.does != Does::Plan {
        return Ok(None);
    }
    // An unreadable item may exist, and other items may wait for it.
    let status_of = |id: &TaskId| match workspace.board.task(id) {
        Ok(found) => Some(found.task.status()),
        Err(tavern_store::Error::NoTask(_)) => None,
        Err(_) => Some(Status::Pending),
    };
    let sent_back = |id: &TaskId| sent_back(workspace, id);
    let plans = |role: &str| {
        workspace
            .config
            .roles
            .get(role)
            .is_some_and(|role| role.does == Does::Plan)
    };
    let trust = Trust::of(workspace);
    let may_be_told = |task: &Task| trust.item(task).is_ok();
    let known = Known {
        status_of: &status_of,
        sent_back: &sent_back,
        plans: &plans,
        may_be_told: &may_be_told,
    };
    for queue in queues {
        // One unreadable queue must not block the others.
        let Ok(text) = workspace.board.read(queue) else {
            continue;
        };
        let document = text.content.parse().0;
        if trust.front(&document).is_err() {
            continue;
        }
        for need in needs(&queue.id, &document, causes, &known) {
            if status_of(&need.id).is_some() || was_added(workspace, &need.id)? {
                continue;
            }
            match workspace
                .board
                .add(queue, need.item(role), Status::Pending, note)
            {
                Ok(_) => return Ok(Some(need)),
                // Another planner was faster.
                Err(tavern_store::Error::Taken(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(None)
}

/// Returns true if the log has the item; a person may have removed it from its queue.
fn was_added(workspace: &Workspace, id: &TaskId) -> Result<bool, Error> {
    let mut was_added = false;
    walk_log(&workspace.board, Some(id), &mut |entry| {
        was_added = entry.kind == Kind::Added;
        !was_added
    })?;
    Ok(was_added)
}

fn sent_back(workspace: &Workspace, id: &TaskId) -> usize {
    let mut times = 0;
    // An unreadable log counts as none.
    drop(walk_log(&workspace.board, Some(id), &mut |entry| {
        times += usize::from(entry.kind == Kind::SentBack);
        !matches!(entry.kind, Kind::Revived | Kind::Reopened)
    }));
    times
}
