//! `seen/<queue>.md`: a queue as Tavern last wrote or read it, to compare with the current file.
//!
//! Rebuildable: without it the current queue is the truth. Never synced; a digest shows that it is whole.
//! `seen/<queue>.spare` is the previous version, which the next one overwrites. `seen/<queue>.old` is the file that
//! Tavern last replaced: an editor that had it open still writes there. `seen/<queue>.texts` has earlier texts
//! (`texts.rs`).
#![expect(
    clippy::disallowed_methods,
    reason = "a save that was set aside is removed when a person says so"
)]

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use super::atomic_write::{Replaced, Staged, replace_by_spare};
use super::baseline_files::{FOLDER, digest, escaped, path, unescaped};
use super::board::Board;
use super::content::QueueVersion;
use super::error::Error;
use super::file_version::{QueueFiles, Stamp};
use super::queue::{Queue, Text};
use super::text_history;
use tavern_sys::files;

const ASIDE: &str = "aside";

/// Longer than any first line.
const HEAD: usize = 360;

#[derive(Debug)]
pub(super) struct Baseline {
    /// The last event that the text shows.
    pub seq: u64,
    pub content: String,
    /// The stamp of the queue's file when it had this content.
    pub file: Stamp,
    /// The stamp of the replaced file.
    pub old: Option<Stamp>,
}

impl QueueFiles {
    pub(super) fn of(board: &Board, queue: &Queue) -> QueueFiles {
        QueueFiles {
            file: Stamp::at(&queue.path),
            old: Stamp::at(&old_path(board, queue)),
        }
    }

    /// Returns true if neither the file nor anything else is in its place.
    pub(super) fn is_gone(&self, queue: &Queue) -> bool {
        self.file.is_none() && fs::symlink_metadata(&queue.path).is_err()
    }

    /// Returns true if one of the files is empty: a writer is about to fill it.
    pub(super) fn is_blank(&self) -> bool {
        [&self.file, &self.old]
            .into_iter()
            .flatten()
            .any(Stamp::is_empty)
    }

    /// Returns the stamps as they were when `text` was read: its own, and that of the replaced file if it is unchanged.
    pub(super) fn when_read(board: &Board, text: &Text) -> QueueFiles {
        let known = || QueueFiles::known(board, &text.queue);
        let known = text.known.clone().or_else(known);
        let known = known.unwrap_or_else(|| QueueFiles::of(board, &text.queue));
        QueueFiles {
            file: Some(text.stamp),
            ..known
        }
    }

    /// Returns the stamps in the baseline; `None` if there is none.
    pub(super) fn known(board: &Board, queue: &Queue) -> Option<QueueFiles> {
        header(board, queue).map(|header| header.sight())
    }

    /// Returns true if the files are unchanged since Tavern wrote them.
    pub(super) fn is_seen(&self, board: &Board, queue: &Queue) -> bool {
        QueueFiles::known(board, queue).is_some_and(|known| known == *self)
    }
}

/// A save that was set aside instead of merged.
#[derive(Clone, Debug)]
pub struct SetAside {
    pub path: PathBuf,
    pub queue: Queue,
}

impl Board {
    /// Returns the saves that were set aside and that no person has decided on yet.
    pub fn set_aside(&self) -> Vec<SetAside> {
        let files = fs::read_dir(self.private(FOLDER))
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.path());
        let rehearsed = self
            .rehearsal
            .iter()
            .flat_map(|rehearsal| rehearsal.files());
        let mut paths: Vec<PathBuf> = files.chain(rehearsed).collect();
        paths.sort();
        paths.dedup();
        let aside = |path: PathBuf| {
            let (name, _) = path
                .file_name()?
                .to_str()?
                .strip_suffix(&format!(".{ASIDE}"))?
                .rsplit_once('.')?;
            Some(SetAside {
                queue: self.queue_of(&unescaped(name)),
                path,
            })
        };
        paths.into_iter().filter_map(aside).collect()
    }

    /// Deletes a save that was set aside.
    pub fn discard(&self, aside: &SetAside) -> Result<(), Error> {
        fs::remove_file(&aside.path).map_err(Error::io("remove", &aside.path))
    }
}

