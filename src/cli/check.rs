//! `tavern-check`: everything wrong with a board, told with its place and a hint.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::{self, Config, ConfigError, Flaw};

use super::{CliError, Context, Exit, Verb};

/// Say what is wrong with a board and its configuration, where, and what to type
#[derive(clap::Args)]
pub struct Args {}

/// One fault.
#[derive(Serialize)]
struct Fault<'a> {
    file: &'a Path,
    line: usize,
    column: usize,
    message: &'a str,
    hint: Option<&'a str>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-check";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let dir = context.shared.dir.clone().unwrap_or_else(|| PathBuf::from(".tavern"));
        if !dir.is_dir() {
            let hint = "make one with `tavern-init`, or say where it is with --dir".to_owned();
            return Err(CliError::new(Exit::Failed, format!("no board in `{}`", dir.display())).with_hint(hint));
        }
        match Config::load(&dir) {
            Ok(_) => {
                context.out.note(format!("nothing is wrong with {}", dir.join(config::FILE).display()));
                Ok(Exit::Done)
            }
            Err(ConfigError::Flawed(flaw)) => {
                print(context, &flaw)?;
                Ok(Exit::BoardHasErrors)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn print(context: &Context, flaw: &Flaw) -> Result<(), CliError> {
    let hint = flaw.hint.as_deref();
    let fault = Fault { file: &flaw.path, line: flaw.line, column: flaw.column, message: &flaw.message, hint };
    let text = hint.map_or_else(|| flaw.to_string(), |hint| format!("{flaw}\nhint: {hint}"));
    context.out.record(&fault, text)
}
