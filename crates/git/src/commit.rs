//! Commits of everything in a linked worktree.

use std::path::{Path, PathBuf};

use super::baseline::{Baseline, refuse_mixed};
use super::branch::oid;
use super::program::{THOROUGH, pathspec};
use super::repository::Checkout;
use super::sandbox_git_dir::gitlinks;
use super::{Changes, CommitId, GitError, Head, Repository};
use tavern_sys::files;

impl Repository {
    /// Commits all changes of a linked worktree, tracked and untracked, on its `HEAD`. Excludes ignored files and
    /// everything at or under a path of `exclude` (relative to the root). `changes` must come from
    /// [`Repository::changes`]. `None` if there is nothing to commit. An unfinished merge without conflicts is
    /// completed.
    ///
    /// Fails with [`GitError::Conflicted`] if conflict markers are left, [`GitError::Unfinished`] in a rebase,
    /// [`GitError::NotAWorktree`] for the main work tree, or [`GitError::LockedByGit`] if a git is running there or
    /// died there.
    pub fn commit_all(
        &self,
        worktree: &Path,
        changes: &Changes,
        message: &str,
        exclude: &[&str],
    ) -> Result<Option<CommitId>, GitError> {
        let _held = self.hold_clean_up()?;
        let checkout = self.checkout(worktree)?;
        refuse_rebase(&checkout)?;
        let paths = still_marked(&checkout, changes);
        if !paths.is_empty() {
            return Err(GitError::Conflicted {
                worktree: checkout.root,
                paths,
            });
        }
        self.stage(&checkout, changes, exclude)?;
        if let Some(baseline) = self.baseline(worktree)? {
            return self.commit_beyond(&checkout, &baseline, message);
        }
        let merges = checkout.git_dir.join("MERGE_HEAD").exists();
        match self.commit_staged(&checkout, message) {
            // There is nothing to commit.
            Err(GitError::Program { .. }) if !merges && !self.has_staged(&checkout)? => Ok(None),
            committed => committed.map(Some),
        }
    }

    /// Commits the index.
    fn commit_staged(&self, checkout: &Checkout, message: &str) -> Result<CommitId, GitError> {
        let call =
            self.call(checkout)
                .args(["commit", "--quiet", "--no-verify", "--allow-empty-message"]);
        let call = call
            .args(["--cleanup=whitespace", "--file=-"])
            .input(message.replace('\0', " ").as_bytes())?;
        self.identity()?.give_to(call).limit(THOROUGH).read()?;
        match self.head_in(&checkout.git_dir)? {
            Head::Branch { commit, .. } | Head::Detached { commit } => Ok(commit),
            Head::Unborn { name } => Err(GitError::UnknownReference { name }),
        }
    }

    /// Commits the index without the baseline. Fails with [`GitError::Mixed`] if some paths can't be separated from
    /// it.
    fn commit_beyond(
        &self,
        checkout: &Checkout,
        baseline: &Baseline<'_>,
        message: &str,
    ) -> Result<Option<CommitId>, GitError> {
        let Some(head) = self.head_in(&checkout.git_dir)?.commit() else {
            return Err(GitError::UnknownReference {
                name: "HEAD".to_owned(),
            });
        };
        let staged = self.written_tree(self.call(checkout))?;
        let (tip, mut mixed) = baseline.rewritten(oid(&head))?;
        let mut parents = vec![self.find_commit(&tip.into())?];
        for merged in files::read_text(checkout.git_dir.join("MERGE_HEAD"))
            .unwrap_or_default()
            .lines()
        {
            if let Ok(merged) = merged.parse() {
                parents.push(self.find_commit(&merged)?);
            }
        }
        // A merge brings the mainline.
        let at = parents[parents.len() - 1].id();
        let parted = baseline.part(&staged, at)?;
        let tree = self.found_tree(parted.own)?;
        mixed.extend(parted.into_mixed());
        refuse_mixed(mixed)?;
        let is_new = parents.len() > 1 || tree.id() != parents[0].tree_id();
        let commit = if is_new {
            let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
            Some(self.write_commit(&tree, &parents, message)?)
        } else {
            None
        };
        let tip = commit.as_ref().map_or(tip, oid);
        baseline.settle(tip, &staged)?;
        self.stand_at(checkout, tip)?;
        Ok(commit)
    }

