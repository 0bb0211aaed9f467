//! `tavern-agent`: the supervisor loop of one agent.

use std::cell::RefCell;
use std::collections::HashMap;

use serde::Serialize;

use crate::agent::{Agent, End, Told, obey_stop};
use crate::board::document::parse;
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::front::EmptyBehavior;
use crate::process;
use crate::run::{Site, runners};
use crate::store::{Board, Queue, Slot, Switch};

use super::{CliError, Context, Exit, Verb, human};

/// Work items one after the other: claim, run the agent program, verify, merge
///
/// Runs until it is interrupted; with --until-empty until nothing is left that it could do. Several may run side by
/// side, each under a name of its own.
#[derive(clap::Args)]
pub struct Args {
    /// What it is: items name the role that they are for
    #[arg(long, default_value = DEFAULT_ROLE, env = "TAVERN_ROLE", hide_env_values = true)]
    pub role: String,

    /// Its name [default: the first free one of `names` in config.yaml]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Take from this queue, by name or path; several are looked at in this order [default: the role's `queues`]
    #[arg(long = "queue", value_name = "QUEUE")]
    pub queues: Vec<String>,

    /// The agent program: an entry of `runners` in config.yaml, such as claude or shell
    #[arg(long, env = "TAVERN_RUNNER", hide_env_values = true)]
    pub runner: Option<String>,

    /// The model, as the agent program names it
    #[arg(long, env = "TAVERN_MODEL", hide_env_values = true)]
    pub model: Option<String>,

    /// End when nothing is left to do
    #[arg(long)]
    pub until_empty: bool,

    /// End after one item
    #[arg(long)]
    pub once: bool,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-agent";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let mut site = context.site(context.board()?)?;
        site.runner.clone_from(&self.runner);
        site.model.clone_from(&self.model);
        let role = site.role(&self.role)?.clone();
        let names = if self.queues.is_empty() { role.queues.clone() } else { self.queues.clone() };
        let queues = context.queues(&site.board, &names).map_err(|error| {
            // A queue that nobody typed comes from the role.
            let is_of_role = self.queues.is_empty() && error.exit == Exit::Usage;
            let hint =
                format!("role {} takes from it; make it with tavern-init, or name another: --queue FILE", self.role);
            if is_of_role { error.with_hint(hint) } else { error }
        })?;
        for queue in &queues {
            site.board.remember(queue)?;
        }
        let runner = site.runner.clone().unwrap_or_else(|| role.runner.clone());
        let ready = runners::runner(&site, &runner, &role)?.check();
        if let Err(not_ready) = ready {
            return Err(not_ready.into());
        }
        // Shells that an agent's program leaves behind become our children, and can be ended.
        process::adopt_orphans().map_err(|error| CliError::from_error(Exit::Failed, &error))?;
        let on_empty = if self.until_empty { EmptyBehavior::Terminate } else { on_empty(&site, &queues)? };
        let (name, slot) = take_name(&site, self.name.as_deref())?;
        let blocked = RefCell::new(HashMap::new());
        let tell = |told: &Told| {
            // What stands in the way of a merge is met again at every look.
            let is_new = match told {
                Told::Blocked { task, why } => {
                    blocked.borrow_mut().insert(task.clone(), why.clone()).as_ref() != Some(why)
                }
                _ => true,
            };
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
            most_runs: self.once.then_some(1),
            tell: &tell,
            slot,
        };
        context.out.note(format!("{name} is a {} with runner {runner}; Ctrl-C ends it", self.role));
        let stopper = obey_stop(&site)?;
        let end = agent.work();
        // The watcher of `STOP` ends with the interrupt, or with the process.
        drop(stopper);
        match end? {
            End::Enough => Ok(Exit::Done),
            End::Empty => {
                context
                    .out
                    .note(format!("{name} ends: nothing is left that a {} could do; see tavern-status", self.role));
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

/// The name asked for, or the first free one; no second agent goes by it while the slot is held.
pub(super) fn take_name(site: &Site, wanted: Option<&str>) -> Result<(String, Slot), CliError> {
    let board: &Board = &site.board;
    if let Some(name) = wanted {
        if !crate::config::is_agent_name(name) {
            let hint = "use letters, digits, `-` and `_`".to_owned();
            return Err(CliError::new(Exit::Usage, format!("`{name}` can't be an agent's name")).with_hint(hint));
        }
        let slot = board.agent_slot(name)?;
        let slot = slot.ok_or_else(|| CliError::from(crate::store::Error::SecondAgent(name.to_owned())))?;
        return Ok((name.to_owned(), slot));
    }
    for name in &site.config.names {
        if let Some(slot) = board.agent_slot(name)? {
            return Ok((name.clone(), slot));
        }
    }
    let hint = "give it one with --name, or add names to config.yaml".to_owned();
    Err(CliError::new(Exit::Refused, "all names of config.yaml are taken").with_hint(hint))
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
