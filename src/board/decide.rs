//! The whole state machine: `(task, lease, event, now) → change or refusal`.
//!
//! Pure, and the only place that knows which arrows exist; `specs/states.md` is its table, row for row.

use serde_yaml::Value;

use super::edit::Patch;
use super::event::{Blame, Claim, Event, Kind, Purpose, Retry, Review};
use super::lease::{Lease, Life, Token};
use super::task::{Mode, OnFailure, PERSON, Status, Task, TaskId, Timestamp};

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
    #[error("{agent} can't review its own work on `{task}`")]
    OwnWork { task: TaskId, agent: String },
    #[error("{agent} has approved `{task}` already")]
    SecondApproval { task: TaskId, agent: String },
    #[error("`{task}` is in review at {stands}, so what was found at {reviewed} does not count")]
    OtherCommit { task: TaskId, reviewed: String, stands: String },
    #[error("`{task}` does not wait for anybody's permission")]
    Unasked { task: TaskId },
    #[error("`{task}` is {status}, so it can't have another child")]
    EndedParent { task: TaskId, status: Status },
    #[error("`{task}` is {depth} levels down already, and can't be broken up further")]
    TooDeep { task: TaskId, depth: u32 },
    #[error("`{task}` has {most} children already")]
    TooMany { task: TaskId, most: u32 },
    #[error("`{task}` waits for its children, so none of them can wait for it")]
    WaitsForChild { task: TaskId },
}

