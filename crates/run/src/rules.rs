//! Checks the changes of a run against the rules of config.yaml.

use std::path::Path;

use super::error::Error;
use super::record::{Metadata, runs_of};
use super::result::{AgentAnswer, RunResult};
use super::workspace::Workspace;
use crate::runner::permission::is_yes;
use tavern_core::event::Kind;
use tavern_core::rule::{Breach, Consequence, in_words, names, of_lines, of_paths, question};
use tavern_git::CommitId;
use tavern_store::walk_log;

/// Returns true if a rule needs git's list of a run's changes.
pub(super) fn are_for_files(workspace: &Workspace) -> bool {
    workspace
        .config
        .rules
        .values()
        .any(|rule| !rule.paths.is_empty() || rule.lines.is_some())
}

/// Returns the rules that the current work of `run` breaks.
///
/// # Errors
/// Its worktree can't be read.
pub(super) fn broken(workspace: &Workspace, run: &Metadata) -> Result<Vec<Breach>, Error> {
    let rules = &workspace.config.rules;
    let base = run
        .base
        .as_ref()
        .and_then(|base| base.parse::<CommitId>().ok());
    let Some(base) = base.filter(|_| are_for_files(workspace)) else {
        return Ok(Vec::new());
    };
    let (repository, folder) = (workspace.repository()?, &run.worktree);
    let tip = workspace.tip_of(folder)?;
    // Work merged meanwhile is not the run's own, even if it has been merged into its branch.
    let merged = workspace
        .integration_tip()?
        .map_or(Ok(None), |merged| repository.fork(&merged, &tip))?;
    let base = match merged {
        Some(merged) if repository.is_ancestor(&base, &merged)? => merged,
        _ => repository.fork(&base, &tip)?.unwrap_or(base),
    };
    let mut paths = repository.extent(&base, &tip)?;
    let changes = repository.changes(folder)?;
    let counts_lines = rules.values().any(|rule| rule.lines.is_some());
    let lines = if counts_lines {
        repository.lines_since(folder, &base, &changes.untracked)?
    } else {
        0
    };
    paths.extend(
        changes
            .staged
            .into_iter()
            .chain(changes.modified)
            .chain(changes.untracked),
    );
    paths.sort();
    paths.dedup();
    let paths: Vec<String> = paths
        .iter()
        .map(|path| Path::to_string_lossy(path).into_owned())
        .collect();
    let mut breaches = [of_paths(rules, &paths), of_lines(rules, lines)].concat();
    breaches.retain(|breach| {
        breach.consequence != Consequence::Pause || !is_allowed(workspace, run, breach)
    });
    Ok(breaches)
}

/// Returns true if a person was asked about the breach and agreed.
fn is_allowed(workspace: &Workspace, run: &Metadata, breach: &Breach) -> bool {
    answer_to(workspace, run, breach).is_some_and(|answer| is_yes(&answer))
}

/// Returns a person's answer when they were last asked about the breach; `None` if they only resumed the item.
fn answer_to(workspace: &Workspace, run: &Metadata, breach: &Breach) -> Option<String> {
    let (mut answer, mut was_asked) = (None, false);
    let walked = walk_log(&workspace.board, Some(&run.task), &mut |entry| {
        let cause = entry.cause.unwrap_or_default();
        match entry.kind {
            Kind::Resumed | Kind::Claimed if !cause.is_empty() => answer = Some(cause),
            Kind::Asked if names(&cause, breach) => was_asked = true,
            Kind::Asked => answer = None,
            _ => {}
        }
        !was_asked
    });
    walked
        .ok()
        .filter(|()| was_asked)
        .map(|()| answer.unwrap_or_default())
}

/// Returns acts of earlier runs of the item that are no part of its work and that no person was asked about: these runs
/// ended in another way.
pub(super) fn earlier_acts(workspace: &Workspace, run: &Metadata) -> Result<Vec<Breach>, Error> {
    let earlier = runs_of(&workspace.board, &run.task)?
        .into_iter()
        .filter(|other| other.token < run.token);
    let acts = earlier
        .flat_map(|other| other.acts)
        .filter(|breach| breach.consequence == Consequence::Pause);
    Ok(acts
        .filter(|breach| answer_to(workspace, run, breach).is_none())
        .collect())
}

/// Returns true if the previous run's work was done and a person has agreed to all its breaches: nothing is left to do.
pub(super) fn are_allowed(workspace: &Workspace, run: &Metadata) -> bool {
    let earlier = runs_of(&workspace.board, &run.task).unwrap_or_default();
    let Some(last) = earlier.iter().rfind(|other| other.token < run.token) else {
        return false;
    };
    !last.breaches.is_empty()
        && last
            .breaches
            .iter()
            .all(|breach| is_allowed(workspace, run, breach))
}

/// Returns the answer for finished work that breaks rules; unchanged if the breaches are only to be logged.
pub(super) fn judged(answer: AgentAnswer, breaches: &[Breach]) -> AgentAnswer {
    let worst = breaches.iter().map(|breach| breach.consequence).max();
    let words = |consequence| {
        let such: Vec<&Breach> = breaches
            .iter()
            .filter(|breach| breach.consequence == consequence)
            .collect();
        in_words(&such)
    };
    match (&answer, worst) {
        (AgentAnswer::Done { .. }, Some(Consequence::Pause)) => {
            RunResult::Asks(question(&words(Consequence::Pause))).into()
        }
        (AgentAnswer::Done { .. }, Some(Consequence::Reap)) => {
            RunResult::failed(words(Consequence::Reap)).into()
        }
        _ => answer,
    }
}
