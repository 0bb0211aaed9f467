//! Linked worktrees: created, found again after a crash, removed.
//!
//! A worktree is created in two steps. Under the caller's lock file it is registered, with git's `locked` mark that
//! names its creator. Then its files are checked out and the caller furnishes it, under a lock on that mark only. So
//! many worktrees are created in parallel; only their registration is serialized. The mark is removed at the end: a
//! marked worktree was never handed out. If its creator is gone, the next process creates it anew. A removal begins
//! with a rename, so no half-removed folder is ever found at its path.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use uuid::Uuid;

use super::branch::branch_reference;
use super::lock::FileLock;
use super::program::THOROUGH;
use super::registration::{self, RegisteredHead, Registration};
use super::repository::Checkout;
use super::special_files::remove_endless;
use super::{CommitId, GitError, Head, Repository};
use tavern_sys::clock;
use tavern_sys::files::{self, gone};

/// Prefix of folders beside worktrees that are leftovers of removed ones.
const REMOVED: &str = ".tavern-removed-";

/// Prefix of the `locked` mark of a worktree that is being created; its path follows.
const MAKING: &str = "tavern is making ";

/// Additions to a new worktree beside the checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Furnished {
    /// Files and folders that were copied there.
    pub copied: Vec<PathBuf>,
    /// Whether a command was run in it.
    pub is_set_up: bool,
}

impl Repository {
    /// Creates a worktree at `path` with `branch` checked out through the user's filters. A missing branch is created
    /// at `start`; an existing one is used as it is. `furnish` gets the new worktree before it counts as complete; if
    /// it fails, the worktree is removed again. Returns true if it is new, false if it existed.
    ///
    /// No other process may use an existing worktree: locks left by a killed git inside are removed. All callers that
    /// add or remove worktrees here share `lock_file` (its folder must exist), which is held for milliseconds only.
    ///
    /// Fails with [`GitError::CheckedOut`], [`GitError::FolderInTheWay`], [`GitError::OtherHead`] (it exists, on
    /// another branch), [`GitError::Locked`] (with `git worktree lock`) or [`GitError::Busy`].
    pub fn add_worktree<E: From<GitError>>(
        &self,
        path: &Path,
        branch: &str,
        start: &CommitId,
        lock_file: &Path,
        furnish: impl FnOnce(&Path) -> Result<Furnished, E>,
    ) -> Result<bool, E> {
        let goal = Goal::Branch {
            name: branch,
            reference: branch_reference(branch)?,
            start,
        };
        let made = self.make(path, &goal, lock_file)?;
        let Some(making) = made else { return Ok(false) };
        let furnished = match furnish(&making.entry.path) {
            Ok(furnished) => furnished,
            Err(error) => {
                drop(making);
                // If the removal fails, the worktree is found incomplete, and created anew.
                let _ = self.remove_worktree(path, lock_file);
                return Err(error);
            }
        };
        self.remember_baseline(&making.entry.path, &furnished)?;
        making.finish()?;
        Ok(true)
    }

    /// Creates a worktree at `path` without a branch, with exactly the files of `commit`: changed, untracked and
    /// ignored files of an earlier use are removed. Fails with [`GitError::OtherHead`] if a branch is checked out
    /// there, which may be work.
    pub fn checkout_scratch(
        &self,
        path: &Path,
        commit: &CommitId,
        lock_file: &Path,
    ) -> Result<(), GitError> {
        self.find_commit(commit)?;
        self.make(path, &Goal::Commit(commit), lock_file)?
            .map_or(Ok(()), Making::finish)
    }

