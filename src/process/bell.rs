//! A bell: one waiter sleeps until somebody rings. It knows nothing of what has happened: whoever hears it looks.

use crate::clock;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Wakes one waiter. Clones ring the same bell; a ring that nobody is waiting for is kept for the next wait, and many
/// rings are heard as one, so facts must be looked at again after each wait.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<Hammer>);

#[derive(Debug, Default)]
pub(super) struct Hammer {
    has_rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    pub fn new() -> Bell {
        Bell::default()
    }

    pub fn ring(&self) {
        self.0.ring();
    }

    /// Sleep until the bell rings, at most for `timeout`. True if it rang.
    pub fn wait(&self, timeout: Duration) -> bool {
        let now = clock::instant();
        // A time-out too long to be a moment is bounded to a day: the caller looks again anyway.
        let deadline = now.checked_add(timeout).unwrap_or(now + Duration::from_secs(86_400));
        let mut has_rung = self.0.lock();
        while !*has_rung {
            let left = deadline.saturating_duration_since(clock::instant());
            if left.is_zero() {
                return false;
            }
            has_rung = self.0.heard.wait_timeout(has_rung, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *has_rung = false;
        true
    }

    /// A handle for ringers that must not keep the bell alive.
    pub(super) fn downgrade(&self) -> Weak<Hammer> {
        Arc::downgrade(&self.0)
    }
}

impl Hammer {
    pub(super) fn ring(&self) {
        *self.lock() = true;
        self.heard.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        // A flag can't be left half-written, so a panic of another ringer does no harm.
        self.has_rung.lock().unwrap_or_else(PoisonError::into_inner)
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
