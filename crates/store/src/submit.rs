//! Applies events to items, and adds new items.

use std::collections::BTreeMap;

use memchr::memmem;

use super::archived::with_archived;
use super::board::Board;
use super::change::{Change, Step};
use super::entry::{Entry, LeaseEntry, TextChange};
use super::error::Error;
use super::index::{ItemIndex, homes, mint};
use super::log::walk_log;
use super::queue::{Queue, Text};
use super::transaction::View;
use tavern_core::decide::{LeaseChange, Refusal, decide};
use tavern_core::document::{Document, Item, Lane, Written, parse};
use tavern_core::event::{Event, Kind, Purpose};
use tavern_core::front::Front;
use tavern_core::lane::LaneKind;
use tavern_core::lease::{Lease, Token};
use tavern_core::metadata::Key;
use tavern_core::new_item::{NewItem, render};
use tavern_core::patch::Patch;
use tavern_core::position::ItemPosition;
use tavern_core::states::StateKeys;
use tavern_core::task::{Consent, Status, Task, TaskId, Timestamp};
use tavern_core::text::apply;
use tavern_sys::secrets::redact;

/// An item's current state.
#[derive(Clone, Debug)]
pub struct Found {
    pub queue: Queue,
    pub task: Task,
    /// Its `sh` block.
    pub script: Option<String>,
    /// Its exact text.
    pub block: String,
    /// Counted from 1.
    pub line: usize,
    pub quarantined: bool,
    pub lease: Option<Lease>,
}

impl Found {
    /// Returns its position as a person may type it: `QUEUE:LINE`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.queue.id, self.line)
    }
}

/// A completed change.
#[derive(Clone, Debug)]
pub struct Done {
    pub entry: Entry,
    pub queue: Queue,
    pub task: Task,
    pub lease: Option<Lease>,
}

/// Further content of the log line, besides the event.
#[derive(Clone, Debug, Default)]
pub struct Note {
    pub agent: Option<String>,
    pub run: Option<String>,
}

impl Found {
    /// Returns `item` of `document`, which is that of `text`.
    pub(super) fn of(
        text: &Text,
        document: &Document<'_>,
        item: &Item<'_>,
        lease: Option<Lease>,
    ) -> Found {
        Found {
            task: document.task_of(item),
            script: document.shell(item),
            block: document.block(item).to_owned(),
            line: item.line,
            quarantined: item.quarantined,
            lease,
            queue: text.queue.clone(),
        }
    }
}

impl Board {
    /// Applies `event` to `task`, in whichever queue it is.
    pub fn submit(&self, task: &TaskId, event: &Event, note: &Note) -> Result<Done, Error> {
        // The event's words go to the queue, which is committed, so secrets are redacted.
        let event = event.clone().with_words(|text| redact(text).into_owned());
        self.transact(|view| view.submit(task, &event, note))
    }

    /// Returns an item and all that is known of it, from a queue, else from an archive.
    pub fn task(&self, id: &TaskId) -> Result<Found, Error> {
        let lease = match self.lease(id) {
            Err(Error::Damaged { .. }) => None,
            lease => lease?,
        };
        let found = |text: &Text, document: &Document<'_>, item: &Item<'_>| {
            Found::of(text, document, item, lease.clone())
        };
        let look = |text_of: &dyn Fn(&Queue) -> Result<Text, Error>, board: &Board| {
            with_item(board, id, text_of, found).map(|(_, found)| found)
        };
        let mut live = look(&|queue| self.read(queue), self);
        // A save of an older text may lack the item until it is merged, or an editor is about to write the file anew.
        if live.is_err() && lease.is_some() {
            let last = self.last_seq()?;
            live = look(&|queue| self.read_settled(queue, last), self);
        } else if matches!(live, Err(Error::NoTask(_))) && !self.is_dry() {
            let settled = self.clone().settled()?;
            live = look(&|queue| settled.read(queue), &settled);
        }
        let mut found = if matches!(live, Err(Error::NoTask(_))) {
            with_archived(self, id, found)
        } else {
            live
        }?;
        if found.lease.is_none() {
            found.lease = self.lost_lease(&found.task)?;
        }
        Ok(found)
    }

    /// Adds a new item to `queue`, with the given ID or a fresh one.
    pub fn add(
        &self,
        queue: &Queue,
        new: NewItem,
        status: Status,
        note: &Note,
    ) -> Result<Done, Error> {
        self.transact(|view| view.add(queue, new, &|_, _| Patch::default(), status, note))
    }

