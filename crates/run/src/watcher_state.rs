//! The state of a board's watcher, for displays of the board: `watch.json` beside its locks.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tavern_core::task::Timestamp;
use tavern_store::{Board, walk_log};
use tavern_sys::files;

/// Totals of all programs that have watched the board.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Watcher {
    /// The number of looks.
    pub looks: u64,
    /// When the last look was, and how long it took, in milliseconds.
    pub looked: Timestamp,
    pub took: u64,
    /// The interval of looks in seconds; 0: only once.
    pub every: u64,
    /// Why the last look failed, if it did.
    pub degraded: Option<String>,
    /// Total seconds during which looks have failed.
    pub degraded_seconds: u64,
    /// The last event of the log that was reported.
    pub seen: u64,
}

/// How many seconds late a look is not yet overdue, since a look may take a while.
const PATIENCE: u64 = 30;

/// Beside the locks of the board.
const FILE: &str = "watch.json";

impl Watcher {
    /// Reads it from a board; `None` if the board was never watched.
    pub fn of(board: &Board) -> Option<Watcher> {
        let text = files::read_text(board.private(FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Begins on a board that was never watched: events so far are not reported.
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

    /// Returns true if it looks about as often as it should.
    pub fn is_at_it(&self, now: Timestamp) -> bool {
        let since = u64::try_from((now - self.looked).num_seconds()).unwrap_or(0);
        since <= 3 * self.every + PATIENCE
    }

    /// Records a look that ended at `now`, took `took`, and failed if `degraded` has a reason.
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

    /// Saves it. A failed write must not stop the watcher.
    pub fn keep(&self, board: &Board) {
        let text = serde_json::to_string(self).expect("it is plain data");
        drop(tavern_store::replace_own(
            &board.private(FILE),
            (text + "\n").as_bytes(),
        ));
    }
}
