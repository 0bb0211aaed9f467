//! `tavern-status --stats`: numbers about a board.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::board::document::parse;
use crate::board::event::Kind;
use crate::board::task::{Status, TaskId, Timestamp};
use crate::cli::{CliError, Context, human};
use crate::clock;
use crate::run::record::runs;
use crate::store::{Board, Entry, Queue, tail_log};

/// Numbers about a board.
#[derive(Default, Serialize)]
struct Stats {
    kind: &'static str,
    /// Items by status.
    depth: BTreeMap<&'static str, usize>,
    /// Seconds since the oldest pending item that the log knows was added or came back.
    oldest_pending_seconds: Option<i64>,
    /// Median seconds from pending to claimed, and from claimed to integrated.
    median_wait_seconds: Option<i64>,
    median_work_seconds: Option<i64>,
    completed: usize,
    completed_last_hour: usize,
    claims: usize,
    retries: usize,
    dead_letters: usize,
    runs: usize,
    usd: f64,
    tokens: u64,
    usd_by_model: BTreeMap<String, f64>,
    usd_by_agent: BTreeMap<String, f64>,
}

pub(super) fn print(context: &Context, board: &Board, queues: &[Queue]) -> Result<(), CliError> {
    let now = clock::now();
    let mut stats = Stats { kind: "stats", ..Stats::default() };
    let mut pending = Vec::new();
    for queue in queues {
        let text = board.read(queue)?;
        let (document, _) = parse(&text.content);
        for item in document.items() {
            *stats.depth.entry(item.status.as_str()).or_default() += 1;
            pending.extend(item.id.clone().filter(|_| item.status == Status::Pending));
        }
    }
    let entries = tail_log(board, 0)?;
    measure(&mut stats, &entries, &pending, now);
    for run in runs(board)? {
        let usage = &run.usage;
        stats.runs += 1;
        stats.usd += usage.usd;
        stats.tokens += usage.input + usage.output + usage.cache_read + usage.cache_write;
        *stats.usd_by_agent.entry(run.agent.clone()).or_default() += usage.usd;
        usage.models.iter().for_each(|(model, used)| *stats.usd_by_model.entry(model.clone()).or_default() += used.usd);
    }
    let time = |seconds: Option<i64>| {
        seconds.map_or("-".to_owned(), |seconds| human::age(Duration::from_secs(seconds.unsigned_abs())))
    };
    let depth: Vec<String> = stats.depth.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let text = format!(
        "depth       {}\noldest      {}\nwait        {} (median)\nwork        {} (median)\nthroughput  {} in the last hour, {} in all\nclaims      {}, {} retries, {} dead letters\nspent       {}, {} tokens in {}",
        depth.join(", "),
        time(stats.oldest_pending_seconds),
        time(stats.median_wait_seconds),
        time(stats.median_work_seconds),
        stats.completed_last_hour,
        stats.completed,
        stats.claims,
        stats.retries,
        stats.dead_letters,
        human::money(stats.usd),
        human::short(stats.tokens),
        human::count(stats.runs, "run"),
    );
    context.out.record(&stats, text)
}

/// Waits and work times from the log: an item waits from the event that made it pending to its claim.
fn measure(stats: &mut Stats, entries: &[Entry], pending: &[TaskId], now: Timestamp) {
    let mut since: BTreeMap<&TaskId, Timestamp> = BTreeMap::new();
    let mut claimed: BTreeMap<&TaskId, Timestamp> = BTreeMap::new();
    let (mut waits, mut works) = (Vec::new(), Vec::new());
    for entry in entries {
        let Some(task) = &entry.task else { continue };
        match entry.kind {
            Kind::Claimed => {
                stats.claims += 1;
                waits.extend(since.remove(task).map(|from| (entry.time - from).num_seconds()));
                claimed.insert(task, entry.time);
            }
            Kind::Integrated | Kind::Submitted | Kind::Approved if entry.change.to() == Some(Status::Completed) => {
                stats.completed += 1;
                stats.completed_last_hour += usize::from((now - entry.time).num_minutes() < 60);
                works.extend(claimed.remove(task).map(|from| (entry.time - from).num_seconds()));
            }
            Kind::Failed | Kind::SentBack => stats.retries += usize::from(entry.change.to() == Some(Status::Pending)),
            _ => {}
        }
        stats.dead_letters += usize::from(entry.change.to() == Some(Status::Dead));
        if entry.change.to() == Some(Status::Pending) {
            since.insert(task, entry.time);
        }
    }
    let oldest = pending.iter().filter_map(|task| since.get(task)).min();
    stats.oldest_pending_seconds = oldest.map(|from| (now - *from).num_seconds());
    stats.median_wait_seconds = median(waits);
    stats.median_work_seconds = median(works);
}

fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
