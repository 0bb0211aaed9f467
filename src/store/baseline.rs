//! `seen/<queue>.md`: a queue as Tavern last wrote it or took it over, to be compared with what is there now.
//!
//! A text is not written anew for each change: `seen/<queue>.since` has the edits since, a line each.
//! Rebuildable: without it the queue as it stands is the truth. Never synced, and known to be whole by its digest.
//! `seen/<queue>.old` is the file that Tavern's newest replaced: an editor that had it open writes there.

#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::error::Error;
use super::find::Board;
use super::queue::{Queue, Text};
use super::replace::Staged;
use super::stamp::Stamp;
use crate::board::text::{Edit, apply};

const FOLDER: &str = "seen";

/// Longer than any first line.
const HEAD: usize = 320;

/// When so many bytes of edits have gathered the text is written anew.
const MOST_EDITS: u64 = 16 * 1024;

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
        Sight { file: Stamp::at(&queue.path), old: Stamp::at(&old_path(board, queue)) }
    }

    /// There is no file, nor anything else in its place.
    pub(super) fn is_gone(&self, queue: &Queue) -> bool {
        self.file.is_none() && fs::symlink_metadata(&queue.path).is_err()
    }

    /// One of them is empty: somebody is about to write to it.
    pub(super) fn is_blank(&self) -> bool {
        [&self.file, &self.old].into_iter().flatten().any(Stamp::is_empty)
    }

    /// As they were when `text` was read: that is in the file, and nobody has written to the replaced one.
    pub(super) fn when_read(board: &Board, text: &Text) -> Sight {
        let old = head(board, &text.queue).map_or_else(|| Stamp::at(&old_path(board, &text.queue)), |head| head.old);
        Sight { file: Some(text.stamp), old }
    }

    /// Nobody has written to them since Tavern did.
    pub(super) fn is_seen(&self, board: &Board, queue: &Queue) -> bool {
        head(board, queue).is_some_and(|head| Some(head.file) == self.file && head.old == self.old)
    }
}

impl Board {
    /// A queue as it was when the lock was taken, for whoever holds it: what is saved by hand from then on counts for the
    /// next one, and is merged with what this one writes. A file that is none of the board's is as it stands.
    pub(super) fn read_settled(&self, queue: &Queue) -> Result<Text, Error> {
        let read = self.read(queue);
        let is_seen = |text: &Text| head(self, queue).is_some_and(|head| head.file == text.stamp);
        match read {
            Ok(text) if is_seen(&text) => Ok(text),
            Err(error @ Error::NotText { .. }) => Err(error),
            other if !self.looks_after(queue) => other,
            other => match Baseline::read(self, queue) {
                Some(seen) => Ok(Text { queue: queue.clone(), content: seen.content, stamp: seen.file }),
                None => other,
            },
        }
    }
}

impl Baseline {
    /// `None` if there is none, or none that is whole.
    pub(super) fn read(board: &Board, queue: &Queue) -> Option<Baseline> {
        let mut bytes = fs::read(path(board, queue)).ok()?;
        let base = parsed(&bytes)?;
        let mut content = String::from_utf8(bytes.split_off(base.length)).ok()?;
        if xxh3_64(content.as_bytes()) != base.digest {
            return None;
        }
        let lines = fs::read(since_path(board, queue)).unwrap_or_default();
        let mut head = base;
        let laters = whole_lines(&lines).map_while(|line| serde_json::from_slice::<Later>(line).ok());
        for later in laters.filter(|later| later.base == base.name()) {
            for step in &later.steps {
                let edits: Vec<Edit> =
                    step.iter().map(|(start, end, text)| Edit::replace(*start..*end, text.clone())).collect();
                let is_of_this = |edit: &Edit| {
                    let (start, end) = (edit.span.start, edit.span.end);
                    start <= end && content.is_char_boundary(start) && content.is_char_boundary(end)
                };
                if !edits.iter().all(is_of_this) {
                    return None;
                }
                content = apply(&content, &edits);
            }
            head = later.head()?;
        }
        if xxh3_64(content.as_bytes()) != head.digest {
            return None;
        }
        Some(Baseline { seq: head.seq, content, file: head.file, old: head.old })
    }

    /// Keeps what the queue's file, as of `sight`, says after event `seq`.
    pub(super) fn write(board: &Board, queue: &Queue, content: &str, sight: &Sight, seq: u64) -> Result<(), Error> {
        let digest = xxh3_64(content.as_bytes());
        let stamp = |stamp: Option<Stamp>| stamp.map_or_else(|| "-".to_owned(), |stamp| stamp.to_string());
        let mut bytes = format!("{seq} {} {} {digest:x}\n", stamp(sight.file), stamp(sight.old)).into_bytes();
        bytes.extend_from_slice(content.as_bytes());
        let path = path(board, queue);
        let staged = Staged::volatile(&path, &bytes, None).or_else(|_| {
            let folder = board.path(FOLDER);
            fs::create_dir_all(&folder).map_err(Error::io("make the folder", &folder))?;
            Staged::volatile(&path, &bytes, None)
        })?;
        staged.put()?;
        // Edits of another text are passed over, so nobody minds if they stay.
        drop(fs::remove_file(since_path(board, queue)));
        Ok(())
    }

