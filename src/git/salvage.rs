//! Work rescued from a worktree before it is removed.
//!
//! Everything is done on a copy of the index: the worktree's own files, index, `HEAD` and any merge or rebase in it stay as
//! they are, and a lock that a killed git left on the index is no hindrance.
#![expect(clippy::disallowed_methods, reason = "git owns the worktrees, and waits for other processes of git")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use git2::Oid;
use tempfile::TempDir;

use super::branch::oid;
use super::commit::pathspec;
use super::history::{contains, path_of};
use super::identity::Identity;
use super::program::{Call, Place, THOROUGH};
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
    /// (`refs/…` in full). A worktree without changes whose `HEAD` isn't in any of `merged_into` is stored as that commit; of one
    /// whose folder somebody has deleted, only git's entry still names the commit that it was at, if that was on no branch.
    /// `None` if there is nothing to rescue, as in a worktree that was never made to the end.
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
        let repository = self.open()?;
        if !worktree.exists() {
            let Some(lost) = self.lost_head(worktree)? else { return Ok(None) };
            let head = self.commit_in(&repository, &lost)?;
            return self.keep_unless(&repository, reference, &head, merged_into);
        }
        let place = self.place(worktree)?;
        if Repository::is_half_made(&place) {
            return Ok(None);
        }
        let head = match self.head_of(&place.work_tree)? {
            Head::Branch { commit, .. } | Head::Detached { commit } => Some(self.commit_in(&repository, &commit)?),
            Head::Unborn { .. } => None,
        };
        let rescued = match self.changes_at(&place) {
            Ok(changes) if changes.is_clean() => None,
            Ok(changes) => Some(self.rescued_tree(&place, &changes, Some(&place.git_dir.join("index")))?),
            // An index that can't be read says nothing about the files, which are compared with the last commit instead.
            Err(GitError::Program { .. }) => Some(self.rescued_tree(&place, &Changes::default(), None)?),
            Err(error) => return Err(error),
        };
        let (tree, unsaved) = rescued.map_or((None, Vec::new()), |(tree, unsaved)| (Some(tree), unsaved));
        let changed = tree.filter(|tree| head.as_ref().is_none_or(|head| head.tree_id() != *tree));
        match (changed, head) {
            (Some(tree), head) => {
                let commit = self.store(&repository, reference, message, tree, head.as_ref())?;
                Ok(Some(Salvage { commit, unsaved }))
            }
            (None, Some(head)) => self.keep_unless(&repository, reference, &head, merged_into),
            (None, None) => Ok(None),
        }
    }

    fn keep_unless(
        &self,
        repository: &git2::Repository,
        reference: &str,
        head: &git2::Commit<'_>,
        merged_into: &[CommitId],
    ) -> Result<Option<Salvage>, GitError> {
        for other in merged_into {
            // It may be gone by now.
            if let Ok(other) = self.commit_in(repository, other)
                && contains(repository, other.id(), head.id())?
            {
                return Ok(None);
            }
        }
        let commit = self.keep(repository, reference, head)?;
        Ok(Some(Salvage { commit, unsaved: Vec::new() }))
    }

    /// Makes `reference` (`refs/…` in full) keep `commit`, beside what it kept before.
    pub fn keep_commit(&self, reference: &str, commit: &CommitId) -> Result<CommitId, GitError> {
        let repository = self.open()?;
        self.keep(&repository, reference, &self.commit_in(&repository, commit)?)
    }

    /// The tree of everything in `place`, and what could not be read.
    fn rescued_tree(
        &self,
        place: &Place,
        changes: &Changes,
        seed: Option<&Path>,
    ) -> Result<(Oid, Vec<PathBuf>), GitError> {
        let mut index = Index::new(self, place)?;
        match seed {
            Some(seed) if seed.exists() => {
                fs::copy(seed, index.file()).map_err(GitError::io("copy", seed))?;
            }
            // Without a commit there is nothing to begin with.
            _ => drop(index.call().args(["read-tree", "HEAD"]).run()?),
        }
        let mut unsaved = index.add_everything(&changes.nested)?;
        for inner in changes.nested.iter().chain(&changes.submodules) {
            let (tree, missed) = self.foreign_tree(place, inner)?;
            unsaved.extend(missed.into_iter().map(|path| inner.join(path)));
            index.graft(inner, tree)?;
        }
        Ok((index.write_tree()?, unsaved))
    }

    /// The files of a repository inside `place`, written into this repository.
    fn foreign_tree(&self, place: &Place, inner: &Path) -> Result<(Oid, Vec<PathBuf>), GitError> {
        let inside = Place { git_dir: place.git_dir.clone(), work_tree: place.work_tree.join(inner) };
        let empty = Index::new(self, &inside)?;
        empty.call().args(["read-tree", "--empty"]).read()?;
        let nested = empty.untracked()?.iter().filter_map(|name| name.strip_suffix(b"/")).map(path_of).collect();
        self.rescued_tree(&inside, &Changes { nested, ..Changes::default() }, Some(&empty.file()))
    }

    /// A new commit with `tree`, at `reference`.
    fn store(
        &self,
        repository: &git2::Repository,
        reference: &str,
        message: &str,
        tree: Oid,
        head: Option<&git2::Commit<'_>>,
    ) -> Result<CommitId, GitError> {
        let storing = || GitError::library(format!("store `{reference}`"));
        let earlier = match self.tip_in(repository, reference)? {
            Some(id) => Some(self.commit_in(repository, &id)?),
            None => None,
        };
        if let Some(earlier) = &earlier {
            let same_parent = earlier.parent_id(0).ok() == head.map(git2::Commit::id);
            if same_parent && earlier.tree_id() == tree {
                return Ok(earlier.id().into());
            }
        }
        let identity = Identity::of(repository, self.config())?;
        let tree = repository.find_tree(tree).map_err(storing())?;
        let mut parents: Vec<&git2::Commit<'_>> = head.into_iter().collect();
        if let Some(earlier) = &earlier {
            let known = match head {
                Some(head) => contains(repository, head.id(), earlier.id())?,
                None => false,
            };
            if !known {
                parents.push(earlier);
            }
        }
        let id = repository
            .commit(None, &identity.author, &identity.committer, &message.replace('\0', " "), &tree, &parents)
            .map_err(storing())?;
        self.point(reference, id, earlier.map(|commit| commit.id()))
    }

    /// `head` itself, at `reference`.
    fn keep(
        &self,
        repository: &git2::Repository,
        reference: &str,
        head: &git2::Commit<'_>,
    ) -> Result<CommitId, GitError> {
        let Some(earlier) = self.tip_in(repository, reference)? else {
            return self.point(reference, head.id(), None);
        };
        let earlier_oid = oid(&earlier)?;
        if contains(repository, earlier_oid, head.id())? {
            return Ok(earlier);
        }
        if contains(repository, head.id(), earlier_oid)? {
            return self.point(reference, head.id(), Some(earlier_oid));
        }
        let message = format!("Keep {} beside {}", head.id(), earlier.short());
        let tree = head.tree_id();
        self.store(repository, reference, &message, tree, Some(head))
    }

    fn point(&self, reference: &str, to: Oid, from: Option<Oid>) -> Result<CommitId, GitError> {
        let (to, from) = (CommitId::from(to), from.map(CommitId::from));
        self.swap(reference, from.as_ref(), Some(&to), "salvage: work kept")?;
        Ok(to)
    }
}

