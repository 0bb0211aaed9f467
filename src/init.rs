//! `tavern-init`: creates the board, or brings it up to date.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use tavern_core::eligible::DEFAULT_ROLE;
use tavern_core::suggestion::nearest;
use tavern_git::{BOARD_BRANCH, Head, Repository};
use tavern_run::{refuse_tracked, sandbox, settings_made_here};
use tavern_store::config::{self, Config};
use tavern_store::{ATTRIBUTES, Board, HIDES_ALL, IGNORE, KNOWLEDGE, is_queue, whole};
use tavern_sys::files;
use tavern_sys::process::find_program;

use super::flags::DryRun;
use super::{CliError, Context, Exit, Verb};
use merging::missing_settings;

pub(super) mod merging;

/// Make a board in this repository, or bring it up to date
///
/// Writes `.tavern/` with a commented config.yaml, an empty queue and a .gitignore. Git ignores the queues: Tavern keeps their
/// history on the branch tavern/board, and a clone restores it from there. With `--tracked` they are versioned with the code: then a
/// .gitattributes has git merge them item by item, by `tavern merge-driver`, which is set in the repository's own git configuration.
/// Safe to run again: existing files are kept, and only missing lines are added.
#[derive(clap::Args)]
pub struct Args {
    /// The agent program of all roles: claude, shell, or another entry of `runners` [default: claude if it is on the
    /// PATH, else shell]
    #[arg(long)]
    pub runner: Option<String>,

    /// Add sample items
    #[arg(long)]
    pub demo: bool,

    /// Version the queues in the branches of the code, not on a branch of their own
    #[arg(long)]
    pub tracked: bool,

    /// Leave the merging of tracked queues to git: no .gitattributes, and no setting
    #[arg(long)]
    pub no_merge_driver: bool,

    #[command(flatten)]
    pub plan: DryRun,
}

pub(super) const QUEUE: &str = include_str!("../templates/queue.md");
const DEMO: &str = include_str!("../templates/demo.md");

#[derive(Serialize)]
struct Record<'a> {
    file: &'a Path,
    action: &'static str,
}

