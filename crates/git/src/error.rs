//! Errors of repositories: typed, with the path and a hint with a command to type.
//!
//! Knows nothing of exit codes: [`GitError::kind`] groups the errors, and callers decide how to treat a group.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::CommitId;
use tavern_sys::process::{TOO_MANY, quoted};

/// How a caller may react to a [`GitError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitErrorKind {
    /// A rule that protects work refused it; the hint shows the way out.
    Refused,
    /// Another process was faster or is still busy; the same call may succeed a moment later.
    Busy,
    /// The repository or the machine is unsuitable, the request is invalid, or an operation failed.
    Failed,
}

/// All errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("`{}` is not in a git repository", dir.display())]
    NotARepository { dir: PathBuf },
    #[error("`{}` has no main work tree", path.display())]
    Bare { path: PathBuf },
    #[error("git does not trust `{}`, since it belongs to another user", path.display())]
    DubiousOwnership { path: PathBuf },
    #[error("`{}` uses a repository format that Tavern can't read: {reason}", path.display())]
    UnsupportedFormat { path: PathBuf, reason: String },
    #[error("`{}` replaces the parents of commits", path.display())]
    Grafted { path: PathBuf },
    #[error("the `git` program was not found")]
    ProgramMissing,
    #[error("the `git` program is too old")]
    ProgramTooOld,
    #[error("`{command}` {status} in `{}`: {stderr}", dir.display())]
    Program {
        command: String,
        dir: PathBuf,
        status: String,
        stderr: String,
    },
    #[error("a pipe or a device replaces a file in `{}`: git hung on it, so Tavern killed git", dir.display())]
    AtPipe { dir: PathBuf },
    #[error("`{command}` timed out after {} s in `{}`", after.as_secs(), dir.display())]
    TimedOut {
        command: String,
        dir: PathBuf,
        after: Duration,
    },

    #[error("`{}` can't be the name of a branch or reference", name.escape_debug())]
    BadName { name: String },
    #[error("branch `{name}` can't be made beside branch `{other}`")]
    NameInTheWay { name: String, other: String },
    #[error("there is no reference `{name}`")]
    UnknownReference { name: String },
    #[error("`{revision}` does not name one commit: {reason}")]
    BadRevision { revision: String, reason: String },
    #[error("commit `{id}` is not in `{}`", repository.display())]
    UnknownCommit { id: CommitId, repository: PathBuf },
    #[error("`{}` is a shallow clone: it lacks the commits that connect {} and {}", repository.display(), one.short(), other.short())]
    Shallow {
        one: CommitId,
        other: CommitId,
        repository: PathBuf,
    },
    #[error("`{}` is not a linked worktree of `{}`", path.display(), repository.display())]
    NotAWorktree { path: PathBuf, repository: PathBuf },

    #[error("`{reference}` moved: expected {}, found {}", or_nothing(expected.as_ref()), or_nothing(found.as_ref()))]
    Moved {
        reference: String,
        expected: Option<CommitId>,
        found: Option<CommitId>,
    },
    #[error("a clean-up of git removed {id} before a reference named it")]
    Pruned { id: CommitId },
    #[error("waited {} s for the lock `{}`", waited.as_secs(), path.display())]
    Busy { path: PathBuf, waited: Duration },
    #[error("`{}` exists: another git is running, or was killed", path.display())]
    LockedByGit { path: PathBuf },

    #[error("branch `{branch}` is checked out in `{}`", path.display())]
    CheckedOut { branch: String, path: PathBuf },
    #[error("`{}` is in the way of a new worktree", path.display())]
    FolderInTheWay { path: PathBuf },
    #[error("the worktree `{}` is on {found}, not on {}", path.display(), wanted(expected.as_deref()))]
    OtherHead {
        path: PathBuf,
        expected: Option<String>,
        found: String,
    },
    #[error("the worktree `{}` is locked: {reason}", path.display())]
    Locked { path: PathBuf, reason: String },
    #[error("the worktree `{}` holds another worktree, `{}`", path.display(), inner.display())]
    HoldsWorktree { path: PathBuf, inner: PathBuf },
    #[error("`{}` holds unresolved conflicts in {}", worktree.display(), list(paths))]
    Conflicted {
        worktree: PathBuf,
        paths: Vec<PathBuf>,
    },
    #[error(
        "{} existed before its agent started (`worktree.copy`, `worktree.setup`) and was changed, moved, copied or added: the agent's part is unknown",
        list(paths)
    )]
    Mixed { paths: Vec<PathBuf> },
    #[error("`{}` is in the middle of a {operation}", worktree.display())]
    Unfinished {
        worktree: PathBuf,
        operation: String,
    },

    #[error("can't {doing} `{}`", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("can't {doing}")]
    Library { doing: String, source: git2::Error },
}

