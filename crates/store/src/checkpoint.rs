//! The file `applied`: the last event that the files are known to show.

use std::io::Write;

use super::atomic_write::sync_folder;
use super::board::Board;
use super::error::Error;
use tavern_sys::files;
use tavern_sys::process::identity::boot_id;

/// The number of events with renamed files that may not be synced yet; after a power cut they are replayed.
const MOST_UNSYNCED: u64 = 64;

/// The content of `applied`.
pub(super) struct Checkpoint {
    /// The last event that the files show.
    seq: u64,
    /// The last event that they show even after a power cut.
    pub(super) synced: u64,
    /// The boot in which `seq` holds.
    boot: String,
}

impl Checkpoint {
    pub(super) fn read(board: &Board) -> Option<Checkpoint> {
        let text = files::read_text(board.private("applied")).ok()?;
        let mut words = text.split_whitespace();
        let seq = words.next()?.parse().ok()?;
        // Older versions wrote only the number, when all was synced.
        let synced = words
            .next()
            .map_or(Some(seq), |synced| synced.parse().ok())?;
        Some(Checkpoint {
            seq,
            synced,
            boot: words
                .next()
                .map_or_else(|| boot_id().to_owned(), str::to_owned),
        })
    }

    /// Returns the last event that the files are known to show.
    pub(super) fn shown(&self) -> u64 {
        if self.boot == boot_id() {
            self.seq
        } else {
            self.synced
        }
    }

    /// Overwrites the file in place, in one write of constant length. A power cut leaves older numbers, so some events
    /// are replayed.
    fn write(&self, board: &Board) -> Result<(), Error> {
        let path = board.private("applied");
        let Checkpoint { seq, synced, boot } = self;
        files::open_or_make(&path)
            .and_then(|mut file| {
                file.write_all(format!("{seq:010} {synced:010} {boot}\n").as_bytes())
            })
            .map_err(Error::io("write", &path))
    }
}

/// Returns true if `applied` was written since this machine booted, so no file has lost its newest name.
pub(super) fn is_of_this_boot(board: &Board) -> bool {
    Checkpoint::read(board).is_some_and(|applied| applied.boot == boot_id())
}

/// Returns the last event that the files are known to show.
pub(super) fn read_applied(board: &Board) -> Option<u64> {
    Checkpoint::read(board).map(|applied| applied.shown())
}

/// Syncs the queues' folder and records that the files show all events up to `seq`, even after a power cut.
pub(super) fn write_applied(board: &Board, seq: u64) -> Result<(), Error> {
    let queues = board.path("queues");
    if queues.is_dir() {
        sync_folder(&queues.join("any"))?;
    }
    Checkpoint {
        seq,
        synced: seq,
        boot: boot_id().to_owned(),
    }
    .write(board)
}

/// Records that the files show all events up to `seq`, although renames in the queues' folder may not be synced.
/// `synced` is the last synced event. Returns the last synced event afterwards.
pub(super) fn write_shown(board: &Board, seq: u64, synced: Option<u64>) -> Result<u64, Error> {
    let Some(synced) = synced.filter(|synced| seq < synced + MOST_UNSYNCED) else {
        return write_applied(board, seq).map(|()| seq);
    };
    let boot = boot_id().to_owned();
    Checkpoint { seq, synced, boot }
        .write(board)
        .map(|()| synced)
}
