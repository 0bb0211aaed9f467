//! What git is asked about a text, and what it answers. Knows no board.

use std::path::Path;

/// How a text came to be what HEAD holds at a path, as far as that happened since git's log of HEAD had so many bytes; `None`:
/// HEAD holds something else, or somebody committed it.
pub type AskGit = fn(root: &Path, path: &Path, text: &str, known: u64) -> Option<FromGit>;

/// How a text came from git.
#[derive(Clone, Debug)]
pub enum FromGit {
    /// HEAD held it before: the file was put back.
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
    /// What HEAD held there before, the newest first.
    pub before: Vec<String>,
}
