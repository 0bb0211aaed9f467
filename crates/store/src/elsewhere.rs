//! Items that were taken in another clone of the repository, as the text tells that git has brought, and no event here. Whoever holds
//! them there can't be seen.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::entry::Entry;
use super::error::Error;
use super::find::Board;
use super::log::{is_logged, walk_log};
use tavern_core::document::{Document, Item, parse, parse_alone};
use tavern_core::front::Front;
use tavern_core::merge::{is_called, is_typed_on, outweighs};
use tavern_core::state::State;
use tavern_core::task::{TaskId, Timestamp};
use tavern_core::text::{Edit, apply};

/// After this time an item counts as given up that was taken in another clone, and of which nothing has come since.
const LONGEST: TimeDelta = TimeDelta::days(1);

/// What another clone made of items that were taken here, too.
pub(super) struct TakenTwice {
    /// What was saved, with each item whose state here counts under its ID here.
    pub saved: String,
    /// The items of which the state in what was saved counts, each with the words for it, under each of their IDs. Whoever holds such
    /// an item here has lost it.
    pub lost: HashMap<TaskId, String>,
}

impl TakenTwice {
    /// Of the items of `ours` and those of `saved` that are the same.
    pub(super) fn of(board: &Board, ours: &str, saved: &str) -> Result<TakenTwice, Error> {
        let (ours, theirs) = (parse(ours).0, parse(saved).0);
        let (mut lost, mut edits) = (HashMap::new(), Vec::new());
        for item in theirs.items() {
            let Some(id) = &item.id else { continue };
            let found = ours
                .find(id)
                .map_or_else(|| twin(board, &ours, &theirs, item), |mine| Ok(Some(mine)))?;
            let Some(mine) = found else { continue };
            let (there, here) = (theirs.task_of(item).state, ours.task_of(mine).state);
            if mine.id != item.id && outweighs(&here, &there) {
                edits.extend(
                    item.id_span()
                        .zip(mine.id.as_ref())
                        .map(|(span, id)| Edit::replace(span, id.as_str())),
                );
                continue;
            }
            let is_other = there.since().is_some() && there.trace() != here.trace();
            // git may have left both between its markers, for a person to choose.
            let is_settled = || {
                theirs
                    .items()
                    .iter()
                    .filter(|other| other.id == item.id)
                    .count()
                    == 1
            };
            let counts = is_other && has_begun(&here) && outweighs(&there, &here) && is_settled();
            if let Some(own) = mine.id.as_ref().filter(|_| counts)
                && !has_been(board, id, &there, ours.front())?
            {
                let (name, kept) = (named(own, id), kept(own, &here));
                lost.insert(
                    id.clone(),
                    format!("it was {own} here, and was taken in another clone as well; {kept}"),
                );
                lost.insert(
                    own.clone(),
                    format!(
                        "it is {name}{} in another clone, and that counts; {kept}",
                        taken(&there)
                    ),
                );
            }
        }
        Ok(TakenTwice {
            saved: apply(saved, &edits),
            lost,
        })
    }
}

/// The item of `ours` that is `item` of `theirs` where each clone has given it an ID of its own: it was typed on in one of them before
/// it was taken there.
fn twin<'d, 't>(
    board: &Board,
    ours: &'d Document<'t>,
    theirs: &Document<'_>,
    item: &Item<'_>,
) -> Result<Option<&'d Item<'t>>, Error> {
    let (state, title) = (theirs.task_of(item).state, theirs.title(item));
    if item.nested || !(has_begun(&state) || state.attempt > 0) {
        return Ok(None);
    }
    let is_like = |other: &str| {
        let goes_on = is_typed_on(other, title) || is_typed_on(title, other);
        other == title || goes_on || is_called(theirs.block(item), other)
    };
    for mine in ours
        .items()
        .iter()
        .filter(|mine| !mine.nested && is_like(ours.title(mine)))
    {
        let Some((id, other)) = mine.id.as_ref().zip(item.id.as_ref()) else {
            continue;
        };
        if theirs.find(id).is_none()
            && was_nameless(board, id, ours.front())?
            && !is_logged(board, other)?
        {
            return Ok(Some(mine));
        }
    }
    Ok(None)
}

fn has_begun(state: &State) -> bool {
    state.since().is_some() || state.commit().is_some()
}

/// The item was typed without an ID, which it got here.
pub(super) fn was_nameless(board: &Board, id: &TaskId, front: &Front) -> Result<bool, Error> {
    let mut first = None;
    walk_log(board, Some(id), &mut |entry| {
        if entry.change.is_of_item() {
            first = entry.change.before().map(str::to_owned);
        }
        true
    })?;
    Ok(first.is_some_and(|before| {
        parse_alone(&before, front)
            .items()
            .first()
            .is_some_and(|item| item.id.is_none())
    }))
}

/// The name that an item has there, where it is another than here.
fn named(own: &TaskId, other: &TaskId) -> String {
    if own == other {
        String::new()
    } else {
        format!("{other}, ")
    }
}

/// How it stands there.
fn taken(there: &State) -> String {
    let by = there
        .holder()
        .and_then(|holder| holder.agent.as_deref())
        .map(|agent| format!(" by {agent}"));
    format!("{}{}", there.status(), by.unwrap_or_default())
}

/// Where that is which counts no more.
fn kept(own: &TaskId, here: &State) -> String {
    let place = here.commit().map_or_else(
        || format!("stays on tavern/{own}"),
        |commit| format!("is at {commit}"),
    );
    format!("what was made of it here {place}")
}

impl Board {
    /// The item is held in another clone, as far as can be told from here: it has no lease, and no event here has taken it.
    pub fn is_elsewhere(
        &self,
        document: &Document<'_>,
        item: &Item<'_>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let Some(id) = item.id.as_ref().filter(|_| item.status.is_held()) else {
            return Ok(false);
        };
        let state = document.task_of(item).state;
        let is_young = state
            .since()
            .is_some_and(|since| (now - since).abs() < LONGEST);
        Ok(is_young
            && matches!(self.lease(id), Ok(None))
            && !has_been(self, id, &state, document.front())?)
    }
}

impl Board {
    /// A person has typed that somebody holds the item: it names no claim, or neither an event here has made it so, nor git has
    /// brought it.
    pub fn is_typed_as_held(
        &self,
        document: &Document<'_>,
        item: &Item<'_>,
    ) -> Result<bool, Error> {
        if !item.status.is_held() {
            return Ok(false);
        }
        let (state, mut made) = (document.task_of(item).state, None);
        let Some(id) = &item.id else { return Ok(true) };
        if !matches!(self.lease(id), Ok(None)) {
            return Ok(false);
        }
        if item.aside {
            return Ok(true);
        }
        walk_log(self, Some(id), &mut |entry| {
            let is_so = is_made_so(&entry, id, &state, document.front());
            made = is_so.then_some(entry);
            made.is_none()
        })?;
        Ok(made.is_some_and(|made| made.is_typed()))
    }
}

/// The event left the item so.
fn is_made_so(entry: &Entry, id: &TaskId, state: &State, front: &Front) -> bool {
    let alone = entry.change.after().map(|text| parse_alone(text, front));
    // Its lane may have told the status, which the text alone does not.
    let was = |alone: &Document<'_>| {
        Some(
            alone
                .task_as(alone.items().first()?, id.clone(), state.status())
                .state
                .trace()
                == state.trace(),
        )
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