    /// Removes the linked worktree at `path`, with its contents and registration; one of the two may be gone already.
    /// Returns whether there was anything. The branch stays. Its contents must have been saved before.
    ///
    /// Fails with [`GitError::NotAWorktree`] for the main work tree and folders of other repositories,
    /// [`GitError::HoldsWorktree`], [`GitError::Locked`], or [`GitError::FolderInTheWay`] (another repository took
    /// its place).
    pub fn remove_worktree(&self, path: &Path, lock_file: &Path) -> Result<bool, GitError> {
        let path = registration::resolved(path)?;
        let removed = once_made(lock_file, || self.detach(&path))?;
        if let Some(bin) = removed.iter().flatten().next() {
            files::remove_tree(bin).map_err(GitError::io("remove", bin))?;
        }
        sweep(&path);
        self.forget_baseline(&path)?;
        Ok(removed.is_some())
    }

    /// Returns the sorted paths of worktrees registered directly in `folder`. After a killed call their folder may be
    /// missing.
    pub fn worktrees_in(&self, folder: &Path) -> Result<Vec<PathBuf>, GitError> {
        let folder = registration::resolved(folder)?;
        let mut found: Vec<PathBuf> = registration::all(self.common_dir())?
            .into_iter()
            .map(|entry| entry.path)
            .collect();
        found.retain(|path| path.parent() == Some(&folder));
        found.dedup();
        Ok(found)
    }

    /// Returns true if the folder at `path`, existing or not, is a linked worktree of this repository.
    pub fn is_worktree(&self, path: &Path) -> Result<bool, GitError> {
        Ok(registration::find(self.common_dir(), &registration::resolved(path)?)?.is_some())
    }

    /// Reverts a linked worktree to its last commit, except for ignored files, its baseline, and repositories inside.
    pub fn restore(&self, worktree: &Path) -> Result<(), GitError> {
        let checkout = self.checkout(worktree)?;
        self.call(&checkout)
            .args(["reset", "--quiet", "--hard"])
            .limit(THOROUGH)
            .read()?;
        self.call(&checkout)
            .args(["clean", "--quiet", "-fd"])
            .limit(THOROUGH)
            .read()?;
        self.restore_baseline(&checkout)
    }

    /// Puts the worktree at `path` back on `branch`, and moves the branch forward to the worktree's commit. Files and
    /// index stay as they are. Returns false, without any change, if that commit does not descend from the branch.
    ///
    /// Errors as for [`Repository::advance`].
    pub fn bring_home(&self, path: &Path, branch: &str) -> Result<bool, GitError> {
        let reference = branch_reference(branch)?;
        let Some(commit) = self.head_of(path)?.commit() else {
            return Ok(false);
        };
        let Some(tip) = self.branch_tip(branch)? else {
            return Ok(false);
        };
        if !self.is_ancestor(&tip, &commit)? {
            return Ok(false);
        }
        if tip != commit {
            self.advance(&reference, &tip, &commit, "tavern: bring the work home")?;
        }
        let log = ["symbolic-ref", "-m", "tavern: bring the work home", "HEAD"];
        self.call(&self.checkout(path)?)
            .args(log)
            .arg(&reference)
            .read()?;
        Ok(true)
    }

    /// Moves the branch of the worktree at `path` back to `before`, if commands have moved its `HEAD` since. Returns
    /// whether they have.
    pub fn undo_moves(&self, path: &Path, before: &Head) -> Result<bool, GitError> {
        let is_moved = self.head_of(path).ok().as_ref() != Some(before);
        if let Head::Branch { name, commit } = before
            && is_moved
        {
            let reference = branch_reference(name)?;
            let tip = self.tip(&reference)?;
            self.swap(&reference, tip.as_ref(), Some(commit), "tavern: put back")?;
        }
        Ok(is_moved)
    }

    /// Returns the detached commit of the worktree at `path` after its folder was deleted. Only git's entry still
    /// names it.
    pub(super) fn lost_head(&self, path: &Path) -> Result<Option<CommitId>, GitError> {
        let path = registration::resolved(path)?;
        let entry =
            registration::find(self.common_dir(), &path)?.filter(|entry| !entry.path.exists());
        Ok(entry.and_then(|entry| match entry.head {
            RegisteredHead::Commit(commit) => commit.parse().ok(),
            _ => None,
        }))
    }

