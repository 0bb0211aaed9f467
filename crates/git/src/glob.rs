//! Globs as git reads them.

use std::path::Path;

use git2::{Pathspec, PathspecFlags};

/// Returns whether `path` (from the root) matches `glob` or lies under a match. An invalid glob matches nothing.
pub fn matches(glob: &str, path: &Path) -> bool {
    Pathspec::new([glob]).is_ok_and(|spec| spec.matches_path(path, PathspecFlags::DEFAULT))
}