impl Baseline {
    /// Reads the baseline; `None` if there is none, or it is damaged.
    pub(super) fn read(board: &Board, queue: &Queue) -> Option<Baseline> {
        let read = || {
            let mut bytes = files::read(path(board, queue)).ok()?;
            let header = parsed(&bytes)?;
            let content = String::from_utf8(bytes.split_off(header.length)).ok()?;
            let is_whole = digest(&content) == header.digest;
            let Header {
                version: QueueVersion { file, seq },
                old,
                ..
            } = header;
            is_whole.then_some(Baseline {
                seq,
                content,
                file,
                old,
            })
        };
        // Without the lock, the file may become the spare and be overwritten during the read.
        let known = read().or_else(read);
        let Some(content) = board
            .rehearsal
            .as_ref()
            .and_then(|dry| dry.baseline(&queue.path))
        else {
            return known;
        };
        let of_new = Baseline {
            seq: 0,
            content: String::new(),
            file: Stamp::NONE,
            old: None,
        };
        Some(Baseline {
            content,
            ..known.unwrap_or(of_new)
        })
    }

    /// Stores the content of the queue's file, as of `sight`, after event `seq`.
    pub(super) fn write(
        board: &Board,
        queue: &Queue,
        content: &str,
        sight: &QueueFiles,
        seq: u64,
    ) -> Result<(), Error> {
        let known = Baseline::read(board, queue).map(|known| known.content);
        // Losing this text only makes a later search for a save's merge base less exact.
        drop(text_history::keep(
            board,
            queue,
            known.as_deref(),
            content,
            None,
        ));
        let digest = digest(content);
        let stamp =
            |stamp: Option<Stamp>| stamp.map_or_else(|| "-".to_owned(), |stamp| stamp.to_string());
        let head = format!(
            "{seq} {} {} {digest:x}\n",
            stamp(sight.file),
            stamp(sight.old)
        );
        let parts = [head.as_bytes(), content.as_bytes()];
        let path = path(board, queue);
        replace_by_spare(&path, &path.with_extension("spare"), &parts).or_else(|_| {
            let folder = board.private(FOLDER);
            files::make_folder(&folder).map_err(Error::io("create the folder", &folder))?;
            Staged::volatile(&path, &parts, None)?.put()
        })
    }

    /// After a crash: ignores a replaced file that is the one Tavern wrote itself.
    pub(super) fn forget_own(board: &Board, queue: &Queue) -> Result<(), Error> {
        let own = Baseline::read(board, queue).map(|seen| seen.file);
        let old = Stamp::at(&old_path(board, queue)).filter(|old| own == Some(*old));
        old.map_or(Ok(()), |old| Baseline::forget(board, queue, old))
    }

    /// Records that the replaced file, as of `old`, has nothing that the queue lacks.
    pub(super) fn forget(board: &Board, queue: &Queue, old: Stamp) -> Result<(), Error> {
        match Baseline::read(board, queue).filter(|seen| seen.old != Some(old)) {
            Some(Baseline {
                seq, content, file, ..
            }) => {
                let sight = QueueFiles {
                    file: Some(file),
                    old: Some(old),
                };
                Baseline::write(board, queue, &content, &sight, seq)
            }
            None => Ok(()),
        }
    }

    /// Returns the last event that any baseline shows.
    pub(super) fn newest_seq(board: &Board) -> Option<u64> {
        let queues = Baseline::queues(board)
            .into_iter()
            .map(|id| board.queue_of(&id));
        queues
            .filter_map(|queue| Some(header(board, &queue)?.version.seq))
            .max()
    }

    /// Returns the IDs of the queues that Tavern has seen.
    pub(super) fn queues(board: &Board) -> Vec<String> {
        let names = files::names_in(&board.private(FOLDER)).unwrap_or_default();
        names
            .into_iter()
            .filter_map(|(name, _)| Some(unescaped(name.to_str()?.strip_suffix(".md")?)))
            .collect()
    }
}

