//! `seen/<queue>.md`: a queue as Tavern last wrote it or took it over, to be compared with what is there now.
//!
//! Rebuildable: without it the queue as it stands is the truth. Never synced, and known to be whole by its digest.
//! `seen/<queue>.spare` is the one before it, which the next is written over. `seen/<queue>.old` is the file that Tavern's
//! newest replaced: an editor that had it open writes there. `seen/<queue>.texts` has the texts of the past (`texts.rs`).
#![expect(
    clippy::disallowed_methods,
    reason = "a save that was set aside is removed when a person says so"
)]

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use super::content::QueueVersion;
use super::error::Error;
use super::find::Board;
use super::queue::{Queue, Text};
use super::replace::{Replaced, Staged, replace_by_spare};
use super::seen::{FOLDER, digest, escaped, path, unescaped};
use super::stamp::Stamp;
use super::texts;
use tavern_sys::files;

const ASIDE: &str = "aside";

/// Longer than any first line.
const HEAD: usize = 360;

#[derive(Debug)]
pub(super) struct Baseline {
    /// The last event that it shows.
    pub seq: u64,
    pub content: String,
    /// Of the queue's file, when it said so.
    pub file: Stamp,
    /// Of the replaced file.
    pub old: Option<Stamp>,
}

/// The files of a queue as they are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    pub file: Option<Stamp>,
    pub old: Option<Stamp>,
}

impl Sight {
    pub(super) fn of(board: &Board, queue: &Queue) -> Sight {
        Sight {
            file: Stamp::at(&queue.path),
            old: Stamp::at(&old_path(board, queue)),
        }
    }

    /// There is no file, nor anything else in its place.
    pub(super) fn is_gone(&self, queue: &Queue) -> bool {
        self.file.is_none() && fs::symlink_metadata(&queue.path).is_err()
    }

    /// One of them is empty: somebody is about to write to it.
    pub(super) fn is_blank(&self) -> bool {
        [&self.file, &self.old]
            .into_iter()
            .flatten()
            .any(Stamp::is_empty)
    }

    /// As they were when `text` was read: that is in the file, and nobody has written to the replaced one.
    pub(super) fn when_read(board: &Board, text: &Text) -> Sight {
        let known =
            Sight::known(board, &text.queue).unwrap_or_else(|| Sight::of(board, &text.queue));
        Sight {
            file: Some(text.stamp),
            ..known
        }
    }

    /// As the baseline has them; `None` if there is none.
    pub(super) fn known(board: &Board, queue: &Queue) -> Option<Sight> {
        let Header { version, old, .. } = header(board, queue)?;
        Some(Sight {
            file: Some(version.file),
            old,
        })
    }

    /// Nobody has written to them since Tavern did.
    pub(super) fn is_seen(&self, board: &Board, queue: &Queue) -> bool {
        Sight::known(board, queue).is_some_and(|known| known == *self)
    }
}

/// A save that was not believed.
#[derive(Clone, Debug)]
pub struct SetAside {
    pub path: PathBuf,
    pub queue: Queue,
}

impl Board {
    /// The saves that were set aside, and of which nobody has said what is to become of them.
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

    /// Forgets a save that was set aside.
    pub fn discard(&self, aside: &SetAside) -> Result<(), Error> {
        fs::remove_file(&aside.path).map_err(Error::io("remove", &aside.path))
    }
}

impl Baseline {
    /// `None` if there is none, or none that is whole.
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
        // To whoever has no lock it may have become the spare and been written over while they read it.
        read().or_else(read)
    }

    /// Keeps what the queue's file, as of `sight`, says after event `seq`.
    pub(super) fn write(
        board: &Board,
        queue: &Queue,
        content: &str,
        sight: &Sight,
        seq: u64,
    ) -> Result<(), Error> {
        let known = Baseline::read(board, queue).map(|known| known.content);
        // A text that is kept late is only no help to who looks for what a save rests on.
        drop(texts::keep(board, queue, known.as_deref(), content, None));
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
            files::make_folder(&folder).map_err(Error::io("make the folder", &folder))?;
            Staged::volatile(&path, &parts, None)?.put()
        })
    }

    /// After a crash: where the replaced file is the one that Tavern wrote itself and knows, nobody saved it.
    pub(super) fn forget_own(board: &Board, queue: &Queue) -> Result<(), Error> {
        let own = Baseline::read(board, queue).map(|seen| seen.file);
        let old = Stamp::at(&old_path(board, queue)).filter(|old| own == Some(*old));
        old.map_or(Ok(()), |old| Baseline::forget(board, queue, old))
    }

    /// The replaced file, as of `old`, says nothing that the queue does not.
    pub(super) fn forget(board: &Board, queue: &Queue, old: Stamp) -> Result<(), Error> {
        match Baseline::read(board, queue).filter(|seen| seen.old != Some(old)) {
            Some(Baseline {
                seq, content, file, ..
            }) => {
                let sight = Sight {
                    file: Some(file),
                    old: Some(old),
                };
                Baseline::write(board, queue, &content, &sight, seq)
            }
            None => Ok(()),
        }
    }

    /// The last event that any of them shows.
    pub(super) fn newest_seq(board: &Board) -> Option<u64> {
        let queues = Baseline::queues(board)
            .into_iter()
            .map(|id| board.queue_of(&id));
        queues
            .filter_map(|queue| Some(header(board, &queue)?.version.seq))
            .max()
    }

    /// The IDs of the queues that Tavern has seen.
    pub(super) fn queues(board: &Board) -> Vec<String> {
        let entries = fs::read_dir(board.private(FOLDER)).into_iter().flatten();
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| Some(unescaped(name.strip_suffix(".md")?)))
            .collect()
    }
}

/// Where the file goes that the queue's newest replaces.
pub(super) fn old_path(board: &Board, queue: &Queue) -> PathBuf {
    board
        .private(FOLDER)
        .join(format!("{}.old", escaped(queue)))
}

/// What becomes of the file that the queue's newest replaces; `known` is the one before it, as it was taken over.
pub(super) fn replaced(board: &Board, queue: &Queue, known: Option<Stamp>) -> Replaced {
    Replaced {
        path: old_path(board, queue),
        spent: spent_path(board, queue),
        known,
    }
}

/// Where the file is that the queue's next is written over.
pub(super) fn spent_path(board: &Board, queue: &Queue) -> PathBuf {
    board
        .private(FOLDER)
        .join(format!("{}.spent", escaped(queue)))
}

/// Where a save goes that is not believed: a file of its own, but for one that says the same.
pub(super) fn free_aside(board: &Board, queue: &Queue, saved: &str) -> PathBuf {
    let folder = board.private(FOLDER);
    let mut paths = (1..).map(|number| folder.join(format!("{}.{number}.{ASIDE}", escaped(queue))));
    let is_free = |path: &PathBuf| files::read_text(path).map_or(true, |found| found == saved);
    paths
        .find(is_free)
        .expect("there are more numbers than files")
}

/// The first line.
pub(super) struct Header {
    pub(super) version: QueueVersion,
    pub(super) old: Option<Stamp>,
    digest: u64,
    /// Of the line, its end included.
    length: usize,
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
        let sight = Sight {
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
