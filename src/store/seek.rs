//! Who looks for work, where, and why there is none for them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde::Serialize;

use super::error::Error;
use super::find::Board;
use super::queue::Queue;
use super::shelf::{Shelf, children, statuses};
use crate::board::document::{Document, Item, parse};
use crate::board::eligible::{Others, Seeker, Why, in_order, may_take};
use crate::board::event::Purpose;
use crate::board::lease::Holder;
use crate::board::task::{Status, TaskId, Timestamp};

/// Who looks for work, and where.
#[derive(Clone, Debug)]
pub struct Seek {
    pub agent: String,
    pub role: String,
    /// Its role looks at others' work.
    pub reviews: bool,
    /// Who has to approve the work on items and queues that don't say.
    pub reviewers: Vec<String>,
    /// A person sits down with the agent on `task`, whatever its status is.
    pub is_chat: bool,
    /// Looked at in this order; work in the first that has some is taken.
    pub queues: Vec<Queue>,
    /// Only this task, if it may be taken.
    pub task: Option<TaskId>,
    /// Length of the lease in seconds.
    pub seconds: u32,
    pub holder: Holder,
    /// The runner of items and queues that name none.
    pub runner: String,
    /// The runner of all items, whatever they name.
    pub only_runner: Option<String>,
    /// Runners that a provider's limit has closed, with its end: their items are in back-off until then.
    pub closed: Vec<(String, Timestamp)>,
    /// Runners that run an item's own `sh` block and can do nothing with an item that has none.
    pub scripted: Vec<String>,
}

/// Why there is nothing to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nothing {
    /// The earliest end of a back-off.
    pub wake_at: Option<Timestamp>,
    /// Pending items of the role that time or others' work may still free: in back-off, or behind items not ended.
    pub later: usize,
    /// Items for other roles, or for others of this role, by role.
    pub elsewhere: BTreeMap<String, usize>,
    /// Items that only a person can free.
    pub stuck: Vec<Stuck>,
    /// Items in somebody's hands.
    pub under_way: usize,
}

/// An item that no amount of agents' work makes eligible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stuck {
    pub queue: String,
    /// Counted from 1; 0 for the queue as a whole.
    pub line: usize,
    pub task: Option<TaskId>,
    pub why: String,
}

impl Seek {
    pub(super) fn seeker(&self) -> Seeker<'_> {
        Seeker { agent: &self.agent, role: &self.role, reviews: self.reviews, reviewers: &self.reviewers }
    }

    /// Calls `visit` with each item of a queue that may be waiting for somebody, and what it may be taken for or why not,
    /// until `visit` comes to something.
    pub(super) fn look<T>(
        &self,
        shelf: &Shelf<'_>,
        queue: &Queue,
        document: &Document<'_>,
        now: Timestamp,
        visit: &mut dyn FnMut(&Item<'_>, Result<Purpose, Why>) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        // Made when a dependency is first asked for: to search the items for each would take a long queue's square.
        let own = OnceCell::new();
        let mut status_of = |id: &TaskId| {
            let own = own.get_or_init(|| statuses(document));
            own.get(id).copied().or_else(|| shelf.status_of(id, queue)).or_else(|| shelf.archived(id))
        };
        let mut children_of = |parent: &TaskId| [children(document, parent), shelf.children_of(parent, queue)].concat();
        let mut others = Others { status_of: &mut status_of, children_of: &mut children_of };
        for item in in_order(document) {
            if self.task.is_some() && item.id != self.task {
                continue;
            }
            let open = may_take(document, item, &self.seeker(), now, &mut others);
            let open = open.and_then(|purpose| self.is_fit(document, item, purpose).map(|()| purpose));
            if let Some(found) = visit(item, open)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Can its program do something with the item now?
    pub(super) fn is_fit(&self, document: &Document<'_>, item: &Item, purpose: Purpose) -> Result<(), Why> {
        let placeholder = "T-0".parse().expect("it is an ID");
        // What runs the work says nothing of what looks at it.
        let own = || document.task(item, placeholder).runner.filter(|_| purpose == Purpose::Work);
        let named = || own().unwrap_or_else(|| self.runner.clone());
        let runner = self.only_runner.clone().unwrap_or_else(named);
        if let Some((_, until)) = self.closed.iter().find(|(closed, _)| *closed == runner) {
            return Err(Why::BackOff(*until));
        }
        if self.scripted.contains(&runner) && purpose == Purpose::Review {
            return Err(Why::Unfit(format!(
                "runner `{runner}` can't judge work: name another for the role {}",
                self.role
            )));
        }
        if self.scripted.contains(&runner) && document.shell(item).is_none() {
            let why = format!("it has no ```sh block for runner `{runner}`; add one, or use --runner claude");
            return Err(Why::Unfit(why));
        }
        Ok(())
    }
}

impl Nothing {
    pub(super) fn count(&mut self, queue: &Queue, item: &Item<'_>, why: &Why) {
        if why.is_stuck() {
            let why = match why {
                Why::Dependencies(open) => {
                    let status = |status: &Option<Status>| status.map_or("unknown", Status::as_str);
                    let names: Vec<String> = open.iter().map(|(id, at)| format!("{id} ({})", status(at))).collect();
                    format!("it depends on {}", names.join(", "))
                }
                Why::Unfit(why) => why.clone(),
                Why::Permission => format!("a person has to allow it: tavern-report {} --approve", name(item)),
                Why::Approval => format!("a person has to approve it: tavern-report {} --approve", name(item)),
                Why::FailedChild(child) => format!("its child {child} failed: tavern-release {child} --revive"),
                _ => "its text has a problem: tavern-check".to_owned(),
            };
            self.stuck.push(Stuck { queue: queue.id.clone(), line: item.line, task: item.id.clone(), why });
            return;
        }
        match why {
            Why::Role(role) | Why::Reviewer(role) => {
                *self.elsewhere.entry(role.clone()).or_default() += 1;
                return;
            }
            // It waits for an answer, or as long as a person likes.
            Why::Status(_) => return,
            _ => {}
        }
        self.later += 1;
        if let Why::BackOff(until) = why {
            self.wake_at = Some(self.wake_at.map_or(*until, |earlier| earlier.min(*until)));
        }
    }
}

fn name(item: &Item<'_>) -> String {
    item.id.as_ref().map_or_else(|| "ID".to_owned(), ToString::to_string)
}

impl Board {
    /// Is there something that `seek` could take, now or when a back-off is over? Takes nothing, and no lock.
    pub fn has_work_for(&self, seek: &Seek, now: Timestamp) -> bool {
        let shelf = Shelf::of(self);
        // A queue that can't be read has no work for anybody.
        let texts = seek.queues.iter().filter_map(|queue| Some((queue, self.read(queue).ok()?)));
        texts.into_iter().any(|(queue, text)| {
            let (document, _) = parse(&text.content);
            let found = seek.look(&shelf, queue, &document, now, &mut |_, open| {
                Ok(matches!(open, Ok(_) | Err(Why::BackOff(_))).then_some(()))
            });
            found.is_ok_and(|found| found.is_some())
        })
    }
}
