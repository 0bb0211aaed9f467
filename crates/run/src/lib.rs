//! One run of one task: worktree, prompt, agent program, heartbeat, artifacts, verification, integration; and the
//! cleanup after one that died.
//!
//! Knows the board, git and the runners, and nothing of loops, pools or command lines.

pub mod prompt;
pub mod runner;

pub mod agent;
pub mod agent_pool;

mod accounts;
mod activity;
mod approval;
pub mod artifacts;
pub mod attempt;
pub mod background;
mod channels;
pub mod chat;
pub mod children;
pub mod commands;
pub mod commit;
pub mod evidence;
mod git_answers;
pub mod inbox;
pub mod integrate;
pub mod item_changes;
pub mod notices;
pub mod plan;
pub mod planner_wake;
pub mod preflight;
pub mod processes;
mod prompt_context;
pub mod readiness;
pub mod reap;
pub mod rebuild;
pub mod record;
pub mod report;
pub mod review;
pub mod sandbox;
mod sandbox_dir;
pub mod schedule;
pub mod self_reported;
pub mod unmerged_work;
pub mod verify;
pub mod watch;
pub mod watcher_state;
pub mod worktree;

mod answer_check;
mod bubblewrap;
mod discoveries;
pub mod environment;
mod error;
mod expired_leases;
mod heartbeat;
mod import_sandbox;
mod knowledge;
mod launch;
pub mod mail;
mod metadata;
mod outside_changes;
mod provenance;
mod record_recovery;
mod relay;
mod result;
mod rules;
mod run_retention;
pub mod spending;
mod syscalls;
mod tracked_files;
mod trust;
pub mod wait_expiry;
mod workspace;
mod worktree_setup;
mod writable;

pub use error::Error;
pub use git_answers::ASK_GIT;
pub use heartbeat::{Heartbeat, show_agent};
pub use knowledge::{Source, make_known};
pub use launch::CommandLine;
pub use preflight::Preflight;
pub use provenance::TrustUnit;
pub use record::{Metadata, run_name};
pub use result::{AgentAnswer, Ruling, RunFailure, RunResult, ShownBy};
pub use tracked_files::refuse_tracked;
pub use trust::{Trust, UntrustedUnit, made_here, settings_made_here};
pub use workspace::{Workspace, runner_named};
