//! `tavern-runs`: list, show, read and compare what runs left.

use serde::Serialize;
use walkdir::WalkDir;

use crate::board::task::{TaskId, Timestamp};
use crate::clock;
use crate::config::Config;
use crate::files;
use crate::git::Repository;
use crate::run::record::{Metadata, runs};
use crate::run::unmerged::Unmerged;
use crate::runner::Outcome;
use crate::store::Board;

use super::human::Painted;
use super::{CliError, Context, Exit, ItemName, Verb, human};

mod diff;

use diff::find;

/// List, show, search and compare the runs of agents
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

/// What to do with them.
#[derive(clap::Subcommand)]
pub enum RunsCommand {
    /// List the runs, oldest first (the default)
    List {
        /// Only runs of this item
        #[arg(value_name = "ID")]
        task: Option<ItemName>,
        /// Only runs of this agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Only runs with this outcome
        #[arg(long)]
        outcome: Option<Outcome>,
        /// Only runs that were told this learning; says how they went, and how others did
        #[arg(long, value_name = "LEARNING")]
        knew: Option<String>,
        /// Only the last N runs
        #[arg(long, short = 'n', value_name = "N")]
        last: Option<usize>,
    },
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
    /// Search the files of all runs for a text
    Grep {
        /// The text
        text: String,
        /// Only in the runs of this item
        #[arg(long, value_name = "ID")]
        task: Option<ItemName>,
    },
    /// Compare two runs: outcome, prompt and changes
    Diff(diff::Diff),
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    run: &'a Metadata,
    files: Vec<String>,
    /// Where work on its item is that is not merged, as git takes it.
    kept: Vec<String>,
}

#[derive(Serialize)]
struct Hit<'a> {
    run: &'a str,
    file: String,
    line: usize,
    text: &'a str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-runs";
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let all = runs(&board)?;
        let id_of = |name: Option<ItemName>| name.map(|name| context.id_of(&board, &name)).transpose();
        // A run, or an item for its last one.
        let named = |run: String| match run.parse() {
            Ok(name @ ItemName::Line { .. }) => context.id_of(&board, &name).map(|id| id.to_string()),
            _ => Ok(run),
        };
        let list = RunsCommand::List { task: None, agent: None, outcome: None, knew: None, last: None };
        match self.command.unwrap_or(list) {
            RunsCommand::List { task, agent, outcome, knew, last } => {
                let task = id_of(task)?;
                let wanted: Vec<&Metadata> = all
                    .iter()
                    .filter(|run| task.as_ref().is_none_or(|task| run.task == *task))
                    .filter(|run| agent.as_ref().is_none_or(|agent| run.agent == *agent))
                    .filter(|run| outcome.is_none_or(|outcome| run.outcome == Some(outcome)))
                    .filter(|run| knew.as_ref().is_none_or(|learning| run.knowledge.contains(learning)))
                    .collect();
                let skipped = last.map_or(0, |last| wanted.len().saturating_sub(last));
                let now = clock::now();
                for run in &wanted[skipped..] {
                    let (columns, reason) = line(run, now);
                    context.out.row(run, &columns, reason, "")?;
                }
                if let Some(learning) = knew.filter(|_| !wanted.is_empty()) {
                    context.out.note(compared(&all, &learning));
                }
                if all.is_empty() {
                    context.out.note("no runs yet; begin the first: tavern agent");
                } else if wanted.is_empty() {
                    context.out.note("no run is like that; list them all: tavern runs");
                }
                Ok(Exit::Done)
            }
            RunsCommand::Show { run } => show(context, &board, find(&all, &named(run)?)?),
            RunsCommand::Cat { run, file } => cat(context, &board, find(&all, &named(run)?)?, &file),
            RunsCommand::Grep { text, task } => grep(context, &board, &all, &text, id_of(task)?.as_ref()),
            RunsCommand::Diff(diff) => diff.run(context, &board, &all),
        }
    }
}

/// How the runs went that were told a learning, beside those that were not. No cause is shown by that: they had other items, too.
fn compared(all: &[Metadata], learning: &str) -> String {
    let ended = || all.iter().filter(|run| run.outcome.is_some());
    let knew = |run: &&Metadata| run.knowledge.iter().any(|known| known == learning);
    let share = |runs: Vec<&Metadata>| {
        let good = runs.iter().filter(|run| run.outcome == Some(Outcome::Success)).count();
        format!("{good} of {}", human::count(runs.len(), "run"))
    };
    let (with, without): (Vec<&Metadata>, Vec<&Metadata>) = ended().partition(knew);
    format!("{} that knew {learning} went well, {} that did not", share(with), share(without))
}

