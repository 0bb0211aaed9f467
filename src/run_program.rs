//! How this program starts another program of Tavern.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tavern_store::Board;
use tavern_sys::process::{ProgramExit, Spec, start};

/// Returns how to start `tavern VERB` as a process: as `tavern-VERB` beside this program, else as `tavern` with the
/// verb as its first argument.
pub(super) fn sibling(verb: &str) -> io::Result<(PathBuf, Option<OsString>)> {
    let own = std::env::current_exe()?;
    let single = own.with_file_name(format!("tavern-{verb}"));
    let is_front = own.file_stem().is_some_and(|name| name == "tavern");
    if !is_front && single.exists() {
        return Ok((single, None));
    }
    Ok((
        if is_front {
            own
        } else {
            own.with_file_name("tavern")
        },
        Some(verb.into()),
    ))
}

/// Runs `tavern VERB` to its end for `board`, in the folder `here`, without input and output.
pub(super) fn run_sibling(verb: &str, here: &Path, board: &Board) -> io::Result<ProgramExit> {
    let (program, verb) = sibling(verb)?;
    let spec = Spec::new(program, here)
        .args(verb)
        .args(["--format", "text", "--dir"])
        .args([board.dir()]);
    Ok(start(spec)?
        .wait(Duration::MAX)
        .unwrap_or(ProgramExit::Lost))
}
