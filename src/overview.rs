//! The state of a board as plain values, for `tavern status`, its JSON, and the live view. Prints nothing and knows no
//! terminal.

use schemars::JsonSchema;
use serde::Serialize;

use tavern_core::lease::{Freshness, Life};
use tavern_core::task::{Mode, TaskId, Timestamp};
use tavern_run::readiness::texts;
use tavern_run::record::last_output;
use tavern_run::{Workspace, run_name};
use tavern_store::{AgentFile, Board, Queue, Quota, Switch, life};
use tavern_sys::clock;

use super::CliError;
use super::needs::losses;
use super::outside_changes::OutsideReport;

pub mod listing;
mod next;
pub mod queue_read;
pub mod run_line;
pub mod since;
pub mod spending;

use listing::{Listing, WantedItems};
use queue_read::QueueRead;
use spending::SpendingLine;

/// The state of a board at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Overview {
    pub switched: Option<Switched>,
    /// Unreadable queues with the reason, and losses from queues.
    pub unread: Vec<String>,
    #[serde(flatten)]
    pub listing: Listing,
    pub spending: Option<SpendingLine>,
    pub strayed: Vec<OutsideReport>,
    pub agents: Vec<AgentLine>,
    pub quotas: Vec<QuotaLine>,
}

/// A pause or stop of the board.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Switched {
    pub state: &'static str,
    pub reason: String,
}

/// An agent and its current work.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct AgentLine {
    #[serde(flatten)]
    pub agent: AgentFile,
    pub heartbeat_at: Timestamp,
    pub freshness: Freshness,
    pub alive: bool,
    /// Time of the last output of its program.
    pub last_output: Option<Timestamp>,
    /// Mode in which it works its item.
    pub mode: Option<Mode>,
}

/// A closed runner.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct QuotaLine {
    pub runner: String,
    #[serde(flatten)]
    pub quota: Quota,
}

impl Overview {
    /// Gathers the present state of `queues`. Without readable settings, fields that depend on them stay empty.
    pub fn gather(
        board: &Board,
        queues: &[Queue],
        workspace: Option<&Workspace>,
        wanted: WantedItems<'_>,
    ) -> Result<Overview, CliError> {
        let (texts, unread) = texts(board, queues);
        let unread = unread
            .iter()
            .filter(|lost| queues.iter().any(|queue| queue.id == lost.queue));
        Ok(Overview {
            switched: switched(board),
            unread: unread
                .map(|lost| format!("{}: {}", lost.queue, lost.foremost()))
                .chain(losses(board))
                .collect(),
            listing: Listing::gather(board, &QueueRead::all(&texts), queues, workspace, wanted)?,
            spending: workspace.and_then(|workspace| spending::of(workspace, queues)),
            strayed: OutsideReport::recent(board)?,
            agents: agents(board, &|task| mode_of(board, task)),
            quotas: quotas(board),
        })
    }

    /// Returns one line for each obstacle to work and each irregularity.
    pub fn problems(&self) -> Vec<String> {
        let switched = self
            .switched
            .iter()
            .map(|switched| format!("the board is {}: {}", switched.state, switched.reason));
        let closed = self
            .quotas
            .iter()
            .map(|closed| closed.quota.message_for(&closed.runner));
        let strayed = self.strayed.iter().map(ToString::to_string);
        switched
            .chain(self.unread.iter().cloned())
            .chain(closed)
            .chain(strayed)
            .collect()
    }
}

/// Returns the pause or stop of the board, if any.
pub fn switched(board: &Board) -> Option<Switched> {
    match board.switch() {
        Switch::On => None,
        Switch::Paused(reason) => Some(Switched {
            state: "paused",
            reason,
        }),
        Switch::Stopped(reason) => Some(Switched {
            state: "stopped",
            reason,
        }),
    }
}

/// Returns the mode of an item, as its queue has it now.
pub fn mode_of(board: &Board, task: &TaskId) -> Option<Mode> {
    Some(board.task(task).ok()?.task.mode())
}

/// Returns the board's agents, alive or not, by name. `mode_of` gives the modes of their items.
pub fn agents(board: &Board, mode_of: &dyn Fn(&TaskId) -> Option<Mode>) -> Vec<AgentLine> {
    let now = clock::now();
    let line = |agent: AgentFile| {
        // While an agent works, it renews its lease.
        let lease = agent
            .task
            .as_ref()
            .and_then(|task| board.lease(task).ok().flatten());
        let lease = lease.filter(|lease| agent.run == Some(run_name(&lease.task, lease.token)));
        let heartbeat_at = lease.map_or(agent.heartbeat_at, |lease| {
            lease.heartbeat_at.max(agent.heartbeat_at)
        });
        let last_output = agent.run.as_ref().and_then(|run| last_output(board, run));
        let freshness = Freshness::of(last_output.unwrap_or(heartbeat_at), now);
        let alive = life(&agent.holder) != Life::Gone;
        let mode = agent.task.as_ref().and_then(mode_of);
        AgentLine {
            agent,
            heartbeat_at,
            freshness,
            alive,
            last_output,
            mode,
        }
    };
    board.agents().into_iter().map(line).collect()
}

/// Returns the runners that are closed now.
pub fn quotas(board: &Board) -> Vec<QuotaLine> {
    board
        .quotas(clock::now())
        .into_iter()
        .map(|(runner, quota)| QuotaLine { runner, quota })
        .collect()
}
