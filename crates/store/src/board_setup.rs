//! Creates the files of a new board, and migrates those of an older version.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs;
use std::io::ErrorKind;

use super::board::Board;
use super::change::{Change, Rewrite};
use super::error::Error;
use tavern_sys::files;

/// Returns true if the file (name and current text) may be replaced.
pub type MayReplace<'m> = dyn Fn(&str, &str) -> bool + 'm;

impl Board {
    /// Writes those of `files` (name and text) that are missing or may be replaced; returns which were written.
    pub fn set_up(
        &self,
        files: &[(&str, String)],
        may_replace: &MayReplace<'_>,
    ) -> Result<Vec<bool>, Error> {
        if !self.is_dry() {
            self.make_folders()?;
        }
        let is_missing = |(name, _): &(&str, String)| {
            let path = self.path(name);
            // A dangling link exists too: it is a user's, and the code that needs the file reports it.
            let is_there = path.exists() || path.is_symlink() || self.rehearsed(&path).is_some();
            !is_there || files::read_text(&path).is_ok_and(|found| may_replace(name, &found))
        };
        let file = |(name, text): &(&str, String)| Rewrite::File {
            path: self.path(name),
            content: text.clone(),
        };
        self.transact(|_| {
            let written: Vec<bool> = files.iter().map(is_missing).collect();
            let wanted = files
                .iter()
                .zip(&written)
                .filter(|(_, is_missing)| **is_missing);
            Ok((
                Change {
                    entries: Vec::new(),
                    files: wanted.map(|(named, _)| file(named)).collect(),
                },
                written,
            ))
        })
    }

    /// Moves the private part of an older version's board to its new place. No program of that version may be running.
    pub fn move_private(&self) -> Result<(), Error> {
        let private = self.private("");
        files::make_folder(&private).map_err(Error::io("create the folder", &private))?;
        // The log comes last: it makes the board one of this version.
        for name in ["applied", "files", "leases", "seen", "slots", "events"] {
            let (old, new) = (self.path(name), self.private(name));
            match fs::rename(&old, &new) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("move", &old)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
