//! A wish to stop, made once and seen by every wait. It knows nothing of signals: the program's signal handler raises it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::bell::{Bell, Hammer};

/// Set by whoever wants the work to stop; clones share it. It is never taken back. A second `raise` means "hurry".
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    raised: AtomicUsize,
    bells: Mutex<Vec<Weak<Hammer>>>,
}

impl Interrupt {
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Ask to stop (once) or to hurry (again), and wake every wait that listens.
    pub fn raise(&self) {
        self.0.raised.fetch_add(1, Ordering::SeqCst);
        let bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for hammer in bells.iter().filter_map(Weak::upgrade) {
            hammer.ring();
        }
    }

    pub fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::SeqCst) > 0
    }

    /// True once it was raised twice: skip what is merely polite.
    pub fn is_hurried(&self) -> bool {
        self.0.raised.load(Ordering::SeqCst) > 1
    }

    /// Let `bell` ring at each raise from now on, and at once if one was before.
    pub fn wake(&self, bell: &Bell) {
        let mut bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|hammer| hammer.strong_count() > 0);
        bells.push(bell.downgrade());
        drop(bells);
        if self.is_raised() {
            bell.ring();
        }
    }

    /// Sleep for `timeout`, or until raised. True if it is raised.
    pub fn wait(&self, timeout: Duration) -> bool {
        let bell = Bell::new();
        self.wake(&bell);
        let now = Instant::now();
        let deadline = now.checked_add(timeout);
        while !self.is_raised() {
            let left = deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            bell.wait(left);
        }
        self.is_raised()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_a_wait_that_has_begun_and_every_later_one() {
        let interrupt = Interrupt::new();
        let raiser = interrupt.clone();
        let thread = std::thread::spawn(move || raiser.raise());
        assert!(interrupt.wait(Duration::MAX));
        assert!(interrupt.wait(Duration::MAX));
        assert!(!interrupt.is_hurried());
        interrupt.raise();
        assert!(interrupt.is_hurried());
        thread.join().expect("the raiser does not panic");
    }

    #[test]
    fn a_bell_hung_up_late_still_hears_of_it() {
        let interrupt = Interrupt::new();
        let bell = Bell::new();
        assert!(!interrupt.wait(Duration::ZERO));
        interrupt.raise();
        interrupt.wake(&bell);
        assert!(bell.wait(Duration::ZERO));
    }
}
