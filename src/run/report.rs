//! From what a run came to, to the event that says so: whose fault it was, and when it is tried again. A provider that
//! failed closes its runner for the whole board.

use chrono::TimeDelta;

use super::error::Error;
use super::plan;
use super::result::Finished;
use super::retry::{back_off, most_attempts, policy, retry};
use super::review;
use super::site::Site;
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::event::{Blame, Event, Retry};
use crate::board::task::Task;
use crate::clock;
use crate::config::Policy;
use crate::runner::Outcome;
use crate::store::{Claimed, Quota};

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
    let retry = Retry { blame: Blame::Agent, not_before: back_off(policy, task.state.attempt), most };
    Event::SendBack { retry, reason: reason.to_owned() }
}
