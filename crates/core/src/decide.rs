//! The whole state machine: `(task, lease, event, now) → change or refusal`.
//!
//! Pure, and the only place that knows the transitions; `specs/states.md` has the same table, row for row.

use chrono::SubsecRound;

use super::event::{Blame, Claim, Event, Kind, Purpose, Retry, Review};
use super::lease::{Lease, Life, Terms, Token};
use super::state::{Approval, Aside, Holding, Phase, Question, State, Submission, are_same_commit};
use super::steps::boxes;
use super::task::{Mode, OnFailure, PERSON, Status, Task, TaskId, Timestamp};

/// Digits of a merge commit in the queue; the log has all.
const SHORT: usize = 7;

/// The effect of an event on the item's state and its lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub state: State,
    pub lease: LeaseChange,
}

/// The effect of an event on the task's lease.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseChange {
    Keep,
    /// A new or changed lease.
    Put(Box<Lease>),
    Drop,
}

/// A rule that forbids an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("`{task}` is {status}, so it can't be {}", event.as_str())]
    WrongStatus {
        task: TaskId,
        status: Status,
        event: Kind,
    },
    #[error("`{task}` is held by {agent} until {until}")]
    Held {
        task: TaskId,
        agent: String,
        until: Timestamp,
    },
    #[error("token {given} for `{task}` is stale: {agent} holds it with token {current}")]
    StaleToken {
        task: TaskId,
        given: Token,
        agent: String,
        current: Token,
    },
    #[error("`{task}` is no longer held: token {given} is stale")]
    NoLease { task: TaskId, given: Token },
    #[error("the lease of `{task}` is alive until {until}")]
    StillLive { task: TaskId, until: Timestamp },
    #[error("{agent} can't review its own work on `{task}`")]
    OwnWork { task: TaskId, agent: String },
    #[error("{agent} has approved `{task}` already")]
    SecondApproval { task: TaskId, agent: String },
    #[error("`{task}` is in review at {stands}, so a review of {reviewed} does not count")]
    OtherCommit {
        task: TaskId,
        reviewed: String,
        stands: String,
    },
    #[error("`{task}` has no step {number}: it has {steps}")]
    NoStep {
        task: TaskId,
        number: usize,
        steps: usize,
    },
    #[error("`{task}` does not wait for permission")]
    Unasked { task: TaskId },
    #[error("`{task}` is {status}, so it can't have another child")]
    EndedParent { task: TaskId, status: Status },
    #[error("`{task}` is {depth} levels down already, and can't be broken up further")]
    TooDeep { task: TaskId, depth: u32 },
    #[error("`{task}` has {most} children already")]
    TooMany { task: TaskId, most: u32 },
    #[error("runs have added {most} children within a day already")]
    TooManyToday { most: u32 },
    #[error("`{task}` waits for its children, so none of them can wait for it")]
    WaitsForChild { task: TaskId },
}

