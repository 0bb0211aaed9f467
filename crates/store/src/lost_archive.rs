//! Restores archives that are missing or torn, from the log.

use std::collections::HashSet;
use std::fs;

use super::archived::{archive_of, content, statuses};
use super::board::Board;
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::log::{task_of, walk_back};
use super::queue::{Queue, is_blank};
use super::repairs::Lost;
use tavern_core::archive::{Gone, head, put_in};
use tavern_core::document::open;
use tavern_core::event::Kind;
use tavern_core::task::TaskId;

impl Board {
    /// Returns archives that were removed, emptied or torn, if the log has archived items that are nowhere else.
    pub fn lost_archives(&self) -> Result<Vec<Lost>, Error> {
        let queues = self.queues()?;
        let damaged = |queue: &Queue| {
            let own = archive_of(self, queue)?;
            let text = content(self, &own)
                .ok()
                .filter(|text| is_blank(text) || !text.ends_with('\n'))?;
            Some((queue.id.clone(), own, text))
        };
        let damaged: Vec<(String, Queue, String)> = queues.iter().filter_map(damaged).collect();
        if damaged.is_empty() {
            return Ok(Vec::new());
        }
        let texts = queues.iter().filter_map(|queue| self.read(queue).ok());
        let standing: HashSet<TaskId> = texts
            .flat_map(|text| statuses(&text.content.open()).into_keys())
            .collect();
        let archived = self.went_to_archive(standing)?;
        let lost = damaged.into_iter().filter_map(|(id, own, text)| {
            let went: Vec<&Gone> = archived
                .iter()
                .filter(|(queue, _)| *queue == id)
                .map(|(_, gone)| gone)
                .collect();
            let whole = if is_blank(&text) {
                head(&id)
            } else {
                before_tear(&text, &went)?.to_owned()
            };
            let left = statuses(&open(&whole));
            let is_lost = |gone: &&&Gone| gone.id.as_ref().is_none_or(|id| !left.contains_key(id));
            let items: Vec<Gone> = went
                .iter()
                .filter(is_lost)
                .map(|gone| (*gone).clone())
                .collect();
            let text = put_in(&whole, &items).filter(|_| !items.is_empty())?;
            Some(Lost {
                is_gone: fs::symlink_metadata(&own.path).is_err(),
                queue: own,
                text,
            })
        });
        Ok(lost.collect())
    }

    /// Returns the last archived version of each item in the log, oldest first, by queue; except the items `standing`.
    fn went_to_archive(&self, standing: HashSet<TaskId>) -> Result<Vec<(String, Gone)>, Error> {
        let (mut known, mut archived) = (standing, Vec::new());
        walk_back(self, &mut |line| {
            let is_newest = task_of(line).is_some_and(|task| known.insert(task));
            let entry: Option<Entry> = if is_newest {
                serde_json::from_slice(line).ok()
            } else {
                None
            };
            if let Some(Entry {
                kind: Kind::Archived,
                task,
                queue: Some(queue),
                change,
                ..
            }) = entry
                && let TextChange::Removed {
                    from: status,
                    before: block,
                } = change
            {
                archived.push((
                    queue,
                    Gone {
                        id: task,
                        status,
                        block,
                    },
                ));
            }
            true
        })?;
        archived.reverse();
        Ok(archived)
    }
}

/// Returns the text before the torn item at the end of `text`; `None` if it ends with a whole item, or in a person's
/// words.
fn before_tear<'t>(text: &'t str, went: &[&Gone]) -> Option<&'t str> {
    let (before, torn) = text.split_at(text.rfind("\n- [")? + 1);
    let is_torn = |gone: &&Gone| gone.block.starts_with(torn) && torn != gone.block.trim_end();
    went.iter().any(is_torn).then_some(before)
}
