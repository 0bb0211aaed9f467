//! Which item an agent may take next: lane, role, dependencies, children, permission, back-off.

use super::document::{Document, Item};
use super::event::Purpose;
use super::task::{OnFailure, PERSON, Status, Task, TaskId, Timestamp};

/// The role of an item that names none, on a queue that names none.
pub const DEFAULT_ROLE: &str = "coder";

/// Who looks for an item.
#[derive(Clone, Copy, Debug)]
pub struct Seeker<'a> {
    pub agent: &'a str,
    pub role: &'a str,
    /// Its role looks at others' work.
    pub reviews: bool,
    /// Who has to approve the work on items and queues that don't say.
    pub reviewers: &'a [String],
}

/// What is known of other items, in any queue.
pub struct Others<'a> {
    pub status_of: &'a mut dyn FnMut(&TaskId) -> Option<Status>,
    pub children_of: &'a mut dyn FnMut(&TaskId) -> Vec<Child>,
}

/// An item that another is the parent of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    pub id: TaskId,
    pub status: Status,
    pub on_failure: OnFailure,
}

/// Why an item can't be taken now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    Quarantined,
    Status(Status),
    Role(String),
    BackOff(Timestamp),
    /// Its runner could do nothing with it.
    Unfit(String),
    /// Dependencies that are not completed, each with its status (`None`: no such item).
    Dependencies(Vec<(TaskId, Option<Status>)>),
    /// A person has to allow it first.
    Permission,
    /// A person has to approve the work.
    Approval,
    /// Others of that role have to review the work, not this one.
    Reviewer(String),
    /// Children that have not ended.
    Children(Vec<TaskId>),
    /// A child that failed, and is not to be gone on without.
    FailedChild(TaskId),
}

impl Why {
    /// No amount of work by agents makes it eligible: a person has to do something first.
    pub fn is_stuck(&self) -> bool {
        match self {
            Why::Quarantined | Why::Unfit(_) | Why::Permission | Why::Approval | Why::FailedChild(_) => true,
            Why::Dependencies(open) => open.iter().any(|(_, status)| {
                matches!(status, None | Some(Status::Dead | Status::Cancelled | Status::Draft | Status::Waiting))
            }),
            Why::Status(_) | Why::Role(_) | Why::BackOff(_) | Why::Reviewer(_) | Why::Children(_) => false,
        }
    }
}

/// The items of a document that may be waiting for an agent, most urgent first, in the order of the document within a
/// priority. Work in review goes first: it is nearest to its end.
pub fn in_order<'d, 't>(document: &'d Document<'t>) -> Vec<&'d Item<'t>> {
    let is_open = |status| matches!(status, Status::Pending | Status::InReview | Status::Waiting);
    let mut items: Vec<&Item<'_>> = document.items().iter().filter(|item| is_open(item.status)).collect();
    items.sort_by_key(|item| (item.status != Status::InReview, item.priority));
    items
}

/// What `seeker` may take `item` for at `now`, or why not.
pub fn may_take(
    document: &Document<'_>,
    item: &Item<'_>,
    seeker: &Seeker<'_>,
    now: Timestamp,
    others: &mut Others<'_>,
) -> Result<Purpose, Why> {
    if item.quarantined {
        return Err(Why::Quarantined);
    }
    match item.status {
        Status::Pending => {
            may_work(document, item, seeker)?;
            // Only an item of which keys stand somewhere can say more.
            let asks = item.metadata.is_some() || item.block.is_some() || !document.front().approve.is_empty();
            if asks && document.task_of(item).waits_for_permission() {
                return Err(Why::Permission);
            }
            depends_on(item, others)?;
            is_due(item, now)?;
            Ok(Purpose::Work)
        }
        Status::InReview => {
            may_review(&document.task_of(item), seeker)?;
            is_due(item, now)?;
            Ok(Purpose::Review)
        }
        Status::Waiting => {
            let task = document.task_of(item);
            let is_answered = task.answered().is_some();
            let is_in_review = task.state.work().is_some();
            if is_in_review && is_answered {
                may_review(&task, seeker)?;
                return Ok(Purpose::Review);
            }
            if is_in_review || (!is_answered && !task.state.is_parked()) {
                return Err(Why::Status(item.status));
            }
            may_work(document, item, seeker)?;
            if !is_answered {
                have_ended(&(others.children_of)(&task.id))?;
            }
            Ok(Purpose::Work)
        }
        status => Err(Why::Status(status)),
    }
}

fn may_work(document: &Document<'_>, item: &Item<'_>, seeker: &Seeker<'_>) -> Result<(), Why> {
    let wanted = item.role.as_deref().or(document.front().role.as_deref()).unwrap_or(DEFAULT_ROLE);
    // Whoever reviews takes others' work, and none to do.
    if wanted == seeker.role && !seeker.reviews { Ok(()) } else { Err(Why::Role(wanted.to_owned())) }
}

fn may_review(task: &Task, seeker: &Seeker<'_>) -> Result<(), Why> {
    let mut open = task.open_reviews(&task.reviewers(seeker.reviewers));
    if open.is_empty() {
        // A person has put it there: anybody whose role it is may look at it.
        open.push(super::task::REVIEWER.to_owned());
    }
    let is_own = task.author() == Some(seeker.agent) || task.is_approved_by(seeker.agent);
    if seeker.reviews && !is_own && open.iter().any(|role| role == seeker.role) {
        return Ok(());
    }
    match open.into_iter().find(|role| role != PERSON) {
        Some(role) => Err(Why::Reviewer(role)),
        None => Err(Why::Approval),
    }
}

