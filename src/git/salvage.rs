//! Work rescued from a worktree before it is removed.
//!
//! Everything is done on a copy of the index: the worktree's own files, index, `HEAD` and any merge or rebase in it stay as
//! they are, and a lock that a killed git left on the index is no hindrance.

use std::fs;
use std::path::{Path, PathBuf};

use git2::{Oid, Reference};

use super::branch::oid;
use super::commit::pathspec;
use super::history::{contained_in_any, contains, path_of};
use super::identity::Identity;
use super::program::{Call, THOROUGH};
use super::repository::Place;
use super::{Changes, CommitId, GitError, Head, Repository};

/// What was rescued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvage {
    /// What the reference names now.
    pub commit: CommitId,
    /// Files that git could not read; remove the worktree only if there are none.
    pub unsaved: Vec<PathBuf>,
}

impl Repository {
    /// Stores what `worktree` holds, tracked and untracked minus ignored, as a commit on top of its `HEAD`, at `reference`
    /// (`refs/…` in full). A worktree without changes whose `HEAD` isn't in any of `merged_into` is stored as that commit.
    /// `None` if there is nothing to rescue.
    ///
    /// Repositories inside (untracked ones, submodules with changes) are stored as plain files. What `reference` named
    /// before becomes a parent, so no earlier rescue is lost; the same state again gives the same commit.
    pub fn salvage(
        &self,
        worktree: &Path,
        reference: &str,
        message: &str,
        merged_into: &[CommitId],
    ) -> Result<Option<Salvage>, GitError> {
        if !reference.starts_with("refs/") || !Reference::is_valid_name(reference) {
            return Err(GitError::BadName { name: reference.to_owned() });
        }
        let place = self.place(worktree)?;
        let repository = self.open()?;
        let head = match self.head_of(&place.work_tree)? {
            Head::Branch { commit, .. } | Head::Detached { commit } => Some(self.commit_in(&repository, &commit)?),
            Head::Unborn { .. } => None,
        };
        let (tree, unsaved) = match self.changes_at(&place) {
            Ok(changes) if changes.is_clean() => (None, Vec::new()),
            Ok(changes) => self.rescued_tree(&place, &changes, Some(&place.git_dir.join("index")))?,
            // An index that can't be read says nothing about the files, which are compared with the last commit instead.
            Err(GitError::Program { .. }) => self.rescued_tree(&place, &Changes::default(), None)?,
            Err(error) => return Err(error),
        };
        let tree = tree.filter(|tree| head.as_ref().is_none_or(|head| head.tree_id() != *tree));
        let commit = match (tree, head) {
            (Some(tree), head) => self.store(&repository, reference, message, tree, head)?,
            (None, Some(head)) if contained_in_any(&repository, merged_into, head.id())? => return Ok(None),
            (None, Some(head)) => self.keep(&repository, reference, head)?,
            (None, None) => return Ok(None),
        };
        Ok(Some(Salvage { commit, unsaved }))
    }

    /// The tree of everything in `place`, and what could not be read.
    fn rescued_tree(
        &self,
        place: &Place,
        changes: &Changes,
        seed: Option<&Path>,
    ) -> Result<(Option<Oid>, Vec<PathBuf>), GitError> {
        let folder = tempfile::Builder::new()
            .prefix("tavern-salvage-")
            .tempdir_in(&place.git_dir)
            .map_err(GitError::io("write in", &place.git_dir))?;
        let index = folder.path().join("index");
        match seed {
            Some(seed) if seed.exists() => {
                fs::copy(seed, &index).map_err(GitError::io("copy", seed))?;
            }
            _ => {
                // Without a commit there is nothing to begin with.
                self.on(place, &index).args(["read-tree", "HEAD"]).run()?;
            }
        }
        let mut unsaved = self.add_everything(place, &index, &changes.nested)?;
        for inner in changes.nested.iter().chain(&changes.submodules) {
            let (tree, missed) = self.foreign_tree(place, inner)?;
            unsaved.extend(missed.into_iter().map(|path| inner.join(path)));
            self.graft(place, &index, inner, tree)?;
        }
        let output = self.on(place, &index).arg("write-tree").read()?;
        let tree = Oid::from_str(String::from_utf8_lossy(&output).trim());
        Ok((Some(tree.map_err(GitError::library("read a tree id"))?), unsaved))
    }

    /// `git add` into `index`, as much as can be had. Returns what could not.
    fn add_everything(&self, place: &Place, index: &Path, nested: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        let add = |call: Call| {
            let call = call.args(["add", "--all", "--sparse", "--ignore-errors", "--", ":/"]);
            let excluded = nested.iter().map(|path| pathspec("exclude,top,literal", path));
            call.args(excluded).limit(THOROUGH).run()
        };
        if add(self.on(place, index))?.status.success() {
            return Ok(Vec::new());
        }
        // A filter that must succeed and can't would stop git altogether; unfiltered contents are better than none.
        let mut call = self.on(place, index);
        for name in self.strict_filters(place)? {
            call = call.arg("-c").arg(format!("{name}=false"));
        }
        if add(call)?.status.success() {
            return Ok(Vec::new());
        }
        let listed = |args: [&str; 4]| self.on(place, index).args(args).limit(THOROUGH).read();
        let changed = listed(["ls-files", "-z", "--modified", "--deduplicate"])?;
        let untracked = listed(["ls-files", "-z", "--others", "--exclude-standard"])?;
        let names = changed.split(|byte| *byte == 0).chain(untracked.split(|byte| *byte == 0));
        Ok(names.filter(|name| !name.is_empty() && name.last() != Some(&b'/')).map(path_of).collect())
    }

