//! Which run folders are kept: young ones, as many as there is room for, and those with files that exist nowhere else.
//! Removes nothing itself; the reaper does.

use std::fs;
use std::os::unix::fs::MetadataExt;

use chrono::TimeDelta;
use walkdir::WalkDir;

use super::artifacts::Artifacts;
use super::error::Error;
use super::import_sandbox::{AsideCell, SUBMODULES};
use super::record::{Metadata, run_of};
use super::sandbox_dir::Cell;
use super::workspace::{SALVAGED, Workspace};
use tavern_core::task::{Status, Timestamp};

/// Returns those of `runs` that `runs: {keep, size}` of config.yaml lets go, oldest first.
pub fn spent_runs(
    workspace: &Workspace,
    runs: Vec<Metadata>,
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    let settings = &workspace.config.runs;
    let keep = TimeDelta::from_std(settings.keep.duration())
        .ok()
        .filter(|keep| !keep.is_zero());
    let room = Some(settings.size.bytes()).filter(|room| *room > 0);
    if keep.is_none() && room.is_none() {
        return Ok(Vec::new());
    }
    let mut total = 0;
    let mut ended = Vec::new();
    for run in runs {
        let bytes = if room.is_some() {
            bytes_of(workspace, &run.run)
        } else {
            0
        };
        total += bytes;
        ended.extend(run.ended.map(|at| (at, bytes, run)));
    }
    ended.sort_by_key(|(at, ..)| *at);
    let mut spent = Vec::new();
    for (at, bytes, run) in ended {
        let is_old = keep.is_some_and(|keep| now - at > keep);
        let is_crowded = room.is_some_and(|room| total > room);
        if (is_old || is_crowded) && is_spent(workspace, &run)? {
            total -= bytes;
            spent.push(run.run);
        }
    }
    Ok(spent)
}

/// Returns true if the run's files can be removed: its item has ended, its work is merged, and no file that it made is
/// kept with the run alone.
pub fn may_go(workspace: &Workspace, run: &str) -> Result<bool, Error> {
    run_of(&workspace.board, run).map_or(Ok(false), |run| is_spent(workspace, &run))
}

/// Returns true if the cell that was put aside can be removed: it was imported, or its item was completed without it.
pub fn cell_may_go(workspace: &Workspace, cell: &AsideCell) -> Result<bool, Error> {
    if cell.was_taken {
        return Ok(true);
    }
    let Some(task) = cell
        .run
        .rsplit_once('@')
        .and_then(|(task, _)| task.parse().ok())
    else {
        return Ok(false);
    };
    match workspace.board.task(&task) {
        Ok(found) => Ok(found.lease.is_none() && found.task.status() == Status::Completed),
        Err(tavern_store::Error::NoTask(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_spent(workspace: &Workspace, run: &Metadata) -> Result<bool, Error> {
    // The folder's metadata is needed to import the cell.
    let has_cell = Cell::of(workspace, &run.run).is_there();
    let kept = Artifacts::open(&workspace.board, &run.run);
    if run.ended.is_none()
        || has_cell
        || ["files", SUBMODULES]
            .iter()
            .any(|name| kept.path(name).exists())
    {
        return Ok(false);
    }
    match workspace.board.task(&run.task) {
        Ok(found) if found.lease.is_some() || !found.task.status().is_ended() => Ok(false),
        Ok(found) => Ok(found.task.status() == Status::Completed || is_merged(workspace, run)?),
        // A deleted item may come back when an editor saves an old version.
        Err(tavern_store::Error::NoTask(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if the run left nothing that is missing on the integration branch. That includes all salvage of its
/// item: a later run may have salvaged uncommitted work of this one.
fn is_merged(workspace: &Workspace, run: &Metadata) -> Result<bool, Error> {
    let repository = workspace.repository()?;
    let salvaged = repository.references(&format!("{SALVAGED}{}/", run.task))?;
    let mut left: Vec<_> = salvaged.into_iter().map(|(_, id)| Some(id)).collect();
    match (&run.commit, &run.branch) {
        (Some(commit), _) => left.push(repository.commit_of(commit)?),
        // Its commit is unknown; its item's branch exists as long as it has unmerged work.
        (None, Some(branch)) if run.damaged => {
            left.extend(repository.branch_tip(branch)?.map(Some));
        }
        (None, _) => {}
    }
    let Some(tip) = repository.branch_tip(workspace.integration())? else {
        return Ok(left.is_empty());
    };
    for left in left {
        // A commit that no longer exists counts as not merged.
        if !left.map_or(Ok(false), |left| repository.is_ancestor(&left, &tip))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the disk space that the run's files use: a sparse file may be of any length.
fn bytes_of(workspace: &Workspace, run: &str) -> u64 {
    let files = WalkDir::new(workspace.board.run_dir(run))
        .into_iter()
        .filter_map(Result::ok);
    let files = files
        .filter_map(|file| file.metadata().ok())
        .filter(fs::Metadata::is_file);
    files
        .map(|file| file.len().min(file.blocks().saturating_mul(512)))
        .sum()
}
