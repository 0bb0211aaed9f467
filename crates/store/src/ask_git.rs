//! What git is asked about the text of a file. Knows no board.

use std::path::Path;

/// Whom to ask. Paths are from the root of the repository.
#[derive(Clone, Copy, Debug)]
pub struct AskGit {
    /// Whether the text goes on from the newest one there, where HEAD holds it at the path. `None`: HEAD holds another.
    pub goes_on: fn(root: &Path, path: &Path, text: &str, newest: &str) -> Option<bool>,
    /// What HEAD holds at the path.
    pub head_text: fn(root: &Path, path: &Path) -> Option<String>,
    /// git has written this text at the path, and is about to move HEAD to what has it.
    pub is_bringing: fn(root: &Path, path: &Path, text: &str) -> bool,
    /// git's index has something at the path.
    pub is_tracked: fn(root: &Path, path: &Path) -> bool,
    /// A branch has a file at the path.
    pub is_on_a_branch: fn(root: &Path, path: &Path) -> bool,
}