    /// `filter.<name>.required` settings.
    fn strict_filters(&self, place: &Place) -> Result<Vec<String>, GitError> {
        let query = ["config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.required$"];
        // Exit status 1: there is none.
        let output = self.call(place).args(query).run()?.output;
        let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// The files of a repository inside `place`, written into this repository.
    fn foreign_tree(&self, place: &Place, inner: &Path) -> Result<(Option<Oid>, Vec<PathBuf>), GitError> {
        let inside = Place { git_dir: place.git_dir.clone(), work_tree: place.work_tree.join(inner) };
        let folder = tempfile::Builder::new()
            .prefix("tavern-salvage-")
            .tempdir_in(&place.git_dir)
            .map_err(GitError::io("write in", &place.git_dir))?;
        let empty = folder.path().join("index");
        self.on(&inside, &empty).args(["read-tree", "--empty"]).read()?;
        let output = self
            .on(&inside, &empty)
            .args(["ls-files", "-z", "--others", "--exclude-standard"])
            .limit(THOROUGH)
            .read()?;
        let nested = output.split(|byte| *byte == 0).filter_map(|name| name.strip_suffix(b"/")).map(path_of).collect();
        self.rescued_tree(&inside, &Changes { nested, ..Changes::default() }, Some(&empty))
    }

    /// Puts `tree` into `index` at `path`, in place of whatever is there.
    fn graft(&self, place: &Place, index: &Path, path: &Path, tree: Option<Oid>) -> Result<(), GitError> {
        self.on(place, index).args(["update-index", "--force-remove", "--"]).arg(path).read()?;
        let Some(tree) = tree else { return Ok(()) };
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(path);
        prefix.push("/");
        self.on(place, index).arg("read-tree").arg(prefix).arg(tree.to_string()).read().map(drop)
    }

    fn on(&self, place: &Place, index: &Path) -> Call {
        self.call(place).env("GIT_INDEX_FILE", index)
    }

    /// A new commit with `tree`, at `reference`.
    fn store(
        &self,
        repository: &git2::Repository,
        reference: &str,
        message: &str,
        tree: Oid,
        head: Option<git2::Commit<'_>>,
    ) -> Result<CommitId, GitError> {
        let storing = || GitError::library(format!("store `{reference}`"));
        let earlier = match self.tip_in(repository, reference)? {
            Some(id) => Some(self.commit_in(repository, &id)?),
            None => None,
        };
        if let Some(earlier) = &earlier {
            let same_parent = earlier.parent_id(0).ok() == head.as_ref().map(git2::Commit::id);
            if same_parent && earlier.tree_id() == tree {
                return Ok(earlier.id().into());
            }
        }
        let identity = Identity::of(repository, self.config())?;
        let tree = repository.find_tree(tree).map_err(storing())?;
        let mut parents: Vec<&git2::Commit<'_>> = head.iter().collect();
        if let Some(earlier) = &earlier {
            let known = match &head {
                Some(head) => contains(repository, head.id(), earlier.id())?,
                None => false,
            };
            if !known {
                parents.push(earlier);
            }
        }
        let id = repository
            .commit(None, &identity.author, &identity.committer, message, &tree, &parents)
            .map_err(storing())?;
        self.point(repository, reference, id, earlier.map(|commit| commit.id()))
    }

    /// `head` itself, at `reference`.
    fn keep(
        &self,
        repository: &git2::Repository,
        reference: &str,
        head: git2::Commit<'_>,
    ) -> Result<CommitId, GitError> {
        let Some(earlier) = self.tip_in(repository, reference)? else {
            return self.point(repository, reference, head.id(), None);
        };
        let earlier_oid = oid(&earlier)?;
        if contains(repository, earlier_oid, head.id())? {
            return Ok(earlier);
        }
        if contains(repository, head.id(), earlier_oid)? {
            return self.point(repository, reference, head.id(), Some(earlier_oid));
        }
        let message = format!("Keep {} beside {}", head.id(), earlier.short());
        let tree = head.tree_id();
        self.store(repository, reference, &message, tree, Some(head))
    }

    fn point(
        &self,
        repository: &git2::Repository,
        reference: &str,
        to: Oid,
        from: Option<Oid>,
    ) -> Result<CommitId, GitError> {
        let log = "salvage: work kept";
        let done = match from {
            Some(from) => repository.reference_matching(reference, to, true, from, log),
            None => repository.reference(reference, to, false, log),
        };
        done.map_err(GitError::library(format!("store `{reference}`")))?;
        Ok(to.into())
    }
}
