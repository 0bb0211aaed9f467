//! `tavern-status --health`: how each run goes, as its supervisor sees it.

use crate::board::activity::Activity;
use crate::board::task::Timestamp;
use crate::cli::{CliError, Context, human};
use crate::clock;
use crate::run::run_name;
use crate::run::watch::{Health, health};
use crate::store::Board;

use super::record::Record;

pub(super) fn print(context: &Context, board: &Board) -> Result<(), CliError> {
    let (now, all) = (clock::now(), health(board)?);
    if all.is_empty() {
        context.out.note("no agent works".to_owned());
    }
    for Health { lease, activity, watched } in &all {
        let record = Record::Health {
            task: &lease.task,
            agent: &lease.agent,
            run: run_name(&lease.task, lease.token),
            nudges: watched.nudges,
            activity,
        };
        let mut words =
            vec![format!("{} {}: {}", lease.task, lease.agent, human::count(activity.steps as usize, "step"))];
        words.extend(activity.tool.iter().map(|tool| format!("{tool} runs")));
        words.push(format!("seen {} ago", age(activity.seen, now)));
        if activity.makes_changes && activity.hears {
            words.push(format!("got on {} ago", age(activity.progress_at, now)));
        }
        words.extend((activity.output > 0).then(|| spent(activity)));
        words.extend((watched.nudges > 0).then(|| human::count(watched.nudges as usize, "nudge")));
        let said = Some(&activity.said).filter(|said| !said.is_empty());
        let said = said.map(|said| format!("\n  {}", human::words(said)));
        context.out.record(&record, words.join(", ") + &said.unwrap_or_default())?;
    }
    Ok(())
}

fn age(since: Timestamp, now: Timestamp) -> String {
    human::age((now - since).to_std().unwrap_or_default())
}

fn spent(activity: &Activity) -> String {
    format!("{} tokens written, ${:.2}", activity.output, activity.usd)
}
