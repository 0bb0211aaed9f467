//! Undoes an event on an item.
//!
//! An undo is an event of its own, so it can be undone too. It never makes an item held, nor takes it from its holder,
//! and never touches later changes to the item.

use std::borrow::Cow;
use std::collections::HashMap;
use std::slice;

use super::board::Board;
use super::change::Change;
use super::edit_entries::around_items;
use super::entry::{Entry, LANES, LeaseEntry, PROSE, TextChange};
use super::error::{Error, Obstacle};
use super::external_edits::KnownQueues;
use super::file_version::QueueFiles;
use super::log::walk_log;
use super::queue::{Queue, Text};
use super::rejected_removals;
use super::submit::Note;
use super::transaction::View;
use tavern_core::document::{Document, Item, parse};
use tavern_core::event::Kind;
use tavern_core::marked_item::MarkedItem;
use tavern_core::markup::leading_id;
use tavern_core::merge::{bare, merge};
use tavern_core::rewrite::{set_item, set_item_by};
use tavern_core::task::{Status, TaskId};
use tavern_core::text::{Edit, apply};
use tavern_sys::clock;

/// The event to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The last event in effect that changed an item; of this item, if given.
    Last(Option<TaskId>),
    /// The last undo, which is undone again.
    LastUndone(Option<TaskId>),
    /// The event with this number.
    Event(u64),
}

/// An undone event.
#[derive(Clone, Debug)]
pub struct Undone {
    pub event: Entry,
    /// The new log entry.
    pub entry: Entry,
    pub queue: Queue,
}

impl Board {
    /// Undoes an event, as one compare-and-set under the lock.
    pub fn undo(&self, which: &Which, note: &Note) -> Result<Undone, Error> {
        self.transact(|view| {
            let (event, since) = find(view.board, which)?;
            Ok(PreparedUndo::of(view, event, &since, note)?.change())
        })
    }

    /// Returns the events that could be undone now, newest first.
    pub fn undoable(&self, task: Option<&TaskId>, most: usize) -> Result<Vec<Entry>, Error> {
        let dry = self.clone().dry();
        let view = View {
            board: &dry,
            last_seq: self.last_seq()?,
            now: clock::now(),
            known: KnownQueues {
                queues: dry.queues()?,
                ..KnownQueues::default()
            },
        };
        let mut found = Vec::new();
        let (mut taken, mut latest) = (HashMap::new(), HashMap::new());
        walk_all(self, &mut |entry| {
            let is_of_task = task.is_none() || entry.task.as_ref() == task;
            let is_in_effect = taken_by(&entry, &mut taken).is_none();
            if is_change(&entry) {
                let latest = entry
                    .task
                    .as_ref()
                    .map(|task| &*latest.entry(task.clone()).or_insert(entry.clone()));
                let since = latest.map_or(&[][..], slice::from_ref);
                let can_be =
                    || PreparedUndo::of(&view, entry.clone(), since, &Note::default()).is_ok();
                let is_wanted =
                    is_in_effect && is_of_task && entry.kind != Kind::Archived && can_be();
                found.extend(is_wanted.then_some(entry));
            }
            found.len() < most
        })?;
        Ok(found)
    }
}

fn is_change(entry: &Entry) -> bool {
    let is_change = entry.is_of_item() || entry.kind == Kind::Allowed;
    is_change && entry.queue.is_some() && entry.kind != Kind::Moved
}

/// Returns the later event, itself in effect, that undid this one. Must be called for each event, newest first.
fn taken_by(entry: &Entry, taken: &mut HashMap<u64, u64>) -> Option<u64> {
    let with_claim = || taken.get(&entry.token?);
    let by = taken.get(&entry.seq).or_else(with_claim).copied();
    match (by, claim_given_back(entry)) {
        (Some(by), Some(claim)) => drop(taken.insert(claim, by)),
        (Some(_), None) => {}
        (None, _) => taken.extend(entry.undoes.map(|event| (event, entry.seq))),
    }
    by
}

/// Returns the claim that this event ended.
fn claim_given_back(entry: &Entry) -> Option<u64> {
    entry
        .token
        .filter(|_| entry.lease == Some(LeaseEntry::Drop))
}

