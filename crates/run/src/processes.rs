//! The processes of a run: found by the mark in their environment, and ended with all that they started.

use std::path::Path;

use super::error::Error;
use super::record::run_of;
use super::site::Site;
use tavern_sys::process::{self, Mark};

/// The name under which the processes that verify merges are marked, as those of runs are under their run's.
pub const INTEGRATION: &str = "integration";

/// The mark in the environment of a run's processes: its folder, which is unique on this host.
pub fn mark_of(site: &Site, run: &str) -> Mark {
    Mark::run(site.board.run_dir(run).to_string_lossy())
}

/// Returns whether a process with this mark lives.
pub fn is_marked(mark: &Mark) -> bool {
    !process::table::marked(mark).is_empty()
}

/// The runs of the board of which processes live.
pub fn marked_runs(site: &Site) -> Vec<String> {
    let folder = site.board.path("runs");
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

/// The mark of a run that began before the repository was moved: its folder was elsewhere, and is there no longer (it is, where the
/// repository was copied).
fn mark_before_move(site: &Site, run: &str) -> Option<Mark> {
    let worktree = run_of(&site.board, run)?.worktree;
    let folder = worktree.ancestors().nth(2)?.join("runs").join(run);
    (!folder.exists()).then(|| Mark::run(folder.to_string_lossy()))
}

/// Ends what lives of the processes that are marked with `run`, politely at first.
pub fn end_processes(site: &Site, run: &str) -> Result<(), Error> {
    let marks = [Some(mark_of(site, run)), mark_before_move(site, run)]
        .into_iter()
        .flatten();
    let survivors: Vec<_> = marks
        .flat_map(|mark| process::end_marked(&mark, site.config.grace.duration()))
        .collect();
    if survivors.is_empty() {
        return Ok(());
    }
    let path = site.board.run_dir(run);
    let source = std::io::Error::other(format!("processes {survivors:?} do not end"));
    Err(Error::Io {
        action: "end the run in",
        path,
        source,
    })
}
