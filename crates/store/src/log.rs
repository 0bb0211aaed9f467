//! The event log `events/<day>.jsonl`: append-only, one JSON object per line, and the board's write-ahead log.
//!
//! An appended and synced line is the commit point of a change; only the event of a run's start is not synced. Every
//! writer holds the board's lock.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memchr::memchr;
use memchr::memmem::Finder;

use super::baseline::Baseline;
use super::board::Board;
use super::checkpoint::read_applied;
use super::entry::Entry;
use super::error::Error;
use tavern_core::event::Kind;
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::failpoint;
use tavern_sys::files;

/// The most lines searched, newest first.
pub(super) const MOST_LINES: usize = 50_000;

/// The number of bytes read at once.
const CHUNK: u64 = 64 * 1024;

impl Board {
    /// Returns the number of the last event. Takes no lock, so the next one may be in the middle of being written.
    pub fn last_seq(&self) -> Result<u64, Error> {
        let mut last = None;
        walk_log(self, None, &mut |entry| {
            last = Some(entry.seq);
            false
        })?;
        Ok(last.unwrap_or_default().max(known_seq(self)))
    }
}

/// Returns the last event's number according to other files, so that numbers continue if the log was deleted. Without
/// those, runs are named for the event that began them.
pub(super) fn known_seq(board: &Board) -> u64 {
    read_applied(board)
        .unwrap_or_else(|| Baseline::newest_seq(board).unwrap_or_else(|| newest_run(board)))
}

fn newest_run(board: &Board) -> u64 {
    let runs = fs::read_dir(board.path("runs")).into_iter().flatten();
    let names = runs.filter_map(|run| run.ok()?.file_name().into_string().ok());
    names
        .filter_map(|name| name.rsplit_once('@')?.1.parse().ok())
        .max()
        .unwrap_or_default()
}

/// The log, open for appending under the board's lock.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    /// Length up to the end of the last whole line; anything behind it was torn by a crash and never happened.
    length: u64,
    /// Whether there is something behind it.
    is_torn: bool,
    last_seq: u64,
    /// The files before it, oldest first.
    earlier: Vec<PathBuf>,
}

impl Log {
    /// Opens the newest file at the end of its last whole line.
    pub(super) fn open(board: &Board, now: Timestamp) -> Result<Log, Error> {
        let folder = board.private("events");
        let today = day_file(&folder, now);
        // If the clock was set back, the newest file is continued, so that the log stays in order of days.
        let mut days = days(&folder)?;
        if days.is_empty() {
            files::make_folder(&folder).map_err(Error::io("create the folder", &folder))?;
        }
        let mut log = match days.pop_if(|newest| *newest >= today) {
            Some(newest) => Log::open_file(&newest)?,
            None => Log {
                path: today,
                file: None,
                length: 0,
                is_torn: false,
                last_seq: 0,
                earlier: Vec::new(),
            },
        };
        // A file without a whole line does not show the log's end: its first line was torn by a crash.
        for earlier in days.iter().rev() {
            if log.last_seq > 0 {
                break;
            }
            log.last_seq = Log::open_file(earlier)?.last_seq;
        }
        log.earlier = days;
        Ok(log)
    }

    fn open_file(path: &Path) -> Result<Log, Error> {
        let open = || -> io::Result<(File, u64, bool, Option<u64>)> {
            let (file, known) = files::open_known_to_write(path)?;
            let (end, mut length, mut last) = (known.len(), 0, None);
            look_back(&file, end, &mut |start, line| {
                let line_end = start + line.len() as u64 + 1;
                let entry = serde_json::from_slice::<Entry>(line).ok();
                // A crash cut off the rest of a line, or of a change of several lines.
                let is_torn =
                    line_end > end || entry.as_ref().is_some_and(|entry| entry.through.is_some());
                if !is_torn {
                    length = length.max(line_end);
                    last = entry.map(|entry| entry.seq);
                }
                last.is_none()
            })?;
            Ok((file, length, length < end, last))
        };
        let (file, length, is_torn, last) = open().map_err(Error::io("read", path))?;
        Ok(Log {
            path: path.to_owned(),
            file: Some(file),
            length,
            is_torn,
            last_seq: last.unwrap_or(0),
            earlier: Vec::new(),
        })
    }

    /// Calls `look` with the log's lines, newest first, until it returns false.
    pub(super) fn walk_back(&self, look: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
        let goes_on = match &self.file {
            Some(file) => look_back(file, self.length, &mut |_, line| look(line))
                .map_err(Error::io("read", &self.path))?,
            None => true,
        };
        if goes_on {
            walk_files(&self.earlier, look)
        } else {
            Ok(())
        }
    }

