//! `tavern-tell`: answer an item's question, or send a message to the agent that works on it.

use serde::Serialize;

use tavern_core::event::{Blame, Event, Retry};
use tavern_core::lease::{Lease, Life};
use tavern_core::monitor::Urgency;
use tavern_core::task::{Status, Task, TaskId};
use tavern_run::{Workspace, runner_named, watch};
use tavern_store::{Found, Note, life};

use super::flags::{DryRun, agent_name};
use super::shared::{ASK, held_here, person, words_for_agent};
use super::{CliError, Context, Exit, ItemName, OwnRun, Verb};

/// Answer an item's question, or send a message to the agent that works on it
///
/// An item that waits with a question goes on with the answer, in the session that asked. A running agent receives a message
/// between two of its steps if its runner takes messages; all others with their next prompt.
#[derive(clap::Args)]
pub struct Args {
    /// The item
    #[arg(value_name = "ID")]
    pub task: ItemName,

    /// The message; `-`, or nothing, reads it from standard input
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,

    /// The sender [default: TAVERN_AGENT, else your user name]
    #[arg(long = "agent", aliases = ["from", "name"], value_name = "NAME", value_parser = agent_name)]
    pub from: Option<String>,

    /// The urgency for a running agent: hint, warning or critical
    #[arg(long, value_name = "SEVERITY", value_parser = urgency)]
    pub severity: Option<Urgency>,

    #[command(flatten)]
    pub order: Order,

    #[command(flatten)]
    pub plan: DryRun,
}

/// The run's new state; the message says why.
#[derive(clap::Args)]
#[group(multiple = false)]
pub struct Order {
    /// End its run, keep its work and session, and have it wait for you with the message as its question
    #[arg(long, conflicts_with = "severity")]
    pub pause: bool,

    /// Resume a waiting item, optionally with a message
    #[arg(long, conflicts_with = "severity")]
    pub resume: bool,

    /// Take it from its agent, and make it pending
    #[arg(long, conflicts_with = "severity")]
    pub stop: bool,
}

impl Order {
    fn is_given(&self) -> bool {
        self.pause || self.resume || self.stop
    }
}

fn urgency(text: &str) -> Result<Urgency, String> {
    text.parse()
        .map_err(|()| "say hint, warning or critical".to_owned())
}

#[derive(Serialize)]
struct Record<'a> {
    task: &'a TaskId,
    status: Status,
    from: &'a str,
    told: When,
}

/// When an agent receives the message.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum When {
    /// The message answers the question, and the next run begins with it.
    Answered,
    /// Between two steps of the running agent.
    NextStep,
    /// With the prompt of the next run.
    NextRun,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-tell";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern tell T-1 \"In Sindarin, please.\"",
        "tavern tell T-1 --pause \"Wait for the new schema.\"",
    ];

    /// Lets an agent send messages in its own name, but not to itself.
    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        if let Some((own, _)) = run
            .held
            .as_ref()
            .filter(|(own, _)| self.task.id() == Some(own))
        {
            return Err(to_itself(own, ASK));
        }
        if self.order.is_given() {
            return Err(run.refused());
        }
        let is_own_name = |agent: &String| self.from.as_ref().is_none_or(|from| from == agent);
        if run.agent.as_ref().is_some_and(is_own_name) {
            Ok(())
        } else {
            Err(run.refused())
        }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let own = context.own_run();
        let from = own
            .as_ref()
            .and_then(|run| run.agent.clone())
            .or_else(|| self.from.clone())
            .unwrap_or_else(person);
        let workspace = context.light_site(context.board()?)?;
        let task = &context.id_of(&workspace.board, &self.task)?;
        let found = workspace.board.task(task)?;
        may_be_told(&found.task)?;
        if self.order.is_given() {
            return self.carry_out(context, &workspace, &found, &from);
        }
        is_of_another(task)?;
        let shorter = "put it into a file that the agent can read, and name that";
        let example = format!("tavern tell {task} \"…\"");
        let text = words_for_agent(&self.text, ["message", "the message"], shorter, &example)?;
        let is_question =
            |task: &Task| task.status() == Status::Waiting && task.question().is_some();
        if is_question(&found.task) {
            if let Some(run) = own {
                return Err(run.refused());
            }
            let event = Event::Resume {
                reason: Some(text.clone()),
            };
            let note = Note {
                agent: Some(from.clone()),
                run: None,
            };
            match workspace.board.submit(task, &event, &note) {
                Ok(done) => {
                    let status = done.task.status();
                    let agent = if status == Status::InReview {
                        "reviewer"
                    } else {
                        "agent"
                    };
                    let how = format!("the {agent} that takes {task} goes on with your answer");
                    return tell(context, task, status, &from, When::Answered, &how);
                }
                // The question may have been answered meanwhile; then this is a further message.
                Err(tavern_store::Error::Refused(_))
                    if !is_question(&workspace.board.task(task)?.task) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let found = workspace.board.task(task)?;
        workspace
            .board
            .send(task, &from, own.map(|run| run.run), self.severity, &text)?;
        let (when, how) = heard(&workspace, &found);
        tell(context, task, found.task.status(), &from, when, &how)
    }
}

