//! `tavern-runs diff`: the differences between two attempts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::format::Painted;
use crate::unified::{Names, painted, unified};
use crate::{CliError, Context, Exit, format};
use tavern_run::runner::{PROMPT, RULES};
use tavern_run::{Metadata, artifacts::Artifacts};
use tavern_store::Board;
use tavern_sys::clock;

/// The runs to compare, and the kind of comparison.
#[derive(clap::Args)]
pub struct Diff {
    /// Two runs (or items, for their last ones); an item alone, for its last two runs; or an item and the numbers of two
    /// attempts
    #[arg(value_name = "RUN", required = true, num_args = 1..=3)]
    pub runs: Vec<String>,

    /// Compare only the prompts
    #[arg(long)]
    pub prompt: bool,

    /// Compare only the changes, file by file
    #[arg(long)]
    pub patch: bool,
}

#[derive(Serialize)]
struct Record<'a> {
    part: &'a str,
    /// The file, for a patch.
    file: Option<&'a str>,
    old: &'a str,
    new: &'a str,
    same: bool,
    /// Unified diff.
    diff: String,
}

impl Diff {
    pub(super) fn run(
        &self,
        context: &Context,
        board: &Board,
        all: &[Metadata],
    ) -> Result<Exit, CliError> {
        let (old, new) = self.pair(all)?;
        let read = |run: &Metadata, name: &str| Artifacts::open(board, &run.run).read(name);
        let compare = |part: &str, artifact: &str, file: Option<&str>, was: &str, is: &str| {
            let suffix = file.map_or_else(String::new, |file| format!(":{file}"));
            let name = |run: &Metadata| format!("{}/{artifact}{suffix}", run.run);
            let diff = unified(
                Names {
                    old: &name(old),
                    new: &name(new),
                },
                was,
                is,
            );
            let text = match diff.as_str() {
                "" => Painted::from(format!("{}: the same", file.unwrap_or(artifact))),
                diff => painted(diff).trimmed(),
            };
            context.out.record(
                &Record {
                    part,
                    file,
                    old: &old.run,
                    new: &new.run,
                    same: diff.is_empty(),
                    diff,
                },
                text,
            )
        };
        let is_all = self.prompt == self.patch;
        if is_all {
            compare("outcome", "outcome", None, &outcome(old), &outcome(new))?;
        }
        if is_all || self.prompt {
            compare(
                "prompt",
                PROMPT,
                None,
                &read(old, PROMPT),
                &read(new, PROMPT),
            )?;
            let (was, is) = (read(old, RULES), read(new, RULES));
            if !(was.is_empty() && is.is_empty()) {
                compare("rules", RULES, None, &was, &is)?;
            }
        }
        if is_all || self.patch {
            let (was, is) = (read(old, "diff.patch"), read(new, "diff.patch"));
            let (was, is) = (by_file(&was), by_file(&is));
            let names: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
            for name in &names {
                let part =
                    |files: &BTreeMap<&str, String>| files.get(name).cloned().unwrap_or_default();
                compare("patch", "diff.patch", Some(name), &part(&was), &part(&is))?;
            }
            if names.is_empty() {
                context.out.text("diff.patch: neither changed anything")?;
            }
        }
        Ok(Exit::Done)
    }

    fn pair<'a>(&self, all: &'a [Metadata]) -> Result<(&'a Metadata, &'a Metadata), CliError> {
        let of = |task: &str| {
            all.iter()
                .filter(|run| run.task.as_str() == task)
                .collect::<Vec<_>>()
        };
        match self.runs.as_slice() {
            [task] => match of(task).as_slice() {
                [.., old, new] => Ok((old, new)),
                few => {
                    // An unknown name is reported first.
                    let known = find(all, task)?;
                    let message = format!(
                        "`{}` has {} to compare",
                        known.task,
                        format::count(few.len().max(1), "run")
                    );
                    Err(CliError::usage(
                        message,
                        "name two runs: tavern runs list shows them",
                    ))
                }
            },
            [task, old, new] => {
                let runs = of(task);
                // A returned attempt may have several runs; the last one counts.
                let attempt = |number: &str| {
                    let wanted = number.parse::<u32>().ok();
                    runs.iter()
                        .rfind(|run| wanted == Some(run.attempt))
                        .copied()
                        .ok_or_else(|| {
                            let hint = format!("list its runs: tavern runs list {task}");
                            CliError::usage(format!("`{task}` has no attempt `{number}`"), hint)
                        })
                };
                Ok((attempt(old)?, attempt(new)?))
            }
            named => Ok((find(all, &named[0])?, find(all, &named[1])?)),
        }
    }
}

/// Returns the run of this name, or the last one of this item.
pub(super) fn find<'a>(all: &'a [Metadata], name: &str) -> Result<&'a Metadata, CliError> {
    let by_name = all.iter().find(|run| run.run == name);
    by_name
        .or_else(|| all.iter().rfind(|run| run.task.as_str() == name))
        .ok_or_else(|| CliError::usage(format!("no run `{name}`"), "list them: tavern runs list"))
}

/// Returns the settings and results of a run, one a line.
fn outcome(run: &Metadata) -> String {
    let took = format::took_seconds(run.seconds(clock::now()).unsigned_abs());
    let verified = run
        .verified
        .map_or("no", |passed| if passed { "passed" } else { "failed" });
    let spent = || {
        format!(
            "{}, {} turns, {} tool calls",
            format::money(run.usage.usd),
            run.turns,
            run.tool_calls
        )
    };
    let rows = [
        ("attempt", run.attempt.to_string()),
        ("agent", format!("{} ({})", run.agent, run.role)),
        ("runner", run.runner.clone()),
        ("model", run.model.clone().unwrap_or_default()),
        ("base", run.base.clone().unwrap_or_default()),
        ("outcome", run.state().to_owned()),
        ("reason", run.reason.clone().unwrap_or_default()),
        ("verified", verified.to_owned()),
        ("commit", run.commit.clone().unwrap_or_default()),
        ("took", took),
        (
            "spent",
            if run.usage.is_known() {
                spent()
            } else {
                String::new()
            },
        ),
    ];
    let shown = rows.iter().filter(|(_, value)| !value.is_empty());
    shown
        .map(|(name, value)| format!("{name:<8} {}\n", format::words(value)))
        .collect()
}

/// Splits a patch by file. Digests and line numbers are left out, which differ between patches of the same change.
fn by_file(patch: &str) -> BTreeMap<&str, String> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    let mut name = "";
    for line in patch.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            // `a/NAME b/NAME`; of a rename the new name.
            name = names.rsplit_once(" b/").map_or(names, |(_, name)| name);
            files.insert(name, String::new());
            continue;
        }
        let is_heading = ["index ", "--- ", "+++ "]
            .iter()
            .any(|start| line.starts_with(start));
        let text = files.entry(name).or_default();
        // Headings stand only before the first hunk; a removed line may look like one.
        if is_heading && !text.contains("@@\n") {
            continue;
        }
        text.push_str(if line.starts_with("@@ ") { "@@" } else { line });
        text.push('\n');
    }
    files
}
