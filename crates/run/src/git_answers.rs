//! The store's questions to git: whether git has put a text in its place.

use std::path::Path;

use tavern_git::Repository;
use tavern_store::AskGit;

/// A repository that can't be read counts as an external edit.
pub const ASK_GIT: AskGit = AskGit {
    goes_on,
    head_text,
    is_bringing,
    is_tracked,
    is_on_a_branch,
};

fn goes_on(root: &Path, path: &Path, text: &str, newest: &str) -> Option<bool> {
    Repository::discover(root)
        .and_then(|repository| repository.goes_on(path, text, newest))
        .ok()?
}

fn head_text(root: &Path, path: &Path) -> Option<String> {
    Repository::discover(root).ok()?.head_text(path)
}

fn is_bringing(root: &Path, path: &Path, text: &str) -> bool {
    Repository::discover(root)
        .and_then(|repository| repository.is_bringing(path, text))
        .unwrap_or_default()
}

fn is_tracked(root: &Path, path: &Path) -> bool {
    Repository::discover(root)
        .and_then(|repository| repository.tracks(path))
        .unwrap_or_default()
}

fn is_on_a_branch(root: &Path, path: &Path) -> bool {
    Repository::discover(root)
        .and_then(|repository| repository.is_on_a_branch(path))
        .unwrap_or_default()
}
