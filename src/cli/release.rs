//! `tavern-release`: give an item back, or bring one back.

use serde::Serialize;

use crate::board::event::{Blame, Event, Retry};
use crate::board::lease::Token;
use crate::board::task::{Status, TaskId};
use crate::clock;
use crate::config::Config;
use crate::store::Note;

use super::{CliError, Context, Exit, Verb, task_id};

/// Give an item back; or bring one back that waits, died or ended
///
/// Without a flag, a held item goes back to pending without using an attempt, and a waiting one is resumed.
#[derive(clap::Args)]
pub struct Args {
    /// The item
    #[arg(value_name = "ID", env = "TAVERN_TASK", hide_env_values = true, value_parser = task_id)]
    pub task: TaskId,

    /// The token that the claim gave; for a held item
    #[arg(long, env = "TAVERN_TOKEN", hide_env_values = true)]
    pub token: Option<Token>,

    /// Take it from the dead letter lane, with all its attempts again
    #[arg(long, conflicts_with_all = ["reopen", "cancel", "force"])]
    pub revive: bool,

    /// Have a completed or cancelled item done again
    #[arg(long, conflicts_with_all = ["cancel", "force"])]
    pub reopen: bool,

    /// Give it up: nobody will work on it
    #[arg(long, conflicts_with = "force")]
    pub cancel: bool,

    /// Take it from its holder, who is told so at its next step
    #[arg(long)]
    pub force: bool,

    /// Why, in a line; whoever works on it next is told what you say of one that you take from its holder, or that waited, died
    /// or ended
    #[arg(long, short = 'm', value_name = "TEXT")]
    pub reason: Option<String>,

    /// Print what it would be, and change nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Serialize)]
struct Record {
    task: TaskId,
    status: Status,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-release";
    const CHANGES_QUEUES: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let config = Config::load(board.dir())?;
        let lease = board.lease(&self.task)?;
        let retry = Retry { blame: Blame::Nobody, not_before: None, most: config.max_returns };
        let reason = self.reason.clone().unwrap_or_else(|| "given back".to_owned());
        let event = match (&lease, self.token) {
            _ if self.revive => Event::Revive { reason: self.reason.clone() },
            _ if self.reopen => Event::Reopen { reason: self.reason.clone() },
            _ if self.cancel => Event::Cancel { reason: self.reason.clone() },
            (Some(lease), _) if self.force => {
                Event::Withdraw { token: lease.token, retry, reason: self.reason.clone() }
            }
            (None, Some(token)) if board.task(&self.task)?.task.status == Status::Waiting => {
                let message = format!("nobody holds `{}`, so token {token} is stale: it waits for a person", self.task);
                let hint = format!("if you are that person: env -u TAVERN_TOKEN tavern-release {}", self.task);
                return Err(CliError::new(Exit::Refused, message).with_hint(hint));
            }
            (_, Some(token)) => Event::Return { token, retry, reason },
            (Some(lease), None) => {
                let hint = format!("say --token if you are {0}, or take it from {0} with --force", lease.agent);
                let message = format!("`{}` is held by {}", self.task, lease.agent);
                return Err(CliError::new(Exit::Refused, message).with_hint(hint));
            }
            (None, None) => Event::Resume { reason: self.reason.clone() },
        };
        let now = clock::now();
        let status = if self.dry_run {
            board.preview(&self.task, &event, now)?.to
        } else {
            board.submit(&self.task, &event, &Note::default(), now)?.task.status
        };
        let record = Record { task: self.task, status };
        context.out.record(&record, format!("{} is {}", record.task, record.status))?;
        Ok(Exit::Done)
    }
}
