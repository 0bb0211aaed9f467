//! `tavern-release`: release a held item, or bring back an ended one.

use serde::Serialize;

use tavern_core::event::{Blame, Event, Retry};
use tavern_core::lease::Life;
use tavern_core::task::{Status, Task, TaskId};
use tavern_store::config::Config;
use tavern_store::{Board, Error, Note};
use tavern_sys::clock;

use super::flags::{DryRun, HeldItemFlags};
use super::shared::{person, without_token};
use super::{CliError, Context, Exit, Verb};

/// Give an item back; or bring back one that waits, died or ended
///
/// Without a flag, a held item goes back to pending without using an attempt, a waiting one is resumed, one in back-off
/// is tried now, and a draft may be worked on from now on.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub held: HeldItemFlags,

    /// Move it from the dead letter lane to pending, with all its attempts again
    #[arg(long, conflicts_with_all = ["reopen", "cancel", "force"])]
    pub revive: bool,

    /// Reopen a completed or cancelled item
    #[arg(long, conflicts_with_all = ["cancel", "force"])]
    pub reopen: bool,

    /// Cancel it: no agent will work on it; with --force, even if it is held
    #[arg(long)]
    pub cancel: bool,

    /// Cancel its children too, and theirs
    #[arg(long, requires = "cancel")]
    pub children: bool,

    /// Take it from its holder, which is notified at its next step
    #[arg(long)]
    pub force: bool,

    /// The reason, in one line; the next agent gets it if the item waited, died, ended or was taken from its holder
    #[arg(long, short = 'm', value_name = "TEXT", allow_hyphen_values = true)]
    pub reason: Option<String>,

    #[command(flatten)]
    pub plan: DryRun,
}