#[derive(Serialize)]
struct Setting {
    setting: &'static str,
    value: String,
    action: &'static str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-init";
    const EXAMPLES: &'static [&'static str] = &["tavern init --runner claude"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let here = self.place(context);
        let board = context.dried(Board::place(&here)?);
        let repository = Repository::discover(board.root())?;
        let base = match repository.head()? {
            Head::Branch { name, .. } | Head::Unborn { name } => Some(name),
            Head::Detached { .. } => None,
        };
        // Decided once and written to config.yaml, where it is visible; no program is run.
        let at_hand = || {
            if find_program("claude".as_ref()).is_some() {
                "claude"
            } else {
                "shell"
            }
        };
        let runner = self.runner.as_deref().unwrap_or_else(at_hand);
        let is_new = board.is_volatile();
        let queue = if self.demo { DEMO } else { QUEUE };
        let mut files = vec![
            (config::FILE, settings(runner, base.as_deref())?),
            ("queues/main.md", queue.to_owned()),
        ];
        // A file that is not text is not changed.
        let lacking = |name: &str| board.incomplete(name).unwrap_or_default();
        let text =
            |name| lacking(name).map_or_else(|| whole(name).to_owned(), |lacking| lacking.text);
        let was_ignored = files::read_text(board.path(IGNORE)).ok();
        let versioned = if self.tracked {
            Versioned::WithCode
        } else {
            Versioned::of(&board, &repository)?
        };
        let ignored = match was_ignored.as_deref().filter(|text| *text != HIDES_ALL) {
            Some(found) if lacking(IGNORE).is_none() => ended(found),
            _ => text(IGNORE),
        };
        let ignored = versioned.written(ignored);
        let is_tracked =
            versioned == Versioned::AsItIs || ignored.lines().any(|line| line == TRACKED);
        files.push((IGNORE, ignored.clone()));
        if is_tracked && !self.no_merge_driver {
            files.push((ATTRIBUTES, text(ATTRIBUTES)));
        }
        // A drain of a plain file left a .gitignore that hides all of `.tavern/`; a real board shows its
        // queues. An unchanged empty queue can be replaced by sample items.
        let may_replace = |name: &str, text: &str| match name {
            IGNORE if text == HIDES_ALL => true,
            IGNORE => text != ignored && was_ignored.as_deref() == Some(text),
            ATTRIBUTES => {
                lacking(name).is_some_and(|lacking| lacking.found.as_deref() == Some(text))
            }
            _ => self.demo && text == QUEUE,
        };
        if board.is_of_older_version() {
            let refused = |error| CliError {
                exit: Exit::Refused,
                ..CliError::from(error)
            };
            refuse_tracked(&board, &repository).map_err(refused)?;
            if !self.plan.dry_run {
                board.move_private()?;
            }
            let action = if self.plan.dry_run {
                "would_move"
            } else {
                "moved"
            };
            let (file, words) = (board.private(""), "log, leases and locks into");
            let text = format!("{} {words} {}", action.replace('_', " "), file.display());
            context.out.record(
                &Record {
                    file: &file,
                    action,
                },
                text,
            )?;
        }
        // A person or `git clean` removed `.tavern/`, and Tavern knows of items that were there.
        let has_queues = board.path("queues").exists();
        let mut lost = if has_queues {
            Vec::new()
        } else {
            board.lost_queues()?
        };
        let is_back = !lost.is_empty();
        lost.extend(board.lost_files());
        for lost in lost {
            board.put_back(&lost)?;
        }
        let brought = if has_queues || is_tracked || self.plan.dry_run {
            Vec::new()
        } else {
            taken_up(&board, &repository)?
        };
        for (name, text) in &brought {
            files.retain(|(other, _)| other != name);
            files.push((name, text.clone()));
        }
        if brought.iter().any(|(name, _)| !board.path(name).exists()) {
            context.out.note(format!(
                "missing files were restored from the branch {BOARD_BRANCH}"
            ));
        }
        let written = board.set_up(&files, &may_replace)?;
        for ((name, text), is_written) in files.iter().zip(written) {
            if is_written && *name == config::FILE && !self.plan.dry_run {
                settings_made_here(&board, text);
            }
            let action = match (is_written, self.plan.dry_run) {
                (false, _) => "kept",
                (true, true) => "would_write",
                (true, false) => "written",
            };
            let path = board.path(name);
            let file = path.strip_prefix(board.root()).unwrap_or(&path);
            context.out.record(
                &Record { file, action },
                format!("{} {}", action.replace('_', " "), file.display()),
            )?;
        }
        if is_tracked && !self.no_merge_driver {
            self.set_up_merging(context, &repository)?;
        }
        if is_new {
            let commands = if runner == "shell" {
                "an item's own ```sh block".to_owned()
            } else {
                format!("`{runner}`")
            };
            context
                .out
                .note(format!("agents run {commands}; to use another program: tavern agent --runner NAME, or config.yaml"));
            // A script in an item is its owner's own, so no sandbox is proposed.
            if runner != "shell" && sandbox::works_here() {
                context.out.note(
                    "bubblewrap works here: with `sandbox: true` of a role, in config.yaml, its agents write only to their work",
                );
            }
            context
                .out
                .note("next: tavern add \"…\", then tavern agent (or tavern drain)");
        } else {
            self.stands(context, &board)?;
        }
        if is_back && files::read_text(board.path("queues/main.md")).is_ok_and(|now| now != queue) {
            context
                .out
                .note("the earlier items were restored; to start over: rm -r .tavern .git/tavern; git branch -D tavern/board; tavern init");
        }
        // The printed paths are relative to the board's root.
        if here.canonicalize().is_ok_and(|here| here != board.root()) {
            let place = board.root().display();
            let begins = base
                .filter(|_| is_new)
                .map(|base| format!(", and work begins at its branch `{base}`"));
            context.out.note(format!(
                "the board is in {place}{}",
                begins.unwrap_or_default()
            ));
        }
        Ok(Exit::Done)
    }
}

