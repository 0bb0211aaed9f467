//! History questions: the order of commits and their changes.
//!
//! Knows nothing of work trees; reads objects only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{DiffDelta, DiffFormat, DiffOptions, ErrorCode, Oid, Sort, Tree};

use super::branch::oid;
use super::{CommitId, GitError, Repository};

/// One commit, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitSummary {
    pub id: CommitId,
    /// The first line of the message.
    pub subject: String,
    /// The commits that it reverts by its message, in the words of git-revert(1).
    pub reverts: Vec<CommitId>,
}

/// A difference in git's patch format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchText {
    /// Whole lines; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether the text was cut at the limit.
    pub is_cut: bool,
}

impl Repository {
    /// Returns true if the tip of `branch` has an entry at `path` (from the root); false if there is no such branch.
    pub fn has_file(&self, branch: &str, path: &Path) -> Result<bool, GitError> {
        match self
            .git
            .revparse_single(&format!("refs/heads/{branch}:{}", path.display()))
        {
            Ok(_) => Ok(true),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(GitError::library(format!(
                "read the last commit of `{branch}`"
            ))(error)),
        }
    }

    /// Returns the commit that `revision` names, in any syntax of git-rev-parse(1); `None` if it names nothing, or no
    /// commit. Fails with [`GitError::BadRevision`] if it is invalid or ambiguous.
    pub fn commit_of(&self, revision: &str) -> Result<Option<CommitId>, GitError> {
        let found = match self.git.revparse_single(revision) {
            Ok(object) => object,
            Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::UnbornBranch) => {
                return Ok(None);
            }
            Err(error) => {
                let reason = error.message().to_owned();
                return Err(GitError::BadRevision {
                    revision: revision.to_owned(),
                    reason,
                });
            }
        };
        Ok(found.peel_to_commit().ok().map(|commit| commit.id().into()))
    }

    /// Returns true if `ancestor` is contained in `descendant`. A commit contains itself.
    pub fn is_ancestor(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<bool, GitError> {
        let (above, below) = (self.find_commit(ancestor)?, self.find_commit(descendant)?);
        self.contains(below.id(), above.id())
    }

    /// Returns true if `tip` lacks `work`. That is the case if at least one path changed by `work` is as before, and
    /// `work` is not in the history or was reverted there. The history is walked only if such a path exists. Fails
    /// with [`GitError::Shallow`] if a shallow clone can't tell.
    pub fn lacks(&self, tip: &CommitId, work: &CommitId) -> Result<bool, GitError> {
        let comparing = || GitError::library(format!("look for {work} in {tip}"));
        let (end, wanted) = (tip, work);
        let (tip, work) = (self.find_commit(tip)?, self.find_commit(work)?);
        let before = work.parent(0).and_then(|parent| parent.tree()).ok();
        let (after, now) = (
            work.tree().map_err(comparing())?,
            tip.tree().map_err(comparing())?,
        );
        let diff = self
            .git
            .diff_tree_to_tree(before.as_ref(), Some(&after), None)
            .map_err(comparing())?;
        let found = |path: &Path| {
            now.get_path(path)
                .map_or(Oid::ZERO_SHA1, |entry| entry.id())
        };
        let is_old = |delta: DiffDelta<'_>| {
            delta.new_file().path().map(found) == Some(delta.old_file().id())
        };
        let is_old = diff.deltas().any(is_old);
        if !is_old {
            return Ok(false);
        }
        if self.contains(tip.id(), work.id())? {
            return Ok(self.taken_back(wanted, end)?.is_some());
        }
        self.refuse_cut(end, wanted).map(|()| true)
    }

    /// Returns the commit of `tip` that reverts the merge `work`, or the commit that it merged.
    pub fn taken_back(
        &self,
        work: &CommitId,
        tip: &CommitId,
    ) -> Result<Option<CommitId>, GitError> {
        let merged = self
            .find_commit(work)?
            .parent_id(1)
            .ok()
            .map(CommitId::from);
        let mut found = std::iter::once(work)
            .chain(&merged)
            .map(|commit| self.reverted(commit, tip));
        found.find_map(Result::transpose).transpose()
    }

    /// Returns the commit that brought `work` into `tip`: the first one along first parents that contains it. `None`
    /// if `tip` doesn't contain it.
    pub fn arrival(&self, work: &CommitId, tip: &CommitId) -> Result<Option<CommitId>, GitError> {
        let work = self.find_commit(work)?.id();
        let mut commit = self.find_commit(tip)?;
        if !self.contains(commit.id(), work)? {
            return Ok(None);
        }
        while let Ok(parent) = commit.parent(0)
            && self.contains(parent.id(), work)?
        {
            commit = parent;
        }
        Ok(Some(commit.id().into()))
    }

    /// Returns the commit of `tip` that reverts `work`, or its arrival, and that is not reverted itself.
    pub fn reverted(&self, work: &CommitId, tip: &CommitId) -> Result<Option<CommitId>, GitError> {
        let Some(arrived) = self.arrival(work, tip)? else {
            return Ok(None);
        };
        let mut reverted = BTreeMap::new();
        for later in self.commits_between(&arrived, tip)?.into_iter().rev() {
            if !reverted.contains_key(&later.id) {
                reverted.extend(later.reverts.into_iter().map(|id| (id, later.id.clone())));
            }
        }
        Ok([&arrived, work]
            .into_iter()
            .find_map(|commit| reverted.remove(commit)))
    }

    /// Returns the commits that are in `tip` and not in `base`, oldest first.
    pub fn commits_between(
        &self,
        base: &CommitId,
        tip: &CommitId,
    ) -> Result<Vec<CommitSummary>, GitError> {
        let (base, tip) = (self.find_commit(base)?, self.find_commit(tip)?);
        let walking = || GitError::library("walk the history");
        let walk = self.histories().and_then(git2::Repository::revwalk);
        let mut walk = walk.map_err(walking())?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)
            .map_err(walking())?;
        walk.push(tip.id()).map_err(walking())?;
        walk.hide(base.id()).map_err(walking())?;
        let mut found = Vec::new();
        for id in walk {
            let commit = self
                .git
                .find_commit(id.map_err(walking())?)
                .map_err(walking())?;
            found.push(summary(&commit));
        }
        Ok(found)
    }

    /// Returns the merge base of the two.
    pub fn fork(&self, one: &CommitId, other: &CommitId) -> Result<Option<CommitId>, GitError> {
        Ok(self.merge_base(oid(one), oid(other))?.map(CommitId::from))
    }

    /// Returns the changes from `base` to `tip`, with renames detected, cut at the end of a line to at most `limit`
    /// bytes.
    pub fn diff(
        &self,
        base: &CommitId,
        tip: &CommitId,
        limit: usize,
    ) -> Result<PatchText, GitError> {
        let comparing = || GitError::library(format!("compare {base} with {tip}"));
        let old = self.find_commit(base)?.tree().map_err(comparing())?;
        let new = self.find_commit(tip)?.tree().map_err(comparing())?;
        self.patch(&old, &new, &[], limit)
    }

    /// Returns the paths that differ between `base` and `tip`.
    pub fn extent(&self, base: &CommitId, tip: &CommitId) -> Result<Vec<PathBuf>, GitError> {
        let comparing = || GitError::library(format!("compare {base} with {tip}"));
        let [old, new] =
            [base, tip].map(|commit| self.find_commit(commit)?.tree().map_err(comparing()));
        let diff = self
            .git
            .diff_tree_to_tree(Some(&old?), Some(&new?), None)
            .map_err(comparing())?;
        let paths = diff
            .deltas()
            .flat_map(|delta| [delta.old_file().path(), delta.new_file().path()])
            .flatten();
        let mut paths: Vec<PathBuf> = paths.map(Path::to_owned).collect();
        paths.dedup();
        Ok(paths)
    }

    /// Returns the changes from `old` to `new` at or under `paths` (all if empty), like [`Repository::diff`].
    pub(super) fn patch(
        &self,
        old: &Tree<'_>,
        new: &Tree<'_>,
        paths: &[PathBuf],
        limit: usize,
    ) -> Result<PatchText, GitError> {
        let mut options = DiffOptions::new();
        options
            .ignore_submodules(false)
            .disable_pathspec_match(true);
        for path in paths {
            options.pathspec(path);
        }
        let compared = self
            .git
            .diff_tree_to_tree(Some(old), Some(new), Some(&mut options));
        let mut diff = compared.map_err(GitError::library("compare two trees"))?;
        diff.find_similar(None)
            .map_err(GitError::library("find renames"))?;
        let mut bytes = Vec::new();
        let mut is_cut = false;
        let printed = diff.print(DiffFormat::Patch, |_, _, line| {
            let marked = matches!(line.origin(), ' ' | '+' | '-');
            if bytes.len() + line.content().len() + usize::from(marked) > limit {
                is_cut = true;
                return false;
            }
            if marked {
                bytes.push(line.origin() as u8);
            }
            bytes.extend_from_slice(line.content());
            true
        });
        if is_cut {
            // Where a file lacks its last newline, git's pieces end in the middle of a line.
            bytes.truncate(
                bytes
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map_or(0, |end| end + 1),
            );
        }
        match printed {
            Err(error) if !is_cut => Err(GitError::library("write a patch")(error)),
            _ => Ok(PatchText {
                text: String::from_utf8_lossy(&bytes).into_owned(),
                is_cut,
            }),
        }
    }

    /// Returns true if `inner` is contained in `outer`.
    pub(super) fn contains(&self, outer: Oid, inner: Oid) -> Result<bool, GitError> {
        if outer == inner {
            return Ok(true);
        }
        self.histories()
            .and_then(|git| git.graph_descendant_of(outer, inner))
            .map_err(GitError::library("compare two commits"))
    }

    /// Returns true if the clone lacks part of its history.
    pub fn is_shallow(&self) -> bool {
        self.git.is_shallow()
    }

    /// Fails with [`GitError::Shallow`] if a shallow clone can't tell how the two commits are related: only one of
    /// their histories is cut off at some commit.
    pub fn refuse_cut(&self, one: &CommitId, other: &CommitId) -> Result<(), GitError> {
        if !self.is_shallow() {
            return Ok(());
        }
        let cuts = fs::read_to_string(self.common_dir().join("shallow")).unwrap_or_default();
        let cuts = cuts
            .lines()
            .filter_map(|line| Oid::from_str(line.trim()).ok());
        let has = |commit: &CommitId, cut: Oid| self.contains(oid(commit), cut).unwrap_or(false);
        if cuts.into_iter().any(|cut| has(one, cut) != has(other, cut)) {
            let repository = self.main_worktree().to_owned();
            return Err(GitError::Shallow {
                one: one.clone(),
                other: other.clone(),
                repository,
            });
        }
        Ok(())
    }

    /// Returns the merge base of the two; `None` if they have no common history. Fails with [`GitError::Shallow`] if
    /// a shallow clone can't tell.
    pub(super) fn merge_base(&self, one: Oid, other: Oid) -> Result<Option<Oid>, GitError> {
        self.refuse_cut(&one.into(), &other.into())?;
        match self.histories().and_then(|git| git.merge_base(one, other)) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(GitError::library("compare two commits")(error)),
        }
    }
}

