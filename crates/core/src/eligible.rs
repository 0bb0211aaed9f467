//! Which item an agent may take next: lane, role, dependencies, children, permission, back-off.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::cap::{CapScope, CapUse, Measure};
use super::document::{Document, Item, meaning_of_mark};
use super::problem::listed;
use super::status::Purpose;
use super::task::{OnFailure, PERSON, Status, Task, TaskId, Timestamp};
use super::touches::shared;
use crate::suggestion;

/// Role of an item when neither the item nor its queue sets one.
pub const DEFAULT_ROLE: &str = "coder";

/// The configured roles, by purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// Roles that work on items or plan them.
    pub working: Vec<String>,
    /// Roles that review work.
    pub reviewing: Vec<String>,
    /// Default reviewers of items and queues that name none.
    pub approving: Vec<String>,
}

/// The agent that looks for an item.
#[derive(Clone, Copy, Debug)]
pub struct Seeker<'a> {
    pub agent: &'a str,
    /// `None`: any role.
    pub role: Option<&'a str>,
    pub roles: &'a Roles,
}

/// Access to the other items, in any queue.
pub struct Others<'a> {
    pub status_of: &'a mut dyn FnMut(&TaskId) -> Option<Status>,
    pub children_of: &'a mut dyn FnMut(&TaskId) -> Vec<ChildItem>,
    /// The items [`at_work`].
    pub at_work: &'a dyn Fn() -> &'a [Task],
}

/// A child of another item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildItem {
    pub id: TaskId,
    pub status: Status,
    pub on_failure: OnFailure,
}

/// The reason why an item can't be worked on now; every program shows this one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The item's text has a problem, or its queue can't be read. `hint` says how to fix it, where known.
    Problem {
        why: String,
        hint: Option<String>,
    },
    Status(Status),
    /// Held by the named holder, which is no agent of this board.
    Held(String),
    /// The item belongs to a person.
    Aside,
    /// The title is struck out or commented out, by this mark.
    LeftOut(&'static str),
    /// The item's question waits for an answer.
    Answer(String),
    /// The item was returned too often, for this reason.
    Release(String),
    Role(String),
    BackOff(Timestamp),
    /// The runner is closed until then: by its provider's limit, or by a key that only a person can fix.
    Closed {
        runner: String,
        until: Timestamp,
        needs_person: bool,
    },
    /// Dependencies that are not completed, by ID or title, each with its status (`None`: no such item).
    Dependencies(Vec<(String, Option<Status>)>),
    /// The dependency is a line with a custom mark of its owner.
    OwnDependency {
        name: String,
        mark: String,
    },
    /// A person has to allow the item first.
    Permission,
    /// A person has to approve the work.
    Approval,
    /// The queue says approved, but the log does not; holds the queue's words.
    Unapproved(String),
    /// The work needs reviewers of this role, not the seeker.
    Reviewer(String),
    /// Children that have not ended.
    Children(Vec<TaskId>),
    /// An item that is [`at_work`] may change the same paths, such as this one.
    Touches {
        task: TaskId,
        path: String,
    },
    /// A failed child that the parent must not continue without.
    FailedChild(TaskId),
    /// config.yaml has no such role.
    NoRole(String),
    /// Agents of this role only review.
    OnlyReviews(String),
    /// config.yaml has no such runner.
    NoRunner(String),
    /// The review needs this role, but no agent with it reviews.
    NoReviewer(String),
    /// The runner runs the item's own `sh` block, but the item has none.
    NoScript {
        runner: String,
        role: String,
        /// Required indent of a block that stands at another one.
        indent: Option<usize>,
    },
    /// The runner of the reviewing role can't review.
    NoJudge {
        runner: String,
        role: String,
    },
    /// A program that a `done_when` command starts with is missing.
    Program {
        program: String,
        command: String,
    },
    /// Another process moved the integration branch to `tip`; Tavern had it at `known`.
    ForeignTip {
        branch: String,
        tip: String,
        known: String,
    },
    /// The base was reset, amended or rebased, and the integration branch still has the dropped commits.
    Rewritten {
        base: String,
        /// The integration branch.
        branch: String,
        /// The newest known tip of the base before that.
        dropped: String,
        /// Number of dropped commits, and the subject of the last one.
        count: usize,
        subject: String,
    },
    /// A cap of the item, queue, day, drain or board is reached.
    Capped {
        scope: CapScope,
        measure: Measure,
        used: String,
    },
    /// Another requirement of this machine is missing, such as the item's own runner.
    NotReady(NotReady),
    /// Git brought the item, or the settings that would run it.
    NotTrusted(Untrusted),
}

