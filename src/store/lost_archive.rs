//! Archives whose file has gone: the log has what was moved there.

use std::collections::HashSet;
use std::fs;

use super::archived::{archive_of, content, statuses};
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::find::Board;
use super::hand::is_blank;
use super::log::{task_of, walk_back};
use super::mend::Lost;
use super::queue::Queue;
use crate::board::archive::{Gone, head, put_in};
use crate::board::document::open;
use crate::board::event::Kind;
use crate::board::task::TaskId;

impl Board {
    /// Archives that were removed or emptied, though the log tells of items that went there and are nowhere else.
    pub fn lost_archives(&self) -> Result<Vec<Lost>, Error> {
        let queues = self.queues()?;
        let is_lost = |queue: &&Queue| {
            archive_of(self, queue).is_some_and(|own| content(self, &own).is_ok_and(|text| is_blank(&text)))
        };
        let lost: Vec<&Queue> = queues.iter().filter(is_lost).collect();
        if lost.is_empty() {
            return Ok(Vec::new());
        }
        let texts = queues.iter().filter_map(|queue| self.read(queue).ok());
        let standing: HashSet<TaskId> = texts.flat_map(|text| statuses(&open(&text.content)).into_keys()).collect();
        let archived = self.went_to_archive(standing)?;
        let lost = lost.into_iter().filter_map(|queue| {
            let own = archive_of(self, queue)?;
            let items: Vec<Gone> =
                archived.iter().filter(|(id, _)| *id == queue.id).map(|(_, gone)| gone.clone()).collect();
            let text = put_in(&head(&queue.id), &items).filter(|_| !items.is_empty())?;
            Some(Lost { is_gone: fs::symlink_metadata(&own.path).is_err(), queue: own, text })
        });
        Ok(lost.collect())
    }

    /// What the log last tells of as archived, oldest first, by queue; but for the items `standing`.
    fn went_to_archive(&self, standing: HashSet<TaskId>) -> Result<Vec<(String, Gone)>, Error> {
        let (mut known, mut archived) = (standing, Vec::new());
        walk_back(self, &mut |line| {
            let is_newest = task_of(line).is_some_and(|task| known.insert(task));
            let entry: Option<Entry> = if is_newest { serde_json::from_slice(line).ok() } else { None };
            if let Some(Entry { kind: Kind::Archived, task, queue: Some(queue), change, .. }) = entry
                && let TextChange::Removed { from: status, before: block } = change
            {
                archived.push((queue, Gone { id: task, status, block }));
            }
            true
        })?;
        archived.reverse();
        Ok(archived)
    }
}
