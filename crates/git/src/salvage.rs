//! Work rescued from a worktree before it is removed.
//!
//! Everything uses a copy of the index. The worktree's own files, index, `HEAD` and any merge or rebase stay as they
//! are. A lock that a killed git left on the index does not block it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use git2::Oid;
use tempfile::TempDir;

use super::branch::oid;
use super::history::path_of;
use super::program::{Call, THOROUGH, pathspec, records};
use super::repository::Checkout;
use super::sandbox_git_dir::gitlinks;
use super::{CommitId, GitError, Repository};
use tavern_sys::files;

/// Rescued work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvage {
    /// The commit that the reference names now.
    pub commit: CommitId,
    /// Files that git could not read; remove the worktree only if there are none.
    pub unsaved: Vec<PathBuf>,
}

impl Repository {
    /// Stores the contents of `worktree`, tracked and untracked minus ignored, as a commit on top of its `HEAD`, at
    /// `reference` (`refs/…` in full). Without changes, `HEAD` itself is stored unless one of `merged_into` contains
    /// it. If the folder was deleted, only git's entry still names a commit that was on no branch; that is stored
    /// likewise. `None` if there is nothing to rescue, as in an incomplete worktree.
    ///
    /// Repositories inside (untracked ones, submodules with changes) are stored as plain files. The former commit of
    /// `reference` stays in its history, so no earlier rescue is lost. The same state gives the same commit.
    pub fn salvage(
        &self,
        worktree: &Path,
        reference: &str,
        message: &str,
        merged_into: &[CommitId],
    ) -> Result<Option<Salvage>, GitError> {
        let _held = self.hold_clean_up()?;
        if !worktree.exists() {
            let Some(lost) = self.lost_head(worktree)? else {
                return Ok(None);
            };
            let head = self.find_commit(&lost)?;
            return self.keep_unless(reference, &head, merged_into);
        }
        let checkout = self.checkout(worktree)?;
        if Repository::is_half_made(&checkout) {
            return Ok(None);
        }
        let head = self.head_in(&checkout.git_dir)?.commit();
        let head = head.map(|head| self.find_commit(&head)).transpose()?;
        let rescued = match self.changes_at(&checkout) {
            Ok(changes) if changes.is_clean() => None,
            Ok(changes) => {
                let index = Index::copied(self, checkout.clone())?;
                Some(index.tree_of_everything(changes.submodules)?)
            }
            // An unreadable index tells nothing about the files, so they are compared with the last commit instead.
            Err(GitError::Program { .. }) => {
                let index = Index::new(self, checkout)?;
                // Without a commit the index starts empty.
                index.call().args(["read-tree", "HEAD"]).ending(&[0, 128])?;
                Some(index.tree_of_everything(Vec::new())?)
            }
            Err(error) => return Err(error),
        };
        let rescued = match (rescued, self.baseline(worktree)?, &head) {
            (Some((tree, unsaved)), Some(baseline), Some(head)) => {
                let tree = self.found_tree(tree)?;
                Some((baseline.without(&tree, head.id())?, unsaved))
            }
            (rescued, ..) => rescued,
        };
        let changed =
            rescued.filter(|(tree, _)| head.as_ref().is_none_or(|head| head.tree_id() != *tree));
        match (changed, head) {
            (Some((tree, unsaved)), head) => {
                let commit = self.commit_rescued(reference, message, tree, head.as_ref())?;
                Ok(Some(Salvage {
                    commit: self.keep_commit(reference, &commit)?,
                    unsaved,
                }))
            }
            (None, Some(head)) => self.keep_unless(reference, &head, merged_into),
            (None, None) => Ok(None),
        }
    }

    fn keep_unless(
        &self,
        reference: &str,
        head: &git2::Commit<'_>,
        merged_into: &[CommitId],
    ) -> Result<Option<Salvage>, GitError> {
        for other in merged_into {
            // It may be gone by now.
            if let Ok(other) = self.find_commit(other)
                && self.contains(other.id(), head.id())?
            {
                return Ok(None);
            }
        }
        let commit = self.keep_commit(reference, &head.id().into())?;
        Ok(Some(Salvage {
            commit,
            unsaved: Vec::new(),
        }))
    }