impl Refusal {
    pub fn hint(&self) -> String {
        match self {
            Refusal::WrongStatus { task, status, event } => match (status, event) {
                (Status::Dead, _) => format!("tavern release {task} --revive"),
                (Status::Completed | Status::Cancelled, _) => format!("tavern release {task} --reopen"),
                (Status::Waiting, Kind::Approved | Kind::Rejected) => {
                    format!("bring it back into review first: tavern release {task}")
                }
                (Status::Waiting, _) => {
                    format!("tavern tell {task} \"…\" answers its question; what it waits for: tavern status {task}")
                }
                (_, Kind::Approved | Kind::Rejected) => {
                    format!("only what is in review can be; tavern status {task} shows where it stands")
                }
                (Status::Draft, _) => {
                    format!("it is no more than written down; let it be worked on: tavern release {task}")
                }
                _ => format!("tavern status {task} shows where it stands"),
            },
            Refusal::Held { task, .. } | Refusal::StillLive { task, .. } => {
                format!("wait for it, or see who works on it: tavern status {task}")
            }
            Refusal::StaleToken { task, .. } | Refusal::NoLease { task, .. } => {
                format!("the work is kept on branch tavern/{task}; what happened: tavern log {task}")
            }
            Refusal::OwnWork { task, .. } | Refusal::SecondApproval { task, .. } => {
                format!(
                    "let somebody else look at it: tavern claim --role reviewer --task {task}, or do it by hand: tavern report {task} --approve"
                )
            }
            Refusal::OtherCommit { task, .. } => format!("look again: tavern status {task}"),
            Refusal::Unasked { task } => format!("tavern status {task} shows where it stands"),
            Refusal::EndedParent { task, status } => {
                let flag = if *status == Status::Dead { "--revive" } else { "--reopen" };
                format!("add it without --parent, or bring `{task}` back first: tavern release {task} {flag}")
            }
            Refusal::TooDeep { .. } => {
                "do it within the item, or name a parent further up; `children: {depth: …}` of config.yaml is the bound"
                    .to_owned()
            }
            Refusal::TooMany { .. } => {
                "do it within the item, or put more into one child; `children: {most: …}` of config.yaml is the bound"
                    .to_owned()
            }
            Refusal::WaitsForChild { task } => format!("leave `{task}` out of what it comes after"),
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
        Event::Submit { token, commit, reviewers } => {
            let lease = held(task, lease, event, *token)?;
            require(task, event, &[Status::InProgress])?;
            let submitted = match reviewers.as_slice() {
                [] => ended(Status::Approved),
                // From here on it is reviews that come back.
                _ => ended(Status::InReview).set("author", Some(lease.agent.clone())).forget(&["returns"]),
            };
            Ok(submitted
                .set("commit", commit.clone())
                .forget(&["agent", "started", "reason", "approvals", "mode", "question", "answers"])
                .0)
        }
        Event::Approve { review, commit } => decide_approval(task, lease, event, review, commit.as_deref()),
        Event::Reject { review, findings, most } => {
            reviewing(task, lease, event, review)?;
            let rounds = task.rounds + 1;
            let to = if rounds >= *most { Status::Dead } else { Status::Pending };
            Ok(ended(to)
                .set("rounds", Some(rounds))
                .set("attempt", positive(task.attempt.saturating_sub(1)))
                .set("reason", Some(one_line(&format!("rejected by {}: {findings}", review.by))))
                .forget(&["agent", "started", "commit", "author", "approvals", "returns", "not_before"])
                .0)
        }
        Event::Plan { token, plan, .. } => {
            held(task, lease, event, *token)?;
            require(task, event, &[Status::InProgress])?;
            let words = Some(one_line(&plan.words)).filter(|words| !words.is_empty());
            Ok(ended(Status::Completed)
                .set("completed", Some(written(now)))
                .set("reason", words)
                .forget(&["agent", "started", "not_before", "returns", "mode", "question", "answers"])
                .0)
        }
        Event::Park { token, children } => {
            held(task, lease, event, *token)?;
            require(task, event, &[Status::InProgress])?;
            let names: Vec<&str> = children.iter().map(TaskId::as_str).collect();
            Ok(ended(Status::Waiting)
                .set("mode", Some(Mode::Unify.as_str()))
                .set("reason", Some(one_line(&format!("waits for its children: {}", names.join(", ")))))
                .set("attempt", positive(task.attempt.saturating_sub(1)))
                .forget(&["agent", "started", "question", "answers"])
                .0)
        }
        Event::Shift { token, mode } => {
            held(task, lease, event, *token)?;
            let patch = Patch { set: vec![("mode", written_mode(*mode).map(Value::from))], ..Patch::default() };
            Ok(Change { to: task.status, patch, lease: LeaseChange::Keep })
        }
        Event::Allow { .. } => {
            require(task, event, &[Status::Draft, Status::Pending])?;
            if task.status == Status::Pending && !task.waits_for_permission() {
                return Err(Refusal::Unasked { task: task.id.clone() });
            }
            let allowed = task.waits_for_permission().then_some(true);
            Ok(ended(Status::Pending).set("allowed", allowed.or(task.allowed.then_some(true))).0)
        }
        Event::Fail { token, retry, reason } | Event::Return { token, retry, reason } => {
            let lease = held(task, lease, event, *token)?;
            Ok(come_back(task, Some(lease), retry, reason))
        }
        Event::Withdraw { token, retry, reason } => {
            let lease = held(task, lease, event, *token)?;
            Ok(come_back(task, Some(lease), retry, reason.as_deref().unwrap_or("given back")))
        }
        Event::Ask { token, question } => {
            held(task, lease, event, *token)?;
            // A reviewer's question uses nothing up: the attempt is its author's.
            let attempt = if task.status == Status::Reviewing { task.attempt } else { task.attempt.saturating_sub(1) };
            Ok(ended(Status::Waiting)
                .set("question", Some(one_line(question)))
                .set("answers", positive(task.answers_in_text()))
                .set("attempt", positive(attempt))
                .forget(&["agent", "started", "reason", "answer"])
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
                _ => Ok(come_back(task, lease, retry, reason)),
            }
        }
        Event::Integrate { commit } => {
            require(task, event, &[Status::Approved])?;
            Ok(ended(Status::Completed)
                .set("completed", Some(written(now)))
                .set("commit", commit.clone())
                .forget(&[
                    "agent",
                    "started",
                    "reason",
                    "not_before",
                    "returns",
                    "author",
                    "approvals",
                    "rounds",
                    "mode",
                ])
                .0)
        }
        Event::SendBack { retry, reason } => {
            require(task, event, &[Status::Approved])?;
            Ok(Amended(come_back(task, None, retry, reason)).forget(&["commit", "author", "approvals"]).0)
        }
        Event::Resume { reason } => {
            require(task, event, &[Status::Waiting])?;
            let to = if task.commit.is_some() { Status::InReview } else { Status::Pending };
            Ok(ended(to)
                .set("reason", reason.as_deref().map(one_line))
                .set("mode", unless_parked(task))
                .forget(&["returns", "not_before", "question", "answer", "answers"])
                .0)
        }
        Event::Revive { reason } => {
            require(task, event, &[Status::Dead])?;
            Ok(ended(Status::Pending)
                .set("reason", reason.as_deref().map(one_line))
                .forget(&["attempt", "returns", "rounds", "not_before"])
                .0)
        }
        Event::Reopen { reason } => {
            require(task, event, &[Status::Completed, Status::Cancelled])?;
            let forgotten =
                ["attempt", "returns", "rounds", "completed", "commit", "not_before", "author", "approvals"];
            Ok(ended(Status::Pending).forget(&forgotten).set("reason", reason.as_deref().map(one_line)).0)
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
            Ok(ended(Status::Cancelled)
                .set("reason", reason.as_deref().map(one_line))
                .forget(&["agent", "started", "not_before"])
                .0)
        }
    }
}

fn decide_claim(task: &Task, lease: Option<&Lease>, claim: &Claim, now: Timestamp) -> Result<Change, Refusal> {
    // A document that was saved from a stale buffer may say pending while somebody holds the task: the lease wins,
    // also a run-out one, until `tavern-reap` has looked after its holder.
    if let Some(lease) = lease {
        return Err(Refusal::Held { task: task.id.clone(), agent: lease.agent.clone(), until: lease.expires_at() });
    }
    let refused = Refusal::WrongStatus { task: task.id.clone(), status: task.status, event: Kind::Claimed };
    // While it is held, `attempt` counts this one too.
    let (to, attempt) = match (claim.purpose, task.status) {
        (Purpose::Work, Status::Pending) => (Status::InProgress, task.attempt + 1),
        // The answer is there, or the children have ended, which only who sees all items can know.
        (Purpose::Work, Status::Waiting) if task.commit.is_some() => return Err(refused),
        (Purpose::Work, Status::Waiting) if task.answered().is_some() || task.is_parked() => {
            (Status::InProgress, task.attempt + 1)
        }
        (Purpose::Review, Status::InReview) => (Status::Reviewing, task.attempt),
        (Purpose::Review, Status::Waiting) if task.commit.is_some() && task.answered().is_some() => {
            (Status::Reviewing, task.attempt)
        }
        (Purpose::Chat, Status::Draft | Status::Pending | Status::Waiting | Status::Dead) => {
            (Status::InProgress, task.attempt)
        }
        _ => return Err(refused),
    };
    if claim.purpose == Purpose::Review {
        may_review(task, &claim.agent)?;
    }
    let is_chat = claim.purpose == Purpose::Chat;
    // Whether all children have ended is known of a parked item only.
    let is_anew = claim.purpose == Purpose::Work && task.status == Status::Pending;
    let mode = if is_anew { unless_parked(task) } else { written_mode(task.mode) };
    let lease = Lease {
        task: task.id.clone(),
        queue: String::new(),
        agent: claim.agent.clone(),
        role: claim.role.clone(),
        token: claim.token,
        attempt: attempt.max(1),
        claimed_at: now,
        heartbeat_at: now,
        seconds: claim.seconds,
        holder: claim.holder.clone(),
        work: None,
        back_to: is_chat.then_some(task.status),
    };
    let change = ended(to)
        .set("mode", mode)
        .set("agent", Some(claim.agent.clone()))
        .set("attempt", positive(attempt))
        .set("started", Some(written(now)));
    let forgotten: &[&str] = match claim.purpose {
        Purpose::Work => &["not_before", "reason", "question", "answer", "answers", "commit", "author", "approvals"],
        Purpose::Review => &["not_before", "reason", "question", "answer", "answers"],
        Purpose::Chat => &[],
    };
    Ok(Change { lease: LeaseChange::Put(Box::new(lease)), ..change.forget(forgotten).0 })
}

/// No agent judges its own work, or the same work twice.
fn may_review(task: &Task, agent: &str) -> Result<(), Refusal> {
    let agent = agent.to_owned();
    if task.author.as_deref() == Some(&agent) {
        return Err(Refusal::OwnWork { task: task.id.clone(), agent });
    }
    if task.is_approved_by(&agent) {
        return Err(Refusal::SecondApproval { task: task.id.clone(), agent });
    }
    Ok(())
}

/// Whoever reviews may do so: an agent under its lease, a person while nobody else does.
fn reviewing(task: &Task, lease: Option<&Lease>, event: &Event, review: &Review) -> Result<(), Refusal> {
    match (review.token, lease) {
        (Some(token), lease) => {
            held(task, lease, event, token)?;
            require(task, event, &[Status::Reviewing])
        }
        (None, Some(lease)) => {
            Err(Refusal::Held { task: task.id.clone(), agent: lease.agent.clone(), until: lease.expires_at() })
        }
        (None, None) => require(task, event, &[Status::InReview]),
    }
}

fn decide_approval(
    task: &Task,
    lease: Option<&Lease>,
    event: &Event,
    review: &Review,
    commit: Option<&str>,
) -> Result<Change, Refusal> {
    reviewing(task, lease, event, review)?;
    let is_other = |stands: &str, reviewed: &str| !stands.starts_with(reviewed) && !reviewed.starts_with(stands);
    if let (Some(stands), Some(reviewed)) = (task.commit.as_deref(), commit)
        && is_other(stands, reviewed)
    {
        let (reviewed, stands) = (reviewed.to_owned(), stands.to_owned());
        return Err(Refusal::OtherCommit { task: task.id.clone(), reviewed, stands });
    }
    may_review(task, &review.by)?;
    let open = task.open_reviews(&review.reviewers);
    // A person may stand in for any reviewer.
    let stands_for = match open.first() {
        Some(first) if review.role == PERSON && !open.iter().any(|role| role == PERSON) => first,
        _ => &review.role,
    };
    let mut approvals = task.approvals.clone();
    approvals.push(format!("{stands_for}/{}", review.by));
    let after = Task { approvals: approvals.clone(), ..task.clone() };
    let to = if after.open_reviews(&review.reviewers).is_empty() { Status::Approved } else { Status::InReview };
    let approvals = Value::Sequence(approvals.into_iter().map(Value::from).collect());
    Ok(ended(to).set("approvals", Some(approvals)).forget(&["agent", "started", "reason", "returns", "not_before"]).0)
}

/// Back to where it can be taken again, or out of the queue when the bound is reached.
fn come_back(task: &Task, lease: Option<&Lease>, retry: &Retry, reason: &str) -> Change {
    if let Some(status) = lease.and_then(|lease| lease.back_to) {
        return ended(status).forget(&["agent", "started"]).0;
    }
    let is_review = task.status == Status::Reviewing;
    let is_last = retry.blame == Blame::Agent && task.attempt >= retry.most;
    let has_second_chance = is_last && !is_review && task.on_failure == OnFailure::Retry;
    let (to, attempt, returns) = match retry.blame {
        // A review that failed says nothing of the work: it is tried again, and in the end a person is asked.
        _ if is_review && task.returns + 1 >= retry.most => (Status::Waiting, task.attempt, task.returns + 1),
        _ if is_review => (Status::InReview, task.attempt, task.returns + 1),
        Blame::Agent if has_second_chance => (Status::Pending, 0, task.returns),
        Blame::Agent if is_last => (Status::Dead, task.attempt, task.returns),
        Blame::Agent => (Status::Pending, task.attempt, task.returns),
        Blame::Nobody if task.returns >= retry.most => (Status::Waiting, task.attempt.saturating_sub(1), task.returns),
        Blame::Nobody => (Status::Pending, task.attempt.saturating_sub(1), task.returns + 1),
    };
    let not_before = retry.not_before.filter(|_| matches!(to, Status::Pending | Status::InReview)).map(written);
    let change = ended(to)
        .set("mode", unless_parked(task))
        .set("attempt", positive(attempt))
        .set("returns", positive(returns))
        .set("not_before", not_before)
        .set("reason", Some(one_line(reason)))
        .forget(&["agent", "started"]);
    if has_second_chance { change.set("on_failure", Some(OnFailure::Escalate.as_str())).0 } else { change.0 }
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

/// As it stands in the queue, where execute goes without saying.
fn written_mode(mode: Mode) -> Option<&'static str> {
    (mode != Mode::Execute).then(|| mode.as_str())
}

/// The mode of an item that nobody holds from now on, and that waits for no children: what waits in mode unify is woken
/// by their end.
fn unless_parked(task: &Task) -> Option<&'static str> {
    written_mode(task.mode).filter(|_| task.mode != Mode::Unify)
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
    use crate::board::plan::Plan;