/// Untrusted files and items: nothing of them is run or sent to an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", .doubt.words(), listed(.what))]
pub struct Untrusted {
    /// Files of the board, and items.
    pub what: Vec<String>,
    pub doubt: Doubt,
}

/// Origin of untrusted text; where several apply, the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    ByGit,
    /// The text is in a file outside of the repository, so its author is unknown.
    FromOutside,
    /// The text was changed since it was claimed.
    Since,
}

impl Doubt {
    fn words(self) -> &'static str {
        match self {
            Doubt::ByGit => "untrusted changes from git",
            Doubt::FromOutside => "untrusted text from outside this repository",
            Doubt::Since => "untrusted changes since it was claimed",
        }
    }
}

/// Why a runner can't be used, or why nothing can be started here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotReady {
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl From<std::io::Error> for NotReady {
    fn from(error: std::io::Error) -> NotReady {
        NotReady {
            message: format!("can't start the agent: {error}"),
            hint: None,
        }
    }
}

impl NotReady {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> NotReady {
        NotReady {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

/// Returns where a program is searched for, in words. A name with a `/` is searched for only there.
pub fn place_of(program: &str) -> &'static str {
    if program.contains('/') {
        "there"
    } else {
        "on PATH"
    }
}

impl From<CapUse> for Lack {
    fn from(reached: CapUse) -> Lack {
        Lack::Capped {
            scope: reached.scope,
            measure: reached.measure,
            used: reached.to_string(),
        }
    }
}

impl Lack {
    /// Returns true if no work by agents makes the item eligible: a person has to act first.
    pub fn is_stuck(&self) -> bool {
        match self {
            Lack::Closed { needs_person, .. } => *needs_person,
            Lack::Dependencies(open) => open.iter().any(|(_, status)| {
                matches!(
                    status,
                    None | Some(Status::Dead | Status::Cancelled | Status::Draft | Status::Waiting)
                )
            }),
            // An answer may take as long as the person likes, and a person's own item waits for nothing.
            Lack::Status(_)
            | Lack::Aside
            | Lack::LeftOut(_)
            | Lack::Held(_)
            | Lack::Answer(_)
            | Lack::Release(_)
            | Lack::Role(_)
            | Lack::BackOff(_)
            | Lack::Reviewer(_)
            | Lack::Touches { .. }
            | Lack::Children(_) => false,
            _ => true,
        }
    }

    /// Returns a more exact reason within `document`: a dependency may be a line with its owner's mark.
    pub fn described_in(self, document: &Document<'_>) -> Lack {
        let own = match &self {
            Lack::Dependencies(open) => open
                .iter()
                .find_map(|(name, _)| own_dependency(document, name)),
            _ => None,
        };
        own.unwrap_or(self)
    }

    /// Returns true if the reason is config.yaml, the item's text or this machine, which no other item or
    /// answer changes.
    pub fn is_of_here(&self) -> bool {
        use Lack::{NoJudge, NoReviewer, NotReady, NotTrusted, Program};
        let is_here = matches!(
            self,
            NoReviewer(_) | NoJudge { .. } | Program { .. } | NotReady(_) | NotTrusted(_)
        );
        self.is_of_settings() || is_here
    }

