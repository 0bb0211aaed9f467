//! Real repositories in temporary folders, for the tests of this crate. No configuration of the machine or the user
//! is read.
#![expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::config_files::ConfigFiles;
use super::{Changes, CommitId, Furnished, GitError, Repository};

/// A repository at `<temporary folder>/repo`, on branch `main`.
pub(super) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// Without a commit.
    pub(super) fn unborn() -> Fixture {
        Fixture::named("repo")
    }

    /// With one commit, of the file `a` with the line `one`.
    pub(super) fn new() -> Fixture {
        let fixture = Fixture::unborn();
        fixture.commit(&[("a", "one\n")], "first");
        fixture
    }

    /// Without a commit, in a folder with a suffix to `repo` that may be odd.
    pub(super) fn named(name: &str) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        fs::create_dir(folder.path().join(name)).expect("it is empty");
        std::os::unix::fs::symlink(name, folder.path().join("current"))
            .expect("it has no such link");
        let fixture = Fixture { folder };
        fixture.git(&["init", "--quiet", "--initial-branch=main"]);
        fixture.git(&["config", "user.name", "User"]);
        fixture.git(&["config", "user.email", "user@localhost"]);
        fixture
    }

    /// The root of the main work tree, resolved.
    pub(super) fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path().join("current")).expect("the fixture made it")
    }

    /// A path beside the repository.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path())
            .expect("it is there")
            .join(name)
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.beside("lock")
    }

    pub(super) fn repository(&self) -> Repository {
        discover(&self.root()).expect("the fixture is a repository")
    }

    /// A linked worktree beside the repository, on `branch`, which begins at `HEAD`.
    pub(super) fn add(&self, name: &str, branch: &str) -> Result<PathBuf, GitError> {
        let path = self.beside(name);
        self.repository()
            .add_worktree(&path, branch, &self.head(), &self.lock_file(), |_| {
                Ok::<_, GitError>(Furnished::default())
            })?;
        Ok(path)
    }

    /// The changes of the main work tree.
    pub(super) fn changes(&self) -> Result<Changes, GitError> {
        let repository = self.repository();
        repository.changes_at(&repository.main_checkout())
    }

    /// Commits all that a linked worktree holds.
    pub(super) fn commit_all(
        &self,
        path: &Path,
        message: &str,
        exclude: &[&str],
    ) -> Result<Option<CommitId>, GitError> {
        let repository = self.repository();
        repository.commit_all(path, &repository.changes(path)?, message, exclude)
    }

    /// `git` in the main work tree, which must succeed; standard output without the last newline.
    pub(super) fn git(&self, args: &[&str]) -> String {
        git_in(&self.root(), args)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        write_in(&self.root(), path, text);
    }

    /// Writes the files and commits everything.
    pub(super) fn commit(&self, files: &[(&str, &str)], message: &str) -> CommitId {
        commit_in(&self.root(), files, message)
    }

    pub(super) fn head(&self) -> CommitId {
        id(&self.git(&["rev-parse", "HEAD"]))
    }

    /// An executable script beside the repository.
    pub(super) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.beside(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("the folder is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }

    /// All that must not change in a user's checkout: `HEAD`, index, files, state of a merge or rebase.
    pub(super) fn photograph(&self) -> String {
        let root = self.root();
        let mut text = String::new();
        for entry in walkdir::WalkDir::new(&root).sort_by_file_name() {
            let entry = entry.expect("it can be read");
            let path = entry
                .path()
                .strip_prefix(&root)
                .expect("it is below the root")
                .to_owned();
            let in_git = path.starts_with(".git");
            let kept = [
                ".git/index",
                ".git/HEAD",
                ".git/rebase-merge",
                ".git/MERGE_HEAD",
                ".git/config",
                ".git/info",
            ];
            if entry.file_type().is_file()
                && (!in_git || kept.iter().any(|kept| path.starts_with(kept)))
            {
                let bytes = fs::read(entry.path()).expect("it can be read");
                let digest = git2::Oid::hash_object(git2::ObjectType::Blob, &bytes)
                    .expect("bytes have a digest");
                text.push_str(&format!("{} {digest}\n", path.display()));
            }
        }
        text
    }
}

pub(super) fn discover(dir: &Path) -> Result<Repository, GitError> {
    Repository::discover_with(dir, Some(ConfigFiles::default()))
}

pub(super) fn id(text: &str) -> CommitId {
    text.parse().expect("git prints full ids")
}

pub(super) fn git_in(dir: &Path, args: &[&str]) -> String {
    let output = git_command(dir)
        .args(args)
        .output()
        .expect("the tests need git");
    assert!(
        output.status.success(),
        "git {args:?} in {}: {}",
        dir.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end_matches('\n')
        .to_owned()
}

/// `git` that may fail.
pub(super) fn git_command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).stdin(Stdio::null());
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
    {
        command.env_remove(name);
    }
    for (name, value) in [("GIT_AUTHOR_NAME", "User"), ("GIT_COMMITTER_NAME", "User")] {
        command
            .env(name, value)
            .env(name.replace("NAME", "EMAIL"), "user@localhost");
    }
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C");
    command.args([
        "-c",
        "protocol.file.allow=always",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
    ]);
    command
}

pub(super) fn write_in(dir: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().expect("it is below the root"))
        .expect("the folder is writable");
    fs::write(path, text).expect("the folder is writable");
}

pub(super) fn commit_in(dir: &Path, files: &[(&str, &str)], message: &str) -> CommitId {
    for (path, text) in files {
        write_in(dir, path, text);
    }
    git_in(dir, &["add", "--all"]);
    git_in(
        dir,
        &["commit", "--quiet", "--allow-empty", "--message", message],
    );
    id(&git_in(dir, &["rev-parse", "HEAD"]))
}

/// The names in a folder, in order, without `.git`.
pub(super) fn names(dir: &Path) -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir(dir)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").file_name())
        .filter(|name| name.as_os_str() != OsStr::new(".git"))
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}
