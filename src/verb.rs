//! The trait of all verbs: their flags and actions.

use super::agent_permissions::OwnRun;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;

/// A program's flags and its action.
pub trait Verb: clap::Args {
    /// The program's name, such as `tavern-check`.
    const NAME: &'static str;

    /// Command lines for its help.
    const EXAMPLES: &'static [&'static str];

    /// Whether it can print shell variables; other verbs refuse `--format env` before they act.
    const HAS_VARIABLES: bool = false;

    /// Whether agents may use it freely in their runs; otherwise [`Verb::within`] decides.
    const FOR_AGENTS: bool = false;

    /// Refuses actions that the agent of `run` may not do.
    ///
    /// # Errors
    /// The action is refused.
    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        Err(run.refused())
    }

    fn run(self, context: &Context) -> Result<Exit, CliError>;
}
