//! Which version of a queue a saver had loaded, as far as log and text can tell.
//!
//! Item by item: what reads as an older version of the item is one, and what was edited rests on the version that it is
//! most like. Only what Tavern did is taken back: whoever takes back their own edit means it.

use std::collections::{HashMap, HashSet};

use similar::TextDiff;

use crate::board::document::{Document, Item, parse};
use crate::board::lane::LaneKind;
use crate::board::task::{Status, TaskId};
use crate::board::text::{Edit, apply};

use super::error::Error;
use super::find::Board;
use super::hand::{HAND, bare};
use super::log::{Entry, walk_back};
use super::queue::Queue;

/// Lines of the log that are looked at, newest first.
const MOST_LINES: usize = 50_000;

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
    /// Its text, and its status where the event tells it; nothing if the event added it.
    was: Was,
}

/// An item's text, and its status where an event tells it; nothing where it was not there.
type Was = Option<(String, Option<Status>)>;

/// The version of `ours` on which `saved` most likely rests.
pub(super) fn loaded(board: &Board, queue: &Queue, ours: &str, saved: &str) -> Result<Loaded, Error> {
    let (mine, other) = (parse(ours).0, parse(saved).0);
    let differing = differing(&mine, &other);
    let mut stale: Vec<(TaskId, Was)> = Vec::new();
    if !differing.is_empty() {
        let past = Past::of(board, queue, &differing)?;
        for id in &differing {
            let versions = past.versions.get(id).map_or(&[][..], Vec::as_slice);
            if let Some(version) = rests_on(versions, &mine, &other, id) {
                stale.push((id.clone(), version.was.clone()));
            }
        }
        // What is not in the save was not there yet, if the rest of it is old too and knows nothing later.
        if !stale.is_empty() {
            for (id, versions) in &past.versions {
                let added = versions.iter().find(|version| version.was.is_none());
                let is_later = added.is_some_and(|added| past.newest_same < added.until);
                if is_later && other.find(id).is_none() && !stale.iter().any(|(known, _)| known == id) {
                    stale.push((id.clone(), None));
                }
            }
        }
    }
    stale.sort_by(|one, two| one.0.cmp(&two.0));
    let edits: Vec<Edit> = stale.iter().flat_map(|(id, was)| taken_back(&mine, id, was.as_ref())).collect();
    Ok(Loaded { text: apply(ours, &edits), stale: stale.into_iter().map(|(id, _)| id).collect() })
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

/// What the log knows of the items.
#[derive(Default)]
struct Past {
    /// Newest first.
    versions: HashMap<TaskId, Vec<Version>>,
    /// The newest event of an item that is the same in both texts: the save knows of it.
    newest_same: u64,
}

impl Past {
    fn of(board: &Board, queue: &Queue, differing: &HashSet<TaskId>) -> Result<Past, Error> {
        let mut past = Past::default();
        let mut lines = 0;
        walk_back(board, &mut |line| {
            lines += 1;
            let Some(task) = task_of(line) else { return lines < MOST_LINES };
            let is_wanted = differing.contains(&task);
            if is_wanted || past.newest_same == 0 {
                past.take(line, task, is_wanted, queue);
            }
            lines < MOST_LINES
        })?;
        Ok(past)
    }

    fn take(&mut self, line: &[u8], task: TaskId, is_wanted: bool, queue: &Queue) {
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else { return };
        if entry.queue.as_ref() != Some(&queue.id) || (entry.before.is_none() && entry.after.is_none()) {
            return;
        }
        if !is_wanted {
            self.newest_same = entry.seq;
        } else if entry.agent.as_deref() != Some(HAND) {
            let was = entry.before.map(|text| (text, entry.from));
            self.versions.entry(task).or_default().push(Version { until: entry.seq, was });
        }
    }
}

/// The older version of the item that the save has, as it was or edited. Nothing if it rests on the newest.
fn rests_on<'v>(
    versions: &'v [Version],
    mine: &Document<'_>,
    other: &Document<'_>,
    id: &TaskId,
) -> Option<&'v Version> {
    let saved = other.find(id);
    let is_saved = |version: &&Version| {
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
    if let Some(version) = versions.iter().find(is_saved) {
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
        return versions.iter().find(|version| {
            let Some(title) = title(version) else { return false };
            let nameless = other.items().iter().filter(|item| item.id.is_none());
            nameless.into_iter().any(|item| is_like(&title, other.title(item)))
        });
    };
    let block = bare(other.block(saved));
    let likeness = |text: &str, status: Option<Status>| {
        let ratio = TextDiff::from_words(bare(text).as_str(), block.as_str()).ratio();
        // A lane says nothing in the text.
        if status.is_none_or(|status| status == saved.status) { ratio + 0.1 } else { ratio }
    };
    let newest = mine.find(id).map_or(0.0, |item| likeness(mine.block(item), Some(item.status)));
    let mut best = (newest, None);
    for version in versions.iter().take(MOST_VERSIONS) {
        let Some((text, status)) = &version.was else { continue };
        let ratio = likeness(text, *status);
        if ratio > best.0 {
            best = (ratio, Some(version));
        }
    }
    best.1
}

fn is_like(title: &str, other: &str) -> bool {
    let goes_on = !other.is_empty() && (title.starts_with(other) || other.starts_with(title));
    goes_on || TextDiff::from_chars(title, other).ratio() > 0.6
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

/// The task of a log line, without reading the rest of it.
fn task_of(line: &[u8]) -> Option<TaskId> {
    const NAME: &[u8] = b"\"task\":\"";
    // It stands among the first keys; what stands in texts is escaped.
    let head = &line[..line.len().min(256)];
    let start = memchr::memmem::find(head, NAME)? + NAME.len();
    let end = start + memchr::memchr(b'"', &head[start..])?;
    std::str::from_utf8(&head[start..end]).ok()?.parse().ok()
}
