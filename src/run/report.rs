//! From what a run came to, to the event that says so: whose fault it was, and when it is tried again. A provider that
//! failed closes its runner for the whole board.

use chrono::TimeDelta;

use super::attempt::Finished;
use super::error::Error;
use super::plan;
use super::review;
use super::site::Site;
use super::verdict::Verdict;
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::event::{Blame, Event, Retry};
use crate::board::plan::Plan;
use crate::board::task::{Task, TaskId, Timestamp};
use crate::clock;
use crate::config::Policy;
use crate::runner::Outcome;
use crate::store::{Claimed, Quota};

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
    /// Of a review that came to one.
    pub verdict: Option<Verdict>,
    /// Of a planner's run that came to one.
    pub plan: Option<Plan>,
    /// That a success has to wait for.
    pub children: Vec<TaskId>,
}

impl Judged {
    /// An outcome with its reason; a question, where the outcome is to wait for a person.
    pub fn said(outcome: Outcome, reason: &str) -> Judged {
        let question = (outcome == Outcome::Waiting).then(|| reason.to_owned());
        Judged {
            outcome,
            reason: reason.to_owned(),
            commit: None,
            resets_at: None,
            question,
            verdict: None,
            plan: None,
            children: Vec::new(),
        }
    }
}

/// The event that reports `finished` for its holder.
pub fn event(site: &Site, held: &Claimed, finished: &Finished) -> Event {
    let (task, token, judged) = (&held.task, held.lease.token, &finished.judged);
    let reason = judged.reason.clone();
    if let (Outcome::Success, Some(verdict)) = (judged.outcome, &judged.verdict) {
        return review::event(site, held, verdict);
    }
    if let (Outcome::Success, Some(plan)) = (judged.outcome, &judged.plan) {
        return plan::event(site, held, plan);
    }
    match judged.outcome {
        Outcome::Success if !judged.children.is_empty() => Event::Park { token, children: judged.children.clone() },
        Outcome::Success => {
            Event::Submit { token, commit: judged.commit.clone(), reviewers: task.reviewers(&site.config.review) }
        }
        Outcome::Waiting => Event::Ask { token, question: judged.question.clone().unwrap_or(reason) },
        outcome => {
            let retry = retry(site, task, policy(site, outcome), judged.resets_at, &held.lease.role);
            // It is the runner that is closed: a person who opens it frees the task with it.
            let not_before = retry.not_before.filter(|_| failed_provider(finished).is_none());
            let retry = Retry { not_before, ..retry };
            match retry.blame {
                Blame::Agent => Event::Fail { token, retry, reason },
                Blame::Nobody => Event::Return { token, retry, reason },
            }
        }
    }
}

/// The runner whose provider failed in this run: its limit is reached, it is overloaded, or it refused the key.
fn failed_provider(finished: &Finished) -> Option<&str> {
    let is_provider = matches!(finished.judged.outcome, Outcome::UsageLimit | Outcome::Overloaded | Outcome::Auth);
    finished.runner.as_deref().filter(|_| is_provider)
}

/// Closes the runner whose provider failed, for every agent of the board: until the provider's own time, else for the
/// outcome's back-off. Returns it if it was open before.
///
/// # Errors
/// The board can't be written.
pub fn close_runner(site: &Site, finished: &Finished) -> Result<Option<(String, Quota)>, Error> {
    let Some(runner) = failed_provider(finished) else { return Ok(None) };
    let (now, judged) = (clock::now(), &finished.judged);
    let until = judged.resets_at.or_else(|| back_off(policy(site, judged.outcome), 1)).unwrap_or(now);
    let quota = Quota {
        closed_until: until + jitter(until - now),
        reason: judged.reason.clone(),
        needs_person: judged.outcome == Outcome::Auth,
    };
    let was_closed = site.board.quota(runner, now).is_some();
    site.board.close_runner(runner, &quota, now)?;
    Ok((!was_closed).then(|| (runner.to_owned(), quota)))
}

/// Up to a tenth of `wait`, and ten seconds at most, so that not all boards of a person come back in the same moment.
fn jitter(wait: TimeDelta) -> TimeDelta {
    let random = i32::from(uuid::Uuid::new_v4().as_bytes()[0]);
    (wait / 10).clamp(TimeDelta::zero(), TimeDelta::seconds(10)) * random / 255
}

/// The event for approved work that could not be integrated. It has used its attempt, whatever `policy` says: a whole run, and
/// reviews, were spent on it.
pub fn sent_back(site: &Site, task: &Task, policy: &Policy, reason: &str) -> Event {
    let most = most_attempts(site, task, task.role.as_deref().unwrap_or(DEFAULT_ROLE));
    let retry = Retry { blame: Blame::Agent, not_before: back_off(policy, task.attempt), most };
    Event::SendBack { retry, reason: reason.to_owned() }
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

/// How often an item is tried: as it says itself, or its queue, the role that it is for, or the board.
pub fn most_attempts(site: &Site, task: &Task, role: &str) -> u32 {
    let of_role = || site.config.roles.get(role)?.max_attempts;
    task.max_attempts.or_else(of_role).unwrap_or(site.config.max_attempts)
}

fn retry(site: &Site, task: &Task, policy: &Policy, resets_at: Option<Timestamp>, role: &str) -> Retry {
    let (blame, most, nth) = if policy.attempt {
        (Blame::Agent, most_attempts(site, task, role), task.attempt)
    } else {
        (Blame::Nobody, site.config.max_returns, task.returns + 1)
    };
    Retry { blame, not_before: resets_at.or_else(|| back_off(policy, nth)), most }
}

/// The end of the back-off before try number `nth` + 1.
pub fn back_off(policy: &Policy, nth: u32) -> Option<Timestamp> {
    let wait = TimeDelta::from_std(policy.wait(nth)).unwrap_or(TimeDelta::MAX);
    (wait > TimeDelta::zero()).then(|| clock::now().checked_add_signed(wait).unwrap_or(Timestamp::MAX_UTC))
}
