//! `tavern-init`: make or bring up to date the blackboard.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::config;
use crate::git::{Head, Repository};
use crate::store::{Board, GITIGNORE, replace};

use super::{CliError, Context, Exit, Verb};

/// Make a board in this repository, or bring it up to date
///
/// Writes `.tavern/` with a commented config.yaml, an empty queue and a .gitignore for the volatile part. Safe to run
/// again: nothing that is there is overwritten.
#[derive(clap::Args)]
pub struct Args {
    /// The agent program of all roles: claude, shell, or another entry of `runners` [default: claude if it is on the
    /// PATH, else shell]
    #[arg(long)]
    pub runner: Option<String>,

    /// Add sample items
    #[arg(long)]
    pub demo: bool,

    /// Print what would be written
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const QUEUE: &str = include_str!("../../templates/queue.md");
const DEMO: &str = include_str!("../../templates/demo.md");

#[derive(Serialize)]
struct Record {
    file: PathBuf,
    action: &'static str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-init";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let here = self.place(context)?;
        let board = Board::place(&here)?;
        let repository = Repository::discover(board.root())?;
        let base = match repository.head()? {
            Head::Branch { name, .. } | Head::Unborn { name } => Some(name),
            Head::Detached { .. } => None,
        };
        let runner = self.runner.clone().unwrap_or_else(|| runner_at_hand().to_owned());
        let queue = if self.demo { DEMO } else { QUEUE };
        let files = [
            (config::FILE, config::written(&runner, base.as_deref())),
            ("queues/main.md", queue.to_owned()),
            (".gitignore", GITIGNORE.to_owned()),
        ];
        if !self.dry_run {
            board.make_folders()?;
            let queues = board.path("queues");
            fs::create_dir_all(&queues).map_err(|error| failed(&queues, &error))?;
        }
        for (name, text) in files {
            self.write(context, &board, name, &text)?;
        }
        if !self.dry_run {
            self.next_steps(context, &runner);
        }
        Ok(Exit::Done)
    }
}

impl Args {
    fn place(&self, context: &Context) -> Result<PathBuf, CliError> {
        let here = match &context.shared.dir {
            Some(dir) if dir.ends_with(".tavern") => dir.parent().map_or_else(|| dir.clone(), PathBuf::from),
            Some(dir) => dir.clone(),
            None => context.here(),
        };
        Ok(if here.as_os_str().is_empty() { PathBuf::from(".") } else { here })
    }

    fn write(&self, context: &Context, board: &Board, name: &str, text: &str) -> Result<(), CliError> {
        let path = board.path(name);
        // A drain of a plain file left a .gitignore that hides all of `.tavern/`; a real board shows its queues.
        let is_ours = fs::read_to_string(&path).is_ok_and(|found| name == ".gitignore" && found == "*\n");
        let action = match (path.exists() && !is_ours, self.dry_run) {
            (true, _) => "kept",
            (false, true) => "would_write",
            (false, false) => {
                replace(&path, text.as_bytes())?;
                "written"
            }
        };
        let file = path.strip_prefix(board.root()).unwrap_or(&path).to_owned();
        let words = action.replace('_', " ");
        context.out.record(&Record { file: file.clone(), action }, format!("{words} {}", file.display()))
    }

    fn next_steps(&self, context: &Context, runner: &str) {
        context
            .out
            .note(format!("agents run with `{runner}`; another one: tavern-agent --runner NAME, or config.yaml"));
        context.out.note("next: write items into .tavern/queues/main.md, then tavern-agent --role coder");
    }
}

/// Found once, and written into config.yaml where everybody sees it; nothing is run.
fn runner_at_hand() -> &'static str {
    if crate::process::find_program("claude".as_ref()).is_some() { "claude" } else { "shell" }
}

fn failed(path: &std::path::Path, error: &std::io::Error) -> CliError {
    CliError {
        causes: vec![error.to_string()],
        ..CliError::new(Exit::Failed, format!("can't make `{}`", path.display()))
    }
}