/// Returns the transition of `event`, or the rule that forbids it. `lease` is the task's lease on disk, if any.
pub fn decide(
    task: &Task,
    lease: Option<&Lease>,
    event: &Event,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    let lease = match event.token() {
        Some(token) => Some(held(task, lease, event, token)?),
        None => lease,
    };
    let state = &task.state;
    Ok(ended(match (event, &state.phase, lease) {
        (Event::Claim(claim), ..) => return decide_claim(task, lease, claim, now),
        (Event::Start { work, .. }, _, Some(lease)) => {
            let lease = Lease {
                work: Some(work.clone()),
                heartbeat_at: now,
                ..lease.clone()
            };
            return Ok(Transition {
                state: state.clone(),
                lease: LeaseChange::Put(Box::new(lease)),
            });
        }
        (Event::Shift { mode, .. }, ..) => {
            return Ok(Transition {
                state: State {
                    mode: *mode,
                    ..state.clone()
                },
                lease: LeaseChange::Keep,
            });
        }
        (Event::Tick { steps, .. }, Phase::InProgress { .. }, _) => {
            let all = boxes(&task.description).len();
            return match steps.iter().find(|number| !(1..=all).contains(*number)) {
                Some(number) => Err(Refusal::NoStep {
                    task: task.id.clone(),
                    number: *number,
                    steps: all,
                }),
                None => Ok(Transition {
                    state: state.clone(),
                    lease: LeaseChange::Keep,
                }),
            };
        }
        (
            Event::Submit {
                commit,
                reviewers,
                asks,
                ..
            },
            Phase::InProgress { .. },
            Some(lease),
        ) => {
            let done = State {
                mode: Mode::Execute,
                reason: asks.clone(),
                ..state.clone()
            };
            let work = Submission {
                commit: commit.clone(),
                ..Submission::default()
            };
            if reviewers.is_empty() && asks.is_none() {
                approved(task, done, work, now)
            } else {
                let work = Submission {
                    author: Some(lease.agent.clone()),
                    ..work
                };
                // From here on, `returns` counts reviews.
                State {
                    phase: Phase::InReview {
                        work,
                        not_before: None,
                    },
                    returns: 0,
                    ..done
                }
            }
        }
        (Event::Approve { review, commit }, ..) => {
            decide_approval(task, lease, event, review, commit.as_deref(), now)?
        }
        (
            Event::Reject {
                review,
                findings,
                most,
            },
            ..,
        ) => {
            reviewed(task, lease, event, review)?;
            let rounds = state.rounds + 1;
            let phase = if rounds >= *most {
                Phase::Dead
            } else {
                Phase::default()
            };
            let reason = Some(one_line(&format!("rejected by {}: {findings}", review.by)));
            let attempt = state.attempt.saturating_sub(1);
            State {
                phase,
                attempt,
                returns: 0,
                rounds,
                reason,
                ..state.clone()
            }
        }
        (Event::Plan { plan, .. }, Phase::InProgress { .. }, _) => {
            let phase = Phase::Completed {
                at: Some(whole_seconds(now)),
                commit: None,
            };
            let reason = Some(one_line(&plan.words)).filter(|words| !words.is_empty());
            State {
                phase,
                returns: 0,
                mode: Mode::Execute,
                reason,
                ..state.clone()
            }
        }
        (Event::Park { children, .. }, Phase::InProgress { .. }, _) => {
            let names: Vec<&str> = children.iter().map(TaskId::as_str).collect();
            let phase = Phase::Waiting {
                question: None,
                work: None,
            };
            let reason = Some(one_line(&format!(
                "waits for its children: {}",
                names.join(", ")
            )));
            let attempt = state.attempt.saturating_sub(1);
            State {
                phase,
                attempt,
                mode: Mode::Unify,
                reason,
                ..state.clone()
            }
        }
        (Event::Allow { .. }, Phase::Pending { .. }, _) if !task.waits_for_permission() => {
            return Err(Refusal::Unasked {
                task: task.id.clone(),
            });
        }
        (Event::Allow { .. }, Phase::Draft { not_before } | Phase::Pending { not_before }, _) => {
            let allowed = state.allowed || task.waits_for_permission();
            State {
                phase: Phase::Pending {
                    not_before: *not_before,
                },
                allowed,
                ..state.clone()
            }
        }
        (Event::Fail { retry, reason, .. } | Event::Return { retry, reason, .. }, ..) => {
            come_back(task, lease, retry, reason)
        }
        (Event::SendBack { retry, reason }, Phase::Approved { .. }, _) => {
            come_back(task, None, retry, reason)
        }
        (Event::Withdraw { retry, reason, .. }, ..) => come_back(
            task,
            lease,
            retry,
            reason.as_deref().unwrap_or("given back"),
        ),
        (Event::Ask { question, .. }, phase, _) => {
            // A reviewer's question uses no attempt: the attempt is the author's.
            let (work, attempt) = match phase {
                Phase::Reviewing { work, .. } => (Some(work.clone()), state.attempt),
                _ => (None, state.attempt.saturating_sub(1)),
            };
            let question = Question {
                text: one_line(question),
                answers: task.answers_in_text(),
                answer: None,
            };
            let phase = Phase::Waiting {
                question: Some(question),
                work,
            };
            State {
                phase,
                attempt,
                reason: None,
                ..state.clone()
            }
        }
        (
            Event::Reap {
                token,
                life,
                retry,
                reason,
            },
            ..,
        ) if task.status().is_held() => match (lease, token) {
            // Before the lock was taken, another agent may have claimed the task, or its holder renewed the lease.
            (Some(lease), Some(token)) if lease.token != *token => {
                return Err(stale(task, *token, lease));
            }
            (Some(lease), token)
                if token.is_none() || (*life != Life::Gone && lease.is_live(now)) =>
            {
                return Err(Refusal::StillLive {
                    task: task.id.clone(),
                    until: lease.expires_at(),
                });
            }
            _ => come_back(task, lease, retry, reason),
        },
        (Event::Expire { reason }, Phase::Waiting { .. }, None) if task.answered().is_none() => {
            State {
                phase: Phase::Dead,
                mode: unless_parked(state.mode),
                reason: Some(one_line(reason)),
                ..state.clone()
            }
        }
        (Event::Integrate { commit }, Phase::Approved { .. }, _) => {
            let told = commit
                .as_deref()
                .map(|commit| commit.get(..SHORT).unwrap_or(commit).to_owned());
            completed(state, told, now)
        }
        (Event::Resume { reason }, Phase::Waiting { work, .. }, _) => {
            let phase = match work {
                Some(work) => Phase::InReview {
                    work: work.clone(),
                    not_before: None,
                },
                None => Phase::default(),
            };
            let reason = reason.as_deref().map(one_line);
            State {
                phase,
                returns: 0,
                mode: unless_parked(state.mode),
                reason,
                ..state.clone()
            }
        }
        (
            Event::Resume { reason },
            Phase::Pending {
                not_before: Some(_),
            }
            | Phase::InReview {
                not_before: Some(_),
                ..
            },
            _,
        ) => {
            let phase = match &state.phase {
                Phase::InReview { work, .. } => Phase::InReview {
                    work: work.clone(),
                    not_before: None,
                },
                _ => Phase::default(),
            };
            // The last failure is still worth showing.
            let reason = reason
                .as_deref()
                .map(one_line)
                .or_else(|| state.reason.clone());
            State {
                phase,
                reason,
                ..state.clone()
            }
        }
        (Event::Revive { reason }, Phase::Dead, _)
        | (Event::Reopen { reason }, Phase::Completed { .. } | Phase::Cancelled { .. }, _) => {
            // Counters start over, but the reason shows that there is a past.
            let reason = Some(
                reason
                    .as_deref()
                    .map_or_else(|| event.kind().to_string(), one_line),
            );
            State {
                phase: Phase::default(),
                attempt: 0,
                returns: 0,
                rounds: 0,
                reason,
                ..state.clone()
            }
        }
        (Event::Cancel { .. }, Phase::Completed { .. } | Phase::Cancelled { .. }, _) => {
            return Err(wrong(task, event));
        }
        (Event::Cancel { .. }, _, Some(lease)) if task.status().is_held() && lease.is_live(now) => {
            return Err(held_by(task, lease));
        }
        (Event::Cancel { reason }, ..) => {
            let phase = Phase::Cancelled {
                commit: state.commit().map(str::to_owned),
            };
            State {
                phase,
                reason: reason.as_deref().map(one_line),
                ..state.clone()
            }
        }
        _ => return Err(wrong(task, event)),
    }))
}

