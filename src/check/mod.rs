//! `tavern-check`: reports all problems of a board, with places and hints.

use std::fs;
use std::path::Path;

use tavern_core::problem::{Problem, Severity};
use tavern_store::config::{Config, ConfigError, FILE, SCHEDULES, Schedules};
use tavern_store::{Board, Queue};
use tavern_sys::process::quoted;

use super::{CliError, Context, Exit, OwnRun, Verb, format, hints};

pub(super) use fault::{Fault, shown};

use fault::Faults;

mod documents;
mod fault;
mod fix;
mod git_files;
mod mentions;
mod preflight;

/// Check a board and its configuration; print each problem, its place and its fix
///
/// Checks config.yaml, all queues, templates and leases, leftovers of dead processes, and whether the agents could start; with
/// arguments, only these files. Exits with 5 if there are errors, with 8 if a save was set aside that a person has to decide
/// on, with 0 if there are only warnings. Changes nothing without --fix.
#[derive(clap::Args)]
pub struct Args {
    /// Only these queues or task files, by name or path; or config.yaml
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// Fix problems that need no person: replace duplicate IDs, restore lost files and lines; print each fix
    #[arg(long)]
    pub fix: bool,

    /// Print the fixes of --fix, and the problems that it would leave
    #[arg(long, short = 'n', requires = "fix")]
    pub dry_run: bool,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-check";
    const EXAMPLES: &'static [&'static str] =
        &["tavern check TODO.md", "tavern check --fix --dry-run"];

    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        if self.fix { Err(run.refused()) } else { Ok(()) }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let here = context.here();
        let board = match context.board() {
            Ok(board) => Some(board),
            // A task file may be checked and fixed anywhere.
            Err(_) if !self.files.is_empty() && self.fix => {
                Some(context.board_or_place(&self.files)?)
            }
            Err(_) if !self.files.is_empty() && context.shared.dir.is_none() => None,
            Err(error) => return Err(error),
        };
        let settings = board
            .as_ref()
            .and_then(|board| fs::canonicalize(board.path(FILE)).ok());
        // config.yaml is found by its name from anywhere in the repository.
        let folders = || {
            let of_board = board.iter().flat_map(|board| [board.root(), board.dir()]);
            std::iter::once(here.as_path()).chain(of_board)
        };
        let is_settings = |name: &String| {
            let found = folders().find_map(|folder| fs::canonicalize(folder.join(name)).ok());
            settings.is_some() && found == settings
        };
        let of_settings = self.files.iter().find(|name| is_settings(name));
        if let Some(name) = of_settings.filter(|_| self.fix || self.files.len() > 1) {
            let hint = format!("look at it by itself: tavern check {}", quoted(name));
            return Err(CliError::usage(
                format!("`{name}` is not a list of items"),
                hint,
            ));
        }
        let files: &[String] = if of_settings.is_some() {
            &[]
        } else {
            &self.files
        };
        let mut faults = Faults {
            here: &here,
            found: Vec::new(),
        };
        let config = match board
            .as_ref()
            .map(|board| Config::load(board.dir()))
            .transpose()
        {
            Ok(config) => Some(config.unwrap_or_default()),
            Err(error) => {
                // If files are named, problems of the settings are not reported.
                faults
                    .found
                    .extend(files.is_empty().then(|| flaw(&error, &here, CONFIG)));
                None
            }
        };
        if let Some(board) = board.as_ref().filter(|_| files.is_empty()) {
            look_at_schedules(board, &mut faults);
        }
        if let Some(board) = board.as_ref().filter(|_| self.fix)
            && board.lost_queues()?.is_empty()
        {
            // As in any program, external edits are first taken over.
            board.settle()?;
        }
        let mut pages = documents::gather(board.as_ref(), files, &mut faults)?;
        let mended = match &board {
            Some(board) if self.fix => fix::fix(context, board, files, &mut pages)?,
            _ => Vec::new(),
        };
        documents::look(&pages, board.as_ref(), config.as_ref(), &mut faults);
        let mut found = Vec::new();
        let looked_at = match board.filter(|_| files.is_empty()) {
            Some(board) => {
                found = preflight::check(&board, config.as_ref(), &mut faults);
                faults.found.retain(|fault| {
                    !fault.code.starts_with("lost-") || !mended.contains(&fault.file)
                });
                let own = of_settings.map(|_| shown(&board.path(FILE), &here));
                faults
                    .found
                    .retain(|fault| own.as_ref().is_none_or(|own| fault.file == *own));
                own.unwrap_or_else(|| named(&board, &shown(board.dir(), &here)))
            }
            None => files.join(", "),
        };
        let faults = faults.found;
        faults
            .iter()
            .try_for_each(|fault| context.out.record(fault, &fault.text))?;
        context.out.flush()?;
        found.iter().for_each(|found| context.out.note(found));
        let count = |severity| {
            faults
                .iter()
                .filter(|fault| fault.severity == severity)
                .count()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        context.out.note(
            match (
                format::count(errors, "error"),
                format::count(warnings, "warning"),
            ) {
                _ if errors + warnings == 0 => format!("no problems in {looked_at}"),
                (errors, _) if warnings == 0 => errors,
                (_, warnings) if errors == 0 => warnings,
                (errors, warnings) => format!("{errors}, {warnings}"),
            },
        );
        let waits = faults
            .iter()
            .any(|fault| fault.code == preflight::SET_ASIDE);
        Ok(match errors {
            0 if waits => Exit::WaitingForPerson,
            0 => Exit::Done,
            _ => Exit::BoardHasErrors,
        })
    }
}

