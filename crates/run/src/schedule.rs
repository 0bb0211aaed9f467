//! Queues what the board's schedules say is due. Nothing is run by that: what is queued is an item like any other.

use super::error::Error;
use super::site::Site;
use super::trust::{Trust, made_here};
use tavern_core::task::Task;
use tavern_store::config::Schedules;
use tavern_store::{ScheduleDeed, ScheduleOutcome};

/// What one look at the schedules found and did.
#[derive(Debug, Default)]
pub struct ScheduleLook {
    pub schedules: Schedules,
    pub outcomes: Vec<ScheduleOutcome>,
}

/// Queues what is due now. A file that git has brought and nobody has trusted queues nothing.
pub fn queue_due(site: &Site) -> Result<ScheduleLook, Error> {
    let schedules = Schedules::load(site.board.dir())?;
    let trust = Trust::of(site);
    if !schedules.text.is_empty() {
        trust.schedules(&schedules.text)?;
    }
    let is_trusted = |task: &Task| trust.knows(task);
    let outcomes = site
        .board
        .queue_due(&schedules.all, schedules.names.as_ref(), &is_trusted)?;
    let queued = outcomes.iter().filter_map(|outcome| match &outcome.what {
        ScheduleDeed::Queued { task, .. } => Some(&**task),
        _ => None,
    });
    // Their words are those of the schedules, which are trusted.
    made_here(&site.board, queued);
    Ok(ScheduleLook {
        schedules,
        outcomes,
    })
}
