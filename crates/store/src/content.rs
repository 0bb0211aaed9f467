//! What a queue says, shared by all in this process who read it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::stamp::Stamp;
use tavern_core::document::{Document, Outline, open};

/// A queue's text, and where its items stand once somebody has asked. Cheap to clone.
#[derive(Clone, Default)]
pub struct Content(Arc<Outlined>);

#[derive(Default)]
struct Outlined {
    text: String,
    /// Nothing where the text isn't plain.
    outline: OnceLock<Option<Outline>>,
}

impl Content {
    /// As [`open`]; what that has found out about this text before it need not look for again.
    pub fn open(&self) -> Document<'_> {
        if let Some(Some(outline)) = self.0.outline.get() {
            return outline.open(self);
        }
        let document = open(self);
        self.0.outline.get_or_init(|| document.outline());
        document
    }

    /// Without a copy, if nobody else has it.
    pub fn into_string(self) -> String {
        match Arc::try_unwrap(self.0) {
            Ok(outlined) => outlined.text,
            Err(shared) => shared.text.clone(),
        }
    }
}

impl Deref for Content {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq<str> for Content {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content(Arc::new(Outlined {
            text,
            outline: OnceLock::new(),
        }))
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
