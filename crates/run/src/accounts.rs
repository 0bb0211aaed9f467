//! What the checks of accounts have found, in memory: a check is a command, and nobody starts one while he holds the board's lock.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tavern_core::eligible::NotReady;
use tavern_sys::clock;

/// How long it holds that one is signed in, and that one is not.
const HOLD: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(25)];

/// What was found of each account, and when.
#[derive(Debug, Default)]
pub struct Accounts(Mutex<Looks>);

type Looks = HashMap<String, (Instant, Result<(), NotReady>)>;

impl Accounts {
    /// What is missing, as it was found last. What nobody has looked for is no hindrance.
    pub fn found(&self, name: &str) -> Result<(), NotReady> {
        self.with(|all| all.get(name).map_or(Ok(()), |(_, found)| found.clone()))
    }

    /// It is time to look again.
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
