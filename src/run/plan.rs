//! A planner's run: what it wrote is on disk before it is taken, and is taken whole or not at all.

use super::artifacts::Artifacts;
use super::error::Error;
use super::result::Finished;
use super::result::Judged;
use super::site::Site;
use crate::board::document::parse;
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::event::Event;
use crate::board::plan::{Plan, Rules, read};
use crate::board::problem::{Position, Problem, render};
use crate::board::task::{MAX_ID, Status, TaskId};
use crate::config::{Does, Lane};
use crate::runner::answer::checklist;
use crate::runner::{Ended, Outcome, Signal};
use crate::store::Claimed;

/// The plan in the run's folder: an agent may write it there, else it is taken from the agent's answer.
pub const PLAN: &str = "plan.md";

/// Why a plan was not taken.
pub const PROBLEMS: &str = "plan-problems.txt";

/// What a planner's run came to: its plan, if that may be taken.
///
/// # Errors
/// The plan can't be written down.
pub fn judge(site: &Site, held: &Claimed, artifacts: &Artifacts, ended: &Ended) -> Result<Judged, Error> {
    match (&ended.outcome, &ended.signal) {
        (Outcome::Success, Signal::Waiting(question)) => return Ok(Judged::said(Outcome::Waiting, question)),
        (Outcome::Success, _) => {}
        (outcome, _) => return Ok(Judged { resets_at: ended.resets_at, ..Judged::said(*outcome, &ended.reason) }),
    }
    if artifacts.read(PLAN).trim().is_empty() {
        match checklist(&ended.result) {
            Ok(plan) => artifacts.write(PLAN, &plan)?,
            Err(why) => return Ok(Judged::said(Outcome::Failed, &format!("it gave no plan: {why}"))),
        }
    }
    judge_written(site, held, artifacts)
}

/// What the plan in the run's folder comes to; what keeps it from being taken is written down beside it.
fn judge_written(site: &Site, held: &Claimed, artifacts: &Artifacts) -> Result<Judged, Error> {
    let (judged, problems) = judge_text(site, held, &artifacts.read(PLAN));
    if !problems.is_empty() {
        artifacts.write(PROBLEMS, &problems)?;
    }
    Ok(judged)
}

/// What a plan comes to, and all that keeps it from being taken, in words.
fn judge_text(site: &Site, held: &Claimed, text: &str) -> (Judged, String) {
    if held.task.id.as_str().len() + ".9999".len() > MAX_ID {
        let why = "its own ID is too long for items to be named after it: give it a shorter one";
        return (Judged::said(Outcome::Failed, why), String::new());
    }
    match taken(site, held, text) {
        Ok(plan) => {
            let reason = match plan.items.len() {
                0 => plan.words.clone(),
                1 => "planned 1 item".to_owned(),
                number => format!("planned {number} items"),
            };
            (Judged { plan: Some(plan), ..Judged::said(Outcome::Success, &reason) }, String::new())
        }
        Err(problems) => {
            let told = problems.iter().map(|problem| render(PLAN, text, problem)).collect();
            (Judged::said(Outcome::Failed, &reason(text, &problems)), told)
        }
    }
}

/// The first of the problems, in one line.
fn reason(text: &str, problems: &[Problem]) -> String {
    let Some(first) = problems.first() else { return String::new() };
    let line = Position::of(text, first.span.start).line;
    let more = match problems.len() - 1 {
        0 => String::new(),
        1 => "; and 1 problem more".to_owned(),
        more => format!("; and {more} problems more"),
    };
    format!("its plan was not taken: line {line}: {} ({}){more}", first.message, first.hint)
}

/// The plan that `text` is.
fn taken(site: &Site, held: &Claimed, text: &str) -> Result<Plan, Vec<Problem>> {
    let roles = site.config.roles.iter().filter(|(_, role)| role.does == Does::Work);
    let roles: Vec<String> = roles.map(|(name, _)| name.clone()).collect();
    let front = site.board.read(&held.queue).ok().and_then(|text| parse(&text.content).0.front().role.clone());
    let role = front.unwrap_or_else(|| DEFAULT_ROLE.to_owned());
    let rules = Rules {
        roles: &roles,
        role: &role,
        most: site.config.plan.most as usize,
        may_be_empty: held.task.trigger.is_some(),
        status_of: &|id: &TaskId| site.board.task(id).ok().map(|found| found.task.status()),
    };
    read(text, &rules)
}

/// The plan that an earlier look found good, or that its holder has written, held against the board as it is now.
///
/// # Errors
/// What is wrong with it can't be written down.
pub fn confirmed(site: &Site, held: &Claimed, finished: Finished) -> Result<Finished, Error> {
    if finished.judged.plan.is_some() {
        return Ok(finished);
    }
    let artifacts = Artifacts::create(&site.board, &finished.run)?;
    let judged = match missing(&artifacts) {
        Some(judged) => judged,
        None => judge_written(site, held, &artifacts)?,
    };
    Ok(Finished { judged, ..finished })
}

/// What [`confirmed`] would find; nothing is written.
pub fn foreseen(site: &Site, held: &Claimed, finished: Finished) -> Finished {
    let artifacts = Artifacts::open(&site.board, &finished.run);
    let judged = missing(&artifacts).unwrap_or_else(|| judge_text(site, held, &artifacts.read(PLAN)).0);
    Finished { judged, ..finished }
}

fn missing(artifacts: &Artifacts) -> Option<Judged> {
    let why = || format!("it gave no plan: there is none in {}", artifacts.path(PLAN).display());
    artifacts.read(PLAN).trim().is_empty().then(|| Judged::said(Outcome::Failed, &why()))
}

/// The event that reports a plan.
pub fn event(site: &Site, held: &Claimed, plan: &Plan) -> Event {
    let general = if site.config.plan.lane == Lane::Draft { Status::Draft } else { Status::Pending };
    let to = held.task.lane.unwrap_or(general);
    Event::Plan { token: held.lease.token, plan: plan.clone(), to }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Template;

    #[test]
    fn what_planners_are_shown_is_a_plan() {
        let template = Template::built_in("planner.md").expect("it is built in");
        let shown = checklist(&template.text).expect("it shows one");
        let roles = [DEFAULT_ROLE.to_owned()];
        let rules = Rules { roles: &roles, role: DEFAULT_ROLE, most: 9, may_be_empty: false, status_of: &|_| None };
        let plan = read(&shown, &rules).unwrap_or_else(|problems| panic!("{problems:#?}"));
        assert_eq!(plan.items.len(), 2);
        for key in crate::board::plan::KEYS {
            assert!(template.text.contains(key.as_str()), "it names {}", key.as_str());
        }
    }
}
