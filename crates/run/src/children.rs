//! An item that has children: it is put aside until they have ended, and goes on with what they came to.

use std::path::Path;

use super::artifacts::Artifacts;
use super::error::Error;
use super::record::{Metadata, runs_of};
use super::site::Site;
use super::trust::Trust;
use super::unmerged::Unmerged;
use crate::prompt::{ChildResult, tail};
use crate::runner::Outcome;
use tavern_core::event::Event;
use tavern_core::task::{Mode, Status, Task, TaskId};
use tavern_store::config::Does;
use tavern_store::{Claimed, Note};

/// Longest last words of a child, in bytes.
const WORDS: usize = 1 << 10;

/// What is told in the place of a child's title that may not be.
const UNTRUSTED: &str = "(untrusted)";

/// Returns whether the holder's role works on items, so that their children matter to it.
fn works(site: &Site, held: &Claimed) -> bool {
    held.task.status() == Status::InProgress
        && site
            .config
            .roles
            .get(&held.lease.role)
            .is_none_or(|role| role.does == Does::Work)
}

/// Those of an item's `children` that it does not go on without: they have not ended, or a person is to look after their failure.
/// One that was archived is not waited for; who parks an item has to know of the same ones as who wakes it.
fn open(site: &Site, children: &[Task]) -> Vec<TaskId> {
    let is_live = |id: &TaskId| site.board.live_task(id).is_ok();
    let is_waited_for =
        |child: &Task| child.on_failure.keeps_waiting(child.status()) && is_live(&child.id);
    let open = children
        .iter()
        .filter(|child| !child.status().is_ended() || is_waited_for(child));
    open.map(|child| child.id.clone()).collect()
}

/// The children that the work of `held` has to wait for, if there are any.
pub fn parked(site: &Site, held: &Claimed) -> Vec<TaskId> {
    if works(site, held) {
        open(site, &site.board.children(&held.task.id))
    } else {
        Vec::new()
    }
}

/// `held`, in mode unify from now on if none of its children is waited for. One that was parked is in it already; one whose
/// run failed or was killed meanwhile is not.
///
/// # Errors
/// The board can't be written.
pub fn unifying(site: &Site, held: &Claimed) -> Result<Claimed, Error> {
    if !works(site, held) || held.task.mode() == Mode::Unify {
        return Ok(held.clone());
    }
    let children = held.children(&site.board);
    if children.is_empty() || !open(site, children).is_empty() {
        return Ok(held.clone());
    }
    let event = Event::Shift {
        token: held.lease.token,
        mode: Mode::Unify,
    };
    let mut unifying = held.clone();
    unifying.task = site
        .board
        .submit(&held.task.id, &event, &Note::default())?
        .task;
    Ok(unifying)
}

/// Any of them was.
pub fn has_completed(children: &[Task]) -> bool {
    children
        .iter()
        .any(|child| child.status() == Status::Completed)
}

/// Brings what `children` of `task` have merged to its own branch, checked out in `folder`. Returns whether any is completed.
/// What conflicts with the branch, or with files that are not committed, stays away: the agent has to see to it.
///
/// # Errors
/// The repository can't be read or written.
pub fn gather(site: &Site, task: &Task, children: &[Task], folder: &Path) -> Result<bool, Error> {
    if children
        .iter()
        .any(|child| child.status() == Status::Completed && child.worktree)
    {
        let (tip, _) = site.follow_base()?;
        let message = format!("{}: take in what its children made", task.id);
        site.repository()?.take_in(folder, &tip, &message)?;
    }
    Ok(has_completed(children))
}

/// What became of `children`, for the prompt of their parent.
pub fn results(site: &Site, children: &[Task]) -> Vec<ChildResult> {
    if children.is_empty() {
        return Vec::new();
    }
    let kept = site
        .repository()
        .ok()
        .map(|repository| Unmerged::of(repository, site.integration()));
    let place = |child: &Task| {
        kept.as_ref()
            .and_then(|kept| kept.places(&child.id).into_iter().next())
    };
    let trust = Trust::of(site);
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
        said: said(site, &child),
        id: child.id.to_string(),
        status: child.status().to_string(),
        commit: child
            .commit()
            .filter(|_| child.status() == Status::Completed)
            .map(str::to_owned),
        title: child.title,
    };
    children.iter().cloned().map(shown).map(result).collect()
}

/// The last words of whoever worked on it, or why it failed.
fn said(site: &Site, child: &Task) -> String {
    if child.status() != Status::Completed {
        return child.reason().unwrap_or_default().to_owned();
    }
    let runs = runs_of(&site.board, &child.id).unwrap_or_default();
    let is_work = |run: &&Metadata| {
        site.config
            .roles
            .get(&run.role)
            .is_none_or(|role| role.does == Does::Work)
    };
    let last = runs
        .iter()
        .rfind(|run| is_work(run) && run.outcome == Some(Outcome::Success));
    let words = last
        .map(|run| Artifacts::open(&site.board, &run.run).read("result.txt"))
        .unwrap_or_default();
    tail(words.trim().trim_end_matches("DONE").trim_end(), WORDS)
}
