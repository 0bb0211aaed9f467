//! `tavern-reap`: clean up after dead holders.

use tavern_run::reap::{ExpiredLeases, Scope, execute, plan};

use super::flags::DryRun;
use super::{CliError, Context, Exit, Verb};

/// Clean up after processes that died: leases, worktrees, temp files
///
/// No work of an agent is lost: the changes in a worktree are kept under refs/tavern/salvage before it is removed. Items that
/// ended long ago are moved to their queue's archive; merged branches and leftovers of old runs are removed. Prints each action
/// in a line; `--dry-run` prints the same and does nothing.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub plan: DryRun,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-reap";
    const EXAMPLES: &'static [&'static str] = &["tavern reap --dry-run"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let workspace = context.quick_site(context.board()?)?;
        let mut looks = ExpiredLeases::load(&workspace.board);
        if context.is_dry && !workspace.board.is_settled()? {
            let cause = "a queue was saved by hand, or a program was killed";
            context.out.note(format!(
                "{cause}: a real run imports that first, and may find more to do"
            ));
        }
        // Settle first, so that the plan sees no half-finished changes.
        workspace.board.settle()?;
        let slot = workspace.board.reap_slot()?;
        let mut failure = None;
        for action in plan(&workspace, Scope::All, &mut looks)? {
            match execute(&workspace, &action, &slot) {
                Ok(true) => context.out.record(&action, &action)?,
                Ok(false) => {}
                // A failure does not keep the rest from being cleared.
                Err(error) => {
                    let earlier = failure.replace(error);
                    earlier
                        .iter()
                        .for_each(|error| context.out.note(error.to_string()));
                }
            }
        }
        if !context.is_dry {
            looks.save(&workspace.board)?;
        }
        failure.map_or(Ok(Exit::Done), |error| Err(error.into()))
    }
}
