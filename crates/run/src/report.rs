//! Turns a run's result into the event that reports it: who is to blame, and when it is retried. A failed provider
//! closes its runner for the whole board.

use std::time::Duration;

use chrono::TimeDelta;

use super::error::Error;
use super::plan;
use super::record::{Metadata, newest_runs};
use super::result::{Ruling, RunFailure, RunResult, ShownBy, Verdict};
use super::workspace::Workspace;
use crate::runner::{Outcome, RateWindow};
use tavern_core::eligible::DEFAULT_ROLE;
use tavern_core::event::{Blame, Event, Kind, Retry, Review};
use tavern_core::task::{Task, Timestamp};
use tavern_store::config::OutcomePolicy;
use tavern_store::{Claimed, Entry, Quota};
use tavern_sys::clock;

/// Returns the event that reports `result` for its holder.
pub fn event(workspace: &Workspace, held: &Claimed, result: &RunResult) -> Event {
    let (task, token) = (&held.task, held.lease.token);
    match result {
        RunResult::Passed {
            commit,
            reason,
            shown_by,
        } => {
            let reviewers = task.reviewers(&workspace.config.review);
            let asks = (*shown_by == ShownBy::Nothing).then(|| reason.clone());
            Event::Submit {
                token,
                commit: commit.clone(),
                reviewers,
                asks,
            }
        }
        RunResult::Parked(children) => Event::Park {
            token,
            children: children.clone(),
        },
        RunResult::Reviewed { verdict, .. } => judged(workspace, held, verdict),
        RunResult::Planned { plan, .. } => Event::Plan {
            token,
            plan: plan.clone(),
            to: plan::lane(workspace, task),
        },
        RunResult::Asks(question) => Event::Ask {
            token,
            question: question.clone(),
        },
        RunResult::Refuted(reason) => {
            let (outcome, reason) = (Outcome::Failed, reason.clone());
            given_back(
                workspace,
                held,
                &RunFailure {
                    outcome,
                    reason,
                    runner: None,
                    resets_at: None,
                },
            )
        }
        RunResult::Failed(failure) => given_back(workspace, held, failure),
    }
}

fn given_back(workspace: &Workspace, held: &Claimed, failure: &RunFailure) -> Event {
    let policy = policy(workspace, failure.outcome);
    let retry = retry(
        workspace,
        &held.task,
        policy,
        failure.resets_at,
        &held.lease.role,
    );
    // The task waits for its closed runner: opening the runner by hand also frees the task.
    let not_before = retry.not_before.filter(|_| failure.runner.is_none());
    let (token, retry, reason) = (
        held.lease.token,
        Retry {
            not_before,
            ..retry
        },
        failure.reason.clone(),
    );
    match retry.blame {
        Blame::Agent => Event::Fail {
            token,
            retry,
            reason,
        },
        Blame::Nobody => Event::Return {
            token,
            retry,
            reason,
        },
    }
}

/// Closes the failed provider's runner, for every agent of the board: until the provider's own time, else for the
/// outcome's back-off. Returns it if it was open before.
///
/// # Errors
/// The board can't be written.
pub fn close_runner(
    workspace: &Workspace,
    result: &RunResult,
) -> Result<Option<(String, Quota)>, Error> {
    let RunResult::Failed(RunFailure {
        outcome,
        runner: Some(runner),
        reason,
        resets_at,
    }) = result
    else {
        return Ok(None);
    };
    let now = clock::now();
    let until = resets_at
        .or_else(|| {
            back_off(policy(workspace, *outcome).wait(in_a_row(workspace, runner, *outcome)))
        })
        .unwrap_or(now);
    let quota = Quota {
        closed_until: until + jitter(until - now),
        reason: reason.clone(),
        needs_person: *outcome == Outcome::Auth,
    };
    let was_closed = workspace.board.quota(runner, now).is_some();
    workspace.board.close_runner(runner, &quota, now)?;
    if quota.needs_person && !was_closed {
        let cause = Some(format!("{runner}: {reason}"));
        workspace.board.note(Entry {
            cause,
            ..Entry::new(Kind::Closed, now)
        })?;
    }
    Ok((!was_closed).then(|| (runner.clone(), quota)))
}

