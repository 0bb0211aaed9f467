//! `tavern-ask`: answers questions from the board, and queues requests for work.

use super::flags::{DryRun, NewItemFlags};
use super::shared::words_for_agent;
use super::{CliError, Context, Exit, OwnRun, Verb, plan};
use tavern_store::Board;
use tavern_store::config::Config;

mod inquiry;
mod intent;
mod passage;
mod passage_index;
mod searched;

use inquiry::inquire;
use intent::Intent;
use searched::Searched;

/// Ask a question about the board: search items, runs, learnings and the log
///
/// Searches for the words of the question, in English also for their other forms. Prints the best match first, and the command
/// that shows all of it. With `ask: role` in config.yaml an agent answers from the matches. Text that is no question is work:
/// it is queued for a planner, as by `tavern plan`.
#[derive(clap::Args)]
pub struct Args {
    /// The question, or the work; `-`, or nothing, reads it from standard input
    #[arg(value_name = "QUESTION")]
    pub words: Vec<String>,

    /// The maximum number of sources
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub most: u16,

    /// Treat the text as a question or as work, regardless of its wording
    #[arg(long = "as", value_name = "KIND")]
    pub intent: Option<Intent>,

    /// The queue for work
    #[arg(long, value_name = "QUEUE", default_value = "main")]
    pub queue: String,

    /// The role that answers from the matches [default: `ask: role` of config.yaml, else none]
    #[arg(long, conflicts_with = "no_model")]
    pub role: Option<String>,

    /// Print the matches only, without an agent's answer
    #[arg(long)]
    pub no_model: bool,

    #[command(flatten)]
    pub plan: DryRun,
}

impl Args {
    /// Returns the role that answers, if any.
    fn answerer(&self, context: &Context, board: &Board) -> Result<Option<String>, CliError> {
        if self.no_model || self.plan.dry_run || context.own_run().is_some() {
            return Ok(None);
        }
        Ok(self.role.clone().map_or_else(
            || Config::load(board.dir()).map(|config| config.ask.role),
            |role| Ok(Some(role)),
        )?)
    }
}

impl Verb for Args {
    const NAME: &'static str = "tavern-ask";
    const EXAMPLES: &'static [&'static str] = &["tavern ask \"did we check the backups before?\""];

    /// An agent may ask questions, but not queue work.
    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        if self.intent == Some(Intent::Question) {
            Ok(())
        } else {
            Err(run.refused())
        }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let example = "tavern ask \"did we check the backup?\"";
        let text = words_for_agent(
            &self.words,
            ["question", "the question"],
            "ask less at once",
            example,
        )?;
        // A flag about the answer implies a question.
        let is_asked = self.no_model || self.role.is_some();
        let sounds = || {
            if is_asked {
                Intent::Question
            } else {
                Intent::of(&text)
            }
        };
        match self.intent.unwrap_or_else(sounds) {
            Intent::Question => {
                let board = context.board()?;
                match self.answerer(context, &board)? {
                    Some(role) => inquire(context, &board, &text, &role, self.most),
                    None => Searched::of(context, &board, &text, self.most)?.print(context),
                }
            }
            Intent::Work => {
                let exit = plan::Args {
                    request: vec![text],
                    queue: self.queue,
                    item: NewItemFlags::default(),
                    no_model: false,
                    note: false,
                    role: None,
                    plan: self.plan,
                }
                .run(context)?;
                if self.intent.is_none() {
                    context.out.note(
                        "queued as work; to ask a question instead: tavern ask --as question …",
                    );
                }
                Ok(exit)
            }
        }
    }
}
