//! What each item lacks to be worked on here and now. All that shows it asks here.
//!
//! Three things together: what is wrong with the texts of a board ([`check`]), what the board's rules say
//! ([`may_take`]), and what config.yaml and this machine are ([`Preflight`]).

use std::cell::{LazyCell, OnceCell};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use super::preflight::Preflight;
use super::site::Site;
use tavern_core::check::{Findings, check, first_of, is_sound};
use tavern_core::document::{Document, Item};
use tavern_core::eligible::{Lack, Others, Roles, Seeker, at_work, for_roles, may_take, of_own};
use tavern_core::status::Purpose;
use tavern_core::task::{Status, Task, TaskId};
use tavern_store::{Archived, Board, NamedItem, Queue, Text, children_in, homes};
use tavern_sys::clock;

/// All items of some documents, and what is known of each other's.
pub struct Readiness<'a, 't> {
    documents: &'a [(&'a str, &'a Document<'t>)],
    pub findings: Findings,
    /// Of all items; `None`: each is looked for.
    statuses: Option<HashMap<&'a TaskId, Status>>,
    archived: Option<Archived<'a>>,
    /// Those at work, once they were asked for.
    busy: OnceCell<Vec<Task>>,
    /// The roles, and what this machine has; nothing where settings can't be read, or of the past.
    here: Option<(Roles, Preflight<'a>)>,
}

/// An item that is not ended and in nobody's hands, and what it lacks; or a queue that can't be read, as line 0.
#[derive(Clone, Debug)]
pub struct Unready {
    pub queue: String,
    /// Counted from 1.
    pub line: usize,
    pub task: Option<TaskId>,
    /// With what tells it apart from others of its title.
    pub title: String,
    pub lacks: Vec<Lack>,
}

impl Unready {
    /// The ID, or the place.
    pub fn name(&self) -> String {
        self.task.as_ref().map_or_else(
            || format!("{}:{}", self.queue, self.line),
            ToString::to_string,
        )
    }

    /// What it says is an error: it can't be read, or names a runner that there is not.
    pub fn is_broken(&self) -> bool {
        self.lacks
            .iter()
            .any(|lack| matches!(lack, Lack::Problem { .. } | Lack::NoRunner(_)))
    }

    /// What to tell of first: what time and others' work don't bring.
    pub fn foremost(&self) -> &Lack {
        self.lacks
            .iter()
            .find(|lack| lack.is_stuck())
            .unwrap_or(&self.lacks[0])
    }
}

impl<'a, 't> Readiness<'a, 't> {
    /// Of `documents` by their names; `queues` are the IDs of theirs.
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
        // A copy is told of, and counts only where there is no item.
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

    /// To ask of this item only, in the document of that number, of `documents` by the IDs of their queues: no more of the documents is read than that takes.
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

    /// How many items of the queue are archived.
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

    /// The text of the item, by the places of its document and of itself, has a problem.
    pub fn is_faulty(&self, document: usize, item: usize) -> bool {
        let found = self.documents[document].1.item(item);
        found.quarantined && !found.aside
            || self.findings.quarantined.contains_key(&(document, item))
    }

    /// What the item lacks: nothing if it is ended or in somebody's hands. For `seeker`; `None`: for those whose role it is.
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
        // The steps of an item are part of it.
        let is_step = item.within.is_some() && item.id.is_none();
        let Some((roles, look)) = self.here.as_ref().filter(|_| !is_step) else {
            return problem.into_iter().collect();
        };
        if item.status.is_ended() && item.status != Status::Dead || item.status.is_held() {
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
        // What the rules say of what a mistake makes of it is no news.
        let taken = taken.err().map(|lack| lack.told_in(document));
        let taken = taken.filter(|lack| problem.is_none() || lack.is_of_settings());
        problem.into_iter().chain(taken).chain(missing).collect()
    }
}

/// The texts of `queues`, then those of the board's other queues, since items speak of each other; and what can't be read.
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

/// Of what lacks something, what no amount of agents' work frees; and how many of the others time or work may still free.
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

/// What one item of `queue` lacks, for those whose role it is.
pub fn lacks_of(site: &Site, queue: &Queue, name: &NamedItem) -> Vec<Lack> {
    let (texts, _) = texts(&site.board, std::slice::from_ref(queue));
    let documents: Vec<Document<'_>> = texts.iter().map(|text| text.content.open()).collect();
    let named = named(&texts, &documents);
    let lacks = || {
        let number = texts.iter().position(|text| text.queue == *queue)?;
        let index = name.index_in(queue, &documents[number])?;
        let readiness = Readiness::of_one(
            &named,
            &site.board,
            here(site),
            (number, documents[number].item(index)),
        );
        Some(readiness.lacks(number, index, None))
    };
    lacks().unwrap_or_default()
}

/// The documents of `texts` by the names of their queues.
fn named<'a>(texts: &'a [Text], documents: &'a [Document<'a>]) -> Vec<(&'a str, &'a Document<'a>)> {
    texts
        .iter()
        .map(|text| text.queue.id.as_str())
        .zip(documents)
        .collect()
}

fn here(site: &Site) -> (Roles, Preflight<'_>) {
    (site.config.known_roles(), Preflight::of(site))
}

/// All items of `queues` that lack something.
pub fn unready(site: &Site, queues: &[Queue], seeker: Option<&Seeker<'_>>) -> Vec<Unready> {
    let (texts, mut unready) = texts(&site.board, queues);
    unready.retain(|lost| queues.iter().any(|queue| queue.id == lost.queue));
    let documents: Vec<Document<'_>> = texts.iter().map(|text| text.content.parse().0).collect();
    let named = named(&texts, &documents);
    let ids: Vec<&str> = named.iter().map(|(queue, _)| *queue).collect();
    let readiness = Readiness::of(&named, &ids, Some(&site.board), Some(here(site)));
    let roles = site.config.known_roles();
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
