//! The board on disk: finding it, locking it, reading it, and changing it durably.
//!
//! Only this room writes queue documents, leases and the event log. A verb never takes the lock by itself: it submits
//! an [`Event`](crate::board::event::Event) through [`Board::submit`] or one of its siblings, which lock, redo what a
//! crash left undone, decide, append the event (the commit point), replace the document and write the lease.

mod agents;
mod archive;
mod change;
mod children;
mod claim;
mod committed;
mod edit;
mod error;
mod find;
mod hand;
mod history;
mod inbox;
mod leases;
mod loaded;
mod lock;
mod log;
mod mend;
mod plan;
mod queue;
mod quota;
mod redo;
mod replace;
mod restore;
mod seen;
mod shelf;
mod slots;
mod submit;
mod switch;
mod together;
mod transaction;
mod undo;
mod wait;

pub use agents::{AgentFile, AgentState};
pub use archive::Archived;
pub use children::Birth;
pub use claim::{Claimed, Foreseen, IsReady, Nothing, Seek, Stuck};
pub use committed::{Committed, Snapshot};
pub use edit::Edited;
pub use error::Error;
pub use find::{Board, GITIGNORE};
pub use hand::HAND;
pub use history::Then;
pub use inbox::Message;
pub use leases::{holder, host, life, no_process, this_process};
pub use log::{Entry, LeaseEntry, read_log, tail_log};
pub use mend::{CHECK, Lost};
pub use queue::{Queue, Text};
pub use quota::Quota;
pub use replace::{TEMP_PREFIX, replace};
pub use slots::Slot;
pub use submit::{Done, Found, Note};
pub use switch::Switch;
pub use undo::{Obstacle, Undone, Which};
pub use wait::{Wake, Waker, Watch};