    /// Returns true if config.yaml or the item's text keeps every agent from the item.
    pub fn is_of_settings(&self) -> bool {
        matches!(
            self,
            Lack::NoRole(_) | Lack::OnlyReviews(_) | Lack::NoRunner(_) | Lack::NoScript { .. }
        )
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Problem { why, .. } | Lack::Release(why) | Lack::Unapproved(why) => {
                f.write_str(why)
            }
            Lack::NotReady(not_ready) => write!(f, "{not_ready}"),
            Lack::Capped { used, .. } => f.write_str(used),
            Lack::NotTrusted(untrusted) => write!(f, "{untrusted}"),
            Lack::ForeignTip { branch, tip, .. } => {
                write!(f, "`{branch}` was moved to {tip}, but not by Tavern or you")
            }
            Lack::Rewritten {
                base,
                branch,
                dropped,
                count,
                subject,
            } => {
                let commits = if *count == 1 {
                    "a commit".to_owned()
                } else {
                    format!("{count} commits")
                };
                write!(
                    f,
                    "`{base}` was rewritten, and `{branch}` still has {commits} that it dropped, {dropped} {subject}"
                )
            }
            Lack::Status(status) => write!(f, "it is {status}"),
            Lack::Held(agent) => write!(f, "it is held by {agent}"),
            Lack::Aside => f.write_str("its place marks it as a person's own"),
            Lack::LeftOut(mark) => write!(f, "it is {}", meaning_of_mark(mark)),
            Lack::OwnDependency { name, mark } => write!(f, "it {}", waits_for_own(name, mark)),
            Lack::Answer(question) => write!(f, "it asks: {question}"),
            Lack::Role(role) => write!(f, "it is for role {role}"),
            Lack::BackOff(_) => f.write_str("it may be taken later"),
            Lack::Closed { runner, .. } => write!(f, "runner `{runner}` is closed"),
            Lack::Dependencies(open) => {
                let status = |status: &Option<Status>| status.map_or("unknown", Status::as_str);
                let names: Vec<String> = open
                    .iter()
                    .map(|(id, at)| format!("{id} ({})", status(at)))
                    .collect();
                write!(f, "it waits for {}", names.join(", "))
            }
            Lack::Permission => f.write_str("a person has to allow it to start"),
            Lack::Approval => f.write_str("a person has to approve its work"),
            Lack::Reviewer(role) => write!(f, "it waits for a {role}"),
            Lack::Children(open) => {
                let names: Vec<&str> = open.iter().map(TaskId::as_str).collect();
                write!(f, "it waits for its children {}", names.join(", "))
            }
            Lack::Touches { task, path } => write!(
                f,
                "it waits until {task}, which touches `{path}` too, is merged"
            ),
            Lack::FailedChild(child) => write!(f, "its child {child} failed"),
            Lack::NoRole(role) => write!(f, "role `{role}` is not in config.yaml"),
            Lack::OnlyReviews(role) => write!(f, "agents of role `{role}` only review"),
            Lack::NoReviewer(role) => write!(f, "no role `{role}` reviews"),
            Lack::NoRunner(runner) => write!(f, "runner `{runner}` is not in config.yaml"),
            Lack::NoScript { runner, indent, .. } => {
                let blanks = indent.map(|count| format!(" behind {count} blanks"));
                let blanks = blanks.unwrap_or_default();
                write!(
                    f,
                    "it has no ```sh block{blanks}, which the runner `{runner}` needs"
                )
            }
            Lack::NoJudge { runner, role } => {
                write!(
                    f,
                    "it waits for a {role}, but the runner `{runner}` of this role can't review"
                )
            }
            Lack::Program { program, .. } => {
                write!(
                    f,
                    "its done_when needs `{program}`, which is not {}",
                    place_of(program)
                )
            }
        }
    }
}

/// Returns the indices of the items that may wait for an agent, most urgent first. Reviews come first, as
/// they are nearest to their end. Then priority, due time and the order in the document decide.
pub fn in_order(document: &Document<'_>) -> Vec<usize> {
    let due = |at| document.due_at(at).unwrap_or(Timestamp::MAX_UTC);
    let rank = |at| match document.status_at(at) {
        Status::InReview => Some((0, document.priority_at(at), due(at), at)),
        Status::Pending | Status::Waiting => Some((1, document.priority_at(at), due(at), at)),
        _ => None,
    };
    let mut ranks = Vec::with_capacity(document.count());
    ranks.extend((0..document.count()).filter_map(rank));
    ranks.sort_unstable();
    ranks.into_iter().map(|(.., at)| at).collect()
}

/// Returns the item as these roles read it. `(role: admin)` is part of the title if no program wrote the line
/// and no role has that name or a similar one.
pub fn for_roles<'i, 't>(
    document: &Document<'t>,
    item: &'i Item<'t>,
    roles: &Roles,
) -> Cow<'i, Item<'t>> {
    let known = || {
        roles
            .working
            .iter()
            .chain(&roles.reviewing)
            .map(String::as_str)
    };
    let is_of_none = |role: &str| suggestion::nearest(role, known()).is_none();
    let is_title = item.role.as_deref().is_some_and(is_of_none);
    let titled = if is_title {
        with_role_in_title(document, item)
    } else {
        None
    };
    titled.map_or(Cow::Borrowed(item), Cow::Owned)
}

/// Returns the item with its role as part of its title, if it may be read so.
pub fn with_role_in_title<'t>(document: &Document<'t>, item: &Item<'t>) -> Option<Item<'t>> {
    let may_be = item.role.is_some() && item.id.is_none() && document.has_one_key(item);
    may_be.then(|| item.with_keys_in_title())
}

/// Returns the purpose for which `seeker` may take `item` at `now`, or the reason why not.
pub fn may_take(
    document: &Document<'_>,
    item: &Item<'_>,
    seeker: &Seeker<'_>,
    now: Timestamp,
    others: &mut Others<'_>,
) -> Result<Purpose, Lack> {
    if let Some(lack) = of_own(document, item) {
        return Err(lack);
    }
    if item.quarantined {
        return Err(Lack::Problem {
            why: "its text has a problem".to_owned(),
            hint: None,
        });
    }
    if document.front().is_broken {
        return Err(Lack::Problem {
            why: "the front matter of its queue has a problem".to_owned(),
            hint: None,
        });
    }
    match item.status {
        Status::Pending => {
            may_work(document, item, seeker)?;
            // Only an item with keys can change the answer.
            let asks = item.metadata.is_some()
                || item.block.is_some()
                || !document.front().approve.is_empty();
            let task = asks.then(|| document.task_of(item));
            if task.as_ref().is_some_and(Task::waits_for_permission) {
                return Err(Lack::Permission);
            }
            depends_on(document, item, others)?;
            is_due(item, now)?;
            task.map_or(Ok(()), |task| {
                is_apart(&task, document.parent_of(item), others)
            })?;
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
            if !is_answered && let Some(question) = task.question() {
                return Err(Lack::Answer(question.to_owned()));
            }
            if is_in_review || (!is_answered && !task.state.is_parked()) {
                return Err(Lack::Release(
                    task.reason().unwrap_or("it waits for a person").to_owned(),
                ));
            }
            may_work(document, item, seeker)?;
            if !is_answered {
                have_ended(&(others.children_of)(&task.id))?;
            }
            Ok(Purpose::Work)
        }
        // The person it waits for may have forgotten the schedule.
        Status::Draft if item.metadata.is_some() || item.block.is_some() => Err(document
            .task_of(item)
            .queued_for
            .map_or(Lack::Status(Status::Draft), |time| {
                Lack::Release(format!("a schedule queued it as a draft, for {time}"))
            })),
        status => Err(Lack::Status(status)),
    }
}

/// Returns the reason why no agent works on an item that belongs to a person.
pub fn of_own(document: &Document<'_>, item: &Item<'_>) -> Option<Lack> {
    item.aside
        .then(|| document.left_out(item).map_or(Lack::Aside, Lack::LeftOut))
}

fn may_work(document: &Document<'_>, item: &Item<'_>, seeker: &Seeker<'_>) -> Result<(), Lack> {
    let wanted = item
        .role
        .as_deref()
        .or(document.front().role.as_deref())
        .unwrap_or(DEFAULT_ROLE);
    let is_in = |roles: &[String]| roles.iter().any(|role| role == wanted);
    match seeker.role {
        _ if is_in(&seeker.roles.reviewing) => Err(Lack::OnlyReviews(wanted.to_owned())),
        _ if !is_in(&seeker.roles.working) => Err(Lack::NoRole(wanted.to_owned())),
        Some(role) if role != wanted => Err(Lack::Role(wanted.to_owned())),
        _ => Ok(()),
    }
}

fn may_review(task: &Task, seeker: &Seeker<'_>) -> Result<(), Lack> {
    let mut open = task.open_reviews(&task.reviewers(&seeker.roles.approving));
    if open.is_empty() {
        // A person moved it to review, so any reviewing role may review it.
        open.push(super::task::REVIEWER.to_owned());
    }
    let is_known = |role: &String| role == PERSON || seeker.roles.reviewing.contains(role);
    if let Some(role) = open.iter().find(|role| !is_known(role)) {
        return Err(Lack::NoReviewer(role.clone()));
    }
    let is_own = task.author() == Some(seeker.agent) || task.is_approved_by(seeker.agent);
    match (seeker.role, open.iter().find(|role| *role != PERSON)) {
        (Some(own), Some(_)) if !is_own && open.iter().any(|role| role == own) => Ok(()),
        (Some(_), Some(role)) => Err(Lack::Reviewer(role.clone())),
        (None, _) if !open.iter().any(|role| role == PERSON) => Ok(()),
        _ => Err(Lack::Approval),
    }
}

fn depends_on(
    document: &Document<'_>,
    item: &Item<'_>,
    others: &mut Others<'_>,
) -> Result<(), Lack> {
    let problem = |name| Lack::Problem {
        why: no_such_item(document, item, name),
        hint: None,
    };
    let named = document
        .named_by(item)
        .map_err(|name| own_dependency(document, name).unwrap_or_else(|| problem(name)))?;
    let named: Vec<&Item<'_>> = named.into_iter().map(|at| document.item(at)).collect();
    let (named, nameless): (Vec<&Item<'_>>, Vec<_>) =
        named.into_iter().partition(|item| item.id.is_some());
    let ids = item
        .after
        .iter()
        .chain(named.iter().filter_map(|item| item.id.as_ref()));
    let by_id = ids.map(|id| (id.to_string(), (others.status_of)(id)));
    let by_title = nameless
        .into_iter()
        .map(|item| (document.title(item).to_owned(), Some(item.status)));
    let open: Vec<_> = by_id
        .chain(by_title)
        .filter(|(_, status)| *status != Some(Status::Completed))
        .collect();
    if open.is_empty() {
        Ok(())
    } else {
        Err(Lack::Dependencies(open))
    }
}

/// Returns the message for a dependency that names no known item.
pub(super) fn no_such_item(document: &Document<'_>, item: &Item<'_>, name: &str) -> String {
    if name.is_empty()
        && let Some(unnamed) = document.names_nothing(item)
    {
        return format!("`{}` names no item to wait for", &document.text()[unnamed]);
    }
    format!(
        "there is no item `{}` to wait for, or more than one",
        name.trim()
    )
}

fn own_dependency(document: &Document<'_>, name: &str) -> Option<Lack> {
    let mark = document.own_mark(name)?.to_owned();
    Some(Lack::OwnDependency {
        name: name.trim_matches(['~', ' ']).to_owned(),
        mark,
    })
}

/// Returns the message for a dependency on a line that is skipped because of this mark.
pub(super) fn waits_for_own(name: &str, mark: &str) -> String {
    format!(
        "waits for `{name}`, which is {} (`{mark}`)",
        meaning_of_mark(mark)
    )
}

/// Hint for a dependency on such a line.
pub const OWN_DEPENDENCY: &str = "if it is done write `[x]` there, else remove it from `after`";

/// Checks that no other item at work touches the same paths. The parent is exempt, as it handed the item out.
fn is_apart(task: &Task, parent: Option<&TaskId>, others: &Others<'_>) -> Result<(), Lack> {
    if task.touches.is_empty() {
        return Ok(());
    }
    let mut strangers = (others.at_work)()
        .iter()
        .filter(|other| Some(&other.id) != parent);
    let shares = |other: &Task| {
        Some((
            other.id.clone(),
            shared(&task.touches, &other.touches)?.to_owned(),
        ))
    };
    strangers
        .find_map(shares)
        .map_or(Ok(()), |(task, path)| Err(Lack::Touches { task, path }))
}

/// Returns the items with `touches` that are worked on, in review, or wait for their merge.
pub fn at_work(document: &Document<'_>) -> Vec<Task> {
    let is_at_work = |at: &usize| {
        matches!(
            document.status_at(*at),
            Status::InProgress | Status::InReview | Status::Reviewing | Status::Approved
        )
    };
    let tasks = (0..document.count())
        .filter(is_at_work)
        .map(|at| document.task_of(document.item(at)));
    tasks.filter(|task| !task.touches.is_empty()).collect()
}

fn have_ended(children: &[ChildItem]) -> Result<(), Lack> {
    let is_open = |child: &&ChildItem| !child.status.is_ended();
    let has_failed = |child: &&ChildItem| child.on_failure.keeps_waiting(child.status);
    if let Some(child) = children.iter().find(has_failed) {
        return Err(Lack::FailedChild(child.id.clone()));
    }
    let open: Vec<TaskId> = children
        .iter()
        .filter(is_open)
        .map(|child| child.id.clone())
        .collect();
    if open.is_empty() {
        Ok(())
    } else {
        Err(Lack::Children(open))
    }
}

fn is_due(item: &Item<'_>, now: Timestamp) -> Result<(), Lack> {
    match item.not_before {
        Some(until) if until > now => Err(Lack::BackOff(until)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_with_states::with_states;

    #[test]
    fn what_waits_or_is_in_review_says_what_it_lacks() {
        let roles = Roles {
            working: vec!["coder".into()],
            reviewing: vec!["reviewer".into()],
            ..Roles::default()
        };
        let seeker = Seeker {
            agent: "",
            role: None,
            roles: &roles,
        };
        let child = ChildItem {
            id: TaskId::nobody(),
            status: Status::Pending,
            on_failure: OnFailure::GoOn,
        };
        for (keys, expected) in [
            (
                "status: in_review, commit: 1a2b3c4, review: wizzard",
                Err(Lack::NoReviewer("wizzard".into())),
            ),
            (
                "status: waiting, commit: 1a2b3c4, question: red?, answer: blue",
                Ok(Purpose::Review),
            ),
            (
                "status: waiting, reason: too often",
                Err(Lack::Release("too often".into())),
            ),
            (
                "status: waiting, mode: unify",
                Err(Lack::Children(vec![TaskId::nobody()])),
            ),
            (
                "status: waiting, mode: unify, question: red?",
                Err(Lack::Answer("red?".into())),
            ),
        ] {
            let document = with_states(&format!("- [ ] T-1: a ({keys})\n"));
            let children = &mut |_: &TaskId| vec![child.clone()];
            let mut others = Others {
                status_of: &mut |_| None,
                children_of: children,
                at_work: &|| &[],
            };
            let now = Timestamp::UNIX_EPOCH;
            assert_eq!(
                may_take(&document, &document.items()[0], &seeker, now, &mut others),
                expected,
                "{keys}"
            );
        }
    }
}
