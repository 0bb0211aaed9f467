//! A task's own folder: made from the tip of the integration branch, set up, and removed only after what it holds is
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
use super::furnish::furnish;
use super::processes::{end_processes, mark_of};
use super::record::{Metadata, last_token, role_of_work, run_name, runs_of};
use super::site::{SALVAGED, Site};
use super::strayed::end_of_dead;
use super::take_over::{take_inner, take_over_all};
use tavern_core::event::Kind;
use tavern_core::lease::Token;
use tavern_core::monitor::{Deed, Symptom};
use tavern_core::problem::listed;
use tavern_core::task::Task;
use tavern_git::{CommitId, GitError, Head, Merge, MergeConflict, Salvage};
use tavern_store::{Claimed, Entry, Queue, walk_log};
use tavern_sys::clock;
use tavern_sys::failpoint;

/// Where a run works.
#[derive(Clone, Debug)]
pub struct Worktree {
    pub path: PathBuf,
    /// `None`: the task needs no repository and has an empty folder, or is only looked at.
    pub branch: Option<Branch>,
    /// The one commit that it is looked at.
    pub view: Option<CommitId>,
    /// No earlier run has left it.
    pub is_new: bool,
}

/// The branch that is checked out in a worktree.
#[derive(Clone, Debug)]
pub struct Branch {
    pub name: String,
    /// The tip of the integration branch, from which it is made if it is not there.
    pub base: CommitId,
}

/// Makes the task's worktree, or takes up the one that an earlier attempt left, and runs the set-up command in a new
/// one. A dry run makes nothing; where the base branch and the integration branch have both moved, it names the latter
/// without the merge of the two.
pub fn prepare(site: &Site, held: &Claimed) -> Result<Worktree, Error> {
    let path = site.board.worktree(&held.task.id);
    let is_new = !path.exists();
    let branch = || {
        Ok::<_, Error>(Branch {
            name: site.branch_of(&held.task),
            base: site.follow_base()?.0,
        })
    };
    let branch = held.task.worktree.then(branch).transpose()?;
    let worktree = Worktree {
        path,
        branch,
        view: None,
        is_new,
    };
    if !site.board.is_dry() {
        make(site, held, &worktree)?;
    }
    Ok(worktree)
}

fn make(site: &Site, held: &Claimed, worktree: &Worktree) -> Result<(), Error> {
    let (task, lease, path) = (&held.task, &held.lease, &worktree.path);
    let role = site.role(&lease.role)?;
    end_earlier(site, held, path)?;
    let Some(Branch { name, base: tip }) = &worktree.branch else {
        return make_plain(path);
    };
    let start = match site.repository()?.branch_tip(name)? {
        Some(earlier) if is_outdated(site, held, tip, &earlier)? => {
            // The branch begins anew at the tip; the prompt names the ref under which the earlier work is kept.
            if path.exists() {
                keep_and_remove(site, task, lease.token, path, std::slice::from_ref(tip))?;
            }
            site.repository()?
                .keep_commit(&salvage_ref(task, lease.token), &earlier)?;
            site.repository()?.branch_delete_if(name, &earlier)?;
            tip.clone()
        }
        Some(earlier) => earlier,
        None => tip.clone(),
    };
    if !path.exists() {
        // What was committed on no branch before somebody deleted the folder.
        salvage(site, task, lease.token, path, &[tip.clone(), start.clone()])?;
    }
    let add = || {
        site.repository()?
            .add_worktree(path, name, &start, &site.board.worktree_lock(), |path| {
                children::gather(site, task, held.children(&site.board), path)?;
                furnish(
                    site,
                    role,
                    task,
                    mark_of(site, &run_name(&task.id, lease.token)),
                    path,
                )
            })
    };
    let was_made = match add() {
        Err(Error::Git(GitError::OtherHead { .. })) => {
            // Its supervisor died before it could bring an agent home that was elsewhere. Or the agent of an earlier attempt
            // switched to a branch of its own: that is kept, and the folder made anew.
            if !site.repository()?.bring_home(path, name)? {
                keep_and_remove(site, task, lease.token, path, std::slice::from_ref(tip))?;
            }
            add()?
        }
        other => other?,
    };
    if !was_made {
        children::gather(site, task, held.children(&site.board), path)?;
    }
    Ok(())
}

