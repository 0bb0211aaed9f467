//! Moves ended items from a queue to its archive, another document of the same format.
//!
//! Knows no files. Both texts are read again: an item stays if it would read otherwise in the archive, or if
//! its removal would make another one read otherwise.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use chrono::TimeDelta;

use crate::document::{Document, Item, parse};
use crate::lane::{LanePlace, LaneSet};
use crate::markup;
use crate::merge::unite;
use crate::patch::said;
use crate::task::{Status, TaskId, Timestamp};
use crate::text::Edit;

/// When items are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Minimum time since they ended.
    pub after: Option<TimeDelta>,
    /// Number of ended items that stay, the last of the document.
    pub keep: Option<usize>,
    /// Whether dead items are moved, too.
    pub dead: bool,
}

/// The moved items, and both documents afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub queue: String,
    pub archive: String,
    pub items: Vec<Gone>,
}

/// An item that is no longer in its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    pub id: Option<TaskId>,
    pub status: Status,
    /// Its text, as it was in the queue.
    pub block: String,
}

impl Gone {
    /// Returns an item as it is now.
    pub fn of(document: &Document<'_>, item: &Item<'_>) -> Gone {
        Gone {
            id: item.id.clone(),
            status: item.status,
            block: document.block(item).to_owned(),
        }
    }
}

/// Limit of items that are moved one by one if they can't all move at once; the others wait for the next time.
const MOST_SINGLE: usize = 50;

/// Returns the head of an archive.
pub fn head(name: &str) -> String {
    format!("# Archive of {name}\n\n")
}

/// Returns the indices of the top-level items to move, in the order of the document. `is_held` returns true
/// for held items. `is_long_ended` decides for items without a time of completion.
pub fn due(
    document: &Document<'_>,
    policy: &Policy,
    now: Timestamp,
    is_held: &dyn Fn(&TaskId) -> bool,
    is_long_ended: &dyn Fn(&Item<'_>) -> bool,
) -> Vec<usize> {
    let items = document.items();
    let has_ended = |item: &Item<'_>| match item.status {
        Status::Completed | Status::Cancelled => true,
        // A dead item that was never tried is there by mistake.
        Status::Dead => policy.dead && item.id.is_some(),
        _ => false,
    };
    let mut count: HashMap<&TaskId, usize> = HashMap::new();
    items
        .iter()
        .filter_map(|item| item.id.as_ref())
        .for_each(|id| *count.entry(id).or_default() += 1);
    // Duplicate IDs are ambiguous for dependencies and people, and must be resolved first.
    let is_free = |item: &Item<'_>| {
        !item.quarantined
            && item
                .id
                .as_ref()
                .is_none_or(|id| count.get(id) == Some(&1) && !is_held(id))
    };
    // Parts come after the item that contains them.
    let mut has_open_part = HashSet::new();
    for item in items
        .iter()
        .filter(|item| item.id.is_some() && !(has_ended(item) && is_free(item)))
    {
        has_open_part.extend(outwards(items, item.within));
    }
    // Titles name an item only in its own document.
    let open = items.iter().filter(|item| !item.status.is_ended());
    let named: HashSet<usize> = open
        .flat_map(|item| document.named_by(item).unwrap_or_default())
        .collect();
    let is_movable = |index: usize, item: &Item<'_>| {
        let is_needed = has_open_part.contains(&index) || named.contains(&index);
        item.within.is_none() && !item.nested && has_ended(item) && is_free(item) && !is_needed
    };
    let ended: Vec<usize> = items
        .iter()
        .enumerate()
        .filter(|(index, item)| is_movable(*index, item))
        .map(|(index, _)| index)
        .collect();
    let surplus = policy
        .keep
        .map_or(0, |keep| ended.len().saturating_sub(keep));
    let is_old = |index: usize| {
        let Some(after) = policy.after else {
            return false;
        };
        let completed = document.task_of(&items[index]).state.completed();
        completed.map_or_else(
            || is_long_ended(&items[index]),
            |completed| now - completed > after,
        )
    };
    let due = ended
        .into_iter()
        .enumerate()
        .filter(|(nth, index)| *nth < surplus || is_old(*index));
    due.map(|(_, index)| index)
        .filter(|index| reads_alike(document, *index))
        .collect()
}

