//! Lines appended to a queue with ended items in its last lane: new items there have not ended. Knows no files.

use std::cell::LazyCell;
use std::collections::HashSet;

use super::entry::{Entry, TextChange};
use tavern_core::document::{Document, Item, parse};
use tavern_core::markup;
use tavern_core::merge::{Changed, bare, changes};
use tavern_core::rewrite::{apply_each, set_item};
use tavern_core::state::State;
use tavern_core::task::{Status, TaskId};

/// Returns `text` with appended open items set to pending where they landed in a lane of ended items.
/// An item counts as appended if its box is open and `before` lacked it or had it ticked. A new one must be free of
/// keys that show work on it, and its ID must not be `known`: moving a known item there means that it has ended.
/// For a queue never seen before, only dead items without an ID are certainly new, since every item that died has one.
pub(super) fn with_appended(
    before: Option<&str>,
    text: String,
    is_known: &dyn Fn(&TaskId) -> bool,
) -> String {
    // The status is compared too: another item with the same words may have ended.
    let again: Vec<(Status, String)> = {
        let (document, _) = parse(&text);
        let mut open = document
            .items()
            .iter()
            .filter(|item| has_ended(item))
            .peekable();
        if open.peek().is_none() {
            return text;
        }
        let told = |item: &Item<'_>| (item.status, bare(document.block(item)));
        match before {
            None => open
                .filter(|item| item.status == Status::Dead && item.id.is_none())
                .filter(|item| is_bare(&document, item))
                .map(told)
                .collect(),
            Some(before) => {
                let was = parse(before).0;
                let is_again = |changed: &Changed, item: &Item<'_>| match changed.at[0] {
                    Some(at) => {
                        let mut was = was.items().iter();
                        was.any(|was| was.span.start == at && was.checked)
                    }
                    None => {
                        !changed.task.as_ref().is_some_and(is_known) && is_bare(&document, item)
                    }
                };
                let again = changes(before, &text).into_iter().filter_map(|changed| {
                    let is_it = |item: &&Item<'_>| Some(item.span.start) == changed.at[1];
                    let item = open.clone().find(is_it)?;
                    is_again(&changed, item).then(|| told(item))
                });
                again.collect()
            }
        }
    };
    apply_each(text, again, &|document, (status, block)| {
        let is_it = |item: &&Item<'_>| {
            has_ended(item) && item.status == *status && bare(document.block(item)) == *block
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

/// Returns `saved` with items split off that were appended to a line of `ours` that had no line end.
pub(super) fn with_line_ends(ours: &str, saved: &str) -> String {
    // Lazy: few lines have such a mark behind their beginning.
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

/// Records in the `entries` of added items the lane in which they were `typed`, where it differs from the one in
/// `text`. An editor that still shows the typed text has the item in that lane.
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

/// Returns true if the item has ended by its lane alone.
fn has_ended(item: &Item<'_>) -> bool {
    let has_ended = matches!(item.status, Status::Dead | Status::Completed);
    has_ended && !item.checked && !item.nested && !item.quarantined
}

/// Returns true if the item's text shows no work on it. An item with an ID may have been completed by hand in another
/// clone and brought by git.
fn is_bare(document: &Document<'_>, item: &Item<'_>) -> bool {
    let state = document
        .task_as(item, TaskId::nobody(), Status::Pending)
        .state;
    (item.id.is_none() || item.status == Status::Dead) && state == State::default()
}