/// Combines an event that ended a claim with the claim and the holder's changes in between: there is no point in
/// restoring a held state.
fn with_claim(board: &Board, event: Entry) -> Result<Entry, Error> {
    let Some(claim) = claim_given_back(&event) else {
        return Ok(event);
    };
    let mut own = Vec::new();
    walk_log(board, None, &mut |entry| {
        let is_later = entry.seq > claim;
        let is_own = entry.seq <= event.seq && entry.token == Some(claim) && entry.is_of_item();
        own.extend(is_own.then_some(entry));
        is_later
    })?;
    let Some(claimed) = own.last().filter(|entry| entry.seq == claim) else {
        return Ok(event);
    };
    let (left, put) = (
        claimed.left.clone().or(event.left.clone()),
        event.put.clone().or(claimed.put.clone()),
    );
    let moved = claimed.from().zip(event.to());
    own.retain(|entry| entry.change.is_of_item());
    let mut texts = own.iter().rev().map(|entry| &entry.change);
    let Some(first) = texts.next() else {
        return Ok(Entry { moved, ..event });
    };
    let Some((mut was, mut held)) = first.before().map(str::to_owned).zip(first.after()) else {
        return Ok(event);
    };
    let (mut from, mut to) = (first.from(), first.to());
    for change in texts {
        let Some(before) = change.before() else {
            return Ok(event);
        };
        // Text typed in between stays.
        let merged = merge(held, before, &was, &|_| false);
        if !merged.conflicts.is_empty() {
            return Ok(event);
        }
        (was, held) = (merged.text, change.after().unwrap_or_default());
        (from, to) = (from.or(change.from()), change.to().or(to));
    }
    let change = match from.zip(to) {
        None if event.change.after().is_none() && event.change.before().is_some() => {
            TextChange::Removed {
                from: from.unwrap_or(Status::Pending),
                before: was,
            }
        }
        moved => {
            let moved = moved.filter(|(from, to)| from != to);
            TextChange::Edited {
                before: was,
                after: held.to_owned(),
                moved,
            }
        }
    };
    Ok(Entry {
        change,
        moved,
        left,
        put,
        ..event
    })
}

/// An undo that was found possible, ready to be written.
struct PreparedUndo {
    event: Entry,
    /// The last entry is that of the item.
    entries: Vec<Entry>,
    /// The number of the last event in the log.
    last: u64,
    queue: Queue,
    sight: QueueFiles,
    content: String,
}

impl PreparedUndo {
    fn change(self) -> (Change, Undone) {
        let PreparedUndo {
            event,
            entries,
            last,
            queue,
            sight,
            content,
        } = self;
        let mut change = Change::rewrite(queue.clone(), sight, content, entries);
        change.number(last);
        let entry = change.entries.last().expect("an undo is logged").clone();
        (
            change,
            Undone {
                event,
                entry,
                queue,
            },
        )
    }

