//! The children of items: which there are, and one more.

use std::collections::HashSet;
use std::fs;

use chrono::TimeDelta;

use super::error::Error;
use super::find::Board;
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

/// Whose child a new item is to be.
#[derive(Clone, Debug)]
pub struct Birth {
    pub parent: TaskId,
    /// Of whoever holds the parent and adds the child in its name; a person needs none.
    pub token: Option<Token>,
    pub bounds: Bounds,
    /// Who has to approve what says nothing of it.
    pub review: Vec<String>,
}

impl Board {
    /// The items that `parent` is the parent of, in all queues and archives, in the order of their numbers. What can't be
    /// read has none.
    pub fn children(&self, parent: &TaskId) -> Vec<Task> {
        numbered(ItemIndex::of(self).offspring(parent))
    }

    /// Puts a new item into `queue`, as the child of another: by the given ID, or as `T-1.1`, `T-1.2` and so on of `T-1`.
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

    /// How many items runs have added since then.
    fn added_by_runs(&self, since: Timestamp) -> Result<usize, Error> {
        let mut number = 0;
        walk_log(self, None, &mut |entry| {
            number += usize::from(entry.kind == Kind::Added && entry.run.is_some());
            entry.time > since
        })?;
        Ok(number)
    }

    /// The parent, if it may have `new` for a child. `today` is how many runs have added in the last day.
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

    /// The parent of `task`, that one's parent, and so on, as far up as it matters.
    fn above(&self, task: &Task, depth: u32) -> Vec<TaskId> {
        let mut above: Vec<TaskId> = Vec::new();
        let mut next = task.parent.clone();
        while let Some(id) = next.filter(|id| !above.contains(id) && above.len() < depth as usize) {
            next = self.task(&id).ok().and_then(|found| found.task.parent);
            above.push(id);
        }
        above
    }

    /// The first number that no item has, and none had that was worked on and is gone: its branch and its session are
    /// still there. Nothing if the ID would be too long.
    fn next_child(&self, parent: &TaskId) -> Option<TaskId> {
        let (index, worked_on) = (ItemIndex::of(self), self.worked_on());
        let mut ids = (1..=u32::MAX).map(|number| parent.child(number));
        ids.find(|id| !worked_on.contains(id) && !index.has(id))
            .filter(|id| id.as_str().len() <= MAX_ID)
    }

    /// The items that have runs, also those that are gone: their branches and sessions may still be there.
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
    /// The items that `parent` was the parent of.
    pub fn children(&self, parent: &TaskId) -> Vec<Task> {
        numbered(
            self.texts
                .iter()
                .flat_map(|text| offspring(&text.content.parse().0, parent))
                .collect(),
        )
    }
}

/// `T-1.2` before `T-1.10`; of an ID that is there twice the first item.
fn numbered(mut children: Vec<Task>) -> Vec<Task> {
    children.sort_by_key(|child| (child.id.as_str().len(), child.id.as_str().to_owned()));
    children.dedup_by(|next, one| next.id == one.id);
    children
}

/// What the new item says that it waits for.
fn after(new: &NewItem) -> Vec<TaskId> {
    let block = render(new);
    let (document, _) = parse(&block);
    document
        .items()
        .first()
        .map(|item| item.after.clone())
        .unwrap_or_default()
}
