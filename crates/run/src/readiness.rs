//! The obstacles that keep each item from being worked now on this machine. Every display of it asks here.
//!
//! Combines three sources: errors in the board's texts ([`check`]), the board's rules ([`may_take`]), and config.yaml
//! and this machine ([`Preflight`]).

use std::cell::{LazyCell, OnceCell};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use super::preflight::Preflight;
use super::workspace::Workspace;
use tavern_core::check::{Findings, check, first_of, is_sound};
use tavern_core::document::{Document, Item};
use tavern_core::eligible::{Lack, Others, Roles, Seeker, at_work, for_roles, may_take, of_own};
use tavern_core::status::Purpose;
use tavern_core::task::{Status, Task, TaskId};
use tavern_store::{Archived, Board, NamedItem, Queue, Text, children_in, homes};
use tavern_sys::clock;

/// All items of some documents, with the status of each other.
pub struct Readiness<'a, 't> {
    documents: &'a [(&'a str, &'a Document<'t>)],
    pub findings: Findings,
    /// The status of every item; `None`: each is looked up.
    statuses: Option<HashMap<&'a TaskId, Status>>,
    archived: Option<Archived<'a>>,
    /// Items in progress, loaded on first use.
    busy: OnceCell<Vec<Task>>,
    /// The roles, and the look at this machine; `None` if the settings can't be read, or for a past state of the board.
    here: Option<(Roles, Preflight<'a>)>,
}

/// An item that is neither ended nor held, and its lacks; or an unreadable queue, with line 0.
#[derive(Clone, Debug)]
pub struct Unready {
    pub queue: String,
    /// Counted from 1.
    pub line: usize,
    pub task: Option<TaskId>,
    /// The title, made unique if other items share it.
    pub title: String,
    pub lacks: Vec<Lack>,
}

impl Unready {
    /// Returns the ID, or the queue and line.
    pub fn name(&self) -> String {
        self.task.as_ref().map_or_else(
            || format!("{}:{}", self.queue, self.line),
            ToString::to_string,
        )
    }

    /// Returns true if its text has an error, or names an unknown runner.
    pub fn is_broken(&self) -> bool {
        self.lacks
            .iter()
            .any(|lack| matches!(lack, Lack::Problem { .. } | Lack::NoRunner(_)))
    }

    /// Returns the lack to report first: one that neither time nor other items' work resolves.
    pub fn foremost(&self) -> &Lack {
        self.lacks
            .iter()
            .find(|lack| lack.is_stuck())
            .unwrap_or(&self.lacks[0])
    }
}

