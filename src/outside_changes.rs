//! Reports changes outside of worktrees while agents ran, and foreign moves of the integration branch.

use std::fmt;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::Serialize;

use tavern_core::event::Kind;
use tavern_core::task::{TaskId, Timestamp};
use tavern_run::Workspace;
use tavern_store::{Board, Entry, Error, search_log};
use tavern_sys::clock;

use super::{Context, hints};

/// A change outside of worktrees.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct OutsideReport {
    pub time: Timestamp,
    pub task: Option<TaskId>,
    pub agent: Option<String>,
    pub run: Option<String>,
    /// The change in words.
    pub change: String,
}

impl fmt::Display for OutsideReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = self.agent.as_deref().unwrap_or("its agent");
        let task = self.task.as_ref().map_or("an item", TaskId::as_str);
        write!(f, "while {agent} ran {task}, {}", self.change)
    }
}

/// Maximum number of events searched.
const MOST: usize = 2000;

impl OutsideReport {
    pub fn of(entry: Entry) -> Option<OutsideReport> {
        let Entry {
            time,
            task,
            agent,
            run,
            cause,
            ..
        } = entry;
        (entry.kind == Kind::Strayed).then(|| OutsideReport {
            time,
            task,
            agent,
            run,
            change: cause.unwrap_or_default(),
        })
    }

    /// Returns the changes of the last day, the oldest first.
    pub fn recent(board: &Board) -> Result<Vec<OutsideReport>, Error> {
        let (mut found, since) = (Vec::new(), clock::now() - TimeDelta::days(1));
        search_log(board, &["\"kind\":\"strayed\""], MOST, &mut |entry| {
            found.extend(OutsideReport::of(entry).filter(|strayed| strayed.time >= since));
        })?;
        found.reverse();
        Ok(found)
    }
}

/// Notes an integration branch or base that was moved by neither Tavern nor a person, with the command to type.
pub(super) fn tell_of_tip(context: &Context, workspace: &Workspace) {
    if let Ok(Some(lack)) = workspace.foreign_tip() {
        context.out.note(format!(
            "{lack}; {}",
            hints::lack(&lack, None, None).unwrap_or_default()
        ));
    }
}
