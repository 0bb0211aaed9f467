//! The states of items according to the log: the newest line with a state counts. A disposable snapshot saves reading
//! the log from its beginning.

use std::collections::HashSet;
use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize;

use super::atomic_write::replace_own;
use super::board::Board;
use super::entry::Entry;
use super::error::Error;
use super::log::{Log, walk_back};
use super::state_cache::KnownStates;
use tavern_core::states::{StateKeys, States};
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::files;

/// The snapshot, in the private part: a line with its last event, a line for each item, and a last line.
const SNAPSHOT: &str = "states";

/// The last line of a complete snapshot.
const END: &str = "end";

/// The snapshot is rewritten after this many events.
const MOST_LATER: u64 = 64;

/// Walks back the log's lines, as [`walk_back`] does.
type WalkBack<'w> = dyn Fn(&mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> + 'w;

/// The parts of a log line about an item's state.
#[derive(Deserialize)]
struct StateLine {
    seq: u64,
    time: Timestamp,
    task: TaskId,
    state: StateKeys,
}

impl Board {
    /// Returns the states of all items, as of the last event.
    pub fn states(&self) -> Result<Arc<States>, Error> {
        let rehearsed = self.rehearsal.as_ref().map_or(0, |dry| dry.events());
        self.states_at(self.last_seq()? + rehearsed)
    }

    /// Returns the states as of event `last`, which must be the newest.
    pub(super) fn states_at(&self, last: u64) -> Result<Arc<States>, Error> {
        self.states_in(last, &|look| walk_back(self, look))
    }

    /// Caches the states as of the last event of `log`, for [`Board::states_at`].
    pub(super) fn learn_states(&self, log: &Log) -> Result<(), Error> {
        self.states_in(log.last_seq(), &|look| log.walk_back(look))
            .map(drop)
    }

    fn states_in(&self, last: u64, walk: &WalkBack<'_>) -> Result<Arc<States>, Error> {
        let known = self.last_states.get();
        if known.seq == Some(last) {
            return Ok(known.states);
        }
        let (in_snapshot, mut states) = self.read_snapshot().unwrap_or_default();
        let mut is_set = HashSet::new();
        walk_states(walk, in_snapshot, &mut |line| {
            if is_set.insert(line.task.clone()) {
                states.set(line.task, line.state);
            }
            true
        })?;
        if last == 0 {
            // A new clone, or a lost log.
            let shown = self.shown_states(Timestamp::default())?;
            shown.iter().for_each(|entry| set(&mut states, entry));
        }
        for entry in self.rehearsal.iter().flat_map(|dry| dry.entries()) {
            set(&mut states, &entry);
        }
        let known = KnownStates {
            seq: Some(last),
            in_snapshot,
            states: Arc::new(states),
        };
        self.last_states.put(known.clone());
        Ok(known.states)
    }

    /// Returns the states as they were at the end of the second `at`.
    pub(super) fn states_then(&self, at: Timestamp) -> Result<Arc<States>, Error> {
        let (mut states, mut is_set) = (States::default(), HashSet::new());
        walk_states(&|look| walk_back(self, look), 0, &mut |line| {
            if line.time <= at && is_set.insert(line.task.clone()) {
                states.set(line.task, line.state);
            }
            true
        })?;
        Ok(Arc::new(states))
    }

    /// Returns the state of `task` before event `seq`.
    pub(super) fn state_before(&self, task: &TaskId, seq: u64) -> Result<StateKeys, Error> {
        let mut state = None;
        walk_states(&|look| walk_back(self, look), 0, &mut |line| {
            if line.seq < seq && line.task == *task {
                state = Some(line.state);
            }
            state.is_none()
        })?;
        Ok(state.unwrap_or_default())
    }

    /// Adds the states of newly logged events, and rewrites the snapshot if it is old.
    ///
    /// # Errors
    /// The snapshot can't be written. The states are cached anyway.
    pub(super) fn add_states(&self, entries: &[Entry]) -> Result<(), Error> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Ok(());
        };
        let mut known = self.last_states.get();
        if known.seq.unwrap_or_default() + 1 != first.seq {
            return Ok(());
        }
        known.seq = Some(last.seq);
        if entries.iter().any(|entry| entry.state.is_some()) {
            let states = Arc::make_mut(&mut known.states);
            entries.iter().for_each(|entry| set(states, entry));
        }
        let is_old = last.seq - known.in_snapshot >= MOST_LATER;
        let written = if is_old {
            known.in_snapshot = last.seq;
            self.write_snapshot(last.seq, &known.states)
        } else {
            Ok(())
        };
        self.last_states.put(known);
        written
    }

    /// Reads the snapshot and its last event; `None` if there is no complete one.
    fn read_snapshot(&self) -> Option<(u64, States)> {
        let text = files::read_text(self.private(SNAPSHOT)).ok()?;
        let (seq, states) = text.strip_suffix(END)?.split_once('\n')?;
        Some((seq.parse().ok()?, States::read(states)?))
    }

    fn write_snapshot(&self, seq: u64, states: &States) -> Result<(), Error> {
        let text = format!("{seq}\n{}{END}", states.write());
        replace_own(&self.private(SNAPSHOT), text.as_bytes())
    }
}

fn set(states: &mut States, entry: &Entry) {
    if let Some((task, state)) = entry.task.as_ref().zip(entry.state.as_ref()) {
        states.set(task.clone(), state.clone());
    }
}

/// Calls `look` with the log lines after event `since` that have a state, newest first, until it returns false.
fn walk_states(
    walk: &WalkBack<'_>,
    since: u64,
    look: &mut dyn FnMut(StateLine) -> bool,
) -> Result<(), Error> {
    let says_state = memmem::Finder::new("\"state\":");
    walk(&mut |line| {
        if since > 0 && seq_of(line).is_none_or(|seq| seq <= since) {
            return false;
        }
        let line = says_state
            .find(line)
            .and_then(|_| serde_json::from_slice(line).ok());
        line.is_none_or(&mut *look)
    })
}

/// Returns the number of a log line without parsing the rest.
fn seq_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}
