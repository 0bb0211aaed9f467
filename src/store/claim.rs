//! Taking the next item: what may be taken, and what a claim would take.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde::Serialize;

use super::error::Error;
use super::find::Board;
use super::queue::{Queue, Text};
use super::shelf::{Shelf, children, mint, statuses};
use super::submit::{Locked, Note, Step};
use crate::board::document::{Document, Item, parse};
use crate::board::eligible::{Others, Seeker, Why, in_order, may_take};
use crate::board::event::{Claim, Event, Purpose};
use crate::board::lease::{Holder, Lease, Token};
use crate::board::task::{Status, Task, TaskId, Timestamp};

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

/// Whether an item may be taken as far as the world around it is concerned; why not makes it a stuck one. It is asked while
/// the lock is held, so it must be quick and wait for nobody.
pub type IsReady<'r> = dyn Fn(&Document<'_>, &Item<'_>) -> Result<(), String> + 'r;

/// A task in the caller's hands.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub queue: Queue,
    pub task: Task,
    pub lease: Lease,
    /// The item's `sh` block, for the shell runner.
    pub script: Option<String>,
    /// It was worked on or spoken of before: the log may have more of it.
    pub has_history: bool,
}

/// What a claim would take, before it is taken.
#[derive(Clone, Debug)]
pub struct Foreseen {
    pub held: Claimed,
    /// Counted from 1.
    pub line: usize,
    /// Else the claim draws one, and the one in `held` is none of the board's.
    pub has_id: bool,
    /// Else what was saved by hand is logged before, and takes the token in `held` and maybe others.
    pub has_token: bool,
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

impl Board {
    /// Takes the next eligible item under a lease: one compare-and-set under the lock, never pick, then mark. For a chat
    /// the named one, whatever its status is.
    pub fn claim(&self, seek: &Seek, now: Timestamp) -> Result<Result<Claimed, Nothing>, Error> {
        self.claim_if(seek, now, &|_, _| Ok(()))
    }

    /// As [`Board::claim`], of those that `is_ready` agrees to.
    pub fn claim_if(
        &self,
        seek: &Seek,
        now: Timestamp,
        is_ready: &IsReady<'_>,
    ) -> Result<Result<Claimed, Nothing>, Error> {
        let mut locked = Locked::new(self, now)?;
        let token = locked.seq + 1;
        look(self, seek, now, is_ready, Board::read_settled, |text, document, item, purpose| {
            let (event, note) = seek.event(purpose, token);
            let id = name(self, text, document, item);
            let step = Step { text, document, item, id, event: &event, note: &note, now };
            let done = locked.transition(step)?;
            Ok(Some(claimed(text, document, item, done.task, done.lease)))
        })
    }

    /// What [`Board::claim_if`] would take now, without taking it and without the lock.
    pub fn foresee_claim(
        &self,
        seek: &Seek,
        now: Timestamp,
        is_ready: &IsReady<'_>,
    ) -> Result<Result<Foreseen, Nothing>, Error> {
        let token = self.last_seq(now)? + 1;
        look(self, seek, now, is_ready, Board::read, |text, document, item, purpose| {
            let (event, note) = seek.event(purpose, token);
            let id = name(self, text, document, item);
            let planned = Step { text, document, item, id, event: &event, note: &note, now }.plan(self)?;
            let held = claimed(text, document, item, planned.task, planned.lease);
            let has_token = self.by_hand()?.is_empty();
            Ok(Some(Foreseen { held, line: item.line, has_id: item.id.is_some(), has_token }))
        })
    }

    /// Is there something that `seek` could take, now or when a back-off is over? Takes nothing, and no lock.
    pub fn has_work_for(&self, seek: &Seek, now: Timestamp) -> bool {
        let (open, nothing) = self.open_for(seek, now);
        open > 0 || nothing.wake_at.is_some()
    }

