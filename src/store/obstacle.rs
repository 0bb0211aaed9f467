//! Why an event can't be taken back.

use super::entry::Entry;
use crate::board::event::Kind;
use crate::board::task::{Status, TaskId};

/// Why an event can't be taken back.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    #[error("there is nothing to take back")]
    Nothing,
    #[error("there is no event {0} in the log")]
    NoEvent(u64),
    #[error("event {seq} ({}) changed no item", kind.as_str())]
    NoChange { seq: u64, kind: Kind },
    #[error("event {seq} was taken back already, by event {by}")]
    Already { seq: u64, by: u64 },
    #[error("`{task}` is in somebody's hands")]
    Held { task: TaskId, is_leased: bool },
    #[error("taking event {seq} back would make {name} {}, in the hands of nobody", to.as_str())]
    InHands { seq: u64, name: String, to: Status, now: Option<Status> },
    #[error("{name} has changed since event {seq}")]
    Since { seq: u64, name: String, since: Vec<Entry> },
    #[error("{name} is there again, in {queue}")]
    Back { name: String, queue: String },
    #[error("{name} is not there any more")]
    Gone { name: String, since: Vec<Entry> },
    #[error("two items of {queue} read like the one of event {seq}")]
    Twice { seq: u64, queue: String },
    #[error("event {seq} can't be taken back without touching other items")]
    Odd { seq: u64, name: String },
}
