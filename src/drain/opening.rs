//! The first message of a drain: the commit that agents begin from, uncommitted files that they don't see,
//! and their cost limits.

use tavern_core::cap::Cap;
use tavern_core::problem::listed;
use tavern_run::{Trust, Workspace, runner_named};
use tavern_store::Queue;
use tavern_store::config::Role;

use super::super::format;

/// Returns it in one line; `None` if the items need no repository. `runners` are those of the items.
pub(super) fn setting_out<'r>(
    workspace: &Workspace,
    queues: &[Queue],
    runners: impl IntoIterator<Item = &'r String>,
) -> Option<String> {
    let (base, commit) = workspace.base().ok()?;
    let base = base.as_deref().unwrap_or("HEAD");
    let mut parts = vec![format!("from `{base}` at {}", commit.short())];
    parts.extend(unseen(workspace, queues));
    let mut runners = runners
        .into_iter()
        .filter(|name| !workspace.config.runs_scripts(name))
        .peekable();
    if runners.peek().is_some() {
        parts.push(cost(workspace));
    }
    parts.extend(runners.filter_map(|name| not_obeyed(workspace, name)));
    Some(parts.join("; "))
}

/// Describes the untrusted settings in the repository that this runner's program is kept from.
fn not_obeyed(workspace: &Workspace, runner: &str) -> Option<String> {
    let program = runner_named(&workspace.config, runner, &Role::default()).ok()?;
    let trust = Trust::of(workspace).program(workspace.board.root(), program.obeyed_files());
    let files = listed(&trust.err()?.what);
    Some(format!(
        "{runner} does not obey {files}, which is not trusted: tavern trust"
    ))
}

/// Describes uncommitted files of the checkout, except the board's.
fn unseen(workspace: &Workspace, queues: &[Queue]) -> Option<String> {
    let repository = workspace.repository().ok()?;
    let own: Vec<String> = queues
        .iter()
        .flat_map(|queue| workspace.protected(queue))
        .collect();
    let mut paths = repository.own_changes().ok()?;
    paths.retain(|path| {
        !own.iter()
            .any(|own| path.starts_with(own.trim_end_matches('/')))
    });
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let files = format::count(names.len(), "uncommitted file");
    (!names.is_empty()).then(|| format!("{files} that agents don't see: {}", listed(&names)))
}

fn cost(workspace: &Workspace) -> String {
    let caps = &workspace.config.budget;
    let own = caps.own.as_ref().map(|own| own.cap.clone());
    let all = [
        ("", own),
        (" a day", Some(caps.day.clone())),
        (" for the board", Some(caps.board.clone())),
        (" a queue", Some(caps.queue.clone())),
        (" an item", Some(caps.item.clone())),
    ];
    let usd = |(of, cap): (&str, Option<Cap>)| {
        let most = cap.and_then(|cap| cap.usd)?;
        let most = (most * 1e4).round() / 1e4;
        Some(format!("at most ${most}{of}"))
    };
    let most: Vec<String> = all.into_iter().filter_map(usd).collect();
    if most.is_empty() {
        "no limit of cost: --max-usd N sets one".to_owned()
    } else {
        most.join(", ")
    }
}