    /// Returns true if the worktree of this git directory is incomplete: its creator was killed, or is still at work.
    pub(super) fn is_half_made(checkout: &Checkout) -> bool {
        fs::read_to_string(checkout.git_dir.join("locked")).is_ok_and(|mark| is_making(&mark))
    }

    /// Returns `None` if it existed already.
    fn make(
        &self,
        path: &Path,
        goal: &Goal<'_>,
        lock_file: &Path,
    ) -> Result<Option<Making>, GitError> {
        let path = registration::resolved(path)?;
        let (entry, mark) = once_made(lock_file, || self.register(&path, goal))?;
        self.free(&entry, goal)?;
        self.check_out(&entry, goal, mark.as_ref())?;
        sweep(&path);
        Ok(mark.map(|mark| Making { entry, _mark: mark }))
    }

    /// Removes locks that a killed git left in the worktree, which no process uses any more, and on its branch, which
    /// another git may hold for a moment.
    fn free(&self, entry: &Registration, goal: &Goal<'_>) -> Result<(), GitError> {
        for file in fs::read_dir(&entry.admin)
            .map_err(GitError::io("list", &entry.admin))?
            .flatten()
        {
            let path = file.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "lock")
            {
                gone(fs::remove_file(&path)).map_err(GitError::io("remove", path))?;
            }
        }
        match goal {
            Goal::Branch { name, .. } => {
                self.await_lock(&self.common_dir().join(format!("refs/heads/{name}.lock")))
            }
            Goal::Commit(_) => Ok(()),
        }
    }

    /// Runs under the caller's lock. Returns the existing registration, or else a new one with the lock on its mark.
    fn register(
        &self,
        path: &Path,
        goal: &Goal<'_>,
    ) -> Result<Stage<(Registration, Option<FileLock>)>, GitError> {
        if let Some(entry) = registration::find(self.common_dir(), path)? {
            let is_half_made = entry.locked.as_deref().is_some_and(is_making);
            if is_half_made && FileLock::try_take_existing(&entry.admin.join("locked"))?.is_none() {
                return Ok(Stage::StillBeingMade(entry));
            }
            if !is_half_made && !is_absent_or_empty(&entry.path)? {
                remove_endless(&entry.path)?;
                return Ok(Stage::Done((whole(entry, goal)?, None)));
            }
            if let Some(reason) = entry.locked.filter(|_| !is_half_made) {
                return Err(GitError::Locked {
                    path: entry.path,
                    reason,
                });
            }
            discard(&entry.path)?;
            remove_admin(&entry.admin)?;
        }
        if !is_absent_or_empty(path)? {
            return Err(GitError::FolderInTheWay {
                path: path.to_owned(),
            });
        }
        let (entry, mark) = self.register_anew(path, goal)?;
        Ok(Stage::Done((entry, Some(mark))))
    }

    /// Writes the same as `git worktree add --no-checkout`, which would read every other worktree.
    fn register_anew(
        &self,
        path: &Path,
        goal: &Goal<'_>,
    ) -> Result<(Registration, FileLock), GitError> {
        let head = match goal {
            Goal::Branch {
                name,
                reference,
                start,
            } => {
                // A branch that was just created can't be checked out elsewhere.
                if !self.start_branch(name, start)?
                    && let Some(path) = self.checked_out_at(name)?
                {
                    return Err(GitError::CheckedOut {
                        branch: (*name).to_owned(),
                        path,
                    });
                }
                format!("ref: {reference}")
            }
            Goal::Commit(commit) => commit.to_string(),
        };
        let (entry, mark) = registration::add(self.common_dir(), path, &head, &reason(path))?;
        fs::create_dir_all(path).map_err(GitError::io("make", path))?;
        entry.link()?;
        Ok((entry, mark))
    }

    /// Checks out the files of a new worktree, or of a scratch one.
    fn check_out(
        &self,
        entry: &Registration,
        goal: &Goal<'_>,
        mark: Option<&FileLock>,
    ) -> Result<(), GitError> {
        let checkout = Checkout {
            git_dir: entry.admin.clone(),
            root: entry.path.clone(),
        };
        let call = self.call(&checkout).limit(THOROUGH);
        if let Some(mark) = mark {
            // `HEAD` is set already, and there is no earlier state to record.
            let read = call.args([
                "read-tree",
                "--reset",
                "-u",
                "--no-recurse-submodules",
                "HEAD",
            ]);
            return read.holding(mark)?.read().map(drop);
        }
        let Goal::Commit(commit) = goal else {
            return Ok(());
        };
        call.args([
            "reset",
            "--hard",
            "--quiet",
            "--no-recurse-submodules",
            commit.as_str(),
        ])
        .read()?;
        self.call(&checkout)
            .args(["clean", "-ffdx", "--quiet"])
            .limit(THOROUGH)
            .read()
            .map(drop)
    }

    /// Runs under the caller's lock. Renames the folder away and removes the registration. Returns `None` if there
    /// was nothing, else the folder's new path, if there was a folder.
    fn detach(&self, path: &Path) -> Result<Stage<Option<Option<PathBuf>>>, GitError> {
        let refusal = || GitError::NotAWorktree {
            path: path.to_owned(),
            repository: self.main_worktree().to_owned(),
        };
        if self.main_worktree().starts_with(path) || self.common_dir().starts_with(path) {
            return Err(refusal());
        }
        if path.exists()
            && let Some(inner) = registration::inside(self.common_dir(), path)?
        {
            return Err(GitError::HoldsWorktree {
                path: path.to_owned(),
                inner,
            });
        }
        let Some(entry) = registration::find(self.common_dir(), path)? else {
            if !path.exists() {
                return Ok(Stage::Done(None));
            }
            // A link back into this repository is proof enough, and an empty folder is no loss.
            if !is_absent_or_empty(path)? && !self.is_lost_worktree(path) {
                return Err(refusal());
            }
            return Ok(Stage::Done(Some(discard(path)?)));
        };
        // Held until the registration is gone, so that no other process continues its creation.
        let making;
        if let Some(text) = &entry.locked {
            if !is_making(text) {
                return Err(GitError::Locked {
                    path: entry.path,
                    reason: text.clone(),
                });
            }
            making = FileLock::try_take_existing(&entry.admin.join("locked"))?;
            if making.is_none() {
                return Ok(Stage::StillBeingMade(entry));
            }
        }
        remove_endless(path)?;
        entry.forsake_cell()?;
        if path.join(".git").exists() && !entry.is_linked_back() {
            return Err(GitError::FolderInTheWay { path: entry.path });
        }
        let bin = discard(path)?;
        remove_admin(&entry.admin)?;
        Ok(Stage::Done(Some(bin)))
    }

    /// Returns true if the folder points to a missing registration of this repository.
    fn is_lost_worktree(&self, path: &Path) -> bool {
        let Some(admin) = registration::pointed_from(path) else {
            return false;
        };
        admin.parent() == Some(&self.common_dir().join("worktrees")) && !admin.exists()
    }
}

