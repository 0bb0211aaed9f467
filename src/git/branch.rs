//! Branches and other references: made, moved by compare-and-swap, deleted.
//!
//! Knows nothing of what a branch is for. libgit2 does it, and where it can't, the `git` program, each under git's lock on the one
//! reference. A lock that is left by a process that was killed in that moment is removed like a dead git's.

use std::path::PathBuf;

use git2::{ErrorCode, Reference};

use super::identity::Identity;
use super::registration;
use super::{CommitId, GitError, Repository};

impl Repository {
    /// Makes the branch `name` at `at`, unless there is one of that name, which is left where it is. Was it made?
    ///
    /// [`GitError::BadName`], [`GitError::NameInTheWay`] (`a` and `a/b` can't both be), [`GitError::UnknownCommit`].
    pub fn start_branch(&self, name: &str, at: &CommitId) -> Result<bool, GitError> {
        let reference = branch_reference(name)?;
        let repository = self.open()?;
        self.commit_in(&repository, at)?;
        if self.tip_in(&repository, &reference)?.is_some() {
            return Ok(false);
        }
        match self.swap(&reference, None, Some(at), &format!("branch: created from {at}")) {
            Ok(()) => Ok(true),
            // Somebody else has made it in between.
            Err(GitError::Moved { .. }) => Ok(false),
            Err(error) => Err(in_the_way(&repository, name).unwrap_or(error)),
        }
    }

    /// Where the branch is, if there is one.
    pub fn branch_tip(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        self.tip_in(&self.open()?, &branch_reference(name)?)
    }

    /// Names of all local branches that start with `prefix`, in order.
    pub fn branches(&self, prefix: &str) -> Result<Vec<String>, GitError> {
        let repository = self.open()?;
        let listing = || GitError::library(format!("list the branches `{prefix}…`"));
        let mut listed = repository.references_glob(&format!("refs/heads/{prefix}*")).map_err(listing())?;
        let mut found = Vec::new();
        // What they name is not read: there may be thousands.
        for name in listed.names() {
            let name = name.map_err(listing())?;
            found.extend(name.strip_prefix("refs/heads/").map(str::to_owned));
        }
        found.sort();
        Ok(found)
    }