    /// Syncs the log: the process that appended the last line may have died before its sync.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file
            .as_ref()
            .map_or(Ok(()), File::sync_data)
            .map_err(Error::io("sync", &self.path))
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Appends entries, and syncs unless only a run's start is logged. On success the change has happened; on an error
    /// it has not.
    pub(super) fn append(&mut self, entries: &[Entry]) -> Result<(), Error> {
        let Some(last) = entries.last() else {
            return Ok(());
        };
        let mut line = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut line, entry).expect("an entry has only string keys");
            line.push(b'\n');
        }
        let write = |log: &mut Log| -> io::Result<()> {
            let is_new = log.file.is_none();
            if is_new {
                let file = files::open_or_make(&log.path)?;
                log.file = Some(file);
            }
            let file = log.file.as_mut().expect("it was just opened");
            failpoint::hit("log.open")?;
            if log.is_torn {
                file.set_len(log.length)?;
            }
            log.is_torn = true;
            let half = line.len() / 2;
            file.write_all_at(&line[..half], log.length)?;
            failpoint::hit("log.torn")?;
            file.write_all_at(&line[half..], log.length + half as u64)?;
            // A machine crash also ends the agent's program, so its start needs no sync.
            if entries.iter().any(|entry| entry.kind != Kind::Started) {
                file.sync_data()?;
            }
            if is_new && let Some(folder) = log.path.parent() {
                File::open(folder)?.sync_all()?;
            }
            Ok(())
        };
        if let Err(source) = write(self) {
            // The next process must not take a line that was written but not synced for a commit.
            if let Some(file) = &self.file {
                file.set_len(self.length)
                    .map_err(Error::io("shorten", &self.path))?;
            }
            return Err(Error::io("append to", &self.path)(source));
        }
        self.is_torn = false;
        self.length += line.len() as u64;
        self.last_seq = last.seq;
        Ok(())
    }
}

fn day_file(folder: &Path, now: Timestamp) -> PathBuf {
    folder.join(format!("{}.jsonl", now.format("%Y-%m-%d")))
}

/// Returns the log's files, oldest first.
fn days(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let names = match files::names_in(folder) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", folder)(error)),
    };
    let mut days: Vec<PathBuf> = names
        .into_iter()
        .map(|(name, _)| folder.join(name))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    days.sort();
    Ok(days)
}

/// Returns the entries after `seq` (all after 0), oldest first, reading back from the log's end only as far as needed.
pub fn tail_log(board: &Board, seq: u64) -> Result<Vec<Entry>, Error> {
    let mut found = Vec::new();
    walk_log(board, None, &mut |entry| {
        let is_later = entry.seq > seq;
        found.extend(is_later.then_some(entry));
        is_later
    })?;
    found.reverse();
    Ok(found)
}

/// Calls `look` with entries, newest first, until it returns false; with `task`, only its entries, back to when it got
/// its ID. Unreadable lines (written by a later version) are skipped: the log explains a board, it does not make one.
pub fn walk_log(
    board: &Board,
    task: Option<&TaskId>,
    look: &mut dyn FnMut(Entry) -> bool,
) -> Result<(), Error> {
    walk_back(board, &mut |line| {
        let is_wanted = task.is_none() || task_of(line).as_ref() == task;
        let entry: Option<Entry> = if is_wanted {
            serde_json::from_slice(line).ok()
        } else {
            None
        };
        // Older lines belong to other items, so a long log costs an item nothing.
        let is_first = entry
            .as_ref()
            .zip(task)
            .is_some_and(|(entry, task)| entry.is_first_of(task));
        entry.is_none_or(&mut *look) && !is_first
    })
}

/// Calls `look`, newest first, with those of the newest `most` entries that contain one of `words` verbatim; the
/// others are not parsed.
pub fn search_log(
    board: &Board,
    words: &[&str],
    most: usize,
    look: &mut dyn FnMut(Entry),
) -> Result<(), Error> {
    let words: Vec<Finder<'_>> = words.iter().map(|words| Finder::new(*words)).collect();
    let mut looks = 0;
    walk_back(board, &mut |line| {
        looks += 1;
        if words.iter().any(|words| words.find(line).is_some()) {
            serde_json::from_slice(line)
                .into_iter()
                .for_each(&mut *look);
        }
        looks < most
    })
}

/// Calls `look` with the log's lines, newest first, until it returns false.
pub(super) fn walk_back(board: &Board, look: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
    walk_files(&days(&board.private("events"))?, look)
}

