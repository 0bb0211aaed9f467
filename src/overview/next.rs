//! The items that agents would take next.

use std::collections::{BTreeMap, HashMap};

use tavern_core::document::{Document, Item};
use tavern_core::eligible::{DEFAULT_ROLE, Lack, Roles, for_roles, in_order};
use tavern_core::task::{PERSON, REVIEWER, Status};
use tavern_run::Workspace;

use super::queue_read::QueueRead;

/// Returns the next items, by the indices of their documents and in them, each with the role that takes it. `lacks` has
/// an entry for each of the first documents; only these are looked at.
pub fn next(
    workspace: &Workspace,
    read: &[QueueRead<'_>],
    lacks: &[Vec<Vec<Lack>>],
) -> HashMap<(usize, usize), String> {
    let mut first: BTreeMap<String, (usize, (usize, usize))> = BTreeMap::new();
    let roles = workspace.config.known_roles();
    for (number, lacks) in lacks.iter().enumerate() {
        let QueueRead { text, document, .. } = &read[number];
        for index in in_order(document)
            .into_iter()
            .filter(|index| lacks[*index].is_empty())
        {
            let role = role_of(workspace, &roles, document, document.item(index));
            let queues = workspace
                .config
                .roles
                .get(&role)
                .map_or(&[][..], |role| &role.queues);
            let own = queues.iter().position(|queue| *queue == text.queue.id);
            let rank = own.unwrap_or(queues.len() + number);
            let found = first.entry(role).or_insert((rank, (number, index)));
            if rank < found.0 {
                *found = (rank, (number, index));
            }
        }
    }
    first
        .into_iter()
        .map(|(role, (_, place))| (place, role))
        .collect()
}

/// Returns the role that takes an item without lacks.
fn role_of<'t>(
    workspace: &Workspace,
    roles: &Roles,
    document: &Document<'t>,
    item: &Item<'t>,
) -> String {
    let task = || document.task_of(item);
    if item.status == Status::InReview
        || item.status == Status::Waiting && task().state.work().is_some()
    {
        let task = task();
        let open = task
            .open_reviews(&task.reviewers(&workspace.config.review))
            .into_iter();
        return open
            .into_iter()
            .find(|role| role != PERSON)
            .unwrap_or_else(|| REVIEWER.to_owned());
    }
    let item = for_roles(document, item, roles);
    item.role
        .as_deref()
        .or(document.front().role.as_deref())
        .unwrap_or(DEFAULT_ROLE)
        .to_owned()
}