fn decide_claim(
    task: &Task,
    lease: Option<&Lease>,
    claim: &Claim,
    now: Timestamp,
) -> Result<Transition, Refusal> {
    // A document saved from a stale buffer may say pending while the task is held. The lease wins, even an
    // expired one, until `tavern-reap` has checked its holder.
    if let Some(lease) = lease {
        return Err(held_by(task, lease));
    }
    let state = &task.state;
    let holder = Holding {
        agent: Some(claim.agent.clone()),
        started: Some(whole_seconds(now)),
    };
    let work_on = |mode| State {
        phase: Phase::InProgress {
            holder: holder.clone(),
            aside: Aside::default(),
        },
        // While the task is held, `attempt` includes this one.
        attempt: state.attempt + 1,
        mode,
        reason: None,
        ..state.clone()
    };
    let review = |work: &Submission| {
        may_review(task, &claim.agent)?;
        let phase = Phase::Reviewing {
            work: work.clone(),
            holder: holder.clone(),
        };
        Ok(State {
            phase,
            reason: None,
            ..state.clone()
        })
    };
    let taken = match (claim.purpose, &state.phase) {
        // Only a parked item's children are known to have ended.
        (Purpose::Work, Phase::Pending { .. }) => work_on(unless_parked(state.mode)),
        // There is an answer, or the children have ended. The caller, which sees all items, has checked the
        // children.
        (Purpose::Work, Phase::Waiting { work: None, .. })
            if task.answered().is_some() || state.is_parked() =>
        {
            work_on(state.mode)
        }
        (Purpose::Review, Phase::InReview { work, .. }) => review(work)?,
        (
            Purpose::Review,
            Phase::Waiting {
                work: Some(work), ..
            },
        ) if task.answered().is_some() => review(work)?,
        (Purpose::Chat, phase) => {
            let aside = match phase.clone() {
                Phase::Draft { not_before } | Phase::Pending { not_before } => Aside {
                    not_before,
                    ..Aside::default()
                },
                Phase::Waiting { question, work } => Aside {
                    question,
                    work,
                    not_before: None,
                },
                Phase::Dead => Aside::default(),
                _ => return Err(wrong(task, &Event::Claim(claim.clone()))),
            };
            State {
                phase: Phase::InProgress { holder, aside },
                ..state.clone()
            }
        }
        _ => return Err(wrong(task, &Event::Claim(claim.clone()))),
    };
    let lease = Lease {
        task: task.id.clone(),
        queue: String::new(),
        agent: claim.agent.clone(),
        role: claim.role.clone(),
        token: claim.token,
        attempt: taken.attempt.max(1),
        claimed_at: now,
        heartbeat_at: now,
        seconds: claim.seconds,
        holder: claim.holder.clone(),
        work: None,
        back_to: (claim.purpose == Purpose::Chat).then_some(task.status()),
        terms: Some(Terms::of(task, &claim.reviewers)).filter(|terms| *terms != Terms::default()),
    };
    Ok(Transition {
        state: taken,
        lease: LeaseChange::Put(Box::new(lease)),
    })
}

