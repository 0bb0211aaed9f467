//! How the watching of a board gets on, for those who look at the board: `watch.json` beside its locks.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tavern_core::task::Timestamp;
use tavern_store::{Board, walk_log};
use tavern_sys::files;

/// Of all programs that have watched the board.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Watcher {
    /// Looks of theirs.
    pub looks: u64,
    /// When the last one was, and how long it took, in milliseconds.
    pub looked: Timestamp,
    pub took: u64,
    /// How often it looks, in seconds; 0: once.
    pub every: u64,
    /// Why it failed, if it did.
    pub degraded: Option<String>,
    /// For how many seconds looks have failed, all in all.
    pub degraded_seconds: u64,
    /// The last event of the log of which it was told what there was to tell.
    pub seen: u64,
}

/// So many seconds late is not yet overdue: a look may take a while.
const PATIENCE: u64 = 30;

/// Beside the locks of the board.
const FILE: &str = "watch.json";

impl Watcher {
    /// Of a board; `None` if no program has ever watched it.
    pub fn of(board: &Board) -> Option<Watcher> {
        let text = files::read_text(board.private(FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Of one that begins, on a board that nobody has watched: what has happened so far is over.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn begin(board: &Board) -> Result<Watcher, tavern_store::Error> {
        let mut seen = 0;
        walk_log(board, None, &mut |entry| {
            seen = entry.seq;
            false
        })?;
        Ok(Watcher {
            seen,
            ..Watcher::default()
        })
    }

    /// It looks as often as it is to, or nearly.
    pub fn is_at_it(&self, now: Timestamp) -> bool {
        let since = u64::try_from((now - self.looked).num_seconds()).unwrap_or(0);
        since <= 3 * self.every + PATIENCE
    }

    /// One has looked by `now` and for so long, in vain where it is `degraded`.
    pub fn looked(&mut self, now: Timestamp, took: Duration, degraded: Option<String>) {
        let seconds =
            |from: Timestamp, to: Timestamp| u64::try_from((to - from).num_seconds()).unwrap_or(0);
        if self.degraded.is_some() {
            self.degraded_seconds += seconds(self.looked, now);
        }
        self.looks += 1;
        self.looked = now;
        self.took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.degraded = degraded;
    }

    /// Writes it down. That it can't be keeps nobody from watching.
    pub fn keep(&self, board: &Board) {
        let text = serde_json::to_string(self).expect("it is plain data");
        drop(tavern_store::replace_own(
            &board.private(FILE),
            (text + "\n").as_bytes(),
        ));
    }
}