    fn stage(
        &self,
        checkout: &Checkout,
        changes: &Changes,
        exclude: &[&str],
    ) -> Result<(), GitError> {
        // An empty path would mean everything.
        let exclude: Vec<&str> = exclude
            .iter()
            .map(|path| path.trim_end_matches('/'))
            .collect();
        let exclude: Vec<&str> = exclude
            .into_iter()
            .filter(|path| !path.is_empty() && !checkout.is_behind_link(Path::new(path)))
            .collect();
        let mut call = self
            .call(checkout)
            .args(["add", "--all", "--sparse", "--", ":/"]);
        for path in &exclude {
            call = call.arg(pathspec("exclude,top,literal", Path::new(path)));
        }
        for path in self.not_staged(checkout, &changes.nested)? {
            call = call.arg(pathspec("exclude,top,literal", &path));
        }
        call.limit(THOROUGH).read()?;
        // Paths that were staged before are excluded as well.
        let is_excluded = |path: &PathBuf| exclude.iter().any(|prefix| path.starts_with(prefix));
        if !changes.staged.iter().any(is_excluded) {
            return Ok(());
        }
        let call = self.call(checkout).args(["reset", "--quiet", "--"]);
        let call = call.args(
            exclude
                .iter()
                .map(|path| pathspec("top,literal", Path::new(path))),
        );
        call.limit(THOROUGH).read().map(drop)
    }

    /// Returns paths that a commit does not include: paths that git ignored at first, and the `nested` repositories.
    /// Where agents have cells, submodules are excluded too, since git would obey their settings.
    pub(super) fn not_staged(
        &self,
        checkout: &Checkout,
        nested: &[PathBuf],
    ) -> Result<Vec<PathBuf>, GitError> {
        let mut paths = nested.to_vec();
        if checkout.has_cells() {
            let listing = ["ls-files", "--stage", "-z"];
            paths.extend(gitlinks(&self.call(checkout).args(listing).read()?));
        }
        paths.extend(self.no_longer_ignored(checkout)?);
        paths.retain(|path| !checkout.is_behind_link(path));
        Ok(paths)
    }

    fn has_staged(&self, checkout: &Checkout) -> Result<bool, GitError> {
        let quiet = [
            "diff",
            "--cached",
            "--quiet",
            "--no-ext-diff",
            "--ignore-submodules=dirty",
        ];
        Ok(!self
            .call(checkout)
            .args(quiet)
            .limit(THOROUGH)
            .ending(&[0, 1])?
            .exit
            .is_success())
    }
}

pub(super) fn refuse_rebase(checkout: &Checkout) -> Result<(), GitError> {
    if ["rebase-merge", "rebase-apply"]
        .iter()
        .any(|name| checkout.git_dir.join(name).exists())
    {
        return Err(GitError::Unfinished {
            worktree: checkout.root.clone(),
            operation: "rebase".to_owned(),
        });
    }
    Ok(())
}