impl<'a, 't> Readiness<'a, 't> {
    /// Builds it for all items of `documents`, which are given with their names; `queues` are the IDs of their queues.
    pub fn of(
        documents: &'a [(&'a str, &'a Document<'t>)],
        queues: &[&str],
        board: Option<&'a Board>,
        here: Option<(Roles, Preflight<'a>)>,
    ) -> Readiness<'a, 't> {
        let archived = board.map(Archived::of);
        let homes = |places: BTreeMap<TaskId, Vec<usize>>| {
            let Some(board) = board else {
                return first_of(places);
            };
            let named = |places: Vec<usize>| {
                places
                    .into_iter()
                    .map(|place| queues[place].to_owned())
                    .collect()
            };
            let homes = homes(
                board,
                places
                    .into_iter()
                    .map(|(id, places)| (id, named(places)))
                    .collect(),
            );
            let place = |home: String| queues.iter().position(|queue| *queue == home);
            homes
                .unwrap_or_default()
                .into_iter()
                .filter_map(|(id, home)| Some((id, place(home)?)))
                .collect()
        };
        let findings = check(documents, &|id| archived.as_ref()?.status_of(id), &homes);
        let mut statuses = HashMap::new();
        // A copy counts only where the item itself does not exist.
        for is_copy in [false, true] {
            for (number, (_, document)) in documents.iter().enumerate() {
                for (index, item) in document.items().iter().enumerate() {
                    let Some(id) = &item.id else { continue };
                    if findings.copies.contains(&(number, index)) == is_copy {
                        statuses.entry(id).or_insert(item.status);
                    }
                }
            }
        }
        Readiness {
            documents,
            findings,
            statuses: Some(statuses),
            archived,
            busy: OnceCell::new(),
            here,
        }
    }

    /// Builds it for one item, given as document number and item; `documents` are named by queue ID. Reads no more of
    /// the documents than that needs.
    fn of_one(
        documents: &'a [(&'a str, &'a Document<'t>)],
        board: &'a Board,
        here: (Roles, Preflight<'a>),
        item: (usize, &Item<'_>),
    ) -> Readiness<'a, 't> {
        let archived = Archived::of(board);
        if !is_sound(documents, &|id| archived.status_of(id), item) {
            let queues: Vec<&str> = documents.iter().map(|(queue, _)| *queue).collect();
            return Readiness::of(documents, &queues, Some(board), Some(here));
        }
        let (findings, statuses) = (Findings::default(), None);
        Readiness {
            documents,
            findings,
            statuses,
            archived: Some(archived),
            busy: OnceCell::new(),
            here: Some(here),
        }
    }

    /// Returns how many items of the queue are archived.
    pub fn archived(&self, queue: &Queue) -> usize {
        self.archived
            .as_ref()
            .map_or(0, |archived| archived.count(queue))
    }

    fn status_of(&self, id: &TaskId) -> Option<Status> {
        let live = match &self.statuses {
            Some(statuses) => statuses.get(id).copied(),
            None => self
                .documents
                .iter()
                .find_map(|(_, document)| Some(document.find(id)?.status)),
        };
        live.or_else(|| self.archived.as_ref()?.status_of(id))
    }

    /// Returns true if the text of the item has a problem; both arguments are indices.
    pub fn is_faulty(&self, document: usize, item: usize) -> bool {
        let found = self.documents[document].1.item(item);
        found.quarantined && !found.aside
            || self.findings.quarantined.contains_key(&(document, item))
    }

    /// Returns the item's lacks; empty if it is ended or held. `seeker` is the agent that asks; `None` stands for
    /// agents of the item's role.
    pub fn lacks(&self, document: usize, item: usize, seeker: Option<&Seeker<'_>>) -> Vec<Lack> {
        let problem = self.findings.quarantined.get(&(document, item));
        let problem = problem.map(|(why, hint)| Lack::Problem {
            why: why.clone(),
            hint: Some(hint.clone()),
        });
        if self.findings.copies.contains(&(document, item)) {
            return problem.into_iter().collect();
        }
        let (queue, document) = self.documents[document];
        let item = document.item(item);
        if let Some(lack) = of_own(document, item) {
            return vec![lack];
        }
        if item.quarantined {
            return vec![Lack::Problem {
                why: "its text has a problem".to_owned(),
                hint: None,
            }];
        }
        // Steps are part of their item.
        let is_step = item.within.is_some() && item.id.is_none();
        let Some((roles, look)) = self.here.as_ref().filter(|_| !is_step) else {
            return problem.into_iter().collect();
        };
        if !item.status.is_unfinished() || item.status.is_held() {
            return problem.into_iter().collect();
        }
        let item = for_roles(document, item, roles);
        let item = item.as_ref();
        let anybody = Seeker {
            agent: "",
            role: None,
            roles,
        };
        let at_work = || {
            let all = || {
                self.documents
                    .iter()
                    .flat_map(|(_, document)| at_work(document))
                    .collect()
            };
            self.busy.get_or_init(all).as_slice()
        };
        let mut others = Others {
            at_work: &at_work,
            status_of: &mut |id| self.status_of(id),
            children_of: &mut |id| {
                self.documents
                    .iter()
                    .flat_map(|(_, document)| children_in(document, id))
                    .collect()
            },
        };
        let seeker = seeker.unwrap_or(&anybody);
        let taken = may_take(document, item, seeker, clock::now(), &mut others);
        let purpose = match (&taken, item.status) {
            (Ok(purpose), _) => Some(*purpose),
            (Err(lack), _) if lack.is_of_settings() => None,
            (Err(_), Status::Pending) => Some(Purpose::Work),
            (Err(_), Status::InReview) => Some(Purpose::Review),
            _ => None,
        };
        let missing =
            purpose.and_then(|purpose| look.ready(queue, document, item, purpose, None).err());
        // A faulty text also violates the board's rules; only the problem itself is reported.
        let taken = taken.err().map(|lack| lack.described_in(document));
        let taken = taken.filter(|lack| problem.is_none() || lack.is_of_settings());
        problem.into_iter().chain(taken).chain(missing).collect()
    }
}

