//! `tavern-spawn`: run the agent program for a held item.

use serde::Serialize;

use tavern_core::task::{TaskId, Timestamp};
use tavern_run::agent::obey_stop;
use tavern_run::runner::Outcome;
use tavern_run::{
    self, AgentAnswer, CommandLine, Heartbeat, Preflight, RunResult, Trust, Workspace, attempt,
    children, run_name, sandbox,
};
use tavern_store::Claimed;
use tavern_store::config::Does;
use tavern_sys::process;

use super::flags::{AgentProgram, DryRun, HeldItemFlags};
use super::format::Painted;
use super::{CliError, Context, Exit, Verb, hints};

/// Run the agent program for an item that you hold
///
/// Creates its worktree, builds the prompt, runs the agent, renews the lease and keeps logs and results under `.tavern/runs`.
/// Exits with the outcome; `tavern report` records it.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub held: HeldItemFlags,

    #[command(flatten)]
    pub program: AgentProgram,

    #[command(flatten)]
    pub plan: DryRun,

    /// With --dry-run: also print the prompt
    #[arg(long, requires = "dry_run")]
    pub prompt: bool,
}

#[derive(Serialize)]
pub(super) struct Record<'a> {
    pub task: &'a TaskId,
    pub run: String,
    pub outcome: Outcome,
    pub reason: String,
    pub commit: Option<String>,
    pub resets_at: Option<Timestamp>,
}

impl<'a> Record<'a> {
    pub(super) fn of(held: &'a Claimed, answer: &AgentAnswer) -> Record<'a> {
        let result = answer.result();
        Record {
            task: &held.task.id,
            run: run_name(&held.task.id, held.lease.token),
            outcome: answer.outcome(),
            reason: answer.reason(),
            commit: result.and_then(RunResult::commit).map(str::to_owned),
            resets_at: result.and_then(RunResult::resets_at),
        }
    }
}

impl Verb for Args {
    const NAME: &'static str = "tavern-spawn";
    const EXAMPLES: &'static [&'static str] = &["tavern spawn T-1 --token 3"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let mut workspace = context.site(context.board()?)?;
        self.program.choose(&mut workspace);
        let held = self
            .held
            .item(context, &workspace.board)?
            .claimed(&workspace.board)?;
        let role = workspace.role(&held.lease.role)?;
        let runner = workspace.runner_of(&held.task, role);
        let look = Preflight::of(&workspace);
        look.disk().and_then(|()| look.set_up())?;
        look.item(&held.task).map_err(|lack| {
            let hint = hints::lack(&lack, Some(&held.task.id), Some(&held.queue.id));
            CliError::new(Exit::Failed, lack.to_string()).with_hint(hint)
        })?;
        look.runner(&runner, role)?;
        look.uncapped(&held.queue.id, Some(&held.task.id))
            .map_err(|lack| {
                let hint = hints::lack(&lack, Some(&held.task.id), Some(&held.queue.id));
                CliError::new(
                    Exit::BudgetSpent,
                    format!("`{}` has reached its limit: {lack}", held.task.id),
                )
                .with_hint(hint)
            })?;
        sandbox::try_out(&workspace, role)?;
        let answer = if context.is_dry {
            match attempt::launch(&workspace, &children::unifying(&workspace, &held)?) {
                Err(tavern_run::Error::NothingToReview(why)) => RunResult::failed(why).into(),
                launch => {
                    let set_up =
                        Some(&workspace.config.worktree.setup).filter(|set_up| !set_up.is_empty());
                    if let Some(set_up) =
                        set_up.filter(|_| workspace.does(&held, Does::Work) && held.task.worktree)
                    {
                        context
                            .out
                            .note(format!("a new worktree is set up first: {set_up}"));
                    }
                    self.print(context, &launch?.command_line()?)?;
                    Trust::of(&workspace).item_of(&held.queue, &held.task)?;
                    return Ok(Exit::Done);
                }
            }
        } else {
            process::adopt_orphans()?;
            let _slot = run_slot(&workspace, context)?;
            obey_stop(&workspace)?;
            attempt::agent(
                &workspace,
                &held,
                &Heartbeat::start(&workspace.board, &held.lease)?,
            )?
        };
        let record = Record::of(&held, &answer);
        let text = format!("{} {}: {}", record.run, record.outcome, record.reason);
        context.out.record(&record, text)?;
        Ok(context.interrupted().unwrap_or(exit(answer.outcome())))
    }
}

impl Args {
    /// Prints the command line for a shell, then the prompt if wanted.
    fn print(&self, context: &Context, line: &CommandLine) -> Result<(), CliError> {
        context
            .out
            .record(line, Painted::whole(&line.to_string()))?;
        if self.prompt {
            context.out.text(Painted::whole(line.prompt.trim_end()))?;
        }
        Ok(())
    }
}

/// Returns the exit code of an outcome.
pub(super) fn exit(outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Success => Exit::Done,
        Outcome::Waiting => Exit::WaitingForPerson,
        Outcome::Budget | Outcome::Capped => Exit::BudgetSpent,
        Outcome::UsageLimit | Outcome::Overloaded => Exit::Busy,
        Outcome::NotReady => Exit::Refused,
        Outcome::Failed
        | Outcome::Timeout
        | Outcome::Killed
        | Outcome::Auth
        | Outcome::PermissionDenied
        | Outcome::Empty
        | Outcome::Crashed
        | Outcome::NotFound => Exit::Failed,
    }
}

/// Waits for one of the board's slots for concurrent agents.
fn run_slot(workspace: &Workspace, context: &Context) -> Result<tavern_store::Slot, CliError> {
    loop {
        if let Some(slot) = workspace.board.run_slot(workspace.config.limit)? {
            return Ok(slot);
        }
        context.out.note(format!(
            "waiting: {} agents run already (`limit` of config.yaml)",
            workspace.config.limit
        ));
        if workspace.interrupt.wait(std::time::Duration::from_secs(1)) {
            return Err(CliError::new(
                context.interrupted().unwrap_or(Exit::Busy),
                "interrupted while waiting",
            ));
        }
    }
}
