//! Lines that were appended to a queue: its last lane is one of what has ended, and what is new has not. Knows no files.

use std::cell::LazyCell;
use std::collections::HashSet;

use super::entry::{Entry, TextChange};
use tavern_core::document::{Document, Item, parse};
use tavern_core::markup;
use tavern_core::merge::{Changed, bare, changes};
use tavern_core::rewrite::{apply_each, set_item};
use tavern_core::state::State;
use tavern_core::task::{Status, TaskId};

/// `text`, in which the open boxes that `before` had not are pending, also in a lane of what has ended. That goes for those without
/// a key by which anybody has worked on them, and an ID that is `known`: who moves an item there means that it has ended. Of a queue
/// that was never seen before only the dead ones without an ID are new for sure, since what died has one.
pub(super) fn with_appended(
    before: Option<&str>,
    text: String,
    is_known: &dyn Fn(&TaskId) -> bool,
) -> String {
    // By the lane that an item is in, too: another of the same words may have ended.
    let new: Vec<(Status, String)> = {
        let (document, _) = parse(&text);
        let mut open = document
            .items()
            .iter()
            .filter(|item| is_open(&document, item))
            .peekable();
        if open.peek().is_none() {
            return text;
        }
        match before {
            None => {
                let untried = open.filter(|item| item.status == Status::Dead && item.id.is_none());
                untried
                    .map(|item| (item.status, bare(document.block(item))))
                    .collect()
            }
            Some(before) => {
                let is_new = |changed: &Changed| {
                    changed.before.is_none() && !changed.task.as_ref().is_some_and(is_known)
                };
                changes(before, &text)
                    .into_iter()
                    .filter(is_new)
                    .filter_map(|changed| {
                        changed.after.map(|(block, status)| (status, bare(&block)))
                    })
                    .collect()
            }
        }
    };
    apply_each(text, new, &|document, (status, block)| {
        let is_it = |item: &&Item<'_>| {
            item.status == *status
                && is_open(document, item)
                && bare(document.block(item)) == *block
        };
        let item = document.items().iter().find(is_it);
        item.map_or_else(Vec::new, |item| {
            set_item(
                document,
                Some(item),
                Some((document.block(item), Some(Status::Pending))),
            )
        })
    })
}

/// `saved`, in which an item that was appended to a line of `ours` that had no end is a line of its own.
pub(super) fn with_line_ends(ours: &str, saved: &str) -> String {
    // Few lines have such a mark behind their beginning.
    let lines = LazyCell::new(|| ours.lines().collect::<HashSet<&str>>());
    let begins = |line: &str| {
        let all = ["- [ ] ", "* [ ] ", "+ [ ] "]
            .into_iter()
            .flat_map(|item| line.match_indices(item));
        all.map(|(at, _)| at)
            .find(|at| *at > 0 && lines.contains(&line[..*at]))
    };
    let apart = saved.split_inclusive('\n').map(|line| match begins(line) {
        Some(at) => format!("{}{}{}", &line[..at], markup::newline(ours), &line[at..]),
        None => line.to_owned(),
    });
    apart.collect()
}

/// Tells in the `entries` of what was added in which lane it was `typed`, where it stands elsewhere in `text`: who goes on in the
/// text that they typed it in has it there.
pub(super) fn tell_moved(entries: &mut [Entry], typed: &str, text: &str) {
    let moved = if typed == text {
        Vec::new()
    } else {
        changes(typed, text)
    };
    for Changed {
        task,
        before,
        after,
        ..
    } in moved
    {
        let is_it = |entry: &Entry| {
            entry.task == task && entry.change.after() == after.as_ref().map(|(after, _)| &**after)
        };
        let added = entries
            .iter_mut()
            .filter(|entry| is_it(entry))
            .find_map(|entry| match &mut entry.change {
                TextChange::Added {
                    from: from @ None, ..
                } => Some(from),
                _ => None,
            });
        if let (Some(from), Some((_, typed))) = (added, before) {
            *from = Some(typed);
        }
    }
}

/// It has ended by its lane alone.
fn is_open(document: &Document<'_>, item: &Item<'_>) -> bool {
    let has_ended = matches!(item.status, Status::Dead | Status::Completed);
    // An item with an ID may have been completed by hand elsewhere, and brought here by git.
    let is_bare = (item.id.is_none() || item.status == Status::Dead)
        && !item.checked
        && !item.nested
        && !item.quarantined;
    has_ended
        && is_bare
        && document
            .task_as(item, TaskId::nobody(), Status::Pending)
            .state
            == State::default()
}
