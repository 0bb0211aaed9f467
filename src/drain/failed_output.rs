//! The last lines of a failed run's output, so that a log has them even if its machine is gone.

use tavern_run::Workspace;
use tavern_run::agent::AgentRecord;
use tavern_run::artifacts::Artifacts;
use tavern_run::prompt::tail;
use tavern_run::record::runs_of;
use tavern_run::runner::Outcome;

/// Lines and bytes that are shown.
const LINES: usize = 20;
const BYTES: usize = 4 << 10;

/// Returns the end of the failed output for an agent's event, each line marked; `None` if it did not fail.
pub(super) fn under(workspace: &Workspace, told: &AgentRecord) -> Option<String> {
    let run = match told {
        AgentRecord::Ended { outcome, run, .. } if fails(*outcome) => run.clone(),
        AgentRecord::SentBack { task, .. } => runs_of(&workspace.board, task).ok()?.pop()?.run,
        _ => return None,
    };
    let lines: Vec<String> = end_of(workspace, &run)
        .lines()
        .map(|line| format!("  | {line}"))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns true if a run with this outcome has printed an error.
pub(super) fn fails(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Success | Outcome::Waiting | Outcome::Killed | Outcome::Capped
    )
}

/// Returns the end of the output of a run's last check, else of the agent's last message.
pub(super) fn end_of(workspace: &Workspace, run: &str) -> String {
    let artifacts = Artifacts::open(&workspace.board, run);
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

/// Shortens a line that says where a command ran: hashes are only for programs.
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
