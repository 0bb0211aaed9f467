//! Policies for each outcome of a run. Knows nothing of how an outcome is recognised.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use tavern_core::period::Period;

/// One policy for each outcome that gives an item back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outcomes {
    /// The agent gave up, or `done_when` failed.
    pub failed: OutcomePolicy,
    /// The run took too long.
    pub timeout: OutcomePolicy,
    /// The work conflicts with changes merged since it began.
    pub conflict: OutcomePolicy,
    /// The program ended without a result.
    pub crashed: OutcomePolicy,
    /// The script names a program that is not installed.
    pub not_found: OutcomePolicy,
    /// The agent lacked a permission it needed.
    pub permission_denied: OutcomePolicy,
    /// The run spent its money, tokens or turns.
    pub budget: OutcomePolicy,
    /// A cap over several runs is reached; items that count towards it are not claimed.
    pub capped: OutcomePolicy,
    /// The agent reported done without any change.
    pub empty: OutcomePolicy,
    /// The run was ended from outside: a signal, a pause, a dead supervisor.
    pub killed: OutcomePolicy,
    /// The provider's usage limit; the whole runner is closed until it ends.
    pub usage_limit: OutcomePolicy,
    /// The provider is overloaded.
    pub overloaded: OutcomePolicy,
    /// Not signed in.
    pub auth: OutcomePolicy,
    /// This machine lacks something that the run needs.
    pub not_ready: OutcomePolicy,
}

/// Whether an outcome uses an attempt, and when the item may be claimed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutcomePolicy {
    /// Whether it uses one of the item's attempts, being the agent's fault.
    pub attempt: bool,
    /// Whether the item is retried, while it has attempts or returns left.
    pub retry: bool,
    /// Wait before the first retry, doubled for each further one. `None`: none for a script, else 30 s.
    pub backoff: Option<Period>,
    /// The longest wait.
    pub max_backoff: Period,
}

/// An agent's wait after its first failure.
pub const BACKOFF: Period = Period::seconds(30);

impl OutcomePolicy {
    /// The policy for outcomes that are not the agent's fault; waits in seconds.
    const fn blameless(backoff: u64, max_backoff: u64) -> OutcomePolicy {
        let (backoff, max_backoff) = (Period::seconds(backoff), Period::seconds(max_backoff));
        OutcomePolicy {
            attempt: false,
            retry: true,
            backoff: Some(backoff),
            max_backoff,
        }
    }

    /// The policy for outcomes that a retry does not fix.
    fn once() -> OutcomePolicy {
        OutcomePolicy {
            retry: false,
            ..OutcomePolicy::default()
        }
    }

    /// Returns the wait after the `nth` such outcome (counted from 1).
    pub fn wait(&self, nth: u32) -> Duration {
        let factor = 1_u32.checked_shl(nth.saturating_sub(1)).unwrap_or(u32::MAX);
        self.backoff
            .unwrap_or(BACKOFF)
            .duration()
            .saturating_mul(factor)
            .min(self.max_backoff.duration())
    }
}

impl Default for OutcomePolicy {
    fn default() -> OutcomePolicy {
        OutcomePolicy {
            attempt: true,
            backoff: None,
            ..OutcomePolicy::blameless(30, 600)
        }
    }
}

impl Default for Outcomes {
    fn default() -> Outcomes {
        Outcomes {
            failed: OutcomePolicy::default(),
            timeout: OutcomePolicy::default(),
            conflict: OutcomePolicy::blameless(0, 0),
            crashed: OutcomePolicy::default(),
            not_found: OutcomePolicy::once(),
            permission_denied: OutcomePolicy::default(),
            budget: OutcomePolicy::default(),
            capped: OutcomePolicy::blameless(0, 0),
            empty: OutcomePolicy::once(),
            killed: OutcomePolicy::blameless(0, 300),
            usage_limit: OutcomePolicy::blameless(1800, 21_600),
            overloaded: OutcomePolicy::blameless(60, 1800),
            auth: OutcomePolicy::blameless(600, 3600),
            not_ready: OutcomePolicy::blameless(60, 1800),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound() {
        let waits =
            |policy: OutcomePolicy| [1, 2, 3, 5, 6, 99].map(|nth| policy.wait(nth).as_secs());
        assert_eq!(
            waits(OutcomePolicy::default()),
            [30, 60, 120, 480, 600, 600]
        );
        assert_eq!(waits(Outcomes::default().killed), [0; 6]);
    }
}
