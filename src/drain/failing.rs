//! The last lines of what failed: who reads a log afterwards, perhaps of a machine that is gone, finds them there.

use tavern_run::Site;
use tavern_run::agent::Told;
use tavern_run::artifacts::Artifacts;
use tavern_run::prompt::tail;
use tavern_run::record::runs_of;
use tavern_run::runner::Outcome;

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
    let lines: Vec<String> = end_of(site, &run)
        .lines()
        .map(|line| format!("  | {line}"))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A run that came to this has printed why.
pub(super) fn fails(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Success | Outcome::Waiting | Outcome::Killed | Outcome::Capped
    )
}

/// The end of what the last check of a run's work printed, else of the agent's last words.
pub(super) fn end_of(site: &Site, run: &str) -> String {
    let artifacts = Artifacts::open(&site.board, run);
    let printed = Some(artifacts.checked()).filter(|printed| !printed.is_empty());
    let printed = printed.unwrap_or_else(|| artifacts.read("result.txt"));
    let printed = printed.trim_end();
    let start = printed
        .rmatch_indices('\n')
        .nth(LINES - 1)
        .map_or(0, |(end, _)| end + 1);
    let lines: Vec<String> = printed[start..].lines().map(in_short).collect();
    tail(&lines.join("\n"), BYTES)
}

/// A line that says where a command was run, without what only programs compare.
fn in_short(line: &str) -> String {
    let is_hex = |text: &str, digits| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let place = line
        .rsplit_once(", output ")
        .filter(|(_, digest)| is_hex(digest, 32))
        .map(|(place, _)| place);
    match place.and_then(|place| place.rsplit_once(" at ")) {
        Some((end, commit)) if is_hex(commit, 40) => format!("{end} at {}", &commit[..7]),
        _ => place.unwrap_or(line).to_owned(),
    }
}
