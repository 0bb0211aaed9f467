//! What a run has changed, against the rules of config.yaml.

use std::path::Path;

use super::error::Error;
use super::record::Metadata;
use super::result::{AgentAnswer, RunResult};
use super::site::Site;
use crate::board::event::Kind;
use crate::board::rule::{Breach, Consequence, of_lines, of_paths, question};
use crate::git::CommitId;
use crate::runner::permission::is_yes;
use crate::store::walk_log;

/// Its rules are such that git has to be asked what a run has changed.
pub(super) fn are_for_files(site: &Site) -> bool {
    site.config.rules.values().any(|rule| !rule.paths.is_empty() || rule.lines.is_some())
}

/// The rules that the work of `run` breaks as it is now, whatever its agent says.
///
/// # Errors
/// Its worktree can't be read.
pub(super) fn broken(site: &Site, run: &Metadata) -> Result<Vec<Breach>, Error> {
    let rules = &site.config.rules;
    let base = run.base.as_ref().and_then(|base| base.parse::<CommitId>().ok());
    let Some(base) = base.filter(|_| are_for_files(site)) else { return Ok(Vec::new()) };
    let (repository, folder) = (site.repository()?, &run.worktree);
    let tip = site.tip_of(folder)?;
    // What others have merged meanwhile is none of its work, be it brought into the branch or taken over by it.
    let merged = site.integration_tip()?.map_or(Ok(None), |merged| repository.fork(&merged, &tip))?;
    let base = match merged {
        Some(merged) if repository.is_ancestor(&base, &merged)? => merged,
        _ => repository.fork(&base, &tip)?.unwrap_or(base),
    };
    let (mut paths, lines) = repository.extent(&base, &tip)?;
    let changes = repository.changes(folder)?;
    paths.extend(changes.staged.into_iter().chain(changes.modified).chain(changes.untracked));
    let paths: Vec<String> = paths.iter().map(|path| Path::to_string_lossy(path).into_owned()).collect();
    let mut breaches = [of_paths(rules, &paths), of_lines(rules, lines)].concat();
    breaches.retain(|breach| breach.consequence != Consequence::Pause || !is_allowed(site, run, breach));
    Ok(breaches)
}

/// A person was asked about it, and said yes.
fn is_allowed(site: &Site, run: &Metadata, breach: &Breach) -> bool {
    let (mut answer, mut is_allowed) = (None, false);
    let walked = walk_log(&site.board, Some(&run.task), &mut |entry| {
        let cause = entry.cause.unwrap_or_default();
        match entry.kind {
            Kind::Resumed | Kind::Claimed if !cause.is_empty() => answer = Some(cause),
            Kind::Asked => {
                let was_asked = cause.contains(&breach.words());
                is_allowed = was_asked && answer.take().is_some_and(|answer| is_yes(&answer));
                return !was_asked;
            }
            _ => {}
        }
        true
    });
    walked.is_ok() && is_allowed
}

/// What becomes of work that is done and breaks a rule; the answer as it is where that only is to be told.
pub(super) fn judged(answer: AgentAnswer, breaches: &[Breach]) -> AgentAnswer {
    let worst = breaches.iter().max_by_key(|breach| breach.consequence);
    match (&answer, worst) {
        (AgentAnswer::Done { .. }, Some(breach)) => match breach.consequence {
            Consequence::Log | Consequence::Notify | Consequence::Warn => answer,
            Consequence::Pause => RunResult::Asks(question(&breach.words())).into(),
            Consequence::Reap => RunResult::failed(breach.words()).into(),
        },
        _ => answer,
    }
}
