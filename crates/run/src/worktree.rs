//! A task's own folder: made from the tip of the integration branch, set up, and removed only after its content is
//! kept.
#![expect(
    clippy::disallowed_methods,
    reason = "a run writes its artifacts and worktree"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::artifacts::Artifacts;
use super::children;
use super::error::Error;
use super::import_sandbox::{take_inner, take_over_all};
use super::outside_changes::end_of_dead;
use super::processes::{end_processes, mark_of};
use super::record::{Metadata, last_token, role_of_work, run_name, runs_of};
use super::workspace::{SALVAGED, Workspace};
use super::worktree_setup::furnish;
use tavern_core::event::Kind;
use tavern_core::lease::Token;
use tavern_core::monitor::{Reaction, Symptom};
use tavern_core::problem::listed;
use tavern_core::task::Task;
use tavern_git::{CommitId, GitError, Head, Merge, MergeConflict, Salvage};
use tavern_store::{Claimed, Entry, Queue, walk_log};
use tavern_sys::clock;
use tavern_sys::failpoint;

/// The folder of a run.
#[derive(Clone, Debug)]
pub struct Worktree {
    pub path: PathBuf,
    /// `None`: the task needs no repository and has an empty folder, or is only reviewed.
    pub branch: Option<Branch>,
    /// The commit that is reviewed in it.
    pub view: Option<CommitId>,
    /// Whether no earlier run has left it.
    pub is_new: bool,
}

/// The branch that is checked out in a worktree.
#[derive(Clone, Debug)]
pub struct Branch {
    pub name: String,
    /// The tip of the integration branch, where a new branch starts.
    pub base: CommitId,
}

/// Makes the task's worktree and runs the set-up command in it, or reuses the worktree of an earlier attempt. A dry run
/// makes nothing; if base and integration branch have both moved, it returns the latter without merging the two.
pub fn prepare(workspace: &Workspace, held: &Claimed) -> Result<Worktree, Error> {
    let path = workspace.board.worktree(&held.task.id);
    let is_new = !path.exists();
    let branch = || {
        Ok::<_, Error>(Branch {
            name: workspace.branch_of(&held.task),
            base: workspace.follow_base()?.0,
        })
    };
    let branch = held.task.worktree.then(branch).transpose()?;
    let worktree = Worktree {
        path,
        branch,
        view: None,
        is_new,
    };
    if !workspace.board.is_dry() {
        make(workspace, held, &worktree)?;
    }
    Ok(worktree)
}

fn make(workspace: &Workspace, held: &Claimed, worktree: &Worktree) -> Result<(), Error> {
    let (task, lease, path) = (&held.task, &held.lease, &worktree.path);
    let role = workspace.role(&lease.role)?;
    end_earlier(workspace, held, path)?;
    let Some(Branch { name, base: tip }) = &worktree.branch else {
        return make_plain(path);
    };
    let start = match workspace.repository()?.branch_tip(name)? {
        Some(earlier) if is_outdated(workspace, held, tip, &earlier)? => {
            // The branch starts again at the tip; the prompt names the ref that keeps the earlier work.
            if path.exists() {
                keep_and_remove(
                    workspace,
                    task,
                    lease.token,
                    path,
                    std::slice::from_ref(tip),
                )?;
            }
            workspace
                .repository()?
                .keep_commit(&salvage_ref(task, lease.token), &earlier)?;
            workspace.repository()?.branch_delete_if(name, &earlier)?;
            tip.clone()
        }
        Some(earlier) => earlier,
        None => tip.clone(),
    };
    if !path.exists() {
        // Commits without a branch and a folder must be salvaged.
        salvage(
            workspace,
            task,
            lease.token,
            path,
            &[tip.clone(), start.clone()],
        )?;
    }
    let add = || {
        workspace.repository()?.add_worktree(
            path,
            name,
            &start,
            &workspace.board.worktree_lock(),
            |path| {
                children::gather(workspace, task, held.children(&workspace.board), path)?;
                furnish(
                    workspace,
                    role,
                    task,
                    mark_of(workspace, &run_name(&task.id, lease.token)),
                    path,
                )
            },
        )
    };
    let was_made = match add() {
        Err(Error::Git(GitError::OtherHead { .. })) => {
            // The supervisor died before it could return the worktree to the item's branch. Or the agent of an earlier
            // attempt switched to a branch of its own: that is kept, and the folder made again.
            if !workspace.repository()?.bring_home(path, name)? {
                keep_and_remove(
                    workspace,
                    task,
                    lease.token,
                    path,
                    std::slice::from_ref(tip),
                )?;
            }
            add()?
        }
        other => other?,
    };
    if !was_made {
        children::gather(workspace, task, held.children(&workspace.board), path)?;
    }
    Ok(())
}

