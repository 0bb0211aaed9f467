//! The run that somebody names.

use crate::cli::CliError;
use crate::run::record::Metadata;

/// A run by its name, or the last one of an item.
pub(super) fn find<'a>(all: &'a [Metadata], name: &str) -> Result<&'a Metadata, CliError> {
    let by_name = all.iter().find(|run| run.run == name);
    by_name
        .or_else(|| all.iter().rfind(|run| run.task.as_str() == name))
        .ok_or_else(|| CliError::usage(format!("no run `{name}`"), "list them: tavern runs list"))
}
