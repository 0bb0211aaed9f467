//! Items with children: they are parked until their children end, and then continue with the results.

use std::path::Path;

use super::artifacts::Artifacts;
use super::error::Error;
use super::record::{Metadata, runs_of};
use super::trust::Trust;
use super::unmerged_work::Unmerged;
use super::workspace::Workspace;
use crate::prompt::{ChildResult, tail};
use crate::runner::Outcome;
use tavern_core::event::Event;
use tavern_core::task::{Mode, Status, Task, TaskId};
use tavern_store::config::Does;
use tavern_store::{Claimed, Note};

/// Longest last words of a child, in bytes.
const WORDS: usize = 1 << 10;

/// Replaces the title of an untrusted child.
const UNTRUSTED: &str = "(untrusted)";

/// Returns whether the holder's role works on items, so that their children matter to it.
fn works(workspace: &Workspace, held: &Claimed) -> bool {
    held.task.status() == Status::InProgress
        && workspace
            .config
            .roles
            .get(&held.lease.role)
            .is_none_or(|role| role.does == Does::Work)
}

/// Returns the `children` that their parent waits for: open ones, and failed ones that a person is to handle. Archived
/// ones are not waited for. Parking and waking must agree on this.
fn open(workspace: &Workspace, children: &[Task]) -> Vec<TaskId> {
    let is_live = |id: &TaskId| workspace.board.live_task(id).is_ok();
    let is_waited_for =
        |child: &Task| child.on_failure.keeps_waiting(child.status()) && is_live(&child.id);
    let open = children
        .iter()
        .filter(|child| !child.status().is_ended() || is_waited_for(child));
    open.map(|child| child.id.clone()).collect()
}

/// Returns the children that the work of `held` has to wait for.
pub fn parked(workspace: &Workspace, held: &Claimed) -> Vec<TaskId> {
    if works(workspace, held) {
        open(workspace, &workspace.board.children(&held.task.id))
    } else {
        Vec::new()
    }
}

/// Returns `held`, in mode unify if none of its children is waited for. A parked item is in it already, except after
/// a failed or killed run.
///
/// # Errors
/// The board can't be written.
pub fn unifying(workspace: &Workspace, held: &Claimed) -> Result<Claimed, Error> {
    if !works(workspace, held) || held.task.mode() == Mode::Unify {
        return Ok(held.clone());
    }
    let children = held.children(&workspace.board);
    if children.is_empty() || !open(workspace, children).is_empty() {
        return Ok(held.clone());
    }
    let event = Event::Shift {
        token: held.lease.token,
        mode: Mode::Unify,
    };
    let mut unifying = held.clone();
    unifying.task = workspace
        .board
        .submit(&held.task.id, &event, &Note::default())?
        .task;
    Ok(unifying)
}

/// Returns true if any of them is completed.
pub fn has_completed(children: &[Task]) -> bool {
    children
        .iter()
        .any(|child| child.status() == Status::Completed)
}

/// Merges the integrated work of `children` into the branch of `task`, checked out in `folder`. Returns whether any
/// child is completed. Conflicting changes stay out, also those that conflict with uncommitted files: the agent has to
/// resolve them.
///
/// # Errors
/// The repository can't be read or written.
pub fn gather(
    workspace: &Workspace,
    task: &Task,
    children: &[Task],
    folder: &Path,
) -> Result<bool, Error> {
    if children
        .iter()
        .any(|child| child.status() == Status::Completed && child.worktree)
    {
        let (tip, _) = workspace.follow_base()?;
        let message = format!("{}: merge the work of its children", task.id);
        workspace.repository()?.take_in(folder, &tip, &message)?;
    }
    Ok(has_completed(children))
}

/// Returns the results of `children`, for the prompt of their parent.
pub fn results(workspace: &Workspace, children: &[Task]) -> Vec<ChildResult> {
    if children.is_empty() {
        return Vec::new();
    }
    let kept = workspace
        .repository()
        .ok()
        .map(|repository| Unmerged::of(repository, workspace.integration()));
    let place = |child: &Task| {
        kept.as_ref()
            .and_then(|kept| kept.places(&child.id).into_iter().next())
    };
    let trust = Trust::of(workspace);
    let shown = |child: Task| match trust.item(&child) {
        Ok(()) => child,
        Err(_) => Task {
            title: UNTRUSTED.to_owned(),
            state: child.state.clone().without_reason(),
            ..child
        },
    };
    let result = |child: Task| ChildResult {
        kept: if child.status() == Status::Completed {
            None
        } else {
            place(&child)
        },
        last_words: last_words(workspace, &child),
        id: child.id.to_string(),
        status: child.status().as_str().to_owned(),
        commit: child
            .commit()
            .filter(|_| child.status() == Status::Completed)
            .map(str::to_owned),
        title: child.title,
    };
    children.iter().cloned().map(shown).map(result).collect()
}

/// Returns the last words of its working agent, or why it failed.
fn last_words(workspace: &Workspace, child: &Task) -> String {
    if child.status() != Status::Completed {
        return child.reason().unwrap_or_default().to_owned();
    }
    let runs = runs_of(&workspace.board, &child.id).unwrap_or_default();
    let is_work = |run: &&Metadata| {
        workspace
            .config
            .roles
            .get(&run.role)
            .is_none_or(|role| role.does == Does::Work)
    };
    let last = runs
        .iter()
        .rfind(|run| is_work(run) && run.outcome == Some(Outcome::Success));
    let words = last
        .map(|run| Artifacts::open(&workspace.board, &run.run).read("result.txt"))
        .unwrap_or_default();
    tail(words.trim().trim_end_matches("DONE").trim_end(), WORDS)
}
