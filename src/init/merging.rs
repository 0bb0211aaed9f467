//! Two git settings of the repository for merging queues item by item, besides a line of `.tavern/.gitattributes`.

use crate::run_program::sibling;
use crate::{CliError, Exit};
use tavern_git::Repository;
use tavern_sys::process::quoted;

/// The title that git shows for the driver.
const TITLE: (&str, &str) = ("merge.tavern.name", "Tavern: queues, item by item");

/// The setting that names the program.
pub(crate) const DRIVER: &str = "merge.tavern.driver";

/// Arguments after the program's path. If the program is missing or fails, git merges lines itself.
const ARGUMENTS: &str =
    " %O %A %B %L %P || git merge-file -q -L ours -L base -L theirs --marker-size=%L %A %O %B";

/// Returns the settings that are missing, or that name a program of Tavern in an old place, with their values. A user's
/// own setting stays.
pub(super) fn missing_settings(
    repository: &Repository,
) -> Result<Vec<(&'static str, String)>, CliError> {
    let driver = driver()?;
    let is_current = match repository.setting(DRIVER)? {
        None => false,
        Some(found) => found == driver || !found.ends_with(ARGUMENTS),
    };
    let mut missing = Vec::new();
    if repository.setting(TITLE.0)?.is_none() {
        missing.push((TITLE.0, TITLE.1.to_owned()));
    }
    if !is_current {
        missing.push((DRIVER, driver));
    }
    Ok(missing)
}

/// Returns the command that git hands to a shell. It has the program's path, since git may run with another PATH.
fn driver() -> Result<String, CliError> {
    let (program, verb) = sibling("merge-driver").map_err(|error| {
        CliError::from_error(Exit::Failed, &error)
            .with_hint("leave it out: --no-merge-driver".to_owned())
    })?;
    let verb = verb
        .map(|verb| format!(" {}", verb.to_string_lossy()))
        .unwrap_or_default();
    // git takes `%` for a placeholder.
    let program = quoted(&program).replace('%', "%%");
    Ok(format!("{program}{verb}{ARGUMENTS}"))
}