impl GitError {
    pub fn kind(&self) -> GitErrorKind {
        match self {
            GitError::CheckedOut { .. }
            | GitError::FolderInTheWay { .. }
            | GitError::OtherHead { .. }
            | GitError::Locked { .. }
            | GitError::HoldsWorktree { .. }
            | GitError::Conflicted { .. }
            | GitError::Mixed { .. }
            | GitError::Unfinished { .. } => GitErrorKind::Refused,
            GitError::Moved { .. }
            | GitError::Pruned { .. }
            | GitError::Busy { .. }
            | GitError::LockedByGit { .. } => GitErrorKind::Busy,
            _ => GitErrorKind::Failed,
        }
    }

    /// Returns the next step for the user: one line, lower case, without a final period.
    pub fn hint(&self) -> String {
        match self {
            GitError::NotARepository { dir } => {
                format!(
                    "make one with `git init {}`, or change into a repository",
                    quoted(dir)
                )
            }
            GitError::Bare { path } => {
                format!(
                    "work in a clone that has files: `git clone {} work && cd work`",
                    quoted(path)
                )
            }
            GitError::DubiousOwnership { path } => {
                format!(
                    "if you trust it: `git config --global --add safe.directory {}`",
                    quoted(path)
                )
            }
            GitError::UnsupportedFormat { .. } => {
                "use a plain clone: all objects (no `--filter`), SHA-1 ids, \
                 references as files (no `--ref-format=reftable`)"
                    .to_owned()
            }
            GitError::Grafted { path } => format!(
                "remove it: rm {0}; or convert it: git replace --convert-graft-file",
                quoted(path)
            ),
            GitError::ProgramMissing | GitError::ProgramTooOld => {
                "install git 2.38 or later and put it into PATH".to_owned()
            }
            GitError::Program { dir, .. } => {
                format!(
                    "for its full output, run it by hand in {}",
                    quoted(dir)
                )
            }
            GitError::AtPipe { .. } => {
                "a program there keeps creating them: end it, or wait until its run ends"
                    .to_owned()
            }
            GitError::TimedOut { .. } => {
                "a filter or a slow disk may have hung it: to find out, run it by hand"
                    .to_owned()
            }
            GitError::BadName { .. } => {
                "use letters, digits, `-`, `_`, `.` and single slashes".to_owned()
            }
            GitError::NameInTheWay { other, .. } => {
                format!(
                    "rename one of them, for example `git branch -m {0} {0}-old`",
                    quoted(other)
                )
            }
            GitError::UnknownReference { .. } => {
                "list them: `git for-each-ref`".to_owned()
            }
            GitError::BadRevision { .. } => "give a branch, a tag or a longer commit id".to_owned(),
            GitError::UnknownCommit { .. } => {
                "fetch it first, or look for it with `git log --all`".to_owned()
            }
            GitError::Shallow { .. } => UNSHALLOW.to_owned(),
            GitError::NotAWorktree { .. } => "list them: `git worktree list`".to_owned(),
            GitError::Moved { reference, .. } => {
                format!("look at `git log {}`, then try again", quoted(reference))
            }
            GitError::Pruned { .. } => "try again, without `git gc --prune=now`".to_owned(),
            GitError::Busy { path, .. } => format!(
                "find the process that holds it: `fuser {}`, then try again",
                quoted(path)
            ),
            GitError::LockedByGit { path } => {
                format!(
                    "try again; if no git is running here: `rm {}`",
                    quoted(path)
                )
            }
            GitError::CheckedOut { path, .. } => {
                format!(
                    "switch that checkout to another branch: `git -C {} switch --detach`",
                    quoted(path)
                )
            }
            GitError::FolderInTheWay { path } => {
                format!(
                    "move it out of the way: `mv {0} {0}.old`",
                    quoted(path)
                )
            }
            GitError::OtherHead { path, expected, .. } => {
                let target = expected.as_deref().unwrap_or("--detach");
                format!(
                    "save the changes there, then: `git -C {} switch {target}`",
                    quoted(path)
                )
            }
            GitError::Locked { path, .. } => {
                format!(
                    "if the lock is not needed: `git worktree unlock {}`",
                    quoted(path)
                )
            }
            GitError::HoldsWorktree { inner, .. } => {
                format!(
                    "save its contents, then: `git worktree remove {}`",
                    quoted(inner)
                )
            }
            GitError::Conflicted { worktree, .. } => {
                format!(
                    "remove the conflict markers, then: `git -C {} add -A`",
                    quoted(worktree)
                )
            }
            GitError::Mixed { .. } => {
                "commit the files of the set-up, have git ignore them, or have the agent leave them alone".to_owned()
            }
            GitError::Unfinished {
                worktree,
                operation,
            } => {
                format!(
                    "finish it or abort it: `git -C {} {operation} --abort`",
                    quoted(worktree)
                )
            }
            GitError::Io { source, .. } if source.kind() == io::ErrorKind::WouldBlock => {
                TOO_MANY.to_owned()
            }
            GitError::Io {
                doing: "remove",
                path,
                source,
            } if source.kind() == io::ErrorKind::PermissionDenied => not_removed(path),
            GitError::Io { path, .. } => format!(
                "look at `ls -ld {}` and at the free space with `df`",
                quoted(path)
            ),
            GitError::Library { .. } => "check the repository with `git fsck`".to_owned(),
        }
    }

    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> GitError {
        let path = path.into();
        move |source| GitError::Io {
            doing,
            path,
            source,
        }
    }

