//! Merges in memory: objects are written, but no work tree, index or reference is changed.
//!
//! Knows nothing of the reason for a merge. `advance` and `follow` move branches afterwards. `git merge-tree` does
//! the work, since only git knows the user's merge drivers, renamed folders and line endings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{Commit, ErrorCode, Oid, Tree};

use super::branch::branch_reference;
use super::history::{path_of, paths};
use super::program::{THOROUGH, records};
use super::{CommitId, GitError, Repository};

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// All commits are there already.
    UpToDate,
    /// A merge commit with parents `into` and `from`, which no reference names yet. `left_out` lists paths that
    /// `from` changed but that were taken from `into`.
    Clean {
        commit: CommitId,
        left_out: Vec<PathBuf>,
    },
    /// Nothing relevant was written.
    Conflict(MergeConflict),
}

/// A conflict that a person or an agent has to resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeConflict {
    pub paths: Vec<PathBuf>,
    /// A patch from `from` to the merge result with conflict markers, cut at the end of a line.
    pub patch: String,
}

/// Longest [`MergeConflict::patch`], in bytes.
const MOST_OF_CONFLICT: usize = 4 << 10;

/// The reference of the merge that is being verified.
const MERGING: &str = "refs/tavern/merging";

/// How a branch caught up with another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    UpToDate,
    FastForwarded(CommitId),
    Merged(CommitId),
    Conflict(Vec<PathBuf>),
}

impl Repository {
    /// Merges `from` into `into`, always as a merge commit: each merge is one step of the history, and its commits
    /// are contained even if others made the same changes. Changes of `from` at or under a path of `without`
    /// (relative to the root) are left out.
    pub fn merge(
        &self,
        into: &CommitId,
        from: &CommitId,
        without: &[&str],
        message: &str,
    ) -> Result<Merge, GitError> {
        let (ours, theirs) = (self.find_commit(into)?, self.find_commit(from)?);
        let shared = self.merge_base(ours.id(), theirs.id())?;
        if shared == Some(theirs.id()) {
            return Ok(Merge::UpToDate);
        }
        let mut left_out = if without.is_empty() {
            Vec::new()
        } else {
            self.changed(shared, &theirs)?
        };
        left_out.retain(|path| is_under(path, without));
        let kept = self.without(&ours, &theirs, without)?;
        let tree = if shared == Some(ours.id()) {
            kept.tree()
                .map_err(GitError::library("read the merged tree"))?
        } else {
            match self.merged_tree(&ours, &kept)? {
                Ok(tree) => tree,
                Err(conflict) => return Ok(Merge::Conflict(conflict)),
            }
        };
        if let Some(conflict) = self.refused(&tree)? {
            return Ok(Merge::Conflict(conflict));
        }
        let commit = self.write_commit(&tree, &[&ours, &theirs], message)?;
        Ok(Merge::Clean { commit, left_out })
    }

    /// Merges like [`Repository::merge`], for a branch that moves later. A reference keeps the commit until
    /// [`Repository::forget_merge`].
    pub fn merge_kept(
        &self,
        into: &CommitId,
        from: &CommitId,
        without: &[&str],
        message: &str,
    ) -> Result<Merge, GitError> {
        let _held = self.hold_clean_up()?;
        let merge = self.merge(into, from, without, message)?;
        if let Merge::Clean { commit, .. } = &merge {
            let before = self.tip(MERGING)?;
            self.swap(MERGING, before.as_ref(), Some(commit), "tavern: merge")?;
        }
        Ok(merge)
    }

    /// Drops the reference of the last merge, which a branch names now or which is not wanted.
    pub fn forget_merge(&self) -> Result<(), GitError> {
        self.forget(MERGING, "tavern: merged")
    }