/// Returns the conflicted files that still have a conflict marker.
fn still_marked(checkout: &Checkout, changes: &Changes) -> Vec<PathBuf> {
    let is_marked = |path: &&PathBuf| {
        let bytes = files::read(checkout.root.join(path)).unwrap_or_default();
        bytes
            .split(|byte| *byte == b'\n')
            .any(|line| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> "))
    };
    changes
        .conflicted
        .iter()
        .filter(is_marked)
        .cloned()
        .collect()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::super::fixture::{Fixture, git_command, git_in, names, write_in};
    use super::*;
    use std::fs;

    fn worktree(fixture: &Fixture) -> PathBuf {
        fixture.add("w", "x").expect("nothing is there")
    }

    fn files(fixture: &Fixture, commit: &CommitId) -> Vec<String> {
        fixture
            .git(&["ls-tree", "-r", "-z", "--name-only", commit.as_str()])
            .split_terminator('\0')
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn everything_but_the_ignored_and_the_excluded_is_committed() {
        let fixture = Fixture::new();
        fixture.commit(
            &[
                (".gitignore", "*.o\n"),
                (".tavern/queue", "1\n"),
                ("gone", ""),
            ],
            "more",
        );
        let path = worktree(&fixture);
        assert_eq!(
            fixture
                .commit_all(&path, "nothing", &[".tavern/"])
                .expect("it is a worktree"),
            None
        );
        fs::remove_file(path.join("gone")).expect("it is there");
        for name in [
            "a",
            "new/é\n",
            ":(top)odd",
            ".tavernx",
            "x.o",
            ".tavern/queue",
            ".tavern/new",
            "*",
        ] {
            write_in(&path, name, "changed\n");
        }
        // Staged by a person, and excluded all the same.
        git_in(&path, &["add", ".tavern/queue"]);
        let repository = fixture.repository();
        let commit = fixture
            .commit_all(&path, "# not a comment\n\nbody \n\n", &[".tavern/"])
            .expect("it can be committed");
        let commit = commit.expect("there is something");
        let expected = [
            "*",
            ".gitignore",
            ".tavern/queue",
            ".tavernx",
            ":(top)odd",
            "a",
            "new/é\n",
        ];
        assert_eq!(files(&fixture, &commit), expected);
        assert_eq!(
            fixture.git(&["show", &format!("{commit}:.tavern/queue")]),
            "1"
        );
        assert_eq!(
            fixture.git(&["log", "-1", "--format=%B|%an|%ae", "x"]),
            "# not a comment\n\nbody\n|User|user@localhost"
        );
        assert_eq!(
            repository.branch_tip("x").expect("it can be read"),
            Some(commit)
        );
        let left = repository.changes(&path).expect("it is a worktree");
        let expected = Changes {
            modified: vec![".tavern/queue".into()],
            untracked: vec![".tavern/new".into()],
            ..Changes::default()
        };
        assert_eq!(left, expected);
        assert_eq!(
            fixture
                .commit_all(&path, "nothing", &[".tavern", ""])
                .expect("it is a worktree"),
            None
        );
        assert_eq!(
            names(&fixture.root()),
            [".gitignore", ".tavern", "a", "gone"]
        );
    }

    #[test]
    fn without_a_name_of_the_users_it_is_taverns() {
        let fixture = Fixture::new();
        let path = worktree(&fixture);
        fixture.git(&["config", "--unset", "user.name"]);
        fixture.git(&["config", "user.useConfigOnly", "true"]);
        fixture.git(&["config", "commit.gpgSign", "true"]);
        fixture.git(&["config", "commit.template", "/nowhere"]);
        write_in(&path, "a", "changed\n");
        let commit = fixture
            .commit_all(&path, "work", &[])
            .expect("it can be committed");
        assert!(commit.is_some());
        let who = fixture.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>", "x"]);
        assert_eq!(who, "Tavern <tavern@localhost> Tavern <tavern@localhost>");
    }

    #[test]
    fn a_merge_is_completed_once_its_conflicts_are_resolved() {
        let fixture = Fixture::new();
        let path = worktree(&fixture);
        fixture.commit(&[("a", "main\n")], "main");
        fixture
            .commit_all(&path, "nothing", &[])
            .expect("it is a worktree");
        write_in(&path, "a", "mine\n");
        fixture
            .commit_all(&path, "mine", &[])
            .expect("it can be committed");
        let merged = git_command(&path)
            .args(["merge", "main"])
            .output()
            .expect("the tests need git");
        assert!(!merged.status.success(), "the merge must conflict");
        let refused = fixture.commit_all(&path, "merge", &[]);
        assert!(
            matches!(&refused, Err(GitError::Conflicted { paths, .. }) if *paths == [PathBuf::from("a")]),
            "{refused:?}"
        );
        write_in(&path, "a", "both\n");
        let commit = fixture
            .commit_all(&path, "merge", &[])
            .expect("it is resolved");
        let parents = fixture.git(&[
            "log",
            "-1",
            "--format=%P",
            commit.expect("there is something").as_str(),
        ]);
        assert_eq!(parents.split(' ').count(), 2);
    }

    #[test]
    fn a_rebase_a_busy_index_and_the_main_work_tree_are_refused() {
        let fixture = Fixture::new();
        let path = worktree(&fixture);
        write_in(&path, "a", "mine\n");
        let lock = fixture.root().join(".git/worktrees/w/index.lock");
        fs::write(&lock, "").expect("the folder is writable");
        let refused = fixture.commit_all(&path, "work", &[]);
        assert!(
            matches!(&refused, Err(GitError::LockedByGit { path }) if *path == lock),
            "{refused:?}"
        );
        fs::remove_file(&lock).expect("it is there");
        fixture
            .commit_all(&path, "mine", &[])
            .expect("it can be committed");
        fixture.commit(&[("a", "main\n")], "main");
        let rebased = git_command(&path)
            .args(["rebase", "main"])
            .output()
            .expect("the tests need git");
        assert!(!rebased.status.success(), "the rebase must conflict");
        let refused = fixture.commit_all(&path, "work", &[]);
        assert!(
            matches!(&refused, Err(GitError::Unfinished { .. })),
            "{refused:?}"
        );
        fixture.write("a", "the user's\n");
        let refused = fixture.commit_all(&fixture.root(), "work", &[]);
        assert!(
            matches!(&refused, Err(GitError::NotAWorktree { .. })),
            "{refused:?}"
        );
    }

    #[test]
    fn a_repository_inside_is_not_committed_as_a_dangling_link() {
        let fixture = Fixture::new();
        let path = worktree(&fixture);
        for name in ["empty", "full"] {
            git_in(&path, &["init", "--quiet", name]);
        }
        super::super::fixture::commit_in(&path.join("full"), &[("f", "f\n")], "inner");
        assert_eq!(
            fixture
                .commit_all(&path, "work", &[])
                .expect("it is a worktree"),
            None
        );
        write_in(&path, "b", "");
        let commit = fixture
            .commit_all(&path, "work", &[])
            .expect("it can be committed");
        assert_eq!(
            files(&fixture, &commit.expect("there is something")),
            ["a", "b"]
        );
    }
}