/// The columns of its row, and why it ended so.
fn line(run: &Metadata, now: Timestamp) -> (String, &str) {
    let outcome = run.outcome.map_or("running", Outcome::as_str);
    let took = human::took_seconds(run.seconds(now).unsigned_abs());
    let money = if run.usage.is_known() { human::money(run.usage.usd) } else { String::new() };
    let (started, who) = (clock::brief(run.started), format!("{} {}", run.agent, run.role));
    // What the agent said last is no reason of a run that failed.
    let reason = run.reason.as_ref().filter(|_| run.outcome != Some(Outcome::Success)).unwrap_or(&run.summary);
    (format!("{:<10} {started} {outcome:<9} {took:>6} {money:>7} {who:<12} ", run.run), reason)
}

fn files(board: &Board, run: &Metadata) -> Vec<String> {
    let dir = board.run_dir(&run.run);
    let walk = WalkDir::new(&dir).sort_by_file_name().into_iter().filter_map(Result::ok);
    walk.filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| Some(entry.path().strip_prefix(&dir).ok()?.to_string_lossy().into_owned()))
        .collect()
}

fn show(context: &Context, board: &Board, run: &Metadata) -> Result<Exit, CliError> {
    let files = files(board, run);
    let usage = &run.usage;
    let tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
    let mut text = format!("{} {}\n", run.run, human::title(&run.title));
    let mut row = |name: &str, value: String| text.push_str(&format!("  {name:<9} {}\n", human::one_line(&value)));
    row("agent", format!("{} ({}), attempt {}, runner {}", run.agent, run.role, run.attempt, run.runner));
    row("outcome", run.outcome.map_or("running", Outcome::as_str).to_owned());
    run.reason.iter().for_each(|reason| row("reason", reason.clone()));
    row("verified", run.verified.map_or("no", |passed| if passed { "passed" } else { "failed" }).to_owned());
    run.commit.iter().for_each(|commit| row("commit", commit.clone()));
    run.branch.iter().for_each(|branch| row("branch", branch.clone()));
    row("worktree", run.worktree.display().to_string());
    let kept = kept(board, &run.task);
    if !kept.is_empty() {
        row("kept", kept.join(" "));
    }
    row("started", clock::dated(run.started));
    if usage.is_known() {
        row("spent", format!("{}, {} tokens, {} turns", human::money(usage.usd), human::short(tokens), run.turns));
    }
    run.denials.iter().for_each(|denial| row("denied", denial.clone()));
    if !run.knowledge.is_empty() {
        row("knew", run.knowledge.join(" "));
    }
    row("files", files.join(" "));
    context.out.record(&Shown { run, files, kept }, text.trim_end())?;
    Ok(Exit::Done)
}

/// Where work on its item is that is not merged.
fn kept(board: &Board, task: &TaskId) -> Vec<String> {
    let integration = Config::load(board.dir()).unwrap_or_default().integration.branch;
    let repository = Repository::discover(board.root());
    repository.map(|repository| Unmerged::of(&repository, &integration).places(task)).unwrap_or_default()
}

fn cat(context: &Context, board: &Board, run: &Metadata, file: &str) -> Result<Exit, CliError> {
    let known = files(board, run);
    if !known.iter().any(|name| name == file) {
        let hint = format!("its files: {}", known.join(", "));
        return Err(CliError::usage(format!("run `{}` has no file `{file}`", run.run), hint));
    }
    let path = board.run_dir(&run.run).join(file);
    let bytes = files::read(&path)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end_matches('\n');
    context.out.record(&serde_json::json!({"run": run.run, "file": file, "text": text}), Painted::whole(text))?;
    Ok(Exit::Done)
}

fn grep(
    context: &Context,
    board: &Board,
    all: &[Metadata],
    text: &str,
    task: Option<&TaskId>,
) -> Result<Exit, CliError> {
    let mut hits = 0;
    for run in all.iter().filter(|run| task.is_none_or(|task| run.task == *task)) {
        for file in files(board, run) {
            let bytes = files::read(board.run_dir(&run.run).join(&file)).unwrap_or_default();
            let content = String::from_utf8_lossy(&bytes);
            for (number, line) in content.lines().enumerate().filter(|(_, line)| line.contains(text)) {
                hits += 1;
                let shown: String = line.chars().take(300).collect();
                let hit = Hit { run: &run.run, file: file.clone(), line: number + 1, text: &shown };
                context.out.record(&hit, format!("{}/{file}:{}: {shown}", run.run, number + 1))?;
            }
        }
    }
    if hits > 0 {
        return Ok(Exit::Done);
    }
    let of = task.map_or_else(String::new, |task| format!(" of {task}"));
    context.out.note(format!("no run{of} has the text `{text}`; list them all: tavern runs"));
    Ok(Exit::NothingToDo)
}
