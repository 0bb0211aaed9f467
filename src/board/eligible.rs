//! Which item an agent may take next: lane, role, dependencies, back-off.

use super::document::{Document, Item};
use super::task::{Status, TaskId, Timestamp};

/// The role of an item that names none, on a queue that names none.
pub const DEFAULT_ROLE: &str = "coder";

/// Why an item can't be taken now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    Quarantined,
    Status(Status),
    Role(String),
    BackOff(Timestamp),
    /// Its runner could do nothing with it.
    Unfit(String),
    /// Dependencies that are not completed, each with its status (`None`: no such item).
    Dependencies(Vec<(TaskId, Option<Status>)>),
}

impl Why {
    /// No amount of work by agents makes it eligible: a person has to do something first.
    pub fn is_stuck(&self) -> bool {
        match self {
            Why::Quarantined | Why::Unfit(_) => true,
            Why::Dependencies(open) => open.iter().any(|(_, status)| {
                matches!(status, None | Some(Status::Dead | Status::Cancelled | Status::Draft | Status::Waiting))
            }),
            Why::Status(_) | Why::Role(_) | Why::BackOff(_) => false,
        }
    }
}

/// The pending items of a document, most urgent first, in the order of the document within a priority.
pub fn in_order<'d, 't>(document: &'d Document<'t>) -> Vec<&'d Item<'t>> {
    let mut items: Vec<&Item<'_>> = document.items().iter().filter(|item| item.status == Status::Pending).collect();
    items.sort_by_key(|item| item.priority);
    items
}

/// Whether an agent of `role` may take `item` at `now`. `status_of` looks a dependency up, in any queue.
pub fn may_take(
    document: &Document<'_>,
    item: &Item<'_>,
    role: &str,
    now: Timestamp,
    status_of: &mut dyn FnMut(&TaskId) -> Option<Status>,
) -> Result<(), Why> {
    if item.quarantined {
        return Err(Why::Quarantined);
    }
    if item.status != Status::Pending {
        return Err(Why::Status(item.status));
    }
    let wanted = item.role.as_deref().or(document.front().role.as_deref()).unwrap_or(DEFAULT_ROLE);
    if wanted != role {
        return Err(Why::Role(wanted.to_owned()));
    }
    let open: Vec<_> = item
        .after
        .iter()
        .map(|id| (id.clone(), status_of(id)))
        .filter(|(_, status)| *status != Some(Status::Completed))
        .collect();
    if !open.is_empty() {
        return Err(Why::Dependencies(open));
    }
    match item.not_before {
        Some(until) if until > now => Err(Why::BackOff(until)),
        _ => Ok(()),
    }
}