    fn of(
        view: &View<'_>,
        event: Entry,
        since: &[Entry],
        note: &Note,
    ) -> Result<PreparedUndo, Error> {
        let board = view.board;
        let claim = claim_given_back(&event);
        let mut event = with_claim(board, event)?;
        let name = name_of(&event);
        let seq = event.seq;
        if event.cause.as_deref() == Some(LANES) {
            return Err(Obstacle::Lanes {
                seq,
                queue: event.queue.unwrap_or_default(),
            }
            .into());
        }
        let as_merge = event.commit.clone().zip(event.task.clone());
        if let (Kind::Integrated, Some((commit, task))) = (event.kind, as_merge) {
            return Err(Obstacle::Merged { task, commit }.into());
        }
        let (text, found) = place(view, &event, &name, since)?;
        let (document, _) = text.content.parse();
        let item = found.map(|index| &document.items()[index]);
        if item.is_some_and(|item| item.id.is_none()) {
            event.change = without_id(event.change);
        }
        let said = item.map(|item| document.text_status(item));
        if let Some(item) = item.filter(|_| event.change == TextChange::Nothing) {
            let text = document.block(item).to_owned();
            event.change = TextChange::Edited {
                before: text.clone(),
                after: text,
                moved: None,
            };
        }
        if let Some(item) = item {
            free(board, &document, item)?;
        }
        // If the event changed the status, the item must still have the status it gave.
        let (from, to) = (event.from(), event.to());
        let is_moved = from != to;
        let changed_since = || Obstacle::Since {
            seq,
            name: name.clone(),
            since: since.to_vec(),
        };
        if is_moved && item.is_some() && item.map(|item| item.status) != to {
            return Err(changed_since().into());
        }
        if let Some(to) = from.filter(|from| is_moved && from.is_held()) {
            return Err(Obstacle::InHands {
                seq,
                name,
                to,
                now: item.map(|item| item.status),
            }
            .into());
        }
        let (said_from, said_to) = (event.change.from(), event.change.to());
        let is_said = said_from != said_to;
        let status = if is_said { said_from } else { said };
        let before = text_before(board, &event)?;
        let was = before.as_deref().map(|before| (before, status));
        let id = before
            .as_deref()
            .and_then(|before| parse(before).0.items().first()?.id.clone());
        if let Some(id) = id.filter(|id| !matches!(board.lease(id), Ok(None))) {
            return Err(Obstacle::Held(id).into());
        }
        let is_untouched = item.is_none()
            || item.map(|item| bare(document.block(item))) == event.change.after().map(bare);
        let content = if is_untouched {
            let marked = event
                .marked
                .as_deref()
                .and_then(|marked| by_its_mark(&document, item, marked, was));
            marked.unwrap_or_else(|| {
                apply(
                    &text.content,
                    &set_item_by(&document, item, was, event.left.as_ref()),
                )
            })
        } else {
            let Some(was) = was else {
                return Err(changed_since().into());
            };
            let after = event.change.after().map(|after| (after, said));
            let base = apply(&text.content, &set_item(&document, item, after));
            let theirs = apply(&text.content, &set_item(&document, item, Some(was)));
            let merged = merge(&base, &text.content, &theirs, &|id| {
                board.lease(id).is_ok_and(|lease| lease.is_some())
            });
            if !merged.conflicts.is_empty() || text.content == *merged.text {
                return Err(changed_since().into());
            }
            merged.text
        };
        let mut state = None;
        if let Some(id) = event.task.as_ref().filter(|_| event.state.is_some()) {
            let was = board.state_before(id, claim.unwrap_or(seq))?;
            let now = document.states().get(id).map(Cow::into_owned);
            if now.unwrap_or_default() != event.state.clone().unwrap_or_default() {
                return Err(changed_since().into());
            }
            state = Some(was);
        }
        let odd = || Obstacle::Odd {
            seq,
            name: name.clone(),
        };
        let (task, change) =
            taken_back(&event, before.as_deref(), &document, item, &content).ok_or_else(odd)?;
        let is_as_it_was = change.after().is_none() || !is_said || change.to() == said_from;
        if !is_as_it_was || !is_one_apart(&text.content, &content) {
            return Err(odd().into());
        }
        let sight = view.sight(&text);
        drop(document);
        let kind = if event.kind == Kind::Undone {
            Kind::Redone
        } else {
            Kind::Undone
        };
        let entry = Entry {
            task,
            queue: Some(text.queue.id.clone()),
            agent: note.agent.clone(),
            cause: Some(format!("event {seq} ({})", event.kind.as_str())),
            undoes: Some(seq),
            moved: to.zip(from).filter(|moved| moved.0 != moved.1),
            change,
            state,
            left: event.put.clone(),
            put: event.left.clone(),
            marked: event.marked.clone(),
            ..Entry::new(kind, view.now)
        };
        let words = around_items(&text.content, &content).map(|change| Entry {
            change,
            cause: Some(PROSE.to_owned()),
            queue: entry.queue.clone(),
            agent: note.agent.clone(),
            ..Entry::new(Kind::Edited, view.now)
        });
        let entries = words.into_iter().chain([entry]).collect();
        Ok(PreparedUndo {
            event,
            entries,
            last: view.last_seq,
            queue: text.queue,
            sight,
            content,
        })
    }
}

/// Returns the document's text with the line that the owner `marked` replaced by the item as it `was`, or the reverse.
fn by_its_mark(
    document: &Document<'_>,
    item: Option<&Item<'_>>,
    marked: &str,
    was: Option<(&str, Option<Status>)>,
) -> Option<String> {
    match (item, was) {
        (Some(item), None) => {
            let held = Some((marked, None));
            Some(apply(
                document.text(),
                &set_item(document, Some(item), held),
            ))
        }
        (None, Some(_)) => {
            let mut all = MarkedItem::all(document.text()).into_iter();
            let it = all.find(|other| bare(&other.block) == bare(marked))?;
            let opened = apply(document.text(), &[Edit::replace(it.mark, " ")]);
            let (document, _) = parse(&opened);
            let item = document
                .items()
                .iter()
                .find(|item| item.span.start == it.start)?;
            Some(apply(&opened, &set_item(&document, Some(item), was)))
        }
        _ => None,
    }
}

/// Removes the ID from a change of an item that had it before and after: it was lost with its claim.
fn without_id(change: TextChange) -> TextChange {
    let without = |text: &str| {
        let (alone, _) = parse(text);
        let item = alone.items().first()?;
        let start = item.id_span()?.start;
        let end = start + leading_id(&text[start..]).1;
        Some((item.id.clone(), apply(text, &[Edit::delete(start..end)])))
    };
    match change {
        TextChange::Edited {
            before,
            after,
            moved,
        } => match (without(&before), without(&after)) {
            (Some((was, before)), Some((is, after))) if was == is => TextChange::Edited {
                before,
                after,
                moved,
            },
            _ => TextChange::Edited {
                before,
                after,
                moved,
            },
        },
        change => change,
    }
}

