//! `tavern-agent`: the supervisor loop of one agent.

use std::cell::RefCell;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::json;

use crate::agent::{Agent, End, Told, obey_stop};
use crate::board::document::parse;
use crate::board::front::EmptyBehavior;
use crate::process;
use crate::run::integrate::approved;
use crate::run::reap::{self, ExpiredLeases, Scope};
use crate::run::{Site, preflight};
use crate::store::{Claimed, Queue, Switch};

pub use args::Args;

use name::take_name;

use super::claim::place;
use super::{CliError, Context, Exit, Verb, chat, hints, human};

pub(super) mod args;
pub(super) mod name;

impl Verb for Args {
    const NAME: &'static str = "tavern-agent";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        if let Some(task) = &self.chat {
            return chat::run(&self, context, task);
        }
        let board = context.board()?;
        context.holds_nothing(&board)?;
        let mut site = context.site(board)?;
        self.program.choose(&mut site);
        let role = site.role(&self.role)?.clone();
        let names = if self.queues.is_empty() { role.queues.clone() } else { self.queues.clone() };
        let queues = context.queues(&site.board, &names).map_err(|error| {
            // A queue that nobody typed comes from the role.
            let is_of_role = self.queues.is_empty() && error.exit == Exit::Usage;
            let hint =
                format!("role {} takes from it; make it with tavern init, or name another: --queue FILE", self.role);
            if is_of_role { error.with_hint(hint) } else { error }
        })?;
        if !self.plan.dry_run {
            queues.iter().try_for_each(|queue| site.board.remember(queue))?;
        }
        let begun = preflight::begin(&site, &self.role)?;
        // Shells that an agent's program leaves behind become our children, and can be ended.
        process::adopt_orphans()?;
        let on_empty = if self.until_empty { EmptyBehavior::Terminate } else { on_empty(&site, &queues)? };
        let (name, slot) = take_name(&site, self.name.as_deref(), &self.role, &queues)?;
        let blocked = RefCell::new(HashMap::new());
        let tell = |told: &Told| {
            // What stands in the way of a merge, or of a start, is met again at every look.
            let met = match told {
                Told::Blocked { task, why } => Some((task.to_string(), why)),
                Told::Skipped { task: Some(task), why, .. } => Some((task.to_string(), why)),
                Told::Skipped { task: None, title, why } => Some((title.clone(), why)),
                _ => None,
            };
            let is_new =
                met.is_none_or(|(name, why)| blocked.borrow_mut().insert(name, why.clone()).as_ref() != Some(why));
            if is_new {
                print(context, &name, told);
            }
        };
        let agent = Agent {
            site: &site,
            name: name.clone(),
            role: self.role.clone(),
            queues,
            on_empty,
            most_runs: (self.once || role.once).then_some(1),
            advice: hints::ADVICE,
            tell: &tell,
            slot,
        };
        if self.plan.dry_run {
            return preview(context, &agent);
        }
        context.out.note(format!("{name} is a {} with runner {}; Ctrl-C ends it", self.role, begun.runner));
        begun.doubt_line().iter().for_each(|doubt| context.out.note(format!("{name}: {doubt}")));
        let stopper = obey_stop(&site)?;
        let end = agent.work();
        // The watcher of `STOP` ends with the interrupt, or with the process.
        drop(stopper);
        match end? {
            End::Enough => Ok(Exit::Done),
            End::Empty => {
                ended(context, &agent);
                Ok(Exit::Done)
            }
            // The watcher of `STOP` may have been faster than the loop's own look.
            End::Interrupted => {
                if let Switch::Stopped(reason) = site.board.switch() {
                    stopped(context, &name, &reason);
                }
                Ok(context.interrupted().unwrap_or(Exit::Done))
            }
            End::Stopped(reason) => {
                stopped(context, &name, &reason);
                Ok(Exit::Done)
            }
        }
    }
}

/// What it would clear up and merge before it looks for work, then what it would take.
fn preview(context: &Context, agent: &Agent<'_>) -> Result<Exit, CliError> {
    let (site, name) = (agent.site, &agent.name);
    let taken = agent.foresee()?;
    if site.board.switch() == Switch::On {
        for action in reap::plan(site, Scope::Leases, &mut ExpiredLeases::default())? {
            print(context, name, &Told::Cleared { what: action.to_string() });
        }
        for (_, task) in approved(site, &agent.queues) {
            let record = json!({ "agent": name, "event": "would_merge", "task": task });
            context.out.record(&record, format!("{name}: {task} would be merged"))?;
        }
    }
    match taken {
        Ok(foreseen) => {
            let Claimed { task, lease, .. } = &foreseen.held;
            let runner = site.runner_of(task, site.role(&agent.role)?);
            let (title, attempt) = (task.title.clone(), lease.attempt);
            context.out.note(format!("{} would be worked on with runner {runner}", place(&foreseen)));
            let told = Told::Claimed { task: task.id.clone(), title, attempt, runner };
            if foreseen.has_id {
                print(context, name, &told);
            } else {
                // It is given one when it is taken.
                let record = json!({ "agent": name, "event": "claimed", "task": null, "title": task.title });
                context.out.record(&record, sentence(name, &told).replacen(task.id.as_str(), &place(&foreseen), 1))?;
            }
        }
        Err(Some(why)) => print(context, name, &Told::Waiting { why }),
        Err(None) => match site.board.switch() {
            Switch::Stopped(reason) => stopped(context, name, &reason),
            _ => ended(context, agent),
        },
    }
    Ok(Exit::Done)
}

fn ended(context: &Context, agent: &Agent<'_>) {
    let Agent { name, role, .. } = agent;
    context.out.note(format!("{name} ends: nothing is left that a {role} could do; see tavern status"));
}

/// What the queues say, if they all say the same, else config.yaml.
fn on_empty(site: &Site, queues: &[Queue]) -> Result<EmptyBehavior, CliError> {
    let general = site.config.empty_behavior;
    let mut said = Vec::new();
    for queue in queues {
        said.push(parse(&site.board.read(queue)?.content).0.front().empty_behavior.unwrap_or(general));
    }
    said.dedup();
    Ok(if let [one] = said.as_slice() { *one } else { general })
}

fn stopped(context: &Context, name: &str, reason: &str) {
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    context.out.note(format!("{name} ends: .tavern/STOP is there{reason}"));
}

#[derive(Serialize)]
struct Record<'a> {
    agent: &'a str,
    #[serde(flatten)]
    told: &'a Told,
}

/// One line an event on standard output, at once.
pub(super) fn print(context: &Context, agent: &str, told: &Told) {
    let record = Record { agent, told };
    // A closed standard output is no reason to leave work undone.
    drop(context.out.record(&record, sentence(agent, told)).and_then(|()| context.out.flush()));
}

/// What an agent tells, in a line for people.
pub(super) fn sentence(agent: &str, told: &Told) -> String {
    let line = format!("{agent}: {told}");
    match told {
        Told::Claimed { title, .. } => line.replace(title, &human::title(title)),
        _ => human::words(&line).into_owned(),
    }
}
