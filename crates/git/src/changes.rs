//! Differences between a work tree and its last commit.
//!
//! Asks the `git` program, not libgit2. Only git knows sparse indexes and the user's clean filters (LFS), without
//! which an untouched file looks changed. The index is not refreshed on disk.

use std::path::{Path, PathBuf};

use git2::Tree;

use super::branch::oid;
use super::history::{path_of, paths};
use super::program::{Call, THOROUGH};
use super::repository::Checkout;
use super::{CommitId, GitError, PatchText, Repository};
use tavern_sys::files;

/// Sorted lists of paths relative to the root of the work tree. A path can be both staged and modified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The index differs from the last commit.
    pub staged: Vec<PathBuf>,
    /// The file differs from the index, or is gone.
    pub modified: Vec<PathBuf>,
    /// Neither tracked nor ignored; files, not their folders.
    pub untracked: Vec<PathBuf>,
    /// Unresolved conflicts of a merge.
    pub conflicted: Vec<PathBuf>,
    /// Submodules with changes inside, which a commit here doesn't include.
    pub submodules: Vec<PathBuf>,
    /// Untracked folders that are repositories of their own; a commit here doesn't include them either.
    pub nested: Vec<PathBuf>,
}

impl Changes {
    pub fn is_clean(&self) -> bool {
        *self == Changes::default()
    }
}

/// The files of the last commit and of the work tree, both without the baseline.
struct Work<'r> {
    head: Tree<'r>,
    tree: Tree<'r>,
    /// Submodules that had changes before any work.
    dirty_before: Vec<PathBuf>,
}

impl Repository {
    /// Returns paths of the main work tree that differ from its last commit or are untracked, sorted. Writes nothing.
    pub fn own_changes(&self) -> Result<Vec<PathBuf>, GitError> {
        let changes = self.status(&self.main_checkout())?;
        let Changes {
            staged,
            modified,
            untracked,
            conflicted,
            ..
        } = changes;
        let mut paths = [staged, modified, untracked, conflicted].concat();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Returns the changes of a linked worktree, by the path of its root. Writes nothing.
    pub fn changes(&self, worktree: &Path) -> Result<Changes, GitError> {
        self.changes_at(&self.checkout(worktree)?)
    }

    /// Excludes the baseline of the worktree.
    pub(super) fn changes_at(&self, checkout: &Checkout) -> Result<Changes, GitError> {
        let mut changes = self.status(checkout)?;
        if checkout.has_cells() {
            changes.submodules = Repository::dirty_in_cells(checkout);
        }
        let Some(work) = self.work_beyond(checkout, &changes)? else {
            return Ok(changes);
        };
        let diff = self
            .git
            .diff_tree_to_tree(Some(&work.head), Some(&work.tree), None);
        let changed = paths(&diff.map_err(GitError::library("compare two trees"))?);
        let own = |mut listed: Vec<PathBuf>| {
            listed.retain(|path| changed.binary_search(path).is_ok());
            listed
        };
        changes
            .submodules
            .retain(|path| !work.dirty_before.contains(path));
        Ok(Changes {
            staged: own(changes.staged),
            modified: own(changes.modified),
            untracked: own(changes.untracked),
            ..changes
        })
    }

    /// Returns the uncommitted work, if the worktree has a baseline.
    fn work_beyond(
        &self,
        checkout: &Checkout,
        changes: &Changes,
    ) -> Result<Option<Work<'_>>, GitError> {
        let Some(baseline) = self.baseline(&checkout.root)? else {
            return Ok(None);
        };
        let Some(commit) = self.head_in(&checkout.git_dir)?.commit() else {
            return Ok(None);
        };
        let tree = self.tree_of_work(checkout, &changes.nested)?;
        let tree = self.found_tree(baseline.without(&tree, oid(&commit))?)?;
        let head = self.find_commit(&commit)?;
        // Baseline content in the last commit is no change.
        let head = head.tree().map_err(GitError::library("read a tree"))?;
        let head = self.found_tree(baseline.without(&head, oid(&commit))?)?;
        Ok(Some(Work {
            head,
            tree,
            dirty_before: baseline.dirty_submodules(),
        }))
    }

    /// Returns the changes that git reports.
    pub(super) fn status(&self, checkout: &Checkout) -> Result<Changes, GitError> {
        self.status_by(self.call(checkout), checkout)
    }

    /// Like `status`, but refreshes the index for later calls.
    pub(super) fn refreshed_status(&self, checkout: &Checkout) -> Result<Changes, GitError> {
        let call = self.call(checkout).env("GIT_OPTIONAL_LOCKS", "1");
        self.status_by(call, checkout)
    }

    fn status_by(&self, call: Call<'_>, checkout: &Checkout) -> Result<Changes, GitError> {
        let output = call
            .args([
                "status",
                "--porcelain=v2",
                "-z",
                "--untracked-files=all",
                "--no-renames",
            ])
            // git would obey settings inside of submodules, which are untrusted.
            .arg(if checkout.has_cells() {
                "--ignore-submodules=all"
            } else {
                "--ignore-submodules=none"
            })
            .limit(THOROUGH)
            .read()?;
        Ok(parse(&output))
    }

