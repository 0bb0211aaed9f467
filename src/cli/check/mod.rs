//! `tavern-check`: everything wrong with a board, told with its place and a hint.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::board::problem::{Position, Problem, Severity, render};
use crate::config::{Config, ConfigError};
use crate::store::{Board, Queue};

use super::{CliError, Context, Exit, Verb, human};

mod documents;
mod fix;
mod mentions;
mod preflight;

/// Say what is wrong with a board and its configuration, where, and what to type
///
/// Looks at config.yaml, all queues, templates and leases, at what died and was not cleared up, and whether the agents
/// could start; of files that are named, at these alone. Exits with 5 if there are errors, with 0 if there are only
/// warnings. Changes nothing, unless told to with --fix.
#[derive(clap::Args)]
pub struct Args {
    /// Only these queues or task files, by name or path
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// Mend what needs no person: IDs that stand twice or are missing, misspelt lanes, lost queues, what died. Shows what
    /// it does; on a terminal it asks first
    #[arg(long)]
    pub fix: bool,

    /// Print what --fix would do, and what it would leave
    #[arg(long, short = 'n', requires = "fix")]
    pub dry_run: bool,

    /// Don't ask
    #[arg(long, short, requires = "fix")]
    pub yes: bool,
}

/// What to do about a limit that a runner does not keep.
const KEPT: &str = "set `minutes` or `memory_mb`, which every runner keeps, or use a runner of kind claude";

/// That `runner` does not keep some of a budget's limits.
fn not_kept(runner: &str, limits: &[&str]) -> String {
    let names: Vec<String> = limits.iter().map(|limit| format!("`{limit}`")).collect();
    format!("the runner `{runner}` does not keep the limit on {}", names.join(", "))
}

/// One thing that is wrong.
#[derive(Serialize)]
pub(super) struct Fault {
    /// From the folder that the program was started in, if it is below.
    file: String,
    /// Counted from 1, if it is about one place.
    pub(super) line: Option<usize>,
    /// In characters, counted from 1.
    column: Option<usize>,
    severity: &'static str,
    /// A stable name for programs.
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// As people read it.
    #[serde(skip)]
    text: String,
}

impl Fault {
    /// At one place of a text.
    fn at(file: &str, text: &str, problem: &Problem) -> Fault {
        let place = Position::of(text, problem.span.start);
        Fault {
            file: file.to_owned(),
            line: Some(place.line),
            column: Some(place.column),
            severity: name(problem.severity),
            code: problem.code,
            message: problem.message.clone(),
            hint: (!problem.hint.is_empty()).then(|| problem.hint.clone()),
            text: render(file, text, problem).trim_end().to_owned(),
        }
    }

    /// About a file, or a folder, as a whole.
    fn whole(severity: Severity, code: &'static str, file: &str, message: String, hint: Option<String>) -> Fault {
        let mut text = format!("{file}: {}: {message}", name(severity));
        if let Some(hint) = &hint {
            text.push_str(&format!("\n  = hint: {hint}"));
        }
        Fault { file: file.to_owned(), line: None, column: None, severity: name(severity), code, message, hint, text }
    }
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

impl Verb for Args {
    const NAME: &'static str = "tavern-check";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let here = context.here();
        let board = match context.board() {
            Ok(board) => Some(board),
            // A task file may be looked at anywhere.
            Err(_) if !self.files.is_empty() && context.shared.dir.is_none() => None,
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
        let planned = if self.fix { fix::fix(&self, context, &scene)? } else { fix::Planned::default() };
        let mut pages = documents::gather(scene.board, scene.files, &here, &mut faults)?;
        planned.apply(&mut pages);
        documents::look(&pages, scene.board, scene.config, &mut faults);
        let mut found = Vec::new();
        let looked_at = match scene.whole() {
            Some(board) => {
                found = preflight::check(board, scene.config, &here, &planned, &mut faults);
                format!("{} and {}", named(board), shown(board.dir(), &here))
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

/// What is looked at.
struct Scene<'a> {
    board: Option<&'a Board>,
    /// Nothing if it can't be read.
    config: Option<&'a Config>,
    /// These alone, if any are named.
    files: &'a [String],
    here: &'a Path,
}

impl<'a> Scene<'a> {
    /// The board, if all of it is looked at.
    fn whole(&self) -> Option<&'a Board> {
        self.board.filter(|_| self.files.is_empty())
    }
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

/// A path as people would type it.
fn shown(path: &Path, here: &Path) -> String {
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// The queues of a board as messages call them: `main`, `2 queues`.
fn named(board: &Board) -> String {
    match board.queues().unwrap_or_default().as_slice() {
        [] => "no queue".to_owned(),
        [one] => format!("queue {}", one.id),
        several => format!("{} queues", several.len()),
    }
}