    /// Returns a commit of `tree` on top of `head`, or the commit at `reference` if that has both.
    fn commit_rescued(
        &self,
        reference: &str,
        message: &str,
        tree: Oid,
        head: Option<&git2::Commit<'_>>,
    ) -> Result<CommitId, GitError> {
        if let Some(id) = self.tip(reference)?
            && self.find_commit(&id)?.tree_id() == tree
            && head.map_or(Ok(true), |head| self.contains(oid(&id), head.id()))?
        {
            return Ok(id);
        }
        self.write_commit(&self.found_tree(tree)?, head.as_slice(), message)
    }

    /// Returns the tree that `git write-tree` writes with the prepared `call`.
    pub(super) fn written_tree(&self, call: Call<'_>) -> Result<git2::Tree<'_>, GitError> {
        let output = call.arg("write-tree").read()?;
        let id = Oid::from_str(String::from_utf8_lossy(&output).trim());
        self.found_tree(id.map_err(GitError::library("read a tree id"))?)
    }

    pub(super) fn found_tree(&self, id: Oid) -> Result<git2::Tree<'_>, GitError> {
        self.git
            .find_tree(id)
            .map_err(GitError::library("read a tree"))
    }

    /// Makes `reference` (`refs/…` in full) keep `commit` and everything that it kept before. Returns the commit that
    /// it names now.
    pub fn keep_commit(&self, reference: &str, commit: &CommitId) -> Result<CommitId, GitError> {
        let earlier = self.tip(reference)?;
        let kept = match &earlier {
            Some(earlier) if self.is_ancestor(commit, earlier)? => return Ok(earlier.clone()),
            Some(earlier) if !self.is_ancestor(earlier, commit)? => {
                let (own, other) = (self.find_commit(commit)?, self.find_commit(earlier)?);
                let tree = own
                    .tree()
                    .map_err(GitError::library("read the rescued tree"))?;
                self.write_commit(
                    &tree,
                    &[&own, &other],
                    &format!("Keep {commit} beside {}", earlier.short()),
                )?
            }
            _ => commit.clone(),
        };
        self.swap(
            reference,
            earlier.as_ref(),
            Some(&kept),
            "salvage: work kept",
        )?;
        Ok(kept)
    }
}

/// A separate index in a temporary folder; empty at first.
pub(super) struct Index<'r> {
    repository: &'r Repository,
    checkout: Checkout,
    folder: TempDir,
    /// `filter.<name>.required` settings that are overridden: unfiltered contents are better than none.
    relaxed: Vec<String>,
}

impl<'r> Index<'r> {
    fn new(repository: &'r Repository, checkout: Checkout) -> Result<Index<'r>, GitError> {
        let folder = tempfile::Builder::new()
            .prefix("tavern-salvage-")
            .tempdir_in(&checkout.git_dir)
            .map_err(GitError::io("write in", &checkout.git_dir))?;
        Ok(Index {
            repository,
            checkout,
            folder,
            relaxed: Vec::new(),
        })
    }

    /// Copies the worktree's own index.
    pub(super) fn copied(
        repository: &'r Repository,
        checkout: Checkout,
    ) -> Result<Index<'r>, GitError> {
        let own = checkout.git_dir.join("index");
        let index = Index::new(repository, checkout)?;
        if own.exists() {
            files::copy_with_time(&own, &index.file()).map_err(GitError::io("copy", own))?;
        }
        Ok(index)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn call(&self) -> Call<'r> {
        let call = self
            .repository
            .call(&self.checkout)
            .env("GIT_INDEX_FILE", self.file())
            .limit(THOROUGH);
        self.relaxed.iter().fold(call, |call, name| {
            call.arg("-c").arg(format!("{name}=false"))
        })
    }

