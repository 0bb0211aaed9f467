//! The machine beneath a board: files that are opened without links, processes that are ended whole, the clock,
//! signals of change, and texts without secrets.
//!
//! Knows no boards. The one exception are plain values of `tavern_core`: a moment, and what names a process.

pub mod clock;
pub mod failpoint;
pub mod file_watch;
pub mod files;
pub mod interrupt;
pub mod process;
pub mod secrets;