    const TOKEN: Token = 7;

    fn now() -> Timestamp {
        "2026-11-22T10:00:00Z".parse().expect("a time")
    }

    fn task(status: Status) -> Task {
        Task { status, attempt: 2, returns: 1, ..Task::new("T-k3f9".parse().expect("an ID"), "Do it") }
    }

    fn claim() -> Claim {
        let holder = Holder { host: "shire".into(), process: None };
        let purpose = Purpose::Work;
        Claim { agent: "Frodo".into(), role: "coder".into(), purpose, token: TOKEN, seconds: 120, holder }
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

    fn review(token: Option<Token>, by: &str) -> Review {
        let role = if token.is_some() { "reviewer" } else { PERSON };
        Review { token, by: by.into(), role: role.into(), reviewers: vec!["reviewer".into()] }
    }

    /// One event of each kind, as its rightful sender would send it.
    fn events() -> Vec<Event> {
        let work = Work { run: "r".into(), worktree: "w".into(), branch: None, base: None, session: None };
        let retry = retry(Blame::Agent, 3);
        let reason = String::from("because");
        vec![
            Event::Claim(claim()),
            Event::Start { token: TOKEN, work },
            Event::Submit { token: TOKEN, commit: Some("1a2b3c4".into()), reviewers: Vec::new() },
            Event::Approve { review: review(Some(TOKEN), "Sam"), commit: None },
            Event::Reject { review: review(Some(TOKEN), "Sam"), findings: "no".into(), most: 5 },
            Event::Plan { token: TOKEN, plan: Plan::default(), to: Status::Pending },
            Event::Park { token: TOKEN, children: vec!["T-k3f9.1".parse().expect("an ID")] },
            Event::Shift { token: TOKEN, mode: Mode::Plan },
            Event::Allow { by: "Rosie".into() },
            Event::Fail { token: TOKEN, retry, reason: reason.clone() },
            Event::Return { token: TOKEN, retry: Retry { blame: Blame::Nobody, ..retry }, reason: reason.clone() },
            Event::Withdraw { token: TOKEN, retry: Retry { blame: Blame::Nobody, ..retry }, reason: None },
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
            (InProgress | Reviewing, Kind::Started | Kind::Shifted) => Some(from),
            (InProgress, Kind::Submitted) => Some(Approved),
            (InProgress, Kind::Planned) => Some(Completed),
            (InProgress, Kind::Parked) => Some(Waiting),
            (Reviewing, Kind::Approved) => Some(Approved),
            (Reviewing, Kind::Rejected) => Some(Pending),
            (Draft, Kind::Allowed) => Some(Pending),
            (InProgress, Kind::Failed | Kind::Returned | Kind::Withdrawn | Kind::Reaped) => Some(Pending),
            (Reviewing, Kind::Failed | Kind::Returned | Kind::Withdrawn | Kind::Reaped) => Some(InReview),
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
            let back = if status == Status::Reviewing { Status::InReview } else { Status::Pending };
            // The supervisor died and its lease file with it, or not.
            for (lease, token) in [(None, None), (Some(lease()), Some(TOKEN))] {
                let (retry, reason) = (retry(Blame::Nobody, 20), "gone".into());
                let event = Event::Reap { token, life: Life::Gone, retry, reason };
                let change = decide(&task(status), lease.as_ref(), &event, now()).expect("reaped");
                assert_eq!((change.to, change.lease), (back, LeaseChange::Drop));
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
                Kind::Started
                    | Kind::Submitted
                    | Kind::Planned
                    | Kind::Parked
                    | Kind::Shifted
                    | Kind::Failed
                    | Kind::Returned
                    | Kind::Withdrawn
                    | Kind::Asked
                    | Kind::Reaped
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

    fn in_review(reviewers: &[&str]) -> Task {
        let event = Event::Submit {
            token: TOKEN,
            commit: Some("1a2b3c4d".into()),
            reviewers: reviewers.iter().map(|&name| name.to_owned()).collect(),
        };
        let change = decide(&task(Status::InProgress), Some(&lease()), &event, now()).expect("held");
        assert_eq!(change.to, Status::InReview);
        let author = change.patch.set.iter().find(|(key, _)| *key == "author").expect("it is set").1.clone();
        assert_eq!(author, Some("Frodo".into()));
        Task { author: Some("Frodo".into()), commit: Some("1a2b3c4d".into()), ..task(Status::InReview) }
    }

    fn reviews_by(agent: &str) -> Event {
        Event::Claim(Claim { agent: agent.into(), role: "reviewer".into(), purpose: Purpose::Review, ..claim() })
    }

    #[test]
    fn no_agent_reviews_its_own_work_or_the_same_work_twice() {
        let task = Task { approvals: vec!["reviewer/Sam".into()], ..in_review(&["2"]) };
        let refusal = |agent| decide(&task, None, &reviews_by(agent), now()).expect_err("refused");
        assert!(matches!(refusal("Frodo"), Refusal::OwnWork { .. }));
        assert!(matches!(refusal("Sam"), Refusal::SecondApproval { .. }));
        let change = decide(&task, None, &reviews_by("Merry"), now()).expect("he may");
        assert_eq!(change.to, Status::Reviewing);
        let attempt = change.patch.set.iter().find(|(key, _)| *key == "attempt").expect("it is set").1.clone();
        assert_eq!(attempt, Some(2.into()), "a review is no attempt of the coder's");
    }

    #[test]
    fn it_is_approved_when_all_have_approved_who_have_to() {
        let approve = |task: &Task, who: Review, commit: Option<&str>| {
            let lease = who.token.map(|_| Lease { agent: who.by.clone(), ..lease() });
            decide(task, lease.as_ref(), &Event::Approve { review: who, commit: commit.map(str::to_owned) }, now())
        };
        let who = |token, by, reviewers: &[&str]| Review {
            reviewers: reviewers.iter().map(|&name| name.to_owned()).collect(),
            ..review(token, by)
        };
        let fresh = in_review(&["reviewer"]);
        let held = Task { status: Status::Reviewing, ..fresh.clone() };
        for (task, who, commit, expected) in [
            (&held, who(Some(TOKEN), "Sam", &["reviewer"]), Some("1a2b3c4d"), Some(Status::Approved)),
            (&held, who(Some(TOKEN), "Sam", &["reviewer", "reviewer"]), None, Some(Status::InReview)),
            (&held, who(Some(TOKEN), "Sam", &["reviewer", PERSON]), None, Some(Status::InReview)),
            (&held, who(Some(TOKEN), "Sam", &["reviewer"]), Some("9999999"), None),
            (&fresh, who(None, "rosie", &[PERSON]), Some("1a2b3c4"), Some(Status::Approved)),
            (&fresh, who(None, "rosie", &["reviewer"]), None, Some(Status::Approved)),
            (&fresh, who(None, "rosie", &["reviewer", PERSON]), None, Some(Status::InReview)),
            (&held, who(None, "rosie", &[PERSON]), None, None),
        ] {
            let result = approve(task, who.clone(), commit);
            assert_eq!(result.as_ref().ok().map(|change| change.to), expected, "{who:?}: {result:?}");
        }
    }

    #[test]
    fn rounds_of_review_are_bounded_and_use_no_attempt() {
        let reject = |rounds| {
            let task = Task { rounds, status: Status::Reviewing, ..in_review(&["reviewer"]) };
            let event = Event::Reject { review: review(Some(TOKEN), "Sam"), findings: "a\nb".into(), most: 5 };
            let change = decide(&task, Some(&lease()), &event, now()).expect("held");
            let set = |key| change.patch.set.iter().find(|(name, _)| *name == key).expect("it is set").1.clone();
            assert_eq!((set("attempt"), set("commit")), (Some(1.into()), None));
            assert_eq!(set("reason"), Some("rejected by Sam: a b".into()));
            change.to
        };
        assert_eq!((reject(0), reject(3), reject(4)), (Status::Pending, Status::Pending, Status::Dead));
    }

    #[test]
    fn a_failed_review_is_no_rejection() {
        for (returns, to) in [(0, Status::InReview), (1, Status::InReview), (2, Status::Waiting)] {
            let task = Task { returns, status: Status::Reviewing, ..in_review(&["reviewer"]) };
            let event = Event::Fail { token: TOKEN, retry: retry(Blame::Agent, 3), reason: "crashed".into() };
            let change = decide(&task, Some(&lease()), &event, now()).expect("held");
            assert_eq!(change.to, to);
            assert!(!change.patch.set.iter().any(|(key, _)| matches!(*key, "commit" | "rounds" | "author")));
            let resumed = Task { status: Status::Waiting, ..task };
            let change = decide(&resumed, None, &Event::Resume { reason: None }, now()).expect("it waits");
            assert_eq!(change.to, Status::InReview, "what is in review goes back there");
        }
    }

    #[test]
    fn what_waits_is_claimed_when_it_is_answered_or_its_children_have_ended() {
        let waiting = task(Status::Waiting);
        let asked = Task { question: Some("red?".into()), ..waiting.clone() };
        let answered = Task { answer: Some("blue".into()), ..asked.clone() };
        let unifying = Task { mode: Mode::Unify, ..waiting.clone() };
        for (task, is_claimed) in [(&waiting, false), (&asked, false), (&answered, true), (&unifying, true)] {
            let to = decide(task, None, &Event::Claim(claim()), now()).ok().map(|change| change.to);
            assert_eq!(to, is_claimed.then_some(Status::InProgress), "{task:?}");
        }
    }

    #[test]
    fn only_a_parked_item_keeps_the_mode_that_wakes_it() {
        let unifying = |status| Task { mode: Mode::Unify, ..task(status) };
        let asked = Task { question: Some("red?".into()), answer: Some("blue".into()), ..unifying(Status::Waiting) };
        let back = |blame, most| Event::Return { token: TOKEN, retry: retry(blame, most), reason: "no".into() };
        let claim = Event::Claim(claim());
        for (task, lease, event, kept) in [
            (unifying(Status::Waiting), None, claim.clone(), true),
            (asked, None, claim.clone(), true),
            (unifying(Status::Pending), None, claim, false),
            (unifying(Status::Waiting), None, Event::Resume { reason: None }, false),
            (unifying(Status::InProgress), Some(lease()), back(Blame::Agent, 3), false),
            (unifying(Status::InProgress), Some(lease()), back(Blame::Nobody, 1), false),
        ] {
            let change = decide(&task, lease.as_ref(), &event, now()).expect("it may be");
            let mode = change.patch.set.iter().find(|(key, _)| *key == "mode").expect("it is set").1.clone();
            assert_eq!(mode.is_some(), kept, "{:?} of {}", event.kind(), task.status);
        }
    }

    #[test]
    fn a_chat_leaves_the_item_as_it_was() {
        let chat = Event::Claim(Claim { purpose: Purpose::Chat, ..claim() });
        for status in [Status::Draft, Status::Pending, Status::Waiting, Status::Dead] {
            let LeaseChange::Put(lease) = decide(&task(status), None, &chat, now()).expect("free").lease else {
                panic!("a claim puts a lease");
            };
            let held = task(Status::InProgress);
            let event = Event::Return { token: TOKEN, retry: retry(Blame::Nobody, 0), reason: "said".into() };
            let change = decide(&held, Some(&lease), &event, now()).expect("held");
            assert_eq!(change.to, status);
            assert!(!change.patch.set.iter().any(|(key, _)| matches!(*key, "attempt" | "returns" | "reason")));
        }
    }

    #[test]
    fn a_child_that_is_to_be_tried_again_gets_its_attempts_once_more() {
        let child = Task { on_failure: OnFailure::Retry, attempt: 3, ..task(Status::InProgress) };
        let event = Event::Fail { token: TOKEN, retry: retry(Blame::Agent, 3), reason: "no".into() };
        let change = decide(&child, Some(&lease()), &event, now()).expect("held");
        assert_eq!(change.to, Status::Pending);
        let set = |key| change.patch.set.iter().find(|(name, _)| *name == key).expect("it is set").1.clone();
        assert_eq!((set("attempt"), set("on_failure")), (None, Some("escalate".into())));
        let again = Task { on_failure: OnFailure::Escalate, ..child };
        assert_eq!(decide(&again, Some(&lease()), &event, now()).expect("held").to, Status::Dead);
    }

    #[test]
    fn a_start_that_needs_permission_is_allowed_once() {
        let asking = Task { approve: vec!["start".into()], ..task(Status::Pending) };
        let allow = Event::Allow { by: "rosie".into() };
        let change = decide(&asking, None, &allow, now()).expect("it waits for that");
        assert_eq!((change.to, change.patch.set), (Status::Pending, vec![("allowed", Some(true.into()))]));
        let allowed = Task { allowed: true, ..asking };
        assert!(matches!(decide(&allowed, None, &allow, now()), Err(Refusal::Unasked { .. })));
    }
}