    /// Returns the tree that a commit would have: without `nested` repositories, and with submodules as in the index
    /// where git must not read them.
    pub(super) fn tree_without(self, nested: &[PathBuf]) -> Result<git2::Tree<'r>, GitError> {
        let excluded = self.repository.not_staged(&self.checkout, nested)?;
        let add = ["add", "--all", "--sparse", "--", ":/"];
        let excluded = excluded
            .iter()
            .map(|path| pathspec("exclude,top,literal", path));
        self.call().args(add).args(excluded).read()?;
        self.repository.written_tree(self.call())
    }

    /// Returns the tree of everything in the work tree, and the paths that could not be read. Files of `submodules`
    /// and of untracked repositories inside are written into this repository.
    pub(super) fn tree_of_everything(
        mut self,
        submodules: Vec<PathBuf>,
    ) -> Result<(Oid, Vec<PathBuf>), GitError> {
        let untracked = self.untracked()?;
        let mut nested: Vec<PathBuf> = untracked
            .iter()
            .filter_map(|name| name.strip_suffix(b"/"))
            .map(path_of)
            .collect();
        if self.checkout.has_cells() {
            // git is not asked for their state.
            let links = gitlinks(&self.call().args(["ls-files", "--stage", "-z"]).read()?);
            nested.extend(
                links
                    .into_iter()
                    .filter(|link| is_filled(&self.checkout.root.join(link))),
            );
        }
        let mut unsaved = self.add_everything(&nested)?;
        for inner in nested.into_iter().chain(submodules) {
            let inside = Checkout {
                git_dir: self.checkout.git_dir.clone(),
                root: self.checkout.root.join(&inner),
            };
            let (tree, missed) =
                Index::new(self.repository, inside)?.tree_of_everything(Vec::new())?;
            unsaved.extend(missed.into_iter().map(|path| inner.join(path)));
            self.graft(&inner, tree)?;
        }
        Ok((self.repository.written_tree(self.call())?.id(), unsaved))
    }

    /// Runs `git add` on as much as possible, without `nested`. Returns the paths that failed.
    fn add_everything(&mut self, nested: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        if self.add(nested)? {
            return Ok(Vec::new());
        }
        // A failing filter that is `required` has stopped git altogether.
        self.relaxed = self.strict_filters()?;
        if self.add(nested)? {
            return Ok(Vec::new());
        }
        let changed = self
            .call()
            .args(["ls-files", "-z", "--modified", "--deduplicate"])
            .read()?;
        let changed = records(&changed).map(path_of);
        let untracked = self.untracked()?;
        Ok(changed
            .chain(
                untracked
                    .iter()
                    .filter(|name| !name.ends_with(b"/"))
                    .map(|name| path_of(name)),
            )
            .collect())
    }

    fn add(&self, nested: &[PathBuf]) -> Result<bool, GitError> {
        let call = self
            .call()
            .args(["add", "--all", "--sparse", "--ignore-errors", "--", ":/"]);
        let excluded = nested
            .iter()
            .map(|path| pathspec("exclude,top,literal", path));
        Ok(call.args(excluded).ending(&[0, 1, 128])?.exit.is_success())
    }

    /// Returns paths that are neither in this index nor ignored; a name that ends in a slash is a repository.
    fn untracked(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let output = self
            .call()
            .args(["ls-files", "-z", "--others", "--exclude-standard"])
            .read()?;
        Ok(records(&output).map(<[u8]>::to_vec).collect())
    }

    /// Returns `filter.<name>.required` settings.
    fn strict_filters(&self) -> Result<Vec<String>, GitError> {
        let query = [
            "config",
            "--null",
            "--name-only",
            "--get-regexp",
            r"^filter\..*\.required$",
        ];
        // Exit status 1: there is none.
        let output = self.call().args(query).ending(&[0, 1])?.stdout;
        Ok(records(&output)
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }

    /// Replaces the entry at `path` with `tree`.
    fn graft(&self, path: &Path, tree: Oid) -> Result<(), GitError> {
        self.call()
            .args(["update-index", "--force-remove", "--"])
            .arg(path)
            .read()?;
        let mut prefix = OsString::from("--prefix=");
        prefix.push(path);
        prefix.push("/");
        self.call()
            .arg("read-tree")
            .arg(prefix)
            .arg(tree.to_string())
            .read()
            .map(drop)
    }
}

