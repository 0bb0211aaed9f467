//! `tavern-top`: a live view of the board on a terminal, controlled by keys.

use std::io::{IsTerminal, stdout};

use super::live::view;
use super::status::{self, HowOften};
use super::{CliError, Context, Exit, Format, Verb};

/// Watch the board and its agents on a terminal, and answer, approve and steer by keys
///
/// It shows what needs you, what each agent does right now, the queues and their open items, and what was spent. `?` lists
/// the keys. Where no terminal can be drawn on, it prints what `tavern status` prints.
#[derive(clap::Args)]
pub struct Args {
    /// Only these queues, by name or path [default: all queues]
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-top";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        if view::can_draw(context) {
            return view::run(context, &self.queues);
        }
        let is_terminal = stdout().is_terminal();
        let often = if is_terminal {
            HowOften::AgainAndAgain
        } else {
            HowOften::Once
        };
        let exit = status::Args::of_queues(self.queues, often).run(context)?;
        if context.out.format() == Format::Text {
            context
                .out
                .note("no terminal to draw on: this is what tavern status prints");
        }
        Ok(exit)
    }
}
