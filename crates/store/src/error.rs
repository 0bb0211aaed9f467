//! Errors of the store. A violated rule is a [`Refusal`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use super::entry::Entry;
use tavern_core::decide::Refusal;
use tavern_core::event::Kind;
use tavern_core::task::{BadId, Status, TaskId};
use tavern_sys::files;
use tavern_sys::process::{TOO_MANY, quoted};

/// The most items of a queue.
pub const MOST_ITEMS: usize = 50_000;

/// The extension of files moved out of Tavern's way.
pub(super) const AWAY: &str = "was";

/// Why the board could not be found, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{}` is not in a git repository", .0.display())]
    NoRepository(PathBuf),
    #[error("`{}` is a bare repository: a board needs a main work tree", .0.display())]
    Bare(PathBuf),
    #[error("`{}` does not say where its main work tree is", .0.display())]
    NoWorktree(PathBuf),
    #[error("no board in `{}`", .0.display())]
    NoBoard(PathBuf),
    #[error("the board in `{}` is of an older version: its log is in there", .0.display())]
    OlderBoard(PathBuf),
    #[error("can't {action} `{}`", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the board is busy: its lock was not free for {0} s")]
    Busy(u64),
    #[error("no queue or file `{0}`")]
    NoQueue(String),
    #[error("`{0}` is a folder, not a file")]
    Folder(String),
    #[error("`{}` is {encoding} (line {line})", path.display())]
    NotText {
        path: PathBuf,
        encoding: &'static str,
        line: usize,
    },
    #[error("`{}` has more than {MOST_ITEMS} items, which are the most of a queue", .0.display())]
    TooMany(PathBuf),
    #[error("no item `{0}` in any queue")]
    NoTask(TaskId),
    #[error("no item starts at line {line} of {queue}")]
    NoItemAt {
        queue: String,
        line: usize,
        /// The line and the title of the item that starts nearest to it.
        nearest: Option<(usize, String)>,
    },
    #[error("line {line} of {queue} is a different item now")]
    Changed { queue: String, line: usize },
    #[error("`{task}` is quarantined: its text has a problem")]
    Quarantined { task: TaskId },
    #[error("no heading of `{0}` is a lane for new items")]
    NoLane(String),
    #[error("`{0}` already exists")]
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

/// Why an event can't be undone.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    #[error("nothing to undo")]
    Nothing,
    #[error("there is no event {0} in the log")]
    NoEvent(u64),
    #[error("event {seq} ({}) changed no item", kind.as_str())]
    NoChange { seq: u64, kind: Kind },
    #[error("event {seq} was already undone, by event {by}")]
    Already { seq: u64, by: u64 },
    #[error("`{0}` is held")]
    Held(TaskId),
    #[error("undoing event {seq} would make {name} {}, without a holder", to.as_str())]
    InHands {
        seq: u64,
        name: String,
        to: Status,
        now: Option<Status>,
    },
    #[error("{task} was merged as {commit}, and a merge is reverted with git")]
    Merged { task: TaskId, commit: String },
    #[error("{name} has changed since event {seq}")]
    Since {
        seq: u64,
        name: String,
        since: Vec<Entry>,
    },
    #[error("{name} exists again, in {queue}")]
    Back { name: String, queue: String },
    #[error("{name} no longer exists")]
    Gone { name: String, since: Vec<Entry> },
    #[error("two items of {queue} match the item of event {seq}")]
    Twice { seq: u64, queue: String },
    #[error(
        "event {seq} changed the lanes of {queue}: the meaning of its headings changed, and no item was moved"
    )]
    Lanes { seq: u64, queue: String },
    #[error("the newest save of {queue} was an older text, and removed nothing: {items} stayed")]
    Stays {
        /// The change before that save.
        seq: u64,
        queue: String,
        /// IDs, and titles of items without one.
        items: String,
    },
    #[error("event {seq} can't be undone without changing other items")]
    Odd { seq: u64, name: String },
}

impl From<Obstacle> for Error {
    fn from(obstacle: Obstacle) -> Error {
        Error::NotUndone(Box::new(obstacle))
    }
}

/// Returns a hint for a file that can't be written or a program that can't be started: permissions, mounts, free space.
pub fn not_written(path: &Path, kind: io::ErrorKind) -> Option<String> {
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    let there = quoted(there);
    Some(match kind {
        io::ErrorKind::PermissionDenied => format!("check the permissions there: ls -ld {there}"),
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("find the read-only mount: findmnt --target {there}")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room on the disk, then run the same command again: nothing was changed".to_owned()
        }
        io::ErrorKind::WouldBlock => TOO_MANY.to_owned(),
        io::ErrorKind::IsADirectory
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists
        | files::REFUSED => {
            return move_away(path);
        }
        _ => return None,
    })
}

/// Returns a free path to which a file in Tavern's place can be moved.
pub(super) fn moved_away(path: &Path) -> PathBuf {
    let name = |number: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{number}.{AWAY}"));
        PathBuf::from(name)
    };
    let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    let mut names = [name("")]
        .into_iter()
        .chain((2..).map(|number| name(&format!(".{number}"))));
    names
        .find(is_free)
        .expect("there are more numbers than files")
}

/// Returns a hint for a file in the place of a folder, or the reverse.
fn move_away(path: &Path) -> Option<String> {
    let odd = path
        .ancestors()
        .skip(1)
        .find(|above| fs::symlink_metadata(above).is_ok_and(|file| !file.is_dir()));
    let odd = odd.or_else(|| fs::symlink_metadata(path).is_ok().then_some(path))?;
    Some(format!(
        "move it out of the way: mv {} {}",
        quoted(odd),
        quoted(moved_away(odd))
    ))
}

impl Error {
    /// Returns the error for the file at `path`: its bytes are not text.
    pub fn not_text(path: &Path, error: &FromUtf8Error) -> Error {
        let bytes = error.as_bytes();
        let line = bytes[..error.utf8_error().valid_up_to()]
            .split(|byte| *byte == b'\n')
            .count();
        Error::NotText {
            path: path.to_owned(),
            encoding: files::encoding(bytes),
            line,
        }
    }

    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_can_not_be_written_says_what_to_type() {
        let there = std::env::temp_dir();
        let hint = |kind: io::ErrorKind| not_written(&there.join("no/such/lock"), kind);
        let place = there.display();
        let mounted = format!("find the read-only mount: findmnt --target {place}");
        assert_eq!(hint(io::ErrorKind::ReadOnlyFilesystem), Some(mounted));
        let denied = format!("check the permissions there: ls -ld {place}");
        assert_eq!(hint(io::ErrorKind::PermissionDenied), Some(denied));
        assert!(hint(io::ErrorKind::StorageFull).is_some_and(|hint| hint.contains("make room")));
    }
}
