//! `queues/archive/<queue>.md`: ended items, moved out of the queue.
//!
//! The log is written first, then the archive, then the queue. After a crash an item is in one of the two files or in
//! both, and the next process to take the lock removes it from the queue.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::archived::{FOLDER, content};
use super::archived::{archive_of, with_archived};
use super::board::Board;
use super::change::{Change, Rewrite, Step};
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::log::walk_log;
use super::queue::{Queue, Text};
use super::submit::{Done, Found, Note};
use super::transaction::View;
use tavern_core::archive::{self, Gone, Policy};
use tavern_core::decide::decide;
use tavern_core::document::{Document, Item, Written};
use tavern_core::event::{Event, Kind};
use tavern_core::patch::Patch;
use tavern_core::states::StateKeys;
use tavern_core::task::{Task, TaskId, Timestamp};

impl Board {
    /// Like [`Board::task`], but refuses archived items: a change there would go unnoticed.
    pub fn live_task(&self, id: &TaskId) -> Result<Found, Error> {
        let found = self.task(id)?;
        let is_archived = found.queue.path.starts_with(self.path(FOLDER));
        if is_archived {
            Err(Error::Archived {
                task: id.clone(),
                status: found.task.status(),
            })
        } else {
            Ok(found)
        }
    }

    /// Returns how many items of `text` are due for the archive; 0 if fewer than `at_least` are due. With `at_least` 0,
    /// items that the archive already has count too.
    pub fn due_for_archive(
        &self,
        text: &Text,
        document: &Document<'_>,
        policy: &Policy,
        now: Timestamp,
        at_least: usize,
    ) -> Result<usize, Error> {
        let Some(own) = archive_of(self, &text.queue) else {
            return Ok(0);
        };
        let has_ended = |at: &usize| document.status_at(*at).is_ended();
        if (0..document.count()).filter(has_ended).count() < at_least {
            return Ok(0);
        }
        let held: HashSet<TaskId> = self.leased()?.into_iter().collect();
        let is_held = |id: &TaskId| held.contains(id);
        // The archive and the log grow without bound, so they are read only if something is due.
        if archive::due(document, policy, now, &is_held, &|_| false).len() < at_least {
            return Ok(0);
        }
        let Ok(archived) = content(self, &own) else {
            return Ok(0);
        };
        let ended = LongEnded::before(self, &text.queue, policy, now);
        let is_long_ended = |item: &Item<'_>| ended.has(document, item);
        let moved = archive::archive(
            &text.queue.id,
            document,
            &archived,
            policy,
            now,
            &is_held,
            &is_long_ended,
        );
        Ok(moved.map_or(0, |moved| moved.items.len()))
    }

    /// Moves due items from the queue to its archive and returns their number. Does nothing while git reads the files.
    pub fn archive(&self, queue: &Queue, policy: &Policy) -> Result<usize, Error> {
        self.transact(|view| {
            let now = view.now;
            let nothing = || (Change::default(), 0);
            let Some(own) = archive_of(self, queue).filter(|_| !self.is_git_reading()) else {
                return Ok(nothing());
            };
            let text = view.read(queue)?;
            // A removed or torn archive is restored first; afterwards the loss would no longer show.
            let lost = self
                .lost_archives()?
                .into_iter()
                .find(|lost| lost.queue.path == own.path);
            let old = lost.map_or_else(|| content(self, &own), |lost| Ok(lost.text))?;
            let held: HashSet<TaskId> = self.leased()?.into_iter().collect();
            let is_held = |id: &TaskId| held.contains(id);
            let ended = LongEnded::before(self, queue, policy, now);
            let (document, _) = text.content.parse();
            let is_long_ended = |item: &Item<'_>| ended.has(&document, item);
            let moved = archive::archive(
                &queue.id,
                &document,
                &old,
                policy,
                now,
                &is_held,
                &is_long_ended,
            );
            let Some(moved) = moved else {
                return Ok(nothing());
            };
            let entry = |item: &Gone| Entry {
                task: item.id.clone(),
                queue: Some(queue.id.clone()),
                change: TextChange::Removed {
                    from: item.status,
                    before: item.block.clone(),
                },
                ..Entry::new(Kind::Archived, now)
            };
            let entries = moved.items.iter().map(entry).collect();
            let mut change =
                Change::rewrite(queue.clone(), view.sight(&text), moved.queue, entries);
            change.files.insert(
                0,
                Rewrite::File {
                    path: own.path,
                    content: moved.archive,
                },
            );
            Ok((change, moved.items.len()))
        })
    }
}