fn depends_on(item: &Item<'_>, others: &mut Others<'_>) -> Result<(), Why> {
    let open: Vec<_> = item
        .after
        .iter()
        .map(|id| (id.clone(), (others.status_of)(id)))
        .filter(|(_, status)| *status != Some(Status::Completed))
        .collect();
    if open.is_empty() { Ok(()) } else { Err(Why::Dependencies(open)) }
}

fn have_ended(children: &[Child]) -> Result<(), Why> {
    let is_open = |child: &&Child| !child.status.is_ended();
    let has_failed = |child: &&Child| child.on_failure.keeps_waiting(child.status);
    if let Some(child) = children.iter().find(has_failed) {
        return Err(Why::FailedChild(child.id.clone()));
    }
    let open: Vec<TaskId> = children.iter().filter(is_open).map(|child| child.id.clone()).collect();
    if open.is_empty() { Ok(()) } else { Err(Why::Children(open)) }
}

fn is_due(item: &Item<'_>, now: Timestamp) -> Result<(), Why> {
    match item.not_before {
        Some(until) if until > now => Err(Why::BackOff(until)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::document::parse;

    const QUEUE: &str = "\
## Pending
- [ ] T-1: Plain
- [ ] T-2: Asks (approve: start)
- [ ] T-3: Allowed (approve: start, allowed: true)
- [ ] T-4: For others (role: drone)
- [ ] T-5: Behind (after: T-1)
- [ ] T-6: Later (not_before: 2026-11-23T10:00:00Z)
- [ ] T-7: For whom? (role: reviewer)
## In Review
- [ ] R-1: By Frodo (author: Frodo, commit: 1a2b3c4)
- [ ] R-2: Half approved (author: Frodo, commit: 1a2b3c4, review: 2, approvals: [reviewer/Sam])
- [ ] R-3: For a person (author: Frodo, commit: 1a2b3c4, review: person)
## Waiting
- [ ] W-1: Asks (question: red?)
- [ ] W-2: Answered (question: red?)
  Answer: blue
- [ ] W-3: Reviewer asks (commit: 1a2b3c4, author: Frodo, question: red?, answer: blue)
- [ ] W-4: Parent (mode: unify)
- [ ] W-5: Parent of open ones (mode: unify)
- [ ] W-6: Parent of a failed one (mode: unify)
- [ ] W-7: Given up on (reason: too often)
- [ ] W-8: Parent that asks (mode: unify, question: red?)
";

    #[test]
    fn each_seeker_may_take_its_own() {
        let (document, _) = parse(QUEUE);
        let now = "2026-11-22T10:00:00Z".parse().expect("a time");
        let id = |text: &str| text.parse::<TaskId>().expect("an ID");
        let child = |status, on_failure| Child { id: id("C-1"), status, on_failure };
        let general = vec!["reviewer".to_owned()];
        let take = |item: &str, agent: &str, role: &str| {
            let seeker = Seeker { agent, role, reviews: role == "reviewer", reviewers: &general };
            let mut others = Others {
                status_of: &mut |_| Some(Status::Pending),
                children_of: &mut |parent| match parent.as_str() {
                    "W-4" => vec![
                        child(Status::Completed, OnFailure::GoOn),
                        child(Status::Dead, OnFailure::GoOn),
                        child(Status::Cancelled, OnFailure::Escalate),
                    ],
                    "W-5" => vec![child(Status::Dead, OnFailure::GoOn), child(Status::Pending, OnFailure::GoOn)],
                    _ => vec![child(Status::Dead, OnFailure::Escalate)],
                },
            };
            may_take(&document, document.find(&id(item)).expect(item), &seeker, now, &mut others)
        };
        let coder = |item: &str| (item.to_owned(), "Frodo", "coder");
        let reviewer = |item: &str, agent| (item.to_owned(), agent, "reviewer");
        for ((item, agent, role), expected) in [
            (coder("T-1"), Ok(Purpose::Work)),
            (coder("T-2"), Err(Why::Permission)),
            (coder("T-3"), Ok(Purpose::Work)),
            (coder("T-4"), Err(Why::Role("drone".into()))),
            (coder("T-5"), Err(Why::Dependencies(vec![(id("T-1"), Some(Status::Pending))]))),
            (coder("T-6"), Err(Why::BackOff("2026-11-23T10:00:00Z".parse().expect("a time")))),
            (reviewer("T-1", "Sam"), Err(Why::Role("coder".into()))),
            (reviewer("T-7", "Sam"), Err(Why::Role("reviewer".into()))),
            (coder("R-1"), Err(Why::Reviewer("reviewer".into()))),
            (reviewer("R-1", "Sam"), Ok(Purpose::Review)),
            (reviewer("R-1", "Frodo"), Err(Why::Reviewer("reviewer".into()))),
            (reviewer("R-2", "Sam"), Err(Why::Reviewer("reviewer".into()))),
            (reviewer("R-2", "Merry"), Ok(Purpose::Review)),
            (reviewer("R-3", "Sam"), Err(Why::Approval)),
            (coder("W-1"), Err(Why::Status(Status::Waiting))),
            (coder("W-2"), Ok(Purpose::Work)),
            (coder("W-3"), Err(Why::Reviewer("reviewer".into()))),
            (reviewer("W-3", "Sam"), Ok(Purpose::Review)),
            (coder("W-4"), Ok(Purpose::Work)),
            (coder("W-5"), Err(Why::Children(vec![id("C-1")]))),
            (coder("W-6"), Err(Why::FailedChild(id("C-1")))),
            (coder("W-7"), Err(Why::Status(Status::Waiting))),
            (coder("W-8"), Err(Why::Status(Status::Waiting))),
        ] {
            assert_eq!(take(&item, agent, role), expected, "{item} for {agent}, {role}");
        }
    }
}
