//! A board's queues with their items and needs for a person, as plain values.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::needs::{self, Need};
use crate::{CliError, hints};
use tavern_core::document::Item;
use tavern_core::eligible::{Lack, for_roles};
use tavern_core::need::NeedKind;
use tavern_core::problem::{Problem, Severity};
use tavern_core::steps::Steps;
use tavern_core::task::{Mode, Status, TaskId, Timestamp};
use tavern_run::readiness::Readiness;
use tavern_run::{Preflight, Workspace};
use tavern_store::{Board, Queue, tail_log};
use tavern_sys::clock;

use super::next::next;
use super::queue_read::QueueRead;
use super::since::StandingSince;

/// Items that are due within this time are pointed out.
const NEAR: chrono::TimeDelta = chrono::TimeDelta::days(1);

/// Which items are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedItems<'a> {
    /// Items that stand out.
    Unusual,
    /// All unfinished items, dead ones too, without the age of their status.
    Open,
    /// The same, and finished items.
    Every,
    /// Items with one of these statuses; all if empty.
    Each(&'a [Status]),
}

/// Queues and items, in the requested order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Listing {
    pub queues: Vec<QueueLine>,
    pub items: Vec<ItemLine>,
    pub needs: Vec<NeedLine>,
    /// Whether items have the age of their status.
    #[serde(skip)]
    pub has_ages: bool,
}

/// A queue, and its number of items by status.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct QueueLine {
    pub queue: String,
    pub items: BTreeMap<&'static str, usize>,
    pub quarantined: usize,
    /// Pending items that no agent can take with this config.yaml.
    pub unfit: usize,
    pub archived: usize,
    /// The counts of `items`, in the order of lanes.
    #[serde(skip)]
    pub counts: Vec<(&'static str, usize)>,
    /// Width of the longest item name.
    #[serde(skip)]
    pub width: usize,
}

/// An item, and whether it can be worked.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ItemLine {
    pub queue: String,
    pub line: usize,
    pub task: Option<TaskId>,
    pub status: Status,
    pub priority: u8,
    pub title: String,
    /// Due time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    pub quarantined: bool,
    /// The first problem of its text.
    #[serde(skip)]
    pub problem: Option<String>,
    /// Time since which it has its status, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Whether an agent can take it now.
    pub ready: bool,
    /// The role that takes it before all other items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_for: Option<String>,
    /// Reason why it waits: other items, a time, a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// A missing requirement for working it here and now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// Mode in which its holder works it, or will.
    pub mode: Mode,
    /// Progress of its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
    /// Whether it is due soon or overdue.
    #[serde(skip)]
    pub is_due: bool,
    /// Whether no agent can take it with this config.yaml.
    #[serde(skip)]
    pub is_unfit: bool,
    /// Context that distinguishes it from items of the same title.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub above: String,
}

/// An item that waits for a person.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct NeedLine {
    pub queue: String,
    pub line: usize,
    pub task: Option<TaskId>,
    /// The item's title.
    pub title: String,
    #[serde(flatten)]
    pub need: Need,
}

impl NeedLine {
    /// Returns one line with the item, its need, and the command to type.
    pub fn words(&self) -> String {
        needs::sentence(
            &format!("{}:{}", self.queue, self.line),
            self.task.as_ref(),
            &self.need,
        )
    }
}

impl ItemLine {
    /// Returns its ID, or else its place.
    pub fn name(&self) -> String {
        self.task.as_ref().map_or_else(
            || format!("{}:{}", self.queue, self.line),
            ToString::to_string,
        )
    }

    /// Returns true if its status is pending, draft, completed or cancelled.
    pub fn is_usual(&self) -> bool {
        is_usual(self.status)
    }
}

fn is_usual(status: Status) -> bool {
    matches!(
        status,
        Status::Pending | Status::Draft | Status::Completed | Status::Cancelled
    )
}

impl WantedItems<'_> {
    /// Returns true if the user has selected the items to list.
    pub fn is_asked_for(self) -> bool {
        self != WantedItems::Unusual
    }
}