/// Like [`walk_back`], for the lines in these files, oldest first.
fn walk_files(files: &[PathBuf], look: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
    for path in files.iter().rev() {
        // Lines torn by a crash, or just being written, have not happened. A change never spans two files.
        let mut is_torn = true;
        let mut look = |line: &[u8]| {
            is_torn = is_torn && is_part(line);
            is_torn || look(line)
        };
        let mut look_back = || {
            let (file, known) = files::open_known(path)?;
            look_back(&file, known.len(), &mut |_, line| look(line))
        };
        if !look_back().map_err(Error::io("read", path))? {
            break;
        }
    }
    Ok(())
}

/// Returns true if the log mentions this ID.
pub(super) fn is_logged(board: &Board, task: &TaskId) -> Result<bool, Error> {
    let mut is_logged = false;
    walk_back(board, &mut |line| {
        is_logged = task_of(line).as_ref() == Some(task);
        !is_logged
    })?;
    Ok(is_logged)
}

/// Returns all IDs in the log.
pub(super) fn logged_ids(board: &Board) -> Result<HashSet<TaskId>, Error> {
    let mut all = HashSet::new();
    walk_back(board, &mut |line| {
        all.extend(task_of(line));
        true
    })?;
    Ok(all)
}

/// Returns true for a line of a change that ends with a later line, or for half a line.
fn is_part(line: &[u8]) -> bool {
    serde_json::from_slice::<Entry>(line).map_or(true, |entry| entry.through.is_some())
}

/// Reads a file of this length from its end, no further than needed, calling `look` with each line and its offset.
/// Returns false if `look` did.
fn look_back(
    file: &File,
    length: u64,
    look: &mut dyn FnMut(u64, &[u8]) -> bool,
) -> io::Result<bool> {
    let mut end = length;
    // The end of a line; its beginning is not read yet.
    let mut rest = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        let mut bytes = vec![0; (end - start) as usize];
        file.read_exact_at(&mut bytes, start)?;
        bytes.append(&mut rest);
        end = start;
        let newline = if start == 0 {
            Some(0)
        } else {
            memchr(b'\n', &bytes).map(|newline| newline + 1)
        };
        if let Some(whole) = newline {
            let mut at = start + bytes.len() as u64 + 1;
            let lines = bytes[whole..].split(|byte| *byte == b'\n').rev();
            let mut lines = lines.map(|line| {
                at -= line.len() as u64 + 1;
                (at, line)
            });
            if !lines.all(|(at, line)| line.is_empty() || look(at, line)) {
                return Ok(false);
            }
            bytes.truncate(whole);
        }
        rest = bytes;
    }
    Ok(true)
}

