//! Questions to git about the text of a file. Knows no board.

use std::path::Path;

/// The functions that query git. Paths are relative to the root of the repository.
#[derive(Clone, Copy, Debug)]
pub struct AskGit {
    /// Whether `text` continues from the newest text, where HEAD holds `text` at the path. `None`: HEAD holds another.
    pub goes_on: fn(root: &Path, path: &Path, text: &str, newest: &str) -> Option<bool>,
    /// The text that HEAD holds at the path.
    pub head_text: fn(root: &Path, path: &Path) -> Option<String>,
    /// Whether git has written this text at the path and is about to move HEAD to a commit that has it.
    pub is_bringing: fn(root: &Path, path: &Path, text: &str) -> bool,
    /// Whether git's index has an entry at the path.
    pub is_tracked: fn(root: &Path, path: &Path) -> bool,
    /// Whether a branch has a file at the path.
    pub is_on_a_branch: fn(root: &Path, path: &Path) -> bool,
}