/// An index of its own, in a folder that goes away with it.
struct Index<'a> {
    repository: &'a Repository,
    place: &'a Place,
    folder: TempDir,
    /// `filter.<name>.required` settings that are overruled: unfiltered contents are better than none.
    relaxed: Vec<String>,
}

impl<'a> Index<'a> {
    fn new(repository: &'a Repository, place: &'a Place) -> Result<Index<'a>, GitError> {
        let folder = tempfile::Builder::new()
            .prefix("tavern-salvage-")
            .tempdir_in(&place.git_dir)
            .map_err(GitError::io("write in", &place.git_dir))?;
        Ok(Index { repository, place, folder, relaxed: Vec::new() })
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn call(&self) -> Call {
        let call = self.repository.call(self.place).env("GIT_INDEX_FILE", self.file()).limit(THOROUGH);
        self.relaxed.iter().fold(call, |call, name| call.arg("-c").arg(format!("{name}=false")))
    }

    /// `git add`, as much as can be had, without `nested`. Returns what could not.
    fn add_everything(&mut self, nested: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        if self.add(nested)? {
            return Ok(Vec::new());
        }
        // A filter that must succeed and can't has stopped git altogether.
        self.relaxed = self.strict_filters()?;
        if self.add(nested)? {
            return Ok(Vec::new());
        }
        let changed = self.call().args(["ls-files", "-z", "--modified", "--deduplicate"]).read()?;
        let changed = records(&changed).map(path_of);
        let untracked = self.untracked()?;
        Ok(changed.chain(untracked.iter().filter(|name| !name.ends_with(b"/")).map(|name| path_of(name))).collect())
    }

