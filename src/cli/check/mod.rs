//! `tavern-check`: everything wrong with a board, told with its place and a hint.

use std::path::{Path, PathBuf};

use crate::board::problem::{Problem, Severity};
use crate::config::{Config, ConfigError};
use crate::store::{Board, Queue};

use super::{CliError, Context, Exit, Verb, human};

pub use args::Args;
pub(super) use fault::Fault;

use fault::{name, shown};
use scene::Scene;

mod args;
mod documents;
mod fault;
mod fix;
mod mentions;
mod preflight;
mod scene;

impl Verb for Args {
    const NAME: &'static str = "tavern-check";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let here = context.here();
        let board = match context.board() {
            Ok(board) => Some(board),
            // A task file may be looked at anywhere.
            Err(_) if !self.files.is_empty() && !self.fix && context.shared.dir.is_none() => None,
            Err(error) => return Err(error),
        };
        let mut faults = Vec::new();
        let config = board.as_ref().map_or_else(
            || Some(Config::default()),
            |board| match Config::load(board.dir()) {
                Ok(config) => Some(config),
                Err(error) => {
                    faults.push(flaw(&error, &here));
                    None
                }
            },
        );
        if !self.files.is_empty() {
            // What is wrong with the settings is not what was asked.
            faults.clear();
        }
        let scene = Scene { board: board.as_ref(), config: config.as_ref(), files: &self.files, here: &here };
        let planned = if self.fix { fix::fix(&self, context, &scene)? } else { Vec::new() };
        let mut pages = documents::gather(scene.board, scene.files, &here, &mut faults)?;
        planned.iter().for_each(|change| change.apply(&mut pages));
        documents::look(&pages, scene.board, scene.config, &mut faults);
        let mut found = Vec::new();
        let looked_at = match scene.whole() {
            Some(board) => {
                found = preflight::check(board, scene.config, &here, &mut faults);
                let is_planned = |file: &str| planned.iter().any(|change| change.name == file);
                faults.retain(|fault| fault.code != "lost-queue" || !is_planned(&fault.file));
                named(board, &shown(board.dir(), &here))
            }
            None => self.files.join(", "),
        };
        faults.iter().try_for_each(|fault| context.out.record(fault, &fault.text))?;
        context.out.flush()?;
        found.iter().for_each(|found| context.out.note(found));
        let count = |severity| faults.iter().filter(|fault| fault.severity == severity).count();
        let (errors, warnings) = (count("error"), count("warning"));
        context.out.note(match (human::count(errors, "error"), human::count(warnings, "warning")) {
            _ if errors + warnings == 0 => format!("nothing is wrong with {looked_at}"),
            (errors, _) if warnings == 0 => errors,
            (_, warnings) if errors == 0 => warnings,
            (errors, warnings) => format!("{errors}, {warnings}"),
        });
        Ok(if errors > 0 { Exit::BoardHasErrors } else { Exit::Done })
    }
}

/// The errors that `queue` would have with this content, in the light of the other queues and of config.yaml.
pub(super) fn errors_if(board: &Board, queue: &Queue, content: &str, here: &Path) -> Result<Vec<Fault>, CliError> {
    let config = Config::load(board.dir()).ok();
    let mut faults = Vec::new();
    let mut pages = documents::gather(Some(board), &[], here, &mut Vec::new())?;
    pages.retain(|page| page.path != queue.path);
    pages.iter_mut().for_each(|page| page.is_wanted = false);
    let page = documents::Page {
        name: shown(&queue.path, here),
        path: queue.path.clone(),
        text: content.to_owned(),
        is_wanted: true,
    };
    pages.insert(0, page);
    documents::look(&pages, Some(board), config.as_ref(), &mut faults);
    faults.retain(|fault| fault.severity == name(Severity::Error));
    Ok(faults)
}

/// What is wrong with config.yaml.
fn flaw(error: &ConfigError, here: &Path) -> Fault {
    let ConfigError::Flawed(flaw) = error else {
        let (path, cause) = match error {
            ConfigError::Read { path, source } => (path.clone(), format!("{error}: {source}")),
            ConfigError::Flawed(_) => (PathBuf::new(), error.to_string()),
        };
        return Fault::whole(Severity::Error, "unreadable-config", &shown(&path, here), cause, error.hint());
    };
    let file = shown(&flaw.path, here);
    let text = std::fs::read_to_string(&flaw.path).unwrap_or_default();
    let Some(start) = offset(&text, flaw.line, flaw.column) else {
        return Fault::whole(Severity::Error, "broken-config", &file, flaw.message.clone(), flaw.hint.clone());
    };
    let word = text[start..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let end = start + word.map(char::len_utf8).sum::<usize>();
    let hint = flaw.hint.clone().unwrap_or_default();
    Fault::at(&file, &text, &Problem::error("broken-config", start..end, flaw.message.clone(), hint))
}

/// Of a line and a column, both counted from 1.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let start = match line.checked_sub(1)? {
        0 => 0,
        before => text.match_indices('\n').nth(before - 1)?.0 + 1,
    };
    let within = text[start..].char_indices().nth(column.checked_sub(1)?);
    Some(within.map_or(text.len(), |(index, _)| start + index))
}

/// A board as messages call it: `queue main and .tavern`.
fn named(board: &Board, folder: &str) -> String {
    match board.queues().unwrap_or_default().as_slice() {
        [] => format!("{folder}, which has no queue"),
        [one] => format!("queue {} and {folder}", one.id),
        several => format!("{} queues and {folder}", several.len()),
    }
}
