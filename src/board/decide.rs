//! The whole state machine: `(task, lease, event, now) → change or refusal`.
//!
//! Pure, and the only place that knows which arrows exist; `specs/states.md` is its table, row for row.

use serde_yaml::Value;

use super::edit::Patch;
use super::event::{Blame, Claim, Event, Kind, Retry};
use super::lease::{Lease, Life, Token};
use super::task::{Status, Task, TaskId, Timestamp};

/// What an event does to the item's text and to its lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub to: Status,
    pub patch: Patch,
    pub lease: LeaseChange,
}

/// What a change does to the lease of its task.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseChange {
    Keep,
    /// The lease as it is from now on, new or changed.
    Put(Box<Lease>),
    Drop,
}

/// A rule's "no". Every refusal says what to type next; programs exit with 4.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("`{task}` is {status}, so it can't be {}", event.as_str())]
    WrongStatus { task: TaskId, status: Status, event: Kind },
    #[error("`{task}` is held by {agent} until {until}")]
    Held { task: TaskId, agent: String, until: Timestamp },
    #[error("token {given} for `{task}` is stale: {agent} holds it with token {current}")]
    StaleToken { task: TaskId, given: Token, agent: String, current: Token },
    #[error("nobody holds `{task}` any more, so token {given} is stale")]
    NoLease { task: TaskId, given: Token },
    #[error("the lease of `{task}` is alive until {until}")]
    StillLive { task: TaskId, until: Timestamp },
}

impl Refusal {
    pub fn hint(&self) -> String {
        match self {
            Refusal::WrongStatus { task, status, event } => match (status, event) {
                (Status::Dead, _) => format!("tavern-release {task} --revive"),
                (Status::Completed | Status::Cancelled, _) => format!("tavern-release {task} --reopen"),
                (Status::Waiting, _) => {
                    format!("tavern-release {task} once its question is answered: tavern-log {task}")
                }
                (Status::Draft, _) => format!("move `{task}` to the Pending lane to release it for work"),
                _ => format!("tavern-status {task} shows where it stands"),
            },
            Refusal::Held { task, .. } | Refusal::StillLive { task, .. } => {
                format!("wait for it, or see who works on it: tavern-status {task}")
            }
            Refusal::StaleToken { task, .. } | Refusal::NoLease { task, .. } => {
                format!("the work is kept on branch tavern/{task}; what happened: tavern-log {task}")
            }
        }
    }
}

/// What `event` changes, or the rule that forbids it. `lease` is the task's lease as it stands on disk, if any.
pub fn decide(task: &Task, lease: Option<&Lease>, event: &Event, now: Timestamp) -> Result<Change, Refusal> {
    match event {
        Event::Claim(claim) => decide_claim(task, lease, claim, now),
        Event::Start { token, work } => {
            let lease = held(task, lease, event, *token)?;
            let lease = Lease { work: Some(work.clone()), heartbeat_at: now, ..lease.clone() };
            Ok(Change { to: task.status, patch: Patch::default(), lease: LeaseChange::Put(Box::new(lease)) })
        }
        Event::Submit { token, commit } => {
            held(task, lease, event, *token)?;
            Ok(ended(Status::Approved).set("commit", commit.clone()).forget(&["agent", "started", "reason"]).0)
        }
        Event::Fail { token, retry, reason } | Event::Return { token, retry, reason } => {
            held(task, lease, event, *token)?;
            Ok(come_back(task, retry, reason))
        }
        Event::Ask { token, question } => {
            held(task, lease, event, *token)?;
            let attempt = task.attempt.saturating_sub(1);
            Ok(ended(Status::Waiting)
                .set("reason", Some(one_line(question)))
                .set("attempt", positive(attempt))
                .forget(&["agent", "started"])
                .0)
        }
        Event::Reap { token, life, retry, reason } => {
            if !task.status.is_held() {
                return Err(wrong(task, event));
            }
            // Between the look and the lock somebody else may have taken the task, or its holder renewed.
            match (lease, token) {
                (Some(lease), Some(token)) if lease.token != *token => Err(stale(task, *token, lease)),
                (Some(lease), token) if token.is_none() || (*life != Life::Gone && lease.is_live(now)) => {
                    Err(Refusal::StillLive { task: task.id.clone(), until: lease.expires_at() })
                }
                _ => Ok(come_back(task, retry, reason)),
            }
        }
        Event::Integrate { commit } => {
            require(task, event, &[Status::Approved])?;
            Ok(ended(Status::Completed)
                .set("completed", Some(written(now)))
                .set("commit", commit.clone())
                .forget(&["agent", "started", "reason", "not_before", "returns"])
                .0)
        }
        Event::SendBack { retry, reason } => {
            require(task, event, &[Status::Approved])?;
            Ok(Amended(come_back(task, retry, reason)).forget(&["commit"]).0)
        }
        Event::Resume { reason } => {
            require(task, event, &[Status::Waiting])?;
            Ok(ended(Status::Pending).set("reason", reason.clone()).forget(&["returns", "not_before"]).0)
        }
        Event::Revive { reason } => {
            require(task, event, &[Status::Dead])?;
            Ok(ended(Status::Pending).set("reason", reason.clone()).forget(&["attempt", "returns", "not_before"]).0)
        }
        Event::Reopen { reason } => {
            require(task, event, &[Status::Completed, Status::Cancelled])?;
            let forgotten = ["attempt", "returns", "completed", "commit", "not_before"];
            Ok(ended(Status::Pending).forget(&forgotten).set("reason", reason.clone()).0)
        }
        Event::Cancel { reason } => {
            if matches!(task.status, Status::Completed | Status::Cancelled) {
                return Err(wrong(task, event));
            }
            if let Some(lease) = lease.filter(|lease| task.status.is_held() && lease.is_live(now)) {
                return Err(Refusal::Held {
                    task: task.id.clone(),
                    agent: lease.agent.clone(),
                    until: lease.expires_at(),
                });
            }
            Ok(ended(Status::Cancelled).set("reason", reason.clone()).forget(&["agent", "started", "not_before"]).0)
        }
    }
}