/// Returns the task of a log line without parsing the rest.
pub(super) fn task_of(line: &[u8]) -> Option<TaskId> {
    const NAME: &[u8] = b"\"task\":\"";
    // The key is among the first ones; quotes within texts are escaped.
    let head = &line[..line.len().min(256)];
    let start = memchr::memmem::find(head, NAME)? + NAME.len();
    let end = start + memchr(b'"', &head[start..])?;
    std::str::from_utf8(&head[start..end]).ok()?.parse().ok()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use super::super::entry::TextChange;
    use super::*;
    use tavern_core::event::Kind;
    use tavern_core::status::Status;

    fn board() -> (tempfile::TempDir, Board) {
        let scratch = tempfile::tempdir().expect("a temp dir");
        fs::create_dir(scratch.path().join(".tavern")).expect("made");
        let board = Board::open(scratch.path()).expect("it is there");
        (scratch, board)
    }

    fn entry(seq: u64) -> Entry {
        let cause = Some("x".repeat(usize::try_from(seq * 3000).expect("small")));
        Entry {
            seq,
            cause,
            ..Entry::new(Kind::Noted, Timestamp::default())
        }
    }

    #[test]
    fn a_torn_change_of_an_earlier_day_never_happened() {
        let (_scratch, board) = board();
        let (first, next) = (
            Timestamp::default(),
            Timestamp::default() + chrono::TimeDelta::days(1),
        );
        Log::open(&board, first)
            .expect("open")
            .append(&[entry(1)])
            .expect("appended");
        // A whole line of a change that lacks its last line.
        let part = serde_json::to_string(&Entry {
            through: Some(3),
            ..entry(2)
        })
        .expect("JSON");
        let path = day_file(&board.private("events"), first);
        let mut file = OpenOptions::new().append(true).open(&path).expect("open");
        file.write_all(format!("{part}\n").as_bytes())
            .expect("written");
        Log::open(&board, next)
            .expect("open")
            .append(&[entry(4)])
            .expect("appended");
        let seen: Vec<u64> = tail_log(&board, 0)
            .expect("read")
            .iter()
            .map(|entry| entry.seq)
            .collect();
        assert_eq!(seen, [1, 4]);
    }

    #[test]
    fn a_torn_line_never_happened() {
        let (_scratch, board) = board();
        let now = Timestamp::default();
        for seq in 1..=7 {
            let mut log = Log::open(&board, now).expect("open");
            assert_eq!(log.last_seq(), seq - 1);
            log.append(&[entry(seq)]).expect("appended");
            // Half a line, as a crash leaves it.
            let path = day_file(&board.private("events"), now);
            let mut file = OpenOptions::new().append(true).open(&path).expect("open");
            file.write_all(b"{\"seq\":99,\"kind\":").expect("written");
        }
        let seqs: Vec<u64> = tail_log(&board, 0)
            .expect("read")
            .iter()
            .map(|entry| entry.seq)
            .collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7]);
        let seqs: Vec<u64> = tail_log(&board, 5)
            .expect("read")
            .iter()
            .map(|entry| entry.seq)
            .collect();
        assert_eq!(seqs, [6, 7]);
    }

    #[test]
    fn a_change_of_several_lines_happened_whole_or_not_at_all() {
        let (_scratch, board) = board();
        let now = Timestamp::default();
        Log::open(&board, now)
            .expect("open")
            .append(&[entry(1)])
            .expect("appended");
        let parts = [2, 3, 4].map(|seq| Entry {
            through: (seq < 4).then_some(4),
            ..entry(seq)
        });
        let path = day_file(&board.private("events"), now);
        let before = fs::read(&path).expect("read");
        Log::open(&board, now)
            .expect("open")
            .append(&parts)
            .expect("appended");
        let after = fs::read(&path).expect("read");
        let seqs = || -> Vec<u64> {
            tail_log(&board, 0)
                .expect("read")
                .iter()
                .map(|entry| entry.seq)
                .collect()
        };
        assert_eq!(seqs(), [1, 2, 3, 4]);
        let ends =
            (before.len()..after.len()).filter(|end| after[*end - 1] == b'\n' || *end % 1000 == 0);
        for end in ends {
            fs::write(&path, &after[..end]).expect("written");
            assert_eq!(seqs(), [1], "cut at {end}");
            assert_eq!(Log::open(&board, now).expect("open").last_seq(), 1);
            Log::open(&board, now)
                .expect("open")
                .append(&[entry(2)])
                .expect("appended");
            assert_eq!(seqs(), [1, 2], "cut at {end}");
        }
    }

    #[test]
    fn the_log_of_an_item_ends_where_it_got_its_id() {
        let (_scratch, board) = board();
        let task: TaskId = "T-1".parse().expect("an ID");
        let of_task = |seq, kind, change| Entry {
            task: Some(task.clone()),
            change,
            seq,
            ..Entry::new(kind, Timestamp::default())
        };
        let edited = |before: &str| TextChange::Edited {
            before: before.to_owned(),
            after: "T-1: A".to_owned(),
            moved: None,
        };
        let added = TextChange::Added {
            from: None,
            to: Status::Pending,
            after: "T-1: A".to_owned(),
        };
        for first in [
            of_task(3, Kind::Added, added),
            of_task(3, Kind::Claimed, edited("A")),
        ] {
            let mut log = Log::open(&board, Timestamp::default()).expect("open");
            let begun = of_task(4, Kind::Started, TextChange::Nothing);
            let entries = [
                of_task(1, Kind::Noted, TextChange::Nothing),
                entry(2),
                first,
                begun,
                of_task(5, Kind::Edited, edited("T-1: B")),
            ];
            log.append(&entries).expect("appended");
            let mut seqs = Vec::new();
            walk_log(&board, Some(&task), &mut |entry| {
                seqs.push(entry.seq);
                true
            })
            .expect("read");
            assert_eq!(seqs, [5, 4, 3]);
        }
    }

    #[test]
    fn the_log_goes_on_over_days_and_a_clock_set_back() {
        let (_scratch, board) = board();
        let today = "2026-11-22T10:00:00Z".parse::<Timestamp>().expect("a time");
        let times = [
            today,
            today + chrono::TimeDelta::days(1),
            today - chrono::TimeDelta::days(9),
        ];
        for (seq, now) in (1..).zip(times) {
            let mut log = Log::open(&board, now).expect("open");
            assert_eq!(log.last_seq(), seq - 1);
            log.append(&[entry(seq)]).expect("appended");
        }
        let seqs: Vec<u64> = tail_log(&board, 0)
            .expect("read")
            .iter()
            .map(|entry| entry.seq)
            .collect();
        assert_eq!(seqs, [1, 2, 3]);
        assert_eq!(days(&board.private("events")).expect("listed").len(), 2);
    }
}