/// The folder of a task that needs no repository, unless it is there.
pub fn make_plain(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("make", path))
}

/// A folder with exactly the files of `commit`, on no branch, in which the task is looked at; an empty one without.
pub fn view(site: &Site, held: &Claimed, commit: Option<&CommitId>) -> Result<Worktree, Error> {
    let (task, lease) = (&held.task, &held.lease);
    let path = site.board.view(&task.id);
    let view = Worktree {
        path: path.clone(),
        branch: None,
        view: commit.cloned(),
        is_new: false,
    };
    if site.board.is_dry() {
        return Ok(view);
    }
    end_earlier(site, held, &path)?;
    let Some(commit) = commit else {
        return make_plain(&path).map(|()| view);
    };
    clean(site, task, lease.token, &path, commit)?;
    let mark = mark_of(site, &run_name(&task.id, lease.token));
    // It is set up by files of whoever did the work.
    let (role, author) = (site.role(&lease.role)?, role_of_work(site, task)?);
    let is_free = !role.sandbox && !site.config.worktree.setup.is_empty();
    furnish(
        site,
        if is_free { site.role(&author)? } else { role },
        task,
        mark,
        &path,
    )?;
    Ok(view)
}

/// Makes the folder at `path` hold exactly the files of `commit`, on no branch.
pub fn clean(
    site: &Site,
    task: &Task,
    token: u64,
    path: &Path,
    commit: &CommitId,
) -> Result<(), Error> {
    let lock = site.board.worktree_lock();
    match site.repository()?.checkout_scratch(path, commit, &lock) {
        // Whoever was there before has made a branch.
        Err(GitError::OtherHead { .. }) => {
            keep_and_remove(site, task, token, path, std::slice::from_ref(commit))?;
        }
        // Or has left what git can't delete: a folder that is read-only, or another user's. It is put out of the way.
        Err(GitError::Program { .. }) => drop(site.repository()?.remove_worktree(path, &lock)),
        made => return Ok(made.map(drop)?),
    }
    site.repository()?.checkout_scratch(path, commit, &lock)?;
    Ok(())
}

/// Removes the folder in which the task was looked at. What its agent made there in spite of that is kept.
pub fn remove_view(
    site: &Site,
    task: &Task,
    token: u64,
    commit: Option<&CommitId>,
) -> Result<(), Error> {
    let path = site.board.view(&task.id);
    if path.exists() && !path.join(".git").exists() {
        return put_aside(site, &path, &run_name(&task.id, token));
    }
    keep_and_remove(
        site,
        task,
        token,
        &path,
        commit.map_or(&[], std::slice::from_ref),
    )
}

/// Ends what earlier runs of the task have left running, since two must not work among the same files: one whose holder
/// was told to give the task up may not have heard of it yet.
fn end_earlier(site: &Site, held: &Claimed, path: &Path) -> Result<(), Error> {
    // Most items are new, and a board may have thousands of runs.
    if !held.has_history && !path.exists() {
        return Ok(());
    }
    let mut earlier = runs_of(&site.board, &held.task.id)?;
    earlier.retain(|run| run.token < held.lease.token);
    let last = earlier.last().map(|run| run.token);
    for run in earlier
        .iter()
        .filter(|run| run.ended.is_none() || Some(run.token) == last)
    {
        end_processes(site, &run.run)?;
        end_of_dead(site, &run.run)?;
    }
    take_over_all(site, &held.task.id)
}

