//! What the world did to the store. What a rule forbids is a [`Refusal`].

use std::io;
use std::path::{Path, PathBuf};

use crate::board::decide::Refusal;
use crate::board::task::{BadId, Status, TaskId};

use super::undo::Obstacle;

/// Why the board could not be found, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{}` is not in a git repository", .0.display())]
    NoRepository(PathBuf),
    #[error("`{}` is a bare repository: a board needs a main work tree", .0.display())]
    Bare(PathBuf),
    #[error("no board in `{}`", .0.display())]
    NoBoard(PathBuf),
    #[error("can't {action} `{}`", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("the board is busy: its lock was not free for {0} s")]
    Busy(u64),
    #[error("no queue or file `{0}`")]
    NoQueue(String),
    #[error("`{0}` is a folder, not a file")]
    Folder(String),
    #[error("`{}` is not UTF-8 (line {line})", path.display())]
    NotText { path: PathBuf, line: usize },
    #[error("no item `{0}` in any queue")]
    NoTask(TaskId),
    #[error("`{task}` is quarantined: its text has a problem")]
    Quarantined { task: TaskId },
    #[error("`{0}` is there already")]
    Taken(TaskId),
    #[error("`{task}` is in the archive")]
    Archived { task: TaskId, status: Status },
    #[error("`{task}` is archived as a part of `{whole}`")]
    ArchivedPart { task: TaskId, whole: String },
    #[error("an agent named {0} is running already")]
    SecondAgent(String),
    #[error("`{}` is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error(transparent)]
    BadId(#[from] BadId),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    NotUndone(Box<Obstacle>),
}

impl From<Obstacle> for Error {
    fn from(obstacle: Obstacle) -> Error {
        Error::NotUndone(Box::new(obstacle))
    }
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }

    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Error::NoRepository(_) => "make one with `git init` and a first commit, or cd into one".into(),
            Error::Bare(_) => "clone it, and run Tavern in the clone".into(),
            Error::NoBoard(_) => "make one with `tavern init`, or work a plain file with `tavern drain TODO.md`".into(),
            Error::Io { source, path, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    format!("see who may write there: ls -ld {}", nearest(path).display())
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    format!("see what is mounted read-only there: findmnt --target {}", nearest(path).display())
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "make room on the disk, then run the same command again: nothing was changed".into()
                }
                _ => return None,
            },
            Error::Busy(_) => "try again; who holds it: fuser .tavern/lock".into(),
            Error::NoQueue(_) => "list the queues with `tavern status`, or give a path such as TODO.md".into(),
            Error::Folder(name) => format!("name a file in it, such as {}/TODO.md", name.trim_end_matches('/')),
            Error::NotText { path, .. } => {
                format!("save the file as UTF-8; where it is not: tavern check {}", path.display())
            }
            Error::NoTask(_) => "list the items with `tavern status`".into(),
            Error::Quarantined { .. } | Error::Damaged { .. } => "see where and why with `tavern check`".into(),
            Error::Taken(_) => "choose another ID, or leave it out and one is made".into(),
            Error::Archived { task, status: Status::Dead } => format!("bring it back: tavern release {task} --revive"),
            Error::Archived { task, .. } => format!("bring it back: tavern release {task} --reopen"),
            Error::ArchivedPart { task, whole } => {
                format!("bring all of it back: tavern release --reopen {whole}, then {task}")
            }
            Error::SecondAgent(_) => "choose another --name, or leave it out and a free one is taken".into(),
            Error::BadId(_) => BadId::HINT.into(),
            Error::Refused(refusal) => refusal.hint(),
            Error::NotUndone(obstacle) => obstacle.hint(),
        })
    }
}

/// The path, or what is there of the folders above it.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_can_not_be_written_says_what_to_type() {
        let there = std::env::temp_dir();
        let hint = |kind: io::ErrorKind| Error::io("open", &there.join("no/such/lock"))(kind.into()).hint();
        let place = there.display();
        let mounted = format!("see what is mounted read-only there: findmnt --target {place}");
        assert_eq!(hint(io::ErrorKind::ReadOnlyFilesystem), Some(mounted));
        let denied = format!("see who may write there: ls -ld {place}");
        assert_eq!(hint(io::ErrorKind::PermissionDenied), Some(denied));
        assert!(hint(io::ErrorKind::StorageFull).is_some_and(|hint| hint.contains("make room")));
    }
}
