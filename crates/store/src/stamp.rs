//! What differs between a file and the file after somebody has saved it.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

/// What differs between a file and the file after somebody has saved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Of no file.
    pub(super) const NONE: Stamp = Stamp {
        inode: (0, 0),
        length: 0,
        modified: (0, 0),
    };

    /// Of what was written while it was read: no file has it, and no baseline.
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

    /// Of the file at `path`, if there is one.
    pub(super) fn at(path: &Path) -> Option<Stamp> {
        fs::metadata(path).ok().map(|file| Stamp::of(&file))
    }

    /// Whoever has the one open writes to the other.
    pub(super) fn is_same_file(&self, other: &Stamp) -> bool {
        self.inode == other.inode
    }

    pub(super) fn is_as_long(&self, other: &Stamp) -> bool {
        self.length == other.length
    }

    pub(super) fn is_as_new(&self, other: &Stamp) -> bool {
        self.modified == other.modified
    }

    /// In seconds and nanoseconds.
    pub(super) fn modified(&self) -> (i64, i64) {
        self.modified
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// As one word.
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
