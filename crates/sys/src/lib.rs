//! The machine beneath a board: opening files without links, ending processes completely, the clock, change
//! notifications, and redacting secrets.
//!
//! Knows no boards. The only exceptions are plain values of `tavern_core`: a moment, and the identity of a process.

pub mod clock;
pub mod failpoint;
pub mod file_watch;
pub mod files;
pub mod interrupt;
pub mod process;
pub mod secrets;
