//! What a queue says, shared by all in this process who read it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::stamp::Stamp;
use tavern_core::document::{Document, Outline, open, parse};
use tavern_core::problem::Problem;
use tavern_core::states::States;
use tavern_core::status::Status;

/// A queue's text, with the states of its items, and where they stand once somebody has asked. Cheap to clone.
#[derive(Clone, Default)]
pub struct Content {
    outlined: Arc<Outlined>,
    states: Arc<States>,
}

#[derive(Default)]
struct Outlined {
    text: String,
    /// Nothing where the text isn't plain.
    outline: OnceLock<Option<Outline>>,
}

impl Content {
    /// As [`open`], with the states; what that has found out about this text before it need not look for again.
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

    /// As [`parse`], with the states.
    pub fn parse(&self) -> (Document<'_>, Vec<Problem>) {
        let (document, problems) = parse(self);
        (document.with_states(self.states.clone()), problems)
    }

    /// An item may have this status, which no lane and no box says. Quickly told.
    pub fn may_have(&self, status: Status) -> bool {
        self.states.has_open(status) || self.contains(status.as_str())
    }

    /// The same text, whose items have these states.
    pub(super) fn with_states(self, states: Arc<States>) -> Content {
        Content { states, ..self }
    }

    /// Another text, whose items have the same states.
    pub(super) fn with_text(self, text: String) -> Content {
        Content::from(text).with_states(self.states)
    }

    /// Without a copy, if nobody else has it.
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

/// What each queue said when this process read or wrote it last: an agent reads it a dozen times for one item, and mostly nobody
/// has changed it between.
#[derive(Debug, Default)]
pub(super) struct LastRead(Mutex<HashMap<PathBuf, (QueueVersion, Content)>>);

/// By what a text of Tavern's is known: its file's stamp, and the last event that it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueVersion {
    pub(super) file: Stamp,
    pub(super) seq: u64,
}

impl LastRead {
    /// What the queue at `path` said, if that was this version.
    pub(super) fn get(&self, path: &Path, version: QueueVersion) -> Option<Content> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(path)
            .filter(|(known, _)| *known == version)
            .map(|(_, content)| content.clone())
    }

    /// What the queue at `path` said last.
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
