//! `tavern-diff`: shows all changes of an item's commits, wherever its work is.

use std::path::Path;

use serde::Serialize;

use tavern_core::task::TaskId;
use tavern_git::PatchText;
use tavern_run::item_changes::{WorkPart, uncommitted, work_of};
use tavern_run::unmerged_work::Unmerged;
use tavern_store::Board;
use tavern_sys::process::quoted;

use super::unified::painted;
use super::{CliError, Context, Exit, ItemName, Verb, format};

/// The heading of uncommitted changes.
const NOT_COMMITTED: &str = "not committed yet:\n";

/// Show the changes of an item's commits against their base
///
/// For merged work, the changes of its merge; for other work, the changes on its branch that the integration branch lacks. Then
/// the uncommitted changes that Tavern kept of an agent, and those of a running agent.
#[derive(clap::Args)]
pub struct Args {
    /// The item
    #[arg(value_name = "ID")]
    pub task: ItemName,
}

#[derive(Serialize)]
struct Record<'a> {
    task: &'a TaskId,
    /// A branch, a ref or a commit.
    place: &'a str,
    base: &'a str,
    commit: &'a str,
    commits: Vec<CommitLine<'a>>,
    patch: &'a str,
    /// Whether the patch was cut.
    is_cut: bool,
}

/// Changes that are only in its worktree.
#[derive(Serialize)]
struct Uncommitted<'a> {
    task: &'a TaskId,
    worktree: &'a Path,
    patch: &'a str,
    is_cut: bool,
}

#[derive(Serialize)]
struct CommitLine<'a> {
    commit: &'a str,
    subject: &'a str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-diff";
    const EXAMPLES: &'static [&'static str] = &["tavern diff T-3"];
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let workspace = context.quick_site(context.board()?)?;
        let task = &context.id_of(&workspace.board, &self.task)?;
        let found = workspace.board.task(task)?;
        let repository = workspace.repository()?;
        let kept = Unmerged::of(repository, workspace.integration());
        let parts = work_of(&workspace.board, repository, &kept, &found.task)?;
        for part in &parts {
            let (base, tip) = (&part.base, &part.tip);
            let commits = part.commits.iter();
            let commits = commits.map(|commit| CommitLine {
                commit: commit.id.as_str(),
                subject: &commit.subject,
            });
            let record = Record {
                task,
                place: &part.place,
                base: base.as_str(),
                commit: tip.as_str(),
                commits: commits.collect(),
                patch: &part.patch.text,
                is_cut: part.patch.is_cut,
            };
            let count = format::count(part.commits.len(), "commit");
            let place = if part.place == tip.as_str() {
                tip.short()
            } else {
                &part.place
            };
            let mut text = format!("{place}: {count} since {}\n", base.short());
            for commit in &part.commits {
                text.push_str(&format!(
                    "  {} {}\n",
                    commit.id.short(),
                    format::title(&commit.subject)
                ));
            }
            context
                .out
                .record(&record, painted(&(text + &part.patch.text)).trimmed())?;
            if part.patch.is_cut {
                context
                    .out
                    .note(format!("truncated; all of it: git diff {base} {tip}"));
            }
        }
        let uncommitted = uncommitted(&workspace.board, repository, task, &parts)?;
        if let Some(PatchText { text, is_cut }) = &uncommitted {
            let folder = workspace.board.worktree(task);
            let record = Uncommitted {
                task,
                worktree: &folder,
                patch: text,
                is_cut: *is_cut,
            };
            context.out.record(
                &record,
                painted(&format!("{NOT_COMMITTED}{text}")).trimmed(),
            )?;
            if *is_cut {
                context
                    .out
                    .note(format!("truncated; all of it is in {}", quoted(folder)));
            }
        }
        if parts.is_empty() && uncommitted.is_none() {
            context.out.note(format!(
                "no commit of {task} here; see its history: tavern log {task}"
            ));
            return Ok(Exit::NothingToDo);
        }
        Ok(Exit::Done)
    }
}

/// Returns the same as uncut text.
pub(super) fn words(context: &Context, board: &Board, id: &TaskId) -> Result<String, CliError> {
    let workspace = context.quick_site(board.clone())?;
    let (repository, task) = (workspace.repository()?, workspace.board.task(id)?.task);
    let parts = work_of(
        &workspace.board,
        repository,
        &Unmerged::of(repository, workspace.integration()),
        &task,
    )?;
    let part = |part: &WorkPart| {
        let subjects = part
            .commits
            .iter()
            .map(|commit| format!("  {} {}\n", commit.id.short(), commit.subject));
        format!(
            "{}: since {}\n{}{}",
            part.place,
            part.base.short(),
            subjects.collect::<String>(),
            part.patch.text
        )
    };
    let uncommitted = uncommitted(&workspace.board, repository, id, &parts)?;
    let uncommitted = uncommitted.map(|patch| format!("{NOT_COMMITTED}{}", patch.text));
    let text: Vec<String> = parts.iter().map(part).chain(uncommitted).collect();
    Ok(if text.is_empty() {
        format!("no commit of {id} here")
    } else {
        text.join("\n")
    })
}