    /// How many items `seek` could take now, and what keeps it from the others. Takes nothing, and no lock.
    pub fn open_for(&self, seek: &Seek, now: Timestamp) -> (usize, Nothing) {
        let mut open = 0;
        let counted = look(self, seek, now, &|_, _| Ok(()), Board::read, |_, _, _, _| {
            open += 1;
            Ok(None::<()>)
        });
        // What can't be read is nobody's work.
        (open, counted.unwrap_or_else(|_| Err(Nothing::default())).expect_err("none is taken"))
    }
}

/// Gives `take` each item that may be taken until it takes one; each queue is read by `read`.
fn look<R>(
    board: &Board,
    seek: &Seek,
    now: Timestamp,
    is_ready: &IsReady<'_>,
    read: fn(&Board, &Queue) -> Result<Text, Error>,
    mut take: impl FnMut(&Text, &Document<'_>, &Item<'_>, Purpose) -> Result<Option<R>, Error>,
) -> Result<Result<R, Nothing>, Error> {
    let shelf = Shelf::of(board);
    let mut nothing = Nothing::default();
    for queue in &seek.queues {
        let text = match read(board, queue) {
            Ok(text) => text,
            Err(error) if seek.queues.len() == 1 => return Err(error),
            // One queue that can't be read keeps nobody from working on the others.
            Err(error) => {
                nothing.stuck.push(Stuck { queue: queue.id.clone(), line: 0, task: None, why: error.to_string() });
                continue;
            }
        };
        let (document, _) = parse(&text.content);
        // Made when a dependency is first asked for: to search the items for each would take a long queue's square.
        let own = OnceCell::new();
        let mut status_of = |id: &TaskId| {
            let own = own.get_or_init(|| statuses(&document));
            own.get(id).copied().or_else(|| shelf.status_of(id, queue)).or_else(|| shelf.archived(id))
        };
        let mut children_of =
            |parent: &TaskId| [children(&document, parent), shelf.children_of(parent, queue)].concat();
        let mut others = Others { status_of: &mut status_of, children_of: &mut children_of };
        if let (Some(task), true) = (&seek.task, seek.is_chat) {
            match document.find(task) {
                Some(item) => return Ok(take(&text, &document, item, Purpose::Chat)?.ok_or(nothing)),
                None => continue,
            }
        }
        nothing.under_way += document.items().iter().filter(|item| item.status.is_held()).count();
        for item in in_order(&document) {
            if seek.task.is_some() && item.id != seek.task {
                continue;
            }
            let open = may_take(&document, item, &seek.seeker(), now, &mut others);
            let fit = open.and_then(|purpose| seek.is_fit(&document, item, purpose).map(|()| purpose));
            match fit.and_then(|purpose| is_ready(&document, item).map(|()| purpose).map_err(Why::Unfit)) {
                // A lease for a pending item: a stale copy of the queue was saved over it; its holder keeps it.
                Ok(_) if is_leased(board, item)? => nothing.under_way += 1,
                Ok(_) if is_double(&document, item, &|id| shelf.status_of(id, queue).is_some()) => {
                    nothing.count(queue, item, &Why::Quarantined);
                }
                Ok(purpose) => {
                    if let Some(taken) = take(&text, &document, item, purpose)? {
                        return Ok(Ok(taken));
                    }
                }
                Err(why) => nothing.count(queue, item, &why),
            }
        }
    }
    Ok(Err(nothing))
}

/// Its ID, else a fresh one.
fn name(board: &Board, text: &Text, document: &Document<'_>, item: &Item<'_>) -> TaskId {
    let shelf = Shelf::of(board);
    let mut is_taken = |id: &TaskId| document.find(id).is_some() || shelf.knows(id, &text.queue);
    item.id.clone().unwrap_or_else(|| mint(&mut is_taken))
}

fn claimed(text: &Text, document: &Document<'_>, item: &Item<'_>, task: Task, lease: Option<Lease>) -> Claimed {
    let lease = lease.expect("a claim makes a lease");
    let before = document.task(item, task.id.clone());
    let has_history = before.reason.is_some()
        || before.attempt + before.returns + before.rounds > 0
        || before.status != Status::Pending;
    Claimed { queue: text.queue.clone(), task, lease, script: document.shell(item), has_history }
}

fn is_leased(board: &Board, item: &Item<'_>) -> Result<bool, Error> {
    match &item.id {
        // One that can't be read is somebody's until `tavern-reap` has looked after it.
        Some(id) => match board.lease(id) {
            Err(Error::Damaged { .. }) => Ok(true),
            lease => Ok(lease?.is_some()),
        },
        None => Ok(false),
    }
}

/// Another item goes by the same ID, here or in another queue: it is not known which of them is meant. (Circles and
/// unknown dependencies need no look here: their items are never eligible.)
fn is_double(document: &Document<'_>, item: &Item<'_>, is_elsewhere: &dyn Fn(&TaskId) -> bool) -> bool {
    let Some(id) = &item.id else { return false };
    document.items().iter().filter(|other| other.id == item.id).nth(1).is_some() || is_elsewhere(id)
}

impl Seek {
    fn seeker(&self) -> Seeker<'_> {
        Seeker { agent: &self.agent, role: &self.role, reviews: self.reviews, reviewers: &self.reviewers }
    }

    fn event(&self, purpose: Purpose, token: Token) -> (Event, Note) {
        let event = Event::Claim(Claim {
            agent: self.agent.clone(),
            role: self.role.clone(),
            purpose,
            token,
            seconds: self.seconds,
            holder: self.holder.clone(),
        });
        (event, Note { agent: Some(self.agent.clone()), run: None })
    }

    /// Can its program do something with the item now?
    fn is_fit(&self, document: &Document<'_>, item: &Item, purpose: Purpose) -> Result<(), Why> {
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
    fn count(&mut self, queue: &Queue, item: &Item<'_>, why: &Why) {
        if why.is_stuck() {
            let why = match why {
                Why::Dependencies(open) => {
                    let status = |status: &Option<Status>| status.map_or("unknown", Status::as_str);
                    let names: Vec<String> = open.iter().map(|(id, at)| format!("{id} ({})", status(at))).collect();
                    format!("it depends on {}", names.join(", "))
                }
                Why::Unfit(why) => why.clone(),
                Why::Permission => format!("a person has to allow it: tavern-report {} --approve", called(item)),
                Why::Approval => format!("a person has to approve it: tavern-report {} --approve", called(item)),
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

fn called(item: &Item<'_>) -> String {
    item.id.as_ref().map_or_else(|| "ID".to_owned(), ToString::to_string)
}
