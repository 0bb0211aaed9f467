//! The processes of a run: found by a mark in their environment, and ended with all their children.

use std::path::Path;

use super::error::Error;
use super::record::run_of;
use super::workspace::Workspace;
use tavern_sys::process::{self, Mark};

/// The name that marks processes of merge verification, in place of a run's name.
pub const INTEGRATION: &str = "integration";

/// Returns the mark in the environment of a run's processes: its folder, which is unique on this host.
pub fn mark_of(workspace: &Workspace, run: &str) -> Mark {
    Mark::run(workspace.board.run_dir(run).to_string_lossy())
}

/// Returns true if a process with this mark is alive.
pub fn is_marked(mark: &Mark) -> bool {
    !process::table::marked(mark).is_empty()
}

/// Returns the runs of the board that have live processes.
pub fn marked_runs(workspace: &Workspace) -> Vec<String> {
    let folder = workspace.board.path("runs");
    let marks = process::table::marks().into_iter();
    marks
        .filter_map(|mark| {
            Some(
                Path::new(&mark)
                    .strip_prefix(&folder)
                    .ok()?
                    .to_str()?
                    .to_owned(),
            )
        })
        .collect()
}

/// Returns the mark of a run that began before the repository was moved. `None` if its old folder still exists: the
/// repository was copied then.
fn mark_before_move(workspace: &Workspace, run: &str) -> Option<Mark> {
    let worktree = run_of(&workspace.board, run)?.worktree;
    let folder = worktree.ancestors().nth(2)?.join("runs").join(run);
    (!folder.exists()).then(|| Mark::run(folder.to_string_lossy()))
}

/// Ends the processes marked with `run`, politely first.
pub fn end_processes(workspace: &Workspace, run: &str) -> Result<(), Error> {
    let marks = [
        Some(mark_of(workspace, run)),
        mark_before_move(workspace, run),
    ]
    .into_iter()
    .flatten();
    let survivors: Vec<_> = marks
        .flat_map(|mark| process::end_marked(&mark, workspace.config.grace.duration()))
        .collect();
    if survivors.is_empty() {
        return Ok(());
    }
    let path = workspace.board.run_dir(run);
    let source = std::io::Error::other(format!("processes {survivors:?} do not end"));
    Err(Error::Io {
        action: "end the run in",
        path,
        source,
    })
}
