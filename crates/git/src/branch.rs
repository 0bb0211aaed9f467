//! Branches and other references: created, moved by compare-and-swap, deleted.
//!
//! Knows nothing of the purpose of a branch. libgit2 does the work, under git's lock on the single reference. A lock
//! left by a killed process is removed like that of a dead git.

use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use git2::{Commit, ErrorCode, Reference, Tree};

use super::identity::Identity;
use super::registration;
use super::{CommitId, GitError, Repository};

impl Repository {
    /// Creates the branch `name` at `at`, unless it exists; an existing branch is not moved. Returns whether it was
    /// created.
    ///
    /// Fails with [`GitError::BadName`], [`GitError::NameInTheWay`] (`a` and `a/b` can't both exist) or
    /// [`GitError::UnknownCommit`].
    pub fn start_branch(&self, name: &str, at: &CommitId) -> Result<bool, GitError> {
        let reference = branch_reference(name)?;
        self.find_commit(at)?;
        if self.tip(&reference)?.is_some() {
            return Ok(false);
        }
        match self.swap(
            &reference,
            None,
            Some(at),
            &format!("branch: created from {at}"),
        ) {
            Ok(()) => Ok(true),
            // Another process has created it meanwhile.
            Err(GitError::Moved { .. }) => Ok(false),
            Err(error) => Err(self.in_the_way(name).unwrap_or(error)),
        }
    }

    /// Returns the tip of the branch, if it exists.
    pub fn branch_tip(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        self.tip(&branch_reference(name)?)
    }

    /// Returns the main remote: the upstream of `base`, else `origin`, else the only one.
    pub fn remote(&self, base: Option<&str>) -> Option<String> {
        let remotes = self.git.remotes().ok()?;
        let names: Vec<&str> = remotes
            .iter()
            .filter_map(|name| name.ok().flatten())
            .collect();
        let upstream = base.and_then(|base| {
            self.setting(&format!("branch.{base}.remote"))
                .ok()
                .flatten()
        });
        let first = upstream
            .as_deref()
            .into_iter()
            .chain(["origin"])
            .find(|name| names.contains(name));
        let only = || names.first().copied().filter(|_| names.len() == 1);
        first.or_else(only).map(str::to_owned)
    }

