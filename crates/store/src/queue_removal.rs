//! Removes a queue without any relevant content.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs;

use rustix::fs::{CWD, RenameFlags};

use super::atomic_write::{TEMP_PREFIX, sync_folder};
use super::board::Board;
use super::change::Change;
use super::entry::Entry;
use super::error::Error;
use super::queue::Queue;
use tavern_core::event::Kind;
use tavern_sys::files;
use tavern_sys::process::file_in_use::is_being_written;

impl Board {
    /// Removes the file of `queue`; its text was `text` when checked. Returns false and keeps it if it has changed,
    /// or is being written.
    pub fn remove_queue(&self, queue: &Queue, text: &str) -> Result<bool, Error> {
        self.transact(|view| {
            if view.read(queue)?.content != *text
                || !(self.is_dry() || self.take_away(queue, text)?)
            {
                return Ok((Change::default(), false));
            }
            let (id, cause) = (
                Some(queue.id.clone()),
                Some(format!("queue `{}` was removed", queue.id)),
            );
            Ok((
                Change::notes(vec![Entry {
                    queue: id,
                    cause,
                    ..Entry::new(Kind::Noted, view.now)
                }]),
                true,
            ))
        })
    }

    /// Moves the file aside first: if it was saved in between, or is open, it is put back.
    fn take_away(&self, queue: &Queue, text: &str) -> Result<bool, Error> {
        let path = &queue.path;
        let temp = tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .tempfile_in(self.path("queues"));
        let aside = temp
            .map_err(Error::io("write beside", path))?
            .into_temp_path();
        fs::rename(path, &aside).map_err(Error::io("remove", path))?;
        let is_as_it_was = files::read_text(&aside).is_ok_and(|found| found == text)
            && !is_being_written(&[&aside]);
        if !is_as_it_was {
            let back = rustix::fs::renameat_with(CWD, &*aside, CWD, path, RenameFlags::NOREPLACE);
            // If another file is there by now, both are kept.
            drop(aside.keep());
            back.map_err(|error| Error::io("put back", path)(error.into()))?;
        }
        sync_folder(path)?;
        Ok(is_as_it_was)
    }
}