impl Args {
    fn place(&self, context: &Context) -> PathBuf {
        let here = match &context.shared.dir {
            Some(dir) if dir.ends_with(".tavern") => {
                dir.parent().map_or_else(|| dir.clone(), PathBuf::from)
            }
            Some(dir) => dir.clone(),
            None => context.here(),
        };
        if here.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            here
        }
    }

    /// Sets up the merge driver for queues in git's configuration. A person's own setting is kept.
    fn set_up_merging(&self, context: &Context, repository: &Repository) -> Result<(), CliError> {
        for (setting, value) in missing_settings(repository)? {
            let action = if self.plan.dry_run {
                "would_set"
            } else {
                "set"
            };
            if !self.plan.dry_run {
                repository.set(setting, &value)?;
            }
            let words = format!(
                "{} {setting} in the repository's git configuration",
                action.replace('_', " ")
            );
            context.out.record(
                &Setting {
                    setting,
                    value,
                    action,
                },
                words,
            )?;
        }
        Ok(())
    }

    /// Prints notes about a board that existed already.
    fn stands(&self, context: &Context, board: &Board) -> Result<(), CliError> {
        let config = Config::load(board.dir())?;
        let current = config
            .roles
            .get(DEFAULT_ROLE)
            .map(|role| role.runner.as_str())
            .unwrap_or_default();
        match &self.runner {
            Some(wanted) if wanted != current => context.out.note(format!(
                "config.yaml is kept: to change the agents' program, write `runner: {wanted}` under `{DEFAULT_ROLE}:` in it"
            )),
            _ => context.out.note(format!("the board exists; agents run with `{current}`")),
        }
        Ok(())
    }
}

/// The line of .gitignore that says that the queues are versioned with the code.
const TRACKED: &str = "!/queues/";

/// Returns the text, with its last line ended.
fn ended(text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

/// Returns true if .gitignore has a rule for the queues.
pub(super) fn says_of_queues(text: &str) -> bool {
    let names = |line: &str| line.trim().trim_start_matches('!').trim_matches('/') == "queues";
    text.lines().any(names)
}

/// Where the queues of a board are versioned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Versioned {
    /// On a branch of their own: git ignores them.
    Apart,
    /// In the branches of the code.
    WithCode,
    /// In the branches of the code, without a stated reason.
    AsItIs,
}

impl Versioned {
    /// Reads it from git's index.
    pub(super) fn of(board: &Board, repository: &Repository) -> Result<Versioned, CliError> {
        let queues = board.path("queues");
        let tracked = match queues.strip_prefix(repository.main_worktree()) {
            Ok(folder) => repository.tracked_in(folder)?,
            Err(_) => BTreeSet::new(),
        };
        Ok(if tracked.is_empty() {
            Versioned::Apart
        } else {
            Versioned::AsItIs
        })
    }

    /// Adds the lines for queues to the `text` of .gitignore, unless it already has a rule for them.
    pub(super) fn written(self, text: String) -> String {
        let apart =
            format!("# Their history is on the branch {BOARD_BRANCH}.\n/queues/\n/knowledge/\n");
        let with_code = format!("# Versioned with the code.\n{TRACKED}\n!/knowledge/\n");
        let (text, lines) = match self {
            Versioned::Apart => (text, &*apart),
            Versioned::WithCode => (text.replace(&apart, ""), &*with_code),
            Versioned::AsItIs => (text, ""),
        };
        if says_of_queues(&text) {
            text
        } else {
            text + lines
        }
    }
}

/// Returns the files on the board's branch, by their names in the board, for a clone or after `git clean`.
fn taken_up(board: &Board, repository: &Repository) -> Result<Vec<(String, String)>, CliError> {
    let Ok(folder) = board.dir().strip_prefix(repository.main_worktree()) else {
        return Ok(Vec::new());
    };
    let own = |(path, text): (PathBuf, String)| {
        let name = path.strip_prefix(folder).ok()?;
        let is_own = ["queues", "queues/archive", KNOWLEDGE]
            .iter()
            .any(|above| name.parent() == Some(Path::new(above)));
        let shows_states = name.to_str()?.ends_with(".state.yaml");
        (is_own && (is_queue(name) || shows_states)).then_some((name.to_str()?.to_owned(), text))
    };
    let files = repository.board_files(folder)?.into_iter();
    Ok(files.filter_map(own).collect())
}

/// Returns config.yaml with the agent program set.
fn settings(runner: &str, base: Option<&str>) -> Result<String, CliError> {
    let known: Vec<String> = Config::default().runners.into_keys().collect();
    if known.iter().any(|name| name == runner) {
        return Ok(config::written(runner, base));
    }
    let hint = match nearest(runner, known.iter().map(String::as_str)) {
        Some(guess) => format!("did you mean `{guess}`?"),
        None => format!(
            "one of: {}; others can be added to config.yaml later",
            known.join(", ")
        ),
    };
    Err(CliError::usage(format!("no runner `{runner}`"), hint))
}