    fn add(&self, nested: &[PathBuf]) -> Result<bool, GitError> {
        let call = self.call().args(["add", "--all", "--sparse", "--ignore-errors", "--", ":/"]);
        let excluded = nested.iter().map(|path| pathspec("exclude,top,literal", path));
        Ok(call.args(excluded).run()?.exit.is_success())
    }

    /// Neither in this index nor ignored; a name that ends in a slash is a repository.
    fn untracked(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let output = self.call().args(["ls-files", "-z", "--others", "--exclude-standard"]).read()?;
        Ok(records(&output).map(<[u8]>::to_vec).collect())
    }

    /// `filter.<name>.required` settings.
    fn strict_filters(&self) -> Result<Vec<String>, GitError> {
        let query = ["config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.required$"];
        // Exit status 1: there is none.
        let output = self.call().args(query).run()?.output;
        Ok(records(&output).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Puts `tree` at `path`, in place of whatever is there.
    fn graft(&self, path: &Path, tree: Oid) -> Result<(), GitError> {
        self.call().args(["update-index", "--force-remove", "--"]).arg(path).read()?;
        let mut prefix = OsString::from("--prefix=");
        prefix.push(path);
        prefix.push("/");
        self.call().arg("read-tree").arg(prefix).arg(tree.to_string()).read().map(drop)
    }

    fn write_tree(&self) -> Result<Oid, GitError> {
        let output = self.call().arg("write-tree").read()?;
        Oid::from_str(String::from_utf8_lossy(&output).trim()).map_err(GitError::library("read a tree id"))
    }
}

/// What stands between zero bytes.
fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and break files on purpose")]
mod tests {
    use super::super::fixture::{Fixture, commit_in, git_command, git_in, names, write_in};
    use super::*;

    const REFERENCE: &str = "refs/tavern/salvage/T-1/1";

    fn worktree(fixture: &Fixture) -> PathBuf {
        fixture.add("w", "x").expect("nothing is there")
    }

    /// What must be as before: status, `HEAD` and the bytes of the index.
    fn state(path: &Path) -> (String, String, Vec<u8>) {
        let index = git_in(path, &["rev-parse", "--path-format=absolute", "--git-path", "index"]);
        let status = git_in(path, &["--no-optional-locks", "status", "--porcelain=v2", "--branch"]);
        (status, git_in(path, &["rev-parse", "HEAD"]), fs::read(index).unwrap_or_default())
    }

    fn rescue(fixture: &Fixture, path: &Path, merged_into: &[CommitId]) -> Option<Salvage> {
        let before = state(path);
        let saved = fixture.repository().salvage(path, REFERENCE, "rescued", merged_into).expect("it can be saved");
        assert_eq!(state(path), before);
        let commit = saved.as_ref().map(|saved| saved.commit.to_string());
        let found = git_command(&fixture.root()).args(["rev-parse", "--verify", "--quiet", REFERENCE]).output();
        let found = String::from_utf8_lossy(&found.expect("the tests need git").stdout).trim().to_owned();
        assert_eq!(found, commit.unwrap_or_default());
        saved
    }

    fn show(fixture: &Fixture, path: &str) -> String {
        fixture.git(&["show", &format!("{REFERENCE}:{path}")])
    }

    fn files(fixture: &Fixture) -> Vec<String> {
        fixture.git(&["ls-tree", "-r", "--name-only", REFERENCE]).lines().map(str::to_owned).collect()
    }

    #[test]
    fn changes_of_every_kind_are_rescued_on_top_of_head() {
        let fixture = Fixture::new();
        fixture.commit(&[(".gitignore", "*.o\n"), ("gone", ""), ("b", "b\n")], "more");
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
        // The same again is the same commit; something else keeps what was rescued before.
        assert_eq!(rescue(&fixture, &path, &[]).as_ref(), Some(&saved));
        fs::remove_file(path.join("new/file")).expect("it is there");
        let second = rescue(&fixture, &path, &[]).expect("there is something");
        let earlier = fixture.git(&["log", "-1", "--format=%P", REFERENCE]);
        assert_eq!(earlier, format!("{} {}", fixture.head(), saved.commit));
        assert_ne!(second.commit, saved.commit);
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
        let saved = rescue(&fixture, &path, &[fixture.head(), work, gone]).expect("the loose commit is in neither");
        assert_eq!(saved.commit, loose);
        assert_eq!(rescue(&fixture, &path, &[]).expect("it is rescued already").commit, loose);
        let merged = fixture.repository().salvage(&path, "refs/tavern/salvage/T-1/2", "rescued", &[loose]);
        assert_eq!(merged.expect("it can be read"), None);
        // Another line of work under the same name: both are kept.
        git_in(&path, &["checkout", "--quiet", "--detach", "main"]);
        let other = commit_in(&path, &[("b", "other\n")], "other");
        let saved = rescue(&fixture, &path, &[fixture.head()]).expect("there is something");
        for kept in [&other, &saved.commit] {
            assert!(fixture.repository().is_ancestor(kept, &saved.commit).expect("both are there"));
        }
    }

    #[test]
    fn a_conflict_a_rebase_and_a_locked_or_broken_index_are_no_hindrance() {
        type Prepare = fn(&Fixture, &Path);
        let rows: [(&str, Prepare); 7] = [
            ("merge", |_, path| {
                assert!(!git_command(path).args(["merge", "main"]).output().expect("git").status.success());
            }),
            ("rebase", |_, path| {
                assert!(!git_command(path).args(["rebase", "main"]).output().expect("git").status.success());
            }),
            ("cherry-pick", |_, path| {
                assert!(!git_command(path).args(["cherry-pick", "main"]).output().expect("git").status.success());
            }),
            ("locked", |fixture, path| {
                write_in(path, "a", "<<<<<<< HEAD\n");
                fs::write(fixture.root().join(".git/worktrees/w/index.lock"), "").expect("the folder is writable");
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
                git_in(path, &["commit", "--quiet", "--allow-empty", "--message", "placeholder"]);
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
            let saved = fixture.repository().salvage(&path, REFERENCE, "rescued", &[]).expect(name);
            assert_eq!(names(&fixture.root().join(".git/worktrees/w")), before, "{name}");
            assert!(saved.expect(name).unsaved.is_empty(), "{name}");
            assert_eq!(files(&fixture), ["a", "new"], "{name}");
            assert!(show(&fixture, "a").starts_with("<<<<<<<"), "{name}");
        }
        let fixture = Fixture::new();
        let path = worktree(&fixture);
        write_in(&path, "new", "1\n");
        fs::write(fixture.root().join(".git/worktrees/w/index"), "broken").expect("the folder is writable");
        let saved = fixture.repository().salvage(&path, REFERENCE, "rescued", &[]).expect("it can be saved");
        assert!(saved.is_some());
        assert_eq!(files(&fixture), ["a", "new"]);
        assert_eq!(fs::read(fixture.root().join(".git/worktrees/w/index")).expect("it is there"), b"broken");
    }

    #[test]
    fn the_users_own_checkout_can_be_rescued_without_a_touch() {
        let fixture = Fixture::new();
        fixture.write("a", "changed\n");
        fixture.write("staged", "1\n");
        fixture.git(&["add", "staged"]);
        let before = fixture.photograph();
        let saved = rescue(&fixture, &fixture.root(), &[]).expect("there is something");
        assert_eq!(files(&fixture), ["a", "staged"]);
        assert_eq!(fixture.photograph(), before);
        assert!(saved.unsaved.is_empty());
    }

    #[test]
    fn repositories_inside_are_rescued_as_files() {
        let fixture = Fixture::new();
        let other = Fixture::new();
        fixture.git(&["submodule", "--quiet", "add", &other.root().display().to_string(), "mod"]);
        fixture.git(&["submodule", "--quiet", "add", &other.root().display().to_string(), "same"]);
        fixture.git(&["commit", "--quiet", "--message", "with submodules"]);
        let path = worktree(&fixture);
        git_in(&path, &["submodule", "--quiet", "update", "--init"]);
        write_in(&path, "mod/new", "1\n");
        for name in ["empty", "deep/full", "deep/full/er"] {
            git_in(&path, &["init", "--quiet", name]);
            write_in(&path, &format!("{name}/f"), "1\n");
            if name == "deep/full" {
                commit_in(&path.join(name), &[(".gitignore", "*.o\n"), ("x.o", "")], "inner");
            }
        }
        let saved = rescue(&fixture, &path, &[]).expect("there is something");
        assert!(saved.unsaved.is_empty());
        let expected =
            ["a", "deep/full/.gitignore", "deep/full/er/f", "deep/full/f", "empty/f", "mod/a", "mod/new", "same"];
        let found: Vec<String> = files(&fixture).into_iter().filter(|name| name != ".gitmodules").collect();
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(fixture.repository().remove_worktree(&path, &fixture.lock_file()).expect("it is ours"));
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
