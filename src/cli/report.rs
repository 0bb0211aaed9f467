//! `tavern-report`: record what a run came to, after verifying it.

use serde::Serialize;

use crate::board::event::Event;
use crate::board::lease::Token;
use crate::board::task::{Mode, Status, TaskId};
use crate::clock;
use crate::run::Site;
use crate::run::report;
use crate::run::result::Judged;
use crate::run::verify;
use crate::run::{Finished, attempt};
use crate::runner::Outcome;
use crate::store::{self, Note};

use super::spawn::{Record, exit, held};
use super::{CliError, Context, Exit, Verb, task_id};

mod judge;

/// Record what became of an item that you hold
///
/// Without a flag, what `tavern spawn` found. A success is verified first: the item's `done_when` is run at the
/// commit, and only if all of it passes the item is approved, or goes into review. Exits with 6 if it does not.
/// A person judges work in review with --approve and --reject, and needs no token for it.
#[derive(clap::Args)]
pub struct Args {
    /// The item
    #[arg(value_name = "ID", env = "TAVERN_TASK", hide_env_values = true, value_parser = task_id)]
    pub task: TaskId,

    /// The token that the claim gave
    #[arg(long, env = "TAVERN_TOKEN", hide_env_values = true)]
    pub token: Option<Token>,

    /// The work is done: verify it
    #[arg(long, group = "what")]
    pub done: bool,

    /// The work failed, for the reason given
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "reported as failed", group = "what")]
    pub failed: Option<String>,

    /// A person has to answer this first
    #[arg(long, value_name = "QUESTION", group = "what")]
    pub waiting: Option<String>,

    /// The work in review may be merged; or the item may be started, if it asks for that
    #[arg(long, group = "what")]
    pub approve: bool,

    /// The work in review is to be done again, for what you found; `-` reads it from standard input
    #[arg(long, value_name = "FINDINGS", group = "what")]
    pub reject: Option<String>,

    /// What you do with the item from now on: execute, delegate, plan, break_up or unify
    #[arg(long, value_name = "MODE", group = "what", value_parser = mode_named)]
    pub mode: Option<Mode>,

    /// Print what would become of it, with the commands that would have to pass; run and record nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    record: Record<'a>,
    status: Status,
    /// What is run at the commit before it is so.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    commands: &'a [String],
}

impl Verb for Args {
    const NAME: &'static str = "tavern-report";
    const CHANGES_QUEUES: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        if self.approve || self.reject.is_some() {
            return judge::run(&self, context, board);
        }
        let token = self.token.ok_or_else(no_token)?;
        if let Some(mode) = self.mode {
            let event = Event::Shift { token, mode };
            if self.dry_run {
                board.preview(&self.task, &event, clock::now())?;
            } else {
                board.submit(&self.task, &event, &Note::default(), clock::now())?;
            }
            context.out.record(&Shifted { task: &self.task, mode }, format!("{} {mode}", self.task))?;
            return Ok(Exit::Done);
        }
        let held = held(&board, &self.task, token, self.dry_run)?;
        // Nothing that takes time is done for what is only said: no signal needs to be waited for.
        let is_verified = self.failed.is_none() && self.waiting.is_none() && verify::takes_time(&held);
        let is_slow = is_verified && !self.dry_run;
        let site = if is_slow { context.site(board)? } else { context.light_site(board)? };
        let verified = if self.dry_run { verify::foreseen } else { verify::verified };
        let finished = match (&self.failed, &self.waiting) {
            (Some(reason), _) => attempt::said(&held, Judged::said(Outcome::Failed, reason)),
            (_, Some(question)) => attempt::said(&held, Judged::said(Outcome::Waiting, question)),
            _ if self.done => verified(&site, &held, attempt::said(&held, Judged::said(Outcome::Success, "")))?,
            _ => {
                let last = attempt::last(&site, &held)?;
                let finished = last.ok_or_else(|| no_run(&self.task))?;
                verified(&site, &held, finished)?
            }
        };
        if self.dry_run {
            return self.preview(context, &site, &held, &finished);
        }
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
        let event = report::event(site, held, finished);
        let note = Note { agent: Some(held.lease.agent.clone()), run: Some(finished.run.clone()) };
        let done = site.board.submit(&self.task, &event, &note, clock::now())?;
        context
            .out
            .record(&self.record(finished), self.text(finished, done.task.status(), done.entry.cause.as_deref()))?;
        let is_refuted = finished.is_refuted && judged.outcome == Outcome::Failed;
        Ok(if is_refuted { Exit::VerificationFailed } else { exit(judged) })
    }
}

impl Args {
    fn preview(
        &self,
        context: &Context,
        site: &Site,
        held: &store::Claimed,
        finished: &Finished,
    ) -> Result<Exit, CliError> {
        let event = report::event(site, held, finished);
        let status = site.board.preview(&self.task, &event, clock::now())?.state.status();
        let commands =
            if matches!(status, Status::Approved | Status::InReview) { held.task.done_when.as_slice() } else { &[] };
        let mut text = self.text(finished, status, None);
        if !commands.is_empty() {
            let commands: Vec<String> = commands.iter().map(|command| format!("\n  {}", command.trim_end())).collect();
            text.push_str(&format!(", if all of this passes at its commit:{}", commands.concat()));
        }
        context.out.record(&Planned { record: self.record(finished), status, commands }, text)?;
        Ok(exit(&finished.judged))
    }

    fn record<'a>(&'a self, finished: &'a Finished) -> Record<'a> {
        let judged = &finished.judged;
        Record {
            task: &self.task,
            run: &finished.run,
            outcome: judged.outcome,
            reason: &judged.reason,
            commit: judged.commit.as_deref(),
            resets_at: judged.resets_at,
        }
    }

    fn text(&self, finished: &Finished, status: Status, cause: Option<&str>) -> String {
        match status {
            Status::Approved => format!("{} approved", self.task),
            Status::InReview if finished.judged.outcome == Outcome::Success => format!("{} in_review", self.task),
            Status::Completed => format!("{} planned: {}", self.task, cause.unwrap_or(&finished.judged.reason)),
            status => format!("{} {status}: {}", self.task, finished.judged.reason),
        }
    }
}

#[derive(Serialize)]
struct Shifted<'a> {
    task: &'a TaskId,
    mode: Mode,
}

fn mode_named(name: &str) -> Result<Mode, String> {
    name.parse().map_err(|()| format!("no such mode; one of {}", Mode::ALL.map(Mode::as_str).join(", ")))
}

fn no_token() -> CliError {
    let hint = "take an item first: eval \"export $(tavern claim --format env)\"".to_owned();
    CliError::new(Exit::Usage, "whose work it is shows the token of its claim: --token").with_hint(hint)
}

fn no_run(task: &TaskId) -> CliError {
    let hint = "say --done, --failed or --waiting, or run the agent first: tavern spawn".to_owned();
    CliError::new(Exit::Usage, format!("no run of `{task}` says what became of it")).with_hint(hint)
}
