//! Which version of a queue a saver had loaded, as far as log and text can tell.
//!
//! Item by item: what reads as an older version of the item is one, and what was edited rests on the version that it is
//! most like. Only what Tavern did is taken back: whoever takes back their own edit means it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::entry::{Entry, HAND, TextChange};
use super::error::Error;
use super::find::Board;
use super::log::{MOST_LINES, task_of, walk_back};
use super::queue::Queue;
use super::redo::said;
use crate::board::document::{Document, Item, parse};
use crate::board::lane::LaneKind;
use crate::board::likeness;
use crate::board::merge::{are_alike, bare, merge, prose};
use crate::board::task::{Status, TaskId};
use crate::board::text::{Edit, apply};

/// What was done by hand so many events before the first one that a save knows nothing of, the saver may not have seen
/// either: a save shows only once it has been taken over.
const DOUBT: u64 = 32;

/// Older versions of one item that an edited one is compared with.
const MOST_VERSIONS: usize = 30;

/// The text that was loaded.
pub(super) struct Loaded {
    pub text: String,
    /// The items that were another then.
    pub stale: Vec<TaskId>,
}

/// An item as it was before an event.
struct Version {
    /// The event's number.
    until: u64,
    by_hand: bool,
    was: Was,
}

/// An item's text, and its status where an event tells it; nothing where it was not there.
type Was = Option<(String, Option<Status>)>;

/// The version of `ours` on which `saved` most likely rests.
pub(super) fn loaded(board: &Board, queue: &Queue, ours: &str, saved: &str) -> Result<Loaded, Error> {
    let (mine, other) = (parse(ours).0, parse(saved).0);
    let differing = differing(&mine, &other);
    let past = if differing.is_empty() { Past::default() } else { Past::of(board, queue, &differing)? };
    let mut stale: BTreeMap<TaskId, Was> = BTreeMap::new();
    let mut loaded_before = u64::MAX;
    for (id, versions) in &past.versions {
        let by_tavern: Vec<&Version> = versions.iter().filter(|version| !version.by_hand).collect();
        if let Some(version) = rests_on(&by_tavern, &mine, &other, id) {
            loaded_before = loaded_before.min(version.until);
            stale.insert(id.clone(), version.was.clone());
        }
    }
    if stale.is_empty() {
        return Ok(Loaded { text: ours.to_owned(), stale: Vec::new() });
    }
    // An old buffer knows nothing of what other hands did later, nor of what was not there yet. In doubt it is kept.
    let loaded_before = loaded_before.saturating_sub(DOUBT);
    for (id, versions) in past.versions.iter().filter(|(id, _)| !stale.contains_key(*id)).collect::<Vec<_>>() {
        let later: Vec<&Version> = versions.iter().filter(|version| version.until >= loaded_before).collect();
        if let Some(version) = rests_on(&later, &mine, &other, id) {
            stale.insert(id.clone(), version.was.clone());
        } else if other.find(id).is_none() {
            let is_new = |version: &Version| {
                let may_be = !version.by_hand && past.newest_same < version.until;
                version.was.is_none() && (version.until >= loaded_before || may_be)
            };
            if versions.iter().any(is_new) {
                stale.insert(id.clone(), None);
            }
        }
    }
    let mut edits: Vec<Edit> = stale.iter().flat_map(|(id, was)| taken_back(&mine, id, was.as_ref())).collect();
    let nameless = mine.items().iter().filter(|item| item.id.is_none() && !item.nested);
    let is_new = |item: &&Item<'_>| {
        let added = past.nameless.get(&bare(mine.block(item)));
        added.is_some_and(|added| *added >= loaded_before)
    };
    let is_saved =
        |item: &&Item<'_>| other.items().iter().any(|other_item| other.title(other_item) == mine.title(item));
    edits.extend(nameless.filter(is_new).filter(|item| !is_saved(item)).map(|item| Edit::delete(item.span.clone())));
    let text = apply(ours, &edits);
    let text = with_prose_of_then(&text, saved, past.prose.iter().filter(|(until, _)| *until >= loaded_before));
    Ok(Loaded { text, stale: stale.into_keys().collect() })
}

/// The text with its prose as it was before the event after which the save's prose is most like it.
fn with_prose_of_then<'p>(text: &str, saved: &str, past: impl Iterator<Item = &'p (u64, String)>) -> String {
    let now = prose(text);
    // Blank lines come and go with the items between them.
    let filled = |text: &str| said(text).fold(String::new(), |lines, line| lines + line + "\n");
    let theirs = filled(&prose(saved));
    let likeness = |prose: &str| likeness::of_lines(&filled(prose), &theirs);
    let mut best = (likeness(&now), None);
    for (_, before) in past {
        let ratio = likeness(before);
        if ratio > best.0 {
            best = (ratio, Some(before));
        }
    }
    match best.1 {
        Some(before) => merge(&now, text, before, &|_| false).text,
        None => text.to_owned(),
    }
}

