//! What a verb is run with.

use std::sync::OnceLock;

use clap::{ArgMatches, ColorChoice};

use tavern_store::Board;
use tavern_sys::interrupt::Interrupt;

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::shared::Shared;
use super::signals;

/// The shared flags, the output, and the request to end.
pub struct Context {
    pub shared: Shared,
    pub out: Output,
    /// Only what would be done is printed: nothing is written.
    pub is_dry: bool,
    interrupt: OnceLock<Interrupt>,
    /// The board that was asked for first.
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

    /// The same for another thread, which is asked for no end.
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

    /// Raised by SIGINT, SIGTERM and SIGHUP from the first call on. A program that never calls it is ended by them at
    /// once, which is right for one that only reads, or changes the board in one step.
    pub fn interrupt(&self) -> Result<&Interrupt, CliError> {
        if let Some(interrupt) = self.interrupt.get() {
            return Ok(interrupt);
        }
        let interrupt = Interrupt::new();
        signals::forward(&signals::ENDING, &interrupt)
            .and_then(|()| signals::end_in_time(&interrupt))?;
        Ok(self.interrupt.get_or_init(|| interrupt))
    }

    /// The exit that a raised interrupt asks for.
    pub fn interrupted(&self) -> Option<Exit> {
        self.interrupt
            .get()
            .and_then(Interrupt::cause)
            .map(Exit::from)
    }
}
