//! One run of one task: worktree, prompt, agent program, heartbeat, artifacts, verification, integration; and the
//! cleanup after one that died.
//!
//! Knows the board, git and the runners, and nothing of loops, pools or command lines.

pub mod prompt;
pub mod runner;

pub mod agent;
pub mod pool;

mod accounts;
mod activity;
mod approval;
pub mod artifacts;
mod ask_git;
pub mod attempt;
pub mod background;
mod brief;
mod cell;
mod channels;
pub mod chat;
pub mod children;
pub mod commands;
pub mod commit;
pub mod evidence;
pub mod inbox;
pub mod integrate;
pub mod notices;
pub mod plan;
pub mod preflight;
pub mod processes;
pub mod readiness;
pub mod reap;
pub mod rebuild;
pub mod record;
pub mod report;
pub mod reported;
pub mod review;
pub mod sandbox;
pub mod schedule;
pub mod unmerged;
pub mod verify;
pub mod wake;
pub mod watch;
pub mod watcher;
pub mod work;
pub mod worktree;

mod damaged;
mod discoveries;
mod enclosure;
mod error;
mod expired;
pub mod expiry;
mod furnish;
mod heartbeat;
mod knowledge;
mod launch;
mod live;
pub mod mail;
mod metadata;
mod origin;
mod prune;
mod relay;
mod result;
mod rules;
mod site;
pub mod spending;
mod strayed;
pub mod surroundings;
mod syscalls;
mod take_over;
mod tracked;
mod trust;
mod writable;

pub use ask_git::ASK_GIT;
pub use error::Error;
pub use heartbeat::{Heartbeat, show_agent};
pub use knowledge::{Source, make_known};
pub use launch::CommandLine;
pub use origin::Clause;
pub use preflight::Preflight;
pub use record::{Metadata, run_name};
pub use result::{AgentAnswer, Ruling, RunFailure, RunResult, ShownBy};
pub use site::{Site, runner_named};
pub use tracked::refuse_tracked;
pub use trust::{Stranger, Trust, made_here, settings_made_here};
