//! The way of an item from lane to lane, as the log tells it: so it comes back to where it stood.

use super::entry::Entry;
use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use super::queue::Queue;
use tavern_core::lane::LaneKind;
use tavern_core::status::Status;
use tavern_core::stood::{Stood, Way};
use tavern_core::task::TaskId;

/// How an item, which is called so by its neighbours, got to where it stands, and, if it came from the lane `there`, where it goes back to. Those that
/// were put into that lane since tell where they stand beside it.
pub(super) fn way_back(
    board: &Board,
    queue: &Queue,
    names: &[&str],
    task: &TaskId,
    there: Option<LaneKind>,
) -> Result<Way, Error> {
    let (mut way, mut met): (Way, Vec<(TaskId, Stood)>) = Default::default();
    walk_log(board, None, &mut |entry: Entry| {
        let is_in = |status: Option<Status>, kind| {
            status.is_some_and(|status| Some(LaneKind::of(status)) == kind)
        };
        let Some(id) = entry
            .task
            .clone()
            .filter(|_| entry.queue.as_ref() == Some(&queue.id))
        else {
            return true;
        };
        let (was, is) = (entry.change.from(), entry.change.to());
        if id != *task {
            met.extend(entry.put.filter(|_| is_in(is, there)).map(|put| (id, put)));
            return true;
        }
        way.from = way.from.take().or(entry.put);
        let is_last = is_in(was, there) && !is_in(is, there);
        if is_last {
            way.to = entry.left;
        }
        !is_last && (there.is_some() || way.from.is_none())
    })?;
    if let Some(stood) = &mut way.to {
        met.iter()
            .for_each(|(id, other)| stood.meet(names, id.to_string(), other));
    }
    Ok(way)
}