/// Makes the folder of a task that needs no repository.
pub fn make_plain(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("make", path))
}

/// Makes a folder to review the task in: the files of `commit` on no branch; empty without a commit.
pub fn view(
    workspace: &Workspace,
    held: &Claimed,
    commit: Option<&CommitId>,
) -> Result<Worktree, Error> {
    let (task, lease) = (&held.task, &held.lease);
    let path = workspace.board.view(&task.id);
    let view = Worktree {
        path: path.clone(),
        branch: None,
        view: commit.cloned(),
        is_new: false,
    };
    if workspace.board.is_dry() {
        return Ok(view);
    }
    end_earlier(workspace, held, &path)?;
    let Some(commit) = commit else {
        return make_plain(&path).map(|()| view);
    };
    clean(workspace, task, lease.token, &path, commit)?;
    let mark = mark_of(workspace, &run_name(&task.id, lease.token));
    // The set-up runs files written by the author of the work.
    let (role, author) = (workspace.role(&lease.role)?, role_of_work(workspace, task)?);
    let is_free = !role.sandbox && !workspace.config.worktree.setup.is_empty();
    furnish(
        workspace,
        if is_free {
            workspace.role(&author)?
        } else {
            role
        },
        task,
        mark,
        &path,
    )?;
    Ok(view)
}

/// Makes the folder at `path` hold exactly the files of `commit`, on no branch.
pub fn clean(
    workspace: &Workspace,
    task: &Task,
    token: u64,
    path: &Path,
    commit: &CommitId,
) -> Result<(), Error> {
    let lock = workspace.board.worktree_lock();
    match workspace
        .repository()?
        .checkout_scratch(path, commit, &lock)
    {
        // An earlier run has made a branch.
        Err(GitError::OtherHead { .. }) => {
            keep_and_remove(workspace, task, token, path, std::slice::from_ref(commit))?;
        }
        // It may hold folders that git can't delete: read-only ones, or another user's. Move it away.
        Err(GitError::Program { .. }) => drop(workspace.repository()?.remove_worktree(path, &lock)),
        made => return Ok(made.map(drop)?),
    }
    workspace
        .repository()?
        .checkout_scratch(path, commit, &lock)?;
    Ok(())
}

/// Removes the review folder. Changes made there nevertheless are kept.
pub fn remove_view(
    workspace: &Workspace,
    task: &Task,
    token: u64,
    commit: Option<&CommitId>,
) -> Result<(), Error> {
    let path = workspace.board.view(&task.id);
    if path.exists() && !path.join(".git").exists() {
        return put_aside(workspace, &path, &run_name(&task.id, token));
    }
    keep_and_remove(
        workspace,
        task,
        token,
        &path,
        commit.map_or(&[], std::slice::from_ref),
    )
}

/// Ends processes of earlier runs of the task, since two must not work in the same files. A holder may not have
/// noticed yet that its lease was withdrawn.
fn end_earlier(workspace: &Workspace, held: &Claimed, path: &Path) -> Result<(), Error> {
    // Most items are new, and a board may have thousands of runs.
    if !held.has_history && !path.exists() {
        return Ok(());
    }
    let mut earlier = runs_of(&workspace.board, &held.task.id)?;
    earlier.retain(|run| run.token < held.lease.token);
    let last = earlier.last().map(|run| run.token);
    for run in earlier
        .iter()
        .filter(|run| run.ended.is_none() || Some(run.token) == last)
    {
        end_processes(workspace, &run.run)?;
        end_of_dead(workspace, &run.run)?;
    }
    take_over_all(workspace, &held.task.id)
}

