//! A planner's run: what it wrote is on disk before it is taken, and is taken whole or not at all.

use super::artifacts::Artifacts;
use super::error::Error;
use super::result::{AgentAnswer, RunResult};
use super::site::Site;
use crate::board::document::parse;
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::event::Event;
use crate::board::plan::{Plan, Rules, read};
use crate::board::problem::{Position, Problem, render};
use crate::board::task::{MAX_ID, Status, TaskId};
use crate::config::{Does, PlanLane};
use crate::runner::answer::checklist;
use crate::store::Claimed;

/// The plan in the run's folder: an agent may write it there, else it is taken from the agent's answer.
pub const PLAN: &str = "plan.md";

/// Why a plan was not taken.
pub const PROBLEMS: &str = "plan-problems.txt";

/// What a planner's run that says that it is done came to: its plan, if that may be taken. `said` are its last words.
///
/// # Errors
/// The plan can't be written down.
pub fn judge(site: &Site, held: &Claimed, artifacts: &Artifacts, said: &str) -> Result<AgentAnswer, Error> {
    if artifacts.read(PLAN).trim().is_empty() {
        match checklist(said) {
            Ok(plan) => artifacts.write_durable(PLAN, &plan)?,
            Err(why) => return Ok(RunResult::failed(format!("it gave no plan: {why}")).into()),
        }
    }
    let (result, problems) = look(site, held, artifacts);
    keep_problems(artifacts, &problems)?;
    Ok(result.into())
}

/// What keeps a plan from being taken is written down beside it.
///
/// # Errors
/// It can't be.
pub fn keep_problems(artifacts: &Artifacts, problems: &str) -> Result<(), Error> {
    if problems.is_empty() { Ok(()) } else { Ok(artifacts.write(PROBLEMS, problems)?) }
}

/// What the plan in the run's folder comes to on the board as it is now, and all that keeps it from being taken, in words.
pub fn look(site: &Site, held: &Claimed, artifacts: &Artifacts) -> (RunResult, String) {
    let text = artifacts.read(PLAN);
    if text.trim().is_empty() {
        let why = format!("it gave no plan: there is none in {}", artifacts.path(PLAN).display());
        return (RunResult::failed(why), String::new());
    }
    if held.task.id.as_str().len() + ".9999".len() > MAX_ID {
        let why = "its own ID is too long for items to be named after it: give it a shorter one";
        return (RunResult::failed(why), String::new());
    }
    match taken(site, held, &text) {
        Ok(plan) => {
            let reason = match plan.items.len() {
                0 => plan.words.clone(),
                1 => "planned 1 item".to_owned(),
                number => format!("planned {number} items"),
            };
            (RunResult::Planned { plan, reason }, String::new())
        }
        Err(problems) => {
            let told = problems.iter().map(|problem| render(PLAN, &text, problem)).collect();
            (RunResult::failed(reason(&text, &problems)), told)
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

/// The event that reports a plan.
pub fn event(site: &Site, held: &Claimed, plan: &Plan) -> Event {
    let general = if site.config.plan.lane == PlanLane::Draft { Status::Draft } else { Status::Pending };
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
