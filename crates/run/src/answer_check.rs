//! Checks an agent's answer while its session is open, so that it can fix problems in the same attempt. The decision
//! rests on `verify`, once the program has ended.

use super::artifacts::{Artifacts, VERIFY};
use super::children;
use super::error::Error;
use super::evidence::{Bench, Evidence, run_commands, run_one};
use super::launch::Launch;
use super::plan;
use super::processes::mark_of;
use super::record::run_name;
use super::result::{AgentAnswer, RunFailure, RunResult, Verdict};
use super::verify::{self, IF_RIGHT, Verification, WorkState};
use super::workspace::Workspace;
use crate::prompt::Refutation;
use crate::runner::Outcome;
use tavern_git::CommitId;
use tavern_store::Claimed;
use tavern_store::config::Does;
use tavern_sys::process::CommandResult;
use tavern_sys::secrets::redact;

/// The result of checking an answer.
pub enum Live {
    /// No problem was found. `proven` is the commit at which `done_when` passed, if any.
    Accepted { proven: Option<CommitId> },
    /// The text for its agent.
    Refuted(String),
}

const ACCEPTED: Live = Live::Accepted { proven: None };

/// Checks whether the agent is done. `message` is its last one. Checks that are not possible now follow when the
/// program has ended.
pub fn prove(
    workspace: &Workspace,
    held: &Claimed,
    launch: &Launch<'_>,
    artifacts: &Artifacts,
    message: &str,
) -> Live {
    let refutation = match launch.role.does {
        Does::Plan => plan::refutation(workspace, held, message, launch.job.nonce.as_deref()),
        Does::Review => Verdict::read(message, launch.job.nonce.as_deref())
            .err()
            .map(|why| Refutation {
                reason: format!("it gave no verdict: {why}"),
                output: String::new(),
            }),
        Does::Answer => plan::unanswered(message),
        Does::Work => match prove_work(workspace, held, launch, artifacts) {
            Ok(Proof::Passed { commit }) => return Live::Accepted { proven: commit },
            Ok(Proof::Refuted(refutation)) => Some(refutation),
            Err(_) => None,
        },
    };
    let correction = refutation.and_then(|refutation| launch.brief().refuted(refutation).ok());
    correction.map_or(ACCEPTED, |text| Live::Refuted(redact(&text).into_owned()))
}

enum Proof {
    /// No problem was found.
    Passed {
        commit: Option<CommitId>,
    },
    Refuted(Refutation),
}

const PASSED: Proof = Proof::Passed { commit: None };

fn prove_work(
    workspace: &Workspace,
    held: &Claimed,
    launch: &Launch<'_>,
    artifacts: &Artifacts,
) -> Result<Proof, Error> {
    let (task, folder) = (&held.task, &launch.worktree.path);
    let mark = mark_of(workspace, &run_name(&task.id, held.lease.token));
    let bench = Bench {
        role: launch.role,
        folder,
        commit: None,
        mark,
    };
    if !children::parked(workspace, held).is_empty() {
        return Ok(PASSED);
    }
    if launch.role.sandbox {
        return prove_boxed(workspace, held, launch, artifacts, &bench);
    }
    let state = match verify::plan(workspace, held, AgentAnswer::done(String::new()))? {
        Verification::Over {
            result:
                RunResult::Failed(RunFailure {
                    outcome: Outcome::Failed | Outcome::Empty,
                    reason,
                    ..
                }),
            ..
        } => {
            return Ok(Proof::Refuted(Refutation {
                reason: reason.replace(IF_RIGHT, ""),
                output: String::new(),
            }));
        }
        Verification::Over { .. } => return Ok(PASSED),
        Verification::Prove(work) => work.state,
    };
    if task.done_when.is_empty() {
        return Ok(PASSED);
    }
    if state == WorkState::Plain {
        return proof(artifacts, run_commands(workspace, task, &bench, &[])?, None);
    }
    verify::commit_left(workspace, held, &state)?;
    let (repository, tip) = (workspace.repository()?, workspace.tip_of(folder)?);
    let is_clean = repository.changes(folder)?.is_clean();
    let ran = run_commands(
        workspace,
        task,
        &Bench {
            commit: Some(&tip),
            ..bench
        },
        &[],
    )?;
    // Files that the commands left there are not part of the work.
    if is_clean && !repository.changes(folder)?.is_clean() {
        repository.restore(folder)?;
    }
    proof(artifacts, ran, is_clean.then_some(tip))
}

/// Commits in a sandbox are visible only there until its program has ended, so the commands run inside it.
fn prove_boxed(
    workspace: &Workspace,
    held: &Claimed,
    launch: &Launch<'_>,
    artifacts: &Artifacts,
    bench: &Bench<'_>,
) -> Result<Proof, Error> {
    let (task, wrapper) = (&held.task, &launch.job.wrapper);
    let git = |line: &str| {
        workspace.repository()?.remove_pipes(bench.folder)?;
        run_one(workspace, task, line, bench, wrapper)
    };
    let status = || git("git status --porcelain --untracked-files=all");
    let is_clean = |status: &CommandResult| status.is_success() && status.output.trim().is_empty();
    if task.done_when.is_empty() || task.worktree && !is_clean(&status()?) {
        return Ok(PASSED);
    }
    let ran = run_commands(workspace, task, bench, wrapper)?;
    if task.worktree && !is_clean(&status()?) {
        git("git reset --quiet --hard && git clean --quiet -fd")?;
    }
    proof(artifacts, ran, None)
}

fn proof(
    artifacts: &Artifacts,
    ran: (Evidence, String),
    commit: Option<CommitId>,
) -> Result<Proof, Error> {
    let (evidence, output) = ran;
    artifacts.write(VERIFY, &output)?;
    Ok(match evidence {
        Evidence::Passed => Proof::Passed { commit },
        Evidence::Failed(reason) => Proof::Refuted(Refutation { reason, output }),
        Evidence::CutShort => PASSED,
    })
}
