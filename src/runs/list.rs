//! `tavern-runs list`: all runs, one a line.

use std::collections::HashSet;

use crate::past_time::{day, moment};
use crate::{CliError, Context, Exit, ItemName, format};
use tavern_core::suggestion::nearest;
use tavern_core::task::{TaskId, Timestamp};
use tavern_run::record::Metadata;
use tavern_run::runner::Outcome;
use tavern_store::Board;
use tavern_sys::clock;

/// Which runs are listed.
#[derive(Default, clap::Args)]
pub struct List {
    /// Only runs of this item
    #[arg(value_name = "ID")]
    pub task: Option<ItemName>,
    /// Only runs of this item and of all its descendants: the items of a plan, and theirs
    #[arg(long, value_name = "ID", conflicts_with = "task")]
    pub request: Option<ItemName>,
    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only runs with this outcome
    #[arg(long, value_parser = outcome_named)]
    pub outcome: Option<Outcome>,
    /// Only runs that began on this day: `2026-11-27`, `today`, `yesterday`
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub day: Option<String>,
    /// Only runs that were active at this time or later: `10:00`, `yesterday`, `2h ago`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Only runs that received this learning; compare their outcomes with others
    #[arg(long, value_name = "LEARNING")]
    pub knew: Option<String>,
    /// Only the last N runs
    #[arg(long, short = 'n', value_name = "N")]
    pub last: Option<usize>,
}

impl List {
    pub(super) fn run(
        self,
        context: &Context,
        board: &Board,
        all: &[Metadata],
    ) -> Result<Exit, CliError> {
        let id_of = |name: &Option<ItemName>| {
            name.as_ref()
                .map(|name| context.id_of(board, name))
                .transpose()
        };
        let (task, request_of) = (id_of(&self.task)?, id_of(&self.request)?);
        let request = request_of.clone().map(|id| with_what_came_of(board, id));
        let is_wanted = |run: &&Metadata| {
            task.as_ref().is_none_or(|task| run.task == *task)
                && request
                    .as_ref()
                    .is_none_or(|tasks| tasks.contains(&run.task))
                && self.agent.as_ref().is_none_or(|agent| run.agent == *agent)
                && self
                    .outcome
                    .is_none_or(|outcome| run.outcome == Some(outcome))
                && self
                    .day
                    .as_ref()
                    .is_none_or(|day| clock::day_of(run.started) == *day)
                && self
                    .since
                    .is_none_or(|since| run.ended.is_none_or(|ended| ended >= since))
                && self
                    .knew
                    .as_ref()
                    .is_none_or(|learning| run.knowledge.contains(learning))
        };
        let wanted: Vec<&Metadata> = all.iter().filter(is_wanted).collect();
        let skipped = self
            .last
            .map_or(0, |last| wanted.len().saturating_sub(last));
        let now = clock::now();
        for run in &wanted[skipped..] {
            let (columns, reason) = line(run, now);
            context.out.row(run, &columns, reason, "")?;
        }
        tell_damaged(context, &wanted);
        if let Some(learning) = self.knew.filter(|_| !wanted.is_empty()) {
            context.out.note(compared(all, &learning));
        }
        if !wanted.is_empty() {
            return Ok(Exit::Done);
        }
        for id in [&task, &request_of].into_iter().flatten() {
            is_known(board, all, id)?;
        }
        let unknown = self
            .agent
            .as_ref()
            .and_then(|agent| unknown_agent(board, all, agent));
        if all.is_empty() {
            context
                .out
                .note("no runs yet; begin the first: tavern agent");
        } else if let Some(unknown) = unknown {
            context.out.note(unknown);
        } else {
            context
                .out
                .note("no matching runs; list them all: tavern runs");
        }
        Ok(Exit::Done)
    }
}

/// Returns an error for an item that neither the board nor any run knows: the user may have mistyped it.
pub(super) fn is_known(board: &Board, all: &[Metadata], id: &TaskId) -> Result<(), CliError> {
    match board.task(id) {
        Err(error @ tavern_store::Error::NoTask(_)) if all.iter().all(|run| run.task != *id) => {
            Err(error.into())
        }
        _ => Ok(()),
    }
}

/// Notes how many of these runs have lost data.
pub(super) fn tell_damaged(context: &Context, runs: &[&Metadata]) {
    let count = runs.iter().filter(|run| run.damaged).count();
    if count > 0 {
        let runs = format::count(count, "damaged run");
        context.out.note(format!(
            "{runs}: metadata.json is damaged or missing; rebuild it: tavern runs rebuild"
        ));
    }
}

fn outcome_named(name: &str) -> Result<Outcome, String> {
    name.parse().map_err(|_| {
        let names = Outcome::NAMES.map(|(_, name)| name);
        let near = nearest(name, names).map(|near| format!(" (did you mean `{near}`?)"));
        format!(
            "unknown outcome{}; one of {}",
            near.unwrap_or_default(),
            names.join(", ")
        )
    })
}

/// Returns a note about an unknown agent.
fn unknown_agent(board: &Board, all: &[Metadata], agent: &str) -> Option<String> {
    let living = board.agents();
    let names = || {
        living
            .iter()
            .map(|agent| agent.name.as_str())
            .chain(all.iter().map(|run| run.agent.as_str()))
    };
    if names().any(|name| name == agent) {
        return None;
    }
    let near = nearest(agent, names()).map(|near| format!("; did you mean `{near}`?"));
    Some(format!(
        "no agent `{agent}` has had a run{}",
        near.unwrap_or_default()
    ))
}

fn with_what_came_of(board: &Board, id: TaskId) -> HashSet<TaskId> {
    let mut all = board.lineage().came_of(&id);
    all.insert(id);
    all
}

/// Compares the runs that received a learning with the others. The difference has no known cause, since their items
/// differ too.
fn compared(all: &[Metadata], learning: &str) -> String {
    let ended = || all.iter().filter(|run| run.outcome.is_some());
    let knew = |run: &&Metadata| run.knowledge.iter().any(|known| known == learning);
    let share = |runs: Vec<&Metadata>| {
        let good = runs
            .iter()
            .filter(|run| run.outcome == Some(Outcome::Success))
            .count();
        format!("{good} of {}", format::count(runs.len(), "run"))
    };
    let (with, without): (Vec<&Metadata>, Vec<&Metadata>) = ended().partition(knew);
    format!(
        "{} with {learning} succeeded, {} without",
        share(with),
        share(without)
    )
}

/// Returns the columns of its row, and the reason for its outcome.
fn line(run: &Metadata, now: Timestamp) -> (String, &str) {
    let outcome = run.state();
    let took = format::took_seconds(run.seconds(now).unsigned_abs());
    let money = if run.usage.is_known() {
        format::money(run.usage.usd)
    } else {
        String::new()
    };
    let (started, agent) = (
        clock::brief(run.started),
        format!("{} {}", run.agent, run.role),
    );
    // A failed run shows its reason rather than the last words of the agent.
    let reason = run
        .reason
        .as_ref()
        .filter(|_| run.outcome != Some(Outcome::Success))
        .unwrap_or(&run.summary);
    (
        format!(
            "{:<10} {started} {outcome:<9} {took:>6} {money:>7} {agent:<12} ",
            run.run
        ),
        reason,
    )
}
