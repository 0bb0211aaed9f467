//! The last lines of what failed: who reads a log afterwards, perhaps of a machine that is gone, finds them there.

use crate::agent::Told;
use crate::prompt::tail;
use crate::run::Site;
use crate::run::artifacts::Artifacts;
use crate::run::record::runs_of;
use crate::runner::Outcome;

/// So many lines are shown, and bytes.
const LINES: usize = 20;
const BYTES: usize = 4 << 10;

/// Beneath what an agent has told: the end of what failed, each line marked. `None` where nothing did.
pub(super) fn under(site: &Site, told: &Told) -> Option<String> {
    let run = match told {
        Told::Ended { outcome, run, .. } if fails(*outcome) => run.clone(),
        Told::SentBack { task, .. } => runs_of(&site.board, task).ok()?.pop()?.run,
        _ => return None,
    };
    let lines: Vec<String> = end_of(site, &run).lines().map(|line| format!("  | {line}")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A run that came to this has printed why.
pub(super) fn fails(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Success | Outcome::Waiting | Outcome::Killed | Outcome::Capped)
}

/// The end of what the last check of a run's work printed, else of the agent's last words.
pub(super) fn end_of(site: &Site, run: &str) -> String {
    let artifacts = Artifacts::open(&site.board, run);
    let printed = Some(artifacts.checked()).filter(|printed| !printed.is_empty());
    let printed = printed.unwrap_or_else(|| artifacts.read("result.txt"));
    let printed = printed.trim_end();
    let start = printed.rmatch_indices('\n').nth(LINES - 1).map_or(0, |(end, _)| end + 1);
    tail(&printed[start..], BYTES)
}
