//! A queue's text, for whoever decides on it or shows it: never half a save.

use super::baseline::{Baseline, header};
use super::content::Content;
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
            Some(read) => Ok(read?.with_states(self.states()?)),
            None => self.read_settled(queue, self.last_seq()?),
        }
    }

    /// What the queue said when this process read or wrote it last, if it did.
    pub fn last_read(&self, queue: &Queue) -> Option<Content> {
        self.last_read.newest(&queue.path)
    }

    /// A queue as it was when the lock was taken, for whoever holds it: what is saved by hand from then on counts for the
    /// next one, and is merged with what this one writes. A file that is none of the board's is as it stands. `last` is the
    /// last event's number.
    pub(super) fn read_settled(&self, queue: &Queue, last: u64) -> Result<Text, Error> {
        let text = self.settled_text(queue, last)?;
        Ok(text.with_states(self.states_at(last)?))
    }

    fn settled_text(&self, queue: &Queue, last: u64) -> Result<Text, Error> {
        let (read, is_seen) = self.read_known(queue);
        if is_seen || !self.looks_after(queue) {
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
        let (read, is_seen) = self.read_known(queue);
        let is_whole = || {
            let is_under_way = is_being_written(&[&queue.path]) || self.is_git_at_work([queue]);
            !is_under_way && Stamp::at(&queue.path) == before
        };
        (is_seen || is_whole()).then_some(read)
    }

    /// The text in its file, and whether it is what Tavern wrote, or has taken over, or what a dry run has decided. It is not read again
    /// where this process has read or written it.
    fn read_known(&self, queue: &Queue) -> (Result<Text, Error>, bool) {
        if self.rehearsed(&queue.path).is_some() {
            let read = self.read_file(queue);
            let is_seen = read.is_ok();
            return (read, is_seen);
        }
        let known = header(self, queue).map(|header| header.version);
        let there = known.filter(|known| Stamp::at(&queue.path) == Some(known.file));
        if let Some((version, content)) =
            there.and_then(|it| Some((it, self.last_read.get(&queue.path, it)?)))
        {
            let text = Text {
                queue: queue.clone(),
                content,
                stamp: version.file,
            };
            return (Ok(text), true);
        }
        let read = self.read_file(queue);
        let seen = known.and_then(|version| {
            let text = read.as_ref().ok()?;
            (version.file == text.stamp).then(|| (version, text.content.clone()))
        });
        let is_seen = seen.is_some();
        if let Some((version, content)) = seen {
            self.last_read.keep(&queue.path, version, content);
        }
        (read, is_seen)
    }
}
