//! Items that were taken in another clone of the repository, as the text tells that git has brought, and no event here. Whoever holds
//! them there can't be seen.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::entry::{Entry, HAND};
use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use crate::board::document::{Document, Item, parse, parse_alone};
use crate::board::front::Front;
use crate::board::merge::outweighs;
use crate::board::state::State;
use crate::board::task::{TaskId, Timestamp};

/// After this time an item counts as given up that was taken in another clone, and of which nothing has come since.
const LONGEST: TimeDelta = TimeDelta::days(1);

/// The items that were taken in both clones, and in which the state of `saved` counts, not that of `ours`; each with the words for
/// it. Whoever holds such an item here has lost it.
pub(super) fn overtaken(board: &Board, ours: &str, saved: &str) -> Result<HashMap<TaskId, String>, Error> {
    let (ours, saved) = (parse(ours).0, parse(saved).0);
    let mut overtaken = HashMap::new();
    for item in saved.items() {
        let Some((id, mine)) = item.id.as_ref().and_then(|id| Some((id, ours.find(id)?))) else { continue };
        let (there, here) = (saved.task_of(item).state, ours.task_of(mine).state);
        let is_other = there.since().is_some() && there.trace() != here.trace();
        let has_begun = here.since().is_some() || here.commit().is_some();
        // git may have left both between its markers, for a person to choose.
        let is_settled = || saved.items().iter().filter(|other| other.id == item.id).count() == 1;
        let counts = is_other && has_begun && outweighs(&there, &here) && is_settled();
        if !counts || has_been(board, id, &there, ours.front())? {
            continue;
        }
        let by = there.holder().and_then(|holder| holder.agent.as_deref()).map(|agent| format!(" by {agent}"));
        let (status, by) = (there.status(), by.unwrap_or_default());
        let kept = here.commit().map_or_else(|| format!("stays on tavern/{id}"), |commit| format!("is at {commit}"));
        let words = format!("it is {status}{by} in another clone, and that counts; what was made of it here {kept}");
        overtaken.insert(id.clone(), words);
    }
    Ok(overtaken)
}

impl Board {
    /// The item is held in another clone, as far as can be told from here: it has no lease, and no event here has taken it.
    pub fn is_elsewhere(&self, document: &Document<'_>, item: &Item<'_>, now: Timestamp) -> Result<bool, Error> {
        let Some(id) = item.id.as_ref().filter(|_| item.status.is_held()) else { return Ok(false) };
        let state = document.task_of(item).state;
        let is_young = state.since().is_some_and(|since| (now - since).abs() < LONGEST);
        Ok(is_young && matches!(self.lease(id), Ok(None)) && !has_been(self, id, &state, document.front())?)
    }
}

impl Board {
    /// A person has typed that somebody holds the item: neither an event here has made it so, nor git has brought it.
    pub fn is_typed_as_held(&self, document: &Document<'_>, item: &Item<'_>) -> Result<bool, Error> {
        let Some(id) = item.id.as_ref().filter(|_| item.status.is_held()) else { return Ok(false) };
        if !matches!(self.lease(id), Ok(None)) {
            return Ok(false);
        }
        let (state, mut made) = (document.task_of(item).state, None);
        walk_log(self, Some(id), &mut |entry| {
            let is_so = is_made_so(&entry, id, &state, document.front());
            made = is_so.then_some(entry);
            made.is_none()
        })?;
        Ok(made.is_some_and(|made| made.agent.as_deref() == Some(HAND)))
    }
}

/// The event left the item so.
fn is_made_so(entry: &Entry, id: &TaskId, state: &State, front: &Front) -> bool {
    let alone = entry.change.after().map(|text| parse_alone(text, front));
    // Its lane may have told the status, which the text alone does not.
    let was = |alone: &Document<'_>| {
        Some(alone.task_as(alone.items().first()?, id.clone(), state.status()).state.trace() == state.trace())
    };
    alone.as_ref().and_then(was).unwrap_or_default()
}

/// An event here made the item so: what a save or git has brought is none.
fn has_been(board: &Board, id: &TaskId, state: &State, front: &Front) -> Result<bool, Error> {
    let mut is_known = false;
    walk_log(board, Some(id), &mut |entry| {
        is_known = !entry.is_by_hand() && is_made_so(&entry, id, state, front);
        !is_known
    })?;
    Ok(is_known)
}