enum Goal<'a> {
    Branch {
        name: &'a str,
        reference: String,
        start: &'a CommitId,
    },
    Commit(&'a CommitId),
}

/// The result of a step under the caller's lock.
enum Stage<T> {
    Done(T),
    StillBeingMade(Registration),
}

impl Goal<'_> {
    fn accepts(&self, head: &RegisteredHead) -> bool {
        match (self, head) {
            (Goal::Branch { reference, .. }, RegisteredHead::Branch(found)) => reference == found,
            (Goal::Commit(_), RegisteredHead::Commit(_)) => true,
            _ => false,
        }
    }
}

/// A new worktree, checked out and still marked.
struct Making {
    entry: Registration,
    _mark: FileLock,
}

impl Making {
    fn finish(self) -> Result<(), GitError> {
        let mark = self.entry.admin.join("locked");
        fs::remove_file(&mark).map_err(GitError::io("remove", mark))
    }
}

/// Returns true if the `locked` mark of a worktree says that it is being created, at any path.
fn is_making(mark: &str) -> bool {
    mark.starts_with(MAKING)
}

/// Returns the `locked` mark of a worktree that is being created.
fn reason(path: &Path) -> String {
    format!("{MAKING}{}", path.display()).trim_end().to_owned()
}

/// Checks and repairs the registration of a worktree with files in its folder.
fn whole(entry: Registration, goal: &Goal<'_>) -> Result<Registration, GitError> {
    // If Tavern's files were removed, so was the cell.
    entry.forsake_cell()?;
    if !entry.path.join(".git").exists() {
        // The `.git` file was deleted, but the work is still there.
        entry.link()?;
    } else if !entry.is_linked_back() {
        return Err(GitError::FolderInTheWay { path: entry.path });
    } else {
        entry.follow_move()?;
    }
    if goal.accepts(&entry.head) {
        return Ok(entry);
    }
    let found = match &entry.head {
        RegisteredHead::Branch(name) => {
            format!("branch `{}`", name.trim_start_matches("refs/heads/"))
        }
        RegisteredHead::Commit(id) => format!("commit {id} without a branch"),
        RegisteredHead::Nothing => "nothing".to_owned(),
    };
    let expected = match goal {
        Goal::Branch { name, .. } => Some((*name).to_owned()),
        Goal::Commit(_) => None,
    };
    Err(GitError::OtherHead {
        path: entry.path,
        expected,
        found,
    })
}

