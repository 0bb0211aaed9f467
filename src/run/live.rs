//! The proof of what an agent says while its session is open: what it lacks the agent is told there, and mends it in the same attempt.
//! What is decided rests on `verify`, once the program has ended.

use super::artifacts::{Artifacts, VERDICT};
use super::children;
use super::error::Error;
use super::evidence::{Bench, Evidence, run_commands};
use super::launch::Launch;
use super::plan;
use super::processes::mark_of;
use super::record::run_name;
use super::result::{AgentAnswer, RunFailure, RunResult, Verdict};
use super::site::Site;
use super::verify::{self, IF_RIGHT, VERIFY, Verification, WorkState};
use crate::config::Does;
use crate::git::CommitId;
use crate::prompt::Refutation;
use crate::runner::Outcome;
use crate::secrets::redact;
use crate::store::Claimed;

/// What became of an answer.
pub enum Live {
    /// Nothing is found against it. `done_when` has passed at this commit, if anywhere.
    Accepted { proven: Option<CommitId> },
    /// This is what its agent is told.
    Refuted(String),
}

const ACCEPTED: Live = Live::Accepted { proven: None };

/// Puts it to the proof that the agent is done. `said` are its last words. What can't be looked at now is, when the program has ended.
pub fn prove(site: &Site, held: &Claimed, launch: &Launch<'_>, artifacts: &Artifacts, said: &str) -> Live {
    let refutation = match launch.role.does {
        Does::Plan => plan::refutation(site, held, artifacts, said),
        Does::Review => Verdict::read(&artifacts.read(VERDICT), said)
            .err()
            .map(|why| Refutation { reason: format!("it gave no verdict: {why}"), output: String::new() }),
        Does::Work => match prove_work(site, held, launch, artifacts) {
            Ok(Proof::Passed { commit }) => return Live::Accepted { proven: commit },
            Ok(Proof::Refuted(refutation)) => Some(refutation),
            Err(_) => None,
        },
    };
    let told = refutation.and_then(|refutation| launch.brief().refuted(refutation).ok());
    told.map_or(ACCEPTED, |text| Live::Refuted(redact(&text).into_owned()))
}

enum Proof {
    Passed { commit: Option<CommitId> },
    Refuted(Refutation),
}

fn prove_work(site: &Site, held: &Claimed, launch: &Launch<'_>, artifacts: &Artifacts) -> Result<Proof, Error> {
    const PASSED: Proof = Proof::Passed { commit: None };
    if !children::parked(site, held).is_empty() {
        return Ok(PASSED);
    }
    // What it has committed in a sandbox is looked at when its program has ended.
    let look = || verify::plan(site, held, AgentAnswer::done(String::new()));
    let commit = match if launch.role.sandbox { None } else { Some(look()?) } {
        Some(Verification::Over {
            result: RunResult::Failed(RunFailure { outcome: Outcome::Failed | Outcome::Empty, reason, .. }),
            ..
        }) => {
            return Ok(Proof::Refuted(Refutation { reason: reason.replace(IF_RIGHT, ""), output: String::new() }));
        }
        Some(Verification::Over { .. }) => return Ok(PASSED),
        Some(Verification::Prove { state: WorkState::At(tip), .. }) => Some(tip),
        Some(Verification::Prove { .. }) | None => None,
    };
    if held.task.done_when.is_empty() {
        return Ok(PASSED);
    }
    let mark = mark_of(site, &run_name(&held.task.id, held.lease.token));
    let bench = Bench { role: launch.role, folder: &launch.worktree.path, commit: commit.as_ref(), mark };
    // Among what it has made itself.
    let (evidence, output) = run_commands(site, &held.task, &bench, &launch.job.wrapper)?;
    artifacts.write(VERIFY, &output)?;
    Ok(match evidence {
        Evidence::Passed => Proof::Passed { commit },
        Evidence::Failed(reason) => Proof::Refuted(Refutation { reason, output }),
        Evidence::CutShort => PASSED,
    })
}