    pub(super) fn library(doing: impl Into<String>) -> impl FnOnce(git2::Error) -> GitError {
        let doing = doing.into();
        move |source| GitError::Library { doing, source }
    }
}

/// Returns the hint for a folder that may not be removed, such as one with files of a container that ran as root.
pub fn not_removed(path: &Path) -> String {
    format!(
        "files of another user are in it: sudo rm -r {}",
        quoted(path)
    )
}

/// The hint for a shallow clone that lacks too much history.
pub const UNSHALLOW: &str =
    "fetch the full history: git fetch --unshallow (of actions/checkout: `fetch-depth: 0`)";

fn or_nothing(id: Option<&CommitId>) -> &str {
    id.map_or("nothing", CommitId::as_str)
}

/// Describes a branch, or `None` for no branch at all.
fn wanted(branch: Option<&str>) -> String {
    branch.map_or_else(
        || "a commit without a branch".to_owned(),
        |name| format!("branch `{name}`"),
    )
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths
        .iter()
        .take(5)
        .map(|path| format!("`{}`", path.display()))
        .collect();
    let more = paths.len().saturating_sub(shown.len());
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_conflicts_are_cut() {
        let paths: Vec<PathBuf> = (0..7).map(|n| PathBuf::from(format!("f{n}"))).collect();
        assert_eq!(list(&paths), "`f0`, `f1`, `f2`, `f3`, `f4` and 2 more");
        assert_eq!(list(&paths[..1]), "`f0`");
    }
}
