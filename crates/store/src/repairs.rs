//! Writes repairs of `tavern-check --fix`: under the lock, and only over the very text that was checked.

use std::fs;
use std::path::{Path, PathBuf};

use super::archived::FOLDER;
use super::baseline::Baseline;
use super::baseline_files::path;
use super::board::Board;
use super::change::Change;
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::external_edits::put_back;
use super::file_version::{QueueFiles, Stamp};
use super::moved_items::Standing;
use super::queue::{Queue, is_blank};
use tavern_core::document::{Item, parse};
use tavern_core::event::Kind;
use tavern_core::task::Timestamp;

/// The `agent` of repairs by `tavern-check --fix`, in the log.
pub const CHECK: &str = "check";

/// A queue, archive, config.yaml or template that was removed or emptied, with its last known text.
#[derive(Clone, Debug)]
pub struct Lost {
    pub queue: Queue,
    pub text: String,
    /// Whether the file is missing, rather than empty.
    pub is_gone: bool,
}

impl Lost {
    /// Returns how the file was lost.
    pub fn how(&self) -> &'static str {
        if self.is_gone { "removed" } else { "emptied" }
    }
}

impl Board {
    /// Returns the lost queues with a removed file. Reads nothing if no file is missing.
    pub fn removed_queues(&self) -> Result<Vec<Lost>, Error> {
        let seen = Baseline::queues(self).into_iter();
        let mut paths = seen.map(|id| self.queue_of(&id).path);
        let lost = if paths.all(|path| fs::symlink_metadata(path).is_ok()) {
            Vec::new()
        } else {
            self.lost_queues()?
        };
        Ok(lost.into_iter().filter(|lost| lost.is_gone).collect())
    }

    /// Returns queues with a known text if their file was emptied, or removed with items left to do, or removed with
    /// the folder of all queues. Items that are in another queue by now were moved there.
    pub fn lost_queues(&self) -> Result<Vec<Lost>, Error> {
        let mut lost = Vec::new();
        let folder = self.path("queues");
        let is_folder_gone = !folder.exists();
        for id in Baseline::queues(self) {
            let queue = self.queue_of(&id);
            let is_gone = fs::symlink_metadata(&queue.path).is_err();
            let is_emptied = || {
                self.read_file(&queue)
                    .is_ok_and(|text| is_blank(&text.content))
            };
            if !is_gone && !is_emptied() {
                continue;
            }
            let Some(seen) = Baseline::read(self, &queue) else {
                continue;
            };
            let ((document, _), standing) = (parse(&seen.content), Standing::of(self)?);
            let is_left = |item: &&Item<'_>| standing.elsewhere(&queue, &document, item).is_empty();
            let mut items = document
                .items()
                .iter()
                .filter(|item| item.within.is_none())
                .filter(is_left);
            // Removing a file in which all items have ended is intentional; a clean-up by git removes the whole folder.
            let is_meant = is_gone && !(is_folder_gone && queue.path.starts_with(&folder));
            if items.any(|item| !is_meant || !item.status.is_ended()) {
                lost.push(Lost {
                    queue,
                    text: seen.content.clone(),
                    is_gone,
                });
            }
        }
        lost.sort_by(|one, other| one.queue.id.cmp(&other.queue.id));
        Ok(lost)
    }

    /// Returns true if Tavern knows the text of the queue at `path`.
    pub fn has_seen(&self, path: &Path) -> bool {
        Baseline::queues(self)
            .iter()
            .any(|id| self.queue_of(id).path == path)
    }

    /// Returns true if Tavern has seen the queue, or the same file under a name that is gone now.
    pub(super) fn knows(&self, queue: &Queue) -> bool {
        let is_renamed = |file: &Stamp| {
            let before = Baseline::queues(self)
                .into_iter()
                .map(|id| self.queue_of(&id));
            let mut gone = before.filter(|before| fs::symlink_metadata(&before.path).is_err());
            gone.any(|before| {
                let known = QueueFiles::known(self, &before).and_then(|known| known.file);
                known.is_some_and(|known| known.is_same_file(file))
            })
        };
        path(self, queue).exists() || Stamp::at(&queue.path).as_ref().is_some_and(is_renamed)
    }

    /// Returns the file that holds the last known text.
    pub fn seen_path(&self, queue: &Queue) -> PathBuf {
        if self.is_kept(&queue.path) {
            self.kept_path(&queue.id)
        } else {
            path(self, queue)
        }
    }

    /// Restores a lost file. Returns false if it exists again.
    pub fn put_back(&self, lost: &Lost) -> Result<bool, Error> {
        if lost.queue.path.starts_with(self.path(FOLDER)) || self.is_kept(&lost.queue.path) {
            return self.put_back_file(lost);
        }
        self.transact(|view| {
            // An emptied queue is restored by the next process to take the lock.
            // git removes a file before it writes the new one.
            let is_there = || {
                fs::symlink_metadata(&lost.queue.path).is_ok() || self.is_git_at_work([&lost.queue])
            };
            if !lost.is_gone || is_there() {
                return Ok((Change::default(), !lost.is_gone));
            }
            let cause = Some("the file was removed; it was put back".to_owned());
            let entry = Entry {
                cause,
                ..note(&lost.queue, view.now)
            };
            let change = put_back(self, view.last_seq, &lost.queue, entry, view.now)?;
            Ok((change.unwrap_or_default(), true))
        })
    }

    /// Replaces the queue's text `before` by `after`, in which some items have other IDs; `done` describes each repair.
    /// Returns false and changes nothing if the queue was changed meanwhile.
    pub fn mend(
        &self,
        queue: &Queue,
        before: &str,
        after: &str,
        done: &[String],
    ) -> Result<bool, Error> {
        self.transact(|view| {
            let text = view.read(queue)?;
            if text.content != *before {
                return Ok((Change::default(), false));
            }
            let mut entries: Vec<Entry> = done
                .iter()
                .map(|done| Entry {
                    cause: Some(done.clone()),
                    ..note(queue, view.now)
                })
                .collect();
            let (old, new) = (parse(before).0, parse(after).0);
            let changed = old.items().iter().zip(new.items());
            let changed =
                changed.filter(|(was, is)| was.within.is_none() && old.block(was) != new.block(is));
            entries.extend(changed.map(|(was, is)| Entry {
                kind: Kind::Edited,
                task: is.id.clone(),
                change: TextChange::Edited {
                    before: old.block(was).to_owned(),
                    after: new.block(is).to_owned(),
                    moved: None,
                },
                ..note(queue, view.now)
            }));
            Ok((
                Change::rewrite(
                    text.queue.clone(),
                    view.sight(&text),
                    after.to_owned(),
                    entries,
                ),
                true,
            ))
        })
    }
}

pub(super) fn note(queue: &Queue, now: Timestamp) -> Entry {
    Entry {
        queue: Some(queue.id.clone()),
        agent: Some(CHECK.to_owned()),
        ..Entry::new(Kind::Noted, now)
    }
}