    /// Decides how `event` changes an item; nothing is written.
    #[expect(
        clippy::too_many_arguments,
        reason = "an item in its document, and its event"
    )]
    pub(super) fn step(
        &self,
        queue: &Queue,
        document: &Document<'_>,
        item: &Item<'_>,
        id: TaskId,
        event: &Event,
        note: &Note,
        now: Timestamp,
    ) -> Result<(Step, Task), Error> {
        if item.quarantined {
            return Err(Error::Quarantined { task: id });
        }
        let task = document.task(item, id.clone());
        let lease = self.lease_of(&task)?;
        let mut change = decide(&task, lease.as_ref(), event, now)?;
        if let LeaseChange::Put(lease) = &mut change.lease {
            lease.queue.clone_from(&queue.id);
        }
        let mut entry = Entry::new(event.kind(), now);
        entry.task = Some(id.clone());
        entry.queue = Some(queue.id.clone());
        entry.agent = note
            .agent
            .clone()
            .or_else(|| lease.as_ref().map(|lease| lease.agent.clone()));
        entry.token = match &change.lease {
            LeaseChange::Put(lease) => Some(lease.token),
            _ => lease.as_ref().map(|lease| lease.token),
        };
        let work = lease.as_ref().and_then(|lease| lease.work.as_ref());
        entry.run = note
            .run
            .clone()
            .or_else(|| work.map(|work| work.run.clone()));
        entry.cause = match event {
            // A person typed the words of a chat into the queue, so they are not logged as its cause.
            Event::Claim(claim) if claim.purpose == Purpose::Chat => None,
            Event::Claim(_) if task.question().is_some() => task.answered(),
            Event::Claim(claim) if claim.purpose == Purpose::Work && task.state.is_parked() => {
                Some("its children have ended".to_owned())
            }
            Event::Park { children, .. } => {
                let names: Vec<&str> = children.iter().map(TaskId::as_str).collect();
                Some(names.join(", "))
            }
            Event::Tick { steps, .. } => {
                let numbers: Vec<String> = steps.iter().map(usize::to_string).collect();
                Some(numbers.join(", "))
            }
            _ => event.reason().map(str::to_owned),
        };
        if let Event::Submit { commit, .. }
        | Event::Approve { commit, .. }
        | Event::Integrate { commit } = event
        {
            entry.commit.clone_from(commit);
        }
        entry.passed = matches!(event, Event::Submit { .. }) && !task.done_when.is_empty();
        let (from, to) = (task.status(), change.state.status());
        let mut patch = Patch {
            id: item.id.is_none().then(|| id.clone()),
            ..document.showing(item, &change.state)
        };
        if matches!(event, Event::Resume { .. }) {
            patch.set.push((Key::NotBefore, None));
        }
        if matches!(event, Event::Submit { asks: Some(_), .. }) {
            patch
                .set
                .push((Key::Approve, Some(Consent::with_merge(&task.approve))));
        }
        let was_said = document.text_status(item);
        let said = patch.status.unwrap_or(was_said);
        let is_back = patch.status == Some(Status::Pending) && document.has_lanes();
        let stood = if is_back {
            left_pending(self, &id)?
        } else {
            None
        };
        let mut edits = document.change_back(item, &patch, stood.as_ref());
        if let Event::Tick { steps, .. } = event {
            edits.extend(document.ticked(item, steps));
        }
        let written = document
            .written(Some(item), &edits, &id, said)
            .ok_or_else(|| Error::Quarantined { task: id.clone() })?;
        if !edits.is_empty() {
            [entry.left, entry.put] = document.way(Some(item), &edits);
            let (before, after) = (document.block(item).to_owned(), written.block);
            entry.change = TextChange::Edited {
                before,
                after,
                moved: (was_said != said).then_some((was_said, said)),
            };
        }
        if from != to && entry.change.from().zip(entry.change.to()) != Some((from, to)) {
            entry.moved = Some((from, to));
        }
        let known = document.states().get(&id).unwrap_or_default();
        let state = StateKeys::of(&change.state);
        entry.state = (state != *known).then_some(state);
        let task = Task {
            state: change.state,
            ..written.task
        };
        Ok((
            Step {
                entry,
                edits,
                lease: change.lease,
            },
            task,
        ))
    }

    /// Logs an entry that changes no item.
    pub fn note(&self, entry: Entry) -> Result<(), Error> {
        self.transact(|view| {
            Ok((
                Change::notes(vec![Entry {
                    time: view.now,
                    ..entry
                }]),
                (),
            ))
        })
    }

    /// Like `Board::note`, unless it `is_known`, which is checked under the lock.
    pub fn note_unless(&self, entry: Entry, is_known: impl FnOnce() -> bool) -> Result<(), Error> {
        self.transact(|view| {
            let news = if is_known() {
                Vec::new()
            } else {
                vec![Entry {
                    time: view.now,
                    ..entry
                }]
            };
            Ok((Change::notes(news), ()))
        })
    }

    /// Removes the lease of an item that is no longer held (a person ticked or deleted it); without a token, one that
    /// can't be read.
    pub fn drop_stray_lease(&self, task: &TaskId, token: Option<Token>) -> Result<bool, Error> {
        self.transact(|view| {
            let read = |queue: &Queue| view.read(queue);
            let is_held = match with_item(self, task, read, |_, _, item| item.status.is_held()) {
                Ok((_, is_held)) => is_held,
                Err(Error::NoTask(_)) => false,
                Err(error) => return Err(error),
            };
            let lease = match self.lease(task) {
                Ok(None) => return Ok((Change::default(), false)),
                Err(Error::Damaged { .. }) => None,
                lease => lease?,
            };
            if is_held || lease.as_ref().map(|lease| lease.token) != token {
                return Ok((Change::default(), false));
            }
            let entry = Entry {
                task: Some(task.clone()),
                agent: lease.map(|lease| lease.agent),
                token,
                cause: Some("the item is no longer in progress; its lease was removed".to_owned()),
                lease: Some(LeaseEntry::Drop),
                ..Entry::new(Kind::Noted, view.now)
            };
            Ok((Change::notes(vec![entry]), true))
        })
    }
}