/// Returns the path to which the replaced file of the queue is moved.
pub(super) fn old_path(board: &Board, queue: &Queue) -> PathBuf {
    board
        .private(FOLDER)
        .join(format!("{}.old", escaped(queue)))
}

/// Returns where the replaced file of the queue goes; `known` is the one before it, already merged.
pub(super) fn replaced(board: &Board, queue: &Queue, known: Option<Stamp>) -> Replaced {
    Replaced {
        path: old_path(board, queue),
        spent: spent_path(board, queue),
        known,
    }
}

/// Returns the path of the file that the queue's next version overwrites.
pub(super) fn spent_path(board: &Board, queue: &Queue) -> PathBuf {
    board
        .private(FOLDER)
        .join(format!("{}.spent", escaped(queue)))
}

/// Returns a free path for a save that is set aside, or the path of one with the same text.
pub(super) fn free_aside(board: &Board, queue: &Queue, saved: &str) -> PathBuf {
    let folder = board.private(FOLDER);
    let mut paths = (1..).map(|number| folder.join(format!("{}.{number}.{ASIDE}", escaped(queue))));
    let is_free = |path: &PathBuf| files::read_text(path).map_or(true, |found| found == saved);
    paths
        .find(is_free)
        .expect("there are more numbers than files")
}

/// The first line of a baseline.
#[derive(Clone)]
pub(super) struct Header {
    pub(super) version: QueueVersion,
    pub(super) old: Option<Stamp>,
    digest: u64,
    /// Length of the line, including its end.
    length: usize,
}

impl Header {
    pub(super) fn sight(&self) -> QueueFiles {
        QueueFiles {
            file: Some(self.version.file),
            old: self.old,
        }
    }
}

pub(super) fn header(board: &Board, queue: &Queue) -> Option<Header> {
    let mut line = [0; HEAD];
    let length = files::open(path(board, queue))
        .and_then(|mut file| file.read(&mut line))
        .ok()?;
    parsed(&line[..length])
}

fn parsed(bytes: &[u8]) -> Option<Header> {
    let length = bytes.iter().take(HEAD).position(|byte| *byte == b'\n')? + 1;
    let line = std::str::from_utf8(&bytes[..length - 1]).ok()?;
    let mut words = line.split(' ');
    let seq = words.next()?.parse().ok()?;
    let file = words.next()?.parse().ok()?;
    let old = words
        .next()
        .filter(|word| *word != "-")
        .map(str::parse)
        .transpose()
        .ok()?;
    let digest = u64::from_str_radix(words.next()?, 16).ok()?;
    let version = QueueVersion { file, seq };
    Some(Header {
        version,
        old,
        digest,
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takes_the_place_of_the_last_but_one() {
        let scratch = tempfile::tempdir().expect("a temp dir");
        let board = Board::open(scratch.path()).expect("it is there");
        let queue = Queue {
            id: "docs/TODO.md".to_owned(),
            path: scratch.path().join("docs/TODO.md"),
        };
        let sight = QueueFiles {
            file: Some(Stamp::NONE),
            old: None,
        };
        let texts = ["one", "a longer one\n", "", "two"];
        for (seq, text) in (1..).zip(texts) {
            Baseline::write(&board, &queue, text, &sight, seq).expect("the folder is ours");
            let read = Baseline::read(&board, &queue).expect("it is whole");
            assert_eq!((read.seq, read.content.as_str()), (seq, text));
        }
        let names = fs::read_dir(board.private(FOLDER))
            .expect("it is there")
            .flatten()
            .map(|file| file.file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(
            names,
            [
                "docs%2FTODO.md.md",
                "docs%2FTODO.md.spare",
                "docs%2FTODO.md.texts"
            ]
        );
        assert_eq!(Baseline::queues(&board), ["docs/TODO.md"]);
    }
}
