//! Queues the items of due schedules. Runs nothing: a queued item is like any other.

use super::error::Error;
use super::trust::{Trust, made_here};
use super::workspace::Workspace;
use tavern_core::task::Task;
use tavern_store::config::Schedules;
use tavern_store::{ScheduleDeed, ScheduleOutcome};

/// The result of one look at the schedules.
#[derive(Debug, Default)]
pub struct ScheduleLook {
    pub schedules: Schedules,
    pub outcomes: Vec<ScheduleOutcome>,
}

/// Queues the items that are due now. An untrusted schedules file queues nothing.
pub fn queue_due(workspace: &Workspace) -> Result<ScheduleLook, Error> {
    let schedules = Schedules::load(workspace.board.dir())?;
    let trust = Trust::of(workspace);
    if !schedules.text.is_empty() {
        trust.schedules(&schedules.text)?;
    }
    let is_trusted = |task: &Task| trust.knows(task);
    let outcomes =
        workspace
            .board
            .queue_due(&schedules.all, schedules.names.as_ref(), &is_trusted)?;
    let queued = outcomes.iter().filter_map(|outcome| match &outcome.what {
        ScheduleDeed::Queued { task, .. } => Some(&**task),
        _ => None,
    });
    // Their text comes from the schedules, which are trusted.
    made_here(&workspace.board, queued);
    Ok(ScheduleLook {
        schedules,
        outcomes,
    })
}
