//! The processes of a run: found by the mark in their environment, and ended with all that they started.

use std::path::Path;

use super::error::Error;
use super::site::Site;
use crate::process::{self, Mark};

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
    marks.filter_map(|mark| Some(Path::new(&mark).strip_prefix(&folder).ok()?.to_str()?.to_owned())).collect()
}

/// Ends what lives of the processes that are marked with `run`, politely at first.
pub fn end_processes(site: &Site, run: &str) -> Result<(), Error> {
    let survivors = process::end_marked(&mark_of(site, run), site.config.grace.duration());
    if survivors.is_empty() {
        return Ok(());
    }
    let path = site.board.run_dir(run);
    let source = std::io::Error::other(format!("processes {survivors:?} do not end"));
    Err(Error::Io { action: "end the run in", path, source })
}