#[derive(Serialize)]
struct Record<'a> {
    task: &'a TaskId,
    status: Status,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-release";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern release T-1 --force --reason \"Rosie is at lunch\"",
        "tavern release T-3 --reopen --reason \"it broke again\"",
    ];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let named = self.held.item(context, &board)?;
        let config = Config::load(board.dir())?;
        let lease = board.task(&named.task)?.lease;
        let retry = Retry {
            blame: Blame::Nobody,
            not_before: None,
            most: config.max_returns,
        };
        let reason = self
            .reason
            .clone()
            .unwrap_or_else(|| "given back".to_owned());
        // Only a person may do this: the item gets all its attempts again.
        if let Some(flag) = self
            .revive
            .then_some("--revive")
            .or(self.reopen.then_some("--reopen"))
        {
            let why = format!(
                "only a person may bring `{}` back, and a token is an agent's",
                named.task
            );
            without_token(
                named.token,
                why,
                &format!("tavern release {} {flag}", named.task),
            )?;
        }
        let event = match (&lease, named.token) {
            _ if self.revive => Event::Revive {
                reason: self.reason.clone(),
            },
            _ if self.reopen => Event::Reopen {
                reason: self.reason.clone(),
            },
            (Some(lease), _) if self.cancel && !self.force => {
                let task = &named.task;
                let message = format!("`{task}` is held by {}", lease.agent);
                let hint = format!("end its run and cancel it: tavern cancel {task} --force");
                return Err(CliError::refused(message, hint));
            }
            _ if self.cancel => Event::Cancel {
                reason: self.reason.clone(),
            },
            (Some(lease), _) if self.force => Event::Withdraw {
                token: lease.token,
                retry,
                reason: self.reason.clone(),
            },
            (None, Some(token)) if board.task(&named.task)?.task.status() == Status::Waiting => {
                let message = format!(
                    "`{}` is not held: token {token} is stale; it waits for a person",
                    named.task
                );
                let hint = format!(
                    "if you are that person: env -u TAVERN_TOKEN tavern release {}",
                    named.task
                );
                return Err(CliError::refused(message, hint));
            }
            (_, Some(token)) => Event::Return {
                token,
                retry,
                reason,
            },
            (Some(lease), None) => {
                let hint = format!(
                    "pass the token if you are {0}: --token; or take it from {0}: --force",
                    lease.agent
                );
                let message = format!("`{}` is held by {}", named.task, lease.agent);
                return Err(CliError::refused(message, hint));
            }
            (None, None) => {
                let task = board.task(&named.task)?.task;
                // Another clone holds it, or its lease was lost.
                if self.force && task.status().is_held() {
                    Event::Reap {
                        token: None,
                        life: Life::Unknown,
                        retry,
                        reason,
                    }
                } else {
                    freed(&task, self.reason.clone()).map_err(|why| {
                        let task = &named.task;
                        let message =
                            format!("`{task}` is not held: {why}, and can't be given back");
                        CliError::refused(message, format!("for details: tavern status {task}"))
                    })?
                }
            }
        };
        if let (Some(lease), true) = (&lease, self.cancel) {
            // Until it is cancelled, no agent takes it.
            let not_before = Some(clock::now() + A_MOMENT);
            let retry = Retry {
                not_before,
                ..retry
            };
            let withdraw = Event::Withdraw {
                token: lease.token,
                retry,
                reason: self.reason.clone(),
            };
            board.submit(&named.task, &withdraw, &Note::default())?;
        }
        let submit = |task: &TaskId| -> Result<(), CliError> {
            let note = Note::default();
            let done = match board.submit(task, &event, &note) {
                // The queue of an archived item was removed.
                Err(Error::NoQueue(queue)) if self.reopen => {
                    context.make_queue(&board, &queue)?;
                    board.submit(task, &event, &note)
                }
                done => done,
            };
            let status = done?.task.status();
            context
                .out
                .record(&Record { task, status }, format!("{task} is {status}"))
        };
        if !self.cancel {
            submit(&named.task)?;
            return Ok(Exit::Done);
        }
        // The parent comes first, so that the end of its children does not wake it.
        let is_over = |task: &Task| matches!(task.status(), Status::Completed | Status::Cancelled);
        if !(self.children && is_over(&board.task(&named.task)?.task)) {
            submit(&named.task)?;
        }
        let below: Vec<Task> = below(&board, &named.task)
            .into_iter()
            .filter(|task| !task.status().is_ended())
            .collect();
        if !self.children {
            if !below.is_empty() {
                let names: Vec<&str> = below.iter().map(|child| child.id.as_str()).collect();
                let hint = format!(
                    "to give them up too: tavern release {} --cancel --children",
                    named.task
                );
                context
                    .out
                    .note(format!("its children go on: {}; {hint}", names.join(", ")));
            }
            return Ok(Exit::Done);
        }
        // A held child does not stop the release of the others.
        let mut held = None;
        for child in &below {
            held = submit(&child.id).err().or(held);
        }
        held.map_or(Ok(Exit::Done), Err)
    }
}

/// Longer than the two steps of a forced cancellation take.
const A_MOMENT: chrono::TimeDelta = chrono::TimeDelta::minutes(1);

/// Returns the event for a release without flags of an unheld item, or its status if there is nothing to do.
pub(super) fn freed(task: &Task, reason: Option<String>) -> Result<Event, String> {
    match task.status() {
        Status::Draft => Ok(Event::Allow { by: person() }),
        status @ (Status::Pending | Status::InReview | Status::Approved)
            if task.state.not_before().is_none() =>
        {
            Err(format!("it is {status}"))
        }
        _ => Ok(Event::Resume { reason }),
    }
}

/// Returns all descendants of an item.
fn below(board: &Board, task: &TaskId) -> Vec<Task> {
    let mut found: Vec<Task> = Vec::new();
    let mut next = vec![task.clone()];
    while let Some(parent) = next.pop() {
        let is_new =
            |child: &Task| child.id != *task && !found.iter().any(|known| known.id == child.id);
        let children: Vec<Task> = board.children(&parent).into_iter().filter(is_new).collect();
        next.extend(children.iter().map(|child| child.id.clone()));
        found.extend(children);
    }
    found
}
