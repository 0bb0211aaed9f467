//! Keeps held items with their holders through any save. Knows no files.

use std::collections::{HashMap, HashSet};

use super::rewind::Since;
use tavern_core::document::{Document, Item, open, parse};
use tavern_core::merge::{bare, is_typed_on};
use tavern_core::nearest::words_of;
use tavern_core::patch::Patch;
use tavern_core::task::TaskId;
use tavern_core::text::{Edit, apply};

/// Returns `saved` with the IDs `ids` put back on their items: it may predate them.
pub(super) fn with_ids(saved: &str, ours: &str, ids: &HashSet<TaskId>) -> String {
    let (mut saved, mine) = (saved.to_owned(), parse(ours).0);
    for item in own(&mine, ids) {
        let (title, theirs) = (mine.title(item), open(&saved));
        let Some(id) = item.id.clone().filter(|id| theirs.find(id).is_none()) else {
            continue;
        };
        let (others, nameless) = (nameless(&mine, title), nameless(&theirs, title));
        if nameless.len() > others.len() {
            // Prefers an item that no other reads like, else the one at the same position among them.
            let is_other = |it: &&Item<'_>| {
                others
                    .iter()
                    .any(|other| mine.block(other) == theirs.block(it))
            };
            let before = others
                .iter()
                .filter(|other| other.span.start < item.span.start)
                .count();
            let it = nameless
                .iter()
                .copied()
                .find(|it| !is_other(it))
                .unwrap_or(nameless[before]);
            let patch = Patch {
                id: Some(id),
                ..Patch::default()
            };
            saved = apply(&saved, &theirs.change(it, &patch));
        }
    }
    saved
}

/// Returns `saved` with the IDs restored of held items and items with a state (`tracked`), where another clone or a
/// person removed or changed them. Also returns the IDs found there, each with the original.
/// Items are matched by the words of their titles; those of held items may have been extended. Items that `is_known`
/// elsewhere are not matched.
pub(super) fn with_own_ids(
    saved: &str,
    ours: &str,
    [held, tracked]: [&HashSet<TaskId>; 2],
    is_known: &dyn Fn(&TaskId) -> bool,
) -> (String, Vec<(Option<TaskId>, TaskId)>) {
    let (mine, theirs) = (parse(ours).0, open(saved));
    let [own_counts, counts] = [&mine, &theirs].map(counts);
    let all = held.union(tracked).cloned().collect();
    let ids = own(&mine, &all).filter_map(|item| Some((item, item.id.as_ref()?)));
    let lacking: Vec<_> = ids.filter(|(_, id)| !counts.contains_key(id)).collect();
    if lacking.is_empty() {
        return (saved.to_owned(), Vec::new());
    }
    let words = |title: &str| words_of(title).collect::<Vec<_>>().join(" ");
    let nameless = mine.items().iter().filter(|item| item.id.is_none());
    let nameless: HashSet<&str> = nameless
        .filter(|item| !item.nested)
        .map(|item| mine.title(item))
        .collect();
    let mut by_words: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, it) in theirs
        .items()
        .iter()
        .enumerate()
        .filter(|(_, it)| !it.nested)
    {
        by_words
            .entry(words(theirs.title(it)))
            .or_default()
            .push(at);
    }
    let (mut renamed, mut edits, mut taken) = (Vec::new(), Vec::new(), HashSet::new());
    for (item, id) in lacking {
        let title = mine.title(item);
        // An item that reads like another one of ours is that one.
        let is_free = |at: &usize| {
            let it = &theirs.items()[*at];
            match &it.id {
                _ if it.nested || taken.contains(at) => false,
                None => !nameless.contains(theirs.title(it)),
                // A copy of this item under another item's ID.
                Some(other) => match own_counts.get(other) {
                    Some(count) => theirs.title(it) == title && counts[other] > *count,
                    None => !is_known(other),
                },
            }
        };
        let same = [words(title), words(&format!("{id} {title}"))];
        let same = same
            .iter()
            .filter_map(|words| by_words.get(words))
            .flatten();
        let goes_on = |at: &usize| {
            let other = theirs.title(&theirs.items()[*at]);
            is_typed_on(other, title) || is_typed_on(title, other)
        };
        let typed_on = (0..theirs.count()).filter(|at| held.contains(id) && goes_on(at));
        let Some(at) = same.copied().chain(typed_on).filter(is_free).min() else {
            continue;
        };
        taken.insert(at);
        let it = &theirs.items()[at];
        renamed.push((it.id.clone(), id.clone()));
        let named = Patch {
            id: Some(id.clone()),
            ..Patch::default()
        };
        edits.extend(theirs.change(it, &named));
    }
    edits.sort_by_key(|edit: &Edit| edit.span.start);
    (apply(saved, &edits), renamed)
}