    /// Returns true if any local or remote-tracking branch has an entry at `path`.
    pub fn is_on_a_branch(&self, path: &Path) -> Result<bool, GitError> {
        let branches = self
            .git
            .branches(None)
            .map_err(GitError::library("list the branches"))?;
        let has = |branch: &git2::Branch<'_>| {
            branch
                .get()
                .peel_to_tree()
                .is_ok_and(|tree| tree.get_path(path).is_ok())
        };
        Ok(branches.flatten().any(|(branch, _)| has(&branch)))
    }

    /// Returns the names of all local branches that start with `prefix`, sorted.
    pub fn branches(&self, prefix: &str) -> Result<Vec<String>, GitError> {
        let listing = || GitError::library(format!("list the branches `{prefix}…`"));
        let mut listed = self
            .git
            .references_glob(&format!("refs/heads/{prefix}*"))
            .map_err(listing())?;
        let mut found = Vec::new();
        // Commits are not read: there may be thousands.
        for name in listed.names() {
            let name = name.map_err(listing())?;
            found.extend(name.strip_prefix("refs/heads/").map(str::to_owned));
        }
        found.sort();
        Ok(found)
    }

    /// Returns all references with this `prefix` of their full names, with their commits, sorted by name.
    pub fn references(&self, prefix: &str) -> Result<Vec<(String, CommitId)>, GitError> {
        let listing = || GitError::library(format!("list the references `{prefix}…`"));
        let mut found = Vec::new();
        for reference in self
            .git
            .references_glob(&format!("{prefix}*"))
            .map_err(listing())?
        {
            let reference = reference.map_err(listing())?;
            if let (Ok(name), Some(oid)) = (reference.name(), target(&reference)) {
                found.push((name.to_owned(), oid));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns the number of objects for which git shows replacements (`git replace`).
    pub fn count_replaced(&self) -> Result<usize, GitError> {
        let mut listed = self
            .git
            .references_glob("refs/replace/*")
            .map_err(GitError::library("list the replaced objects"))?;
        Ok(listed.names().count())
    }

    /// Moves `reference` (`refs/…` in full) from `expect` to `to`, or not at all.
    ///
    /// Fails with [`GitError::Moved`] if it is not at `expect`. Fails with [`GitError::CheckedOut`] if any work tree
    /// has the branch checked out or is rebasing it, since the files there would not follow.
    pub fn advance(
        &self,
        reference: &str,
        expect: &CommitId,
        to: &CommitId,
        log: &str,
    ) -> Result<(), GitError> {
        if !Reference::is_valid_name(reference) {
            return Err(GitError::BadName {
                name: reference.to_owned(),
            });
        }
        if let Some(branch) = reference.strip_prefix("refs/heads/")
            && let Some(path) = self.checked_out_at(branch)?
        {
            return Err(GitError::CheckedOut {
                branch: branch.to_owned(),
                path,
            });
        }
        self.find_commit(to)?;
        self.swap(reference, Some(expect), Some(to), log)
    }

    /// Deletes the branch if it is still at `expect`; returns whether it existed. Fails like [`Repository::advance`].
    pub fn branch_delete_if(&self, name: &str, expect: &CommitId) -> Result<bool, GitError> {
        let reference = branch_reference(name)?;
        if let Some(path) = self.checked_out_at(name)? {
            return Err(GitError::CheckedOut {
                branch: name.to_owned(),
                path,
            });
        }
        if self.tip(&reference)?.is_none() {
            return Ok(false);
        }
        self.swap(&reference, Some(expect), None, "branch: deleted")
            .map(|()| true)
    }

    /// Returns the work tree, main or linked, in which the branch is checked out, or being rebased or bisected. A
    /// linked worktree without its folder counts only while it is locked.
    pub fn checked_out_at(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        let name = format!("refs/heads/{branch}");
        if registration::held_by(self.common_dir())?.contains(&name) {
            return Ok(Some(self.main_worktree().to_owned()));
        }
        let holding = registration::holding(self.common_dir(), &name)?;
        Ok(holding
            .into_iter()
            .find(|entry| entry.path.exists() || entry.locked.is_some())
            .map(|entry| entry.path))
    }

    /// Returns the branches that all work trees hold, including worktrees with a missing folder.
    pub fn held_branches(&self) -> Result<HashSet<String>, GitError> {
        let mut held = registration::held_by(self.common_dir())?;
        held.extend(
            registration::held_by_linked(self.common_dir())?
                .into_iter()
                .map(|(_, branch)| branch),
        );
        Ok(held
            .iter()
            .filter_map(|name| Some(name.strip_prefix("refs/heads/")?.to_owned()))
            .collect())
    }

    /// Moves `reference` from `expect` to `to`; `None` means that it doesn't exist. Fails with [`GitError::Moved`] or
    /// [`GitError::LockedByGit`].
    pub(super) fn swap(
        &self,
        reference: &str,
        expect: Option<&CommitId>,
        to: Option<&CommitId>,
        log: &str,
    ) -> Result<(), GitError> {
        // A deletion rewrites the packed references, too.
        let locks = [format!("{reference}.lock"), "packed-refs.lock".to_owned()]
            .map(|lock| self.common_dir().join(lock));
        loop {
            match self.swap_once(reference, expect, to, log) {
                Ok(()) => break,
                Err(error) if error.code() == ErrorCode::Locked => {
                    locks.iter().try_for_each(|lock| self.await_lock(lock))?;
                }
                Err(error) => {
                    if let Some(to) = to
                        && !self.git.odb().is_ok_and(|objects| objects.exists(oid(to)))
                    {
                        return Err(GitError::Pruned { id: to.clone() });
                    }
                    let found = self.tip(reference)?;
                    if found.as_ref() == expect {
                        return Err(GitError::library(format!("move `{reference}`"))(error));
                    }
                    return Err(GitError::Moved {
                        reference: reference.to_owned(),
                        expected: expect.cloned(),
                        found,
                    });
                }
            }
        }
        if to.is_some() {
            self.sync(Path::new(reference))
        } else {
            Ok(())
        }
    }

    /// Compares under git's own lock, without waiting.
    fn swap_once(
        &self,
        reference: &str,
        expect: Option<&CommitId>,
        to: Option<&CommitId>,
        log: &str,
    ) -> Result<(), git2::Error> {
        match (expect.map(oid), to.map(oid)) {
            (None, Some(to)) => self.git.reference(reference, to, false, log).map(drop),
            (Some(expect), Some(to)) => self
                .git
                .reference_matching(reference, to, true, expect, log)
                .map(drop),
            (expect, None) => match self.git.find_reference(reference) {
                Ok(mut found) if found.target() == expect => found.delete(),
                Ok(_) => Err(git2::Error::from_str("it is elsewhere")),
                Err(error) => Err(error),
            },
        }
    }

    /// Deletes `reference`, if it exists.
    pub(super) fn forget(&self, reference: &str, log: &str) -> Result<(), GitError> {
        match self.tip(reference)? {
            Some(tip) => self.swap(reference, Some(&tip), None, log),
            None => Ok(()),
        }
    }

    /// Writes a commit at the present time, with the author and committer of `identity`. No reference names it yet.
    pub(super) fn write_commit(
        &self,
        tree: &Tree<'_>,
        parents: &[&Commit<'_>],
        message: &str,
    ) -> Result<CommitId, GitError> {
        let Identity { author, committer } = self.identity()?;
        let id = self
            .git
            .commit(
                None,
                &author,
                &committer,
                &message.replace('\0', " "),
                tree,
                parents,
            )
            .map_err(GitError::library("write a commit"))?
            .to_string();
        self.sync(&Path::new("objects").join(&id[..2]).join(&id[2..]))?;
        Ok(id.parse().expect("libgit2 prints whole ids"))
    }

    /// Syncs a file of the git directory and its folder, so that both survive a power cut. A file that is gone was
    /// moved by another process.
    fn sync(&self, file: &Path) -> Result<(), GitError> {
        let path = self.common_dir().join(file);
        for path in [path.as_path(), path.parent().unwrap_or(&path)] {
            match File::open(path).and_then(|file| file.sync_all()) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(GitError::io("sync", path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn find_commit(&self, id: &CommitId) -> Result<Commit<'_>, GitError> {
        let unknown = |_| GitError::UnknownCommit {
            id: id.clone(),
            repository: self.main_worktree().to_owned(),
        };
        self.git.find_commit(oid(id)).map_err(unknown)
    }

    /// Returns the commit at `reference` (`refs/…` in full), if it exists.
    pub(super) fn tip(&self, reference: &str) -> Result<Option<CommitId>, GitError> {
        self.forget_gone_objects()?;
        match self.git.refname_to_id(reference) {
            Ok(oid) => Ok(Some(oid.into())),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(GitError::library(format!("read `{reference}`"))(error)),
        }
    }

    /// Fails with [`GitError::NameInTheWay`] if the branch `name` does not exist and can't be created beside existing
    /// ones.
    pub fn refuse_in_the_way(&self, name: &str) -> Result<(), GitError> {
        if self.branch_tip(name)?.is_some() {
            return Ok(());
        }
        self.in_the_way(name).map_or(Ok(()), Err)
    }

    /// Returns the error that names the conflicting branch: a file can't be a folder too.
    fn in_the_way(&self, name: &str) -> Option<GitError> {
        let above = name.match_indices('/').map(|(at, _)| name[..at].to_owned());
        let taken = |other: &String| {
            self.git
                .refname_to_id(&format!("refs/heads/{other}"))
                .is_ok()
        };
        let below = || self.branches(&format!("{name}/")).ok()?.into_iter().next();
        let other = above.into_iter().find(taken).or_else(below)?;
        Some(GitError::NameInTheWay {
            name: name.to_owned(),
            other,
        })
    }
}

/// Returns true if git allows the name for a branch.
pub fn is_branch_name(name: &str) -> bool {
    branch_reference(name).is_ok()
}

/// Returns `refs/heads/<name>`, if git allows the name.
pub(super) fn branch_reference(name: &str) -> Result<String, GitError> {
    let reference = format!("refs/heads/{name}");
    let allowed =
        git2::Branch::name_is_valid(name).unwrap_or(false) && Reference::is_valid_name(&reference);
    if allowed {
        Ok(reference)
    } else {
        Err(GitError::BadName {
            name: name.to_owned(),
        })
    }
}

pub(super) fn oid(id: &CommitId) -> git2::Oid {
    git2::Oid::from_str(id.as_str()).expect("a commit id is 40 hexadecimal digits")
}

fn target(reference: &Reference<'_>) -> Option<CommitId> {
    reference
        .resolve()
        .ok()?
        .peel_to_commit()
        .ok()
        .map(|commit| commit.id().into())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::super::fixture::{Fixture, id};
    use super::*;

    #[test]
    fn names_that_git_can_not_hold_are_refused_with_what_is_in_the_way() {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let at = fixture.head();
        for name in [
            "", "-x", "a b", "a..b", "a/", "x.lock", "HEAD", "a~1", "a\nb",
        ] {
            let result = repository.start_branch(name, &at);
            assert!(
                matches!(result, Err(GitError::BadName { .. })),
                "{name:?}: {result:?}"
            );
        }
        for (name, other) in [("main/x", "main"), ("main/x/y", "main")] {
            let result = repository.start_branch(name, &at);
            assert!(
                matches!(&result, Err(GitError::NameInTheWay { other: found, .. }) if found == other),
                "{result:?}"
            );
        }
        fixture.git(&["branch", "deep/er"]);
        let result = repository.start_branch("deep", &at);
        assert!(
            matches!(&result, Err(GitError::NameInTheWay { other, .. }) if other == "deep/er"),
            "{result:?}"
        );
        let unknown = id(&"1".repeat(40));
        assert!(matches!(
            repository.start_branch("x", &unknown),
            Err(GitError::UnknownCommit { .. })
        ));
    }

    #[test]
    fn a_reference_moves_only_from_where_it_was_expected() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let second = fixture.commit(&[("a", "two\n")], "second");
        let third = fixture.commit(&[("a", "three\n")], "third");
        let repository = fixture.repository();
        repository
            .start_branch("x", &first)
            .expect("the name is free");
        repository
            .advance("refs/heads/x", &first, &second, "test: on")
            .expect("it is where it was");
        let late = repository.advance("refs/heads/x", &first, &third, "test: late");
        assert!(
            matches!(&late, Err(GitError::Moved { found: Some(found), .. }) if *found == second),
            "{late:?}"
        );
        assert_eq!(
            repository.branch_tip("x").expect("it can be read"),
            Some(second.clone())
        );
        assert!(fixture.git(&["reflog", "x"]).contains("test: on"));
        let lock = fixture.root().join(".git/refs/heads/x.lock");
        std::fs::write(&lock, "").expect("the folder is writable");
        let held = repository.advance("refs/heads/x", &second, &first, "test: held");
        assert!(
            matches!(&held, Err(GitError::LockedByGit { path }) if *path == lock),
            "{held:?}"
        );
        let gone = repository.advance("refs/heads/y", &first, &second, "test: gone");
        assert!(
            matches!(&gone, Err(GitError::Moved { found: None, .. })),
            "{gone:?}"
        );
        assert_eq!(repository.branch_tip("y").expect("it can be read"), None);
    }

    #[test]
    fn one_of_many_movers_wins() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let repository = fixture.repository();
        repository
            .start_branch("x", &first)
            .expect("the name is free");
        let targets: Vec<CommitId> = (0..8)
            .map(|n| fixture.commit(&[("a", &format!("{n}\n"))], "next"))
            .collect();
        let won: Vec<bool> = std::thread::scope(|scope| {
            let movers: Vec<_> = targets
                .iter()
                .map(|to| {
                    let (repository, first) = (fixture.repository(), &first);
                    scope.spawn(move || {
                        match repository.advance("refs/heads/x", first, to, "test: race") {
                            Ok(()) => true,
                            Err(GitError::Moved { .. } | GitError::LockedByGit { .. }) => false,
                            Err(other) => panic!("{other:?}"),
                        }
                    })
                })
                .collect();
            movers
                .into_iter()
                .map(|mover| mover.join().expect("no mover panics"))
                .collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
        let winner = won.iter().position(|won| *won).expect("one won");
        assert_eq!(
            repository.branch_tip("x").expect("it can be read").as_ref(),
            Some(&targets[winner])
        );
    }

    #[test]
    fn a_branch_is_deleted_only_where_it_was_seen() {
        let fixture = Fixture::new();
        let first = fixture.head();
        fixture.git(&["branch", "merged", first.as_str()]);
        fixture.git(&["branch", "packed", first.as_str()]);
        fixture.git(&["pack-refs", "--all"]);
        fixture.git(&["branch", "ahead", first.as_str()]);
        let second = fixture.commit(&[("a", "two\n")], "second");
        fixture.git(&["branch", "--force", "ahead", second.as_str()]);
        fixture.git(&[
            "worktree",
            "add",
            "--quiet",
            "-b",
            "used",
            "../used",
            first.as_str(),
        ]);
        let repository = fixture.repository();
        let delete = |name| repository.branch_delete_if(name, &first);
        assert!(delete("merged").expect("it can go") && delete("packed").expect("it can go"));
        assert!(!delete("nowhere").expect("it can be read"));
        assert!(matches!(delete("ahead"), Err(GitError::Moved { .. })));
        assert!(matches!(delete("used"), Err(GitError::CheckedOut { .. })));
        assert_eq!(
            repository.branches("").expect("they can be listed"),
            ["ahead", "main", "used"]
        );
        assert_eq!(
            repository
                .references("refs/heads/a")
                .expect("they can be listed")
                .len(),
            1
        );
    }

    #[test]
    fn a_branch_that_is_being_rebased_stays() {
        let fixture = Fixture::new();
        fixture.git(&["checkout", "--quiet", "-b", "x"]);
        fixture.commit(&[("a", "mine\n")], "mine");
        fixture.git(&["checkout", "--quiet", "main"]);
        fixture.commit(&[("a", "theirs\n")], "theirs");
        fixture.git(&["checkout", "--quiet", "x"]);
        let stopped = super::super::fixture::git_command(&fixture.root())
            .args(["rebase", "main"])
            .output();
        assert!(
            !stopped.expect("the tests need git").status.success(),
            "the rebase must stop at a conflict"
        );
        assert_eq!(
            fixture
                .repository()
                .checked_out_at("x")
                .expect("it can be read"),
            Some(fixture.root())
        );
    }
}
