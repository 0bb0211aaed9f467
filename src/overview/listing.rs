//! The queues of a board with their items and what of them waits for a person, as plain values.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::need::{self, Need};
use crate::{CliError, hints};
use tavern_core::document::Item;
use tavern_core::eligible::{Lack, for_roles};
use tavern_core::need::NeedKind;
use tavern_core::problem::{Problem, Severity};
use tavern_core::steps::Steps;
use tavern_core::task::{Mode, Status, TaskId, Timestamp};
use tavern_run::readiness::Readiness;
use tavern_run::{Preflight, Site};
use tavern_store::{Board, Queue, tail_log};
use tavern_sys::clock;

use super::next::next;
use super::queue_read::QueueRead;
use super::since::StandingSince;

/// An item that is due so soon is told of.
const NEAR: chrono::TimeDelta = chrono::TimeDelta::days(1);

/// Which items are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedItems<'a> {
    /// Those that somebody may wonder about.
    Unusual,
    /// All that are not done, the dead too; of those nobody asks since when they stand so.
    Open,
    /// The same, and those that are done.
    Every,
    /// Those with one of these statuses; of none, all.
    Each(&'a [Status]),
}

/// Queues and items, in the order in which they were asked for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Listing {
    pub queues: Vec<QueueLine>,
    pub items: Vec<ItemLine>,
    pub needs: Vec<NeedLine>,
    /// Since when items stand so is known.
    #[serde(skip)]
    pub has_ages: bool,
}

/// A queue, and how many items it has of each status.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct QueueLine {
    pub queue: String,
    pub items: BTreeMap<&'static str, usize>,
    pub quarantined: usize,
    /// Pending items that no agent can take as config.yaml is.
    pub unfit: usize,
    pub archived: usize,
    /// The same as `items`, in the order of the lanes.
    #[serde(skip)]
    pub counts: Vec<(&'static str, usize)>,
    /// The longest name of its items.
    #[serde(skip)]
    pub width: usize,
}

/// An item, and whether it could be worked.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ItemLine {
    pub queue: String,
    pub line: usize,
    pub task: Option<TaskId>,
    pub status: Status,
    pub priority: u8,
    pub title: String,
    /// When it is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    pub quarantined: bool,
    /// The first thing that is wrong with its text.
    #[serde(skip)]
    pub problem: Option<String>,
    /// Since when it has the status, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// An agent may take it now.
    pub ready: bool,
    /// The role whose agents take it before all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_for: Option<String>,
    /// What it waits for: others' work, a time, a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// What it would need here and now, and is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// What its holder does with it, or will.
    pub mode: Mode,
    /// How far its steps are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
    /// It is due soon, or was.
    #[serde(skip)]
    pub is_due: bool,
    /// No agent can take it as config.yaml is.
    #[serde(skip)]
    pub is_unfit: bool,
    /// What tells it apart from others of its title.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub above: String,
}

/// One item that waits for a person.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct NeedLine {
    pub queue: String,
    pub line: usize,
    pub task: Option<TaskId>,
    #[serde(flatten)]
    pub need: Need,
}

impl NeedLine {
    /// In a line: who waits, for what, and what to type.
    pub fn words(&self) -> String {
        need::sentence(
            &format!("{}:{}", self.queue, self.line),
            self.task.as_ref(),
            &self.need,
        )
    }
}

impl ItemLine {
    /// Its ID, or its place.
    pub fn name(&self) -> String {
        self.task.as_ref().map_or_else(
            || format!("{}:{}", self.queue, self.line),
            ToString::to_string,
        )
    }

    /// It stands as most items do.
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
    /// Somebody has said which items are to be listed.
    pub fn is_asked_for(self) -> bool {
        self != WantedItems::Unusual
    }
}

impl Listing {
    /// The items of `queues`, whose texts come first; the others are looked at for what items say of each other. What items need here
    /// is looked at only of the present, of which there is a `site`.
    pub fn gather(
        board: &Board,
        read: &[QueueRead<'_>],
        queues: &[Queue],
        site: Option<&Site>,
        wanted: WantedItems<'_>,
    ) -> Result<Listing, CliError> {
        let (mut listing, now) = (Listing::default(), clock::now());
        let roles = site.map(|site| site.config.known_roles());
        let shown = read
            .iter()
            .filter(|read| queues.contains(&read.text.queue))
            .count();
        let named: Vec<_> = read
            .iter()
            .map(|read| (read.text.queue.id.as_str(), &read.document))
            .collect();
        let here = site.map(|site| (site.config.known_roles(), Preflight::of(site)));
        let ids: Vec<&str> = named.iter().map(|(id, _)| *id).collect();
        let readiness = Readiness::of(&named, &ids, Some(board), here);
        let of_document = |number: usize| {
            let items = 0..read[number].document.items().len();
            items
                .map(|index| readiness.lacks(number, index, None))
                .collect()
        };
        let all_lacks: Vec<Vec<Vec<Lack>>> = (0..shown).map(of_document).collect();
        let next = site
            .map(|site| next(site, read, &all_lacks))
            .unwrap_or_default();
        // Without a flag the items that somebody may wonder about; a queue of ten thousand stays one screen.
        let has_ages = matches!(wanted, WantedItems::Each(_)) && site.is_some();
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
                if let Some(need) = need::of(&lacks[index], reason().as_deref(), task, &queue.id) {
                    listing.needs.push(NeedLine {
                        queue: queue.id.clone(),
                        line,
                        task: task.cloned(),
                        need,
                    });
                }
                // What a person has to do is told of below.
                let is_told = |lack: &&Lack| lack.is_stuck() && NeedKind::of(lack).is_none();
                let lack = lacks[index].iter().find(is_told);
                let is_faulty = readiness.is_faulty(number, index);
                let is_unfit = lack.is_some_and(Lack::is_of_settings);
                let is_due = item
                    .due
                    .is_some_and(|due| !item.status.is_ended() && due - now < NEAR);
                let is_shown = match wanted {
                    // What an item waits for is listed by itself.
                    WantedItems::Unusual if is_usual(item.status) => {
                        is_due
                            || lack.is_some_and(|lack| {
                                !is_unfit && !is_faulty && !matches!(lack, Lack::Dependencies(_))
                            })
                    }
                    WantedItems::Unusual => true,
                    WantedItems::Open => {
                        (!item.status.is_ended() || item.status == Status::Dead) && !item.aside
                    }
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
                    ready: site.is_some() && may_be_taken && lacks[index].is_empty(),
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

/// The first thing that is wrong with the text of an item: of its document's problems, else of what others say of it.
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
