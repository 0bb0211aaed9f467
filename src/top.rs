//! `tavern-top`: a live view of the board on a terminal, controlled by keys.

use std::io::{IsTerminal, stdout};

use super::live::view;
use super::status::{self, HowOften};
use super::{CliError, Context, Exit, Format, Verb};

/// Watch the board and its agents on a terminal; answer, approve and steer by keys
///
/// Shows the items that need you, each agent's activity, the queues and their open items, and the spending. `?` lists the keys.
/// Without a terminal it prints the output of `tavern status`.
#[derive(clap::Args)]
pub struct Args {
    /// Only these queues, by name or path [default: all queues]
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-top";
    const EXAMPLES: &'static [&'static str] = &["tavern top main"];

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
                .note("not a terminal: printing the output of tavern status");
        }
        Ok(exit)
    }
}
