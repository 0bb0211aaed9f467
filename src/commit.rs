//! `tavern-commit`: commit the queues, and nothing else.

use serde_json::json;

use tavern_run::commit::commit_now;

use super::{CliError, Context, Exit, Verb};

/// Commit the queues to git, and nothing else
///
/// Commits to the branch tavern/board, with a message that lists the changes of items since the last commit. Agents do so
/// themselves when they end, and every 30 seconds while they work. No other branch, no index and no checkout changes.
#[derive(clap::Args)]
pub struct Args {}

impl Verb for Args {
    const NAME: &'static str = "tavern-commit";
    const EXAMPLES: &'static [&'static str] = &["tavern commit"];
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let workspace = context.quick_site(context.board()?)?;
        match commit_now(&workspace)? {
            Some(commit) => {
                let text = format!("the queues are committed as {}", commit.short());
                context
                    .out
                    .record(&json!({ "commit": commit.as_str() }), text)?;
            }
            None if workspace.board.is_volatile() => context.out.note(
                "nothing to commit: task files are yours to commit: git commit FILE; for queues that Tavern commits: tavern init",
            ),
            None => context.out.note(
                "nothing to commit: the queues in git are up to date; see them: tavern status",
            ),
        }
        Ok(Exit::Done)
    }
}