/// Returns true if at most one item differs, ignoring IDs.
fn is_one_apart(old: &str, new: &str) -> bool {
    let [mut left, mut come] = [old, new].map(|text| {
        let (document, _) = parse(text);
        let items = document.items().iter().filter(|item| item.within.is_none());
        items
            .map(|item| (bare(document.block(item)), item.status))
            .collect::<Vec<_>>()
    });
    come.retain(|item| {
        left.iter()
            .position(|other| other == item)
            .map(|at| left.swap_remove(at))
            .is_none()
    });
    left.len() <= 1 && come.len() <= 1
}

/// Returns the item's text before the event; `None` if it did not exist. For an item brought back from the archive, its
/// archived text.
fn text_before(board: &Board, event: &Entry) -> Result<Option<String>, Error> {
    let mut before = event.change.before().map(str::to_owned);
    if before.is_none() && matches!(event.kind, Kind::Reopened | Kind::Revived) {
        walk_log(board, event.task.as_ref(), &mut |entry| {
            if entry.kind == Kind::Archived && entry.task == event.task && entry.seq < event.seq {
                before = entry.change.before().map(str::to_owned);
            }
            before.is_none()
        })?;
        // Without its earlier text in the log, the item must not be removed.
        let odd = || Obstacle::Odd {
            seq: event.seq,
            name: name_of(event),
        };
        before = Some(before.ok_or_else(odd)?);
    }
    Ok(before)
}

fn name_of(event: &Entry) -> String {
    event
        .task
        .as_ref()
        .map_or_else(|| "the item".to_owned(), ToString::to_string)
}

/// Returns the item's change and its ID; `None` if `content` does not show them clearly.
fn taken_back(
    event: &Entry,
    before: Option<&str>,
    old: &Document<'_>,
    item: Option<&Item<'_>>,
    content: &str,
) -> Option<(Option<TaskId>, TextChange)> {
    let was = item.map(|item| (old.block(item).to_owned(), old.text_status(item)));
    let Some(before) = before else {
        let (before, from) = was?;
        return Some((event.task.clone(), TextChange::Removed { from, before }));
    };
    let (new, _) = parse(content);
    let id = parse(before)
        .0
        .items()
        .first()
        .and_then(|item| item.id.clone());
    let is_it = |now: &&Item<'_>| bare(new.block(now)) == bare(before);
    let named = id
        .as_ref()
        .or(event.task.as_ref())
        .map_or_else(Vec::new, |id| new.named(id));
    let now = named.iter().copied().find(is_it).or(named.first().copied());
    let in_place = || new.items().get(old.index_from(item?.span.start));
    let now = now
        .or_else(|| new.items().iter().find(is_it))
        .or_else(in_place)?;
    let (after, to) = (new.block(now).to_owned(), now.status);
    let change = match was {
        Some((before, from)) => TextChange::Edited {
            before,
            after,
            moved: (from != to).then_some((from, to)),
        },
        None => TextChange::Added {
            from: None,
            to,
            after,
        },
    };
    Some((now.id.clone().or_else(|| event.task.clone()), change))
}

/// Returns the requested event, and later events of its item, oldest first.
fn find(board: &Board, which: &Which) -> Result<(Entry, Vec<Entry>), Error> {
    let mut taken = HashMap::new();
    let mut later: Vec<Entry> = Vec::new();
    let mut found = None;
    walk_all(board, &mut |entry| {
        let by = taken_by(&entry, &mut taken);
        let is_in_effect = by.is_none();
        let is_of = |task: &Option<TaskId>| task.is_none() || *task == entry.task;
        let is_meant = match which {
            // Archiving leaves an item unchanged.
            Which::Last(task) => {
                let is_other = matches!(entry.kind, Kind::Undone | Kind::Archived);
                is_in_effect && is_change(&entry) && !is_other && is_of(task)
            }
            Which::LastUndone(task) => is_in_effect && entry.kind == Kind::Undone && is_of(task),
            Which::Event(seq) => entry.seq == *seq,
        };
        if is_meant {
            found = Some((entry, by));
        } else {
            later.push(entry);
        }
        found.is_none()
    })?;
    let (event, by) = found.ok_or(match which {
        Which::Event(seq) => Obstacle::NoEvent(*seq),
        Which::Last(_) | Which::LastUndone(_) => Obstacle::Nothing,
    })?;
    if let Some(by) = by {
        return Err(Obstacle::Already { seq: event.seq, by }.into());
    }
    if let Which::Last(task) = which
        && let Some((queue, items)) = later
            .iter()
            .find_map(|note| left_standing(note, task.as_ref()))
    {
        let seq = event.seq;
        return Err(Obstacle::Stays { seq, queue, items }.into());
    }
    if !is_change(&event) {
        return Err(Obstacle::NoChange {
            seq: event.seq,
            kind: event.kind,
        }
        .into());
    }
    later.retain(|entry| entry.task.is_some() && entry.task == event.task && is_change(entry));
    later.reverse();
    Ok((event, later))
}

