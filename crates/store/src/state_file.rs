//! The file beside a queue that shows the states of its items, for people, `grep` and `git diff`. It is written from what is
//! remembered, and read only where the log is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use xxhash_rust::xxh3::xxh3_64;

use super::entry::Entry;
use super::error::Error;
use super::find::Board;
use super::queue::Queue;
use super::replace::replace_volatile;
use super::seen;
use tavern_core::document::Document;
use tavern_core::event::Kind;
use tavern_core::problem::one_line;
use tavern_core::states::StateKeys;
use tavern_core::status::Timestamp;
use tavern_core::yaml;
use tavern_sys::clock;
use tavern_sys::files;

/// It is written again after this time at the soonest, but for an item that has ended.
const INTERVAL: Duration = Duration::from_secs(1);

impl Board {
    /// Where the states of the queue's items are shown: beside it, or for a task file in the private part.
    pub fn state_file(&self, queue: &Queue) -> PathBuf {
        let is_own = self.path("queues").join(format!("{}.md", queue.id)) == queue.path;
        let beside = if is_own {
            queue.path.clone()
        } else {
            seen::path(self, queue)
        };
        beside.with_extension("state.yaml")
    }

    /// Writes anew what shows the states of the queue's items, if it is another.
    pub fn show_states(&self, queue: &Queue) -> Result<(), Error> {
        let (path, text) = (self.state_file(queue), self.states_shown(queue)?);
        let known = files::read_text(&path).unwrap_or_default();
        if self.is_dry() || known == text {
            return Ok(());
        }
        replace_volatile(&path, text.as_bytes())
    }

    /// The same, unless it was done a moment ago.
    pub(super) fn show_states_in_time(&self, queue: &Queue) -> Result<(), Error> {
        let age = modified(&self.state_file(queue)).and_then(clock::since);
        match age {
            Some(age) if age < INTERVAL => Ok(()),
            _ => self.show_states(queue),
        }
    }

    /// Somebody has edited what shows the states, which changes nothing.
    pub fn is_state_file_edited(&self, queue: &Queue) -> bool {
        let text = files::read_text(self.state_file(queue)).unwrap_or_default();
        let (head, lines) = text.split_once('\n').unwrap_or_default();
        !text.is_empty() && !head.ends_with(&mark(lines))
    }

    /// Where the log is lost: what the files show, as events.
    pub(super) fn shown_states(&self, now: Timestamp) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for queue in self.queues()? {
            let Ok(text) = files::read_text(self.state_file(&queue)) else {
                continue;
            };
            let shown = text.lines().filter_map(|line| {
                let (id, keys) = line.split_once(": ")?;
                let keys: StateKeys = yaml::read(keys).ok()?;
                Some((id.parse().ok()?, keys.without_log()))
            });
            let cause = format!(
                "the log is lost: this is what {}.state.yaml shows",
                queue.id
            );
            entries.extend(shown.map(|(id, keys)| Entry {
                task: Some(id),
                queue: Some(queue.id.clone()),
                cause: Some(cause.clone()),
                state: Some(keys),
                ..Entry::new(Kind::Noted, now)
            }));
        }
        Ok(entries)
    }

    fn states_shown(&self, queue: &Queue) -> Result<String, Error> {
        let text = self.read(queue)?;
        Ok(shown(&text.content.open(), &queue.id))
    }
}

/// A line for each item that has a state, sorted by ID.
fn shown(document: &Document<'_>, queue: &str) -> String {
    let states = document.states();
    let mut lines: Vec<String> = (0..document.count())
        .filter_map(|at| {
            let id = document.id_at(at)?;
            let keys = states.get(&id)?.shown(document.status_at(at));
            Some(format!(
                "{id}: {keys} # {}\n",
                one_line(document.title(document.item(at)))
            ))
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    lines.sort();
    let lines = lines.concat();
    let mark = mark(&lines);
    format!("# Who works on what in {queue}, to look at: no program reads it. {mark}\n{lines}")
}

/// Shows whether the lines are as they were written.
fn mark(lines: &str) -> String {
    format!("({:016x})", xxh3_64(lines.as_bytes()))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}
