//! A held item that an old text has under another title, and without the ID that it got with its claim: its place tells which it is.

use std::collections::HashSet;

use super::elsewhere::was_nameless;
use super::error::Error;
use super::find::Board;
use super::queue::Queue;
use super::way::way_back;
use tavern_core::document::{Document, Item, open};
use tavern_core::lane::LaneKind;
use tavern_core::patch::Patch;
use tavern_core::task::TaskId;
use tavern_core::text::{Edit, apply};

/// `saved`, in which the one item of `ours` that is `held` and lacking has its ID, if the one line that is new there stands where it
/// stood before its claim.
pub(super) fn with_retyped(
    board: &Board,
    queue: &Queue,
    saved: String,
    ours: &str,
    held: &HashSet<TaskId>,
) -> Result<String, Error> {
    let (mine, theirs) = (open(ours), open(&saved));
    let is_lacking = |item: &&Item<'_>| {
        let is_there = |id: &TaskId| {
            theirs.find(id).is_some()
                || lines(&theirs, mine.title(item)) > lines(&mine, mine.title(item))
        };
        !item.nested
            && item
                .id
                .as_ref()
                .is_some_and(|id| held.contains(id) && !is_there(id))
    };
    let mut lacking = mine.items().iter().filter(is_lacking);
    let (Some(item), None) = (lacking.next(), lacking.next()) else {
        return Ok(saved);
    };
    let is_new = |item: &&Item<'_>| {
        item.id.is_none() && !item.nested && lines(&mine, theirs.title(item)) == 0
    };
    let mut new = theirs.items().iter().filter(is_new);
    let (Some(line), None) = (new.next(), new.next()) else {
        return Ok(saved);
    };
    let Some(id) = item.id.clone().filter(|_| !line.checked) else {
        return Ok(saved);
    };
    if !was_nameless(board, &id, mine.front())? {
        return Ok(saved);
    }
    let stood = if mine.has_lanes() {
        way_back(
            board,
            queue,
            &mine.names(item),
            &id,
            Some(LaneKind::Pending),
        )?
        .to
    } else {
        Some(mine.stood_beside(item, &theirs))
    };
    let without = apply(&saved, &[Edit::delete(line.span.clone())]);
    let is_its_place =
        stood.is_some_and(|stood| open(&without).is_its_place(&stood, line.span.start));
    let patch = Patch {
        id: Some(id).filter(|_| is_its_place),
        ..Patch::default()
    };
    Ok(apply(&saved, &theirs.change(line, &patch)))
}

/// How many items without an ID are called so.
fn lines(document: &Document<'_>, title: &str) -> usize {
    document
        .items()
        .iter()
        .filter(|item| item.id.is_none() && document.title(item) == title)
        .count()
}