/// Returns how often each ID occurs in the document.
fn counts<'d>(document: &'d Document<'_>) -> HashMap<&'d TaskId, usize> {
    let mut counts = HashMap::new();
    for id in document.items().iter().filter_map(|item| item.id.as_ref()) {
        *counts.entry(id).or_default() += 1;
    }
    counts
}

/// Returns `saved` with former IDs restored, where a person replaced an item's ID with one that `is_known` nowhere.
/// The items must be equal otherwise, and unique.
pub(super) fn with_former_ids(
    saved: &str,
    ours: &str,
    is_known: &dyn Fn(&TaskId) -> bool,
) -> String {
    let (theirs, mine) = (parse(saved).0, parse(ours).0);
    let is_new = |id: &TaskId| mine.find(id).is_none() && !is_known(id);
    let is_former = |id: &TaskId| theirs.find(id).is_none();
    let (new, former) = (by_words(&theirs, &is_new), by_words(&mine, &is_former));
    let edits = new.into_iter().filter_map(|(words, new)| {
        match (&*new, former.get(&words).map(Vec::as_slice)) {
            ([new], Some([former])) => {
                Some(Edit::replace(new.id_span()?, former.id.as_ref()?.as_str()))
            }
            _ => None,
        }
    });
    apply(saved, &edits.collect::<Vec<_>>())
}

/// Returns the items with IDs that satisfy `is_it`, by their text without the ID.
fn by_words<'d, 't>(
    document: &'d Document<'t>,
    is_it: &dyn Fn(&TaskId) -> bool,
) -> HashMap<String, Vec<&'d Item<'t>>> {
    let mut items: HashMap<String, Vec<&Item<'t>>> = HashMap::new();
    for item in document.items().iter().filter(|item| !item.nested) {
        if let Some(id) = item.id.as_ref().filter(|id| is_it(id)) {
            items
                .entry(bare(document.block(item)).replacen(id.as_str(), "", 1))
                .or_default()
                .push(item);
        }
    }
    items
}

/// Returns `text`, which is based on `ours`, with `held` items in the status in which they are held, also where the
/// headings around them were removed or added.
pub(super) fn with_held(text: String, ours: &str, held: &HashSet<TaskId>) -> String {
    let (mut out, mut back) = (Since::default(), Since::default());
    let (mine, theirs) = (parse(ours).0, open(&text));
    for item in own(&mine, held) {
        let Some(id) = &item.id else { continue };
        // Of two items with the same ID, one is chosen.
        let named = theirs.named(id);
        let found = named
            .iter()
            .find(|found| found.status == item.status)
            .or(named.first());
        // Under a heading that is no lane it would count as unheld.
        let is_lost = found.is_some_and(|found| found.quarantined && !item.quarantined);
        if is_lost {
            out.set(id.clone(), None);
        }
        if is_lost || found.is_none_or(|found| found.status != item.status) {
            let block = found.map_or_else(|| mine.block(item), |found| theirs.block(found));
            back.set(id.clone(), Some((block.to_owned(), item.status)));
        }
    }
    if back.tasks().next().is_none() {
        text
    } else {
        back.taken_back(&out.taken_back(&text))
    }
}

fn own<'d, 't>(
    document: &'d Document<'t>,
    ids: &HashSet<TaskId>,
) -> impl Iterator<Item = &'d Item<'t>> {
    let is_own =
        |item: &&Item<'t>| !item.nested && item.id.as_ref().is_some_and(|id| ids.contains(id));
    document.items().iter().filter(is_own)
}

fn nameless<'d, 't>(document: &'d Document<'t>, title: &str) -> Vec<&'d Item<'t>> {
    let items = document
        .items()
        .iter()
        .filter(|item| item.id.is_none() && !item.nested);
    items.filter(|item| document.title(item) == title).collect()
}
