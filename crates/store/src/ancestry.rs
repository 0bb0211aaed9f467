//! The ancestry of all items on the board, read once for many queries.

use std::collections::{HashMap, HashSet};

use super::board::Board;
use super::content::Content;
use super::index::ItemIndex;
use tavern_core::document::Document;
use tavern_core::task::{Status, TaskId};

/// The parents and the status of each item. Parents follow from its name, its key `parent`, or its position.
#[derive(Debug, Default)]
pub struct Lineage {
    statuses: HashMap<TaskId, Status>,
    /// Includes the further ancestors that an ID names.
    parents: HashMap<TaskId, Vec<TaskId>>,
    children: HashMap<TaskId, Vec<TaskId>>,
}

impl Board {
    /// Returns the lineage of all queues and archives; unreadable ones are skipped.
    pub fn lineage(&self) -> Lineage {
        Lineage::of(ItemIndex::of(self).contents().map(Content::open))
    }
}

impl Lineage {
    fn of<'t>(documents: impl Iterator<Item = Document<'t>>) -> Lineage {
        let mut lineage = Lineage::default();
        for document in documents {
            for item in document.items() {
                let Some(id) = &item.id else { continue };
                // Of a duplicated ID the first item counts.
                lineage.statuses.entry(id.clone()).or_insert(item.status);
                for parent in id.above().chain(document.parent_of(item).cloned()) {
                    lineage
                        .children
                        .entry(parent.clone())
                        .or_default()
                        .push(id.clone());
                    lineage.parents.entry(id.clone()).or_default().push(parent);
                }
            }
        }
        lineage
    }

    /// Returns the status of the item.
    pub fn status_of(&self, id: &TaskId) -> Option<Status> {
        self.statuses.get(id).copied()
    }

    /// Returns the descendants of a request: its planned items, its children, and theirs.
    pub fn came_of(&self, request: &TaskId) -> HashSet<TaskId> {
        reached(request, |id| {
            self.children.get(id).cloned().unwrap_or_default()
        })
    }

    /// Returns the ancestors of a task, by name and by parent. They may no longer exist.
    pub fn above(&self, task: &TaskId) -> HashSet<TaskId> {
        reached(task, |id| {
            id.above()
                .chain(self.parents.get(id).into_iter().flatten().cloned())
                .collect()
        })
    }
}

/// Returns everything reachable from `start` by `next`; cycles are fine.
fn reached(start: &TaskId, next: impl Fn(&TaskId) -> Vec<TaskId>) -> HashSet<TaskId> {
    let (mut found, mut open) = (HashSet::new(), next(start));
    while let Some(id) = open.pop() {
        if !found.contains(&id) {
            open.extend(next(&id));
            found.insert(id);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use tavern_core::document::open;

    use super::*;

    fn sorted(ids: &HashSet<TaskId>) -> Vec<String> {
        let mut names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        names.sort();
        names
    }

    #[test]
    fn what_came_of_an_item_is_found_in_any_order_and_in_circles() {
        let queue = "- [ ] T-9: Of a part's part (parent: T-8)\n- [ ] T-8: Of a part (parent: T-1.2)\n- [x] T-1: Asked\n\
                     - [ ] T-1.2: Planned\n- [ ] T-2: Another\n  - [ ] T-3: A part\n";
        let archive = "- [x] T-1.1.4: Planned of what is gone\n- [x] T-2: A copy\n- [ ] T-6: Round (parent: T-7)\n\
                       - [ ] T-7: And round (parent: T-6)\n";
        let lineage = Lineage::of([queue, archive].map(open).into_iter());
        let id = |id: &str| id.parse::<TaskId>().expect("an ID");
        for (request, came, above) in [
            ("T-1", vec!["T-1.1.4", "T-1.2", "T-8", "T-9"], vec![]),
            ("T-1.1", vec!["T-1.1.4"], vec!["T-1"]),
            ("T-9", vec![], vec!["T-1", "T-1.2", "T-8"]),
            ("T-2", vec!["T-3"], vec![]),
            ("T-3", vec![], vec!["T-2"]),
            ("T-6", vec!["T-6", "T-7"], vec!["T-6", "T-7"]),
            ("T-4.1", vec![], vec!["T-4"]),
        ] {
            assert_eq!(sorted(&lineage.came_of(&id(request))), came, "{request}");
            assert_eq!(sorted(&lineage.above(&id(request))), above, "{request}");
        }
        assert_eq!(
            ["T-1", "T-2", "T-4"].map(|name| lineage.status_of(&id(name))),
            [Some(Status::Completed), Some(Status::Pending), None]
        );
    }
}
