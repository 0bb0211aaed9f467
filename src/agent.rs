//! `tavern-agent`: the supervisor loop of one agent.

use serde::Serialize;

use tavern_core::front::EmptyBehavior;
use tavern_core::task::TaskId;
use tavern_run::agent::{Agent, AgentRecord, End, obey_stop};
use tavern_run::{Trust, Workspace, preflight};
use tavern_store::{Queue, Switch};
use tavern_sys::clock;
use tavern_sys::interrupt::InterruptCause;
use tavern_sys::process;

pub use args::Args;

use name::take_name;

use super::needs::tell_removed;
use super::{CliError, Context, Exit, OwnRun, Verb, chat, format, hints};

pub(super) mod args;
pub(super) mod name;

impl Verb for Args {
    const NAME: &'static str = "tavern-agent";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern agent --until-empty --max-usd 5",
        "tavern agent --role reviewer --runner claude",
    ];

    /// Not refused here: the loop has its own message for an agent that already works an item.
    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        if self.chat.is_some() {
            Err(run.refused())
        } else {
            Ok(())
        }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        if let Some(task) = &self.chat {
            return chat::run(&self, context, task);
        }
        let board = context.board()?;
        context.holds_nothing(&board)?;
        let mut workspace = context.site(board)?;
        self.program.choose(&mut workspace);
        if let Some(drain) = self.drain {
            // Output to the terminal would overwrite the drain's display.
            process::leave_terminal();
            if !process::end_with_parent(drain)? {
                workspace.interrupt.raise(InterruptCause::Terminated);
            }
        }
        let role = workspace.role(&self.role)?.clone();
        // A drain without names means all queues of the board.
        let names = if self.drain.is_none() {
            Context::names_for(&workspace, &self.role, &self.queues)?
        } else {
            self.queues.clone()
        };
        let queues = context.queues(&workspace.board, &names)?;
        tell_removed(context, &workspace.board);
        workspace.named.clone_from(&queues);
        Trust::of(&workspace)
            .settings()
            .map_err(tavern_run::Error::from)?;
        queues
            .iter()
            .try_for_each(|queue| workspace.board.remember(queue))?;
        // Later, an unreadable queue does not block the others; at the start the user should know.
        queues
            .iter()
            .filter(|queue| queue.path.exists())
            .try_for_each(|queue| workspace.board.can_open(queue))?;
        let begun = preflight::begin(&workspace, &self.role)?;
        // Shells that an agent program leaves behind become children of this process, so it can end them.
        process::adopt_orphans()?;
        let on_empty = if self.until_empty || self.once {
            EmptyBehavior::Terminate
        } else {
            on_empty(&workspace, &queues)?
        };
        let (name, slot) = take_name(&workspace, self.name.as_deref(), &self.role, &queues)?;
        workspace.board = workspace.board.acted_on_by(Some(name.clone()));
        let since = self.since.unwrap_or_else(clock::now);
        workspace.config.budget.own = self
            .caps
            .own(since, self.drain.is_none().then(|| name.clone()));
        let agent = Agent {
            workspace: &workspace,
            name: name.clone(),
            role: self.role.clone(),
            queues: (!names.is_empty()).then_some(queues),
            item: None,
            on_empty,
            most_runs: (self.once || role.once).then_some(1),
            advise: hints::sentence,
            tell: &|event| {
                print(context, &name, event);
                // The drain learns of it too late: the agent would have taken the next item by then.
                if self.fail_fast && event.gives_up().is_some() {
                    workspace.interrupt.raise(InterruptCause::Stopped);
                }
            },
            slot,
        };
        context.out.note(format!(
            "{name} is a {} with runner {}; Ctrl-C ends it",
            self.role, begun.runner
        ));
        begun
            .doubt_line()
            .iter()
            .for_each(|doubt| context.out.note(format!("{name}: {doubt}")));
        obey_stop(&workspace)?;
        let why = match agent.work()? {
            End::Enough | End::Interrupted => None,
            End::Capped(used) => {
                context.out.note(format!("{name} ends: {used}"));
                // The drain itself reports this, for the whole board.
                let exit = if self.drain.is_none() {
                    Exit::BudgetSpent
                } else {
                    Exit::Done
                };
                return Ok(context.interrupted().unwrap_or(exit));
            }
            End::Empty => Some(format!(
                "no items are left for a {}; see tavern status",
                self.role
            )),
            End::Stopped(reason) if reason.is_empty() => Some(".tavern/STOP exists".to_owned()),
            End::Stopped(reason) => Some(format!(".tavern/STOP exists: {reason}")),
        };
        why.iter()
            .for_each(|why| context.out.note(format!("{name} ends: {why}")));
        Ok(context.interrupted().unwrap_or(Exit::Done))
    }
}