/// Returns this index, that of the item around it, and so on.
fn outwards(items: &[Item<'_>], first: Option<usize>) -> impl Iterator<Item = usize> {
    std::iter::successors(first, |index| items[*index].within)
}

/// Moves the items that are due from the queue `name` to its archive (empty if there is none yet); `None` if
/// nothing is due.
pub fn archive(
    name: &str,
    document: &Document<'_>,
    archive: &str,
    policy: &Policy,
    now: Timestamp,
    is_held: &dyn Fn(&TaskId) -> bool,
    is_long_ended: &dyn Fn(&Item<'_>) -> bool,
) -> Option<Moved> {
    let queue = document.text();
    let mut due: HashSet<usize> = due(document, policy, now, is_held, is_long_ended)
        .into_iter()
        .collect();
    due.extend(twins(document, archive, is_held));
    let due = (0..document.items().len()).filter(|index| due.contains(index));
    let items = due
        .map(|index| Gone::of(document, &document.items()[index]))
        .collect();
    let items = without_doubles(items, document, archive);
    let archive = if archive.trim().is_empty() {
        head(name)
    } else {
        archive.to_owned()
    };
    if items.is_empty() {
        return None;
    }
    if let Some(moved) = together(queue, &archive, &items) {
        return Some(moved);
    }
    let mut moved = Moved {
        queue: queue.to_owned(),
        archive,
        items: Vec::new(),
    };
    for item in items.into_iter().take(MOST_SINGLE) {
        if let Some(next) = together(&moved.queue, &moved.archive, std::slice::from_ref(&item)) {
            (moved.queue, moved.archive) = (next.queue, next.archive);
            moved.items.push(item);
        }
    }
    (!moved.items.is_empty()).then_some(moved)
}

/// Moves these items, all or none.
pub fn together(queue: &str, archive: &str, items: &[Gone]) -> Option<Moved> {
    let queue = taken_out(queue, items)?;
    let archive = put_in(archive, items)?;
    Some(Moved {
        queue,
        archive,
        items: items.to_vec(),
    })
}

/// Returns true if the item and its parts read the same in an archive, where a part gets no status from a lane.
fn reads_alike(document: &Document<'_>, index: usize) -> bool {
    let item = &document.items()[index];
    let Some(own) = own_text(&Gone::of(document, item)) else {
        return false;
    };
    let inside = document.items()[index..]
        .iter()
        .take_while(|part| part.span.start < item.span.end);
    parse(&own)
        .0
        .items()
        .iter()
        .map(|item| (&item.id, item.status))
        .eq(inside.map(|item| (&item.id, item.status)))
}

/// Returns items that are in the archive already, unchanged. A crash or a merge of two branches left them in both.
fn twins(document: &Document<'_>, archive: &str, is_held: &dyn Fn(&TaskId) -> bool) -> Vec<usize> {
    if archive.is_empty() {
        return Vec::new();
    }
    let all = Policy {
        after: None,
        keep: Some(0),
        dead: true,
    };
    let now = Timestamp::UNIX_EPOCH;
    let (archived, _) = parse(archive);
    let known: HashSet<&TaskId> = archived
        .items()
        .iter()
        .filter_map(|item| item.id.as_ref())
        .collect();
    let is_twin = |index: &usize| {
        let item = &document.items()[*index];
        item.id.as_ref().is_some_and(|id| known.contains(id))
            && has(&archived, &Gone::of(document, item))
    };
    due(document, &all, now, is_held, &|_| false)
        .into_iter()
        .filter(is_twin)
        .collect()
}

/// Drops items without an ID that read the same as another one: they could not be distinguished afterwards.
fn without_doubles(items: Vec<Gone>, document: &Document<'_>, archive: &str) -> Vec<Gone> {
    let mut items = items;
    let (archived, _) = parse(archive);
    let mut count: HashMap<&str, usize> = HashMap::new();
    for item in document.items().iter().filter(|item| item.id.is_none()) {
        *count.entry(document.block(item).trim_end()).or_default() += 1;
    }
    items.retain(|item| {
        item.id.is_some() || (count.get(item.block.trim_end()) == Some(&1) && !has(&archived, item))
    });
    items
}

/// Returns true if the archive has the item, as it was in its queue.
pub fn has(archive: &Document<'_>, item: &Gone) -> bool {
    let Some(own) = own_text(item) else {
        return false;
    };
    match &item.id {
        Some(id) => archive
            .find(id)
            .is_some_and(|found| archive.block(found).trim_end() == own.trim_end()),
        None => archive
            .items()
            .iter()
            .any(|found| archive.block(found).trim_end() == own.trim_end()),
    }
}

/// Returns the queue without the items; `None` if one is missing, or another would read otherwise.
pub fn taken_out(queue: &str, items: &[Gone]) -> Option<String> {
    let (document, _) = parse(queue);
    let mut going = Vec::new();
    let mut edits = Vec::new();
    let mut places = document.items().iter();
    for gone in items {
        // In the order of the document, so that one pass is enough.
        let item = places.find(|item| {
            item.within.is_none()
                && item.id == gone.id
                && (item.id.is_some() || item.status == gone.status)
                && document.block(item).trim_end() == gone.block.trim_end()
        })?;
        going.push(&item.span);
        edits.push(removal(queue, &item.span));
    }
    let is_going = |item: &Item<'_>| {
        let place = going.partition_point(|span| span.end <= item.span.start);
        going
            .get(place)
            .is_some_and(|span| span.start <= item.span.start)
    };
    document.applied(&edits, &is_going, &|_| false, &|_| true)
}

/// Returns the archive with the items at its end. An item that is in it already stays in place. If its text
/// there differs under the same ID, both texts are united at the end: git may have brought either.
pub fn put_in(archive: &str, items: &[Gone]) -> Option<String> {
    let (old, _) = parse(archive);
    let mut text = archive.to_owned();
    let known: HashSet<&TaskId> = old
        .items()
        .iter()
        .filter_map(|item| item.id.as_ref())
        .collect();
    let is_known = |item: &Gone| item.id.as_ref().is_none_or(|id| known.contains(id));
    let new = items
        .iter()
        .filter(|item| !(is_known(item) && has(&old, item)));
    let items: Vec<&Gone> = new.collect();
    let mut older = HashMap::new();
    for id in items
        .iter()
        .filter_map(|item| item.id.as_ref())
        .filter(|id| known.contains(id))
    {
        older.insert(id, old.block(old.find(id)?));
        text = forget(&text, id)?;
    }
    let mut added = String::from(if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    });
    let mut expected = Vec::new();
    for item in &items {
        let own = own_text(item)?;
        let older = item.id.as_ref().and_then(|id| older.get(id));
        let own = older.map_or_else(|| Some(own.clone()), |older| unite(&own, older))?;
        added.push_str(&own);
        if !own.ends_with('\n') {
            added.push('\n');
        }
        expected.push(own);
    }
    let are_there = |new: &Document<'_>| {
        let tops = new
            .items()
            .iter()
            .filter(|item| item.span.start >= text.len() && item.within.is_none());
        let tops = tops.map(|top| (&top.id, top.status, new.block(top).trim_end()));
        tops.eq(items
            .iter()
            .zip(&expected)
            .map(|(item, own)| (&item.id, item.status, own.trim_end())))
    };
    let end = Edit::insert(text.len(), added);
    parse(&text).0.applied(
        &[end],
        &|_| false,
        &|item| item.span.start >= text.len(),
        &are_there,
    )
}

