//! `tavern-renew`: extend a lease.

use serde::Serialize;

use tavern_core::lease::Token;
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::clock;

use super::flags::{DryRun, HeldItemFlags};
use super::{CliError, Context, Exit, OwnRun, Verb};

/// Extend the lease of an item that you hold
///
/// Exits with 4 if another agent holds it now: stop working on it then.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub held: HeldItemFlags,

    #[command(flatten)]
    pub plan: DryRun,
}

#[derive(Serialize)]
struct Record {
    task: TaskId,
    token: Token,
    expires_at: Timestamp,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-renew";
    const EXAMPLES: &'static [&'static str] = &["tavern renew T-1 --token 3"];

    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        run.holds(&self.held.task, self.held.token)
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let lease = self.held.item(context, &board)?.renew(&board)?;
        let record = Record {
            expires_at: lease.expires_at(),
            task: lease.task,
            token: lease.token,
        };
        let text = format!("{} until {}", record.task, clock::dated(record.expires_at));
        context.out.record(&record, text)?;
        Ok(Exit::Done)
    }
}
