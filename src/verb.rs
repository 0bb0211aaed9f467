//! What every verb is: flags, and what it does with them.

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::within::OwnRun;

/// One program's flags and what it does with them.
pub trait Verb: clap::Args {
    /// The program's name, such as `tavern-check`.
    const NAME: &'static str;

    /// It has variables for a shell to take; of others `--format env` is refused before they do anything.
    const HAS_VARIABLES: bool = false;

    /// An agent may do it in its run. What else it may do is for [`Verb::within`] to say, which then isn't asked.
    const FOR_AGENTS: bool = false;

    /// Refuses what an agent may not do, whose run this is.
    ///
    /// # Errors
    /// It is refused.
    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        Err(run.refused())
    }

    fn run(self, context: &Context) -> Result<Exit, CliError>;
}
