//! The files of a new board.

use std::fs;

use super::change::{Change, Rewrite};
use super::error::Error;
use super::find::Board;
use super::transaction::View;
use crate::board::task::Timestamp;

/// Whether the file of this name may be replaced, by what was found in it.
pub type MayReplace<'m> = dyn Fn(&str, &str) -> bool + 'm;

impl Board {
    /// Writes those of `files` (name and text) that are not there yet, or may be replaced; returns which were written.
    pub fn set_up(
        &self,
        files: &[(&str, String)],
        may_replace: &MayReplace<'_>,
        now: Timestamp,
    ) -> Result<Vec<bool>, Error> {
        self.make_folders()?;
        self.transact(now, |view| Ok(view.set_up(files, may_replace)))
    }

    /// What [`Board::set_up`] would write.
    pub fn foresee_set_up(&self, files: &[(&str, String)], may_replace: &MayReplace<'_>) -> Result<Vec<bool>, Error> {
        self.foresee(|view| Ok(view.set_up(files, may_replace)))
    }
}

impl View<'_> {
    fn set_up(&self, files: &[(&str, String)], may_replace: &MayReplace<'_>) -> (Change, Vec<bool>) {
        let is_missing = |(name, _): &(&str, String)| {
            let path = self.board.path(name);
            !path.exists() || fs::read_to_string(&path).is_ok_and(|found| may_replace(name, &found))
        };
        let written: Vec<bool> = files.iter().map(is_missing).collect();
        let wanted = files.iter().zip(&written).filter(|(_, is_missing)| **is_missing);
        let file = |(name, text): &(&str, String)| Rewrite::File { path: self.board.path(name), content: text.clone() };
        (Change { entries: Vec::new(), files: wanted.map(|(named, _)| file(named)).collect() }, written)
    }
}