/// Brings the worktree back to the item's branch, if its agent has left that. Returns in words where it was (`HEAD`: on no
/// branch): commits on top of the item's branch are on that now, a branch with a history of its own stays as it is.
pub fn bring_home(site: &Site, worktree: &Worktree) -> Result<Option<String>, Error> {
    let Some(branch) = &worktree.branch else {
        return Ok(None);
    };
    let found = match site.repository()?.head_of(&worktree.path) {
        Ok(Head::Branch { name, .. } | Head::Unborn { name }) => name,
        Ok(Head::Detached { .. }) => {
            let branch = site.repository()?.left_on(&worktree.path);
            branch.unwrap_or_else(|| "HEAD".to_owned())
        }
        // Its agent has removed it.
        Err(GitError::NotAWorktree { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if found == branch.name {
        return Ok(None);
    }
    let is_home = site
        .repository()?
        .bring_home(&worktree.path, &branch.name)?;
    Ok(Some(if is_home {
        format!("its work was on `{found}`; the item's branch was moved there")
    } else {
        format!("violation: it left its worktree on `{found}`, apart from its own branch")
    }))
}

/// Earlier work was taken back on the integration branch, has commits that the base has dropped, or was ended for breaking a rule. Or it conflicts with that branch, and nobody
/// goes on from it: a script that is run once more does the same upon what is new.
fn is_outdated(
    site: &Site,
    held: &Claimed,
    tip: &CommitId,
    earlier: &CommitId,
) -> Result<bool, Error> {
    if site.repository()?.reverted(earlier, tip)?.is_some()
        || site.dropped_from(tip, earlier)?.is_some()
    {
        return Ok(true);
    }
    let runs = runs_of(&site.board, &held.task.id)?;
    let last = runs
        .iter()
        .rfind(|run| run.token < held.lease.token && run.role == held.lease.role);
    if last.is_some_and(|last| was_reaped(site, last)) {
        return Ok(true);
    }
    let goes_on = last.is_some_and(|last| last.session.is_some());
    Ok(!goes_on && conflict(site, &held.queue, tip, earlier)?.is_some())
}

/// The run was ended for breaking a rule: what it left breaks that still.
fn was_reaped(site: &Site, run: &Metadata) -> bool {
    let mut was_reaped = false;
    let walked = walk_log(&site.board, Some(&run.task), &mut |entry| {
        let is_breach =
            entry.symptom == Some(Symptom::Violation) && entry.deed == Some(Deed::Ended);
        was_reaped = is_breach && entry.run.as_ref() == Some(&run.run);
        !was_reaped
    });
    walked.is_ok() && was_reaped
}

/// The first of these paths in one line, and how many more there are.
pub fn named(paths: &[PathBuf]) -> String {
    listed(
        &paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>(),
    )
}

/// In what earlier work conflicts with the integration branch at `tip`.
pub fn conflict(
    site: &Site,
    queue: &Queue,
    tip: &CommitId,
    earlier: &CommitId,
) -> Result<Option<MergeConflict>, Error> {
    let protected = site.protected(queue);
    let protected: Vec<&str> = protected.iter().map(String::as_str).collect();
    Ok(
        match site
            .repository()?
            .merge(tip, earlier, &protected, "probe")?
        {
            Merge::Conflict(conflict) => Some(conflict),
            Merge::UpToDate | Merge::Clean { .. } => None,
        },
    )
}

/// Where the work of the run with this token is kept when its worktree goes.
pub fn salvage_ref(task: &Task, token: u64) -> String {
    format!("{SALVAGED}{}/{token}", task.id)
}

/// Keeps what the worktree holds beyond the integration branch, then removes it, and the item's branch if all of it is on
/// the integration branch.
pub fn clear(site: &Site, task: &Task) -> Result<(), Error> {
    clear_folder(site, task)?;
    delete_merged_branch(site, task).map(drop)
}

/// Where the item's branch is, if all of it is on the integration branch.
pub fn merged_branch(site: &Site, task: &Task) -> Result<Option<CommitId>, Error> {
    let repository = site.repository()?;
    let name = site.branch_of(task);
    let (Some(own), Some(tip)) = (
        repository.branch_tip(&name)?,
        repository.branch_tip(site.integration())?,
    ) else {
        return Ok(None);
    };
    let is_merged = name != site.integration() && repository.is_ancestor(&own, &tip)?;
    Ok(is_merged.then_some(own))
}

/// Deletes the item's branch if all of it is on the integration branch: what is on it is found there from now on. True if
/// it did.
pub fn delete_merged_branch(site: &Site, task: &Task) -> Result<bool, Error> {
    if !task.worktree {
        return Ok(false);
    }
    let Some(own) = merged_branch(site, task)? else {
        return Ok(false);
    };
    match site
        .repository()?
        .branch_delete_if(&site.branch_of(task), &own)
    {
        // Somebody works on it after all.
        Err(GitError::Moved { .. } | GitError::CheckedOut { .. }) => Ok(false),
        deleted => Ok(deleted?),
    }
}

fn clear_folder(site: &Site, task: &Task) -> Result<(), Error> {
    let path = site.board.worktree(&task.id);
    if site.config.worktree.keep {
        return Ok(());
    }
    // Its supervisor was killed before it could.
    take_over_all(site, &task.id)?;
    if !path.exists() {
        // A removal that was killed may have left git's registration.
        site.repository()?
            .remove_worktree(&path, &site.board.worktree_lock())?;
        return Ok(());
    }
    let token = last_token(&site.board, &task.id)?;
    // Its item may say otherwise by now.
    if !path.join(".git").exists() && !site.repository()?.is_worktree(&path)? {
        return put_aside(site, &path, &run_name(&task.id, token));
    }
    let merged = site.repository()?.branch_tip(site.integration())?;
    keep_and_remove(site, task, token, &path, merged.as_slice())
}

/// Removes the folder of an item that needs no repository; what is in it stays with its last run.
fn put_aside(site: &Site, path: &Path, run: &str) -> Result<(), Error> {
    if fs::remove_dir(path).is_ok() {
        return Ok(());
    }
    let folder = Artifacts::create(&site.board, run)?.path("files");
    match fs::rename(path, &folder) {
        // Somebody has taken it away meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.exists() => Ok(()),
        renamed => renamed.map_err(Error::io("keep the files of the run in", &folder)),
    }
}

/// As [`clear`], of an item that has just ended: it has, also where its worktree can't be removed now. Then the log says
/// why, and `tavern-reap` tries again.
pub fn clear_ended(site: &Site, task: &Task) -> Result<(), Error> {
    let Err(error) = clear(site, task) else {
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
    Ok(site.board.note(entry)?)
}

/// Commits what the worktree holds (tracked and untracked, minus ignored) to the salvage ref of the run with this token,
/// unless all of it is in `merged`, and only then removes it.
fn keep_and_remove(
    site: &Site,
    task: &Task,
    token: Token,
    path: &Path,
    merged: &[CommitId],
) -> Result<(), Error> {
    let mut is_mixed = false;
    // Whoever goes on from its branch finds its own work there.
    if path.exists() && site.repository()?.is_worktree(path)? {
        match site.repository()?.disown_baseline(path) {
            Err(GitError::Mixed { .. }) => is_mixed = true,
            disowned => disowned?,
        }
        take_inner(site, &task.id, &run_name(&task.id, token), path)?;
    }
    let kept = salvage(site, task, token, path, merged)?;
    if let Some(unsaved) = kept.as_ref().and_then(|kept| kept.unsaved.first()) {
        let why = format!("`{}` can't be read, so it can't be kept", unsaved.display());
        return Err(Error::io("remove", path)(io::Error::other(why)));
    }
    failpoint::hit("worktree.kept").map_err(Error::io("remove", path))?;
    if is_mixed {
        site.repository()?.disown_mixed(path)?;
    }
    site.repository()?
        .remove_worktree(path, &site.board.worktree_lock())?;
    Ok(())
}

/// The log says where it is kept, once.
fn salvage(
    site: &Site,
    task: &Task,
    token: Token,
    path: &Path,
    merged: &[CommitId],
) -> Result<Option<Salvage>, Error> {
    let (repository, reference) = (site.repository()?, salvage_ref(task, token));
    let before = repository.references(&reference)?;
    let message = format!("Salvage {}: {}", task.id, task.title);
    let kept = repository.salvage(path, &reference, &message, merged)?;
    if let Some(Salvage { commit, .. }) = &kept
        && !before.contains(&(reference.clone(), commit.clone()))
    {
        let cause = Some(format!("what its worktree held is kept at `{reference}`"));
        let entry = Entry {
            task: Some(task.id.clone()),
            cause,
            ..Entry::new(Kind::Noted, clock::now())
        };
        site.board.note(entry)?;
    }
    Ok(kept)
}
