//! `tavern-runs`: list, show, read and compare the files of runs.

use serde::Serialize;
use walkdir::WalkDir;

use tavern_run::record::{Metadata, runs};
use tavern_run::unmerged_work::kept;
use tavern_store::Board;
use tavern_sys::clock;
use tavern_sys::files;

use super::format::Painted;
use super::{CliError, Context, Exit, ItemName, OwnRun, Verb, format};

mod diff;
mod follow;
mod grep;
mod list;
mod rebuild;

use diff::find;
use follow::follow;
use grep::Grep;
use list::List;
use rebuild::Rebuild;

/// List, show, search, compare and mend the runs of agents
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

/// Actions on runs.
#[derive(clap::Subcommand)]
pub enum RunsCommand {
    /// List the runs, oldest first (the default)
    List(List),
    /// Show one run and its files
    Show {
        /// A run, or an item for its last run
        run: String,
    },
    /// Print one file of a run
    Cat {
        /// A run, or an item for its last run
        run: String,
        /// The file
        #[arg(default_value = "result.txt")]
        file: String,
    },
    /// Print the output of a run's program live, until the run has ended
    Follow {
        /// A run, or an item for its last run
        run: String,
    },
    /// Search the files of all runs
    Grep(Grep),
    /// Compare two runs: outcome, prompt and changes
    Diff(diff::Diff),
    /// Rebuild missing or damaged files of runs from their logs, the board's log and git
    Rebuild(Rebuild),
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    run: &'a Metadata,
    files: Vec<String>,
    /// Places of unmerged work on its item, in a form that git accepts.
    kept: Vec<String>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-runs";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern runs list --outcome failed",
        "tavern runs cat T-3 prompt.md",
    ];

    /// An agent may look at all runs.
    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        match self.command {
            Some(RunsCommand::Rebuild(_)) => Err(run.refused()),
            _ => Ok(()),
        }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let all = runs(&board)?;
        // The name is that of a run, or of an item for its last run.
        let named = |run: String| match run.parse() {
            Ok(name @ ItemName::Line { .. }) => {
                context.id_of(&board, &name).map(|id| id.to_string())
            }
            _ => Ok(run),
        };
        match self
            .command
            .unwrap_or_else(|| RunsCommand::List(List::default()))
        {
            RunsCommand::List(list) => list.run(context, &board, &all),
            RunsCommand::Show { run } => show(context, &board, find(&all, &named(run)?)?),
            RunsCommand::Cat { run, file } => {
                cat(context, &board, find(&all, &named(run)?)?, &file)
            }
            RunsCommand::Follow { run } => follow(context, &board, find(&all, &named(run)?)?),
            RunsCommand::Grep(grep) => grep.run(context, &board, &all),
            RunsCommand::Diff(diff) => diff.run(context, &board, &all),
            RunsCommand::Rebuild(Rebuild { run }) => {
                let run = run.map(|run| find(&all, &named(run)?)).transpose()?;
                rebuild::rebuild(context, board, run.map_or(&all, std::slice::from_ref))
            }
        }
    }
}

fn files(board: &Board, run: &Metadata) -> Vec<String> {
    let dir = board.run_dir(&run.run);
    let walk = WalkDir::new(&dir)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok);
    walk.filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| {
            Some(
                entry
                    .path()
                    .strip_prefix(&dir)
                    .ok()?
                    .to_string_lossy()
                    .into_owned(),
            )
        })
        .collect()
}

fn show(context: &Context, board: &Board, run: &Metadata) -> Result<Exit, CliError> {
    let files = files(board, run);
    let usage = &run.usage;
    let mut text = format!("{} {}\n", run.run, format::title(&run.title));
    let mut row = |name: &str, value: String| {
        text.push_str(&format!("  {name:<9} {}\n", format::one_line(&value)));
    };
    row(
        "agent",
        format!(
            "{} ({}), attempt {}, runner {}",
            run.agent, run.role, run.attempt, run.runner
        ),
    );
    row("outcome", run.state().to_owned());
    if run.damaged {
        let words = "metadata.json is damaged or missing; rebuild it: tavern runs rebuild";
        row("record", format!("{words} {}", run.run));
    }
    run.reason
        .iter()
        .for_each(|reason| row("reason", reason.clone()));
    if let Some(passed) = run.verified {
        let words = if passed { "passed" } else { "failed" };
        row("verified", words.to_owned());
    }
    run.commit
        .iter()
        .for_each(|commit| row("commit", commit.clone()));
    run.branch
        .iter()
        .for_each(|branch| row("branch", branch.clone()));
    row("worktree", run.worktree.display().to_string());
    let kept = kept(board, |kept| kept.places(&run.task));
    if !kept.is_empty() {
        row("kept", kept.join(" "));
    }
    row("started", clock::dated(run.started));
    if let Some(ended) = run.ended {
        let seconds = (ended - run.started).num_seconds().unsigned_abs();
        let took = format::took_seconds(seconds);
        row("ended", format!("{} after {took}", clock::dated(ended)));
    }
    if usage.is_known() {
        row(
            "spent",
            format!(
                "{}, {} tokens, {} turns",
                format::money(usage.usd),
                format::short(usage.fresh()),
                run.turns
            ),
        );
    }
    run.denials
        .iter()
        .for_each(|denial| row("denied", denial.clone()));
    if !run.knowledge.is_empty() {
        row("knew", run.knowledge.join(" "));
    }
    row("files", files.join(" "));
    context
        .out
        .record(&Shown { run, files, kept }, text.trim_end())?;
    Ok(Exit::Done)
}

fn cat(context: &Context, board: &Board, run: &Metadata, file: &str) -> Result<Exit, CliError> {
    let known = files(board, run);
    if !known.iter().any(|name| name == file) {
        let hint = format!("its files: {}", known.join(", "));
        return Err(CliError::usage(
            format!("run `{}` has no file `{file}`", run.run),
            hint,
        ));
    }
    let path = board.run_dir(&run.run).join(file);
    let bytes = files::read(&path)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end_matches('\n');
    context.out.record(
        &serde_json::json!({"run": run.run, "file": file, "text": text}),
        Painted::whole(text),
    )?;
    Ok(Exit::Done)
}
