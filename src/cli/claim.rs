//! `tavern-claim`: take the next eligible item under a lease.

use std::time::Duration;

use serde::Serialize;

use crate::board::eligible::DEFAULT_ROLE;
use crate::board::lease::Lease;
use crate::board::task::{Task, TaskId};
use crate::clock::{self, Deadline};
use crate::config::Period;
use crate::store::{self, Claimed, Nothing, Seek, Switch, Watch};

use super::{CliError, Context, Exit, Verb};

/// Take the next item that may be worked on, under a lease
///
/// Prints the item, or with `--format env` what a shell needs for it. Exits with 3 when there is nothing to take.
#[derive(clap::Args)]
pub struct Args {
    /// Take this item, if it may be taken
    #[arg(long, value_name = "ID")]
    pub task: Option<TaskId>,

    /// Who takes it: items name the role that they are for
    #[arg(long, default_value = DEFAULT_ROLE, env = "TAVERN_ROLE", hide_env_values = true)]
    pub role: String,

    /// The name that the item is held under
    #[arg(long, value_name = "NAME", env = "TAVERN_AGENT", hide_env_values = true)]
    pub agent: Option<String>,

    /// Look only into this queue, by name or path; several are looked at in this order
    #[arg(long = "queue", value_name = "QUEUE")]
    pub queues: Vec<String>,

    /// How long the lease lasts without being renewed [default: `lease` of config.yaml]
    #[arg(long, value_name = "TIME")]
    pub lease: Option<Period>,

    /// The lease ends as soon as this process does: `--pid $$` in a shell loop
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,

    /// Wait until there is something to take, at most so long
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true)]
    pub wait: Option<Option<Period>>,
}

#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    task: &'a Task,
    queue: &'a str,
    lease: &'a Lease,
    worktree: String,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-claim";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let config = crate::config::Config::load(board.dir())?;
        let queues = context.queues(&board, &self.queues)?;
        let deadline = match &self.wait {
            Some(Some(period)) => Deadline::after(period.duration()),
            Some(None) => Deadline::NEVER,
            None => Deadline::after(Duration::ZERO),
        };
        let seek = Seek {
            agent: self.agent.clone().unwrap_or_else(|| std::env::var("USER").unwrap_or_else(|_| "somebody".into())),
            role: self.role.clone(),
            queues: queues.clone(),
            task: self.task.clone(),
            seconds: seconds(self.lease.unwrap_or(config.lease)),
            holder: self.pid.map_or_else(store::no_process, store::holder),
            runner: config.roles.get(&self.role).map_or_else(String::new, |role| role.runner.clone()),
            closed: Vec::new(),
            scripted: Vec::new(),
        };
        loop {
            // Only who waits needs a watch, and it must be there before the look.
            let watch = if self.wait.is_some() { Some(Watch::new(&board, &queues)?) } else { None };
            if let Switch::Paused(reason) | Switch::Stopped(reason) = board.switch()
                && watch.is_none()
            {
                let hint = "remove .tavern/PAUSE or .tavern/STOP to go on".to_owned();
                return Err(CliError::new(Exit::NothingToDo, format!("paused: {reason}")).with_hint(hint));
            }
            let nothing = if board.switch() == Switch::On {
                match board.claim(&seek, clock::now())? {
                    Ok(held) => return print(context, &board, &held),
                    Err(nothing) => nothing,
                }
            } else {
                Nothing::default()
            };
            let Some(watch) = watch else { return Err(explain(&self, &nothing)) };
            if deadline.has_passed() {
                return Err(explain(&self, &nothing));
            }
            let back_off = nothing.wake_at.map(|at| (at - clock::now()).to_std().unwrap_or_default());
            let longest = Duration::from_secs(3600);
            watch.wait(deadline.left().unwrap_or(longest).min(back_off.unwrap_or(longest)));
        }
    }
}

/// A lease's length in whole seconds.
pub(super) fn seconds(period: Period) -> u32 {
    u32::try_from(period.duration().as_secs().max(1)).unwrap_or(u32::MAX)
}

fn print(context: &Context, board: &store::Board, held: &Claimed) -> Result<Exit, CliError> {
    let worktree = board.worktree(&held.task.id).to_string_lossy().into_owned();
    let record = Record { task: &held.task, queue: &held.queue.id, lease: &held.lease, worktree: worktree.clone() };
    let token = held.lease.token.to_string();
    let variables = [
        ("TAVERN_TASK", held.task.id.as_str()),
        ("TAVERN_TOKEN", &token),
        ("TAVERN_AGENT", &held.lease.agent),
        ("TAVERN_QUEUE", &held.queue.id),
        ("TAVERN_WORKTREE", &worktree),
    ];
    let text = format!("{} {}", held.task.id, held.task.title);
    context.out.record_with_variables(&record, text, &variables)?;
    Ok(Exit::Done)
}

fn explain(args: &Args, nothing: &Nothing) -> CliError {
    let error = CliError::new(Exit::NothingToDo, "there is nothing to take");
    if let Some(task) = &args.task {
        return CliError { message: format!("`{task}` can't be taken now"), ..error }
            .with_hint(format!("see why: tavern-status {task}"));
    }
    if let Some((role, count)) = nothing.elsewhere.iter().next() {
        return error.with_hint(format!("{count} items are for role {role}: tavern-claim --role {role}"));
    }
    let hint = match (nothing.wake_at, nothing.stuck.first()) {
        (Some(at), _) => format!("the next one may be taken at {at}; --wait waits for it"),
        (None, Some(stuck)) => format!("{} line {}: {}", stuck.queue, stuck.line, stuck.why),
        (None, None) => "add one: tavern-add \"what is to be done\"".to_owned(),
    };
    error.with_hint(hint)
}
