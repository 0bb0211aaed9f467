//! Recovers the record of a run with a torn, empty or missing `metadata.json`. Its sources are its name, its lease, the
//! log, its recorded usage and its program's output. Writes nothing.

use tavern_core::event::Kind;
use tavern_core::lease::{Lease, Token};
use tavern_core::task::TaskId;
use tavern_store::{Board, LeaseEntry, walk_log};
use tavern_sys::clock;

use super::artifacts::{Artifacts, METADATA};
use super::metadata::Metadata;
use super::workspace::ITEM_BRANCHES;
use crate::runner::thread::read_thread;
use crate::runner::{AgentEvent, LOGS, Outcome, PROMPT, THREAD_LOG, Usage};

/// Returns the recovered record; `None` if no agent ran there. A person's claim also has a folder, with the output of
/// its checks.
pub(super) fn known(board: &Board, run: &str) -> Option<Metadata> {
    let (task, token) = run.rsplit_once('@')?;
    let (task, token): (TaskId, Token) = (task.parse().ok()?, token.parse().ok()?);
    let artifacts = Artifacts::open(board, run);
    let traces = || LOGS.into_iter().chain([METADATA, PROMPT]);
    if !traces().any(|name| artifacts.path(name).symlink_metadata().is_ok()) {
        return None;
    }
    let seen = artifacts.last_written(traces()).unwrap_or_default();
    let mut known = Metadata {
        title: board
            .task(&task)
            .map(|found| found.task.title)
            .unwrap_or_default(),
        worktree: board.path("worktrees").join(task.as_str()),
        branch: Some(format!("{ITEM_BRANCHES}{task}")),
        ended: Some(seen.min(clock::now())),
        runner: "unknown".to_owned(),
        damaged: true,
        ..Metadata::new(task, token, seen.min(clock::now()))
    };
    read_stream(&mut known, &artifacts);
    // Errors are ignored: an unreadable log adds nothing.
    let _ = read_log(&mut known, board);
    read_spent(&mut known, board);
    if let Ok(Some(lease)) = board.lease(&known.task)
        && lease.token == token
    {
        was_claimed(&mut known, lease);
        (known.ended, known.outcome) = (None, None);
    }
    Some(known)
}

/// Reads the program's log. A missing log adds nothing.
fn read_stream(known: &mut Metadata, artifacts: &Artifacts) {
    let mut model = None;
    let reading = read_thread(&artifacts.path(THREAD_LOG), None, &mut |event| {
        if let AgentEvent::Started { model: said, .. } = event {
            model.clone_from(said);
        }
    });
    let Ok(reading) = reading else {
        return;
    };
    known.model = model;
    known.turns = reading.turns;
    known.tool_calls = reading.tool_calls;
    known.session.clone_from(&reading.session);
    // A resumed session's usage includes earlier runs.
    known.usage = Usage {
        is_estimate: true,
        ..reading.usage
    };
}

/// Reads the events of its claim. The first of them has the token as its number.
fn read_log(known: &mut Metadata, board: &Board) -> Result<(), tavern_store::Error> {
    let (task, token) = (known.task.clone(), known.token);
    let (mut is_last, mut claim) = (true, None::<Lease>);
    walk_log(board, Some(&task), &mut |entry| {
        if entry.token == Some(token) {
            known.outcome = known.outcome.or(outcome(entry.kind));
            if std::mem::take(&mut is_last) {
                known.ended = Some(entry.time);
                known.reason.clone_from(&entry.cause);
            }
            known.commit = known.commit.take().or(entry.commit);
            if entry.seq == token {
                known.started = entry.time;
            }
            if let Some(LeaseEntry::Put(lease)) = entry.lease
                && claim.as_ref().is_none_or(|claim| claim.work.is_none())
            {
                claim = Some(*lease);
            }
        }
        entry.seq > token
    })?;
    if let Some(lease) = claim {
        was_claimed(known, lease);
    }
    Ok(())
}

/// Returns the outcome of a run that ended its claim so. The log does not have the kind of failure.
fn outcome(end: Kind) -> Option<Outcome> {
    match end {
        Kind::Submitted | Kind::Planned | Kind::Parked => Some(Outcome::Success),
        Kind::Failed => Some(Outcome::Failed),
        Kind::Asked => Some(Outcome::Waiting),
        Kind::Returned | Kind::Withdrawn | Kind::Reaped => Some(Outcome::Killed),
        _ => None,
    }
}

fn was_claimed(known: &mut Metadata, lease: Lease) {
    known.queue = lease.queue;
    known.agent = lease.agent;
    known.role = lease.role;
    known.attempt = lease.attempt;
    known.started = lease.claimed_at;
    if let Some(work) = lease.work {
        known.worktree = work.worktree;
        known.branch = work.branch;
        known.base = work.base;
        known.session = work.session.or(known.session.take());
    }
}

/// Reads the usage recorded at its end, by which caps count it.
fn read_spent(known: &mut Metadata, board: &Board) {
    let spent = board.spent().unwrap_or_default();
    let Some(spent) = spent.into_iter().find(|spent| spent.run == known.run) else {
        return;
    };
    if known.usage.fresh() != spent.tokens {
        known.usage = Usage {
            output: spent.tokens,
            is_estimate: true,
            ..Usage::default()
        };
    }
    known.usage.usd = spent.usd;
    known.queue = spent.queue;
    known.agent = spent.agent;
    known.started = spent.started;
    known.ended = Some(spent.started + chrono::TimeDelta::seconds(spent.seconds));
}
