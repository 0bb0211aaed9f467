//! A bell: one waiter sleeps until it rings. Knows nothing of the reason; the waiter must check.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Deadline;
use crate::interrupt::{Interrupt, Subscription};

/// Wakes one waiter. Clones ring the same bell. A ring without a waiter is kept for the next wait, and many rings count
/// as one, so facts must be checked again after each wait.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<(Mutex<bool>, Condvar)>);

impl Bell {
    pub fn new() -> Bell {
        Bell::default()
    }

    pub fn ring(&self) {
        *self.has_rung() = true;
        self.0.1.notify_all();
    }

    /// Rings at each raise of `interrupt`, and now if already raised, until the returned value is dropped.
    pub fn ring_at(&self, interrupt: &Interrupt) -> Subscription {
        let bell = self.clone();
        interrupt.subscribe(move || bell.ring())
    }

    /// Sleeps until the bell rings, at most for `timeout`. Returns true if it rang.
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = Deadline::after(timeout);
        let mut has_rung = self.has_rung();
        while !*has_rung {
            let left = deadline.left();
            if left.is_zero() {
                return false;
            }
            has_rung = self
                .0
                .1
                .wait_timeout(has_rung, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *has_rung = false;
        true
    }

    fn has_rung(&self) -> MutexGuard<'_, bool> {
        // A flag can't be left half-written, so a panic of another ringer does no harm.
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_before_the_wait_is_kept_and_heard_once() {
        let bell = Bell::new();
        bell.ring();
        bell.ring();
        assert!(bell.wait(Duration::ZERO));
        assert!(!bell.wait(Duration::ZERO));
    }

    #[test]
    fn a_ring_ends_a_wait() {
        let bell = Bell::new();
        let ringer = bell.clone();
        let thread = std::thread::spawn(move || ringer.ring());
        assert!(bell.wait(Duration::MAX));
        thread.join().expect("the ringer does not panic");
    }
}