fn decide_claim(task: &Task, lease: Option<&Lease>, claim: &Claim, now: Timestamp) -> Result<Change, Refusal> {
    // A document that was saved from a stale buffer may say pending while somebody holds the task: the lease wins,
    // also a run-out one, until `tavern-reap` has looked after its holder.
    if let Some(lease) = lease {
        return Err(Refusal::Held { task: task.id.clone(), agent: lease.agent.clone(), until: lease.expires_at() });
    }
    if task.status != Status::Pending {
        return Err(Refusal::WrongStatus { task: task.id.clone(), status: task.status, event: Kind::Claimed });
    }
    let attempt = task.attempt + 1;
    let lease = Lease {
        task: task.id.clone(),
        queue: String::new(),
        agent: claim.agent.clone(),
        role: claim.role.clone(),
        token: claim.token,
        attempt,
        claimed_at: now,
        heartbeat_at: now,
        seconds: claim.seconds,
        holder: claim.holder.clone(),
        work: None,
    };
    let change = ended(Status::InProgress)
        .set("agent", Some(claim.agent.clone()))
        .set("attempt", positive(attempt))
        .set("started", Some(written(now)))
        .forget(&["not_before", "reason"]);
    Ok(Change { lease: LeaseChange::Put(Box::new(lease)), ..change.0 })
}

/// Back to pending, or out of the queue when the bound is reached.
fn come_back(task: &Task, retry: &Retry, reason: &str) -> Change {
    let (to, attempt, returns) = match retry.blame {
        Blame::Agent if task.attempt >= retry.most => (Status::Dead, task.attempt, task.returns),
        Blame::Agent => (Status::Pending, task.attempt, task.returns),
        Blame::Nobody if task.returns >= retry.most => (Status::Waiting, task.attempt.saturating_sub(1), task.returns),
        Blame::Nobody => (Status::Pending, task.attempt.saturating_sub(1), task.returns + 1),
    };
    let not_before = retry.not_before.filter(|_| to == Status::Pending).map(written);
    ended(to)
        .set("attempt", positive(attempt))
        .set("returns", positive(returns))
        .set("not_before", not_before)
        .set("reason", Some(one_line(reason)))
        .forget(&["agent", "started"])
        .0
}

/// The lease under which `token` may act. An expired lease that nobody else took still counts: work that is finished
/// late is not thrown away (openagents #7921).
fn held<'l>(task: &Task, lease: Option<&'l Lease>, event: &Event, token: Token) -> Result<&'l Lease, Refusal> {
    match lease {
        Some(lease) if lease.token != token => Err(stale(task, token, lease)),
        Some(_) if !task.status.is_held() => Err(wrong(task, event)),
        Some(lease) => Ok(lease),
        None => Err(Refusal::NoLease { task: task.id.clone(), given: token }),
    }
}

