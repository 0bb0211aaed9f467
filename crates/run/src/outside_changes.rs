//! Changes in the repository outside of an agent's worktree during its run. Without a sandbox they can't be prevented,
//! so they are reported.

use super::artifacts::Artifacts;
use super::error::Error;
use super::record::{Record, close_run, run_of};
use super::workspace::{ITEM_BRANCHES, Workspace};
use tavern_core::event::Kind;
use tavern_core::rule::{Act, BoardRules, Breach, Consequence, of_act};
use tavern_git::{CommitId, Outside, OutsideChange};
use tavern_store::Entry;
use tavern_store::config::Role;
use tavern_sys::clock;

/// The state when a run began, in its folder: after a kill, the process that ends the run compares with it.
const FILE: &str = "outside.json";

/// Records all that an agent of `role` could change outside, at the start of its run. `None` in a sandbox, which the
/// agent can't leave, and without a repository.
pub(super) fn look(workspace: &Workspace, role: &Role, artifacts: &Artifacts) -> Option<Outside> {
    let outside = if role.sandbox {
        None
    } else {
        outside(workspace).ok()
    }?;
    // Only needed if this program dies.
    drop(artifacts.write(
        FILE,
        &serde_json::to_string(&outside).expect("it is plain data"),
    ));
    Some(outside)
}

/// Ends a run after its supervisor died. Reports its agent's outside changes, and records them with the run. Changes of
/// refs are not known any more.
pub(super) fn end_of_dead(workspace: &Workspace, run: &str) -> Result<(), Error> {
    let artifacts = Artifacts::open(&workspace.board, run);
    if let Ok(before) = serde_json::from_str::<Outside>(&artifacts.read(FILE))
        && let Some(metadata) =
            run_of(&workspace.board, run).filter(|metadata| metadata.ended.is_none())
    {
        let changes = workspace
            .repository()?
            .changed_since(&before, &outside(workspace)?, None)?;
        for change in &changes {
            let (task, agent) = (Some(metadata.task.clone()), Some(metadata.agent.clone()));
            let (run, cause) = (Some(run.to_owned()), Some(change.to_string()));
            workspace.board.note(Entry {
                task,
                agent,
                run,
                cause,
                ..Entry::new(Kind::Strayed, clock::now())
            })?;
        }
        if let Some(mut record) = Record::open(workspace, run) {
            record.strayed(broken(&workspace.config.rules, &changes))?;
        }
    }
    Ok(close_run(workspace, run)?)
}

/// Returns the state outside, without the branches that Tavern itself moves.
fn outside(workspace: &Workspace) -> Result<Outside, Error> {
    Ok(workspace
        .repository()?
        .outside(&format!("refs/heads/{ITEM_BRANCHES}"))?)
}

/// Returns the changes since; `work` is the agent's branch and the commit where that began.
pub(super) fn changes(
    workspace: &Workspace,
    before: &Outside,
    work: Option<(&str, &CommitId)>,
) -> Result<Vec<OutsideChange>, Error> {
    let repository = workspace.repository()?;
    let now = outside(workspace)?;
    let tip = work.map_or(Ok(None), |(branch, _)| repository.branch_tip(branch))?;
    let work = work.zip(tip.as_ref()).map(|((_, base), tip)| (base, tip));
    let integration = workspace.integration();
    let mut changes = repository.changed_since(before, &now, work)?;
    // The integration branch is checked before each merge.
    changes.retain(|change| !matches!(change, OutsideChange::Published { reference, .. } if reference == integration));
    Ok(changes)
}

/// Returns the rules that these changes break. Another process may have made a change found by comparison, so no run
/// fails for it: a person is asked.
pub(super) fn broken(rules: &BoardRules, changes: &[OutsideChange]) -> Vec<Breach> {
    let of = |change: &OutsideChange| {
        let act = match change {
            OutsideChange::Published { .. } => Act::Push,
            OutsideChange::File { name } if name.starts_with("hooks/") => Act::Hooks,
            OutsideChange::Set { .. }
            | OutsideChange::Unset { .. }
            | OutsideChange::File { .. } => Act::Settings,
        };
        of_act(rules, act, &change.to_string())
    };
    let at_most = |breach: Breach| Breach {
        consequence: breach.consequence.min(Consequence::Pause),
        ..breach
    };
    changes.iter().flat_map(of).map(at_most).collect()
}
