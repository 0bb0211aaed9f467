//! `tavern pause` and `tavern resume`: the files that switch the loops of a board off and on.
#![expect(
    clippy::disallowed_methods,
    reason = "a person's switch is removed when they say so"
)]

use std::fs;
use std::io::ErrorKind;

use serde_json::json;

use tavern_core::task::TaskId;
use tavern_store::Switch;

use super::{CliError, Context, Exit, Verb};

/// Start nothing new on this board, until `tavern resume`
///
/// Agents finish their items, and then wait. To end them at once: echo why > .tavern/STOP
#[derive(clap::Args)]
pub struct Pause {
    /// The reason, which agents and `tavern status` show
    #[arg(value_name = "WHY")]
    pub why: Vec<String>,
}

impl Verb for Pause {
    const NAME: &'static str = "tavern-pause";
    const EXAMPLES: &'static [&'static str] = &["tavern pause lunch"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        if let [word] = self.why.as_slice() {
            let task = word.parse::<TaskId>().ok();
            if let Some(found) = task.and_then(|task| board.task(&task).ok()) {
                let id = found.task.id;
                let message = format!("`{id}` is an item, and this pauses the whole board");
                let hint = format!("pause its run: tavern tell {id} --pause \"why\"");
                return Err(CliError::usage(message, hint));
            }
        }
        let why = self.why.join(" ");
        let text = if why.is_empty() {
            String::new()
        } else {
            why + "\n"
        };
        tavern_store::replace(&board.path("PAUSE"), text.as_bytes())?;
        context.out.record(
            &json!({"paused": true}),
            "paused; to go on: tavern resume".to_owned(),
        )?;
        Ok(Exit::Done)
    }
}

/// Resume the agents of this board after `tavern pause` or a STOP file
#[derive(clap::Args)]
pub struct Resume {}

impl Verb for Resume {
    const NAME: &'static str = "tavern-resume";
    const EXAMPLES: &'static [&'static str] = &["tavern resume"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        if board.switch() == Switch::On {
            let hint = "to go on with an item: tavern release ID, or tavern tell ID --resume";
            return Err(CliError::new(Exit::NothingToDo, "the board is not paused")
                .with_hint(hint.to_owned()));
        }
        for name in ["STOP", "PAUSE"] {
            match fs::remove_file(board.path(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        context
            .out
            .record(&json!({"paused": false}), "resumed".to_owned())?;
        Ok(Exit::Done)
    }
}
