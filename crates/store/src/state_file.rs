//! The state file beside a queue shows the states of its items, for people, `grep` and `git diff`. It is generated, and
//! read only if the log is lost.

#![expect(
    clippy::disallowed_methods,
    reason = "state files without a queue are removed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::atomic_write::replace_volatile;
use super::baseline_files;
use super::board::Board;
use super::content::Content;
use super::entry::Entry;
use super::error::Error;
use super::file_version::Stamp;
use super::queue::Queue;
use tavern_core::document::{Document, open};
use tavern_core::event::Kind;
use tavern_core::problem::one_line;
use tavern_core::states::StateKeys;
use tavern_core::status::{Status, Timestamp};
use tavern_core::task::TaskId;
use tavern_core::yaml;
use tavern_sys::clock;
use tavern_sys::files;

/// The least time between two writes of a long file, unless an item has ended.
const INTERVAL: Duration = Duration::from_secs(1);

/// A file of at most this many bytes is written with each event.
const SHORT: u64 = 32 << 10;

impl Board {
    /// Returns the path of the queue's state file: beside it, or for an outside task file in the private part.
    pub fn state_file(&self, queue: &Queue) -> PathBuf {
        let is_own = self.path("queues").join(format!("{}.md", queue.id)) == queue.path;
        let beside = if is_own {
            queue.path.clone()
        } else {
            baseline_files::path(self, queue)
        };
        beside.with_extension("state.yaml")
    }

    /// Updates the queue's state file, if it has changed.
    pub fn show_states(&self, queue: &Queue) -> Result<(), Error> {
        self.show_states_of(queue, &self.read(queue)?.content)
    }

    /// Like [`Board::show_states`], as of event `last`, for the holder of the lock.
    pub(super) fn show_states_at(&self, queue: &Queue, last: u64) -> Result<(), Error> {
        let file = Stamp::at(&queue.path);
        let content = match file.and_then(|file| self.last_read.of_file(&queue.path, file)) {
            Some(content) => content.with_states(self.states_at(last)?),
            None => self.read_settled(queue, last)?.content,
        };
        self.show_states_of(queue, &content)
    }

    fn show_states_of(&self, queue: &Queue, content: &Content) -> Result<(), Error> {
        let path = self.state_file(queue);
        let shown = shown(&content.open(), &queue.id);
        let known = match files::read_text(&path) {
            // A link or folder in its place is a user's own.
            Err(error) if error.kind() == files::REFUSED => return Ok(()),
            Err(error) if error.kind() == ErrorKind::IsADirectory => return Ok(()),
            known => known.unwrap_or_default(),
        };
        if self.is_dry() || known == shown {
            return Ok(());
        }
        replace_volatile(&path, shown.as_bytes())
    }

    /// Removes the state files of queues that no longer exist.
    pub(super) fn remove_stale_states(&self, queues: &[Queue]) {
        let own: Vec<PathBuf> = queues.iter().map(|queue| self.state_file(queue)).collect();
        let all = fs::read_dir(self.path("queues"))
            .into_iter()
            .flatten()
            .flatten();
        let stale = all.map(|entry| entry.path()).filter(|path| {
            let is_one = path.to_string_lossy().ends_with(".state.yaml");
            is_one && !own.contains(path) && files::read_text(path).is_ok_and(|text| is_own(&text))
        });
        stale.for_each(|path| drop(fs::remove_file(path)));
    }

    /// Returns true if the state file is short, or was not written a moment ago.
    pub(super) fn may_show_states(&self, queue: &Queue) -> bool {
        let Ok(file) = fs::metadata(self.state_file(queue)) else {
            return true;
        };
        let age = || clock::since(file.modified().ok()?);
        file.len() <= SHORT || age().is_none_or(|age| age >= INTERVAL)
    }

    /// Returns true if the state file was edited, which has no effect.
    pub fn is_state_file_edited(&self, queue: &Queue) -> bool {
        let text = files::read_text(self.state_file(queue)).unwrap_or_default();
        !text.is_empty() && !is_own(&text)
    }

    /// Returns the states in the state files as events, for a lost log.
    pub(super) fn shown_states(&self, now: Timestamp) -> Result<Vec<Entry>, Error> {
        let mut all: BTreeMap<TaskId, (String, StateKeys)> = BTreeMap::new();
        for queue in self.queues()? {
            let Ok(text) = files::read_text(self.state_file(&queue)) else {
                continue;
            };
            let queue_text = self.read_file(&queue).map(|text| text.content);
            let queue_text = queue_text.unwrap_or_default();
            let document = open(&queue_text);
            // A tick is newer than the state file.
            let is_ticked = |id: &TaskId| {
                let item = document.find(id);
                item.is_some_and(|item| document.text_status(item).is_ended())
            };
            for (id, keys) in text.lines().filter_map(read_line) {
                let has_ended = keys.status().is_some_and(Status::is_ended);
                // Of a copy and its original, the one that has ended counts.
                if has_ended || !is_ticked(&id) && !all.contains_key(&id) {
                    all.insert(id, (queue.id.clone(), keys));
                }
            }
        }
        let entry = |(id, (queue, keys)): (TaskId, (String, StateKeys))| Entry {
            task: Some(id),
            cause: Some(format!("the log is lost: read from {queue}.state.yaml")),
            queue: Some(queue),
            state: Some(keys.without_log()),
            ..Entry::new(Kind::Noted, now)
        };
        Ok(all.into_iter().map(entry).collect())
    }
}

fn read_line(line: &str) -> Option<(TaskId, StateKeys)> {
    let (id, keys) = line.split_once(": ")?;
    Some((id.parse().ok()?, yaml::read(keys).ok()?))
}

/// Returns a line for each item that has a state, sorted by ID.
fn shown(document: &Document<'_>, queue: &str) -> String {
    let states = document.states();
    let mut lines: Vec<String> = document
        .named_among(states.ids())
        .into_iter()
        .filter_map(|(at, id)| {
            let (keys, status) = (states.get(&id)?, document.status_at(at));
            // A copy of an ended item is left out.
            if keys.status().is_some_and(Status::is_ended) && !status.is_ended() {
                return None;
            }
            let title = one_line(document.title(document.item(at)));
            let line = format!("{id}: {} # {title}\n", keys.shown(status));
            // YAML does not allow these characters.
            Some(line.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    lines.sort();
    let lines = lines.concat();
    let mark = mark(&lines);
    format!(
        "# The states of the items in {queue}, read-only: edits of this file have no effect. {mark}\n{lines}"
    )
}

/// Returns true if the text is unchanged since it was written.
fn is_own(text: &str) -> bool {
    let (head, lines) = text.split_once('\n').unwrap_or_default();
    head.ends_with(&mark(lines))
}

/// Returns a checksum of the lines.
fn mark(lines: &str) -> String {
    format!("({:016x})", xxh3_64(lines.as_bytes()))
}
