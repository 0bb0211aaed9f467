//! One line of the event log. Knows nothing of files.

use serde::{Deserialize, Serialize};

use crate::board::document::parse;
use crate::board::event::Kind;
use crate::board::lease::{Lease, Token};
use crate::board::task::{Status, TaskId, Timestamp};

/// Who did what was done by hand, in the log.
pub const HAND: &str = "hand";

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Grows by one with each line of a board, for ever.
    pub seq: u64,
    /// It is a part of a change that ends with the line of this number: without that one it never happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
    pub time: Timestamp,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The `seq` of the event that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Status>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Status>,
    /// The item's text before and after; `None` before for a new item, both `None` if the text did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseEntry>,
    /// The request of a waiting claimer that this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// What became of the task's lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseEntry {
    Put(Box<Lease>),
    Drop,
}

impl Entry {
    pub fn new(kind: Kind, time: Timestamp) -> Entry {
        Entry {
            seq: 0,
            through: None,
            time,
            kind,
            task: None,
            queue: None,
            agent: None,
            token: None,
            run: None,
            cause: None,
            undoes: None,
            commit: None,
            from: None,
            to: None,
            before: None,
            after: None,
            lease: None,
            request: None,
        }
    }

    /// A queue's text is another since.
    pub fn changes_text(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }
}

/// It tells of the text around the items, and of none of them.
pub(super) fn is_prose(entry: &Entry) -> bool {
    let has_item = |text: &Option<String>| text.as_ref().is_some_and(|text| !parse(text).0.items().is_empty());
    entry.task.is_none() && entry.kind == Kind::Edited && !has_item(&entry.before) && !has_item(&entry.after)
}
