//! The flags of `tavern report`.

use crate::flags::{DryRun, HeldItemFlags};
use tavern_core::task::Mode;

/// Record the result of an item that you hold
///
/// Without a flag, the outcome of `tavern spawn`. A success is verified first: the item's `done_when` is run at the commit, and
/// the item is approved, or goes into review, only if all of it passes; else it exits with 6. A person judges work in review
/// with --approve and --reject, without a token.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub held: HeldItemFlags,

    /// The work is done: verify it
    #[arg(long, group = "what")]
    pub done: bool,

    /// The work failed, for the reason given
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "reported as failed", group = "what")]
    pub failed: Option<String>,

    /// A question that a person has to answer first
    #[arg(long, value_name = "QUESTION", group = "what")]
    pub waiting: Option<String>,

    /// Approve the work in review; or allow an item to start that needs permission
    #[arg(long, group = "what")]
    pub approve: bool,

    /// Reject the work in review, with your findings; `-` reads them from standard input
    #[arg(long, value_name = "FINDINGS", group = "what")]
    pub reject: Option<String>,

    /// The mode of your work from now on: execute, delegate, plan, break_up or unify
    #[arg(long, value_name = "MODE", group = "what", value_parser = mode_named)]
    pub mode: Option<Mode>,

    /// Tick the N-th step of the item, counted from 1; may be given several times
    #[arg(long = "step", value_name = "N", group = "what")]
    pub steps: Vec<usize>,

    #[command(flatten)]
    pub plan: DryRun,
}

fn mode_named(name: &str) -> Result<Mode, String> {
    name.parse().map_err(|()| {
        format!(
            "unknown mode; one of {}",
            Mode::ALL.map(Mode::as_str).join(", ")
        )
    })
}
