//! `tavern-report`: record what a run came to, after verifying it.

use crate::board::lease::Token;
use crate::board::task::{Status, TaskId};
use crate::clock;
use crate::run::Site;
use crate::run::attempt::{self, Finished};
use crate::run::report::{self, Judged};
use crate::runner::Outcome;
use crate::store::{self, Note};

use super::spawn::{Record, exit, held};
use super::{CliError, Context, Exit, Verb, task_id};

/// Record what became of an item that you hold
///
/// Without a flag, what `tavern-spawn` found. A success is verified first: the item's `done_when` is run at the
/// commit, and only if all of it passes the item is approved. Exits with 6 if it does not.
#[derive(clap::Args)]
pub struct Args {
    /// The item
    #[arg(value_name = "ID", env = "TAVERN_TASK", hide_env_values = true, value_parser = task_id)]
    pub task: TaskId,

    /// The token that the claim gave
    #[arg(long, env = "TAVERN_TOKEN", hide_env_values = true)]
    pub token: Token,

    /// The work is done: verify it
    #[arg(long, conflicts_with_all = ["failed", "waiting"])]
    pub done: bool,

    /// The work failed, for the reason given
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "reported as failed", conflicts_with = "waiting")]
    pub failed: Option<String>,

    /// A person has to answer this first
    #[arg(long, value_name = "QUESTION")]
    pub waiting: Option<String>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-report";
    const CHANGES_QUEUES: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let held = held(&board, &self.task, self.token)?;
        // Nothing that takes time is done for what is only said: no signal needs to be waited for.
        let is_verified = self.failed.is_none() && self.waiting.is_none() && attempt::takes_time(&held);
        let site = if is_verified { context.site(board)? } else { context.light_site(board)? };
        let finished = match (&self.failed, &self.waiting) {
            (Some(reason), _) => attempt::said(&held, Judged::said(Outcome::Failed, reason)),
            (_, Some(question)) => attempt::said(&held, Judged::said(Outcome::Waiting, question)),
            _ if self.done => {
                attempt::verified(&site, &held, attempt::said(&held, Judged::said(Outcome::Success, "")))?
            }
            _ => {
                let last = attempt::last(&site, &held)?;
                let finished = last.ok_or_else(|| no_run(&self.task))?;
                attempt::verified(&site, &held, finished)?
            }
        };
        // Interrupted while its work was verified, the item is given back.
        let exit = self.submit(context, &site, &held, &finished)?;
        Ok(context.interrupted().unwrap_or(exit))
    }
}

impl Args {
    fn submit(
        &self,
        context: &Context,
        site: &Site,
        held: &store::Claimed,
        finished: &Finished,
    ) -> Result<Exit, CliError> {
        let judged = &finished.judged;
        report::close_runner(site, finished)?;
        let event = report::event(site, &held.task, self.token, finished);
        let note = Note { agent: Some(held.lease.agent.clone()), run: Some(finished.run.clone()) };
        let done = site.board.submit(&self.task, &event, &note, clock::now())?;
        let record = Record {
            task: &self.task,
            run: &finished.run,
            outcome: judged.outcome,
            reason: &judged.reason,
            commit: judged.commit.as_deref(),
            resets_at: judged.resets_at,
        };
        let text = match done.task.status {
            Status::Approved => format!("{} approved", self.task),
            status => format!("{} {status}: {}", self.task, judged.reason),
        };
        context.out.record(&record, text)?;
        let is_refuted = finished.is_refuted && judged.outcome == Outcome::Failed;
        Ok(if is_refuted { Exit::VerificationFailed } else { exit(judged) })
    }
}

fn no_run(task: &TaskId) -> CliError {
    let hint = "say --done, --failed or --waiting, or run the agent first: tavern-spawn".to_owned();
    CliError::new(Exit::Usage, format!("no run of `{task}` says what became of it")).with_hint(hint)
}
