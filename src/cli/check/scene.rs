//! What a check looks at.

use std::path::Path;

use crate::config::Config;
use crate::store::Board;

/// What is looked at.
pub(super) struct Scene<'a> {
    pub(super) board: Option<&'a Board>,
    /// Nothing if it can't be read.
    pub(super) config: Option<&'a Config>,
    /// These alone, if any are named.
    pub(super) files: &'a [String],
    pub(super) here: &'a Path,
}

impl<'a> Scene<'a> {
    /// The board, if all of it is looked at.
    pub(super) fn whole(&self) -> Option<&'a Board> {
        self.board.filter(|_| self.files.is_empty())
    }
}