pub(super) fn paths(diff: &git2::Diff<'_>) -> Vec<PathBuf> {
    let sides = diff.deltas().flat_map(|delta| {
        [
            delta.old_file().path_bytes().map(path_of),
            delta.new_file().path_bytes().map(path_of),
        ]
    });
    sides
        .flatten()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_owned()
}

fn summary(commit: &git2::Commit<'_>) -> CommitSummary {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let message = text(commit.message_bytes());
    let reverts = message.split("This reverts commit ").skip(1);
    CommitSummary {
        id: commit.id().into(),
        subject: text(commit.summary_bytes().unwrap_or_default()),
        reverts: reverts
            .filter_map(|rest| rest.get(..40)?.parse().ok())
            .collect(),
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn revisions_name_a_commit_or_nothing() {
        let fixture = Fixture::unborn();
        let repository = fixture.repository();
        assert_eq!(
            repository.commit_of("HEAD").expect("it has a meaning"),
            None
        );
        let first = fixture.commit(&[("a", "one\n")], "first");
        fixture.git(&["tag", "--annotate", "--message", "tagged", "v1"]);
        let second = fixture.commit(&[("a", "two\n")], "second");
        let rows = [
            ("HEAD", Some(&second)),
            ("main~1", Some(&first)),
            ("v1", Some(&first)),
            (first.short(), Some(&first)),
            (second.as_str(), Some(&second)),
            ("nowhere", None),
            ("HEAD:a", None),
            ("1111111111111111111111111111111111111111", None),
        ];
        for (revision, expected) in rows {
            assert_eq!(
                repository
                    .commit_of(revision)
                    .expect("it has a meaning")
                    .as_ref(),
                expected,
                "{revision}"
            );
        }
        let bad = repository.commit_of("a^{nonsense}");
        assert!(matches!(bad, Err(GitError::BadRevision { .. })), "{bad:?}");
    }

    #[test]
    fn ancestry_and_the_commits_between() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let second = fixture.commit(&[("a", "two\n")], "second\n\nwith a body");
        let third = fixture.commit(&[("a", "three\n")], "third");
        let repository = fixture.repository();
        for (a, b, expected) in [
            (&first, &third, true),
            (&third, &first, false),
            (&second, &second, true),
        ] {
            assert_eq!(
                repository.is_ancestor(a, b).expect("both are there"),
                expected
            );
        }
        let between = repository
            .commits_between(&first, &third)
            .expect("both are there");
        let subjects: Vec<(&CommitId, &str)> = between
            .iter()
            .map(|one| (&one.id, one.subject.as_str()))
            .collect();
        assert_eq!(subjects, [(&second, "second"), (&third, "third")]);
        assert_eq!(
            repository
                .commits_between(&third, &first)
                .expect("both are there"),
            []
        );
    }

    #[test]
    fn differences_are_bounded_patches_that_git_can_apply() {
        let fixture = Fixture::new();
        let long: String = (0..50).map(|n| format!("line {n}\n")).collect();
        let first = fixture.commit(&[("b", &long)], "first");
        fixture.git(&["mv", "b", "c"]);
        let second = fixture.commit(&[("a", "two\n"), ("é", "no newline")], "second");
        let repository = fixture.repository();
        let whole = repository
            .diff(&first, &second, 1 << 20)
            .expect("both are there");
        assert!(
            !whole.is_cut
                && whole.text.contains("rename from b")
                && whole.text.contains("-one\n+two\n")
        );
        fixture.git(&["checkout", "--quiet", "--detach", first.as_str()]);
        let patch = fixture.beside("patch");
        fs::write(&patch, &whole.text).expect("the folder is writable");
        fixture.git(&["apply", "--index", &patch.display().to_string()]);
        assert_eq!(
            fixture.git(&["write-tree"]),
            fixture.git(&["rev-parse", &format!("{second}^{{tree}}")])
        );
        for limit in 0..whole.text.len() {
            let cut = repository
                .diff(&first, &second, limit)
                .expect("both are there");
            assert!(
                cut.is_cut && cut.text.len() <= limit && whole.text.starts_with(&cut.text),
                "at {limit}"
            );
            assert!(
                cut.text.is_empty() || cut.text.ends_with('\n'),
                "at {limit}"
            );
        }
    }
}
