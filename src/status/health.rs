//! `tavern-status --health`: the state of each run, as its supervisor sees it.

use chrono::TimeDelta;

use crate::{CliError, Context, format};
use tavern_core::activity::Activity;
use tavern_core::lease::{Lease, Life};
use tavern_core::task::Timestamp;
use tavern_run::notices::channel_states;
use tavern_run::run_name;
use tavern_run::watch::{Health, health};
use tavern_run::watcher_state::Watcher;
use tavern_store::{Board, life};
use tavern_sys::clock;

use super::record::Record;

/// A watcher is shown if it looked within this time.
const LATELY: TimeDelta = TimeDelta::hours(1);

pub(super) fn print(context: &Context, board: &Board) -> Result<(), CliError> {
    if let Some(nothing) = show(context, board)? {
        context.out.note(nothing);
    }
    Ok(())
}

/// Prints the state of each run; returns the reason if none is shown.
pub(super) fn show(context: &Context, board: &Board) -> Result<Option<&'static str>, CliError> {
    let (now, all) = (clock::now(), health(board)?);
    if let Some(watcher) = Watcher::of(board).filter(|watcher| now - watcher.looked < LATELY) {
        let mut words = format!(
            "tavern watch: {}",
            format::count(watcher.looks as usize, "look")
        );
        words += &format!(", the last {} ago", age(watcher.looked, now));
        words.extend(
            watcher
                .degraded
                .iter()
                .map(|why| format!(", degraded: {}", format::words(why))),
        );
        context.out.record(&Record::Watcher(&watcher), words)?;
    }
    for (name, state) in channel_states(board) {
        let Some(failure) = &state.failure else {
            continue;
        };
        let (why, next) = (format::words(&failure.why), clock::shown(failure.next));
        let words = format!("the channel `{name}` fails: {why}; next try at {next}");
        context.out.record(
            &Record::Channel {
                channel: &name,
                state: &state,
            },
            words,
        )?;
    }
    let at_work = board
        .leases()?
        .into_iter()
        .filter(|lease| lease.work.is_some());
    let (orphans, others): (Vec<Lease>, Vec<Lease>) =
        at_work.partition(|lease| life(&lease.holder) == Life::Gone);
    for Lease {
        task, agent, token, ..
    } in &orphans
    {
        let words = format!("{task} {agent}: its supervisor died; end it: tavern reap");
        context.out.record(
            &Record::Orphan {
                task,
                agent,
                run: run_name(task, *token),
            },
            words,
        )?;
    }
    for Health {
        lease,
        activity,
        watched,
    } in &all
    {
        let record = Record::Health {
            task: &lease.task,
            agent: &lease.agent,
            run: run_name(&lease.task, lease.token),
            nudges: watched.nudges,
            activity,
        };
        let mut words = vec![format!(
            "{} {}: {}",
            lease.task,
            lease.agent,
            format::count(activity.steps as usize, "step")
        )];
        words.extend(activity.tool.iter().map(|tool| format!("{tool} runs")));
        words.push(format!("seen {} ago", age(activity.seen, now)));
        if activity.makes_changes && activity.hears {
            words.push(format!(
                "last progress {} ago",
                age(activity.progress_at, now)
            ));
        }
        words.extend((activity.output > 0).then(|| spent(activity)));
        words.extend((watched.nudges > 0).then(|| format::count(watched.nudges as usize, "nudge")));
        let last_words = Some(&activity.last_words).filter(|last_words| !last_words.is_empty());
        let last_words = last_words.map(|last_words| format!("\n  {}", format::words(last_words)));
        context
            .out
            .record(&record, words.join(", ") + &last_words.unwrap_or_default())?;
    }
    let is_any = !others.is_empty();
    let nothing = if is_any {
        "the agents' activity can't be read: see tavern status"
    } else {
        "no agent works"
    };
    Ok((all.is_empty() && orphans.is_empty()).then_some(nothing))
}

fn age(since: Timestamp, now: Timestamp) -> String {
    format::age((now - since).to_std().unwrap_or_default())
}

fn spent(activity: &Activity) -> String {
    format!("{} tokens written, ${:.2}", activity.output, activity.usd)
}
