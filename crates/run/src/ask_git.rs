//! What the store asks of git: how a text came that it did not write itself.

use std::path::Path;

use tavern_git::{Provenance, Repository};
use tavern_store::{AskGit, Brought, FromGit, HeadText};

/// What can't be read is as if it came by hand.
pub const ASK_GIT: AskGit = AskGit {
    head_text,
    may_have_written,
    has_noted,
    is_bringing,
    is_tracked,
    is_on_a_branch,
};

fn head_text(root: &Path, path: &Path, known: u64) -> Option<HeadText> {
    let (text, provenance) = Repository::discover(root).ok()?.trace(path, known).ok()??;
    let (earlier, from) = match provenance {
        Provenance::Before => (Vec::new(), Some(FromGit::Held)),
        Provenance::Reset => (Vec::new(), Some(FromGit::Restored)),
        Provenance::Committed { earlier } => (earlier, None),
        Provenance::Moved {
            how,
            goes_on,
            before,
            stood,
            committed,
            is_ahead,
        } => (
            Vec::new(),
            Some(FromGit::Brought(Brought {
                how,
                goes_on,
                before,
                stood,
                committed,
                is_ahead,
            })),
        ),
    };
    Some(HeadText {
        text,
        earlier,
        from,
        was_put: false,
        may_be_put: true,
    })
}

fn may_have_written(root: &Path, path: &Path, inode: u64, modified: (i64, i64)) -> bool {
    let asked = |repository: Repository| repository.may_have_written(path, inode, modified);
    Repository::discover(root).and_then(asked).unwrap_or(true)
}

fn has_noted(root: &Path, path: &Path, inode: u64, modified: (i64, i64)) -> bool {
    let asked = |repository: Repository| repository.has_noted(path, inode, modified);
    Repository::discover(root).and_then(asked).unwrap_or(true)
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
