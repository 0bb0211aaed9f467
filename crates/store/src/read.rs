//! Reads a queue's text, never half a save.

use super::baseline::{Baseline, Header, header};
use super::board::Board;
use super::content::Content;
use super::error::Error;
use super::file_version::Stamp;
use super::queue::{Queue, Text};
use super::recovery::up_to_date;
use tavern_sys::files;
use tavern_sys::process::file_in_use::is_being_written;

impl Board {
    /// Reads a queue; while it is being written, returns its last known text.
    pub fn read(&self, queue: &Queue) -> Result<Text, Error> {
        match self.read_whole(queue) {
            Some(read) => Ok(read?.with_states(self.states()?)),
            None => self.read_settled(queue, self.last_seq()?),
        }
    }

    /// Returns the queue's content as this process last read or wrote it.
    pub fn last_read(&self, queue: &Queue) -> Option<Content> {
        self.last_read.newest(&queue.path)
    }

    /// Reads a queue as it was when the caller took the lock. Later external edits are left to the next holder of the
    /// lock, and are merged with this one's changes. A file outside of the board is read as it is. `last` is the last
    /// event's number.
    pub(super) fn read_settled(&self, queue: &Queue, last: u64) -> Result<Text, Error> {
        self.read_settled_by(queue, last, header(self, queue))
    }

    /// Like [`Board::read_settled`], given the header of the queue's baseline.
    pub(super) fn read_settled_by(
        &self,
        queue: &Queue,
        last: u64,
        header: Option<Header>,
    ) -> Result<Text, Error> {
        let text = self.settled_text(queue, last, header)?;
        Ok(text.with_states(self.states_at(last)?))
    }

    fn settled_text(
        &self,
        queue: &Queue,
        last: u64,
        header: Option<Header>,
    ) -> Result<Text, Error> {
        let (read, is_seen) = self.read_known(queue, header);
        if is_seen || !self.looks_after(queue) {
            return read;
        }
        match read {
            // A refused file is no save under way, and nothing will be written there.
            Err(Error::Io { source, .. }) if source.kind() == files::REFUSED => {
                return self.read_file(queue);
            }
            Err(Error::NotText { .. } | Error::TooMany(_)) => {
                if let Some(Err(error @ (Error::NotText { .. } | Error::TooMany(_)))) =
                    self.read_whole(queue)
                {
                    return Err(error);
                }
            }
            _ => {}
        }
        match Baseline::read(self, queue) {
            Some(seen) => {
                let content = up_to_date(self, last, queue, &seen)?;
                Ok(Text {
                    queue: queue.clone(),
                    content: content.into(),
                    stamp: seen.file,
                    known: None,
                })
            }
            None => self.read_file(queue),
        }
    }

    /// Reads the file; `None` if it was being written meanwhile, or git has not yet moved HEAD to its origin.
    pub(super) fn read_whole(&self, queue: &Queue) -> Option<Result<Text, Error>> {
        let before = Stamp::at(&queue.path);
        let (read, is_seen) = self.read_known(queue, header(self, queue));
        let is_whole = || {
            let is_under_way = is_being_written(&[&queue.path]) || self.is_git_at_work([queue]);
            !is_under_way && Stamp::at(&queue.path) == before
        };
        (is_seen || is_whole()).then_some(read)
    }

    /// Reads the file. Returns true if Tavern wrote or merged this text, or a dry run decided it. Text that this
    /// process has read or written is cached.
    fn read_known(&self, queue: &Queue, header: Option<Header>) -> (Result<Text, Error>, bool) {
        if self.rehearsed(&queue.path).is_some() {
            let read = self.read_file(queue);
            let is_seen = read.is_ok();
            return (read, is_seen);
        }
        let Some(header) = header else {
            return (self.read_file(queue), false);
        };
        let (version, known) = (header.version, Some(header.sight()));
        let last = self.last_read.get(&queue.path, version);
        if let Some(content) = last.filter(|_| Stamp::at(&queue.path) == Some(version.file)) {
            let text = Text {
                queue: queue.clone(),
                content,
                stamp: version.file,
                known,
            };
            return (Ok(text), true);
        }
        let read = self.read_file(queue).map(|text| Text { known, ..text });
        let is_seen = match &read {
            Ok(text) if text.stamp == version.file => {
                self.last_read
                    .keep(&queue.path, version, text.content.clone());
                true
            }
            _ => false,
        };
        (read, is_seen)
    }
}
