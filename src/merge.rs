//! `tavern-merge`: integrate approved items.

use serde::Serialize;
use serde_json::json;

use tavern_core::task::{Status, TaskId};
use tavern_run::Workspace;
use tavern_run::integrate::{Integrated, approved, integrate};
use tavern_sys::process::quoted;

use super::drain::summary::to_merge;
use super::flags::DryRun;
use super::shared::person;
use super::{CliError, Context, Exit, ItemName, Verb, hints};

/// Merge approved items into the integration branch, one at a time
///
/// Each merge is made in memory, verified at the merged commit in a scratch worktree, and only then becomes the
/// branch's tip. No checkout of yours is touched. Exits with 1 if an item was sent back, with 4 if something in your
/// checkout is in the way.
#[derive(clap::Args)]
pub struct Args {
    /// Only these items
    #[arg(value_name = "ID")]
    pub tasks: Vec<ItemName>,

    /// Only accept that the integration branch was moved to COMMIT, by neither Tavern nor you
    #[arg(long, value_name = "COMMIT", conflicts_with = "tasks")]
    pub accept: Option<String>,

    #[command(flatten)]
    pub plan: DryRun,
}

#[derive(Serialize)]
struct Record<'a> {
    task: &'a TaskId,
    result: &'static str,
    commit: Option<String>,
    reason: Option<String>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-merge";
    const EXAMPLES: &'static [&'static str] = &["tavern merge --dry-run", "tavern merge T-1"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let workspace = context.site(context.board()?)?;
        if let Some(commit) = &self.accept {
            return accept(context, &workspace, commit);
        }
        workspace.board.settle()?;
        let named: Result<Vec<TaskId>, CliError> = self
            .tasks
            .iter()
            .map(|name| context.id_of(&workspace.board, name))
            .collect();
        let named = named?;
        for task in &named {
            let status = workspace.board.task(task)?.task.status();
            if status != Status::Approved {
                let message = format!("`{task}` is {status}: only approved items are merged");
                return Err(CliError::refused(
                    message,
                    format!("for details: tavern status {task}"),
                ));
            }
        }
        let Some(_slot) = workspace.board.merge_slot(&workspace.interrupt)? else {
            return Ok(context.interrupted().unwrap_or(Exit::Busy));
        };
        let (mut exit, mut is_merged) = (Exit::Done, false);
        let waiting = approved(&workspace, &workspace.board.queues()?);
        if waiting.is_empty() {
            let merged = workspace.integration_tip()?.map(|_| to_merge(&workspace));
            let more = merged.map(|merged| format!("; {merged}"));
            context.out.note(format!(
                "nothing to merge: no item is approved{}",
                more.unwrap_or_default()
            ));
        }
        for task in waiting {
            if !named.is_empty() && !named.contains(&task) {
                continue;
            }
            let blocked = |reason: String| {
                let text = format!("{task} not merged: {reason}");
                ("blocked", None, Some(reason), text)
            };
            let (result, commit, reason, text) = match integrate(&workspace, &task)? {
                Integrated::Merged(commit) => {
                    is_merged = true;
                    let commit = commit.map(|commit| commit.short().to_owned());
                    let place = commit
                        .as_ref()
                        .map_or_else(String::new, |commit| format!(" as {commit}"));
                    ("merged", commit, None, format!("{task} merged{place}"))
                }
                Integrated::Untried => {
                    ("would_merge", None, None, format!("{task} would be merged"))
                }
                Integrated::SentBack(reason) => {
                    exit = Exit::Failed;
                    let text = format!("{task} sent back: {reason}");
                    ("sent_back", None, Some(reason), text)
                }
                Integrated::Blocked(reason) => {
                    exit = Exit::Refused;
                    blocked(reason)
                }
                Integrated::Lacks(lack) => {
                    exit = Exit::Refused;
                    blocked(hints::sentence(&lack, Some(&task), None))
                }
            };
            let record = Record {
                task: &task,
                result,
                commit,
                reason,
            };
            context.out.record(&record, text)?;
            if let Some(interrupted) = context.interrupted() {
                return Ok(interrupted);
            }
        }
        if is_merged {
            context.out.note(to_merge(&workspace));
        }
        Ok(exit)
    }
}

/// Accepts a tip of the integration branch that a person has inspected.
fn accept(context: &Context, workspace: &Workspace, commit: &str) -> Result<Exit, CliError> {
    let Some((branch, tip)) = workspace.accept_tip(commit, person())? else {
        let branch = workspace.integration();
        let message = format!("`{branch}` is not at {commit}");
        return Err(CliError::refused(
            message,
            format!("look where it is: git log -1 {}", quoted(branch)),
        ));
    };
    let text = format!("{branch} is accepted at {}", tip.short());
    context
        .out
        .record(&json!({ "branch": branch, "accepted": tip.as_str() }), text)?;
    Ok(Exit::Done)
}
