//! Claimers that wait for the lock are served together by whoever holds it.
//!
//! Who finds the lock taken leaves a request, `slots/claims/<name>`, locked for as long as it waits, and then waits as
//! everybody does. Who holds the lock and takes an item takes up such requests as well: their events go into the log at
//! once with its own, each with the name of its request. Whoever then gets the lock and finds its name in the log has its
//! claim; who doesn't goes on by itself. The log is the truth, so a holder may be killed anywhere.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use fs2::FileExt;
use memchr::memmem;

use super::applied::read_applied;
use super::entry::{Entry, LeaseEntry};
use super::error::Error;
use super::find::Board;
use super::log::walk_back;
use super::seek::Seek;
use crate::board::lease::Lease;

const FOLDER: &str = "slots/claims";

/// Requests that are taken up at once.
const MOST: usize = 31;

/// The request of this process, while it waits.
#[derive(Debug)]
pub(super) struct Request {
    name: String,
    path: PathBuf,
    /// All events up to here were there before it.
    since: u64,
    /// Locked: the kernel tells others that we are gone.
    _file: File,
}

impl Request {
    /// `None` where it can't be left: one can wait without.
    pub(super) fn leave(board: &Board, seek: &Seek) -> Option<Request> {
        let since = read_applied(board)?;
        let name = uuid::Uuid::new_v4().simple().to_string();
        let path = board.path(FOLDER).join(&name);
        let text = serde_json::to_vec(seek).expect("what is sought is plain data");
        let open = || OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = open().or_else(|_| fs::create_dir_all(board.path(FOLDER)).and_then(|()| open())).ok()?;
        // Not locked yet, it is taken for one of the dead and removed; not written yet, for none.
        FileExt::try_lock(&file).ok()?;
        file.write_all(&text).ok()?;
        Some(Request { name, path, since, _file: file })
    }

    /// Nobody takes it up any more. False if somebody has.
    pub(super) fn withdraw(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }

    /// The event that answers it, with the lease that it made. To be asked by who holds the lock.
    pub(super) fn answer(self, board: &Board) -> Result<Option<(Entry, Lease)>, Error> {
        if self.withdraw() {
            return Ok(None);
        }
        let mut found = None;
        walk_back(board, &mut |line| {
            if memmem::find(line, self.name.as_bytes()).is_some() {
                found = serde_json::from_slice::<Entry>(line).ok().and_then(|entry| match &entry.lease {
                    Some(LeaseEntry::Put(lease)) if entry.request.as_ref() == Some(&self.name) => {
                        let lease = (**lease).clone();
                        Some((entry, lease))
                    }
                    _ => None,
                });
            }
            found.is_none() && seq_of(line).is_none_or(|seq| seq > self.since)
        })?;
        Ok(found)
    }
}

/// The number of a log line, without reading the rest of it.
fn seq_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Another's request, to be taken up by who holds the lock.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) name: String,
    pub(super) seek: Seek,
    path: PathBuf,
}

impl Waiting {
    /// From now on its claimer waits for what we do. False if it has given up.
    pub(super) fn take_up(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}

/// The requests of those that wait now and live, who has waited longest first.
pub(super) fn waiting(board: &Board) -> impl Iterator<Item = Waiting> {
    let entries = fs::read_dir(board.path(FOLDER)).into_iter().flatten();
    let left =
        entries.filter_map(Result::ok).filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry)));
    let mut left: Vec<(SystemTime, DirEntry)> = left.collect();
    left.sort_by_key(|(time, _)| *time);
    left.into_iter().filter_map(|(_, entry)| living(entry.path(), entry.file_name().into_string().ok()?)).take(MOST)
}

/// `None` for what the dead have left, which is removed.
fn living(path: PathBuf, name: String) -> Option<Waiting> {
    let file = File::open(&path).ok()?;
    if FileExt::try_lock_shared(&file).is_ok() {
        drop(fs::remove_file(&path));
        return None;
    }
    let seek = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    Some(Waiting { name, seek, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lines_number_is_read_without_the_rest() {
        let rows: [(&[u8], Option<u64>); 4] =
            [(b"{\"seq\":17,\"time\":", Some(17)), (b"{\"seq\":", None), (b"", None), (b"{\"time\":1}", None)];
        for (line, seq) in rows {
            assert_eq!(seq_of(line), seq);
        }
    }
}