    /// As [`Baseline::write`], where `steps` have made `content` of what was in the file `replaced`.
    pub(super) fn follow(
        board: &Board,
        queue: &Queue,
        replaced: Stamp,
        steps: &[Vec<Edit>],
        content: &str,
        sight: &Sight,
        seq: u64,
    ) -> Result<(), Error> {
        let is_known = !steps.is_empty() && steps.iter().all(|edits| !edits.is_empty());
        let path = since_path(board, queue);
        let append = || -> io::Result<bool> {
            let (Some(base), Some(file)) = (base_head(board, queue), sight.file) else { return Ok(false) };
            if !is_known || head(board, queue).is_none_or(|head| head.file != replaced) {
                return Ok(false);
            }
            let mut lines = OpenOptions::new().append(true).create(true).open(&path)?;
            if lines.metadata()?.len() > MOST_EDITS {
                return Ok(false);
            }
            let step = |edits: &Vec<Edit>| {
                edits.iter().map(|edit| (edit.span.start, edit.span.end, edit.text.clone())).collect()
            };
            let later = Later {
                base: base.name(),
                seq,
                file: file.to_string(),
                old: sight.old.as_ref().map(ToString::to_string),
                digest: xxh3_64(content.as_bytes()),
                steps: steps.iter().map(step).collect(),
            };
            let mut line = serde_json::to_vec(&later).expect("edits are plain data");
            line.push(b'\n');
            lines.write_all(&line)?;
            Ok(true)
        };
        if append().map_err(Error::io("write to", &path))? {
            Ok(())
        } else {
            Baseline::write(board, queue, content, sight, seq)
        }
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
            Some(Baseline { seq, content, file, .. }) => {
                Baseline::write(board, queue, &content, &Sight { file: Some(file), old: Some(old) }, seq)
            }
            None => Ok(()),
        }
    }

    /// The IDs of the queues that Tavern has seen.
    pub(super) fn queues(board: &Board) -> Vec<String> {
        let entries = fs::read_dir(board.path(FOLDER)).into_iter().flatten();
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| Some(name.strip_suffix(".md")?.replace("%2F", "/").replace("%25", "%")))
            .collect()
    }
}

/// Where the file goes that the queue's newest replaces.
pub(super) fn old_path(board: &Board, queue: &Queue) -> PathBuf {
    board.path(FOLDER).join(format!("{}.old", escaped(queue)))
}

/// Where its text is kept.
pub(super) fn path(board: &Board, queue: &Queue) -> PathBuf {
    board.path(FOLDER).join(format!("{}.md", escaped(queue)))
}

fn escaped(queue: &Queue) -> String {
    queue.id.replace('%', "%25").replace('/', "%2F")
}

/// Of the text as it is after some change.
#[derive(Clone, Copy)]
struct Head {
    seq: u64,
    file: Stamp,
    old: Option<Stamp>,
    digest: u64,
    /// Of the first line, its end included.
    length: usize,
}

impl Head {
    /// Which text it is.
    fn name(&self) -> (u64, u64) {
        (self.seq, self.digest)
    }
}

/// A change of a text that was written before.
#[derive(Serialize, Deserialize)]
struct Later {
    /// The text in full that all of them rest on.
    base: (u64, u64),
    seq: u64,
    file: String,
    old: Option<String>,
    digest: u64,
    /// One after the other: where each edit begins and ends, and what takes the place.
    steps: Vec<Vec<(usize, usize, String)>>,
}

impl Later {
    fn head(&self) -> Option<Head> {
        let old = self.old.as_ref().map(|stamp| stamp.parse()).transpose().ok()?;
        Some(Head { seq: self.seq, file: self.file.parse().ok()?, old, digest: self.digest, length: 0 })
    }
}

fn head(board: &Board, queue: &Queue) -> Option<Head> {
    let base = base_head(board, queue)?;
    let lines = fs::read(since_path(board, queue)).unwrap_or_default();
    let last = whole_lines(&lines).last().and_then(|line| serde_json::from_slice::<Later>(line).ok());
    last.filter(|later| later.base == base.name()).map_or(Some(base), |later| later.head())
}

/// Of the text that is there in full.
fn base_head(board: &Board, queue: &Queue) -> Option<Head> {
    let mut line = [0; HEAD];
    let length = File::open(path(board, queue)).and_then(|mut file| file.read(&mut line)).ok()?;
    parsed(&line[..length])
}

/// Without what a crash left half written.
fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"))
}

/// The edits since the text was written.
fn since_path(board: &Board, queue: &Queue) -> PathBuf {
    board.path(FOLDER).join(format!("{}.since", escaped(queue)))
}

fn parsed(bytes: &[u8]) -> Option<Head> {
    let length = bytes.iter().take(HEAD).position(|byte| *byte == b'\n')? + 1;
    let line = std::str::from_utf8(&bytes[..length - 1]).ok()?;
    let mut words = line.split(' ');
    let seq = words.next()?.parse().ok()?;
    let file = words.next()?.parse().ok()?;
    let old = words.next().filter(|word| *word != "-").map(str::parse).transpose().ok()?;
    let digest = u64::from_str_radix(words.next()?, 16).ok()?;
    Some(Head { seq, file, old, digest, length })
}
