//! Merges in memory: objects are written, no work tree, index or reference is touched.
//!
//! Knows nothing of why something is merged. `advance` and `follow` are what moves a branch afterwards. `git
//! merge-tree` does the work, since it alone knows the user's merge drivers, renamed folders and line endings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{Commit, ErrorCode, Oid, Tree};

use super::branch::branch_reference;
use super::history::{path_of, paths};
use super::program::{THOROUGH, records};
use super::{CommitId, GitError, Repository};

/// How a merge came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// All of its commits are there.
    UpToDate,
    /// A merge commit with both as parents, first `into`; no reference names it yet. `left_out` are the paths that `from`
    /// changed and that were taken from `into` all the same.
    Clean {
        commit: CommitId,
        left_out: Vec<PathBuf>,
    },
    /// Nothing was written that matters.
    Conflict(MergeConflict),
}

/// Where two commits can't be merged without a person, or an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeConflict {
    pub paths: Vec<PathBuf>,
    /// What `from` would have there after the merge, with git's marks: a patch, cut at the end of a line.
    pub patch: String,
}

/// Longest [`MergeConflict::patch`], in bytes.
const MOST_OF_CONFLICT: usize = 4 << 10;

/// The merge that is being verified.
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
    /// Merges `from` into `into`, always as a merge commit, so that one merge is one step of the history, and its commits are there
    /// also where others came to the same files. Whatever `from` changed at or under a path of `without` (relative to the root) is
    /// left out.
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

    /// Merges as [`Repository::merge`], for a branch that is moved there later: until [`Repository::forget_merge`] a reference has it.
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

    /// What was merged last is named by a branch now, or is not wanted.
    pub fn forget_merge(&self) -> Result<(), GitError> {
        self.forget(MERGING, "tavern: merged")
    }

    /// Returns whether all that `from` changed since it left `into` is under `paths`; false if it changed nothing.
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

    /// Brings the commits of `base` into `branch`: by moving it forward if it has none of its own, else by a merge commit.
    /// The branch moves by compare-and-swap; errors as for [`Repository::advance`].
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

    /// The commit that a branch at `tip` would be at after [`Repository::follow`], where nothing has to be merged for that.
    pub fn foresee_follow(&self, tip: CommitId, base: CommitId) -> Result<CommitId, GitError> {
        Ok(if self.is_ancestor(&tip, &base)? {
            base
        } else {
            tip
        })
    }

    /// What brings the commits of `theirs` into `ours`, which no reference is moved to yet.
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

    /// Brings the commits of `from` into the branch that the linked worktree has checked out, and their files into its
    /// folder: by moving it forward if it has none of its own, else by a merge commit. Nothing changes where the two
    /// conflict, or where files that are not committed are in the way (then no path is named).
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

    /// The tree of the merge, or what is in conflict.
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
            // Attributes are those of `ours`, whatever is checked out at present.
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
        // The tree, and where it holds conflicts their paths. Source: git-merge-tree(1), output and exit status.
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

    /// The IDs of two commits with the trees of these, on nothing but where their histories part: whatever git believes of those, it
    /// merges these trees upon that.
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

    /// What keeps git from checking `tree` out anywhere, a link called `.gitmodules` say: no worktree could be made of it.
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

    /// `theirs`, or, if it differs from `ours` under `without`, a commit on top of it that doesn't: so both sides agree
    /// there, and the merge bases stay what they are.
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

    /// The paths that `theirs` changed since it was at `base`.
    fn changed(&self, base: Option<Oid>, theirs: &Commit<'_>) -> Result<Vec<PathBuf>, GitError> {
        let comparing = || GitError::library(format!("list what {} changed", theirs.id()));
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

/// The paths without slashes at their ends; an empty one would mean everything, and is passed over.
fn named<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    paths
        .iter()
        .map(|path| path.trim_matches('/'))
        .filter(|path| !path.is_empty())
}

/// `tree` with `entry` at the path `names`, or with nothing there; `None` if nothing at all is left.
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