/// Returns the texts of `queues`, then of the board's other queues, since items refer to each other; and the unreadable
/// ones.
pub fn texts(board: &Board, queues: &[Queue]) -> (Vec<Text>, Vec<Unready>) {
    let (mut texts, mut lost) = (Vec::new(), Vec::new());
    let others = board
        .queues()
        .unwrap_or_default()
        .into_iter()
        .filter(|queue| !queues.contains(queue));
    for queue in queues.iter().cloned().chain(others) {
        match board.read(&queue) {
            Ok(text) => texts.push(text),
            Err(error) => {
                let cause = error
                    .source()
                    .map(|cause| format!(": {cause}"))
                    .unwrap_or_default();
                let lacks = vec![Lack::Problem {
                    why: format!("{error}{cause}"),
                    hint: None,
                }];
                lost.push(Unready {
                    queue: queue.id,
                    line: 0,
                    task: None,
                    title: String::new(),
                    lacks,
                });
            }
        }
    }
    (texts, lost)
}

/// Splits off the items that no agent's work can unblock. Returns them, and how many others time or work may unblock.
pub fn stuck(unready: Vec<Unready>) -> (Vec<Unready>, usize) {
    use Lack::{BackOff, Children, Closed, Dependencies, Touches};
    let (stuck, others): (Vec<Unready>, Vec<Unready>) = unready
        .into_iter()
        .partition(|one| one.lacks.iter().any(Lack::is_stuck));
    let waits = |one: &&Unready| {
        let first = one.lacks.first();
        matches!(
            first,
            Some(BackOff(_) | Closed { .. } | Dependencies(_) | Children(_) | Touches { .. })
        )
    };
    let later = others.iter().filter(waits).count();
    (stuck, later)
}

/// Returns the lacks of one item of `queue`, for agents of its role.
pub fn lacks_of(workspace: &Workspace, queue: &Queue, name: &NamedItem) -> Vec<Lack> {
    let (texts, _) = texts(&workspace.board, std::slice::from_ref(queue));
    let documents: Vec<Document<'_>> = texts.iter().map(|text| text.content.open()).collect();
    let named = named(&texts, &documents);
    let lacks = || {
        let number = texts.iter().position(|text| text.queue == *queue)?;
        let index = name.index_in(queue, &documents[number])?;
        let readiness = Readiness::of_one(
            &named,
            &workspace.board,
            (
                workspace.config.known_roles(),
                Preflight::to_show(workspace),
            ),
            (number, documents[number].item(index)),
        );
        Some(readiness.lacks(number, index, None))
    };
    lacks().unwrap_or_default()
}

/// Pairs the documents of `texts` with the IDs of their queues.
fn named<'a>(texts: &'a [Text], documents: &'a [Document<'a>]) -> Vec<(&'a str, &'a Document<'a>)> {
    texts
        .iter()
        .map(|text| text.queue.id.as_str())
        .zip(documents)
        .collect()
}

fn here(workspace: &Workspace) -> (Roles, Preflight<'_>) {
    (workspace.config.known_roles(), Preflight::of(workspace))
}

/// Returns all items of `queues` that lack something.
pub fn unready(
    workspace: &Workspace,
    queues: &[Queue],
    seeker: Option<&Seeker<'_>>,
) -> Vec<Unready> {
    let (texts, mut unready) = texts(&workspace.board, queues);
    unready.retain(|lost| queues.iter().any(|queue| queue.id == lost.queue));
    let documents: Vec<Document<'_>> = texts.iter().map(|text| text.content.parse().0).collect();
    let named = named(&texts, &documents);
    let ids: Vec<&str> = named.iter().map(|(queue, _)| *queue).collect();
    let readiness = Readiness::of(&named, &ids, Some(&workspace.board), Some(here(workspace)));
    let roles = workspace.config.known_roles();
    for (number, text) in texts
        .iter()
        .enumerate()
        .filter(|(_, text)| queues.contains(&text.queue))
    {
        let apart = LazyCell::new(|| documents[number].apart());
        for (index, item) in documents[number].items().iter().enumerate() {
            let lacks = readiness.lacks(number, index, seeker);
            if !lacks.is_empty() {
                let title = documents[number].title(&for_roles(&documents[number], item, &roles));
                let title = apart.get(&index).cloned().unwrap_or_default() + title;
                let (queue, task) = (text.queue.id.clone(), item.id.clone());
                unready.push(Unready {
                    queue,
                    line: item.line,
                    task,
                    title,
                    lacks,
                });
            }
        }
    }
    unready
}
