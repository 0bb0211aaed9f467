//! A cache of a branch's followed commits, to avoid a walk of its whole history each time.
//!
//! A base that does not move stays at the start of the branch, with all later merges in between. That a commit
//! contains another never changes, so it is cached in a file of git's own folder. Without that file the history is
//! walked.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns its caches of a repository"
)]

use std::fs;
use std::path::PathBuf;

use git2::Commit;

use super::{CommitId, Repository};

/// Limit of first-parent steps back from the branch's tip to search for the cached commit.
const MOST_STEPS: usize = 64;

/// A match further back than this is cached anew.
const FAR: usize = 16;

impl Repository {
    /// Returns true if the cache shows that `base` is in the history of `tip`; false if that is unknown.
    pub(super) fn is_known_to_follow(
        &self,
        branch: &str,
        tip: &Commit<'_>,
        base: &CommitId,
    ) -> bool {
        let remembered = self
            .followed(branch)
            .filter(|(_, followed)| followed == base)
            .map(|(at, _)| at);
        let mut commit = tip.clone();
        for step in 0..MOST_STEPS {
            let id = CommitId::from(commit.id());
            if id == *base || Some(&id) == remembered.as_ref() {
                if step > FAR {
                    self.remember_followed(branch, &tip.id().into(), base);
                }
                return true;
            }
            match commit.parent(0) {
                Ok(parent) => commit = parent,
                Err(_) => return false,
            }
        }
        false
    }

    /// Caches that `base` is in the history of `tip`. Errors are ignored: the history can be walked again.
    pub(super) fn remember_followed(&self, branch: &str, tip: &CommitId, base: &CommitId) {
        let path = self.followed_file(branch);
        let _ = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(path, format!("{tip} {base}\n")));
    }

    /// Returns the cached tip of the branch, and the base that it contained.
    fn followed(&self, branch: &str) -> Option<(CommitId, CommitId)> {
        let text = fs::read_to_string(self.followed_file(branch)).ok()?;
        let (tip, base) = text.strip_suffix('\n')?.split_once(' ')?;
        Some((tip.parse().ok()?, base.parse().ok()?))
    }

    fn followed_file(&self, branch: &str) -> PathBuf {
        self.common_dir()
            .join("tavern/followed")
            .join(branch.replace('%', "%25").replace('/', "%2F"))
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::super::Follow;
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn a_base_that_stays_is_found_by_what_is_remembered_alone() {
        let fixture = Fixture::new();
        let base = fixture.head();
        fixture.git(&["switch", "--quiet", "--create", "x"]);
        let repository = fixture.repository();
        let work = |count: usize| {
            (0..count)
                .for_each(|number| drop(fixture.commit(&[("a", &format!("{number}\n"))], "work")));
            repository
                .git
                .revparse_single("x")
                .expect("it is there")
                .id()
        };
        let far = work(MOST_STEPS + 1);
        let is_known = |tip: git2::Oid| {
            let tip = repository.git.find_commit(tip).expect("it was made");
            repository.is_known_to_follow("x", &tip, &base)
        };
        assert!(!is_known(far), "it is beyond the search limit");
        fixture.git(&["switch", "--quiet", "main"]);
        assert_eq!(
            fixture
                .repository()
                .follow("x", &base)
                .expect("it is behind"),
            Follow::UpToDate
        );
        assert!(is_known(far), "it was remembered");
        // The cache is found from later tips, and moves on with them.
        fixture.git(&["switch", "--quiet", "x"]);
        for _ in 0..3 {
            assert!(is_known(work(MOST_STEPS / 2)));
        }
        // It does not apply to another base, and a broken file is ignored.
        let other = CommitId::from(far);
        let path = fixture.repository().followed_file("x");
        assert_ne!(
            fixture
                .repository()
                .followed("x")
                .expect("it is remembered")
                .1,
            other
        );
        for broken in ["", "x", &format!("{base} {base}"), "\n"] {
            fs::write(&path, broken).expect("the folder is there");
            assert!(!is_known(work(MOST_STEPS + 1)), "{broken:?}");
        }
    }

    #[test]
    fn a_branch_that_was_set_back_follows_again() {
        let fixture = Fixture::new();
        let first = fixture.head();
        let base = fixture.commit(&[("a", "two\n")], "second");
        fixture.git(&["branch", "x", first.as_str()]);
        let repository = fixture.repository();
        assert_eq!(
            repository.follow("x", &base).expect("it is behind"),
            Follow::FastForwarded(base.clone())
        );
        repository.remember_followed("x", &base, &base);
        fixture.git(&["branch", "--force", "x", first.as_str()]);
        assert_eq!(
            repository.follow("x", &base).expect("it is behind"),
            Follow::FastForwarded(base)
        );
    }
}
