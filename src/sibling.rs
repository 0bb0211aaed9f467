//! How this program starts another of Tavern's.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// How to start the program that `tavern VERB` means, as a process of its own: `tavern-VERB` beside this one, else the
/// `tavern` that this is or that is beside it, with the verb as its first argument.
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