fn require(task: &Task, event: &Event, statuses: &[Status]) -> Result<(), Refusal> {
    if statuses.contains(&task.status) { Ok(()) } else { Err(wrong(task, event)) }
}

fn wrong(task: &Task, event: &Event) -> Refusal {
    Refusal::WrongStatus { task: task.id.clone(), status: task.status, event: event.kind() }
}

fn stale(task: &Task, given: Token, lease: &Lease) -> Refusal {
    Refusal::StaleToken { task: task.id.clone(), given, agent: lease.agent.clone(), current: lease.token }
}

/// A change that ends any lease, being written.
struct Amended(Change);

fn ended(to: Status) -> Amended {
    let patch = Patch { status: Some(to), ..Patch::default() };
    Amended(Change { to, patch, lease: LeaseChange::Drop })
}

impl Amended {
    fn set(mut self, key: &'static str, value: Option<impl Into<Value>>) -> Amended {
        self.0.patch.set.push((key, value.map(Into::into)));
        self
    }

    fn forget(mut self, keys: &[&'static str]) -> Amended {
        self.0.patch.set.extend(keys.iter().map(|key| (*key, None)));
        self
    }
}

fn positive(count: u32) -> Option<u32> {
    (count > 0).then_some(count)
}

fn written(time: Timestamp) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// Reasons stand in a line of the queue, so they are one line of at most 200 characters.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::lease::{Holder, Work};

    const TOKEN: Token = 7;

    fn now() -> Timestamp {
        "2026-11-22T10:00:00Z".parse().expect("a time")
    }

    fn task(status: Status) -> Task {
        Task { status, attempt: 2, returns: 1, ..Task::new("T-k3f9".parse().expect("an ID"), "Do it") }
    }

    fn claim() -> Claim {
        let holder = Holder { host: "shire".into(), process: None };
        Claim { agent: "Frodo".into(), role: "coder".into(), token: TOKEN, seconds: 120, holder }
    }

    fn lease() -> Lease {
        let pending = Task { attempt: 1, ..task(Status::Pending) };
        match decide(&pending, None, &Event::Claim(claim()), now()).expect("it is pending").lease {
            LeaseChange::Put(lease) => *lease,
            other => panic!("a claim puts a lease, not {other:?}"),
        }
    }

    fn retry(blame: Blame, most: u32) -> Retry {
        Retry { blame, not_before: None, most }
    }

    /// One event of each kind, as its rightful sender would send it.
    fn events() -> Vec<Event> {
        let work = Work { run: "r".into(), worktree: "w".into(), branch: None, base: None, session: None };
        let retry = retry(Blame::Agent, 3);
        let reason = String::from("because");
        vec![
            Event::Claim(claim()),
            Event::Start { token: TOKEN, work },
            Event::Submit { token: TOKEN, commit: Some("1a2b3c4".into()) },
            Event::Fail { token: TOKEN, retry, reason: reason.clone() },
            Event::Return { token: TOKEN, retry: Retry { blame: Blame::Nobody, ..retry }, reason: reason.clone() },
            Event::Ask { token: TOKEN, question: "which one?".into() },
            Event::Reap { token: Some(TOKEN), life: Life::Gone, retry, reason: reason.clone() },
            Event::Integrate { commit: Some("1a2b3c4".into()) },
            Event::SendBack { retry, reason: reason.clone() },
            Event::Resume { reason: None },
            Event::Revive { reason: None },
            Event::Reopen { reason: None },
            Event::Cancel { reason: None },
        ]
    }

