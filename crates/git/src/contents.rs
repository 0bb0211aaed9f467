//! Commits of a few files' contents on the branch that is checked out, with nothing else touched.
//!
//! The contents are handed over rather than read from the work tree: whoever writes these files goes on writing meanwhile,
//! and a commit should hold what its message tells of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::build::TreeUpdateBuilder;
use git2::{ErrorCode, FileMode, ObjectType, Oid};

use super::commit::refuse_rebase;
use super::history::path_of;
use super::program::{THOROUGH, records, refuse_pipes};
use super::repository::Checkout;
use super::{CommitId, GitError, Head, Repository};

/// A file to be committed.
struct Leaf<'a> {
    path: &'a Path,
    blob: Oid,
    mode: FileMode,
}

impl Repository {
    /// Commits these contents (of paths relative to the root), and nothing else, on the branch that the main work tree is
    /// on. Whatever else is staged stays staged. `None` if they are what the branch holds. Files that git
    /// ignores are left out. This is the one function that writes the main work tree's index and moves its branch; it is
    /// for files that are Tavern's own.
    ///
    /// [`GitError::Unfinished`] in a merge, a rebase and the like; [`GitError::Conflicted`] if anything in the index is;
    /// [`GitError::NoBranch`]; [`GitError::LockedByGit`] if another git is writing there, or died there.
    pub fn commit_contents(
        &self,
        files: &[(PathBuf, Vec<u8>)],
        message: &str,
    ) -> Result<Option<CommitId>, GitError> {
        let _held = self.hold_clean_up()?;
        let checkout = self.main_checkout();
        refuse_unfinished(&checkout)?;
        self.refuse_conflicts(&checkout)?;
        let Head::Branch { name, commit: tip } = self.head()? else {
            return Err(GitError::NoBranch {
                worktree: checkout.root,
            });
        };
        let parent = self.find_commit(&tip)?;
        let tree = parent
            .tree()
            .map_err(GitError::library("read the last commit"))?;
        let mut leaves = Vec::new();
        for (path, bytes) in files {
            let found = match tree.get_path(path) {
                Ok(entry) => Some(entry),
                Err(error) if error.code() == ErrorCode::NotFound => None,
                Err(error) => return Err(GitError::library("read the last commit")(error)),
            };
            let mode = match &found {
                Some(entry) if entry.kind() != Some(ObjectType::Blob) => continue,
                Some(entry) if entry.filemode() == i32::from(FileMode::Link) => continue,
                Some(entry) if entry.filemode() == i32::from(FileMode::BlobExecutable) => {
                    FileMode::BlobExecutable
                }
                Some(_) => FileMode::Blob,
                None if self
                    .git
                    .is_path_ignored(path)
                    .map_err(GitError::library("read the ignore files"))? =>
                {
                    continue;
                }
                None => FileMode::Blob,
            };
            leaves.push(Leaf {
                path,
                blob: self.store_blob(&checkout, path, bytes)?,
                mode,
            });
        }
        let mut builder = TreeUpdateBuilder::new();
        for leaf in &leaves {
            builder.upsert(leaf.path, leaf.blob, leaf.mode);
        }
        let new = builder
            .create_updated(&self.git, &tree)
            .map_err(GitError::library("make a tree"))?;
        // Before the branch is moved, so that a lock in the way leaves all as it was.
        self.bring_up_index(&checkout, &leaves)?;
        if new == tree.id() {
            return Ok(None);
        }
        let new = self
            .git
            .find_tree(new)
            .map_err(GitError::library("make a tree"))?;
        let made = self.write_commit(&new, &[&parent], message)?;
        // As a commit has it in the reflogs.
        let line = format!("commit: {}", message.lines().next().unwrap_or_default());
        self.swap(
            &format!("refs/heads/{name}"),
            Some(&tip),
            Some(&made),
            &line,
        )?;
        Ok(Some(made))
    }

    /// The contents as an object, through the user's filters.
    fn store_blob(&self, checkout: &Checkout, path: &Path, bytes: &[u8]) -> Result<Oid, GitError> {
        let folders = path.parent().into_iter().flat_map(Path::ancestors);
        folders
            .map(|folder| checkout.root.join(folder))
            .try_for_each(|folder| refuse_pipes(&folder))?;
        let call = self
            .call(checkout)
            .args(["hash-object", "-w", "--stdin", "--path"])
            .arg(path)
            .input(bytes)?;
        let id = call.read()?;
        let id = String::from_utf8_lossy(&id);
        Oid::from_str(id.trim()).map_err(GitError::library("store a file"))
    }

    fn bring_up_index(&self, checkout: &Checkout, leaves: &[Leaf<'_>]) -> Result<(), GitError> {
        if leaves.is_empty() {
            return Ok(());
        }
        let lines = leaves.iter().flat_map(|leaf| {
            let info = format!("{:o} {}\t", i32::from(leaf.mode), leaf.blob);
            [
                info.as_bytes(),
                leaf.path.as_os_str().as_encoded_bytes(),
                b"\0",
            ]
            .concat()
        });
        let lines: Vec<u8> = lines.collect();
        let call = self
            .call(checkout)
            .args(["update-index", "--add", "-z", "--index-info"])
            .input(&lines)?;
        call.limit(THOROUGH).read().map(drop)
    }

    fn refuse_conflicts(&self, checkout: &Checkout) -> Result<(), GitError> {
        let unmerged = self
            .call(checkout)
            .args(["ls-files", "--unmerged", "-z"])
            .read()?;
        let paths: BTreeSet<PathBuf> = records(&unmerged)
            .filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1))
            .map(path_of)
            .collect();
        if paths.is_empty() {
            return Ok(());
        }
        Err(GitError::Conflicted {
            worktree: checkout.root.clone(),
            paths: paths.into_iter().collect(),
        })
    }
}

