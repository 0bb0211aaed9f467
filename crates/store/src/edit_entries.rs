//! The log entries of external edits to a queue. Knows not how the edits were detected.

use std::collections::HashMap;

use super::archived::statuses;
use super::entry::{Entry, HAND, LANES, PROSE, TextChange};
use super::index::ItemIndex;
use super::queue::Queue;
use super::recovery::text_lines;
use tavern_core::document::{Document, Item, open};
use tavern_core::event::Kind;
use tavern_core::marked_item::MarkedItem;
use tavern_core::merge::{Changed, bare, changes, prose};
use tavern_core::states::StateKeys;
use tavern_core::task::{Status, TaskId, Timestamp};

/// The number of items per save for which added, removed or moved items have their positions logged.
const MOST_PLACES: usize = 20;

/// The items of a queue that are copies of items in other queues, by ID. Their changes are not logged under that ID.
pub(super) struct Copies<'q> {
    queue: &'q Queue,
    /// Each copy with the queue of the original.
    pub(super) all: HashMap<TaskId, Queue>,
    new: Vec<TaskId>,
}

impl<'q> Copies<'q> {
    /// Finds the copies in `queue`, which had the items `own` and now has the text `saved`.
    pub(super) fn of(
        index: &ItemIndex<'_>,
        queue: &'q Queue,
        own: &HashMap<TaskId, Status>,
        saved: &str,
    ) -> Copies<'q> {
        let (mut all, mut new) = (HashMap::new(), Vec::new());
        let saved = statuses(&open(saved));
        for id in own
            .keys()
            .chain(saved.keys().filter(|id| !own.contains_key(*id)))
        {
            let Some(home) = index.elsewhere(id, queue) else {
                continue;
            };
            // An item known elsewhere when it first appears here is a copy.
            let is_new = !own.contains_key(id);
            if is_new || index.is_copy(id, queue) {
                all.insert(id.clone(), home.clone());
                new.extend(is_new.then(|| id.clone()));
            }
        }
        new.sort();
        Copies { queue, all, new }
    }

    /// Returns notes that the copies were made. They also record which of the two is the original.
    pub(super) fn notes(&self, now: Timestamp) -> Vec<Entry> {
        let cause = format!(
            "a save put a copy of it into {}; agents skip it",
            self.queue.id
        );
        let entry = |id: &TaskId| Entry {
            task: Some(id.clone()),
            ..note(&self.all[id], cause.clone(), now)
        };
        self.new.iter().map(entry).collect()
    }
}

/// Returns a note about a queue that changes no item.
pub(super) fn note(queue: &Queue, cause: String, now: Timestamp) -> Entry {
    let (queue, agent) = (Some(queue.id.clone()), Some(HAND.to_owned()));
    Entry {
        queue,
        agent,
        cause: Some(cause),
        ..Entry::new(Kind::Noted, now)
    }
}

/// Returns the entries for a person's changes to `ours`. Items that share an ID are logged without one, since it is
/// ambiguous.
pub(super) fn done_by_hand(
    copies: &Copies<'_>,
    ours: &str,
    merged: &str,
    now: Timestamp,
) -> Vec<Entry> {
    let (queue, changes) = (copies.queue, changes(ours, merged).into_iter());
    let texts = [ours, merged].map(open);
    let is_double = |id: &TaskId| texts.iter().any(|text| text.named(id).len() > 1);
    let changes = changes.map(|changed| {
        let task = changed
            .task
            .filter(|id| !copies.all.contains_key(id) && !is_double(id));
        Changed { task, ..changed }
    });
    let mut places_left = MOST_PLACES;
    let mut marked = MarkedItem::new_in(merged, ours);
    let entry = |changed: Changed| {
        let [old, new] = &texts;
        let [was, is] = [(old, changed.at[0]), (new, changed.at[1])]
            .map(|(text, at)| text.items().iter().find(|item| Some(item.span.start) == at));
        let mut entry = by_hand(queue, changed, now)?;
        if let (Some(was), None) = (was, is) {
            let is_it = |marked: &MarkedItem| marked.may_be(was.id.as_ref(), old.title(was));
            entry.marked = marked
                .iter()
                .position(is_it)
                .map(|at| marked.remove(at).block);
            // The item counts as never taken by an agent.
            entry.state = entry.marked.as_ref().map(|_| StateKeys::default());
        }
        let is_moved = entry.change.from() != entry.change.to();
        let is_same = |(was, is)| {
            bare(old.block(was)) == bare(new.block(is)) && stands_still([old, new], [was, is])
        };
        if is_moved && was.zip(is).is_some_and(is_same) {
            entry.cause = Some(LANES.to_owned());
        } else if is_moved && places_left > 0 {
            places_left -= 1;
            entry.left = was.map(|item| old.stood(item));
            entry.put = is.map(|item| new.stood(item));
        }
        Some(entry)
    };
    let mut entries: Vec<Entry> = changes.filter_map(entry).collect();
    let words = around_items(ours, merged);
    entries.extend(words.map(|change| Entry {
        kind: Kind::Edited,
        change,
        ..note(queue, PROSE.to_owned(), now)
    }));
    entries
}

/// Returns the change of the text around the items, if any.
pub(super) fn around_items(old: &str, new: &str) -> Option<TextChange> {
    let (before, after) = (prose(old), prose(new));
    text_lines(&before)
        .ne(text_lines(&after))
        .then_some(TextChange::Prose { before, after })
}

/// Returns true if the item kept its heading, but the meaning of headings has changed.
fn stands_still([old, new]: [&Document<'_>; 2], [was, is]: [&Item<'_>; 2]) -> bool {
    let lacks = |document: &Document<'_>, heading| {
        document
            .lanes()
            .iter()
            .all(|lane| document.lane_name(lane) != heading)
    };
    match (old.heading_of(was), new.heading_of(is)) {
        (Some(was), Some(is)) => was == is || lacks(new, was),
        (None, Some(is)) => lacks(old, is),
        (Some(was), None) => lacks(new, was),
        (None, None) => false,
    }
}

pub(super) fn by_hand(queue: &Queue, changed: Changed, now: Timestamp) -> Option<Entry> {
    let cause = changed
        .task
        .is_none()
        .then(|| format!("`{}`", changed.title.chars().take(120).collect::<String>()));
    let (kind, change) = match (changed.before, changed.after) {
        (None, None) => return None,
        (Some((before, from)), None) => (Kind::Removed, TextChange::Removed { from, before }),
        (None, Some((after, to))) => (
            Kind::Added,
            TextChange::Added {
                from: None,
                to,
                after,
            },
        ),
        (Some((before, from)), Some((after, to))) => (
            Kind::Edited,
            TextChange::Edited {
                before,
                after,
                moved: (from != to).then_some((from, to)),
            },
        ),
    };
    Some(Entry {
        kind,
        task: changed.task,
        cause,
        change,
        ..note(queue, String::new(), now)
    })
}
