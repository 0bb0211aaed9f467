//! Paths and digests of the texts of queues that Tavern has seen.

use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_64;

use super::board::Board;
use super::queue::Queue;

/// In the private part.
pub(super) const FOLDER: &str = "seen";

/// Returns the path of the queue's stored text.
pub(super) fn path(board: &Board, queue: &Queue) -> PathBuf {
    board.private(FOLDER).join(format!("{}.md", escaped(queue)))
}

pub(super) fn escaped(queue: &Queue) -> String {
    queue.id.replace('%', "%25").replace('/', "%2F")
}

pub(super) fn unescaped(name: &str) -> String {
    name.replace("%2F", "/").replace("%25", "%")
}

/// Returns the digest of a queue's text.
pub(super) fn digest(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}
