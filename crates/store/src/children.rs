//! Children of items: listing and adding them.

use std::collections::HashSet;
use std::fs;

use chrono::TimeDelta;

use super::board::Board;
use super::error::Error;
use super::history::Then;
use super::index::{ItemIndex, offspring};
use super::log::walk_log;
use super::queue::Queue;
use super::submit::{Done, Note};
use tavern_core::children::{Bounds, Parent, heritage, may_have_child};
use tavern_core::decide::Refusal;
use tavern_core::document::parse;
use tavern_core::event::Kind;
use tavern_core::front::Front;
use tavern_core::lease::Token;
use tavern_core::new_item::{NewItem, render};
use tavern_core::task::{MAX_ID, Status, Task, TaskId, Timestamp};

/// The parent of a new item, and the limits on it.
#[derive(Clone, Debug)]
pub struct Birth {
    pub parent: TaskId,
    /// The token of the agent that holds the parent and adds the child; a person needs none.
    pub token: Option<Token>,
    pub bounds: Bounds,
    /// The reviewers that have to approve the child if it names none.
    pub review: Vec<String>,
}

impl Board {
    /// Returns the children of `parent` in all queues and archives, ordered by number. Unreadable files are skipped.
    pub fn children(&self, parent: &TaskId) -> Vec<Task> {
        numbered(ItemIndex::of(self).offspring(parent))
    }

    /// Adds a new item to `queue` as a child: with the given ID, or as the next of `T-1.1`, `T-1.2` and so on of `T-1`.
    pub fn add_child(
        &self,
        queue: &Queue,
        new: NewItem,
        birth: &Birth,
        status: Status,
        note: &Note,
    ) -> Result<Done, Error> {
        self.transact(|view| {
            let since = view.now - TimeDelta::days(1);
            let today = if note.run.is_some() {
                self.added_by_runs(since)?
            } else {
                0
            };
            let parent = self.may_be_born(&new, birth, today)?;
            let id = new.id.clone().or_else(|| self.next_child(&parent.id));
            let heritage =
                |child: &Task, front: &Front| heritage(&parent, child, front, &birth.review);
            view.add(queue, NewItem { id, ..new }, &heritage, status, note)
        })
    }

    /// Returns how many items runs have added after `since`.
    fn added_by_runs(&self, since: Timestamp) -> Result<usize, Error> {
        let mut number = 0;
        walk_log(self, None, &mut |entry| {
            number += usize::from(entry.kind == Kind::Added && entry.run.is_some());
            entry.time > since
        })?;
        Ok(number)
    }

    /// Returns the parent if it may have `new` as a child. `today` is the number of items that runs added in the last
    /// day.
    fn may_be_born(&self, new: &NewItem, birth: &Birth, today: usize) -> Result<Task, Error> {
        let parent = self.task(&birth.parent)?.task;
        if let Some(given) = birth.token {
            let task = parent.id.clone();
            match self.lease(&parent.id)? {
                Some(lease) if lease.token == given => {}
                Some(lease) => {
                    return Err(Refusal::StaleToken {
                        task,
                        given,
                        agent: lease.agent,
                        current: lease.token,
                    }
                    .into());
                }
                None => return Err(Refusal::NoLease { task, given }.into()),
            }
        }
        let children = self.children(&parent.id).len();
        let above = self.above(&parent, birth.bounds.depth);
        may_have_child(
            &Parent {
                task: &parent,
                above: &above,
                children,
                today,
            },
            &after(new),
            birth.bounds,
        )?;
        Ok(parent)
    }

    /// Returns the ancestors of `task`, nearest first, as far up as `depth`.
    fn above(&self, task: &Task, depth: u32) -> Vec<TaskId> {
        let mut above: Vec<TaskId> = Vec::new();
        let mut next = task.parent.clone();
        while let Some(id) = next.filter(|id| !above.contains(id) && above.len() < depth as usize) {
            next = self.task(&id).ok().and_then(|found| found.task.parent);
            above.push(id);
        }
        above
    }

    /// Returns the first child ID that no item has, and that no removed item was worked on under: its branch and
    /// session still exist. `None` if the ID would be too long.
    fn next_child(&self, parent: &TaskId) -> Option<TaskId> {
        let (index, worked_on) = (ItemIndex::of(self), self.worked_on());
        let mut ids = (1..=u32::MAX).map(|number| parent.child(number));
        ids.find(|id| !worked_on.contains(id) && !index.has(id))
            .filter(|id| id.as_str().len() <= MAX_ID)
    }

    /// Returns the IDs of items that have runs, including removed ones: their branches and sessions may still exist.
    pub(super) fn worked_on(&self) -> HashSet<TaskId> {
        let runs = fs::read_dir(self.path("runs")).into_iter().flatten();
        runs.filter_map(|run| {
            run.ok()?
                .file_name()
                .to_str()?
                .rsplit_once('@')?
                .0
                .parse()
                .ok()
        })
        .collect()
    }
}

impl Then {
    /// Returns the children that `parent` had.
    pub fn children(&self, parent: &TaskId) -> Vec<Task> {
        numbered(
            self.texts
                .iter()
                .flat_map(|text| offspring(&text.content.parse().0, parent))
                .collect(),
        )
    }
}

/// Sorts `T-1.2` before `T-1.10`; of a duplicated ID the first item stays.
fn numbered(mut children: Vec<Task>) -> Vec<Task> {
    children.sort_by_key(|child| (child.id.as_str().len(), child.id.as_str().to_owned()));
    children.dedup_by(|next, one| next.id == one.id);
    children
}

/// Returns the items that the new item waits for.
fn after(new: &NewItem) -> Vec<TaskId> {
    let block = render(new);
    let (document, _) = parse(&block);
    document
        .items()
        .first()
        .map(|item| item.after.clone())
        .unwrap_or_default()
}
