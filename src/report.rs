//! `tavern-report`: record the outcome of a run after verifying it.

use serde::Serialize;
use serde_json::json;

use tavern_core::eligible::Lack;
use tavern_core::event::Event;
use tavern_core::steps::{Steps, boxes};
use tavern_core::task::{Status, TaskId};
use tavern_git::GitError;
use tavern_run::report;
use tavern_run::runner::Outcome;
use tavern_run::verify;
use tavern_run::{AgentAnswer, Error, Heartbeat, RunResult, attempt, run_name};
use tavern_store::{Board, Claimed, Note};

pub use args::Args;

use super::flags::HeldItem;
use super::spawn::{Record, exit};
use super::{CliError, Context, Exit, OwnRun, Verb, format, hints};

mod args;
pub(super) mod judge;

#[derive(Serialize)]
struct Reported<'a> {
    #[serde(flatten)]
    record: Record<'a>,
    status: Status,
    /// In a dry run: the commands that would run at the commit first.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    commands: &'a [String],
}

impl Verb for Args {
    const NAME: &'static str = "tavern-report";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern report T-1 --token 3 --done",
        "tavern report T-1 --approve",
    ];

    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        run.holds(&self.held.task, self.held.token)
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let named = self.held.item(context, &board)?;
        if self.approve || self.reject.is_some() {
            return judge::run(&self, &named, context, board);
        }
        let task = &named.task;
        if let Some(mode) = self.mode {
            let event = Event::Shift {
                token: named.token()?,
                mode,
            };
            board.submit(task, &event, &Note::default())?;
            context.out.record(
                &json!({ "task": task, "mode": mode }),
                format!("{task} {mode}"),
            )?;
            return Ok(Exit::Done);
        }
        if !self.steps.is_empty() {
            return self.tick(&named, context, &board);
        }
        let says_what = self.done || self.failed.is_some() || self.waiting.is_some();
        if named.token.is_none() && !says_what {
            return Err(unclaimed(task, board.task(task)?.task.status()));
        }
        let held = named.claimed(&board)?;
        // Only verification takes time, so only then signals need a graceful end.
        let is_verified =
            self.failed.is_none() && self.waiting.is_none() && verify::takes_time(&held);
        let is_slow = is_verified && !self.plan.dry_run;
        let workspace = if is_slow {
            context.site(board)?
        } else {
            context.light_site(board)?
        };
        let beat = || Heartbeat::start(&workspace.board, &held.lease);
        let _heartbeat = is_slow.then(beat).transpose()?;
        let answer = match (&self.failed, &self.waiting) {
            (Some(reason), _) => RunResult::failed(reason).into(),
            (_, Some(question)) => RunResult::Asks(question.clone()).into(),
            _ if self.done => AgentAnswer::done(String::new()),
            _ => attempt::last(&workspace, &held).ok_or_else(|| no_run(task))?,
        };
        let unproven = |error| match error {
            Error::Git(GitError::NotAWorktree { path, .. }) if !path.exists() => unworked(&held),
            error => error.into(),
        };
        let result = if self.plan.dry_run {
            verify::plan(&workspace, &held, answer)
                .map_err(unproven)?
                .expected()
        } else {
            let result = verify::verify(&workspace, &held, answer).map_err(unproven)?;
            report::close_runner(&workspace, &result)?;
            result
        };
        let run = run_name(task, held.lease.token);
        let note = Note {
            agent: Some(held.lease.agent.clone()),
            run: Some(run),
        };
        let done =
            workspace
                .board
                .submit(task, &report::event(&workspace, &held, &result), &note)?;
        let status = done.task.status();
        let is_passed = matches!(result, RunResult::Passed { .. });
        let commands = if self.plan.dry_run && is_passed {
            held.task.done_when.as_slice()
        } else {
            &[]
        };
        let mut text = match (&result, status) {
            (RunResult::Planned { .. }, _) => {
                format!(
                    "{task} planned: {}",
                    done.entry.cause.unwrap_or_else(|| result.reason())
                )
            }
            (_, Status::InReview | Status::Approved | Status::Completed)
                if result.outcome() == Outcome::Success =>
            {
                let is_told =
                    !self.plan.dry_run && status == Status::Approved && context.own_run().is_none();
                let next = if is_told {
                    hints::approved(&workspace.board, task)
                } else {
                    String::new()
                };
                format!("{task} {status}{next}")
            }
            _ => format!("{task} {status}: {}", result.reason()),
        };
        if !commands.is_empty() {
            let commands: Vec<String> = commands
                .iter()
                .map(|command| format!("\n  {}", command.trim_end()))
                .collect();
            text.push_str(&format!(
                ", if all of this passes at its commit:{}",
                commands.concat()
            ));
        }
        let record = Record::of(&held, &result.clone().into());
        context.out.record(
            &Reported {
                record,
                status,
                commands,
            },
            text,
        )?;
        let is_refuted = matches!(result, RunResult::Refuted(_));
        let exit = if is_refuted {
            Exit::VerificationFailed
        } else {
            exit(result.outcome())
        };
        // An interrupt during verification releases the item.
        Ok(context.interrupted().unwrap_or(exit))
    }
}