/// In the middle of any of these a commit would become a part of it, or end it.
fn refuse_unfinished(checkout: &Checkout) -> Result<(), GitError> {
    refuse_rebase(checkout)?;
    let signs = [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("sequencer", "cherry-pick"),
        ("BISECT_LOG", "bisect"),
    ];
    match signs
        .iter()
        .find(|(name, _)| checkout.git_dir.join(name).exists())
    {
        Some((_, operation)) => {
            let operation = (*operation).to_owned();
            Err(GitError::Unfinished {
                worktree: checkout.root.clone(),
                operation,
            })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use std::fs;

    use super::super::fixture::{Fixture, git_command};
    use super::*;

    fn committed(fixture: &Fixture, files: &[(&str, &str)]) -> Result<Option<CommitId>, GitError> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()))
            .collect();
        fixture
            .repository()
            .commit_contents(&files, "tavern: T-1 done\n\nBody.")
    }

    #[test]
    fn a_file_keeps_its_mode_and_what_is_ignored_is_left_out() {
        let fixture = Fixture::new();
        fixture.commit(&[(".gitignore", "*.o\n"), ("run.sh", "1\n")], "board");
        fixture.git(&["update-index", "--chmod=+x", "run.sh"]);
        fixture.git(&["commit", "--quiet", "--message=mode"]);
        assert_eq!(
            committed(&fixture, &[("run.sh", "1\n"), ("x.o", "ignored\n")])
                .expect("it is a work tree"),
            None
        );
        let made = committed(
            &fixture,
            &[("run.sh", "2\n"), ("new", "1\n"), ("x.o", "ignored\n")],
        );
        assert_eq!(made.expect("it can be committed"), Some(fixture.head()));
        assert_eq!(
            fixture.git(&["diff", "--name-only", "HEAD~1", "HEAD"]),
            "new\nrun.sh"
        );
        assert!(
            fixture
                .git(&["ls-tree", "HEAD", "run.sh"])
                .starts_with("100755")
        );
    }

    #[test]
    fn in_the_middle_of_something_nothing_is_mixed_in() {
        let fixture = Fixture::new();
        fixture.commit(&[("queue", "1\n")], "board");
        let made = fixture.head();
        for sign in [
            "MERGE_HEAD",
            "CHERRY_PICK_HEAD",
            "REVERT_HEAD",
            "BISECT_LOG",
            "rebase-merge",
            "index.lock",
        ] {
            let path = fixture.root().join(".git").join(sign);
            fs::write(&path, format!("{made}\n")).expect("the folder is writable");
            let before = fixture.photograph();
            let refused = committed(&fixture, &[("queue", "2\n")]);
            let is_refused = matches!(
                refused,
                Err(GitError::Unfinished { .. } | GitError::LockedByGit { .. })
            );
            assert!(is_refused, "{sign}: {refused:?}");
            assert_eq!(fixture.photograph(), before, "{sign}");
            fs::remove_file(&path).expect("it is there");
        }
        fixture.git(&["checkout", "--quiet", "--detach"]);
        let refused = committed(&fixture, &[("queue", "2\n")]);
        assert!(
            matches!(&refused, Err(GitError::NoBranch { .. })),
            "{refused:?}"
        );
    }

    #[test]
    fn a_conflict_of_the_users_is_left_as_it_is() {
        let fixture = Fixture::new();
        fixture.commit(&[("a", "a\n"), ("queue", "1\n")], "base");
        fixture.write("a", "stashed\n");
        fixture.git(&["stash"]);
        fixture.commit(&[("a", "other\n")], "other");
        let popped = git_command(&fixture.root())
            .args(["stash", "pop"])
            .output()
            .expect("the tests need git");
        assert!(!popped.status.success(), "the stash must conflict");
        let before = fixture.photograph();
        let refused = committed(&fixture, &[("queue", "2\n")]);
        assert!(
            matches!(&refused, Err(GitError::Conflicted { paths, .. }) if *paths == [PathBuf::from("a")]),
            "{refused:?}"
        );
        assert_eq!(fixture.photograph(), before);
    }

    #[test]
    fn line_ends_and_filters_are_the_users() {
        let fixture = Fixture::new();
        fixture.commit(
            &[(".gitattributes", "*.md text eol=crlf\n"), ("a.md", "1\n")],
            "base",
        );
        committed(&fixture, &[("a.md", "2\r\n")])
            .expect("it can be committed")
            .expect("there is something");
        assert_eq!(fixture.git(&["cat-file", "-p", "HEAD:a.md"]).len(), 1);
        assert_eq!(fixture.git(&["cat-file", "-s", "HEAD:a.md"]), "2");
    }
}