    /// Returns true if all changes of `from` since it left `into` are under `paths`; false if it changed nothing.
    pub fn changes_only(
        &self,
        into: &CommitId,
        from: &CommitId,
        paths: &[&str],
    ) -> Result<bool, GitError> {
        let (ours, theirs) = (self.find_commit(into)?, self.find_commit(from)?);
        let changed = self.changed(self.merge_base(ours.id(), theirs.id())?, &theirs)?;
        Ok(!changed.is_empty() && changed.iter().all(|path| is_under(path, paths)))
    }

    /// Brings the commits of `base` into `branch`: by a fast-forward if it has no commits of its own, else by a merge
    /// commit. The branch moves by compare-and-swap; errors as for [`Repository::advance`].
    pub fn follow(&self, branch: &str, base: &CommitId) -> Result<Follow, GitError> {
        let _held = self.hold_clean_up()?;
        let reference = branch_reference(branch)?;
        let tip = self
            .tip(&reference)?
            .ok_or_else(|| GitError::UnknownReference {
                name: reference.clone(),
            })?;
        let (ours, theirs) = (self.find_commit(&tip)?, self.find_commit(base)?);
        if self.is_known_to_follow(branch, &ours, base) {
            return Ok(Follow::UpToDate);
        }
        let follow = self.bring(
            &ours,
            &theirs,
            &format!("Merge {} into {branch}", base.short()),
        )?;
        let now = match &follow {
            Follow::UpToDate => &tip,
            Follow::FastForwarded(to) | Follow::Merged(to) => {
                self.remember_tip(branch, to)?;
                self.advance(&reference, &tip, to, &format!("follow: {base}"))?;
                to
            }
            Follow::Conflict(_) => return Ok(follow),
        };
        self.remember_followed(branch, now, base);
        Ok(follow)
    }

    /// Returns where [`Repository::follow`] would move a branch at `tip`, if no merge is needed.
    pub fn foresee_follow(&self, tip: CommitId, base: CommitId) -> Result<CommitId, GitError> {
        Ok(if self.is_ancestor(&tip, &base)? {
            base
        } else {
            tip
        })
    }

    /// Prepares bringing the commits of `theirs` into `ours`; no reference moves.
    fn bring(
        &self,
        ours: &Commit<'_>,
        theirs: &Commit<'_>,
        message: &str,
    ) -> Result<Follow, GitError> {
        let shared = self.merge_base(ours.id(), theirs.id())?;
        if shared == Some(theirs.id()) {
            return Ok(Follow::UpToDate);
        }
        if shared == Some(ours.id()) {
            return Ok(Follow::FastForwarded(theirs.id().into()));
        }
        Ok(match self.merged_tree(ours, theirs)? {
            Ok(tree) => Follow::Merged(self.write_commit(&tree, &[ours, theirs], message)?),
            Err(conflict) => Follow::Conflict(conflict.paths),
        })
    }

    /// Brings the commits of `from` into the checked-out branch of the linked worktree and updates its files: by a
    /// fast-forward if the branch has no commits of its own, else by a merge commit. Nothing changes on a conflict,
    /// or if uncommitted files are in the way (then no path is named).
    pub fn take_in(
        &self,
        worktree: &Path,
        from: &CommitId,
        message: &str,
    ) -> Result<Follow, GitError> {
        let _held = self.hold_clean_up()?;
        let checkout = self.checkout(worktree)?;
        let Some(tip) = self.head_of(worktree)?.commit() else {
            return Ok(Follow::Conflict(Vec::new()));
        };
        let (ours, theirs) = (self.find_commit(&tip)?, self.find_commit(from)?);
        let follow = self.bring(&ours, &theirs, message)?;
        let (Follow::FastForwarded(to) | Follow::Merged(to)) = &follow else {
            return Ok(follow);
        };
        let call = self.call(&checkout).args([
            "merge",
            "--ff-only",
            "--quiet",
            "--no-autostash",
            "--no-verify-signatures",
        ]);
        let ended = call.arg(to.as_str()).limit(THOROUGH).ending(&[0, 1, 128])?;
        Ok(if ended.exit.is_success() {
            follow
        } else {
            Follow::Conflict(Vec::new())
        })
    }

