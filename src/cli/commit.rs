//! `tavern-commit`: commit the queues, and nothing else.

use crate::run::commit::commit_now;

use super::{CliError, Context, Exit, Verb};

/// Commit the queues to git, and nothing else
///
/// On the branch that is checked out, with a message that tells what became of which item since the last time. With
/// `commit: transition` in config.yaml each program does it by itself. Your index and your other files stay as they are.
#[derive(clap::Args)]
pub struct Args {}

impl Verb for Args {
    const NAME: &'static str = "tavern-commit";
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        commit_now(&context.quick_site(context.board()?)?)?;
        Ok(Exit::Done)
    }
}
