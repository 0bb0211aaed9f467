//! A review: a reviewer looks at exactly one commit, and its verdict is on disk before it counts.

use std::path::Path;

use super::artifacts::Artifacts;
use super::error::Error;
use super::result::{AgentAnswer, Ruling, RunResult, Verdict};
use super::workspace::Workspace;
use tavern_core::task::Task;
use tavern_git::CommitId;
use tavern_store::Claimed;

/// The verdict as Tavern accepted it.
const TAKEN: &str = "verdict.json";

/// Returns the commit to review; `None` for a task that needs no repository.
pub fn commit(workspace: &Workspace, task: &Task) -> Result<Option<CommitId>, Error> {
    if !task.worktree {
        return Ok(None);
    }
    let nothing = |why: String| Err(Error::NothingToReview(why));
    let Some(named) = task.commit() else {
        return nothing("it names no commit to look at: move it to the Pending lane".to_owned());
    };
    let found = workspace.repository()?.commit_of(named)?;
    found.map_or_else(
        || nothing(format!("its commit {named} is not in the repository")),
        |commit| Ok(Some(commit)),
    )
}

/// Returns the commit that the item names, in full if the repository has it.
pub fn named(workspace: &Workspace, task: &Task) -> Result<Option<String>, Error> {
    let Some(named) = task.commit() else {
        return Ok(None);
    };
    // A commit typed by a person may be invalid.
    let found = workspace.repository()?.commit_of(named).ok().flatten();
    Ok(Some(found.map_or_else(
        || named.to_owned(),
        |commit| commit.as_str().to_owned(),
    )))
}

/// Returns the result of a reviewer's run that claims to be done: its verdict, if there is one on the commit to review.
/// `message` is the agent's last one.
pub fn judge(
    workspace: &Workspace,
    folder: &Path,
    commit: Option<&CommitId>,
    artifacts: &Artifacts,
    message: &str,
    nonce: Option<&str>,
) -> Result<AgentAnswer, Error> {
    if let Some(commit) = commit
        && workspace.tip_of(folder)? != *commit
    {
        let why = "it left the commit that it was to look at, so its verdict is void";
        return Ok(RunResult::failed(why).into());
    }
    let verdict = match Verdict::read(message, nonce) {
        Ok(verdict) => Verdict {
            commit: commit.map(|commit| commit.as_str().to_owned()),
            ..verdict
        },
        Err(why) => return Ok(RunResult::failed(format!("it gave no verdict: {why}")).into()),
    };
    let mut text = serde_json::to_string_pretty(&verdict).expect("a verdict is plain data");
    text.push('\n');
    artifacts.write_durable(TAKEN, &text)?;
    Ok(AgentAnswer::Verdict(verdict))
}

/// Returns the verdict that a run has left.
pub fn taken(artifacts: &Artifacts) -> Option<Verdict> {
    serde_json::from_str(&artifacts.read(TAKEN)).ok()
}

/// Turns the verdict into a result. A verdict on work that has changed meanwhile becomes a rejection, so that the new
/// work is verified and reviewed again.
pub fn confirm(
    workspace: &Workspace,
    held: &Claimed,
    mut verdict: Verdict,
) -> Result<RunResult, Error> {
    let mut reason = verdict.line();
    if let Some(moved) = moved(workspace, &held.task)? {
        verdict.verdict = Ruling::Reject;
        format!("{moved} {}", verdict.summary)
            .trim()
            .clone_into(&mut verdict.summary);
        reason = moved;
    }
    Ok(RunResult::Reviewed { verdict, reason })
}

/// Returns a message if the task's branch has moved away from the commit in review.
pub fn moved(workspace: &Workspace, task: &Task) -> Result<Option<String>, Error> {
    let (true, Some(named)) = (task.worktree, &task.commit()) else {
        return Ok(None);
    };
    let branch = workspace.branch_of(task);
    let Some(tip) = workspace.repository()?.branch_tip(&branch)? else {
        return Ok(None);
    };
    let is_there = workspace
        .repository()?
        .commit_of(named)?
        .is_some_and(|commit| commit == tip);
    Ok((!is_there).then(|| {
        format!(
            "`{branch}` has moved on to {}, which is not verified.",
            tip.short()
        )
    }))
}
