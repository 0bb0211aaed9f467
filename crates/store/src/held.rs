//! What somebody holds stays theirs, whatever a save makes of it. Knows no files.

use std::collections::{HashMap, HashSet};

use super::since::Since;
use tavern_core::document::{Document, Item, open, parse};
use tavern_core::merge::bare;
use tavern_core::patch::Patch;
use tavern_core::task::TaskId;
use tavern_core::text::{Edit, apply};

/// `saved`, in which the items `ids` have their IDs: it may be from before they got them.
pub(super) fn with_ids(saved: &str, ours: &str, ids: &HashSet<TaskId>) -> String {
    let (mut saved, mine) = (saved.to_owned(), parse(ours).0);
    for item in own(&mine, ids) {
        let (title, theirs) = (mine.title(item), open(&saved));
        let Some(id) = item.id.clone().filter(|id| theirs.find(id).is_none()) else {
            continue;
        };
        let (others, nameless) = (nameless(&mine, title), nameless(&theirs, title));
        if nameless.len() > others.len() {
            // It is what no other reads like, else the one in its place among them.
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

/// `saved`, in which the items that are `held` have their own IDs: somebody has given them others, or none, and their record shows
/// which they are. What `is_known` is an item elsewhere. Also the IDs that they had there, each with its own.
pub(super) fn with_own_ids(
    saved: &str,
    ours: &str,
    held: &HashSet<TaskId>,
    is_known: &dyn Fn(&TaskId) -> bool,
) -> (String, Vec<(Option<TaskId>, TaskId)>) {
    let (mut renamed, mine) = (Vec::new(), parse(ours).0);
    let lacks = {
        let theirs = open(saved);
        let is_lacking =
            |item: &&Item<'_>| item.id.as_ref().is_some_and(|id| theirs.find(id).is_none());
        own(&mine, held).filter(is_lacking).collect::<Vec<_>>()
    };
    let mut saved = saved.to_owned();
    for item in lacks {
        let (record, theirs) = (mine.task_of(item).state, open(&saved));
        let Some(id) = item.id.as_ref().filter(|_| record.since().is_some()) else {
            continue;
        };
        let has_record = |document: &Document<'_>, item: &Item<'_>| {
            document.task_of(item).state.trace() == record.trace()
        };
        // What stands there once by an ID of its own is that one, whatever it says.
        let is_other = |other: &TaskId| {
            is_known(other) || mine.find(other).is_some() && theirs.named(other).len() == 1
        };
        let all = theirs
            .items()
            .iter()
            .filter(|item| !item.nested && !item.id.as_ref().is_some_and(is_other));
        let found: Vec<&Item<'_>> = all.filter(|item| has_record(&theirs, item)).collect();
        let title = mine.title(item);
        let Some(it) = found
            .iter()
            .find(|item| theirs.title(item) == title)
            .or(found.first())
        else {
            continue;
        };
        renamed.push((it.id.clone(), id.clone()));
        saved = apply(
            &saved,
            &match it.id_span() {
                Some(span) => vec![Edit::replace(span, id.as_str())],
                None => theirs.change(
                    it,
                    &Patch {
                        id: Some(id.clone()),
                        ..Patch::default()
                    },
                ),
            },
        );
    }
    (saved, renamed)
}

/// `saved`, in which the items of `ours` have their IDs that a person has given others, which nobody else `is_known` by: they read the
/// same otherwise, and there is one of each.
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

/// The items whose ID `is_it`, by what they read without that.
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

/// `text`, which was made of `ours`, with the items that are `held` in the status in which they are held, also where the headings
/// around them went or came.
pub(super) fn with_held(text: String, ours: &str, held: &HashSet<TaskId>) -> String {
    let (mut out, mut back) = (Since::default(), Since::default());
    let (mine, theirs) = (parse(ours).0, open(&text));
    for item in own(&mine, held).filter(|item| item.status.is_held()) {
        let Some(id) = &item.id else { continue };
        // Of two that go by its ID one is it.
        let named = theirs.named(id);
        let found = named
            .iter()
            .find(|found| found.status == item.status)
            .or(named.first());
        // Under a heading that is no lane's it would count as nobody's.
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
