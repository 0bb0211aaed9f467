//! A request to end that wakes waiting threads. Knows nothing of signals: `cli` turns them into this; a pool or a
//! `STOP` file may raise it too.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The source of the request, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptCause {
    /// Ctrl-C, SIGINT: exit 130.
    Interrupted,
    /// SIGTERM or SIGHUP: exit 143.
    Terminated,
    /// The program itself (a `STOP` file, a pool that ends its agents).
    Stopped,
}

/// A shared flag with a wake-up; clones are the same flag. Once raised it stays raised.
#[derive(Clone, Default)]
pub struct Interrupt {
    state: Arc<Mutex<Raised>>,
}

type Subscriber = Box<dyn Fn() + Send>;

#[derive(Default)]
struct Raised {
    cause: Option<InterruptCause>,
    is_hurried: bool,
    subscribers: Vec<(u64, Subscriber)>,
    /// Number of the next subscriber.
    next: u64,
}

/// Ends a subscription when it is dropped.
#[must_use = "the subscription ends when this is dropped"]
pub struct Subscription {
    state: Weak<Mutex<Raised>>,
    number: u64,
}

impl Interrupt {
    /// Creates an interrupt that is not raised.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Requests an end; a second request hurries. The first cause stays.
    pub fn raise(&self, cause: InterruptCause) {
        let mut state = self.state();
        state.is_hurried = state.cause.is_some();
        state.cause.get_or_insert(cause);
        state
            .subscribers
            .iter()
            .for_each(|(_, subscriber)| subscriber());
    }

    /// Returns whether an end was requested.
    pub fn is_raised(&self) -> bool {
        self.cause().is_some()
    }

    /// Returns whether an end was requested twice: no time for a graceful end, but still nothing is left running.
    pub fn is_hurried(&self) -> bool {
        self.state().is_hurried
    }

    /// Returns the first cause.
    pub fn cause(&self) -> Option<InterruptCause> {
        self.state().cause
    }

    /// Blocks until an end is requested, at most for `time`; returns true if it was.
    pub fn wait(&self, time: Duration) -> bool {
        let (sender, raised) = channel();
        let _subscription = self.subscribe(move || _ = sender.send(()));
        raised.recv_timeout(time).is_ok()
    }

    /// Calls `subscriber` at each raise, and now if already raised, until the returned value is dropped: for a loop
    /// that blocks on its own. It must be short, and must not use this interrupt.
    pub fn subscribe(&self, subscriber: impl Fn() + Send + 'static) -> Subscription {
        let mut state = self.state();
        if state.cause.is_some() {
            subscriber();
        }
        let number = state.next;
        state.next += 1;
        state.subscribers.push((number, Box::new(subscriber)));
        Subscription {
            state: Arc::downgrade(&self.state),
            number,
        }
    }

    fn state(&self) -> MutexGuard<'_, Raised> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<Raised>) -> MutexGuard<'_, Raised> {
    // No code that could panic runs halfway through a change of the state.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(state) = self.state.upgrade() {
            lock(&state)
                .subscribers
                .retain(|(number, _)| *number != self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_its_time_or_a_raise() {
        let interrupt = Interrupt::new();
        assert!(!interrupt.wait(Duration::from_millis(1)));
        let raiser = interrupt.clone();
        std::thread::spawn(move || raiser.raise(InterruptCause::Stopped));
        assert!(interrupt.wait(Duration::MAX));
    }

    #[test]
    fn subscribers_hear_of_earlier_and_later_raises_until_they_are_dropped() {
        let interrupt = Interrupt::new();
        let (tell, told) = channel();
        let subscribe = || {
            let tell = tell.clone();
            interrupt.subscribe(move || tell.send(()).expect("the test listens"))
        };
        drop(subscribe());
        interrupt.raise(InterruptCause::Stopped);
        let kept = subscribe();
        interrupt.raise(InterruptCause::Stopped);
        drop(kept);
        interrupt.raise(InterruptCause::Stopped);
        assert_eq!(told.try_iter().count(), 2);
    }
}
