//! Detects Tavern's own files that git tracks: they came with a commit, so they are not trusted.

use std::ffi::OsStr;

use super::error::Error;
use tavern_core::eligible::NotReady;
use tavern_git::Repository;
use tavern_store::{Board, own_names};
use tavern_sys::process::quoted;

/// Refuses a board if git tracks files that only Tavern writes: runs, agents, closed runners, a log. `outer` is the
/// repository around it.
pub fn refuse_tracked(board: &Board, outer: &Repository) -> Result<(), Error> {
    // `.tavern/` itself may be a repository within that one.
    let inner = if board.path(".git").exists() {
        Some(Repository::discover(board.dir())?)
    } else {
        None
    };
    let repository = inner.as_ref().unwrap_or(outer);
    let root = repository.main_worktree();
    let Ok(folder) = board.dir().strip_prefix(root) else {
        return Ok(());
    };
    let tracked = repository.tracked_in(folder)?;
    let own = own_names().filter(|name| tracked.contains(OsStr::new(name)));
    let paths: Vec<String> = own
        .map(|name| folder.join(name).display().to_string())
        .collect();
    if paths.is_empty() {
        return Ok(());
    }
    let message = format!(
        "git tracks files that only Tavern may write: {}",
        paths.join(", ")
    );
    let paths = paths.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let place = inner
        .as_ref()
        .map_or_else(String::new, |_| format!("-C {} ", quoted(root)));
    let hint = format!(
        "untrack them: git {place}rm -r --cached {paths}; if others committed them: without --cached, to delete them"
    );
    Err(NotReady::new(message, hint).into())
}
