//! `tavern-runs grep`: search the files of runs for a text.

use regex::{Regex, RegexBuilder};
use serde::Serialize;

use super::files as files_of;
use super::list::is_known;
use crate::{CliError, Context, Exit, ItemName};
use tavern_run::record::Metadata;
use tavern_store::Board;
use tavern_sys::files;

/// Maximum number of characters shown of a line.
const LONGEST: usize = 300;

/// The pattern, and the places to search.
#[derive(clap::Args)]
pub struct Grep {
    /// A regular expression, such as `error|panic`
    #[arg(value_name = "REGEX")]
    pub pattern: String,
    /// Match the text literally
    #[arg(long, short = 'F')]
    pub fixed: bool,
    /// Ignore case
    #[arg(long, short)]
    pub ignore_case: bool,
    /// Only in the runs of this item
    #[arg(long, value_name = "ID")]
    pub task: Option<ItemName>,
}

#[derive(Serialize)]
struct Hit<'a> {
    run: &'a str,
    file: String,
    line: usize,
    text: &'a str,
}

impl Grep {
    pub(super) fn run(
        &self,
        context: &Context,
        board: &Board,
        all: &[Metadata],
    ) -> Result<Exit, CliError> {
        let task = self
            .task
            .as_ref()
            .map(|name| context.id_of(board, name))
            .transpose()?;
        let pattern = self.regex()?;
        let mut hits = 0;
        for run in all
            .iter()
            .filter(|run| task.as_ref().is_none_or(|task| run.task == *task))
        {
            for file in files_of(board, run) {
                let bytes = files::read(board.run_dir(&run.run).join(&file)).unwrap_or_default();
                let content = String::from_utf8_lossy(&bytes);
                for (number, line) in content.lines().enumerate() {
                    let Some(found) = pattern.find(line) else {
                        continue;
                    };
                    hits += 1;
                    let shown = around(line, found.start());
                    let hit = Hit {
                        run: &run.run,
                        file: file.clone(),
                        line: number + 1,
                        text: &shown,
                    };
                    context
                        .out
                        .record(&hit, format!("{}/{file}:{}: {shown}", run.run, number + 1))?;
                }
            }
        }
        if hits > 0 {
            return Ok(Exit::Done);
        }
        if let Some(task) = &task {
            is_known(board, all, task)?;
        }
        let of = task.map_or_else(String::new, |task| format!(" of {task}"));
        context.out.note(format!(
            "no run{of} has the text `{}`; list them all: tavern runs",
            self.pattern
        ));
        Ok(Exit::NothingToDo)
    }

    fn regex(&self) -> Result<Regex, CliError> {
        let pattern = if self.fixed {
            regex::escape(&self.pattern)
        } else {
            self.pattern.clone()
        };
        RegexBuilder::new(&pattern)
            .case_insensitive(self.ignore_case)
            .build()
            .map_err(|error| {
                let message = match &error {
                    // The error shows the place on lines of its own; the last line has the reason.
                    regex::Error::Syntax(text) => text
                        .lines()
                        .last()
                        .unwrap_or_default()
                        .replacen("error: ", "", 1),
                    error => error.to_string(),
                };
                let hint = "to search for it literally: tavern runs grep --fixed …";
                CliError::usage(
                    format!("`{}` is not a regular expression: {message}", self.pattern),
                    hint,
                )
            })
    }
}

/// Returns the part of a line around the beginning of the match: lines of an agent's stream may have megabytes.
fn around(line: &str, found: usize) -> String {
    let before = line[..found].chars().count();
    let skipped = if before < LONGEST {
        0
    } else {
        before - LONGEST / 3
    };
    let mark = if skipped > 0 { "…" } else { "" };
    mark.chars()
        .chain(line.chars().skip(skipped))
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_where_something_was_found() {
        let line = format!("{}needle{}", "ä".repeat(5000), "b".repeat(5000));
        let shown = around(&line, line.find("needle").expect("it is there"));
        assert_eq!(shown.chars().count(), LONGEST);
        assert!(
            shown.starts_with('…') && shown.contains("needle"),
            "{shown}"
        );
        assert_eq!(around("a needle", 2), "a needle");
    }
}