    /// Returns the merged tree, or the conflict.
    fn merged_tree<'r>(
        &'r self,
        ours: &Commit<'r>,
        theirs: &Commit<'r>,
    ) -> Result<Result<Tree<'r>, MergeConflict>, GitError> {
        let (into, from) = self
            .alone(ours, theirs)
            .map_err(GitError::library("prepare a merge"))?;
        let ran = self
            .call(&self.main_checkout())
            // Attributes are those of `ours`, independent of the checkout.
            .env("GIT_ATTR_SOURCE", &into)
            .args([
                "merge-tree",
                "--write-tree",
                "-z",
                "--name-only",
                "--no-messages",
                "--allow-unrelated-histories",
            ])
            .args([&into, &from])
            .limit(THOROUGH)
            .ending(&[0, 1])?;
        // Output: the tree, then the paths with conflicts. Source: git-merge-tree(1), output and exit status.
        let mut records = records(&ran.stdout);
        let reading = || GitError::library("read the merged tree");
        let tree = String::from_utf8_lossy(records.next().unwrap_or_default());
        let tree = Oid::from_str(&tree)
            .and_then(|id| self.git.find_tree(id))
            .map_err(reading())?;
        if ran.exit.is_success() {
            return Ok(Ok(tree));
        }
        let paths: BTreeSet<PathBuf> = records.map(path_of).collect();
        let paths: Vec<PathBuf> = paths.into_iter().collect();
        let before = theirs.tree().map_err(reading())?;
        let patch = self.patch(&before, &tree, &paths, MOST_OF_CONFLICT)?.text;
        let patch = patch
            .replace(&into, &ours.id().to_string())
            .replace(&from, &theirs.id().to_string());
        Ok(Err(MergeConflict { paths, patch }))
    }

    /// Returns the IDs of two commits with the trees of these, and only their merge bases as parents. So git merges
    /// these trees on those bases, independent of the histories.
    fn alone(
        &self,
        ours: &Commit<'_>,
        theirs: &Commit<'_>,
    ) -> Result<(String, String), git2::Error> {
        let bases = match self.histories()?.merge_bases(ours.id(), theirs.id()) {
            Err(error) if error.code() == ErrorCode::NotFound => Vec::new(),
            bases => bases?
                .iter()
                .map(|id| self.git.find_commit(*id))
                .collect::<Result<_, _>>()?,
        };
        let bases: Vec<&Commit<'_>> = bases.iter().collect();
        let write = |side: &Commit<'_>| {
            let (author, committer) = (side.author(), side.committer());
            let written =
                self.git
                    .commit(None, &author, &committer, "merging", &side.tree()?, &bases);
            written.map(|id| id.to_string())
        };
        Ok((write(ours)?, write(theirs)?))
    }

    /// Returns a conflict if git refuses to check `tree` out, for example because of a link named `.gitmodules`. No
    /// worktree could be made of it.
    fn refused(&self, tree: &Tree<'_>) -> Result<Option<MergeConflict>, GitError> {
        let git = self.git.commondir();
        let folder = tempfile::Builder::new()
            .prefix(".tavern-")
            .tempdir_in(git)
            .map_err(GitError::io("make a folder in", git))?;
        let ran = self
            .call(&self.main_checkout())
            .env("GIT_INDEX_FILE", folder.path().join("index"))
            .args(["read-tree", &tree.id().to_string()])
            .limit(THOROUGH)
            .ending(&[0, 128])?;
        if ran.exit.is_success() {
            return Ok(None);
        }
        let patch = String::from_utf8_lossy(&ran.stderr).into_owned();
        // Source: read-cache.c, `invalid path '%s'`.
        let path = patch.split_once("invalid path '");
        let path = path.and_then(|(_, rest)| Some(rest.split_once("'\n")?.0));
        let paths = path.into_iter().map(PathBuf::from).collect();
        Ok(Some(MergeConflict { paths, patch }))
    }

    /// Returns `theirs`, or a commit on top of it that equals `ours` under `without`. So both sides agree there, and
    /// the merge bases stay the same.
    fn without<'r>(
        &'r self,
        ours: &Commit<'r>,
        theirs: &Commit<'r>,
        without: &[&str],
    ) -> Result<Commit<'r>, GitError> {
        let preparing = || GitError::library(format!("leave parts out of {}", theirs.id()));
        let ours_tree = ours.tree().map_err(preparing())?;
        let mut tree = theirs.tree().map_err(preparing())?;
        for prefix in named(without) {
            let names: Vec<&str> = prefix.split('/').collect();
            let entry = match ours_tree.get_path(Path::new(prefix)) {
                Ok(entry) => Some((entry.id(), entry.filemode())),
                Err(error) if error.code() == ErrorCode::NotFound => None,
                Err(error) => return Err(preparing()(error)),
            };
            let id = graft(&self.git, Some(&tree), &names, entry).map_err(preparing())?;
            let empty = || {
                self.git
                    .treebuilder(None)
                    .and_then(|builder| builder.write())
            };
            tree = match id {
                Some(id) => self.git.find_tree(id),
                None => empty().and_then(|id| self.git.find_tree(id)),
            }
            .map_err(preparing())?;
        }
        if tree.id() == theirs.tree_id() {
            return Ok(theirs.clone());
        }
        let (author, committer) = (theirs.author(), theirs.committer());
        let id = self
            .git
            .commit(None, &author, &committer, "left out", &tree, &[theirs])
            .map_err(preparing())?;
        self.git.find_commit(id).map_err(preparing())
    }

    /// Returns the paths that `theirs` changed since `base`.
    fn changed(&self, base: Option<Oid>, theirs: &Commit<'_>) -> Result<Vec<PathBuf>, GitError> {
        let comparing = || GitError::library(format!("list the changes of {}", theirs.id()));
        let base = match base {
            Some(id) => Some(
                self.git
                    .find_commit(id)
                    .and_then(|commit| commit.tree())
                    .map_err(comparing())?,
            ),
            None => None,
        };
        let tree = theirs.tree().map_err(comparing())?;
        let diff = self
            .git
            .diff_tree_to_tree(base.as_ref(), Some(&tree), None)
            .map_err(comparing())?;
        Ok(paths(&diff))
    }
}

