//! Merges whose worktree could not be set up, as this process remembers them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::board::task::TaskId;
use crate::clock::Deadline;
use crate::git::CommitId;

/// How long a set-up that failed is not tried again by the same process, as every wake-up would.
const SET_UP_AGAIN: Duration = Duration::from_secs(600);

/// Of each item, the merge that was tried last.
#[derive(Default)]
pub struct StuckMerges(Mutex<HashMap<TaskId, Stuck>>);

struct Stuck {
    work: CommitId,
    tip: CommitId,
    until: Deadline,
    why: String,
}

impl StuckMerges {
    /// Why the item's merge can't be set up, if that was tried not long ago with the same work and branch.
    pub fn why(&self, task: &TaskId, work: &CommitId, tip: &CommitId) -> Option<String> {
        let all = self.locked();
        let same = all.get(task).filter(|stuck| stuck.work == *work && stuck.tip == *tip)?;
        (!same.until.has_passed()).then(|| same.why.clone())
    }

    pub fn remember(&self, task: &TaskId, work: &CommitId, tip: CommitId, why: &str) {
        let stuck = Stuck { work: work.clone(), tip, until: Deadline::after(SET_UP_AGAIN), why: why.to_owned() };
        self.locked().insert(task.clone(), stuck);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<TaskId, Stuck>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
