//! Items that were taken out and show again: they are the same items as they were when they went. Knows nothing of how a save is
//! merged.

use std::collections::{HashMap, HashSet};

use super::archived::statuses;
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::find::Board;
use super::from_git::Brought;
use super::index::ItemIndex;
use super::log::{MOST_LINES, task_of, walk_back, walk_log};
use super::queue::Queue;
use super::since::Since;
use tavern_core::archive::{Gone, has_all_of};
use tavern_core::document::{Item, open, parse};
use tavern_core::event::Kind;
use tavern_core::merge::bare;
use tavern_core::patch::Patch;
use tavern_core::task::{Status, TaskId};
use tavern_core::text::apply;

/// `ours`, in which the items `own` were, with those of `saved` that were taken out or archived, wherever, and are in no queue now,
/// as they were when they went; and their IDs. They show again from a buffer, a branch or a stash, were cut to be pasted, or git has
/// taken the archive back to an older state. What was taken out with the event `unknown` or later has not: whoever saved knew nothing
/// of that.
pub(super) fn with_returned(
    index: &ItemIndex<'_>,
    queue: &Queue,
    ours: &str,
    own: &HashMap<TaskId, Status>,
    saved: &str,
    unknown: Option<u64>,
) -> Result<(String, HashSet<TaskId>), Error> {
    let mut nowhere = statuses(&open(saved));
    nowhere.retain(|id, _| !own.contains_key(id));
    if nowhere.is_empty() {
        return Ok((ours.to_owned(), HashSet::new()));
    }
    let (mut returned, mut lines) = (Since::default(), 0);
    nowhere.retain(|id, _| index.elsewhere(id, queue).is_none());
    walk_back(index.board, &mut |line| {
        lines += 1;
        if let Some((task, _)) = task_of(line).and_then(|task| nowhere.remove_entry(&task))
            && let Ok(entry) = serde_json::from_slice::<Entry>(line)
            && (entry.kind == Kind::Archived
                || unknown.is_none_or(|unknown| entry.save() < unknown))
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

/// `text`, which git has `brought`, in which items have the IDs that they have got: another branch has them as they were typed.
pub(super) fn with_later_ids(
    board: &Board,
    queue: &Queue,
    text: &str,
    brought: &Brought,
) -> Result<String, Error> {
    let document = parse(text).0;
    let mut nameless: HashMap<String, Vec<&Item<'_>>> = HashMap::new();
    for item in document
        .items()
        .iter()
        .rev()
        .filter(|item| item.id.is_none() && !item.nested)
    {
        nameless
            .entry(bare(document.block(item)))
            .or_default()
            .push(item);
    }
    // What somebody took out and others type again is another item, and so is what was pulled and reads like one that has ended.
    let is_it = |entry: &Entry| match (&entry.change, entry.kind) {
        (_, Kind::Archived) => !brought.goes_on,
        (TextChange::Removed { from, .. }, _) => {
            entry.is_by_git() && !(brought.goes_on && from.is_ended())
        }
        _ => true,
    };
    let (mut may_be, mut typed, mut edits, mut lines) =
        (HashMap::new(), HashMap::new(), Vec::new(), 0);
    walk_log(board, None, &mut |entry| {
        lines += 1;
        let (before, after) = (
            entry.change.before().map(bare),
            entry.change.after().map(bare),
        );
        let id = match &entry.task {
            _ if !entry.change.is_of_item() || entry.queue.as_ref() != Some(&queue.id) => None,
            Some(id) => {
                let may_be = *may_be
                    .entry(id.clone())
                    .or_insert_with(|| is_it(&entry) && document.find(id).is_none());
                Some(id.clone()).filter(|id| may_be && entry.is_first_of(id))
            }
            // Its title was typed on before it got its ID.
            None => after.and_then(|after| typed.get(&after).cloned()),
        };
        if let Some((id, before)) = id.zip(before) {
            if let Some(item) = nameless.get_mut(&before).and_then(Vec::pop) {
                edits.extend(document.change(
                    item,
                    &Patch {
                        id: Some(id.clone()),
                        ..Patch::default()
                    },
                ));
                may_be.insert(id.clone(), false);
            }
            typed.insert(before, id);
        }
        !nameless.values().all(Vec::is_empty) && lines < MOST_LINES
    })?;
    Ok(apply(text, &edits))
}

/// `text` without the items that have `returned` as they were `newest` and that an archive has: who has a buffer from before has
/// them still. (git may have taken the archive back to where it had less.)
pub(super) fn without_archived(
    index: &ItemIndex<'_>,
    text: &str,
    newest: &str,
    returned: &HashSet<TaskId>,
) -> String {
    let (mut gone, [document, newest]) =
        (Since::default(), [text, newest].map(|text| parse(text).0));
    let archives = if returned.is_empty() {
        Vec::new()
    } else {
        index.archives()
    };
    for id in returned {
        let Some((here, there)) = document.find(id).zip(newest.find(id)) else {
            continue;
        };
        let is_as_it_was = bare(document.block(here)) == bare(newest.block(there));
        let item = Gone::of(&newest, there);
        if is_as_it_was && archives.iter().any(|archive| has_all_of(archive, &item)) {
            gone.set(id.clone(), None);
        }
    }
    gone.taken_back(text)
}
