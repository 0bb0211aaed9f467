//! `tavern-runs rebuild`: restore missing or torn files of runs, as far as possible.

use serde::Serialize;

use crate::{CliError, Context, Exit};
use tavern_run::rebuild::{self as run, Rebuilt};
use tavern_run::record::Metadata;
use tavern_store::Board;

/// Of which run.
#[derive(clap::Args)]
pub struct Rebuild {
    /// A run, or an item for its last run [default: all runs]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

#[derive(Serialize)]
struct Record<'a> {
    run: &'a str,
    #[serde(flatten)]
    rebuilt: &'a Rebuilt,
}

/// Restores damaged files; whole ones stay. Exits with 1 if data is lost.
pub(super) fn rebuild(
    context: &Context,
    board: Board,
    runs: &[Metadata],
) -> Result<Exit, CliError> {
    let workspace = context.quick_site(board)?;
    let (mut has_made, mut has_lost) = (false, false);
    for Metadata { run, .. } in runs {
        let rebuilt = run::rebuild(&workspace, run)?;
        let words = words(&rebuilt);
        if !words.is_empty() {
            let record = Record {
                run,
                rebuilt: &rebuilt,
            };
            context.out.record(&record, format!("{run}: {words}"))?;
        }
        has_made |= !rebuilt.made.is_empty();
        has_lost |= !rebuilt.lost.is_empty();
    }
    if !has_made && !has_lost {
        context.out.note("nothing to rebuild");
    }
    Ok(if has_lost { Exit::Failed } else { Exit::Done })
}

fn words(rebuilt: &Rebuilt) -> String {
    let parts = [
        ("rebuilt", &rebuilt.made),
        ("can't be rebuilt", &rebuilt.lost),
    ];
    let parts = parts.iter().filter(|(_, files)| !files.is_empty());
    let mut words: Vec<String> = parts
        .map(|(result, files)| {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            format!("{result}: {}", files.join(", "))
        })
        .collect();
    words.extend(rebuilt.runs.then(|| "still runs".to_owned()));
    words.join("; ")
}
