//! What there is to see of a board, as plain values: what `tavern status` prints, and its JSON, and what the live view shows. It
//! prints nothing, and knows no terminal.

use schemars::JsonSchema;
use serde::Serialize;

use tavern_core::lease::{Freshness, Life};
use tavern_core::task::{Mode, TaskId, Timestamp};
use tavern_run::readiness::texts;
use tavern_run::record::last_output;
use tavern_run::{Site, run_name};
use tavern_store::{AgentFile, Board, Queue, Quota, Switch, life};
use tavern_sys::clock;

use super::CliError;
use super::need::losses;
use super::strayed::Strayed;

pub mod listing;
mod next;
pub mod queue_read;
pub mod run_line;
pub mod since;
pub mod spending;

use listing::{Listing, WantedItems};
use queue_read::QueueRead;
use spending::SpendingLine;

/// All of it at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Overview {
    pub switched: Option<Switched>,
    /// Queues that can't be read, and why; and what was lost of them.
    pub unread: Vec<String>,
    #[serde(flatten)]
    pub listing: Listing,
    pub spending: Option<SpendingLine>,
    pub strayed: Vec<Strayed>,
    pub agents: Vec<AgentLine>,
    pub quotas: Vec<QuotaLine>,
}

/// The board is paused, or stopped.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Switched {
    pub state: &'static str,
    pub reason: String,
}

/// An agent, and what it does.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct AgentLine {
    #[serde(flatten)]
    pub agent: AgentFile,
    pub heartbeat_at: Timestamp,
    pub freshness: Freshness,
    pub alive: bool,
    /// When its program has said something last.
    pub last_output: Option<Timestamp>,
    /// What it does with its item.
    pub mode: Option<Mode>,
}

/// A runner that is closed.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct QuotaLine {
    pub runner: String,
    #[serde(flatten)]
    pub quota: Quota,
}

impl Overview {
    /// What there is to see of `queues` now. Settings that can't be read leave out what only they tell.
    pub fn gather(
        board: &Board,
        queues: &[Queue],
        site: Option<&Site>,
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
            listing: Listing::gather(board, &QueueRead::all(&texts), queues, site, wanted)?,
            spending: site.and_then(|site| spending::of(site, queues)),
            strayed: Strayed::recent(board)?,
            agents: agents(board, &|task| mode_of(board, task)),
            quotas: quotas(board),
        })
    }

    /// What is in the way of work, or was not as it should be: a line each.
    pub fn problems(&self) -> Vec<String> {
        let switched = self
            .switched
            .iter()
            .map(|switched| format!("the board is {}: {}", switched.state, switched.reason));
        let closed = self
            .quotas
            .iter()
            .map(|closed| closed.quota.told_of(&closed.runner));
        let strayed = self.strayed.iter().map(ToString::to_string);
        switched
            .chain(self.unread.iter().cloned())
            .chain(closed)
            .chain(strayed)
            .collect()
    }
}

/// Whether the board is paused, or stopped.
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

/// What the holder of an item does with it, as its queue says now.
pub fn mode_of(board: &Board, task: &TaskId) -> Option<Mode> {
    Some(board.task(task).ok()?.task.mode())
}

/// The agents of the board, living or not, by name; with the modes of their items, which are asked for.
pub fn agents(board: &Board, mode_of: &dyn Fn(&TaskId) -> Option<Mode>) -> Vec<AgentLine> {
    let now = clock::now();
    let line = |agent: AgentFile| {
        // While it works, its lease is what it renews.
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

/// The runners that are closed now.
pub fn quotas(board: &Board) -> Vec<QuotaLine> {
    board
        .quotas(clock::now())
        .into_iter()
        .map(|(runner, quota)| QuotaLine { runner, quota })
        .collect()
}