/// Refuses agents that would review their own work, or the same work twice.
fn may_review(task: &Task, agent: &str) -> Result<(), Refusal> {
    let agent = agent.to_owned();
    if task.author() == Some(&agent) {
        return Err(Refusal::OwnWork {
            task: task.id.clone(),
            agent,
        });
    }
    if task.is_approved_by(&agent) {
        return Err(Refusal::SecondApproval {
            task: task.id.clone(),
            agent,
        });
    }
    Ok(())
}

/// Returns the work under `review`: an agent reviews under its lease, a person while no agent does.
fn reviewed<'t>(
    task: &'t Task,
    lease: Option<&Lease>,
    event: &Event,
    review: &Review,
) -> Result<&'t Submission, Refusal> {
    match (review.token, lease, &task.state.phase) {
        (Some(_), _, Phase::Reviewing { work, .. }) => Ok(work),
        (Some(_), ..) => Err(wrong(task, event)),
        (None, Some(lease), _) => Err(held_by(task, lease)),
        (None, None, Phase::InReview { work, .. }) => Ok(work),
        (None, None, _) => Err(wrong(task, event)),
    }
}

fn decide_approval(
    task: &Task,
    lease: Option<&Lease>,
    event: &Event,
    review: &Review,
    commit: Option<&str>,
    now: Timestamp,
) -> Result<State, Refusal> {
    let work = match (review.token, lease, &task.state.phase) {
        // The queue was edited to say approved; the person's approval puts it in the log, too.
        (None, None, Phase::Approved { work }) => work,
        _ => reviewed(task, lease, event, review)?,
    };
    if let (Some(stands), Some(reviewed)) = (work.commit.as_deref(), commit)
        && !are_same_commit(stands, reviewed)
    {
        let (reviewed, stands) = (reviewed.to_owned(), stands.to_owned());
        return Err(Refusal::OtherCommit {
            task: task.id.clone(),
            reviewed,
            stands,
        });
    }
    may_review(task, &review.by)?;
    let open = task.open_reviews(&review.reviewers);
    // A person may stand in for any reviewer.
    let role = match open.first() {
        Some(first) if review.role == PERSON && !open.iter().any(|role| role == PERSON) => first,
        _ => &review.role,
    };
    let mut work = work.clone();
    work.approvals.push(Approval {
        role: role.clone(),
        by: review.by.clone(),
    });
    let state = State {
        returns: 0,
        reason: None,
        ..task.state.clone()
    };
    // This may be the last missing approval.
    let is_last = open.iter().all(|open| open == role) && open.len() <= 1;
    Ok(if is_last {
        approved(task, state, work, now)
    } else {
        State {
            phase: Phase::InReview {
                work,
                not_before: None,
            },
            ..state
        }
    })
}

/// Moves fully approved work on: to its merge, or to completed if there is nothing to merge.
fn approved(task: &Task, state: State, work: Submission, now: Timestamp) -> State {
    if task.worktree || work.commit.is_some() {
        State {
            phase: Phase::Approved { work },
            ..state
        }
    } else {
        completed(&state, None, now)
    }
}

fn completed(state: &State, commit: Option<String>, now: Timestamp) -> State {
    let phase = Phase::Completed {
        at: Some(whole_seconds(now)),
        commit,
    };
    State {
        phase,
        returns: 0,
        rounds: 0,
        mode: Mode::Execute,
        reason: None,
        ..state.clone()
    }
}

/// Returns the task to where it can be claimed again, or takes it out of the queue at the limit.
fn come_back(task: &Task, lease: Option<&Lease>, retry: &Retry, reason: &str) -> State {
    let state = &task.state;
    if let Some(status) = lease.and_then(|lease| lease.back_to) {
        return after_chat(state, status);
    }
    let again = State {
        mode: unless_parked(state.mode),
        reason: Some(one_line(reason)),
        ..state.clone()
    };
    let not_before = retry.not_before.map(whole_seconds);
    let (pending, waiting) = (
        Phase::Pending { not_before },
        Phase::Waiting {
            question: None,
            work: None,
        },
    );
    if let Phase::Reviewing { work, .. } = &state.phase {
        // A failed review is no verdict on the work: it is retried, and at the limit a person is asked.
        let (returns, work) = (state.returns + 1, work.clone());
        let phase = if returns >= retry.most {
            Phase::Waiting {
                question: None,
                work: Some(work),
            }
        } else {
            Phase::InReview { work, not_before }
        };
        return State {
            phase,
            returns,
            ..again
        };
    }
    let unused = state.attempt.saturating_sub(1);
    match retry.blame {
        Blame::Agent if state.attempt < retry.most => State {
            phase: pending,
            ..again
        },
        Blame::Agent if task.on_failure == OnFailure::Retry && !state.retried => State {
            phase: pending,
            attempt: 0,
            retried: true,
            ..again
        },
        Blame::Agent => State {
            phase: Phase::Dead,
            ..again
        },
        Blame::Nobody if state.returns >= retry.most => State {
            phase: waiting,
            attempt: unused,
            ..again
        },
        Blame::Nobody => State {
            phase: pending,
            attempt: unused,
            returns: state.returns + 1,
            ..again
        },
    }
}

