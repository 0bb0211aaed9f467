//! Items that were taken out and show again: they are the same items as they were when they went. Knows nothing of how a save is
//! merged.

use std::collections::{HashMap, HashSet};

use super::archived::statuses;
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::find::Board;
use super::index::ItemIndex;
use super::log::{MOST_LINES, task_of, walk_back};
use super::queue::Queue;
use super::since::Since;
use crate::board::archive::{Gone, has_all_of};
use crate::board::document::{open, parse};
use crate::board::event::Kind;
use crate::board::merge::bare;
use crate::board::task::{Status, TaskId};

/// `ours`, in which the items `own` were, with those of `saved` that were taken out or archived, wherever, and are in no queue now,
/// as they were when they went; and their IDs. They show again from a buffer, a branch or a stash, were cut to be pasted, or git has
/// taken the archive back to an older state.
pub(super) fn with_returned(
    board: &Board,
    queue: &Queue,
    ours: &str,
    own: &HashMap<TaskId, Status>,
    saved: &str,
) -> Result<(String, HashSet<TaskId>), Error> {
    let mut nowhere = statuses(&open(saved));
    nowhere.retain(|id, _| !own.contains_key(id));
    if nowhere.is_empty() {
        return Ok((ours.to_owned(), HashSet::new()));
    }
    let (index, mut returned, mut lines) = (ItemIndex::of(board), Since::default(), 0);
    let elsewhere = index.elsewhere(queue);
    nowhere.retain(|id, _| !elsewhere.contains_key(id));
    walk_back(board, &mut |line| {
        lines += 1;
        if let Some((task, _)) = task_of(line).and_then(|task| nowhere.remove_entry(&task))
            && let Ok(entry) = serde_json::from_slice::<Entry>(line)
            && let TextChange::Removed { from, before } = entry.change
            && matches!(entry.kind, Kind::Archived | Kind::Removed)
        {
            returned.set(task, Some((before, from)));
        }
        !nowhere.is_empty() && lines < MOST_LINES
    })?;
    // What is put in takes the bullet of what is beside it; then it is made to read as it did.
    let text = returned.taken_back(&returned.taken_back(ours));
    Ok((text, returned.tasks().cloned().collect()))
}

/// `text` without the items that have `returned` as they were `newest` and that an archive has: who has a buffer from before has
/// them still. (git may have taken the archive back to where it had less.)
pub(super) fn without_archived(index: &ItemIndex<'_>, text: &str, newest: &str, returned: &HashSet<TaskId>) -> String {
    let (mut gone, [document, newest]) = (Since::default(), [text, newest].map(|text| parse(text).0));
    let archives = if returned.is_empty() { Vec::new() } else { index.archives() };
    for id in returned {
        let Some((here, there)) = document.find(id).zip(newest.find(id)) else { continue };
        let is_as_it_was = bare(document.block(here)) == bare(newest.block(there));
        let item = Gone::of(&newest, there);
        if is_as_it_was && archives.iter().any(|archive| has_all_of(archive, &item)) {
            gone.set(id.clone(), None);
        }
    }
    gone.taken_back(text)
}
