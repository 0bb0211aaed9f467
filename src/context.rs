//! The context that a verb runs with.

use std::sync::OnceLock;

use clap::{ArgMatches, ColorChoice};

use tavern_store::Board;
use tavern_sys::interrupt::Interrupt;

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::shared::Shared;
use super::signals;

/// The shared flags, the output, and the interrupt.
pub struct Context {
    pub shared: Shared,
    pub out: Output,
    /// Dry run: nothing is written.
    pub is_dry: bool,
    interrupt: OnceLock<Interrupt>,
    /// The board that was found first.
    pub(super) found: OnceLock<Board>,
}

impl Context {
    pub(super) fn new(shared: Shared, matches: &ArgMatches) -> Context {
        let color = match shared.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        color.write_global();
        let is_dry = matches
            .try_get_one("dry_run")
            .is_ok_and(|dry_run| dry_run == Some(&true));
        let out = Output::stdout(&shared);
        Context {
            shared,
            out,
            is_dry,
            interrupt: OnceLock::new(),
            found: OnceLock::new(),
        }
    }

    /// Returns a context for another thread, which does not get the interrupt.
    pub(super) fn apart(&self) -> Context {
        let out = Output::stdout(&self.shared);
        Context {
            shared: self.shared.clone(),
            out,
            is_dry: self.is_dry,
            interrupt: OnceLock::new(),
            found: OnceLock::new(),
        }
    }

    /// Returns the interrupt, raised by SIGINT, SIGTERM and SIGHUP from the first call on. A program that
    /// never calls this is ended at once, which is right if it only reads or changes the board in one step.
    pub fn interrupt(&self) -> Result<&Interrupt, CliError> {
        if let Some(interrupt) = self.interrupt.get() {
            return Ok(interrupt);
        }
        let interrupt = Interrupt::new();
        signals::forward(&signals::ENDING, &interrupt)
            .and_then(|()| signals::end_in_time(&interrupt))?;
        Ok(self.interrupt.get_or_init(|| interrupt))
    }

    /// Returns the exit code that a raised interrupt asks for.
    pub fn interrupted(&self) -> Option<Exit> {
        self.interrupt
            .get()
            .and_then(Interrupt::cause)
            .map(Exit::from)
    }
}
