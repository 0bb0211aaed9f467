//! From what a run came to, to the event that says so: whose fault it was, and when it is tried again.

use chrono::TimeDelta;

use super::site::Site;
use crate::board::event::{Blame, Event, Retry};
use crate::board::lease::Token;
use crate::board::task::{Task, Timestamp};
use crate::clock;
use crate::config::Policy;
use crate::runner::Outcome;
use crate::store::Quota;

/// A run's result after verification.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub outcome: Outcome,
    /// In one line, for the item and the log.
    pub reason: String,
    /// The verified commit, for a success.
    pub commit: Option<String>,
    /// When the provider's limit ends, if it said so.
    pub resets_at: Option<Timestamp>,
    /// What is asked of a person, if that is the outcome.
    pub question: Option<String>,
}

impl Judged {
    /// An outcome with its reason; a question, where the outcome is to wait for a person.
    pub fn said(outcome: Outcome, reason: &str) -> Judged {
        let question = (outcome == Outcome::Waiting).then(|| reason.to_owned());
        Judged { outcome, reason: reason.to_owned(), commit: None, resets_at: None, question }
    }
}

/// The event that reports `judged` for the holder of `token`.
pub fn event(site: &Site, task: &Task, token: Token, judged: &Judged) -> Event {
    let reason = judged.reason.clone();
    match judged.outcome {
        Outcome::Success => Event::Submit { token, commit: judged.commit.clone() },
        Outcome::Waiting => Event::Ask { token, question: judged.question.clone().unwrap_or(reason) },
        outcome => {
            let retry = retry(site, task, policy(site, outcome), judged.resets_at);
            match retry.blame {
                Blame::Agent => Event::Fail { token, retry, reason },
                Blame::Nobody => Event::Return { token, retry, reason },
            }
        }
    }
}

/// Until when a provider's limit closes the runner for all loops: as the provider said, else for the outcome's back-off,
/// with some jitter, so that not all agents come back in the same second.
pub fn quota(site: &Site, judged: &Judged, now: Timestamp) -> Option<Quota> {
    if !matches!(judged.outcome, Outcome::UsageLimit | Outcome::Overloaded | Outcome::Auth) {
        return None;
    }
    let jitter = i64::from(uuid::Uuid::new_v4().as_bytes()[0]) % 10;
    let until = judged.resets_at.or_else(|| back_off(policy(site, judged.outcome), 1)).unwrap_or(now);
    Some(Quota { closed_until: until + TimeDelta::seconds(jitter), reason: judged.reason.clone() })
}

/// The event for approved work that could not be integrated.
pub fn sent_back(site: &Site, task: &Task, policy: &Policy, reason: &str) -> Event {
    Event::SendBack { retry: retry(site, task, policy, None), reason: reason.to_owned() }
}

/// What config.yaml says of an outcome that gives the task back.
pub fn policy(site: &Site, outcome: Outcome) -> &Policy {
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
    }
}

fn retry(site: &Site, task: &Task, policy: &Policy, resets_at: Option<Timestamp>) -> Retry {
    let (blame, most, nth) = if policy.attempt {
        (Blame::Agent, task.max_attempts.unwrap_or(site.config.max_attempts), task.attempt)
    } else {
        (Blame::Nobody, site.config.max_returns, task.returns + 1)
    };
    Retry { blame, not_before: resets_at.or_else(|| back_off(policy, nth)), most }
}

/// The end of the back-off before try number `nth` + 1.
pub fn back_off(policy: &Policy, nth: u32) -> Option<Timestamp> {
    let wait = TimeDelta::from_std(policy.wait(nth)).unwrap_or(TimeDelta::MAX);
    (wait > TimeDelta::zero()).then(|| clock::now() + wait)
}
