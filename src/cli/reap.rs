//! `tavern-reap`: clear up after what died.

use crate::run::reap::{Action, Looks, Scope, execute, plan};

use super::{CliError, Context, Exit, Verb};

/// Clear up after what died: leases, processes, worktrees, temp files
///
/// Nothing that an agent made is thrown away: what a worktree holds is kept under refs/tavern/salvage before the
/// worktree is removed. Prints what it does, a line each; `--dry-run` prints the same and does nothing.
#[derive(clap::Args)]
pub struct Args {
    /// Print what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-reap";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let site = context.quick_site(context.board()?)?;
        if self.dry_run {
            for action in plan(&site, Scope::All, &mut Looks::default())? {
                print(context, &action)?;
            }
            return Ok(Exit::Done);
        }
        let slot = site.board.reap_slot()?;
        // Giving a task back can end it, and an ended task's worktree is cleared in the next round.
        for _ in 0..3 {
            let actions = plan(&site, Scope::All, &mut Looks::default())?;
            if actions.is_empty() {
                break;
            }
            for action in actions {
                print(context, &action)?;
                execute(&site, &action, &slot)?;
            }
        }
        Ok(Exit::Done)
    }
}

fn print(context: &Context, action: &Action) -> Result<(), CliError> {
    context.out.record(action, action)
}