/// Returns the errors that queues would have with these texts, given the other queues and the config. Without
/// a config, only errors of the texts are returned.
pub(super) fn errors_if(
    board: &Board,
    texts: &[(&Queue, &str)],
    config: Option<&Config>,
    here: &Path,
) -> Result<Vec<Fault>, CliError> {
    let mut faults = Faults {
        here,
        found: Vec::new(),
    };
    let mut others = documents::gather(Some(board), &[], &mut faults)?;
    // Problems of reading the other queues don't count.
    faults.found.clear();
    others.retain(|page| texts.iter().all(|(queue, _)| page.path != queue.path));
    others.iter_mut().for_each(|page| page.is_wanted = false);
    let pages = texts.iter().map(|(queue, text)| documents::Page {
        name: shown(&queue.path, here),
        path: queue.path.clone(),
        text: (*text).to_owned(),
        is_wanted: true,
    });
    // The text comes from a person here, not from git.
    let board = board.clone().trusting_all();
    documents::look(
        &pages.chain(others).collect::<Vec<_>>(),
        Some(&board),
        config,
        &mut faults,
    );
    faults
        .found
        .retain(|fault| fault.severity == Severity::Error);
    Ok(faults.found)
}

/// Reports problems of the board's schedules.
fn look_at_schedules(board: &Board, faults: &mut Faults<'_>) {
    let flawed = |error| flaw(&error, faults.here, SCHEDULE);
    let schedules = match Schedules::load(board.dir()) {
        Ok(schedules) => schedules,
        Err(error) => return faults.found.push(flawed(error)),
    };
    let flaws = schedules
        .flaws
        .into_iter()
        .map(|flaw| flawed(ConfigError::Flawed(Box::new(flaw))));
    let mut found: Vec<Fault> = flaws.collect();
    for schedule in schedules
        .all
        .iter()
        .filter(|schedule| board.queue_by_id(&schedule.queue).is_err())
    {
        let (name, queue) = (&schedule.name, quoted(&*format::words(&schedule.queue)));
        let message = format!("`{name}` adds to queue {queue}, which does not exist");
        let hint = Some(format!(
            "create it: tavern add --queue {queue} --create \"…\""
        ));
        let path = shown(&board.path(SCHEDULES), faults.here);
        found.push(Fault::whole(
            Severity::Error,
            "no-queue",
            &path,
            message,
            hint,
        ));
    }
    faults.found.extend(found);
}

/// The codes of a flaw in config.yaml and in schedules: for an unreadable file, and for a wrong one.
const CONFIG: [&str; 2] = ["unreadable-config", "broken-config"];
const SCHEDULE: [&str; 2] = ["unreadable-schedules", "broken-schedule"];

/// Converts an error of settings to a problem.
fn flaw(error: &ConfigError, here: &Path, [unreadable, broken]: [&'static str; 2]) -> Fault {
    let flaw = match error {
        ConfigError::Read { path, source } => {
            let (path, cause) = (shown(path, here), format!("{error}: {source}"));
            return Fault::whole(
                Severity::Error,
                unreadable,
                &path,
                cause,
                hints::config(error),
            );
        }
        ConfigError::Flawed(flaw) => flaw,
    };
    let (path, message) = (shown(&flaw.path, here), flaw.message.clone());
    match flaw.span.clone() {
        None => Fault::whole(
            Severity::Error,
            broken,
            &path,
            message,
            hints::config(error),
        ),
        Some(span) => {
            let problem = Problem::error(
                broken,
                span,
                message,
                hints::config(error).unwrap_or_default(),
            );
            Fault::at(&path, &flaw.text, &problem)
        }
    }
}

/// Describes a board in messages: `queue main and .tavern`.
fn named(board: &Board, folder: &str) -> String {
    match board.queues().unwrap_or_default().as_slice() {
        [] => format!("{folder}, which has no queue"),
        [one] => format!("queue {} and {folder}", one.id),
        several => format!("{} queues and {folder}", several.len()),
    }
}