/// Restores the state from before a chat.
fn after_chat(state: &State, status: Status) -> State {
    let Phase::InProgress {
        aside: Aside {
            not_before,
            question,
            work,
        },
        ..
    } = state.phase.clone()
    else {
        return State {
            phase: State::from(status).phase,
            ..state.clone()
        };
    };
    let phase = match status {
        Status::Draft => Phase::Draft { not_before },
        Status::Pending => Phase::Pending { not_before },
        Status::Waiting => Phase::Waiting { question, work },
        other => State::from(other).phase,
    };
    State {
        phase,
        ..state.clone()
    }
}

/// Returns the lease under which `token` may act. An expired lease still counts unless it was replaced: late
/// work is not thrown away (openagents #7921).
fn held<'l>(
    task: &Task,
    lease: Option<&'l Lease>,
    event: &Event,
    token: Token,
) -> Result<&'l Lease, Refusal> {
    match lease {
        Some(lease) if lease.token != token => Err(stale(task, token, lease)),
        Some(_) if !task.status().is_held() => Err(wrong(task, event)),
        Some(lease) => Ok(lease),
        None => Err(Refusal::NoLease {
            task: task.id.clone(),
            given: token,
        }),
    }
}

fn wrong(task: &Task, event: &Event) -> Refusal {
    Refusal::WrongStatus {
        task: task.id.clone(),
        status: task.status(),
        event: event.kind(),
    }
}

fn stale(task: &Task, given: Token, lease: &Lease) -> Refusal {
    Refusal::StaleToken {
        task: task.id.clone(),
        given,
        agent: lease.agent.clone(),
        current: lease.token,
    }
}

fn held_by(task: &Task, lease: &Lease) -> Refusal {
    Refusal::Held {
        task: task.id.clone(),
        agent: lease.agent.clone(),
        until: lease.expires_at(),
    }
}

/// Returns a transition that drops the lease.
fn ended(state: State) -> Transition {
    Transition {
        state,
        lease: LeaseChange::Drop,
    }
}

/// Returns the mode of an item that is released and waits for no children. Items waiting in mode unify are
/// woken when their children end.
fn unless_parked(mode: Mode) -> Mode {
    if mode == Mode::Unify {
        Mode::Execute
    } else {
        mode
    }
}

/// Truncates to the precision of a queue.
fn whole_seconds(time: Timestamp) -> Timestamp {
    time.trunc_subsecs(0)
}

/// Characters kept of the start and the end of a longer reason: the failure, and its fix.
const KEPT_OF_REASON: (usize, usize) = (80, 120);

