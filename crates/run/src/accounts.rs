//! Results of account checks, in memory: a check is a command, and must not run under the board's lock.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tavern_core::eligible::NotReady;
use tavern_sys::clock;

/// How long the result is valid: signed in, and not signed in.
const HOLD: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(25)];

/// The last result for each account, with its time.
#[derive(Debug, Default)]
pub struct Accounts(Mutex<Looks>);

type Looks = HashMap<String, (Instant, Result<(), NotReady>)>;

impl Accounts {
    /// Returns the last result. An unchecked account counts as signed in.
    pub fn found(&self, name: &str) -> Result<(), NotReady> {
        self.with(|all| all.get(name).map_or(Ok(()), |(_, found)| found.clone()))
    }

    /// Returns true if the next check is due.
    pub fn is_due(&self, name: &str) -> bool {
        let has_passed = |(at, found): &(Instant, Result<(), NotReady>)| {
            clock::instant().duration_since(*at) >= HOLD[usize::from(found.is_err())]
        };
        self.with(|all| all.get(name).is_none_or(has_passed))
    }

    pub fn keep(&self, name: &str, found: Result<(), NotReady>) {
        self.with(|all| drop(all.insert(name.to_owned(), (clock::instant(), found))));
    }

    fn with<R>(&self, look: impl FnOnce(&mut Looks) -> R) -> R {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