/// The named items that are not the same in both.
fn differing(mine: &Document<'_>, other: &Document<'_>) -> HashSet<TaskId> {
    let told = |document: &Document<'_>| -> HashMap<TaskId, (String, Status)> {
        let named = document.items().iter().filter_map(|item| Some((item.id.clone()?, item)));
        named.map(|(id, item)| (id, (bare(document.block(item)), item.status))).collect()
    };
    let (mine, other) = (told(mine), told(other));
    let differs = |id: &&TaskId| mine.get(*id) != other.get(*id);
    mine.keys().chain(other.keys()).filter(differs).cloned().collect()
}

/// What the log knows of the queue.
#[derive(Default)]
struct Past {
    /// Of the items that differ; newest first.
    versions: HashMap<TaskId, Vec<Version>>,
    /// When items without an ID were added by hand, by text.
    nameless: HashMap<String, u64>,
    /// The prose before each change of it, newest first, with the event's number.
    prose: Vec<(u64, String)>,
    /// The newest event of an item that is the same in both texts: the save knows of it.
    newest_same: u64,
}

impl Past {
    fn of(board: &Board, queue: &Queue, differing: &HashSet<TaskId>) -> Result<Past, Error> {
        let mut past = Past::default();
        let mut lines = 0;
        walk_back(board, &mut |line| {
            lines += 1;
            let task = task_of(line);
            let is_wanted = task.as_ref().is_none_or(|task| differing.contains(task));
            if is_wanted || past.newest_same == 0 {
                past.take(line, is_wanted, queue);
            }
            lines < MOST_LINES
        })?;
        Ok(past)
    }

    fn take(&mut self, line: &[u8], is_wanted: bool, queue: &Queue) {
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else { return };
        if entry.queue.as_ref() != Some(&queue.id) || entry.change == TextChange::Nothing {
            return;
        }
        let until = entry.seq;
        match (entry.task, entry.change) {
            _ if !is_wanted => self.newest_same = until,
            (Some(task), change) => {
                let by_hand = entry.agent.as_deref() == Some(HAND);
                let was = change.before().map(|text| (text.to_owned(), change.from()));
                self.versions.entry(task).or_default().push(Version { until, by_hand, was });
            }
            (None, TextChange::Prose { before, .. }) => self.prose.push((until, before)),
            (None, TextChange::Added { after, .. }) => {
                self.nameless.entry(bare(&after)).or_insert(until);
            }
            _ => {}
        }
    }
}

/// The older version of the item that the save has, as it was or edited. Nothing if it rests on the newest.
fn rests_on<'v>(
    versions: &[&'v Version],
    mine: &Document<'_>,
    other: &Document<'_>,
    id: &TaskId,
) -> Option<&'v Version> {
    let saved = other.find(id);
    let is_saved = |version: &&'v Version| {
        let Some((text, status)) = &version.was else { return false };
        let text = bare(text);
        let is_same =
            |item: &Item<'_>| bare(other.block(item)) == text && status.is_none_or(|status| status == item.status);
        match saved {
            Some(item) => is_same(item),
            // The line from before an ID was given to it.
            None => other.items().iter().any(|item| item.id.is_none() && is_same(item)),
        }
    };
    if let Some(version) = versions.iter().copied().find(is_saved) {
        return Some(version);
    }
    let Some(saved) = saved else {
        // Edited, and from before it had an ID.
        let title = |version: &Version| {
            let text = &version.was.as_ref()?.0;
            let (document, _) = parse(text);
            let item = document.items().first().filter(|item| item.id.is_none())?;
            Some(document.title(item).to_owned())
        };
        return versions.iter().copied().find(|version| {
            let Some(title) = title(version) else { return false };
            let nameless = other.items().iter().filter(|item| item.id.is_none());
            nameless.into_iter().any(|item| are_alike(&title, other.title(item)))
        });
    };
    let block = bare(other.block(saved));
    let likeness = |text: &str, status: Option<Status>| {
        let ratio = likeness::of_words(&bare(text), &block);
        // A lane says nothing in the text.
        if status.is_none_or(|status| status == saved.status) { ratio + 0.1 } else { ratio }
    };
    let newest = mine.find(id).map_or(0.0, |item| likeness(mine.block(item), Some(item.status)));
    let mut best = (newest, None);
    for version in versions.iter().copied().take(MOST_VERSIONS) {
        let Some((text, status)) = &version.was else { continue };
        let ratio = likeness(text, *status);
        if ratio > best.0 {
            best = (ratio, Some(version));
        }
    }
    best.1
}

/// The edits of `mine` that make the item what it was.
fn taken_back(mine: &Document<'_>, id: &TaskId, was: Option<&(String, Option<Status>)>) -> Vec<Edit> {
    match (mine.find(id), was) {
        (Some(item), None) => vec![Edit::delete(item.span.clone())],
        (Some(item), Some((text, status))) => {
            let moves = status.filter(|status| LaneKind::of(*status) != LaneKind::of(item.status));
            match moves.filter(|_| mine.has_lanes() && !item.nested) {
                Some(status) => {
                    let mut edits = vec![Edit::delete(item.span.clone())];
                    edits.extend(mine.add(status, text));
                    edits
                }
                None => vec![Edit::replace(item.span.clone(), text.clone())],
            }
        }
        (None, Some((text, status))) => mine.add(status.unwrap_or(Status::Pending), text),
        (None, None) => Vec::new(),
    }
}
