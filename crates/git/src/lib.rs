//! Git: worktrees, branches, in-memory merges and rescued work.
//!
//! Knows nothing of tasks, queues or boards. libgit2 does references, commits, diffs and in-memory merges. The `git`
//! program does everything that needs the user's filters, sparse rules or index (see `program.rs`).
//!
//! Invariants of every function here: the user's own checkout is never written to, neither its files nor its index
//! nor its `HEAD`, in any state. Only linked worktrees that are registered in this repository are changed or
//! removed. No hook of the user's runs. `specs/git.md` is the contract in words.

mod ancestry_cache;
mod baseline;
mod board_branch;
mod branch;
mod branch_tips;
mod changes;
mod commit;
mod commit_id;
mod config_files;
mod error;
mod filter;
mod gc_guard;
mod glob;
mod history;
mod identity;
mod lock;
mod merge;
mod nested_repos;
mod program;
mod provenance;
mod reflog_history;
mod registration;
mod repository;
mod run_git_dir;
mod salvage;
mod sandbox_git_dir;
mod setting;
mod special_files;
mod stale_lock;
mod submodule_links;
mod successive_changes;
mod tamper_check;
mod tracked;
mod worktree;

#[cfg(test)]
mod fixture;

pub use board_branch::BOARD_BRANCH;
pub use branch::is_branch_name;
pub use branch_tips::{LastWord, reflog_action};
pub use changes::Changes;
pub use commit_id::{BadCommitId, CommitId};
pub use error::{GitError, GitErrorKind, UNSHALLOW, not_removed};
pub use glob::matches;
pub use history::{CommitSummary, PatchText};
pub use merge::{Follow, Merge, MergeConflict};
pub use nested_repos::Bundle;
pub use reflog_history::{Arrival, Carrier};
pub use repository::{Head, Repository};
pub use run_git_dir::{CellLeft, KeptRef};
pub use salvage::Salvage;
pub use sandbox_git_dir::LeftCell;
pub use submodule_links::SubmoduleLink;
pub use tamper_check::{Outside, OutsideChange};
pub use worktree::Furnished;
