//! Linked worktrees: made, found again after a crash, removed.
//!
//! A worktree is made in two steps. Under the caller's lock file it is registered, with a `locked` mark of git's own kind that
//! says who is making it. Then, without the caller's lock, its files are checked out and the caller furnishes it, under a lock on
//! that mark. So many are made at once, only the registering is one after the other. The mark goes when all is done: a worktree
//! that has it was never handed out, and whoever finds it with nobody behind it makes the worktree anew. Removing begins with a
//! rename, so no half-removed folder is ever found at its path.
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
use super::endless::remove_endless;
use super::lock::FileLock;
use super::program::THOROUGH;
use super::registration::{self, RegisteredHead, Registration};
use super::repository::Checkout;
use super::{CommitId, GitError, Head, Repository};
use tavern_sys::clock;
use tavern_sys::files::{self, gone};

/// Folders with this prefix, beside worktrees, are what is left of removed ones.
const REMOVED: &str = ".tavern-removed-";

/// How the `locked` mark of a worktree that is being made begins; its path follows.
const MAKING: &str = "tavern is making ";

/// What a new worktree was given beside what is checked out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Furnished {
    /// Files and folders that were copied there.
    pub copied: Vec<PathBuf>,
    /// A command was run in it.
    pub is_set_up: bool,
}

impl Repository {
    /// A worktree at `path` with `branch` checked out through the user's filters. The branch is made at `start` if there is
    /// none, else it is taken as it is. A new worktree is handed to `furnish` before it counts as made; if that fails, the
    /// worktree is removed again. True if it is new, false if it was there already.
    ///
    /// Nobody else may be at work in one that is there: locks that a killed git left inside are taken away.
    /// All who add or remove worktrees here share `lock_file` (its folder must exist), which is held for milliseconds only.
    ///
    /// [`GitError::CheckedOut`], [`GitError::FolderInTheWay`], [`GitError::OtherHead`] (it is there, on another branch),
    /// [`GitError::Locked`] (by somebody else, with `git worktree lock`), [`GitError::Busy`].
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
                // What can't be removed now is found half made, and made anew.
                let _ = self.remove_worktree(path, lock_file);
                return Err(error);
            }
        };
        self.remember_baseline(&making.entry.path, &furnished)?;
        making.finish()?;
        Ok(true)
    }

    /// A worktree at `path` without a branch, with exactly the files of `commit`: changed, untracked and ignored files of an
    /// earlier use are removed. [`GitError::OtherHead`] if a branch is checked out there: then it is somebody's work.
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

    /// Removes the linked worktree at `path` with everything in it, and its registration, also if one of the two is gone
    /// already. Returns whether there was anything. The branch stays. What is in it must have been saved before.
    ///
    /// [`GitError::NotAWorktree`] for the main work tree and any folder that is not of this repository,
    /// [`GitError::HoldsWorktree`], [`GitError::Locked`], [`GitError::FolderInTheWay`] (another repository took its place).
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

    /// The paths of the worktrees that are registered directly in `folder`, in order; also of those whose folder is gone
    /// or not made yet, since a call was killed.
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

    /// Returns whether the folder at `path`, or what was there, is a linked worktree of this repository.
    pub fn is_worktree(&self, path: &Path) -> Result<bool, GitError> {
        Ok(registration::find(self.common_dir(), &registration::resolved(path)?)?.is_some())
    }

    /// Takes away all that a linked worktree holds which its last commit does not, but for what is ignored, what it held before anybody
    /// worked there, and repositories inside.
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

    /// Puts the worktree at `path` back on `branch`, moved forward to the commit that the worktree is at; its files and its
    /// index stay as they are. False if that commit does not descend from the branch: then nothing is changed.
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

    /// Puts the branch that the worktree at `path` was on back to where it was `before`, if commands have moved the worktree's `HEAD`
    /// since. Returns whether they have.
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

    /// The commit that the worktree at `path` was at, on no branch, before somebody deleted its folder: only git's entry
    /// for it still names that.
    pub(super) fn lost_head(&self, path: &Path) -> Result<Option<CommitId>, GitError> {
        let path = registration::resolved(path)?;
        let entry =
            registration::find(self.common_dir(), &path)?.filter(|entry| !entry.path.exists());
        Ok(entry.and_then(|entry| match entry.head {
            RegisteredHead::Commit(commit) => commit.parse().ok(),
            _ => None,
        }))
    }

    /// Returns whether the worktree of this git directory is not made whole: its maker was killed, or is still at it.
    pub(super) fn is_half_made(checkout: &Checkout) -> bool {
        fs::read_to_string(checkout.git_dir.join("locked")).is_ok_and(|mark| is_making(&mark))
    }

    /// `None`: it was there already.
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

    /// Removes the locks that a killed git has left in the worktree, which nobody works in any more, and on its branch, which
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

    /// Under the caller's lock: what is there, and if nothing is, a new registration with the lock on its mark.
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

    /// Writes what `git worktree add --no-checkout` does, which reads every other worktree there is.
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
                // What did not exist a moment ago nobody has checked out.
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

    /// The files of a new worktree, or of a scratch one.
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
            // HEAD is there already, and nothing is to be remembered of before.
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

    /// Under the caller's lock: takes the folder out of sight and the registration away. Returns `None` if
    /// there was nothing, else the folder's new path, if there was a folder.
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
            // A link back into this repository is proof enough; an empty folder is no loss to anybody.
            if !is_absent_or_empty(path)? && !self.is_lost_worktree(path) {
                return Err(refusal());
            }
            return Ok(Stage::Done(Some(discard(path)?)));
        };
        // Held until the registration is gone, so that nobody goes on making it meanwhile.
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

    /// A folder that points to a registration of this repository which is gone.
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

/// What came of a step under the caller's lock.
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

/// The `locked` mark of a worktree says that it is being made, wherever it was then.
fn is_making(mark: &str) -> bool {
    mark.starts_with(MAKING)
}

/// What the `locked` mark of a worktree says while it is being made.
fn reason(path: &Path) -> String {
    format!("{MAKING}{}", path.display()).trim_end().to_owned()
}

/// A registration whose folder has something in it, checked and mended.
fn whole(entry: Registration, goal: &Goal<'_>) -> Result<Registration, GitError> {
    // Whoever removed what Tavern keeps has removed its cell.
    entry.forsake_cell()?;
    if !entry.path.join(".git").exists() {
        // Somebody deleted the one file that makes the folder a worktree; the work is still there.
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

/// Takes the step, each time under the caller's lock, until nobody is making the worktree any more.
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

/// Moves the folder, if it is there, out of the way. One rename, since others [`sweep`] whatever has such a name at any moment.
fn discard(path: &Path) -> Result<Option<PathBuf>, GitError> {
    if path.parent().is_none() || !path.exists() {
        return Ok(None);
    }
    let bin = bin_beside(path);
    fs::rename(path, &bin).map_err(GitError::io("move away", path))?;
    Ok(Some(bin))
}

/// Where what is removed goes first; [`sweep`] deletes it.
pub(super) fn bin_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!("{REMOVED}{}", Uuid::new_v4()))
}

/// Deletes what killed processes left beside `path`. What can't be deleted now is left to the next call.
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

/// Deletes a registration. The file that tells where its folder was goes last, so that a repeated call finds what is left.
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
