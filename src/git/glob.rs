//! Globs as git reads them.

use std::path::Path;

use git2::{Pathspec, PathspecFlags};

/// Does `path` (from the root) match `glob`, or lie under what does? A glob that can't be read matches nothing.
pub fn matches(glob: &str, path: &Path) -> bool {
    Pathspec::new([glob]).is_ok_and(|spec| spec.matches_path(path, PathspecFlags::DEFAULT))
}
