//! A fingerprint of a file that changes with each save.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

/// A fingerprint of a file that changes with each save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// The stamp of no file.
    pub(super) const NONE: Stamp = Stamp {
        inode: (0, 0),
        length: 0,
        modified: (0, 0),
    };

    /// The stamp of a text that was written while it was read; no file or baseline has it.
    pub(super) const TORN: Stamp = Stamp {
        modified: (i64::MIN, 0),
        ..Stamp::NONE
    };

    pub(super) fn of(file: &fs::Metadata) -> Stamp {
        Stamp {
            inode: (file.dev(), file.ino()),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        }
    }

    /// Returns the stamp of the file at `path`, if there is one.
    pub(super) fn at(path: &Path) -> Option<Stamp> {
        fs::metadata(path).ok().map(|file| Stamp::of(&file))
    }

    /// Returns true if both are the same inode: a process that has one open writes to the other.
    pub(super) fn is_same_file(&self, other: &Stamp) -> bool {
        self.inode == other.inode
    }

    pub(super) fn is_as_long(&self, other: &Stamp) -> bool {
        self.length == other.length
    }

    pub(super) fn is_as_new(&self, other: &Stamp) -> bool {
        self.modified == other.modified
    }

    /// Returns the modification time in seconds and nanoseconds.
    pub(super) fn modified(&self) -> (i64, i64) {
        self.modified
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Prints as one word.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stamp {
            inode: (device, inode),
            length,
            modified: (seconds, nanos),
        } = self;
        write!(f, "{device}:{inode}:{length}:{seconds}:{nanos}")
    }
}

impl FromStr for Stamp {
    type Err = ();

    fn from_str(word: &str) -> Result<Stamp, ()> {
        let mut numbers = word.split(':');
        let mut next = || numbers.next().ok_or(());
        let mut number = || next()?.parse::<u64>().map_err(drop);
        let (inode, length) = ((number()?, number()?), number()?);
        let mut time = || next()?.parse::<i64>().map_err(drop);
        Ok(Stamp {
            inode,
            length,
            modified: (time()?, time()?),
        })
    }
}

/// The stamps of a queue's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueueFiles {
    pub(super) file: Option<Stamp>,
    /// Of the file that was replaced last.
    pub(super) old: Option<Stamp>,
}
