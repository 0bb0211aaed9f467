//! `tavern-commit`: commit the queues, and nothing else.

use serde_json::json;

use tavern_run::commit::commit_now;
use tavern_store::config::Commit;

use super::{CliError, Context, Exit, Verb};

/// Commit the queues to git, and nothing else
///
/// On the branch that is checked out, with a message that tells what became of which item since the last time. With
/// `commit: transition` in config.yaml each program does it by itself; with `never` no agent can. Your index and your other files
/// stay as they are.
#[derive(clap::Args)]
pub struct Args {}

impl Verb for Args {
    const NAME: &'static str = "tavern-commit";
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let site = context.quick_site(context.board()?)?;
        // What is on the branch is a person's, unless they let Tavern commit there.
        if site.config.commit == Commit::Never
            && let Some(run) = context.own_run()
        {
            return Err(run.refused());
        }
        match commit_now(&site)? {
            Some(commit) => {
                let text = format!("the queues are committed as {}", commit.short());
                context
                    .out
                    .record(&json!({ "commit": commit.as_str() }), text)?;
            }
            None => context
                .out
                .note("nothing to commit: git has the queues as they are; see them: tavern status"),
        }
        Ok(Exit::Done)
    }
}