/// Returns the archive without the item; `None` if another would read otherwise.
pub fn forget(archive: &str, id: &TaskId) -> Option<String> {
    let (document, _) = parse(archive);
    taken_out(archive, &[Gone::of(&document, document.find(id)?)])
}

/// Returns the item at the margin, showing its status by itself: an archive has no lanes.
fn own_text(item: &Gone) -> Option<String> {
    let indent = item.block.len() - item.block.trim_start_matches([' ', '\t']).len();
    let lines = item.block.split_inclusive('\n').map(|line| {
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        &line[blanks.min(indent)..]
    });
    let block: String = lines.collect();
    let (document, _) = parse(&block);
    document
        .items()
        .first()
        .filter(|alone| alone.id == item.id && alone.span.start == 0)?;
    let text = said(&block, item.status, LanePlace::Loose, LaneSet::default());
    let (read, _) = parse(&text);
    let status = read.items().first().map(|item| item.status);
    (status == Some(item.status)).then_some(text)
}

/// Returns the edit that removes a block. Where two blank lines would meet, one is removed, too.
fn removal(text: &str, span: &Range<usize>) -> Edit {
    let mut cut = span.clone();
    let before = text[..cut.start].trim_end_matches([' ', '\t', '\r', '\n']);
    let gap = text[before.len()..cut.start].matches('\n').count();
    let is_behind_blank = gap > 1 || before.is_empty();
    if is_behind_blank && cut.end < text.len() && markup::is_blank_line(text, cut.end) {
        cut.end = markup::line_end(text, cut.end, text.len());
    }
    Edit::delete(cut)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

    use super::*;
    use crate::lossless::documents;
    use crate::parse_with_states::with_states;

    const ALL: Policy = Policy {
        after: None,
        keep: Some(0),
        dead: true,
    };

    fn moved(queue: &Document<'_>, policy: &Policy) -> (String, String) {
        let now = "2026-11-22T10:00:00Z".parse().expect("it is a time");
        let found = archive(
            "main",
            queue,
            "",
            policy,
            now,
            &|id| id.as_str() == "T-9",
            &|_| false,
        );
        found.map_or((queue.text().to_owned(), String::new()), |moved| {
            (moved.queue, moved.archive)
        })
    }

    #[test]
    fn what_has_ended_is_moved() {
        let keep = |keep| Policy {
            after: None,
            keep: Some(keep),
            dead: false,
        };
        let after = |days| Policy {
            after: Some(TimeDelta::days(days)),
            keep: None,
            dead: false,
        };
        let rows = [
            (
                "- [x] T-1: a\n- [ ] T-2: b\n",
                keep(0),
                "- [ ] T-2: b\n",
                "- [x] T-1: a\n",
            ),
            // The last ones stay.
            (
                "- [x] T-1: a\n- [x] T-2: b\n",
                keep(1),
                "- [x] T-2: b\n",
                "- [x] T-1: a\n",
            ),
            (
                "- [x] T-1: a\n- [x] T-2: b\n",
                keep(2),
                "- [x] T-1: a\n- [x] T-2: b\n",
                "",
            ),
            // By age, where it is known.
            (
                "- [x] T-1: a (completed: 2026-11-01T10:00:00Z)\n- [x] T-2: b (completed: 2026-11-21T10:00:00Z)\n- [x] c\n",
                after(7),
                "- [x] T-2: b\n- [x] c\n",
                "- [x] T-1: a\n",
            ),
            // The item itself now shows the status of its lane.
            (
                "# Done\n- [ ] T-1: a\n# Pending\n",
                keep(0),
                "# Done\n# Pending\n",
                "- [x] T-1: a\n",
            ),
            (
                "# Dead\n- [ ] T-1: a\n# Done\n",
                keep(0),
                "# Dead\n- [ ] T-1: a\n# Done\n",
                "",
            ),
            (
                "# Dead\n- [ ] T-1: a\n# Done\n",
                ALL,
                "# Dead\n# Done\n",
                "- [ ] T-1: a (status: dead)\n",
            ),
            (
                "- [x] T-1: a (status: cancelled)\n",
                keep(0),
                "",
                "- [x] T-1: a (status: cancelled)\n",
            ),
            // Parts go with the whole, and only when they have ended; a step is no part.
            (
                "- [x] T-1: a\n  - [ ] T-2: b\n",
                keep(0),
                "- [x] T-1: a\n  - [ ] T-2: b\n",
                "",
            ),
            (
                "- [x] T-1: a\n  - [x] T-2: b\n  - [ ] c\n",
                keep(0),
                "",
                "- [x] T-1: a\n  - [x] T-2: b\n  - [ ] c\n",
            ),
            (
                "- [ ] T-1: a\n  - [x] T-2: b\n",
                keep(0),
                "- [ ] T-1: a\n  - [x] T-2: b\n",
                "",
            ),
            (
                "# Done\n- [ ] a\n  - [ ] T-2: b\n",
                keep(0),
                "# Done\n- [ ] a\n  - [ ] T-2: b\n",
                "",
            ),
            // Items with a duplicate ID stay until that is resolved, parts included.
            (
                "- [ ] T-1: a\n# Done\n- [ ] T-1: a\n",
                keep(0),
                "- [ ] T-1: a\n# Done\n- [ ] T-1: a\n",
                "",
            ),
            (
                "- [x] T-1: a\n- [x] T-1: b\n",
                keep(0),
                "- [x] T-1: a\n- [x] T-1: b\n",
                "",
            ),
            (
                "- [x] a\n  - [x] T-1: b\n- [x] T-1: c\n",
                keep(0),
                "- [x] a\n  - [x] T-1: b\n- [x] T-1: c\n",
                "",
            ),
            // Held items, and items that could not be distinguished.
            ("- [x] T-9: a\n", keep(0), "- [x] T-9: a\n", ""),
            (
                "- [x] a\n- [x] b\n- [x] a\n",
                keep(0),
                "- [x] a\n- [x] a\n",
                "- [x] b\n",
            ),
            // Blank lines don't pile up.
            (
                "# Done\n\n- [x] a\n\n- [x] b\n\n# Pending\n\n- [ ] c\n",
                keep(0),
                "# Done\n\n# Pending\n\n- [ ] c\n",
                "- [x] a\n- [x] b\n",
            ),
        ];
        for (queue, policy, left, archived) in rows {
            let head = if archived.is_empty() {
                String::new()
            } else {
                head("main")
            };
            assert_eq!(
                moved(&with_states(queue), &policy),
                (left.to_owned(), head + archived),
                "{queue}"
            );
        }
    }

    #[test]
    fn what_is_archived_again_stands_as_it_is_now_and_keeps_its_older_words() {
        let rows = [
            (
                "- [x] T-1: a\n",
                "- [x] T-1: a, and c (due: 2026-11-22T10:00:00Z)\n",
                "",
            ),
            (
                "- [x] T-1: a\n  One.\n  Three.\n",
                "- [x] T-1: a\n  One.\n  Two.\n  Three.\n",
                "",
            ),
            (
                "- [x] T-1: a, and b (role: x)\n  One.\n",
                "- [x] T-1: a (tags: [y])\n",
                "- [x] T-1: a, and b (tags: [y], role: x)\n  One.\n",
            ),
            (
                "- [x] T-1: b\n",
                "- [x] T-1: a\n",
                "- [x] T-1: a\n  <!-- conflict: title: b -->\n",
            ),
            (
                "- [x] T-1: b (priority: high)\n",
                "- [x] T-1: b\n",
                "- [x] T-1: b (priority: high)\n",
            ),
        ];
        for (older, newer, expected) in rows {
            let again = Gone {
                id: "T-1".parse().ok(),
                status: Status::Completed,
                block: newer.to_owned(),
            };
            let expected = if expected.is_empty() { newer } else { expected };
            let [archive, expected] = [
                format!("{older}- [x] T-2: b\n"),
                format!("- [x] T-2: b\n{expected}"),
            ];
            assert_eq!(
                put_in(&archive, std::slice::from_ref(&again)).as_ref(),
                Some(&expected)
            );
            // It was done before a crash.
            assert_eq!(put_in(&expected, &[again]), Some(expected));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_item_is_in_one_place_and_says_the_same(queue in documents(), keep in 0..4usize) {
            let told = |text: &str| {
                let (document, _) = parse(text);
                let mut told: Vec<_> = document
                    .items()
                    .iter()
                    .filter(|item| item.id.is_some() || item.within.is_none())
                    .map(|item| (item.id.clone(), item.status, document.title(item).to_owned()))
                    .collect();
                told.sort();
                told
            };
            let policy = Policy { keep: Some(keep), ..ALL };
            let (left, archived) = moved(&parse(&queue).0, &policy);
            let mut both = told(&left);
            both.extend(told(&archived));
            both.sort();
            prop_assert_eq!(both, told(&queue));
            // A crash left them in both: the one in the queue goes.
            let now = Timestamp::UNIX_EPOCH;
            let never = Policy { after: None, keep: None, dead: true };
            if let Some(again) = archive("main", &parse(&queue).0, &archived, &never, now, &|_| false, &|_| false) {
                prop_assert_eq!(again.archive, archived);
            }
        }
    }
}