/// Returns the worktree to the item's branch if the agent has left it. Returns in words where it was (`HEAD`: on no
/// branch). Commits on top of the item's branch are added to it; a branch with a history of its own stays as it is.
pub fn bring_home(workspace: &Workspace, worktree: &Worktree) -> Result<Option<String>, Error> {
    let Some(branch) = &worktree.branch else {
        return Ok(None);
    };
    let found = match workspace.repository()?.head_of(&worktree.path) {
        Ok(Head::Branch { name, .. } | Head::Unborn { name }) => name,
        Ok(Head::Detached { .. }) => {
            let branch = workspace.repository()?.left_on(&worktree.path);
            branch.unwrap_or_else(|| "HEAD".to_owned())
        }
        // The agent has removed the worktree.
        Err(GitError::NotAWorktree { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if found == branch.name {
        return Ok(None);
    }
    let is_home = workspace
        .repository()?
        .bring_home(&worktree.path, &branch.name)?;
    Ok(Some(if is_home {
        format!("its work was on `{found}`; the item's branch was moved there")
    } else {
        format!("violation: it left its worktree on `{found}`, apart from its own branch")
    }))
}

/// Returns true if earlier work is not continued: it was reverted on the integration branch, has commits that the base
/// has dropped, or was ended for breaking a rule. Or it conflicts with that branch and no agent continues it: a script
/// that runs again repeats its changes on the new tip.
fn is_outdated(
    workspace: &Workspace,
    held: &Claimed,
    tip: &CommitId,
    earlier: &CommitId,
) -> Result<bool, Error> {
    if workspace.repository()?.reverted(earlier, tip)?.is_some()
        || workspace.dropped_from(tip, earlier)?.is_some()
    {
        return Ok(true);
    }
    let runs = runs_of(&workspace.board, &held.task.id)?;
    let last = runs
        .iter()
        .rfind(|run| run.token < held.lease.token && run.role == held.lease.role);
    if last.is_some_and(|last| was_reaped(workspace, last)) {
        return Ok(true);
    }
    let goes_on = last.is_some_and(|last| last.session.is_some());
    Ok(!goes_on && conflict(workspace, &held.queue, tip, earlier)?.is_some())
}

/// Returns true if the run was ended for breaking a rule, which its work still breaks.
fn was_reaped(workspace: &Workspace, run: &Metadata) -> bool {
    let mut was_reaped = false;
    let walked = walk_log(&workspace.board, Some(&run.task), &mut |entry| {
        let is_breach =
            entry.symptom == Some(Symptom::Violation) && entry.deed == Some(Reaction::Ended);
        was_reaped = is_breach && entry.run.as_ref() == Some(&run.run);
        !was_reaped
    });
    walked.is_ok() && was_reaped
}

/// Formats the first of these paths, and how many more there are, in one line.
pub fn named(paths: &[PathBuf]) -> String {
    listed(
        &paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>(),
    )
}

/// Returns the conflict of earlier work with the integration branch at `tip`.
pub fn conflict(
    workspace: &Workspace,
    queue: &Queue,
    tip: &CommitId,
    earlier: &CommitId,
) -> Result<Option<MergeConflict>, Error> {
    let protected = workspace.protected(queue);
    let protected: Vec<&str> = protected.iter().map(String::as_str).collect();
    Ok(
        match workspace
            .repository()?
            .merge(tip, earlier, &protected, "probe")?
        {
            Merge::Conflict(conflict) => Some(conflict),
            Merge::UpToDate | Merge::Clean { .. } => None,
        },
    )
}

/// Returns the ref that keeps the work of the run with this token when its worktree is removed.
pub fn salvage_ref(task: &Task, token: u64) -> String {
    format!("{SALVAGED}{}/{token}", task.id)
}

/// Keeps the worktree's changes beyond the integration branch, then removes it. Deletes the item's branch if it is
/// fully merged.
pub fn clear(workspace: &Workspace, task: &Task) -> Result<(), Error> {
    clear_folder(workspace, task)?;
    delete_merged_branch(workspace, task).map(drop)
}

/// Returns the tip of the item's branch if it is fully merged.
pub fn merged_branch(workspace: &Workspace, task: &Task) -> Result<Option<CommitId>, Error> {
    let repository = workspace.repository()?;
    let name = workspace.branch_of(task);
    let (Some(own), Some(tip)) = (
        repository.branch_tip(&name)?,
        repository.branch_tip(workspace.integration())?,
    ) else {
        return Ok(None);
    };
    let is_merged = name != workspace.integration() && repository.is_ancestor(&own, &tip)?;
    Ok(is_merged.then_some(own))
}

/// Deletes the item's branch if it is fully merged, since the integration branch has its commits. Returns true if it
/// did.
pub fn delete_merged_branch(workspace: &Workspace, task: &Task) -> Result<bool, Error> {
    if !task.worktree {
        return Ok(false);
    }
    let Some(own) = merged_branch(workspace, task)? else {
        return Ok(false);
    };
    match workspace
        .repository()?
        .branch_delete_if(&workspace.branch_of(task), &own)
    {
        // Another process works on it after all.
        Err(GitError::Moved { .. } | GitError::CheckedOut { .. }) => Ok(false),
        deleted => Ok(deleted?),
    }
}

fn clear_folder(workspace: &Workspace, task: &Task) -> Result<(), Error> {
    let path = workspace.board.worktree(&task.id);
    if workspace.config.worktree.keep {
        return Ok(());
    }
    // A killed supervisor leaves the cell to be imported.
    take_over_all(workspace, &task.id)?;
    if !path.exists() {
        // A killed removal may have left git's registration.
        workspace
            .repository()?
            .remove_worktree(&path, &workspace.board.worktree_lock())?;
        return Ok(());
    }
    let token = last_token(&workspace.board, &task.id)?;
    // The item's `worktree` setting may have changed since.
    if !path.join(".git").exists() && !workspace.repository()?.is_worktree(&path)? {
        return put_aside(workspace, &path, &run_name(&task.id, token));
    }
    let merged = workspace
        .repository()?
        .branch_tip(workspace.integration())?;
    keep_and_remove(workspace, task, token, &path, merged.as_slice())
}

/// Removes the folder of an item that needs no repository; its content stays with the last run.
fn put_aside(workspace: &Workspace, path: &Path, run: &str) -> Result<(), Error> {
    if fs::remove_dir(path).is_ok() {
        return Ok(());
    }
    let folder = Artifacts::create(&workspace.board, run)?.path("files");
    match fs::rename(path, &folder) {
        // Another process has moved it away meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.exists() => Ok(()),
        renamed => renamed.map_err(Error::io("keep the files of the run in", &folder)),
    }
}

/// Like [`clear`], for an item that has just ended. If its worktree can't be removed now, the log says why, and
/// `tavern-reap` tries again.
pub fn clear_ended(workspace: &Workspace, task: &Task) -> Result<(), Error> {
    let Err(error) = clear(workspace, task) else {
        return Ok(());
    };
    let cause = Some(format!(
        "its worktree was not removed: {}",
        error.in_words()
    ));
    let entry = Entry {
        task: Some(task.id.clone()),
        cause,
        ..Entry::new(Kind::Noted, clock::now())
    };
    Ok(workspace.board.note(entry)?)
}

/// Commits the worktree's files (tracked and untracked, minus ignored) to the salvage ref of the run with this
/// token, unless all of it is in `merged`. Only then removes the worktree.
fn keep_and_remove(
    workspace: &Workspace,
    task: &Task,
    token: Token,
    path: &Path,
    merged: &[CommitId],
) -> Result<(), Error> {
    let mut is_mixed = false;
    // An agent that continues its branch must find only its own work there.
    if path.exists() && workspace.repository()?.is_worktree(path)? {
        match workspace.repository()?.disown_baseline(path) {
            Err(GitError::Mixed { .. }) => is_mixed = true,
            disowned => disowned?,
        }
        take_inner(workspace, &task.id, &run_name(&task.id, token), path)?;
    }
    let kept = salvage(workspace, task, token, path, merged)?;
    if let Some(unsaved) = kept.as_ref().and_then(|kept| kept.unsaved.first()) {
        let why = format!("`{}` can't be read, so it can't be kept", unsaved.display());
        return Err(Error::io("remove", path)(io::Error::other(why)));
    }
    failpoint::hit("worktree.kept").map_err(Error::io("remove", path))?;
    if is_mixed {
        workspace.repository()?.disown_mixed(path)?;
    }
    workspace
        .repository()?
        .remove_worktree(path, &workspace.board.worktree_lock())?;
    Ok(())
}

/// Salvages the worktree, and logs once where the work is kept.
fn salvage(
    workspace: &Workspace,
    task: &Task,
    token: Token,
    path: &Path,
    merged: &[CommitId],
) -> Result<Option<Salvage>, Error> {
    let (repository, reference) = (workspace.repository()?, salvage_ref(task, token));
    let before = repository.references(&reference)?;
    let message = format!("Salvage {}: {}", task.id, task.title);
    let kept = repository.salvage(path, &reference, &message, merged)?;
    if let Some(Salvage { commit, .. }) = &kept
        && !before.contains(&(reference.clone(), commit.clone()))
    {
        let cause = Some(format!("the work in its worktree is kept at `{reference}`"));
        let entry = Entry {
            task: Some(task.id.clone()),
            cause,
            ..Entry::new(Kind::Noted, clock::now())
        };
        workspace.board.note(entry)?;
    }
    Ok(kept)
}
