//! The content of a queue, shared within this process.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::file_version::Stamp;
use tavern_core::document::{Document, Outline, open, parse};
use tavern_core::problem::Problem;
use tavern_core::states::States;
use tavern_core::status::Status;

/// A queue's text, the states of its items, and their cached outline. Cheap to clone.
#[derive(Clone, Default)]
pub struct Content {
    outlined: Arc<Outlined>,
    states: Arc<States>,
}

#[derive(Default)]
struct Outlined {
    text: String,
    /// `None` if the text isn't plain.
    outline: OnceLock<Option<Outline>>,
}

impl Content {
    /// Like [`open`], but with the states, and reusing the outline of an earlier call.
    pub fn open(&self) -> Document<'_> {
        let document = match self.outlined.outline.get() {
            Some(Some(outline)) => outline.open(self),
            _ => {
                let document = open(self);
                self.outlined.outline.get_or_init(|| document.outline());
                document
            }
        };
        document.with_states(self.states.clone())
    }

    /// Like [`parse`], but with the states.
    pub fn parse(&self) -> (Document<'_>, Vec<Problem>) {
        let (document, problems) = parse(self);
        (document.with_states(self.states.clone()), problems)
    }

    /// Returns true if an item may have this status, which no lane and no box shows. Cheap.
    pub fn may_have(&self, status: Status) -> bool {
        self.states.has_open(status) || self.contains(status.as_str())
    }

    /// Returns the same text with these states.
    pub(super) fn with_states(self, states: Arc<States>) -> Content {
        Content { states, ..self }
    }

    /// Returns another text with the same states.
    pub(super) fn with_text(self, text: String) -> Content {
        Content::from(text).with_states(self.states)
    }

    /// Returns the text, without a copy if it is not shared.
    pub fn into_string(self) -> String {
        match Arc::try_unwrap(self.outlined) {
            Ok(outlined) => outlined.text,
            Err(shared) => shared.text.clone(),
        }
    }
}

impl Deref for Content {
    type Target = str;

    fn deref(&self) -> &str {
        &self.outlined.text
    }
}

impl PartialEq<str> for Content {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content {
            outlined: Arc::new(Outlined {
                text,
                outline: OnceLock::new(),
            }),
            states: Arc::default(),
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Each queue's content when this process last read or wrote it. An agent reads a queue a dozen times per item, mostly
/// unchanged.
#[derive(Debug, Default)]
pub(super) struct LastRead(Mutex<HashMap<PathBuf, (QueueVersion, Content)>>);

/// The version of a text that Tavern wrote: its file's stamp, and the last event that it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueVersion {
    pub(super) file: Stamp,
    pub(super) seq: u64,
}

impl LastRead {
    /// Returns the content of the queue at `path`, if it is of this version.
    pub(super) fn get(&self, path: &Path, version: QueueVersion) -> Option<Content> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(path)
            .filter(|(known, _)| *known == version)
            .map(|(_, content)| content.clone())
    }

    /// Returns the content of the queue at `path`, if its file had this stamp.
    pub(super) fn of_file(&self, path: &Path, file: Stamp) -> Option<Content> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(path)
            .filter(|(known, _)| known.file == file)
            .map(|(_, content)| content.clone())
    }

    /// Returns the last known content of the queue at `path`.
    pub(super) fn newest(&self, path: &Path) -> Option<Content> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(path).map(|(_, content)| content.clone())
    }

    pub(super) fn forget(&self, path: &Path) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(path);
    }

    pub(super) fn keep(&self, path: &Path, version: QueueVersion, content: Content) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned(), (version, content));
    }
}