    /// Returns the number of lines added and removed since `base` in a linked worktree, including its `untracked`
    /// files. Binary files don't count.
    pub fn lines_since(
        &self,
        worktree: &Path,
        base: &CommitId,
        untracked: &[PathBuf],
    ) -> Result<u64, GitError> {
        let flags = [
            "diff",
            "--numstat",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules",
        ];
        let output = self
            .call(&self.checkout(worktree)?)
            .args(flags)
            .arg(base.as_str())
            .limit(THOROUGH)
            .read()?;
        let tracked: u64 = output.split(|byte| *byte == 0).map(lines_of_record).sum();
        Ok(tracked
            + untracked
                .iter()
                .map(|path| lines_of_file(&worktree.join(path)))
                .sum::<u64>())
    }

    /// Returns the uncommitted changes of a linked worktree: differences from its last commit, then untracked files.
    /// Cut as by [`Repository::diff`].
    pub fn uncommitted(&self, worktree: &Path, limit: usize) -> Result<PatchText, GitError> {
        self.uncommitted_at(&self.checkout(worktree)?, limit)
    }

    fn uncommitted_at(&self, checkout: &Checkout, limit: usize) -> Result<PatchText, GitError> {
        let changes = self.status(checkout)?;
        if let Some(work) = self.work_beyond(checkout, &changes)? {
            return self.patch(&work.head, &work.tree, &[], limit);
        }
        let untracked = changes.untracked;
        let flags = [
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules",
            "--find-renames",
        ];
        let tracked = self
            .call(checkout)
            .args(flags)
            .arg("HEAD")
            .limit(THOROUGH)
            .read()?;
        let mut text = String::from_utf8_lossy(&tracked).into_owned();
        for path in untracked {
            if text.len() > limit {
                break;
            }
            text.push_str(&added(&checkout.root, &path, limit));
        }
        let is_cut = text.len() > limit;
        if is_cut {
            let end = text.floor_char_boundary(limit);
            text.truncate(text[..end].rfind('\n').map_or(0, |end| end + 1));
        }
        Ok(PatchText { text, is_cut })
    }
}

/// Returns an untracked file as git would show it if it were added; only its name if it can't be read or is longer
/// than `limit`.
fn added(worktree: &Path, path: &Path, limit: usize) -> String {
    let name = path.display();
    let head = format!("diff --git a/{name} b/{name}\nnew file\n");
    let is_short = worktree
        .join(path)
        .symlink_metadata()
        .is_ok_and(|found| found.len() <= limit as u64);
    let text = if is_short {
        files::read(worktree.join(path)).ok()
    } else {
        None
    };
    let Some(text) = text
        .and_then(|text| String::from_utf8(text).ok())
        .filter(|text| !text.contains('\0'))
    else {
        return format!("{head}Binary or long file b/{name}\n");
    };
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    let count = text.lines().count();
    if count == 0 {
        head
    } else {
        format!("{head}--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{count} @@\n{lines}")
    }
}

/// Record format: ADDED, tab, REMOVED, tab, path; `-` for a binary file.
fn lines_of_record(record: &[u8]) -> u64 {
    let record = String::from_utf8_lossy(record);
    record
        .splitn(3, '\t')
        .take(2)
        .filter_map(|number| number.parse::<u64>().ok())
        .sum()
}

/// Returns 0 for a file that is binary or can't be read.
fn lines_of_file(path: &Path) -> u64 {
    let text = files::read(path).unwrap_or_default();
    let is_binary = text.iter().take(8000).any(|byte| *byte == 0);
    let has_open_end = text.last().is_some_and(|last| *last != b'\n');
    if is_binary {
        0
    } else {
        memchr::memchr_iter(b'\n', &text).count() as u64 + u64::from(has_open_end)
    }
}

/// Parses `git status --porcelain=v2 -z`; source of the format: git-status(1). Unknown lines are skipped.
fn parse(output: &[u8]) -> Changes {
    let mut changes = Changes::default();
    for record in output.split(|byte| *byte == 0) {
        match record.first() {
            // 1 XY sub mH mI mW hH hI path
            Some(b'1') => {
                let fields: Vec<&[u8]> = record.splitn(9, |byte| *byte == b' ').collect();
                if let [_, [x, y], sub, _, _, _, _, _, path] = fields[..] {
                    take_tracked(&mut changes, (*x, *y), sub, path_of(path));
                }
            }
            // u XY sub m1 m2 m3 mW h1 h2 h3 path
            Some(b'u') => {
                if let Some(path) = record.splitn(11, |byte| *byte == b' ').nth(10) {
                    changes.conflicted.push(path_of(path));
                }
            }
            Some(b'?') => match record.get(2..) {
                // A folder is listed as such only if it is a repository of its own.
                Some([path @ .., b'/']) => changes.nested.push(path_of(path)),
                Some(path) => changes.untracked.push(path_of(path)),
                None => {}
            },
            _ => {}
        }
    }
    let Changes {
        staged,
        modified,
        untracked,
        conflicted,
        submodules,
        nested,
    } = &mut changes;
    for list in [staged, modified, untracked, conflicted, submodules, nested] {
        list.sort();
    }
    changes
}

