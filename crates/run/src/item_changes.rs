//! All changes of an item's commits, for review. Has no text for people.

use super::error::Error;
use super::unmerged_work::Unmerged;
use super::workspace::ITEM_BRANCHES;
use tavern_core::task::{Task, TaskId};
use tavern_git::{CommitId, CommitSummary, PatchText, Repository};
use tavern_store::Board;

/// The most bytes of a patch that is shown.
const MOST_OF_PATCH: usize = 4 << 20;

/// The part of an item's work in one place that no earlier place has.
pub struct WorkPart {
    /// A branch, a ref or a commit, as git takes it. A run's commits are on its branch only when the run is over.
    pub place: String,
    /// The commit where it began.
    pub base: CommitId,
    pub tip: CommitId,
    /// Oldest first.
    pub commits: Vec<CommitSummary>,
    pub patch: PatchText,
}

/// Returns the uncommitted changes in `task`'s worktree, while an agent works there or if nothing is committed.
pub fn uncommitted(
    board: &Board,
    repository: &Repository,
    task: &TaskId,
    parts: &[WorkPart],
) -> Result<Option<PatchText>, Error> {
    let folder = board.worktree(task);
    if !folder.is_dir() || !(parts.is_empty() || board.lease(task)?.is_some()) {
        return Ok(None);
    }
    Ok(
        Some(repository.uncommitted(&folder, MOST_OF_PATCH)?)
            .filter(|patch| !patch.text.is_empty()),
    )
}

/// Returns the work of `task`: the places of unmerged work, then the commit that the item names. Each part is compared
/// with the newest commit that it shares with merged work and the parts before; merged work, with the commit before
/// its merge.
pub fn work_of(
    board: &Board,
    repository: &Repository,
    kept: &Unmerged<'_>,
    task: &Task,
) -> Result<Vec<WorkPart>, Error> {
    let mut known: Vec<CommitId> = kept.tip().into_iter().cloned().collect();
    let mut parts: Vec<WorkPart> = Vec::new();
    let folder = board.worktree(&task.id);
    let live = repository.cell_tip(&folder).ok().flatten();
    let is_new = |tip: &CommitId| {
        !known
            .iter()
            .any(|known| repository.is_ancestor(tip, known).unwrap_or(false))
    };
    let live = live.filter(is_new);
    let live = live.map(|tip| (format!("{ITEM_BRANCHES}{}", task.id), tip));
    let kept = kept.of_item(board, task).into_iter();
    let kept = kept.chain(task.commit().map(str::to_owned));
    // A commit typed by a person may be invalid, or not fetched yet.
    let kept = kept.filter_map(|place| {
        let tip = repository.commit_of(&place).ok().flatten()?;
        Some((place, tip))
    });
    for (place, tip) in live.into_iter().chain(kept) {
        if parts
            .iter()
            .any(|part| repository.is_ancestor(&tip, &part.tip).unwrap_or(false))
        {
            continue;
        }
        let mut base = None;
        for other in &known {
            let fork = repository.fork(other, &tip)?;
            base = match (base, fork) {
                (Some(base), Some(fork)) if repository.is_ancestor(&fork, &base)? => Some(base),
                (base, fork) => fork.or(base),
            };
        }
        let before = if base.as_ref() == Some(&tip) {
            repository.commit_of(&format!("{tip}^"))?
        } else {
            base
        };
        let Some(base) = before.or_else(|| known.first().cloned()) else {
            continue;
        };
        let commits = repository.commits_between(&base, &tip)?;
        let patch = repository.diff(&base, &tip, MOST_OF_PATCH)?;
        known.push(tip.clone());
        parts.push(WorkPart {
            place,
            base,
            tip,
            commits,
            patch,
        });
    }
    Ok(parts)
}