impl Args {
    fn tick(&self, named: &HeldItem, context: &Context, board: &Board) -> Result<Exit, CliError> {
        let task = &named.task;
        let event = Event::Tick {
            token: named.token()?,
            steps: self.steps.clone(),
        };
        let before = board.task(task)?.task.description;
        let done = board.submit(task, &event, &Note::default())?.task;
        let (steps, were) = (boxes(&done.description), boxes(&before));
        let ticked: Vec<&str> = self
            .steps
            .iter()
            .map(|number| steps[number - 1].says)
            .collect();
        let is_new = |number: &&usize| were.get(**number - 1).is_some_and(|step| !step.is_done);
        let (new, old): (Vec<&usize>, Vec<&usize>) = self.steps.iter().partition(is_new);
        let new: Vec<&str> = new
            .into_iter()
            .map(|number| steps[number - 1].says)
            .collect();
        let new =
            (!new.is_empty()).then(|| format!(", now with {}", format::words(&new.join("; "))));
        let old = old
            .into_iter()
            .map(|number| format!("; step {number} is ticked already"));
        let how_far = Steps::of(&done.description).unwrap_or_default();
        let text = format!(
            "{task} {how_far}{}{}",
            new.unwrap_or_default(),
            old.collect::<String>()
        );
        context.out.record(
            &json!({ "task": task, "ticked": ticked, "steps": how_far }),
            text,
        )?;
        Ok(Exit::Done)
    }
}

/// Returns the error for a report without a claim; the hint names the command that is probably meant.
fn unclaimed(task: &TaskId, status: Status) -> CliError {
    let hint = match status {
        Status::Pending => {
            format!("take it: claim=$(tavern claim {task} --format env) && eval \"export $claim\"")
        }
        Status::InReview => hints::lack(&Lack::Approval, Some(task), None).unwrap_or_default(),
        Status::Completed => format!("look at it: tavern diff {task}"),
        status => hints::lack(&Lack::Status(status), Some(task), None).unwrap_or_default(),
    };
    CliError::usage(
        format!("`{task}` is {status}, and the report is empty: no --done, no --token"),
        hint,
    )
}

/// Returns the error for a claimed item that was not worked yet, so that its folder does not exist.
fn unworked(held: &Claimed) -> CliError {
    let (task, token) = (&held.task.id, held.lease.token);
    let hint = format!(
        "run its agent: tavern spawn {task} --token {token}; to work it by hand: git worktree add -b tavern/{task} .tavern/worktrees/{task}, and commit there; without a worktree: (worktree: false) in the item"
    );
    CliError::usage(format!("`{task}` has had no run yet"), hint)
}

fn no_run(task: &TaskId) -> CliError {
    let hint = "pass --done, --failed or --waiting, or run the agent first: tavern spawn";
    CliError::usage(format!("no run of `{task}` has an outcome"), hint)
}
