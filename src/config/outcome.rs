//! What each outcome of a run means for its item. Knows nothing of how an outcome is recognised.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::period::Period;

/// One policy for each outcome that gives an item back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outcomes {
    /// The agent gave up, or its `done_when` failed.
    pub failed: Policy,
    /// It took too long.
    pub timeout: Policy,
    /// Its program ended without a result.
    pub crashed: Policy,
    /// It was denied what it needed.
    pub permission_denied: Policy,
    /// It spent its money, tokens or turns.
    pub budget: Policy,
    /// It said it was done, and had changed nothing.
    pub empty: Policy,
    /// Ended from outside: a signal, a pause, a supervisor that died.
    pub killed: Policy,
    /// The provider's usage limit: the whole runner is closed until it ends.
    pub usage_limit: Policy,
    /// The provider is overloaded.
    pub overloaded: Policy,
    /// Not signed in.
    pub auth: Policy,
    /// This machine lacks what the run needs.
    pub not_ready: Policy,
}

/// Whether it uses an attempt, and when the item may be claimed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The agent is to blame: it uses one of the item's attempts.
    pub attempt: bool,
    /// Wait before the second try; doubled at each further one.
    pub backoff: Period,
    /// The longest wait.
    pub max_backoff: Period,
}

impl Policy {
    const fn new(attempt: bool, backoff: u64, max_backoff: u64) -> Policy {
        Policy { attempt, backoff: Period::seconds(backoff), max_backoff: Period::seconds(max_backoff) }
    }

    /// How long to wait after the `nth` time (counted from 1).
    pub fn wait(&self, nth: u32) -> Duration {
        let factor = 1_u32.checked_shl(nth.saturating_sub(1)).unwrap_or(u32::MAX);
        self.backoff.duration().saturating_mul(factor).min(self.max_backoff.duration())
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::new(true, 30, 600)
    }
}

impl Default for Outcomes {
    fn default() -> Outcomes {
        Outcomes {
            failed: Policy::default(),
            timeout: Policy::default(),
            crashed: Policy::default(),
            permission_denied: Policy::default(),
            budget: Policy::default(),
            empty: Policy::default(),
            killed: Policy::new(false, 0, 300),
            usage_limit: Policy::new(false, 1800, 21_600),
            overloaded: Policy::new(false, 60, 1800),
            auth: Policy::new(false, 600, 3600),
            not_ready: Policy::new(false, 60, 1800),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound() {
        let waits = |policy: Policy| [1, 2, 3, 5, 6, 99].map(|nth| policy.wait(nth).as_secs());
        assert_eq!(waits(Policy::default()), [30, 60, 120, 480, 600, 600]);
        assert_eq!(waits(Outcomes::default().killed), [0; 6]);
    }
}
