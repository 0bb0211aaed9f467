//! The one starter of programs: start one with a mark and a group, follow its log, end it with all that it started.
//!
//! Read in this order: [`mod@start`] (what is started and how), [`child`] (a running program), [`mark`] and [`table`] (how
//! its descendants are found, also after its supervisor died), [`end`] (how they are ended), [`family`] (adopted orphans), [`identity`] (is that very
//! process still there?), [`file_in_use`] (may who made a file still be at work with it?), [`log`] and [`follow`] (its output
//! as a file), [`command`] (one shell command, run to its end), [`output`] (one program, likewise, with what it printed), [`bell`] (how waits are woken), [`mod@foreground`] (one
//! that is given the terminal), [`mod@first_program`] (which one a shell
//! command needs first).
//!
//! Knows nothing of tasks, runs, agents or git. Linux only where it reads `/proc`; everything that does is in
//! [`table`], [`identity`], [`file_in_use`] and [`end`].

pub mod bell;
pub mod child;
pub mod command;
pub mod end;
pub mod excerpt;
pub mod family;
pub mod file_in_use;
pub mod first_program;
pub mod follow;
pub mod foreground;
pub mod identity;
pub mod log;
pub mod mark;
pub mod output;
mod pipe;
pub mod start;
pub mod table;

pub use bell::Bell;
pub use child::{Child, Exit};
pub use command::{CommandResult, CommandSpec, quoted, run_command};
pub use end::end_marked;
pub use family::adopt_orphans;
pub use first_program::first_program;
pub use follow::{Follower, Line};
pub use foreground::{Attended, attend, foreground};
pub use log::{create_log, is_running};
pub use mark::Mark;
pub use output::{Ran, run_program};
pub use start::{Spec, find_program, find_program_on, start};