    /// All references whose full name starts with `prefix`, with their commits, in order of name.
    pub fn references(&self, prefix: &str) -> Result<Vec<(String, CommitId)>, GitError> {
        let repository = self.open()?;
        let listing = || GitError::library(format!("list the references `{prefix}…`"));
        let mut found = Vec::new();
        for reference in repository.references_glob(&format!("{prefix}*")).map_err(listing())? {
            let reference = reference.map_err(listing())?;
            if let (Ok(name), Some(oid)) = (reference.name(), target(&reference)) {
                found.push((name.to_owned(), oid));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Moves `reference` (`refs/…` in full) from `expect` to `to`, or not at all.
    ///
    /// [`GitError::Moved`] if it is elsewhere by now; [`GitError::CheckedOut`] if it is a branch that is checked out, or
    /// being rebased, in any work tree, since moving it would leave that work tree's files behind.
    pub fn advance(&self, reference: &str, expect: &CommitId, to: &CommitId, log: &str) -> Result<(), GitError> {
        if !Reference::is_valid_name(reference) {
            return Err(GitError::BadName { name: reference.to_owned() });
        }
        if let Some(branch) = reference.strip_prefix("refs/heads/")
            && let Some(path) = self.checked_out_at(branch)?
        {
            return Err(GitError::CheckedOut { branch: branch.to_owned(), path });
        }
        self.commit_in(&self.open()?, to)?;
        self.swap(reference, Some(expect), Some(to), log)
    }

    /// Deletes the branch if it is still at `expect`. Was there one? Refused like [`Repository::advance`].
    pub fn branch_delete_if(&self, name: &str, expect: &CommitId) -> Result<bool, GitError> {
        let reference = branch_reference(name)?;
        if let Some(path) = self.checked_out_at(name)? {
            return Err(GitError::CheckedOut { branch: name.to_owned(), path });
        }
        if self.tip_in(&self.open()?, &reference)?.is_none() {
            return Ok(false);
        }
        self.swap(&reference, Some(expect), None, "branch: deleted").map(|()| true)
    }

    /// The work tree, main or linked, in which the branch is checked out, or being rebased or bisected. A linked worktree
    /// whose folder is gone counts only while it is locked.
    pub fn checked_out_at(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        let name = format!("refs/heads/{branch}");
        let mut main = registration::branches_under_way(self.common_dir())?;
        if let registration::RegisteredHead::Branch(head) = registration::head(self.common_dir())? {
            main.push(head);
        }
        if main.contains(&name) {
            return Ok(Some(self.main_worktree().to_owned()));
        }
        let holding = registration::holding(self.common_dir(), &name)?;
        Ok(holding.into_iter().find(|entry| entry.path.exists() || entry.locked.is_some()).map(|entry| entry.path))
    }

    /// Changes `reference` from `expect` to `to`; `None` is no reference. [`GitError::Moved`], [`GitError::LockedByGit`].
    pub(super) fn swap(
        &self,
        reference: &str,
        expect: Option<&CommitId>,
        to: Option<&CommitId>,
        log: &str,
    ) -> Result<(), GitError> {
        let repository = self.open()?;
        if swapped(&repository, reference, expect, to, log)?.is_ok() {
            return Ok(());
        }
        // The program waits for a lock in the way, and says what else is.
        let absent = "0".repeat(40);
        let call = self.call(&self.main_place()).args(["update-ref", "--no-deref", "--create-reflog", "-m", log]);
        let call = match to {
            Some(to) => call.args([reference, to.as_str()]),
            None => call.args(["-d", reference]),
        };
        let call = call.arg(expect.map_or(absent.as_str(), CommitId::as_str));
        let Err(error) = Identity::of(&repository, self.config())?.give_to(call).read() else { return Ok(()) };
        // What git says is for people; what is true can be looked up.
        let found = self.tip_in(&repository, reference)?;
        if found.as_ref() != expect {
            let (reference, expected) = (reference.to_owned(), expect.cloned());
            return Err(GitError::Moved { reference, expected, found });
        }
        Err(error)
    }

    pub(super) fn commit_in<'r>(
        &self,
        repository: &'r git2::Repository,
        id: &CommitId,
    ) -> Result<git2::Commit<'r>, GitError> {
        repository
            .find_commit(oid(id)?)
            .map_err(|_| GitError::UnknownCommit { id: id.clone(), repository: self.main_worktree().to_owned() })
    }

    pub(super) fn tip_in(&self, repository: &git2::Repository, name: &str) -> Result<Option<CommitId>, GitError> {
        match repository.find_reference(name) {
            Ok(reference) => Ok(target(&reference)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(GitError::library(format!("read `{name}`"))(error)),
        }
    }
}

/// By libgit2, which compares under git's own lock, and takes no for an answer at once.
fn swapped(
    repository: &git2::Repository,
    reference: &str,
    expect: Option<&CommitId>,
    to: Option<&CommitId>,
    log: &str,
) -> Result<Result<(), git2::Error>, GitError> {
    Ok(match (expect.map(oid).transpose()?, to.map(oid).transpose()?) {
        (None, Some(to)) => repository.reference(reference, to, false, log).map(drop),
        (Some(expect), Some(to)) => repository.reference_matching(reference, to, true, expect, log).map(drop),
        (expect, None) => match repository.find_reference(reference) {
            Ok(mut found) if found.target() == expect => found.delete(),
            Ok(_) => Err(git2::Error::from_str("it is elsewhere")),
            Err(error) => Err(error),
        },
    })
}

/// `refs/heads/<name>`, if git allows the name.
pub(super) fn branch_reference(name: &str) -> Result<String, GitError> {
    let reference = format!("refs/heads/{name}");
    let allowed = git2::Branch::name_is_valid(name).unwrap_or(false) && Reference::is_valid_name(&reference);
    if allowed { Ok(reference) } else { Err(GitError::BadName { name: name.to_owned() }) }
}

pub(super) fn oid(id: &CommitId) -> Result<git2::Oid, GitError> {
    git2::Oid::from_str(id.as_str()).map_err(GitError::library(format!("use the commit id `{id}`")))
}

fn target(reference: &Reference<'_>) -> Option<CommitId> {
    reference.resolve().ok()?.peel_to_commit().ok().map(|commit| commit.id().into())
}

/// The branch that makes `name` impossible: a file can't be a folder too.
fn in_the_way(repository: &git2::Repository, name: &str) -> Option<GitError> {
    let above = name.match_indices('/').map(|(at, _)| name[..at].to_owned());
    let taken = |other: &String| repository.refname_to_id(&format!("refs/heads/{other}")).is_ok();
    let below = || {
        let mut found = repository.references_glob(&format!("refs/heads/{name}/*")).ok()?;
        let reference = found.names().next()?.ok()?.to_owned();
        reference.strip_prefix("refs/heads/").map(str::to_owned)
    };
    let other = above.into_iter().find(taken).or_else(below)?;
    Some(GitError::NameInTheWay { name: name.to_owned(), other })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and break files on purpose")]
mod tests {
    use super::super::fixture::{Fixture, id};
    use super::*;

    #[test]
    fn a_branch_is_made_once_and_never_moved_by_making_it() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let second = fixture.commit(&[("a", "two\n")], "second");
        let repository = fixture.repository();
        assert!(repository.start_branch("tavern/integration", &first).expect("the name is free"));
        assert!(!repository.start_branch("tavern/integration", &second).expect("it is there"));
        assert_eq!(repository.branch_tip("tavern/integration").expect("it can be read"), Some(first.clone()));
        // A packed reference is there as well.
        fixture.git(&["pack-refs", "--all"]);
        assert!(!repository.start_branch("tavern/integration", &second).expect("it is there"));
        assert_eq!(repository.branch_tip("tavern/integration").expect("it can be read"), Some(first));
        assert_eq!(repository.branches("tavern/").expect("they can be listed"), ["tavern/integration"]);
        assert_eq!(repository.branch_tip("nowhere").expect("it can be read"), None);
    }

    #[test]
    fn names_that_git_can_not_hold_are_refused_with_what_is_in_the_way() {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let at = fixture.head();
        for name in ["", "-x", "a b", "a..b", "a/", "x.lock", "HEAD", "a~1", "a\nb"] {
            let result = repository.start_branch(name, &at);
            assert!(matches!(result, Err(GitError::BadName { .. })), "{name:?}: {result:?}");
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
        assert!(matches!(&result, Err(GitError::NameInTheWay { other, .. }) if other == "deep/er"), "{result:?}");
        let unknown = id(&"1".repeat(40));
        assert!(matches!(repository.start_branch("x", &unknown), Err(GitError::UnknownCommit { .. })));
    }

    #[test]
    fn a_reference_moves_only_from_where_it_was_expected() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let second = fixture.commit(&[("a", "two\n")], "second");
        let third = fixture.commit(&[("a", "three\n")], "third");
        let repository = fixture.repository();
        repository.start_branch("x", &first).expect("the name is free");
        repository.advance("refs/heads/x", &first, &second, "test: on").expect("it is where it was");
        let late = repository.advance("refs/heads/x", &first, &third, "test: late");
        assert!(matches!(&late, Err(GitError::Moved { found: Some(found), .. }) if *found == second), "{late:?}");
        assert_eq!(repository.branch_tip("x").expect("it can be read"), Some(second.clone()));
        assert!(fixture.git(&["reflog", "x"]).contains("test: on"));
        let gone = repository.advance("refs/heads/y", &first, &second, "test: gone");
        assert!(matches!(&gone, Err(GitError::Moved { found: None, .. })), "{gone:?}");
        assert_eq!(repository.branch_tip("y").expect("it can be read"), None);
    }

    #[test]
    fn one_of_many_movers_wins() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let repository = fixture.repository();
        repository.start_branch("x", &first).expect("the name is free");
        let targets: Vec<CommitId> = (0..8).map(|n| fixture.commit(&[("a", &format!("{n}\n"))], "next")).collect();
        let won: Vec<bool> = std::thread::scope(|scope| {
            let movers: Vec<_> = targets
                .iter()
                .map(|to| {
                    let (repository, first) = (&repository, &first);
                    scope.spawn(move || match repository.advance("refs/heads/x", first, to, "test: race") {
                        Ok(()) => true,
                        Err(GitError::Moved { .. } | GitError::LockedByGit { .. }) => false,
                        Err(other) => panic!("{other:?}"),
                    })
                })
                .collect();
            movers.into_iter().map(|mover| mover.join().expect("no mover panics")).collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
        let winner = won.iter().position(|won| *won).expect("one won");
        assert_eq!(repository.branch_tip("x").expect("it can be read").as_ref(), Some(&targets[winner]));
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
        fixture.git(&["worktree", "add", "--quiet", "-b", "used", "../used", first.as_str()]);
        let repository = fixture.repository();
        let delete = |name| repository.branch_delete_if(name, &first);
        assert!(delete("merged").expect("it can go") && delete("packed").expect("it can go"));
        assert!(!delete("nowhere").expect("it can be read"));
        assert!(matches!(delete("ahead"), Err(GitError::Moved { .. })));
        assert!(matches!(delete("used"), Err(GitError::CheckedOut { .. })));
        assert_eq!(repository.branches("").expect("they can be listed"), ["ahead", "main", "used"]);
        assert_eq!(repository.references("refs/heads/a").expect("they can be listed").len(), 1);
    }

    #[test]
    fn a_branch_that_is_checked_out_anywhere_stays() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let second = fixture.commit(&[("a", "two\n")], "second");
        fixture.git(&["branch", "x", first.as_str()]);
        fixture.git(&["branch", "free", first.as_str()]);
        fixture.git(&["worktree", "add", "--quiet", "../linked", "x"]);
        let repository = fixture.repository();
        let rows = [("main", Some(fixture.root())), ("x", Some(fixture.beside("linked"))), ("free", None)];
        for (name, expected) in rows {
            assert_eq!(repository.checked_out_at(name).expect("it can be read"), expected, "{name}");
        }
        let refused = repository.advance("refs/heads/x", &first, &second, "test: no");
        assert!(matches!(&refused, Err(GitError::CheckedOut { path, .. }) if *path == fixture.beside("linked")));
        let refused = repository.branch_delete_if("x", &first);
        assert!(matches!(&refused, Err(GitError::CheckedOut { .. })), "{refused:?}");
        // The folder is gone: nobody's files would be left behind.
        std::fs::remove_dir_all(fixture.beside("linked")).expect("it is ours");
        assert_eq!(repository.checked_out_at("x").expect("it can be read"), None);
    }

    #[test]
    fn a_branch_that_is_being_rebased_stays() {
        let fixture = Fixture::new();
        fixture.git(&["checkout", "--quiet", "-b", "x"]);
        fixture.commit(&[("a", "mine\n")], "mine");
        fixture.git(&["checkout", "--quiet", "main"]);
        fixture.commit(&[("a", "theirs\n")], "theirs");
        fixture.git(&["checkout", "--quiet", "x"]);
        let stopped = super::super::fixture::git_command(&fixture.root()).args(["rebase", "main"]).output();
        assert!(!stopped.expect("the tests need git").status.success(), "the rebase must stop at a conflict");
        assert_eq!(fixture.repository().checked_out_at("x").expect("it can be read"), Some(fixture.root()));
    }

    #[test]
    fn a_branch_is_deleted_only_where_it_was_expected() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let second = fixture.commit(&[("a", "two\n")], "second");
        let repository = fixture.repository();
        repository.start_branch("x", &first).expect("the name is free");
        fixture.git(&["pack-refs", "--all"]);
        let moved = repository.branch_delete_if("x", &second);
        assert!(matches!(&moved, Err(GitError::Moved { .. })), "{moved:?}");
        assert!(repository.branch_delete_if("x", &first).expect("it is where it was"));
        assert_eq!(repository.branch_tip("x").expect("it can be read"), None);
        assert!(!repository.branch_delete_if("x", &first).expect("there is none"));
        repository.start_branch("x", &second).expect("no lock is left behind");
        let lock = fixture.root().join(".git/refs/heads/x.lock");
        std::fs::write(&lock, "").expect("the folder is writable");
        let held = repository.advance("refs/heads/x", &second, &first, "test: held");
        assert!(matches!(&held, Err(GitError::LockedByGit { path }) if *path == lock), "{held:?}");
    }
}
