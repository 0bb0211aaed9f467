//! The one starter of programs: start one with a mark and a group, follow its log, end it with all that it started.
//!
//! - [`mod@start`]: what is started and how; [`running_program`]: one that was.
//! - [`mark`], [`table`], [`ancestry`] and [`family`]: how what it has started is found, also after its supervisor died; [`end`]: how
//!   that is ended.
//! - [`log`] and [`follow`]: its output as a file; [`bell`]: how waits are woken.
//! - [`command`], [`output`], [`mod@foreground`]: a shell command or a program, run to its end; one that is given the terminal.
//! - `waits` and `with_parent`: how one that may come upon a pipe is kept from waiting for ever.
//! - [`identity`], [`file_in_use`], [`mod@first_program`]: what other rooms ask of processes and commands.
//! - [`descriptors`], [`no_terminal`]: what this process was given and hands on to none.
//!
//! Knows nothing of tasks, runs, agents or git. Linux only where it reads `/proc`; everything that does is in
//! [`table`], `waits`, [`identity`], [`file_in_use`], [`descriptors`] and [`end`].

pub mod ancestry;
pub mod bell;
pub mod command;
pub mod descriptors;
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
pub mod no_terminal;
pub mod output;
mod pipe;
pub mod running_program;
pub mod start;
pub mod table;
mod waits;
mod with_parent;

pub use bell::Bell;
pub use command::{CommandEnd, CommandResult, CommandSpec, argument, quoted, run_command};
pub use descriptors::keep_inherited;
pub use end::end_marked;
pub use family::{adopt_orphans, end_with_parent, has_living_children};
pub use first_program::first_program;
pub use follow::{LineFollower, LogLine};
pub use foreground::{Attended, attend, foreground};
pub use log::{RelayedLog, create_log};
pub use mark::Mark;
pub use no_terminal::leave_terminal;
pub use output::{Ran, end_overdue, run_beside, run_program};
pub use running_program::{ProgramExit, RunningProgram};
pub use start::{Spec, TOO_MANY, find_program, find_program_on, fixed, start};