/// Calls `look` with all entries, newest first, those of a dry run included, until it returns false.
fn walk_all(board: &Board, look: &mut dyn FnMut(Entry) -> bool) -> Result<(), Error> {
    let rehearsed = board.rehearsal.iter().flat_map(|dry| dry.entries());
    for entry in rehearsed.collect::<Vec<_>>().into_iter().rev() {
        if !look(entry) {
            return Ok(());
        }
    }
    walk_log(board, None, look)
}

/// Returns the queue and the items that a save did not remove, if `task` is one of them or not given.
fn left_standing(note: &Entry, task: Option<&TaskId>) -> Option<(String, String)> {
    let items = rejected_removals::of(note)?;
    let is_meant = |task: &TaskId| items.split(", ").any(|item| item == task.as_str());
    let is_meant = task.is_none_or(is_meant);
    is_meant.then(|| (note.queue.clone().unwrap_or_default(), items.to_owned()))
}

/// Returns the queue of the event's item, and its index among the items; no index if the event removed it.
fn place(
    view: &View<'_>,
    event: &Entry,
    name: &str,
    since: &[Entry],
) -> Result<(Text, Option<usize>), Error> {
    let board = view.board;
    let own = event.queue.as_deref().unwrap_or_default();
    if let Some(task) = &event.task {
        match board.live_task(task) {
            Ok(found) if event.change.after().is_none() && event.change.is_of_item() => {
                return Err(Obstacle::Back {
                    name: name.to_owned(),
                    queue: found.queue.id,
                }
                .into());
            }
            Ok(found) => {
                let text = view.read(&found.queue)?;
                let index = {
                    let (document, _) = text.content.parse();
                    let place = |is_it: &dyn Fn(&Item<'_>) -> bool| {
                        document
                            .items()
                            .iter()
                            .position(|item| item.id.as_ref() == Some(task) && is_it(item))
                    };
                    let after = event.change.after().map(bare);
                    place(&|item| Some(bare(document.block(item))) == after)
                        .or_else(|| place(&|_| true))
                };
                if index.is_some() {
                    return Ok((text, index));
                }
            }
            Err(Error::NoTask(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let text = view.read(&board.queue_by_id(own)?)?;
    let (document, _) = text.content.parse();
    // The item may have lost its ID; then it reads as it was last left under that ID.
    let as_left = since
        .last()
        .map_or(event.change.after().or(event.change.before()), |last| {
            last.change.after()
        });
    let wanted = as_left.map(bare).unwrap_or_default();
    let alike = document.items().iter().enumerate();
    let alike: Vec<usize> = alike
        .filter(|(_, item)| bare(document.block(item)) == wanted)
        .map(|(at, _)| at)
        .collect();
    let back = || Obstacle::Back {
        name: name.to_owned(),
        queue: own.to_owned(),
    };
    let index = match (alike.as_slice(), event.change.after()) {
        ([], None) if event.change.is_of_item() => None,
        (_, None) if event.change.is_of_item() => return Err(back().into()),
        ([one], Some(_)) => Some(*one),
        ([], _) | (_, None) => {
            return Err(Obstacle::Gone {
                name: name.to_owned(),
                since: since.to_vec(),
            }
            .into());
        }
        (_, Some(_)) => {
            return Err(Obstacle::Twice {
                seq: event.seq,
                queue: own.to_owned(),
            }
            .into());
        }
    };
    drop(document);
    Ok((text, index))
}

/// Checks that neither the item nor a part of it is held.
fn free(board: &Board, document: &Document<'_>, item: &Item<'_>) -> Result<(), Error> {
    let is_part =
        |part: &&Item<'_>| item.span.start <= part.span.start && part.span.end <= item.span.end;
    for part in document.items().iter().filter(is_part) {
        let Some(task) = &part.id else { continue };
        // A damaged lease counts as held.
        if part.status.is_held() || !matches!(board.lease(task), Ok(None)) {
            return Err(Obstacle::Held(task.clone()).into());
        }
    }
    Ok(())
}
