//! The board on disk: finding it, locking it, reading it, and changing it durably.
//!
//! Only this room writes queue documents, leases and the event log. A verb never takes the lock by itself: it submits
//! an [`Event`](crate::board::event::Event) through [`Board::submit`] or one of its siblings. These lock, redo what a
//! crash left undone, decide, append the event (the commit point), replace the document and write the lease.

mod agents;
mod appended;
mod applied;
mod archive;
mod archived;
mod baseline;
mod change;
mod children;
mod claim;
mod committed;
mod edit;
mod elsewhere;
mod entry;
mod error;
mod find;
mod hand;
mod held;
mod history;
mod inbox;
mod index;
mod known;
mod leases;
mod loaded_base;
mod lock;
mod log;
mod mend;
mod moved;
mod places;
mod plan;
mod queue;
mod quota;
mod redo;
mod rehearsal;
mod replace;
mod returned;
mod seek;
mod set_up;
mod since;
mod slots;
mod stamp;
mod submit;
mod switch;
mod transaction;
mod undo;
mod wait;

pub use agents::{AgentFile, AgentState};
pub use archived::Archived;
pub use baseline::SetAside;
pub use children::Birth;
pub use claim::{Claimed, IsReady, Nothing, Unknown};
pub use committed::{Committed, Snapshot};
pub use edit::Edited;
pub use entry::{Entry, HAND, LeaseEntry, TextChange};
pub use error::{Error, Obstacle, not_written};
pub use find::{Board, GITIGNORE};
pub use hand::{Settled, SettledAs};
pub use history::Then;
pub use inbox::Message;
pub use index::{ItemIndex, children as children_in, homes};
pub use leases::{holder, host, life, no_process, this_process};
pub use log::{tail_log, walk_log};
pub use mend::{CHECK, Lost};
pub use queue::{Queue, Text};
pub use quota::Quota;
pub use replace::{TEMP_PREFIX, replace, replace_volatile};
pub use seek::Seek;
pub use slots::Slot;
pub use submit::{Done, Found, Note};
pub use switch::Switch;
pub use undo::{Undone, Which};
