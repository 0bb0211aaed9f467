//! The only place that starts programs: with a mark and a group, following their logs, and ending them with their
//! descendants.
//!
//! - [`mod@start`]: a program to start; [`running_program`]: a started program.
//! - [`mark`], [`table`], [`ancestry`] and [`family`]: finding descendants, even after their supervisor died; [`end`]:
//!   ending them.
//! - [`log`] and [`follow`]: output as a file; [`bell`]: waking waiters.
//! - [`command`], [`output`], [`mod@foreground`]: running a shell command or a program to its end; giving one the
//!   terminal.
//! - `waits` and `with_parent`: keeping a program that may open a pipe from waiting forever.
//! - [`identity`], [`file_in_use`], [`mod@first_program`]: queries about processes and commands.
//! - [`descriptors`], [`no_terminal`]: inherited files and terminals, which are not passed on.
//!
//! Knows nothing of tasks, runs, agents or git. Linux only where it reads `/proc`: [`table`], `waits`, [`identity`],
//! [`file_in_use`], [`descriptors`] and [`end`].

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
