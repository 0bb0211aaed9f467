//! A reaper's memory, between two looks, of expired leases with living holders.

use serde::{Deserialize, Serialize};

use tavern_core::lease::{Lease, Token};
use tavern_core::task::{TaskId, Timestamp};
use tavern_store::Board;
use tavern_sys::files;

/// Expired leases with a live holder on this host, which are left to a second look. After a laptop slept, all leases
/// have expired at once, and every holder is about to renew.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExpiredLeases {
    seen: Vec<Sighting>,
}

/// A lease as it was found expired.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sighting {
    task: TaskId,
    token: Token,
    heartbeat_at: Timestamp,
    at: Timestamp,
}

impl ExpiredLeases {
    /// Loads the sightings of the board's last reaper; empty if they can't be read.
    pub fn load(board: &Board) -> ExpiredLeases {
        let text = files::read_text(board.private(FILE)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Saves them for the board's next reaper, if they have changed.
    pub fn save(&self, board: &Board) -> Result<(), tavern_store::Error> {
        if *self == ExpiredLeases::load(board) {
            return Ok(());
        }
        let text = serde_json::to_string(self).expect("looks are plain data");
        tavern_store::replace_own(&board.private(FILE), text.as_bytes())
    }

    /// Returns true if the lease was seen like this at least half a lease ago, without a heartbeat since.
    pub fn is_second(&mut self, lease: &Lease, now: Timestamp) -> bool {
        let same = |seen: &&Sighting| {
            seen.task == lease.task
                && seen.token == lease.token
                && seen.heartbeat_at == lease.heartbeat_at
        };
        match self.seen.iter().find(same) {
            Some(first) => (now - first.at).num_seconds() >= i64::from(lease.seconds / 2),
            None => {
                self.seen.retain(|seen| seen.task != lease.task);
                let (task, token, heartbeat_at) =
                    (lease.task.clone(), lease.token, lease.heartbeat_at);
                self.seen.push(Sighting {
                    task,
                    token,
                    heartbeat_at,
                    at: now,
                });
                false
            }
        }
    }

    /// Forgets leases that no longer exist.
    pub fn retain(&mut self, leases: &[Lease]) {
        self.seen.retain(|seen| {
            leases
                .iter()
                .any(|lease| lease.task == seen.task && lease.token == seen.token)
        });
    }
}

/// Beside the leases, which are the files there that end in `.yaml`.
const FILE: &str = "leases/looks.json";