/// The most failures that are counted: after fewer each back-off is at its bound.
const MOST_IN_A_ROW: usize = 100;

/// Returns how often runs of `runner` have ended with `outcome`, one after the other, since they last ended otherwise. Runs
/// at the same time met the same failure.
fn in_a_row(workspace: &Workspace, runner: &str, outcome: Outcome) -> u32 {
    let is_of = |run: &Metadata| run.runner == runner && run.outcome.is_some();
    let runs = newest_runs(&workspace.board, MOST_IN_A_ROW, &is_of).unwrap_or_default();
    let (mut count, mut before) = (0, None);
    let failed = runs
        .iter()
        .rev()
        .take_while(|run| run.outcome == Some(outcome));
    for run in failed {
        if before.is_none_or(|begun| run.ended.is_some_and(|ended| ended <= begun)) {
            (count, before) = (count + 1, Some(run.started));
        }
    }
    count.max(1)
}

/// The share of a provider's window after which no run is started, so that running work can finish.
const FULL: f64 = 0.95;

/// Closes `runner` until its provider allows more, if `windows` show that hardly anything is left. Returns the quota if
/// the runner was open before.
pub fn close_window(workspace: &Workspace, runner: &str, windows: &[RateWindow]) -> Option<Quota> {
    let now = clock::now();
    let full = full_window(windows, now)?;
    let ends = Timestamp::from_timestamp(full.resets_at, 0)?;
    let was_closed = workspace.board.quota(runner, now).is_some();
    let quota = Quota {
        closed_until: ends + jitter(ends - now),
        reason: format!(
            "{:.0} % of the provider's window are used",
            (full.used * 100.0).floor()
        ),
        needs_person: false,
    };
    // A failed write is harmless: the provider itself refuses later.
    workspace
        .board
        .close_runner(runner, &quota, now)
        .ok()
        .filter(|()| !was_closed)
        .map(|()| quota)
}

/// Returns the used-up window that ends last.
fn full_window(windows: &[RateWindow], now: Timestamp) -> Option<RateWindow> {
    let is_full = |window: &RateWindow| window.used >= FULL && window.resets_at > now.timestamp();
    windows
        .iter()
        .copied()
        .filter(is_full)
        .max_by_key(|window| window.resets_at)
}

/// Returns up to a tenth of `wait`, at most ten seconds, so that a person's boards do not all return at once.
fn jitter(wait: TimeDelta) -> TimeDelta {
    let random = i32::from(uuid::Uuid::new_v4().as_bytes()[0]);
    (wait / 10).clamp(TimeDelta::zero(), TimeDelta::seconds(10)) * random / 255
}

/// Returns the event for approved work that could not be integrated.
pub fn sent_back(
    workspace: &Workspace,
    task: &Task,
    policy: &OutcomePolicy,
    reason: &str,
) -> Event {
    let role = task.role.as_deref().unwrap_or(DEFAULT_ROLE);
    Event::SendBack {
        retry: retry(workspace, task, policy, None, role),
        reason: reason.to_owned(),
    }
}

/// Returns how often the work on `task` may be rejected. A role with a single run gets no second one after a rejection.
pub fn rounds(workspace: &Workspace, task: &Task) -> u32 {
    let name = task.role.as_deref().unwrap_or(DEFAULT_ROLE);
    let is_once = workspace
        .config
        .roles
        .get(name)
        .is_some_and(|role| role.once);
    if is_once && most_attempts(workspace, task, name) <= 1 {
        1
    } else {
        workspace.config.rounds
    }
}

fn judged(workspace: &Workspace, held: &Claimed, verdict: &Verdict) -> Event {
    let review = Review {
        token: Some(held.lease.token),
        by: held.lease.agent.clone(),
        role: held.lease.role.clone(),
        reviewers: held.task.reviewers(&workspace.config.review),
    };
    match verdict.verdict {
        Ruling::Approve => Event::Approve {
            review,
            commit: verdict.commit.clone(),
        },
        Ruling::Reject => Event::Reject {
            review,
            findings: verdict.words(),
            most: rounds(workspace, &held.task),
        },
    }
}

