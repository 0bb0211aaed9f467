//! The first message of a drain: the commit that agents begin from, uncommitted files that they don't see,
//! and their cost limits.

use tavern_core::cap::Cap;
use tavern_core::problem::listed;
use tavern_run::Workspace;
use tavern_store::Queue;

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
    if runners
        .into_iter()
        .any(|name| !workspace.config.runs_scripts(name))
    {
        parts.push(cost(workspace));
    }
    Some(parts.join("; "))
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
        Some(format!("at most ${most}{of}"))
    };
    let most: Vec<String> = all.into_iter().filter_map(usd).collect();
    if most.is_empty() {
        "no limit of cost: --max-usd N sets one".to_owned()
    } else {
        most.join(", ")
    }
}
