//! What the store asks of git: how a text came that it did not write itself.

use std::path::Path;

use crate::git::{Provenance, Repository};
use crate::store::{Brought, FromGit, HeadText};

/// What HEAD of the repository at `root` holds, and how it came there. What can't be read is as if it came by hand.
pub fn ask_git(root: &Path, path: &Path, known: u64) -> Option<HeadText> {
    let (text, provenance) = Repository::discover(root).ok()?.trace(path, known).ok()??;
    let from = match provenance {
        Provenance::Before => FromGit::Restored,
        Provenance::Committed => return None,
        Provenance::Moved { how, goes_on, before } => FromGit::Brought(Brought { how, goes_on, before }),
    };
    Some(HeadText { text, from })
}