/// Returns how a task is retried after a run without success. `role` is its holder's.
pub fn retry(
    workspace: &Workspace,
    task: &Task,
    policy: &OutcomePolicy,
    resets_at: Option<Timestamp>,
    role: &str,
) -> Retry {
    let (blame, most, nth) = if policy.attempt {
        (
            Blame::Agent,
            most_attempts(workspace, task, role),
            task.state.attempt,
        )
    } else {
        (
            Blame::Nobody,
            workspace.config.max_returns,
            task.state.returns + 1,
        )
    };
    // Without retries the limit is reached at once.
    let most = if policy.retry { most } else { 0 };
    Retry {
        blame,
        not_before: resets_at.or_else(|| back_off(wait(workspace, task, policy, nth, role))),
        most,
    }
}

/// Returns the back-off before the `nth` retry. The runner of a program at fault may set its own. A script is retried
/// at once, unless the outcome's back-off is set.
fn wait(
    workspace: &Workspace,
    task: &Task,
    policy: &OutcomePolicy,
    nth: u32,
    role: &str,
) -> Duration {
    let runner = workspace.config.roles.get(role).and_then(|role| {
        workspace
            .config
            .runners
            .get(&workspace.runner_of(task, role))
    });
    let own = runner
        .and_then(|runner| runner.backoff(policy))
        .filter(|_| policy.attempt);
    OutcomePolicy {
        backoff: own.or(policy.backoff),
        ..policy.clone()
    }
    .wait(nth)
}

/// Returns the settings for an outcome that returns the task.
pub fn policy(workspace: &Workspace, outcome: Outcome) -> &OutcomePolicy {
    let outcomes = &workspace.config.outcomes;
    match outcome {
        Outcome::Success | Outcome::Waiting | Outcome::Failed => &outcomes.failed,
        Outcome::Timeout => &outcomes.timeout,
        Outcome::Killed => &outcomes.killed,
        Outcome::UsageLimit => &outcomes.usage_limit,
        Outcome::Overloaded => &outcomes.overloaded,
        Outcome::Auth => &outcomes.auth,
        Outcome::PermissionDenied => &outcomes.permission_denied,
        Outcome::Budget => &outcomes.budget,
        Outcome::Capped => &outcomes.capped,
        Outcome::Empty => &outcomes.empty,
        Outcome::Crashed => &outcomes.crashed,
        Outcome::NotFound => &outcomes.not_found,
        Outcome::NotReady => &outcomes.not_ready,
    }
}

/// Returns the maximum of attempts: the item's, its queue's, the role's, or the board's.
pub fn most_attempts(workspace: &Workspace, task: &Task, role: &str) -> u32 {
    let of_role = || workspace.config.roles.get(role)?.max_attempts;
    task.max_attempts
        .or_else(of_role)
        .unwrap_or(workspace.config.max_attempts)
}

/// Returns the end of a back-off that begins now.
pub fn back_off(wait: Duration) -> Option<Timestamp> {
    let wait = TimeDelta::from_std(wait).unwrap_or(TimeDelta::MAX);
    (wait > TimeDelta::zero()).then(|| {
        clock::now()
            .checked_add_signed(wait)
            .unwrap_or(Timestamp::MAX_UTC)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_full_windows_the_one_that_ends_last_counts() {
        let now = Timestamp::UNIX_EPOCH + TimeDelta::seconds(100);
        let ends = |windows: &[(f64, i64)]| {
            let windows = windows.iter().map(|(used, resets_at)| RateWindow {
                used: *used,
                resets_at: *resets_at,
            });
            full_window(&windows.collect::<Vec<_>>(), now).map(|window| window.resets_at)
        };
        assert_eq!(ends(&[(0.949, 200), (0.2, 900)]), None);
        assert_eq!(ends(&[(0.95, 200), (0.2, 900)]), Some(200));
        assert_eq!(ends(&[(0.96, 200), (1.2, 900)]), Some(900));
        assert_eq!(ends(&[(0.99, 100)]), None);
    }
}
