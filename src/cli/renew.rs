//! `tavern-renew`: extend a lease.

use serde::Serialize;

use crate::board::lease::Token;
use crate::board::task::TaskId;
use crate::clock;

use super::{CliError, Context, Exit, Verb, task_id};

/// Extend the lease of an item that you hold
///
/// Exits with 4 if somebody else holds it now: stop working on it then.
#[derive(clap::Args)]
pub struct Args {
    /// The item
    #[arg(value_name = "ID", env = "TAVERN_TASK", hide_env_values = true, value_parser = task_id)]
    pub task: TaskId,

    /// The token that the claim gave
    #[arg(long, env = "TAVERN_TOKEN", hide_env_values = true)]
    pub token: Token,

    /// Print until when it would be held, and extend nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Serialize)]
struct Record {
    task: TaskId,
    token: Token,
    expires_at: crate::board::task::Timestamp,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-renew";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let (board, now) = (context.board()?, clock::now());
        let lease = if self.dry_run {
            board.foresee_renewal(&self.task, self.token, now)?
        } else {
            board.renew(&self.task, self.token, now)?
        };
        let record = Record { task: self.task, token: self.token, expires_at: lease.expires_at() };
        let text = format!("{} until {}", record.task, record.expires_at);
        context.out.record(&record, text)?;
        Ok(Exit::Done)
    }
}
