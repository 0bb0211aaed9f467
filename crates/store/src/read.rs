//! A queue's text, for whoever decides on it or shows it: never half a save.

use super::baseline::{Baseline, header};
use super::error::Error;
use super::find::Board;
use super::queue::{Queue, Text};
use super::redo::up_to_date;
use super::stamp::Stamp;
use tavern_sys::files;
use tavern_sys::process::file_in_use::is_being_written;

impl Board {
    /// A queue as it stands, or as it stood before somebody began to write it who has not finished.
    pub fn read(&self, queue: &Queue) -> Result<Text, Error> {
        match self.read_whole(queue) {
            Some(read) => read,
            None => self.read_settled(queue, self.last_seq()?),
        }
    }

    /// A queue as it was when the lock was taken, for whoever holds it: what is saved by hand from then on counts for the
    /// next one, and is merged with what this one writes. A file that is none of the board's is as it stands. `last` is the
    /// last event's number.
    pub(super) fn read_settled(&self, queue: &Queue, last: u64) -> Result<Text, Error> {
        let read = self.read_known(queue);
        if self.is_seen(&read) || !self.looks_after(queue) {
            return read;
        }
        match read {
            // What stands there is no save that is under way, and nothing is to be written there.
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
                })
            }
            None => self.read_file(queue),
        }
    }

    /// The text in its file, if nobody was writing it meanwhile, and git is not about to say where it came from.
    pub(super) fn read_whole(&self, queue: &Queue) -> Option<Result<Text, Error>> {
        let before = Stamp::at(&queue.path);
        let read = self.read_known(queue);
        let is_whole = || {
            let is_under_way = is_being_written(&[&queue.path]) || self.is_git_at_work([queue]);
            !is_under_way && Stamp::at(&queue.path) == before
        };
        (self.is_seen(&read) || is_whole()).then_some(read)
    }

    /// The text in its file; that is not read again where this process has read or written it.
    fn read_known(&self, queue: &Queue) -> Result<Text, Error> {
        let is_rehearsed = self.rehearsed(&queue.path).is_some();
        let known = header(self, queue)
            .map(|header| header.version)
            .filter(|_| !is_rehearsed);
        let there = known.filter(|known| Stamp::at(&queue.path) == Some(known.file));
        if let Some((version, content)) =
            there.and_then(|it| Some((it, self.last_read.get(&queue.path, it)?)))
        {
            return Ok(Text {
                queue: queue.clone(),
                content,
                stamp: version.file,
            });
        }
        let text = self.read_file(queue)?;
        if let Some(version) = there.filter(|version| version.file == text.stamp) {
            self.last_read
                .keep(&queue.path, version, text.content.clone());
        }
        Ok(text)
    }

    /// It is what Tavern wrote, or has taken over, or what a dry run has decided.
    fn is_seen(&self, read: &Result<Text, Error>) -> bool {
        let is_known = |text: &Text| {
            header(self, &text.queue).is_some_and(|header| header.version.file == text.stamp)
        };
        let is_it = |text: &Text| self.rehearsed(&text.queue.path).is_some() || is_known(text);
        read.as_ref().is_ok_and(is_it)
    }
}