/// Returns `Ok` if an agent of `role` could begin here, in this process.
///
/// # Errors
/// Fails if changes from git are untrusted, its program is missing, the board is stopped or this shell holds
/// an item.
pub(super) fn may_begin(
    context: &Context,
    workspace: &Workspace,
    role: &str,
) -> Result<(), CliError> {
    context.holds_nothing(&workspace.board)?;
    Trust::of(workspace)
        .settings()
        .map_err(tavern_run::Error::from)?;
    if let Switch::Stopped(reason) | Switch::Paused(reason) = workspace.board.switch() {
        let reason = if reason.is_empty() {
            "it is paused"
        } else {
            &reason
        };
        let message = format!("no new runs start here: {reason}");
        return Err(CliError::refused(message, "tavern resume"));
    }
    preflight::begin(workspace, role)?;
    Ok(())
}

/// Works `item` of `queue` in this process as an agent of `role`, in one run at most. Prints events as notes.
///
/// # Errors
/// All names are taken, or the board can't be written.
pub(super) fn work_item(
    context: &Context,
    mut workspace: Workspace,
    role: &str,
    queue: &Queue,
    item: &TaskId,
) -> Result<End, CliError> {
    process::adopt_orphans()?;
    let queues = vec![queue.clone()];
    let (name, slot) = take_name(&workspace, None, role, &queues)?;
    workspace.board = workspace.board.acted_on_by(Some(name.clone()));
    obey_stop(&workspace)?;
    let agent = Agent {
        workspace: &workspace,
        name: name.clone(),
        role: role.to_owned(),
        queues: Some(queues),
        item: Some(item.clone()),
        on_empty: EmptyBehavior::Terminate,
        most_runs: Some(1),
        advise: hints::sentence,
        tell: &|event| context.out.note(sentence(&name, event)),
        slot,
    };
    Ok(agent.work()?)
}

/// Returns the setting of the queues if they all agree, else that of config.yaml.
fn on_empty(workspace: &Workspace, queues: &[Queue]) -> Result<EmptyBehavior, CliError> {
    let general = workspace.config.empty_behavior;
    let mut said = Vec::new();
    for queue in queues {
        said.push(
            workspace
                .board
                .read(queue)?
                .content
                .parse()
                .0
                .front()
                .empty_behavior
                .unwrap_or(general),
        );
    }
    said.dedup();
    Ok(if let [one] = said.as_slice() {
        *one
    } else {
        general
    })
}

#[derive(Serialize)]
struct Record<'a> {
    agent: &'a str,
    #[serde(flatten)]
    told: &'a AgentRecord,
}

/// Prints one event as a line on standard output, and flushes.
pub(super) fn print(context: &Context, agent: &str, event: &AgentRecord) {
    let record = Record { agent, told: event };
    // A closed standard output must not stop the work.
    drop(
        context
            .out
            .record(&record, sentence(agent, event))
            .and_then(|()| context.out.flush()),
    );
}

/// Returns an agent's event as a line for people.
pub(super) fn sentence(agent: &str, event: &AgentRecord) -> String {
    let line = format!("{agent}: {event}");
    match event {
        AgentRecord::Claimed {
            title, commands, ..
        } => line.replace(title, &format::title(title)) + &format::commands(commands),
        _ => format::words(&line).into_owned(),
    }
}
