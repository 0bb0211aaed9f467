//! Git: worktrees, branches, in-memory merges and rescued work.
//!
//! Knows nothing of tasks, queues or boards. libgit2 does references, commits, diffs and in-memory merges. The `git`
//! program does everything that needs the user's filters, sparse rules or index (see `program.rs`).
//!
//! Invariants of every function here: the user's own checkout is never written to, neither its files nor its index
//! nor its `HEAD`, whatever its state. Only linked worktrees that are registered in this repository are changed or
//! removed. No hook of the user's runs. `specs/git.md` is the contract in words.

mod arrivals;
mod baseline;
mod board_branch;
mod branch;
mod cell;
mod changes;
mod clean_up;
mod commit;
mod commit_id;
mod config_files;
mod endless;
mod error;
mod filter;
mod followed;
mod glob;
mod history;
mod identity;
mod inner;
mod links;
mod lock;
mod merge;
mod outside;
mod own;
mod program;
mod provenance;
mod registration;
mod repository;
mod salvage;
mod separate;
mod setting;
mod stale_lock;
mod tips;
mod tracked;
mod worktree;

#[cfg(test)]
mod fixture;

pub use arrivals::{Arrival, Carrier};
pub use board_branch::BOARD_BRANCH;
pub use branch::is_branch_name;
pub use cell::LeftCell;
pub use changes::Changes;
pub use commit_id::{BadCommitId, CommitId};
pub use error::{GitError, GitErrorKind, UNSHALLOW, not_removed};
pub use glob::matches;
pub use history::{CommitSummary, PatchText};
pub use inner::Bundle;
pub use links::SubmoduleLink;
pub use merge::{Follow, Merge, MergeConflict};
pub use outside::{Outside, OutsideChange};
pub use own::{CellLeft, KeptRef};
pub use repository::{Head, Repository};
pub use salvage::Salvage;
pub use tips::{LastWord, reflog_action};
pub use worktree::Furnished;
