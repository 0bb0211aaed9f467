//! `applied`: up to which event the files are known to show the log.

use std::io::Write;

use super::error::Error;
use super::find::Board;
use super::replace::sync_folder;
use tavern_sys::files;
use tavern_sys::process::identity::boot_id;

/// So many events may be shown by files whose names are not on disk yet: after a power cut they are shown again.
const MOST_UNSYNCED: u64 = 64;

/// What `applied` says.
pub(super) struct Applied {
    /// The last event that the files show.
    seq: u64,
    /// The last one that they show whatever happens.
    pub(super) synced: u64,
    /// The boot in which the former holds.
    boot: String,
}

impl Applied {
    pub(super) fn read(board: &Board) -> Option<Applied> {
        let text = files::read_text(board.private("applied")).ok()?;
        let mut words = text.split_whitespace();
        let seq = words.next()?.parse().ok()?;
        // Before there was more than the number all was synced.
        let synced = words
            .next()
            .map_or(Some(seq), |synced| synced.parse().ok())?;
        Some(Applied {
            seq,
            synced,
            boot: words
                .next()
                .map_or_else(|| boot_id().to_owned(), str::to_owned),
        })
    }

    /// The number of the last event that the files are known to show.
    pub(super) fn shown(&self) -> u64 {
        if self.boot == boot_id() {
            self.seq
        } else {
            self.synced
        }
    }

    /// Overwritten in place: it is one write of a length that never changes, and a power cut leaves older numbers, which
    /// only mean that some events are looked at again.
    fn write(&self, board: &Board) -> Result<(), Error> {
        let path = board.private("applied");
        let Applied { seq, synced, boot } = self;
        files::open_or_make(&path)
            .and_then(|mut file| {
                file.write_all(format!("{seq:010} {synced:010} {boot}\n").as_bytes())
            })
            .map_err(Error::io("write", &path))
    }
}

/// What a program left undone it left since this machine was started: no file has lost its newest name.
pub(super) fn is_of_this_boot(board: &Board) -> bool {
    Applied::read(board).is_some_and(|applied| applied.boot == boot_id())
}

/// The number of the last event that the files are known to show.
pub(super) fn read_applied(board: &Board) -> Option<u64> {
    Applied::read(board).map(|applied| applied.shown())
}

/// The files show all events up to this one, and a power cut changes nothing of it.
pub(super) fn write_applied(board: &Board, seq: u64) -> Result<(), Error> {
    let queues = board.path("queues");
    if queues.is_dir() {
        sync_folder(&queues.join("any"))?;
    }
    Applied {
        seq,
        synced: seq,
        boot: boot_id().to_owned(),
    }
    .write(board)
}

/// The files show all events up to this one, and the names of the newest files of the board's queues may not be on disk. `synced` is up
/// to where they are. Returns up to where they are now.
pub(super) fn write_shown(board: &Board, seq: u64, synced: Option<u64>) -> Result<u64, Error> {
    let Some(synced) = synced.filter(|synced| seq < synced + MOST_UNSYNCED) else {
        return write_applied(board, seq).map(|()| seq);
    };
    let boot = boot_id().to_owned();
    Applied { seq, synced, boot }.write(board).map(|()| synced)
}
