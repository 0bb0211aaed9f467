//! What git is asked about the text of a file, and what it answers. Knows no board.

use std::path::Path;

/// Whom to ask. Paths are from the root of the repository.
#[derive(Clone, Copy, Debug)]
pub struct AskGit {
    /// What HEAD holds at a path, and how it came there since git's log of HEAD had so many bytes; `None`: nothing.
    pub head_text: fn(root: &Path, path: &Path, known: u64) -> Option<HeadText>,
    /// git may have written what HEAD holds at the path since the file with this inode was modified at this time (seconds and
    /// nanoseconds).
    pub may_have_written: fn(root: &Path, path: &Path, inode: u64, modified: (i64, i64)) -> bool,
    /// By git's index the file at the path with this inode, which was modified at this time, is git's own.
    pub has_noted: fn(root: &Path, path: &Path, inode: u64, modified: (i64, i64)) -> bool,
    /// git has written this text at the path, and is about to move HEAD to what has it.
    pub is_bringing: fn(root: &Path, path: &Path, text: &str) -> bool,
    /// git's index has something at the path.
    pub is_tracked: fn(root: &Path, path: &Path) -> bool,
    /// A branch has a file at the path.
    pub is_on_a_branch: fn(root: &Path, path: &Path) -> bool,
}

/// What HEAD holds.
#[derive(Clone, Debug)]
pub struct HeadText {
    pub text: String,
    /// What somebody has committed before it since, the oldest first.
    pub earlier: Vec<String>,
    /// `None`: somebody has committed it since.
    pub from: Option<FromGit>,
    /// git put it there once, and it did not stay as it was: it is no text of Tavern's.
    pub was_put: bool,
    /// git may have put it there since Tavern last looked, so that the file is as git made it if it reads so.
    pub may_be_put: bool,
}

impl HeadText {
    /// It is what `saved` says. Line ends don't matter.
    pub(super) fn is(&self, saved: &str) -> bool {
        self.text == saved || self.text.replace("\r\n", "\n") == saved.replace("\r\n", "\n")
    }

    /// What somebody has committed since, before git went on from it; the oldest first.
    pub(super) fn committed(&self) -> Vec<&str> {
        match &self.from {
            None => self
                .earlier
                .iter()
                .chain([&self.text])
                .map(String::as_str)
                .collect(),
            Some(FromGit::Brought(brought)) => {
                brought.committed.iter().map(String::as_str).collect()
            }
            Some(FromGit::Held | FromGit::Restored) => Vec::new(),
        }
    }
}

/// How a text came from git.
#[derive(Clone, Debug)]
pub enum FromGit {
    /// HEAD has held it all the time. Whether anybody had git write it is not known.
    Held,
    /// HEAD has held it all the time, and files were reset to it.
    Restored,
    Brought(Brought),
}

/// A text that came along as HEAD moved.
#[derive(Clone, Debug)]
pub struct Brought {
    /// As git says it.
    pub how: String,
    /// It goes on from what stood there, as after a pull.
    pub goes_on: bool,
    /// What stood there in the commits that HEAD was moved away from, the newest first.
    pub before: Vec<String>,
    /// What stood there when Tavern last looked.
    pub stood: Option<String>,
    /// What somebody has committed since, before or between the moves; the oldest first.
    pub committed: Vec<String>,
    /// It was put onto what stood there, or no commit that HEAD was moved away from is left behind.
    pub is_ahead: bool,
}