impl Listing {
    /// Lists the items of `queues`, which come first in `read`; the other texts serve for references between items.
    /// Requirements are checked only for the present, when there is a `workspace`.
    pub fn gather(
        board: &Board,
        read: &[QueueRead<'_>],
        queues: &[Queue],
        workspace: Option<&Workspace>,
        wanted: WantedItems<'_>,
    ) -> Result<Listing, CliError> {
        let (mut listing, now) = (Listing::default(), clock::now());
        let roles = workspace.map(|workspace| workspace.config.known_roles());
        let shown = read
            .iter()
            .filter(|read| queues.contains(&read.text.queue))
            .count();
        let named: Vec<_> = read
            .iter()
            .map(|read| (read.text.queue.id.as_str(), &read.document))
            .collect();
        let here = workspace.map(|workspace| {
            (
                workspace.config.known_roles(),
                Preflight::to_show(workspace),
            )
        });
        let ids: Vec<&str> = named.iter().map(|(id, _)| *id).collect();
        let readiness = Readiness::of(&named, &ids, Some(board), here);
        let of_document = |number: usize| {
            let items = 0..read[number].document.items().len();
            items
                .map(|index| readiness.lacks(number, index, None))
                .collect()
        };
        let all_lacks: Vec<Vec<Vec<Lack>>> = (0..shown).map(of_document).collect();
        let next = workspace
            .map(|workspace| next(workspace, read, &all_lacks))
            .unwrap_or_default();
        // Without a flag only items that stand out are listed, so that a queue of ten thousand fits a screen.
        let has_ages = matches!(wanted, WantedItems::Each(_)) && workspace.is_some();
        let entries = if has_ages {
            tail_log(board, 0)?
        } else {
            Vec::new()
        };
        let standing = has_ages.then(|| StandingSince::after(&entries));
        listing.has_ages = has_ages;
        for (number, queue_read) in read[..shown].iter().enumerate() {
            let QueueRead {
                text,
                document,
                problems,
            } = queue_read;
            let queue = &text.queue;
            let counts = document.counts();
            let items = || document.items().iter().enumerate();
            let quarantined = items()
                .filter(|(index, _)| readiness.is_faulty(number, *index))
                .count();
            let lacks = &all_lacks[number];
            let unfit = lacks
                .iter()
                .filter(|lacks| lacks.iter().any(Lack::is_of_settings))
                .count();
            let width = items()
                .map(|(_, item)| match &item.id {
                    Some(id) => id.as_str().chars().count(),
                    None => format!("{}:{}", queue.id, item.line).chars().count(),
                })
                .max()
                .unwrap_or_default()
                .max(8);
            listing.queues.push(QueueLine {
                queue: queue.id.clone(),
                items: counts.iter().copied().collect(),
                quarantined,
                unfit,
                archived: readiness.archived(queue),
                counts,
                width,
            });
            let apart = LazyCell::new(|| document.apart());
            for (index, item) in items() {
                let (line, task) = (item.line, item.id.as_ref());
                let reason = || {
                    let id = task.filter(|_| item.status == Status::Dead)?;
                    document.task(item, id.clone()).reason().map(str::to_owned)
                };
                let need = needs::of(&lacks[index], reason().as_deref(), task, &queue.id);
                if let Some(mut need) = need {
                    let of_text = || problem(item, problems, lacks[index].first());
                    if need.need == NeedKind::Problem
                        && let Some(words) = of_text()
                    {
                        need.why = words;
                    }
                    listing.needs.push(NeedLine {
                        queue: queue.id.clone(),
                        line,
                        task: task.cloned(),
                        title: document.title(item).to_owned(),
                        need,
                    });
                }
                // Needs for a person are listed below.
                let is_told = |lack: &&Lack| lack.is_stuck() && NeedKind::of_any(lack).is_none();
                let lack = lacks[index].iter().find(is_told);
                let is_faulty = readiness.is_faulty(number, index);
                let is_unfit = lack.is_some_and(Lack::is_of_settings);
                let is_due = item
                    .due
                    .is_some_and(|due| !item.status.is_ended() && due - now < NEAR);
                let is_shown = match wanted {
                    // An item's dependencies are listed by themselves.
                    WantedItems::Unusual if is_usual(item.status) => {
                        is_due
                            || lack.is_some_and(|lack| {
                                !is_unfit && !is_faulty && !matches!(lack, Lack::Dependencies(_))
                            })
                    }
                    WantedItems::Unusual => true,
                    WantedItems::Open => item.status.is_unfinished() && !item.aside,
                    WantedItems::Every => !item.aside,
                    WantedItems::Each(statuses) => {
                        statuses.is_empty() || statuses.contains(&item.status)
                    }
                };
                if !is_shown {
                    continue;
                }
                let titled = roles.as_ref().map_or(Cow::Borrowed(item), |roles| {
                    for_roles(document, item, roles)
                });
                let mode = task.map_or(Mode::Execute, |id| document.task(item, id.clone()).mode());
                let not_ready = lack.map(|lack| hints::sentence(lack, task, Some(&queue.id)));
                let may_be_taken = matches!(
                    item.status,
                    Status::Pending | Status::InReview | Status::Waiting
                );
                let waits = lacks[index]
                    .first()
                    .filter(|_| may_be_taken && not_ready.is_none());
                listing.items.push(ItemLine {
                    queue: queue.id.clone(),
                    line,
                    task: task.cloned(),
                    status: item.status,
                    priority: item.priority,
                    title: document.title(&titled).to_owned(),
                    due: item.due,
                    quarantined: is_faulty,
                    problem: is_faulty
                        .then(|| problem(item, problems, lacks[index].first()))
                        .flatten(),
                    since: standing
                        .as_ref()
                        .and_then(|standing| standing.of(board, text, document, item)),
                    ready: workspace.is_some() && may_be_taken && lacks[index].is_empty(),
                    next_for: next.get(&(number, index)).cloned(),
                    waits_for: waits.map(hints::lacking),
                    not_ready,
                    mode,
                    steps: Steps::of(&document.description(item)),
                    is_due,
                    is_unfit,
                    above: apart.get(&index).cloned().unwrap_or_default(),
                });
            }
        }
        Ok(listing)
    }
}

/// Returns the first problem of an item's text: one of its document, else `lack`.
fn problem(item: &Item<'_>, problems: &[Problem], lack: Option<&Lack>) -> Option<String> {
    let is_its = |problem: &&Problem| {
        problem.severity == Severity::Error && item.span.contains(&problem.span.start)
    };
    let own = problems
        .iter()
        .filter(is_its)
        .min_by_key(|problem| problem.span.start);
    own.map(|problem| problem.message.clone())
        .or_else(|| lack.map(ToString::to_string))
}
