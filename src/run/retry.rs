//! When an item is tried again, and how often, from config.yaml's outcomes.

use chrono::TimeDelta;

use super::site::Site;
use crate::board::event::{Blame, Retry};
use crate::board::task::{Task, Timestamp};
use crate::clock;
use crate::config::OutcomePolicy;
use crate::runner::Outcome;

/// How a task that came to nothing is tried again. `role` is its holder's.
pub fn retry(site: &Site, task: &Task, policy: &OutcomePolicy, resets_at: Option<Timestamp>, role: &str) -> Retry {
    let (blame, most, nth) = if policy.attempt {
        (Blame::Agent, most_attempts(site, task, role), task.state.attempt)
    } else {
        (Blame::Nobody, site.config.max_returns, task.state.returns + 1)
    };
    Retry { blame, not_before: resets_at.or_else(|| back_off(policy, nth)), most }
}

/// What config.yaml says of an outcome that gives the task back.
pub fn policy(site: &Site, outcome: Outcome) -> &OutcomePolicy {
    let outcomes = &site.config.outcomes;
    match outcome {
        Outcome::Success | Outcome::Waiting | Outcome::Failed => &outcomes.failed,
        Outcome::Timeout => &outcomes.timeout,
        Outcome::Killed => &outcomes.killed,
        Outcome::UsageLimit => &outcomes.usage_limit,
        Outcome::Overloaded => &outcomes.overloaded,
        Outcome::Auth => &outcomes.auth,
        Outcome::PermissionDenied => &outcomes.permission_denied,
        Outcome::Budget => &outcomes.budget,
        Outcome::Empty => &outcomes.empty,
        Outcome::Crashed => &outcomes.crashed,
        Outcome::NotReady => &outcomes.not_ready,
    }
}

/// How often an item is tried: as it says itself, or its queue, the role that it is for, or the board.
pub fn most_attempts(site: &Site, task: &Task, role: &str) -> u32 {
    let of_role = || site.config.roles.get(role)?.max_attempts;
    task.max_attempts.or_else(of_role).unwrap_or(site.config.max_attempts)
}

/// The end of the back-off before try number `nth` + 1.
pub fn back_off(policy: &OutcomePolicy, nth: u32) -> Option<Timestamp> {
    let wait = TimeDelta::from_std(policy.wait(nth)).unwrap_or(TimeDelta::MAX);
    (wait > TimeDelta::zero()).then(|| clock::now().checked_add_signed(wait).unwrap_or(Timestamp::MAX_UTC))
}
