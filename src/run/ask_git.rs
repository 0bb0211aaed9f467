//! What the store asks of git: how a text came that it did not write itself.

use std::path::Path;

use crate::git::{Provenance, Repository};
use crate::store::{Brought, FromGit};

/// How a text came to be what HEAD of the repository at `root` holds. What can't be read there is as if it came by hand.
pub fn ask_git(root: &Path, path: &Path, text: &str, known: u64) -> Option<FromGit> {
    let provenance = Repository::discover(root).ok()?.trace(path, text, known).ok()??;
    match provenance {
        Provenance::Before => Some(FromGit::Restored),
        Provenance::Committed => None,
        Provenance::Moved { how, goes_on, before } => Some(FromGit::Brought(Brought { how, goes_on, before })),
    }
}