fn is_filled(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut inside| inside.next().is_some())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::super::fixture::{Fixture, commit_in, git_command, git_in, names, write_in};
    use super::*;

    const REFERENCE: &str = "refs/tavern/salvage/T-1/1";

    fn worktree(fixture: &Fixture) -> PathBuf {
        fixture.add("w", "x").expect("nothing is there")
    }

    /// The state that must not change: status, `HEAD` and the bytes of the index.
    fn state(path: &Path) -> (String, String, Vec<u8>) {
        let index = git_in(
            path,
            &["rev-parse", "--path-format=absolute", "--git-path", "index"],
        );
        let status = git_in(
            path,
            &[
                "--no-optional-locks",
                "status",
                "--porcelain=v2",
                "--branch",
            ],
        );
        (
            status,
            git_in(path, &["rev-parse", "HEAD"]),
            fs::read(index).unwrap_or_default(),
        )
    }

    fn rescue(fixture: &Fixture, path: &Path, merged_into: &[CommitId]) -> Option<Salvage> {
        let before = state(path);
        let saved = fixture
            .repository()
            .salvage(path, REFERENCE, "rescued", merged_into)
            .expect("it can be saved");
        assert_eq!(state(path), before);
        let commit = saved.as_ref().map(|saved| saved.commit.to_string());
        let found = git_command(&fixture.root())
            .args(["rev-parse", "--verify", "--quiet", REFERENCE])
            .output();
        let found = String::from_utf8_lossy(&found.expect("the tests need git").stdout)
            .trim()
            .to_owned();
        assert_eq!(found, commit.unwrap_or_default());
        saved
    }

    fn show(fixture: &Fixture, path: &str) -> String {
        fixture.git(&["show", &format!("{REFERENCE}:{path}")])
    }

    fn files(fixture: &Fixture) -> Vec<String> {
        fixture
            .git(&["ls-tree", "-r", "--name-only", REFERENCE])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn changes_of_every_kind_are_rescued_on_top_of_head() {
        let fixture = Fixture::new();
        fixture.commit(
            &[(".gitignore", "*.o\n"), ("gone", ""), ("b", "b\n")],
            "more",
        );
        let path = worktree(&fixture);
        fs::remove_file(path.join("gone")).expect("it is there");
        for name in ["a", "b", "new/file", "x.o"] {
            write_in(&path, name, "changed\n");
        }
        git_in(&path, &["add", "b"]);
        write_in(&path, "b", "and again\n");
        let saved = rescue(&fixture, &path, &[fixture.head()]).expect("there is something");
        assert!(saved.unsaved.is_empty());
        assert_eq!(files(&fixture), [".gitignore", "a", "b", "new/file"]);
        assert_eq!(show(&fixture, "b"), "and again");
        let about = fixture.git(&["log", "-1", "--format=%P %an %s", REFERENCE]);
        assert_eq!(about, format!("{} User rescued", fixture.head()));
        // A second rescue of the same files is the same commit; other files keep the first commit reachable.
        assert_eq!(rescue(&fixture, &path, &[]).as_ref(), Some(&saved));
        fs::remove_file(path.join("new/file")).expect("it is there");
        let second = rescue(&fixture, &path, &[]).expect("there is something");
        assert!(
            fixture
                .repository()
                .is_ancestor(&saved.commit, &second.commit)
                .expect("both are there")
        );
        assert_eq!(rescue(&fixture, &path, &[]), Some(second));
        assert_eq!(files(&fixture), [".gitignore", "a", "b"]);
    }

    #[test]
    fn commits_are_rescued_unless_they_are_merged() {
        let fixture = Fixture::new();
        let path = worktree(&fixture);
        assert_eq!(rescue(&fixture, &path, &[fixture.head()]), None);
        let work = commit_in(&path, &[("a", "work\n")], "work");
        git_in(&path, &["switch", "--quiet", "--detach"]);
        let loose = commit_in(&path, &[("a", "loose\n")], "loose");
        let gone = "1".repeat(40).parse().expect("forty digits are an id");
        let saved = rescue(&fixture, &path, &[fixture.head(), work, gone])
            .expect("the loose commit is in neither");
        assert_eq!(saved.commit, loose);
        assert_eq!(
            rescue(&fixture, &path, &[])
                .expect("it is rescued already")
                .commit,
            loose
        );
        let merged =
            fixture
                .repository()
                .salvage(&path, "refs/tavern/salvage/T-1/2", "rescued", &[loose]);
        assert_eq!(merged.expect("it can be read"), None);
        // Another line of work under the same name: both are kept.
        git_in(&path, &["checkout", "--quiet", "--detach", "main"]);
        let other = commit_in(&path, &[("b", "other\n")], "other");
        let saved = rescue(&fixture, &path, &[fixture.head()]).expect("there is something");
        for kept in [&other, &saved.commit] {
            assert!(
                fixture
                    .repository()
                    .is_ancestor(kept, &saved.commit)
                    .expect("both are there")
            );
        }
    }

    #[test]
    fn a_conflict_a_rebase_and_a_locked_or_broken_index_are_no_hindrance() {
        type Prepare = fn(&Fixture, &Path);
        let rows: [(&str, Prepare); 7] = [
            ("merge", |_, path| {
                assert!(
                    !git_command(path)
                        .args(["merge", "main"])
                        .output()
                        .expect("git")
                        .status
                        .success()
                );
            }),
            ("rebase", |_, path| {
                assert!(
                    !git_command(path)
                        .args(["rebase", "main"])
                        .output()
                        .expect("git")
                        .status
                        .success()
                );
            }),
            ("cherry-pick", |_, path| {
                assert!(
                    !git_command(path)
                        .args(["cherry-pick", "main"])
                        .output()
                        .expect("git")
                        .status
                        .success()
                );
            }),
            ("locked", |fixture, path| {
                write_in(path, "a", "<<<<<<< HEAD\n");
                fs::write(fixture.root().join(".git/worktrees/w/index.lock"), "")
                    .expect("the folder is writable");
            }),
            ("split", |_, path| {
                git_in(path, &["config", "core.splitIndex", "true"]);
                git_in(path, &["update-index", "--split-index"]);
                write_in(path, "a", "<<<<<<< HEAD\n");
            }),
            ("safe line endings", |_, path| {
                git_in(path, &["config", "core.autocrlf", "true"]);
                git_in(path, &["config", "core.safecrlf", "true"]);
                write_in(path, "a", "<<<<<<< HEAD\n");
            }),
            ("unborn", |_, path| {
                git_in(path, &["checkout", "--quiet", "--orphan", "fresh"]);
                git_in(
                    path,
                    &[
                        "commit",
                        "--quiet",
                        "--allow-empty",
                        "--message",
                        "placeholder",
                    ],
                );
                git_in(path, &["update-ref", "-d", "HEAD"]);
                write_in(path, "a", "<<<<<<< HEAD\n");
            }),
        ];
        for (name, prepare) in rows {
            let fixture = Fixture::new();
            let path = worktree(&fixture);
            commit_in(&path, &[("a", "mine\n")], "mine");
            fixture.commit(&[("a", "main\n")], "main");
            prepare(&fixture, &path);
            write_in(&path, "new", "1\n");
            let before = names(&fixture.root().join(".git/worktrees/w"));
            let saved = fixture
                .repository()
                .salvage(&path, REFERENCE, "rescued", &[])
                .expect(name);
            assert_eq!(
                names(&fixture.root().join(".git/worktrees/w")),
                before,
                "{name}"
            );
            assert!(saved.expect(name).unsaved.is_empty(), "{name}");
            assert_eq!(files(&fixture), ["a", "new"], "{name}");
            assert!(show(&fixture, "a").starts_with("<<<<<<<"), "{name}");
        }
        let fixture = Fixture::new();
        let path = worktree(&fixture);
        write_in(&path, "new", "1\n");
        fs::write(fixture.root().join(".git/worktrees/w/index"), "broken")
            .expect("the folder is writable");
        let saved = fixture
            .repository()
            .salvage(&path, REFERENCE, "rescued", &[])
            .expect("it can be saved");
        assert!(saved.is_some());
        assert_eq!(files(&fixture), ["a", "new"]);
        assert_eq!(
            fs::read(fixture.root().join(".git/worktrees/w/index")).expect("it is there"),
            b"broken"
        );
    }

    #[test]
    fn repositories_inside_are_rescued_as_files() {
        let fixture = Fixture::new();
        let other = Fixture::new();
        fixture.git(&[
            "submodule",
            "--quiet",
            "add",
            &other.root().display().to_string(),
            "mod",
        ]);
        fixture.git(&[
            "submodule",
            "--quiet",
            "add",
            &other.root().display().to_string(),
            "same",
        ]);
        fixture.git(&["commit", "--quiet", "--message", "with submodules"]);
        let path = worktree(&fixture);
        git_in(&path, &["submodule", "--quiet", "update", "--init"]);
        write_in(&path, "mod/new", "1\n");
        for name in ["empty", "deep/full", "deep/full/er"] {
            git_in(&path, &["init", "--quiet", name]);
            write_in(&path, &format!("{name}/f"), "1\n");
            if name == "deep/full" {
                commit_in(
                    &path.join(name),
                    &[(".gitignore", "*.o\n"), ("x.o", "")],
                    "inner",
                );
            }
        }
        let saved = rescue(&fixture, &path, &[]).expect("there is something");
        assert!(saved.unsaved.is_empty());
        let expected = [
            "a",
            "deep/full/.gitignore",
            "deep/full/er/f",
            "deep/full/f",
            "empty/f",
            "mod/a",
            "mod/new",
            "same",
        ];
        let found: Vec<String> = files(&fixture)
            .into_iter()
            .filter(|name| name != ".gitmodules")
            .collect();
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(
            fixture
                .repository()
                .remove_worktree(&path, &fixture.lock_file())
                .expect("it is ours")
        );
        assert!(!path.exists());
    }

    #[test]
    fn a_filter_that_fails_does_not_lose_the_work() {
        let fixture = Fixture::new();
        fixture.commit(&[(".gitattributes", "*.bin filter=lost\n")], "attributes");
        let path = worktree(&fixture);
        fixture.git(&["config", "filter.lost.clean", "/nowhere/to/be/found"]);
        fixture.git(&["config", "filter.lost.required", "true"]);
        write_in(&path, "x.bin", "work\n");
        write_in(&path, "b", "more\n");
        let saved = rescue(&fixture, &path, &[]).expect("there is something");
        assert!(saved.unsaved.is_empty());
        assert_eq!(files(&fixture), [".gitattributes", "a", "b", "x.bin"]);
        assert_eq!(show(&fixture, "x.bin"), "work");
    }

    #[test]
    fn what_git_can_not_store_is_named_and_the_rest_is_rescued() {
        let fixture = Fixture::new();
        let path = worktree(&fixture);
        // A name that could stand for `.git` on another file system; git refuses to track it.
        write_in(&path, "git~1", "work\n");
        write_in(&path, "z", "more\n");
        let saved = rescue(&fixture, &path, &[]).expect("there is something");
        assert_eq!(saved.unsaved, [PathBuf::from("git~1")]);
        assert_eq!(files(&fixture), ["a", "z"]);
    }
}
