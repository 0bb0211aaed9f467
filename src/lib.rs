//! The programs: flags, output, errors and exit codes. Each verb is a file with `Args` and `run`; the doc
//! comment of `Args` is its help, and its first line the verb's job.
//!
//! Has no rules about tasks: it parses arguments, calls the library and prints.

pub use agent_permissions::OwnRun;
pub use context::Context;
pub use error::CliError;
pub use exit::Exit;
pub use item_name::ItemName;
pub use output::Output;
pub use program::{PROGRAMS, Program, SMALL};
pub use shared::{Format, Shared};
pub use verb::Verb;

pub mod demo;
pub mod format;
pub mod multicall;
pub mod program;
pub mod signals;

mod agent_permissions;
mod alias;
mod chat;
mod complete;
mod context;
mod error;
mod exit;
mod flags;
mod help;
mod hints;
mod item_lookup;
mod item_name;
mod live;
mod locate;
mod mail;
mod message_groups;
mod needs;
mod output;
mod output_file;
mod overview;
mod past_time;
mod pause;
mod run_program;
mod sanitize;
mod shared;
mod skipped_items;
mod unified;
mod unread_lines;
mod verb;

pub mod add;
pub mod agent;
pub mod ask;
pub mod check;
pub mod claim;
pub mod commit;
pub mod diff;
pub mod drain;
pub mod edit;
pub mod init;
pub mod learn;
pub mod log;
pub mod merge;
pub mod merge_driver;
pub mod notify;
mod outside_changes;
pub mod plan;
pub mod queue;
pub mod reap;
pub mod release;
pub mod renew;
pub mod report;
pub mod report_html;
pub mod runs;
pub mod schedule;
pub mod serve;
pub mod spawn;
pub mod status;
pub mod tell;
pub mod top;
pub mod trust;
pub mod undo;
pub mod watch;