/// Returns the item's position when it was last pending, from the log.
fn left_pending(board: &Board, id: &TaskId) -> Result<Option<ItemPosition>, Error> {
    let mut stood = None;
    walk_log(board, Some(id), &mut |entry| {
        if entry.change.from() == Some(Status::Pending) {
            stood = entry.left;
        }
        stood.is_none()
    })?;
    Ok(stood)
}

impl View<'_> {
    fn submit(&self, task: &TaskId, event: &Event, note: &Note) -> Result<(Change, Done), Error> {
        let text_of = |queue: &Queue| self.read(queue);
        let done = with_item(
            self.board,
            task,
            text_of,
            |text, document, item| match event {
                Event::Plan { plan, to, .. } => self.plan(text, task, event, note, plan, *to),
                _ => self.transition(text, document, item, task, event, note),
            },
        );
        let (text, done) = match done {
            Err(Error::NoTask(_)) => {
                return self.bring_back(task, event, note).map_err(|error| {
                    match (error, event.token()) {
                        // Another clone claimed the item first, under another ID.
                        (Error::NoTask(task), Some(given)) => {
                            Refusal::NoLease { task, given }.into()
                        }
                        (error, _) => error,
                    }
                });
            }
            done => done?,
        };
        let (steps, task, lease) = done?;
        let queue = text.queue.clone();
        let mut change = self.change(text, steps);
        change.number(self.last_seq);
        let entry = change.entries.last().expect("an event is logged").clone();
        Ok((
            change,
            Done {
                entry,
                queue,
                task,
                lease,
            },
        ))
    }

    /// Like [`Board::add`]; `more` returns further keys, given the item by itself and the queue's front matter.
    pub(super) fn add(
        &self,
        queue: &Queue,
        new: NewItem,
        more: &dyn Fn(&Task, &Front) -> Patch,
        status: Status,
        note: &Note,
    ) -> Result<(Change, Done), Error> {
        let text = self.read(queue)?;
        let document = text.content.open();
        let index = ItemIndex::among(self.board, &self.known.queues);
        let (step, task) = self.added(queue, &document, &index, new, more, status, note)?;
        let done = Done {
            entry: step.entry.clone(),
            queue: queue.clone(),
            task,
            lease: None,
        };
        drop(document);
        Ok((self.change(text, vec![step]), done))
    }

    /// Returns the step that adds `new` to `document`, the current text of `queue`.
    #[expect(
        clippy::too_many_arguments,
        reason = "an item, its place, and the facts there"
    )]
    pub(super) fn added(
        &self,
        queue: &Queue,
        document: &Document<'_>,
        index: &ItemIndex<'_>,
        new: NewItem,
        more: &dyn Fn(&Task, &Front) -> Patch,
        status: Status,
        note: &Note,
    ) -> Result<(Step, Task), Error> {
        let is_lane =
            |lane: &Lane| lane.kind == LaneKind::Pending || lane.kind == LaneKind::of(status);
        if document.front().says_lanes().is_some() && !document.lanes().iter().any(is_lane) {
            return Err(Error::NoLane(queue.id.clone()));
        }
        let is_taken = |id: &TaskId| document.find(id).is_some() || index.knows(id, queue);
        let id = match new.id.clone() {
            Some(id) if is_taken(&id) => return Err(Error::Taken(id)),
            Some(id) => id,
            // An editor may still show a removed item under a logged ID.
            None => mint(&mut |id| is_taken(id) || index.is_logged(id)),
        };
        let new = new.with_words(|text| redact(text).into_owned());
        let block = render(&NewItem {
            id: Some(id.clone()),
            ..new
        });
        let block = {
            let (alone, _) = parse(&block);
            let edits = alone.find(&id).map(|item| {
                alone.change(item, &more(&alone.task(item, id.clone()), document.front()))
            });
            apply(&block, &edits.unwrap_or_default())
        };
        let edits = document.add(status, &block);
        let written = document.written(None, &edits, &id, status);
        let Written { block: after, task } =
            written.ok_or_else(|| Error::Quarantined { task: id.clone() })?;
        let [_, put] = document.way(None, &edits);
        let entry = Entry {
            task: Some(id),
            queue: Some(queue.id.clone()),
            agent: note.agent.clone(),
            run: note.run.clone(),
            change: TextChange::Added {
                from: None,
                to: status,
                after,
            },
            put,
            ..Entry::new(Kind::Added, self.now)
        };
        Ok((
            Step {
                edits,
                ..entry.into()
            },
            task,
        ))
    }

    fn transition(
        &self,
        text: &Text,
        document: &Document<'_>,
        item: &Item<'_>,
        id: &TaskId,
        event: &Event,
        note: &Note,
    ) -> Result<(Vec<Step>, Task, Option<Lease>), Error> {
        let (step, task) = self.board.step(
            &text.queue,
            document,
            item,
            id.clone(),
            event,
            note,
            self.now,
        )?;
        let lease = match &step.lease {
            LeaseChange::Put(lease) => Some((**lease).clone()),
            LeaseChange::Keep => self.board.lease(id)?,
            LeaseChange::Drop => None,
        };
        Ok((vec![step], task, lease))
    }
}