impl Args {
    /// Pauses, resumes or ends the run of `found`.
    fn carry_out(
        &self,
        context: &Context,
        workspace: &Workspace,
        found: &Found,
        from: &str,
    ) -> Result<Exit, CliError> {
        let task = &found.task.id;
        let why = Some(self.text.join(" ")).filter(|why| !why.trim().is_empty());
        let lease = found
            .lease
            .as_ref()
            .filter(|_| found.task.status() == Status::InProgress);
        let done = match (lease, found.task.status()) {
            (Some(lease), _) if self.order.pause => {
                let why = why.map_or_else(
                    || "How should it continue?".to_owned(),
                    |why| format!("({why}) How should it continue?"),
                );
                watch::pause(workspace, lease, format!("paused by {from}: {why}"))?
            }
            (Some(lease), _) if self.order.stop => {
                let retry = Retry {
                    blame: Blame::Nobody,
                    not_before: None,
                    most: workspace.config.max_returns,
                };
                let event = Event::Withdraw {
                    token: lease.token,
                    retry,
                    reason: why,
                };
                workspace.board.submit(task, &event, &Note::default())?
            }
            (_, Status::Waiting) if self.order.resume => {
                let note = Note {
                    agent: Some(from.to_owned()),
                    run: None,
                };
                workspace
                    .board
                    .submit(task, &Event::Resume { reason: why }, &note)?
            }
            (_, status) => {
                let (flag, needed, hint) = if self.order.resume {
                    (
                        "--resume",
                        "it does not wait",
                        format!("for details: tavern status {task}"),
                    )
                } else {
                    let flag = if self.order.pause {
                        "--pause"
                    } else {
                        "--stop"
                    };
                    (
                        flag,
                        "no agent works on it",
                        format!("for details: tavern status {task}"),
                    )
                };
                return Err(CliError::refused(
                    format!("`{task}` is {status}: {needed}, so {flag} does nothing"),
                    hint,
                ));
            }
        };
        let status = done.task.status();
        let how = match status {
            Status::Waiting => format!("it goes on with your answer: tavern answer {task} \"…\""),
            _ => "an agent takes it next".to_owned(),
        };
        let told = if status == Status::Waiting {
            When::NextRun
        } else {
            When::Answered
        };
        tell(context, task, status, from, told, &how)
    }
}

/// Refuses an agent's message to itself: its own question is for others.
fn is_of_another(task: &TaskId) -> Result<(), CliError> {
    if held_here().is_none_or(|(own, _)| own != *task) {
        return Ok(());
    }
    Err(to_itself(
        task,
        &format!("if you are a person: env -u TAVERN_TOKEN tavern tell {task} \"…\""),
    ))
}

fn to_itself(task: &TaskId, hint: &str) -> CliError {
    CliError::refused(
        format!("`{task}` is held by the agent that runs this"),
        hint,
    )
}

fn tell(
    context: &Context,
    task: &TaskId,
    status: Status,
    from: &str,
    told: When,
    how: &str,
) -> Result<Exit, CliError> {
    context.out.record(
        &Record {
            task,
            status,
            from,
            told,
        },
        format!("{task} is {status}: {how}"),
    )?;
    Ok(Exit::Done)
}

/// Refuses a message to an ended item; the hint brings the item back with the message.
fn may_be_told(task: &Task) -> Result<(), CliError> {
    let how = match task.status() {
        Status::Dead => "retry",
        Status::Completed | Status::Cancelled => "reopen",
        _ => return Ok(()),
    };
    let message = format!(
        "`{}` is {}, so no agent would receive it",
        task.id,
        task.status()
    );
    let hint = format!(
        "bring it back with the message: tavern {how} {} -m \"…\"",
        task.id
    );
    Err(CliError::refused(message, hint))
}

/// Returns when the agent receives a message in this item's inbox, also in words.
fn heard(workspace: &Workspace, found: &Found) -> (When, String) {
    let next = "with the prompt of its next run";
    let Some(lease) = found
        .lease
        .as_ref()
        .filter(|_| found.task.status().is_held())
    else {
        let how = match found.task.status() {
            Status::Approved => format!("it is passed on {next}, if it comes back"),
            Status::InReview => {
                format!("it is passed on {next}, to a reviewer or, if it comes back, to its agent")
            }
            Status::Waiting => format!(
                "it is passed on {next}; for details: tavern status {}",
                found.task.id
            ),
            Status::Draft => format!("it is passed on {next}, when it is released for work"),
            _ => format!("it is passed on {next}"),
        };
        return (When::NextRun, how);
    };
    let agent = &lease.agent;
    match (life(&lease.holder), runner(workspace, &found.task, lease)) {
        (Life::Gone, _) => (
            When::NextRun,
            format!("{agent} is gone, so it is passed on {next}"),
        ),
        (_, Some((_, true))) => (
            When::NextStep,
            format!("{agent} receives it between two steps"),
        ),
        (_, Some((name, false))) => (
            When::NextRun,
            format!("runner {name} takes no messages while it runs, so it is passed on {next}"),
        ),
        (_, None) => (When::NextRun, format!("it is passed on {next}")),
    }
}

/// Returns the runner under the lease, if any, and whether it receives messages.
fn runner(workspace: &Workspace, task: &Task, lease: &Lease) -> Option<(String, bool)> {
    let run = &lease.work.as_ref()?.run;
    let role = workspace.role(&lease.role).ok()?;
    let name = tavern_run::record::run_of(&workspace.board, run).map(|run| run.runner);
    let name = name.unwrap_or_else(|| workspace.runner_of(task, role));
    let hears = runner_named(&workspace.config, &name, role).is_ok_and(|runner| runner.hears());
    Some((name, hears))
}