/// Tells which items of a queue ended before a given time: those that no later event of the log has ended. Items that
/// the log does not mention count from the first event of the queue.
struct LongEnded<'b> {
    board: &'b Board,
    queue: &'b str,
    /// `None`: no item is old enough.
    before: Option<Timestamp>,
    later: OnceCell<Option<Later>>,
}

/// Items that ended after that time, by ID, and the texts those without an ID were left with.
#[derive(Default)]
struct Later {
    ids: HashSet<TaskId>,
    blocks: HashSet<String>,
}

impl<'b> LongEnded<'b> {
    fn before(
        board: &'b Board,
        queue: &'b Queue,
        policy: &Policy,
        now: Timestamp,
    ) -> LongEnded<'b> {
        let before = policy.after.and_then(|after| now.checked_sub_signed(after));
        LongEnded {
            board,
            queue: &queue.id,
            before,
            later: OnceCell::new(),
        }
    }

    fn has(&self, document: &Document<'_>, item: &Item<'_>) -> bool {
        let Some(later) = self.later.get_or_init(|| self.later()) else {
            return false;
        };
        match &item.id {
            Some(id) => !later.ids.contains(id),
            None => !later.blocks.contains(document.block(item).trim_end()),
        }
    }

    /// Returns `None` if the log of the queue does not reach back that far.
    fn later(&self) -> Option<Later> {
        let before = self.before?;
        let (mut later, mut is_reached) = (Later::default(), false);
        let look = &mut |entry: Entry| {
            if entry.queue.as_deref() != Some(self.queue) {
                return true;
            }
            if entry.time < before {
                is_reached = true;
                return false;
            }
            let is_end = entry.is_end();
            match (entry.task, entry.change.after()) {
                (Some(id), _) if is_end => drop(later.ids.insert(id)),
                (None, Some(after)) => drop(later.blocks.insert(after.trim_end().to_owned())),
                _ => {}
            }
            true
        };
        // An unreadable log proves nothing.
        walk_log(self.board, None, look).ok()?;
        is_reached.then_some(later)
    }
}

impl View<'_> {
    /// Applies `event` to an archived item and moves it back to its queue, if the event is allowed.
    pub(super) fn bring_back(
        &self,
        id: &TaskId,
        event: &Event,
        note: &Note,
    ) -> Result<(Change, Done), Error> {
        let board = self.board;
        let (own, from, change, block) = with_archived(board, id, |text, document, item| {
            if let Some(outer) = item.within {
                let whole = document.items()[outer]
                    .id
                    .as_ref()
                    .map_or_else(String::new, ToString::to_string);
                return Err(Error::ArchivedPart {
                    task: id.clone(),
                    whole,
                });
            }
            let change = decide(&document.task(item, id.clone()), None, event, self.now)?;
            let edits = document.change(item, &Patch::from(&change.state));
            let written = document.written(Some(item), &edits, id, change.state.status());
            let Written { block, .. } =
                written.ok_or_else(|| Error::Quarantined { task: id.clone() })?;
            Ok((text.clone(), item.status, change, block))
        })??;
        let queue = board.queue_by_id(own.queue.id.trim_start_matches("archive/"))?;
        let text = self.read(&queue)?;
        let (document, _) = text.content.parse();
        let edits = document.add(change.state.status(), &block);
        let written = document.written(None, &edits, id, change.state.status());
        let Written { block: after, task } =
            written.ok_or_else(|| Error::Quarantined { task: id.clone() })?;
        // Logged as an addition, so that it is replayed like one.
        let entry = Entry {
            task: Some(id.clone()),
            queue: Some(queue.id.clone()),
            agent: note.agent.clone(),
            cause: event.reason().map(str::to_owned),
            change: TextChange::Added {
                from: Some(from),
                to: change.state.status(),
                after,
            },
            state: Some(StateKeys::of(&change.state)),
            ..Entry::new(event.kind(), self.now)
        };
        let task = Task {
            state: change.state,
            ..task
        };
        let step = Step {
            edits,
            ..entry.into()
        };
        let mut change = self.change(text, vec![step]);
        // If a crash prevents this, the item in the queue counts and replaces the archived one at the next archiving.
        let left = archive::forget(&own.content, id);
        change.files.extend(left.map(|content| Rewrite::File {
            path: own.queue.path,
            content,
        }));
        change.number(self.last_seq);
        let entry = change.entries[0].clone();
        Ok((
            change,
            Done {
                entry,
                queue,
                task,
                lease: None,
            },
        ))
    }
}