    /// `specs/states.md`, row for row: every arrow there is, and no other.
    #[test]
    fn only_the_drawn_arrows_exist() {
        use Status::{Approved, Cancelled, Completed, Dead, Draft, InProgress, InReview, Pending, Reviewing, Waiting};
        let arrow = |from: Status, event: Kind| match (from, event) {
            (Pending, Kind::Claimed) => Some(InProgress),
            (InProgress | Reviewing, Kind::Started) => Some(from),
            (InProgress | Reviewing, Kind::Submitted) => Some(Approved),
            (InProgress | Reviewing, Kind::Failed | Kind::Returned | Kind::Reaped) => Some(Pending),
            (InProgress | Reviewing, Kind::Asked) => Some(Waiting),
            (Approved, Kind::Integrated) => Some(Completed),
            (Approved, Kind::SentBack) => Some(Pending),
            (Waiting, Kind::Resumed) => Some(Pending),
            (Dead, Kind::Revived) => Some(Pending),
            (Completed | Cancelled, Kind::Reopened) => Some(Pending),
            (Draft | Pending | InReview | Waiting | Approved | Dead, Kind::Cancelled) => Some(Cancelled),
            _ => None,
        };
        for status in Status::ALL {
            for event in events() {
                let lease = status.is_held().then(lease);
                let result = decide(&task(status), lease.as_ref(), &event, now());
                let expected = arrow(status, event.kind());
                let to = result.as_ref().ok().map(|change| change.to);
                assert_eq!(to, expected, "{status} on {:?}", event.kind());
                if let Err(refusal) = result {
                    assert!(refusal.hint().contains("T-k3f9"), "{refusal} has a hint that names the task");
                }
            }
        }
    }

    #[test]
    fn every_state_has_a_way_out_that_needs_only_reap_or_a_person() {
        for status in Status::ALL.into_iter().filter(|status| status.is_held()) {
            // The supervisor died and its lease file with it, or not.
            for (lease, token) in [(None, None), (Some(lease()), Some(TOKEN))] {
                let (retry, reason) = (retry(Blame::Nobody, 20), "gone".into());
                let event = Event::Reap { token, life: Life::Gone, retry, reason };
                let change = decide(&task(status), lease.as_ref(), &event, now()).expect("reaped");
                assert_eq!((change.to, change.lease), (Status::Pending, LeaseChange::Drop));
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
            let event = Event::Reap { token: Some(TOKEN), life, retry: retry(Blame::Nobody, 20), reason: "?".into() };
            let result = decide(&task(Status::InProgress), Some(&lease()), &event, at);
            assert_eq!(result.is_ok(), is_reaped, "{life:?} at {at}");
        }
    }

    #[test]
    fn only_the_newest_token_can_write() {
        let held = task(Status::InProgress);
        for event in events().into_iter().filter(|event| {
            matches!(
                event.kind(),
                Kind::Started | Kind::Submitted | Kind::Failed | Kind::Returned | Kind::Asked | Kind::Reaped
            )
        }) {
            let newer = Lease { token: TOKEN + 1, agent: "Sam".into(), ..lease() };
            let refusal = decide(&held, Some(&newer), &event, now()).expect_err("stale");
            assert!(matches!(refusal, Refusal::StaleToken { current, .. } if current == TOKEN + 1), "{refusal}");
            // Work that is finished late is still accepted while nobody else has taken the task.
            let late = now() + chrono::TimeDelta::days(1);
            assert!(decide(&held, Some(&lease()), &event, late).is_ok(), "{:?}", event.kind());
        }
    }

    #[test]
    fn a_leased_task_is_not_claimed_whatever_the_document_says() {
        let refusal = decide(&task(Status::Pending), Some(&lease()), &Event::Claim(claim()), now()).expect_err("held");
        assert!(matches!(&refusal, Refusal::Held { agent, .. } if agent == "Frodo"), "{refusal}");
    }

    #[test]
    fn attempts_count_what_the_agent_is_to_blame_for() {
        let outcome = |attempt, returns, blame, most| {
            let held = Task { attempt, returns, ..task(Status::InProgress) };
            let event = Event::Fail { token: TOKEN, retry: retry(blame, most), reason: "no".into() };
            let change = decide(&held, Some(&lease()), &event, now()).expect("held");
            let number = |key| {
                let value = change.patch.set.iter().find(|(name, _)| *name == key).expect("it is set");
                value.1.as_ref().and_then(Value::as_u64).unwrap_or(0)
            };
            (change.to, number("attempt"), number("returns"))
        };
        assert_eq!(outcome(1, 0, Blame::Agent, 3), (Status::Pending, 1, 0));
        assert_eq!(outcome(2, 0, Blame::Agent, 3), (Status::Pending, 2, 0));
        assert_eq!(outcome(3, 0, Blame::Agent, 3), (Status::Dead, 3, 0));
        assert_eq!(outcome(1, 0, Blame::Nobody, 20), (Status::Pending, 0, 1));
        assert_eq!(outcome(3, 19, Blame::Nobody, 20), (Status::Pending, 2, 20));
        assert_eq!(outcome(3, 20, Blame::Nobody, 20), (Status::Waiting, 2, 20));
    }
}