fn take_tracked(changes: &mut Changes, (x, y): (u8, u8), sub: &[u8], path: PathBuf) {
    // `N...`, or `S` and: commit changed, modified inside, untracked inside.
    let (moved, inside) = match sub {
        [b'S', moved, modified, untracked] => {
            (*moved == b'C', *modified == b'M' || *untracked == b'U')
        }
        _ => (true, false),
    };
    if inside {
        changes.submodules.push(path.clone());
    }
    if x != b'.' {
        changes.staged.push(path.clone());
    }
    if y != b'.' && (moved || y != b'M') {
        changes.modified.push(path);
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::super::fixture::{Fixture, git_command};
    use super::*;

    fn names(list: &[PathBuf]) -> Vec<&str> {
        list.iter()
            .map(|path| path.to_str().expect("the tests use UTF-8"))
            .collect()
    }

    #[test]
    fn each_kind_of_change_is_in_its_list() {
        let fixture = Fixture::new();
        fixture.commit(
            &[
                ("b", "b\n"),
                ("c", "c\n"),
                ("d d", "d\n"),
                (".gitignore", "*.o\n"),
            ],
            "more",
        );
        assert!(fixture.changes().expect("it can be read").is_clean());
        fixture.write("a", "changed\n");
        fixture.write("b", "staged\n");
        fixture.git(&["add", "b"]);
        fixture.write("b", "and changed\n");
        std::fs::remove_file(fixture.root().join("c")).expect("it is there");
        fixture.git(&["mv", "d d", "é\ne"]);
        fixture.write("new/deep/file", "");
        fixture.write("x.o", "");
        let found = fixture.changes().expect("it can be read");
        assert_eq!(names(&found.staged), ["b", "d d", "é\ne"]);
        assert_eq!(names(&found.modified), ["a", "b", "c"]);
        assert_eq!(names(&found.untracked), ["new/deep/file"]);
        assert!(!found.is_clean());
    }

    #[test]
    fn what_is_in_no_commit_is_a_patch_that_is_bounded() {
        let fixture = Fixture::new();
        fixture.commit(&[("b", "b\n")], "more");
        let repository = fixture.repository();
        let checkout = repository.main_checkout();
        let uncommitted = |limit| {
            repository
                .uncommitted_at(&checkout, limit)
                .expect("it can be read")
        };
        assert_eq!(uncommitted(1 << 20).text, "");
        fixture.write("a", "changed\n");
        fixture.git(&["add", "a"]);
        fixture.write("b", "also\n");
        fixture.write("new/é", "one\ntwo");
        fixture.write("raw", "\0");
        let whole = uncommitted(1 << 20);
        let parts = [
            "-one\n+changed\n",
            "-b\n+also\n",
            "+++ b/new/é\n@@ -0,0 +1,2 @@\n+one\n+two\n",
            "file b/raw\n",
        ];
        assert!(
            !whole.is_cut && parts.iter().all(|part| whole.text.contains(part)),
            "{}",
            whole.text
        );
        for limit in 0..whole.text.len() {
            let cut = uncommitted(limit);
            assert!(
                cut.is_cut && cut.text.len() <= limit && whole.text.starts_with(&cut.text),
                "at {limit}"
            );
        }
    }

    #[test]
    fn conflicts_and_inner_repositories_are_told() {
        let fixture = Fixture::new();
        let other = Fixture::new();
        fixture.git(&[
            "submodule",
            "--quiet",
            "add",
            &other.root().display().to_string(),
            "mod",
        ]);
        fixture.git(&["commit", "--quiet", "--message", "with a submodule"]);
        fixture.git(&["checkout", "--quiet", "-b", "x"]);
        fixture.commit(&[("a", "x\n")], "x");
        fixture.git(&["checkout", "--quiet", "main"]);
        fixture.commit(&[("a", "main\n")], "main");
        let merged = git_command(&fixture.root())
            .args(["merge", "x"])
            .output()
            .expect("the tests need git");
        assert!(!merged.status.success(), "the merge must conflict");
        fixture.write("mod/a", "inside\n");
        fixture.git(&["init", "--quiet", "inner"]);
        let found = fixture.changes().expect("it can be read");
        let expected = Changes {
            conflicted: vec!["a".into()],
            submodules: vec!["mod".into()],
            nested: vec!["inner".into()],
            ..Changes::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn looking_writes_nothing() {
        let fixture = Fixture::new();
        // The same text in a new file would make git refresh the index.
        std::fs::remove_file(fixture.root().join("a")).expect("it is there");
        fixture.write("a", "one\n");
        let before = fixture.photograph();
        assert!(fixture.changes().expect("it can be read").is_clean());
        assert_eq!(fixture.photograph(), before);
    }

    #[test]
    fn lines_of_a_later_git_are_passed_over() {
        let output =
            b"# branch.oid 1\x001 .M N... 100644 100644 100644 1 1 a b\x001 short\x00z new kind\x00? \x00?\x00";
        assert_eq!(names(&parse(output).modified), ["a b"]);
    }
}