/// Shortens a reason to one short line, as it stands in a line of the queue.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, last) = KEPT_OF_REASON;
    match words.chars().count() {
        count if count <= first + last => words,
        count => words
            .chars()
            .take(first)
            .chain(['…'])
            .chain(words.chars().skip(count - last))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::corpus::task_with;
    use crate::lease::{Holder, Work};
    use crate::plan::Plan;
    use crate::task::Consent;

    const TOKEN: Token = 7;

    fn now() -> Timestamp {
        "2026-11-22T10:00:00Z".parse().expect("a time")
    }

    fn task(status: Status) -> Task {
        task_with(status, "attempt: 2, returns: 1")
    }

    fn claim() -> Claim {
        let holder = Holder {
            host: "shire".into(),
            process: None,
        };
        let purpose = Purpose::Work;
        Claim {
            agent: "Frodo".into(),
            role: "coder".into(),
            purpose,
            token: TOKEN,
            seconds: 120,
            holder,
            reviewers: Vec::new(),
        }
    }

    fn lease() -> Lease {
        let pending = task_with(Status::Pending, "attempt: 1, returns: 1");
        match decide(&pending, None, &Event::Claim(claim()), now())
            .expect("it is pending")
            .lease
        {
            LeaseChange::Put(lease) => *lease,
            other => panic!("a claim puts a lease, not {other:?}"),
        }
    }

    fn retry(blame: Blame, most: u32) -> Retry {
        Retry {
            blame,
            not_before: None,
            most,
        }
    }

    fn review(token: Option<Token>, by: &str) -> Review {
        let role = if token.is_some() { "reviewer" } else { PERSON };
        Review {
            token,
            by: by.into(),
            role: role.into(),
            reviewers: vec!["reviewer".into()],
        }
    }

    /// One event of each kind, as its rightful sender would send it.
    fn events() -> Vec<Event> {
        let work = Work {
            run: "r".into(),
            worktree: "w".into(),
            branch: None,
            base: None,
            session: None,
            supervisor: None,
        };
        let retry = retry(Blame::Agent, 3);
        let reason = String::from("because");
        vec![
            Event::Claim(claim()),
            Event::Start { token: TOKEN, work },
            Event::Submit {
                token: TOKEN,
                commit: Some("1a2b3c4".into()),
                reviewers: Vec::new(),
                asks: None,
            },
            Event::Approve {
                review: review(Some(TOKEN), "Sam"),
                commit: None,
            },
            Event::Reject {
                review: review(Some(TOKEN), "Sam"),
                findings: "no".into(),
                most: 5,
            },
            Event::Plan {
                token: TOKEN,
                plan: Plan::default(),
                to: Status::Pending,
            },
            Event::Park {
                token: TOKEN,
                children: vec!["T-k3f9.1".parse().expect("an ID")],
            },
            Event::Shift {
                token: TOKEN,
                mode: Mode::Plan,
            },
            Event::Tick {
                token: TOKEN,
                steps: Vec::new(),
            },
            Event::Allow { by: "Rosie".into() },
            Event::Fail {
                token: TOKEN,
                retry,
                reason: reason.clone(),
            },
            Event::Return {
                token: TOKEN,
                retry: Retry {
                    blame: Blame::Nobody,
                    ..retry
                },
                reason: reason.clone(),
            },
            Event::Withdraw {
                token: TOKEN,
                retry: Retry {
                    blame: Blame::Nobody,
                    ..retry
                },
                reason: None,
            },
            Event::Ask {
                token: TOKEN,
                question: "which one?".into(),
            },
            Event::Reap {
                token: Some(TOKEN),
                life: Life::Gone,
                retry,
                reason: reason.clone(),
            },
            Event::Expire {
                reason: reason.clone(),
            },
            Event::Integrate {
                commit: Some("1a2b3c4".into()),
            },
            Event::SendBack {
                retry,
                reason: reason.clone(),
            },
            Event::Resume { reason: None },
            Event::Revive { reason: None },
            Event::Reopen { reason: None },
            Event::Cancel { reason: None },
        ]
    }

    /// The rows of the table of `specs/states.md`: from, event, to.
    fn drawn() -> BTreeSet<(String, String, String)> {
        let table = include_str!("../../../specs/states.md")
            .lines()
            .skip_while(|line| !line.starts_with("| from |"));
        let rows = table.skip(2).take_while(|line| line.starts_with('|'));
        let mut drawn = BTreeSet::new();
        for row in rows {
            let cells: Vec<Vec<&str>> = row
                .split('|')
                .skip(1)
                .take(3)
                .map(|cell| words(cell).collect())
                .collect();
            for (from, event) in cells[0]
                .iter()
                .flat_map(|from| cells[1].iter().map(move |event| (from, event)))
            {
                drawn.extend(
                    cells[2]
                        .iter()
                        .map(|to| ((*from).into(), (*event).into(), (*to).into())),
                );
            }
        }
        drawn
    }

    fn words(cell: &str) -> impl Iterator<Item = &str> {
        cell.split(',').map(str::trim)
    }

    /// The events of [`events`], also as others would send them and with other bounds.
    fn all_events() -> Vec<Event> {
        let claims = [Purpose::Work, Purpose::Review, Purpose::Chat].map(|purpose| {
            Event::Claim(Claim {
                purpose,
                agent: "Pip".into(),
                ..claim()
            })
        });
        let mut all = [events(), claims.to_vec()].concat();
        for most in [0, 9] {
            for blame in [Blame::Agent, Blame::Nobody] {
                let (retry, reason) = (retry(blame, most), String::from("because"));
                all.push(Event::Fail {
                    token: TOKEN,
                    retry,
                    reason: reason.clone(),
                });
                all.push(Event::Return {
                    token: TOKEN,
                    retry,
                    reason: reason.clone(),
                });
                all.push(Event::Withdraw {
                    token: TOKEN,
                    retry,
                    reason: None,
                });
                all.push(Event::Reap {
                    token: Some(TOKEN),
                    life: Life::Gone,
                    retry,
                    reason: reason.clone(),
                });
                all.push(Event::SendBack { retry, reason });
            }
            for token in [Some(TOKEN), None] {
                let review = Review {
                    reviewers: vec!["reviewer".into(); 1 + most as usize],
                    ..review(token, "Sam")
                };
                all.push(Event::Reject {
                    review: review.clone(),
                    findings: "no".into(),
                    most,
                });
                all.push(Event::Approve {
                    review,
                    commit: None,
                });
            }
        }
        for reviewers in [Vec::new(), vec!["reviewer".into()]] {
            all.push(Event::Submit {
                token: TOKEN,
                commit: None,
                reviewers,
                asks: None,
            });
        }
        all
    }

    #[test]
    fn only_the_arrows_of_the_specification_exist_and_all_of_them() {
        let mut seen = BTreeSet::new();
        let (work, asked) = (
            "attempt: 2, returns: 1, commit: 1a2b3c4",
            "question: red?, answer: blue",
        );
        let both = format!("{work}, {asked}");
        let variants = ["attempt: 2, returns: 1", asked, &both, work, ""];
        let leases = [
            None,
            Some(Status::Draft),
            Some(Status::Pending),
            Some(Status::Waiting),
            Some(Status::Dead),
        ];
        for (status, keys) in Status::ALL
            .into_iter()
            .flat_map(|status| variants.map(|keys| (status, keys)))
        {
            let late = now() + chrono::TimeDelta::days(1);
            for (event, back_to) in all_events()
                .iter()
                .flat_map(|event| leases.iter().map(move |to| (event, *to)))
            {
                let worktree = !keys.is_empty();
                let task = Task {
                    approve: vec![Consent::Start],
                    worktree,
                    ..task_with(status, keys)
                };
                let is_chat = back_to.is_some() && status == Status::InProgress;
                let lease = Lease {
                    back_to: back_to.filter(|_| is_chat),
                    ..lease()
                };
                let lease = status.is_held().then_some(&lease);
                seen.extend(decide(&task, lease, event, late).ok().map(|change| {
                    let to = change.state.status();
                    let [from, event, to] = [status.as_str(), event.kind().as_str(), to.as_str()];
                    (from.to_owned(), event.to_owned(), to.to_owned())
                }));
            }
        }
        let drawn = drawn();
        let missing: Vec<_> = drawn.difference(&seen).collect();
        let undrawn: Vec<_> = seen.difference(&drawn).collect();
        assert_eq!(
            (missing, undrawn),
            (Vec::new(), Vec::new()),
            "arrows that are only drawn, and arrows that only are"
        );
    }

    #[test]
    fn every_state_has_a_way_out_that_needs_only_reap_or_a_person() {
        for status in Status::ALL.into_iter().filter(|status| status.is_held()) {
            let back = if status == Status::Reviewing {
                Status::InReview
            } else {
                Status::Pending
            };
            // The supervisor died and its lease file with it, or not.
            for (lease, token) in [(None, None), (Some(lease()), Some(TOKEN))] {
                let (retry, reason) = (retry(Blame::Nobody, 20), "gone".into());
                let event = Event::Reap {
                    token,
                    life: Life::Gone,
                    retry,
                    reason,
                };
                let change = decide(&task(status), lease.as_ref(), &event, now()).expect("reaped");
                assert_eq!(
                    (change.state.status(), change.lease),
                    (back, LeaseChange::Drop)
                );
            }
        }
    }

    #[test]
    fn a_lease_that_was_renewed_after_the_look_is_not_reaped() {
        let late = lease().expires_at();
        let rows = [
            (Life::Gone, now(), true),
            (Life::Alive, now(), false),
            (Life::Unknown, now(), false),
            (Life::Alive, late, true),
            (Life::Unknown, late, true),
        ];
        for (life, at, is_reaped) in rows {
            let event = Event::Reap {
                token: Some(TOKEN),
                life,
                retry: retry(Blame::Nobody, 20),
                reason: "?".into(),
            };
            let result = decide(&task(Status::InProgress), Some(&lease()), &event, at);
            assert_eq!(result.is_ok(), is_reaped, "{life:?} at {at}");
        }
    }

    #[test]
    fn only_the_newest_token_can_write() {
        let (held, newer) = (
            task(Status::InProgress),
            Lease {
                token: TOKEN + 1,
                ..lease()
            },
        );
        for event in events() {
            let kind = event.kind();
            assert!(
                decide(&held, Some(&newer), &event, now()).is_err(),
                "{kind}"
            );
            // Late work is still accepted while no other agent has claimed the task.
            let late = now() + chrono::TimeDelta::days(1);
            let is_accepted = |at| decide(&held, Some(&lease()), &event, at).is_ok();
            assert!(!is_accepted(now()) || is_accepted(late), "{kind}");
        }
    }

    #[test]
    fn a_leased_task_is_not_claimed_whatever_the_document_says() {
        let refusal = decide(
            &task(Status::Pending),
            Some(&lease()),
            &Event::Claim(claim()),
            now(),
        )
        .expect_err("held");
        assert!(
            matches!(&refusal, Refusal::Held { agent, .. } if agent == "Frodo"),
            "{refusal}"
        );
    }

    #[test]
    fn it_is_approved_when_all_have_approved_who_have_to() {
        let keys = "attempt: 2, author: Frodo, commit: 1a2b3c4d, approvals: [security/Pip]";
        for (token, by, reviewers, commit, expected) in [
            (
                Some(TOKEN),
                "Sam",
                &["security", "reviewer"][..],
                "1a2b3c4d",
                Some(Status::Approved),
            ),
            (
                Some(TOKEN),
                "Sam",
                &["security", "reviewer", "reviewer"],
                "1a2b3c4",
                Some(Status::InReview),
            ),
            (
                Some(TOKEN),
                "Sam",
                &["security", "reviewer", PERSON],
                "1a2b3c4",
                Some(Status::InReview),
            ),
            (
                Some(TOKEN),
                "Sam",
                &["other"],
                "1a2b3c4",
                Some(Status::InReview),
            ),
            (
                None,
                "rosie",
                &["security", PERSON],
                "1a2b3c4",
                Some(Status::Approved),
            ),
            (
                None,
                "rosie",
                &["security", "reviewer"],
                "1a2b3c4",
                Some(Status::Approved),
            ),
            (
                None,
                "rosie",
                &["reviewer", PERSON],
                "1a2b3c4",
                Some(Status::InReview),
            ),
            // Of another commit, one's own work, and twice.
            (Some(TOKEN), "Sam", &["reviewer"], "9999999", None),
            (Some(TOKEN), "Frodo", &["reviewer"], "1a2b3c4d", None),
            (Some(TOKEN), "Pip", &["reviewer"], "1a2b3c4d", None),
        ] {
            let status = if token.is_some() {
                Status::Reviewing
            } else {
                Status::InReview
            };
            let reviewers = reviewers.iter().map(|&name| name.to_owned()).collect();
            let review = Review {
                reviewers,
                ..review(token, by)
            };
            let lease = token.map(|_| Lease {
                agent: by.to_owned(),
                ..lease()
            });
            let event = Event::Approve {
                review: review.clone(),
                commit: Some(commit.to_owned()),
            };
            let result = decide(&task_with(status, keys), lease.as_ref(), &event, now());
            assert_eq!(
                result.ok().map(|change| change.state.status()),
                expected,
                "{review:?} of {commit}"
            );
        }
    }

    #[test]
    fn what_waits_is_taken_when_it_may_be_and_what_comes_back_begins_anew() {
        let fail = || Event::Fail {
            token: TOKEN,
            retry: retry(Blame::Agent, 3),
            reason: "no".into(),
        };
        let (claim, resume) = (|| Event::Claim(claim()), || Event::Resume { reason: None });
        let reject = |most| Event::Reject {
            review: review(None, "rosie"),
            findings: "no".into(),
            most,
        };
        for (status, keys, event, expected) in [
            (Status::Waiting, "", claim(), None),
            (Status::Waiting, "question: red?", claim(), None),
            (
                Status::Waiting,
                "question: red?, answer: blue",
                claim(),
                Some("in progress, execute, 1, false"),
            ),
            // Only a parked item keeps the mode that wakes it.
            (
                Status::Waiting,
                "mode: unify",
                claim(),
                Some("in progress, unify, 1, false"),
            ),
            (
                Status::Pending,
                "mode: unify",
                claim(),
                Some("in progress, execute, 1, false"),
            ),
            (
                Status::Waiting,
                "mode: unify",
                resume(),
                Some("pending, execute, 0, false"),
            ),
            (
                Status::InProgress,
                "mode: unify, attempt: 1",
                fail(),
                Some("pending, execute, 1, false"),
            ),
            // A rejection uses no attempt, and it was the last round, or not.
            (
                Status::InReview,
                "attempt: 2",
                reject(5),
                Some("pending, execute, 1, false"),
            ),
            (
                Status::InReview,
                "attempt: 2, rounds: 4",
                reject(5),
                Some("dead, execute, 1, false"),
            ),
            // It gets its attempts once more.
            (
                Status::InProgress,
                "on_failure: retry, attempt: 3",
                fail(),
                Some("pending, execute, 0, true"),
            ),
            (
                Status::InProgress,
                "on_failure: retry, attempt: 3, retried: true",
                fail(),
                Some("dead, execute, 3, true"),
            ),
        ] {
            let lease = (status == Status::InProgress).then(lease);
            let change = decide(&task_with(status, keys), lease.as_ref(), &event, now());
            let told =
                |State {
                     mode,
                     attempt,
                     retried,
                     ..
                 }: &State,
                 status| { format!("{status}, {mode}, {attempt}, {retried}") };
            let told = change
                .ok()
                .map(|change| told(&change.state, change.state.status()));
            assert_eq!(
                told.as_deref(),
                expected,
                "{} of {status} ({keys})",
                event.kind()
            );
        }
    }
}