fn is_under(path: &Path, prefixes: &[&str]) -> bool {
    named(prefixes).any(|prefix| path.starts_with(prefix))
}

/// Returns the paths without leading and trailing slashes. Empty ones, which would mean everything, are skipped.
fn named<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    paths
        .iter()
        .map(|path| path.trim_matches('/'))
        .filter(|path| !path.is_empty())
}

/// Returns `tree` with `entry` at the path `names`, or with that path removed; `None` if the tree becomes empty.
fn graft(
    repository: &git2::Repository,
    tree: Option<&Tree<'_>>,
    names: &[&str],
    entry: Option<(Oid, i32)>,
) -> Result<Option<Oid>, git2::Error> {
    let Some((name, below)) = names.split_first() else {
        return Ok(tree.map(Tree::id));
    };
    let mut builder = repository.treebuilder(tree)?;
    let replacement = if below.is_empty() {
        entry
    } else {
        let inner = tree
            .and_then(|tree| tree.get_name(name))
            .and_then(|entry| repository.find_tree(entry.id()).ok());
        if inner.is_none() && entry.is_none() {
            return Ok(tree.map(Tree::id));
        }
        graft(repository, inner.as_ref(), below, entry)?.map(|id| (id, 0o040_000))
    };
    match replacement {
        Some((id, mode)) => drop(builder.insert(name, id, mode)?),
        None if builder.get(name)?.is_some() => builder.remove(name)?,
        None => {}
    }
    if builder.is_empty() {
        Ok(None)
    } else {
        builder.write().map(Some)
    }
}

#[cfg(test)]
mod tests;