/// Repeats the step, each time under the caller's lock, until no other process is creating the worktree.
fn once_made<T>(
    lock_file: &Path,
    step: impl Fn() -> Result<Stage<T>, GitError>,
) -> Result<T, GitError> {
    let deadline = clock::instant() + THOROUGH;
    loop {
        let lock = FileLock::take(lock_file)?;
        let entry = match step()? {
            Stage::Done(done) => return Ok(done),
            Stage::StillBeingMade(entry) => entry,
        };
        drop(lock);
        if clock::instant() >= deadline {
            return Err(GitError::Busy {
                path: entry.admin.join("locked"),
                waited: THOROUGH,
            });
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn is_absent_or_empty(path: &Path) -> Result<bool, GitError> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(false),
        Err(source) => Err(GitError::Io {
            doing: "list",
            path: path.to_owned(),
            source,
        }),
    }
}

/// Moves the folder away, if it exists, by a single rename: other processes may [`sweep`] such names at any moment.
fn discard(path: &Path) -> Result<Option<PathBuf>, GitError> {
    if path.parent().is_none() || !path.exists() {
        return Ok(None);
    }
    let bin = bin_beside(path);
    fs::rename(path, &bin).map_err(GitError::io("move away", path))?;
    Ok(Some(bin))
}

/// Returns the path for a removed folder; [`sweep`] deletes it.
pub(super) fn bin_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!("{REMOVED}{}", Uuid::new_v4()))
}

/// Deletes leftovers of killed processes beside `path`. Failures are left to the next call.
pub(super) fn sweep(path: &Path) {
    let Some(Ok(entries)) = path.parent().map(fs::read_dir) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(REMOVED) {
            let _ = files::remove_tree(&entry.path());
        }
    }
}

/// Deletes a registration. The file that names its folder is deleted last, so that a repeated call finds the rest.
fn remove_admin(admin: &Path) -> Result<(), GitError> {
    let removing = || GitError::io("remove", admin);
    let entries = match fs::read_dir(admin) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(removing())?,
    };
    for entry in entries {
        let entry = entry.map_err(removing())?;
        if entry.file_name() == "gitdir" {
            continue;
        }
        let is_dir = entry.file_type().map_err(removing())?.is_dir();
        let done = if is_dir {
            files::remove_tree(&entry.path())
        } else {
            gone(fs::remove_file(entry.path()))
        };
        done.map_err(removing())?;
    }
    gone(fs::remove_file(admin.join("gitdir"))).map_err(removing())?;
    gone(fs::remove_dir(admin)).map_err(removing())
}

#[cfg(test)]
mod tests;