/// Calls `then` with `task`'s item, and returns its text too. The lease names the queue, else all are searched. Copies
/// in other queues are ignored.
pub(super) fn with_item<R>(
    board: &Board,
    task: &TaskId,
    text_of: impl Fn(&Queue) -> Result<Text, Error>,
    then: impl FnOnce(&Text, &Document<'_>, &Item<'_>) -> R,
) -> Result<(Text, R), Error> {
    let (mut texts, mut unreadable, name) = (Vec::new(), None, format!("{task}:"));
    let names_it = |text: &Text| memmem::find(text.content.as_bytes(), name.as_bytes()).is_some();
    let leased = board
        .lease(task)
        .ok()
        .flatten()
        .map(|lease| board.queue_of(&lease.queue));
    for queues in [leased.into_iter().collect(), board.queues()?] {
        for queue in if texts.is_empty() { queues } else { Vec::new() } {
            match text_of(&queue) {
                Ok(text) => texts.extend(Some(text).filter(names_it)),
                Err(error) => unreadable = Some(error),
            }
        }
    }
    if texts.len() > 1 {
        texts.retain(|text| text.content.open().find(task).is_some());
        let places = texts.iter().map(|text| text.queue.id.clone()).collect();
        let home = homes(board, BTreeMap::from([(task.clone(), places)]))?.remove(task);
        texts.retain(|text| home.as_ref().is_none_or(|home| *home == text.queue.id));
    }
    // The item may be in the unreadable queue.
    let none = || unreadable.unwrap_or_else(|| Error::NoTask(task.clone()));
    let Some(text) = texts.first() else {
        return Err(none());
    };
    let document = text.content.open();
    // Of an item that was pasted twice, the held one counts.
    let named = document.named(task);
    let item = named
        .iter()
        .find(|item| item.status.is_held())
        .or(named.first());
    let told = item
        .map(|item| then(text, &document, item))
        .ok_or_else(none)?;
    drop(document);
    Ok((texts.swap_remove(0), told))
}
