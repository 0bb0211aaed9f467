//! A success is put to the proof: by commands that we run ourselves, at one commit.

use super::artifacts::Artifacts;
use super::children;
use super::error::Error;
use super::evidence::{Bench, Evidence, verify};
use super::heartbeat::Heartbeat;
use super::plan;
use super::processes::mark_of;
use super::record::keep_patch;
use super::record::run_name;
use super::result::Finished;
use super::result::Judged;
use super::review;
use super::site::Site;
use crate::board::task::Status;
use crate::config::{Dirty, Does};
use crate::git::{CommitId, Merge};
use crate::process::Bell;
use crate::runner::Outcome;
use crate::store::Claimed;

/// Whether a success is put to a proof that may last: without a work tree and without commands there is nothing to look at.
pub fn takes_time(held: &Claimed) -> bool {
    held.task.worktree || !held.task.done_when.is_empty()
}

/// What [`verified`] would make of `finished` if all of `done_when` passes; nothing is committed or run.
pub fn foreseen(site: &Site, held: &Claimed, mut finished: Finished) -> Result<Finished, Error> {
    if finished.judged.outcome != Outcome::Success {
        return Ok(finished);
    }
    if held.task.status() == Status::Reviewing {
        return review::confirmed(site, held, finished);
    }
    if site.does(held, Does::Plan) {
        return Ok(plan::foreseen(site, held, finished));
    }
    if let Some(judged) = children::parked(site, held, &finished) {
        return Ok(Finished { judged, ..finished });
    }
    if !held.task.worktree {
        return Ok(finished);
    }
    let folder = site.board.worktree(&held.task.id);
    if !site.repository()?.changes(&folder)?.is_clean() {
        if site.config.dirty == Dirty::Refuse {
            finished.judged = left_dirty();
        }
        return Ok(finished);
    }
    let tip = site.tip_of(&folder)?;
    let integration = site.repository()?.branch_tip(site.integration())?;
    let is_empty = match integration {
        Some(integration) => site.repository()?.is_ancestor(&tip, &integration)?,
        None => false,
    };
    if is_empty && !held.task.allow_empty {
        finished.judged = left_nothing();
    } else {
        finished.judged.commit = Some(tip.as_str().to_owned());
    }
    Ok(finished)
}

fn left_dirty() -> Judged {
    Judged::said(Outcome::Failed, "it left changes uncommitted (`dirty: refuse` in config.yaml)")
}

fn left_nothing() -> Judged {
    Judged::said(Outcome::Empty, "it changed nothing; if that is right, give the item `empty: allowed`")
}

/// Puts a success to the proof: what was left uncommitted is committed, and `done_when` is run at the commit.
pub fn verified(site: &Site, held: &Claimed, mut finished: Finished) -> Result<Finished, Error> {
    if finished.judged.outcome != Outcome::Success {
        return Ok(finished);
    }
    if held.task.status() == Status::Reviewing {
        return review::confirmed(site, held, finished);
    }
    if site.does(held, Does::Plan) {
        return plan::confirmed(site, held, finished);
    }
    if let Some(judged) = children::parked(site, held, &finished) {
        let artifacts = Artifacts::open(&site.board, &finished.run);
        if let Ok(mut metadata) = artifacts.metadata() {
            metadata.reason = Some(judged.reason.clone());
            artifacts.write_metadata(&metadata)?;
        }
        return Ok(Finished { judged, ..finished });
    }
    let _heart = takes_time(held).then(|| Heartbeat::start(&site.board, &held.lease, &Bell::new()));
    let artifacts = match held.task.done_when.as_slice() {
        [] => Artifacts::open(&site.board, &finished.run),
        _ => Artifacts::create(&site.board, &finished.run)?,
    };
    let proof = prove(site, held, &artifacts, &mut finished.judged)?;
    finished.is_refuted = proof.is_some_and(|passed| !passed);
    if let Ok(mut metadata) = artifacts.metadata() {
        metadata.outcome = Some(finished.judged.outcome);
        metadata.reason = Some(finished.judged.reason.clone());
        metadata.verified = proof;
        // What was committed for the agent belongs to its patch, whatever the proof said.
        let tip = held.task.worktree.then(|| site.tip_of(&site.board.worktree(&held.task.id)).ok()).flatten();
        if let Some(tip) = tip.filter(|tip| metadata.commit.as_deref() != Some(tip.as_str())) {
            if let Some(Ok(base)) = metadata.base.as_ref().map(|base| base.parse()) {
                keep_patch(site, &artifacts, &base, &tip);
            }
            metadata.commit = Some(tip.as_str().to_owned());
        }
        artifacts.write_metadata(&metadata)?;
    }
    Ok(finished)
}

/// Commits what was left uncommitted, and runs `done_when` at the commit. Returns whether it passed, if it was run.
fn prove(site: &Site, held: &Claimed, artifacts: &Artifacts, judged: &mut Judged) -> Result<Option<bool>, Error> {
    let task = &held.task;
    let folder = site.board.worktree(&task.id);
    let mark = mark_of(site, &run_name(&task.id, held.lease.token));
    let bench = |commit| Bench { folder: &folder, commit, mark: mark.clone() };
    if !task.worktree {
        let evidence = verify(site, task, bench(None), artifacts, "verify.txt")?;
        return Ok(conclude(judged, &evidence));
    }
    if !site.repository()?.changes(&folder)?.is_clean() {
        if site.config.dirty == Dirty::Refuse {
            *judged = left_dirty();
            return Ok(None);
        }
        let protected = site.protected(&held.queue);
        let protected: Vec<&str> = protected.iter().map(String::as_str).collect();
        site.repository()?.commit_all(&folder, &format!("{}: {}", task.id, task.title), &protected)?;
    }
    let has_gathered = children::gather(site, task, &folder)?;
    let tip = site.tip_of(&folder)?;
    if !task.allow_empty && !has_gathered && is_empty(site, held, &tip)? {
        *judged = left_nothing();
        return Ok(None);
    }
    let evidence = verify(site, task, bench(Some(&tip)), artifacts, "verify.txt")?;
    let passed = conclude(judged, &evidence);
    if judged.outcome == Outcome::Success {
        judged.commit = Some(tip.as_str().to_owned());
    }
    Ok(passed)
}

/// Nothing of the work at `tip` is new to the integration branch, or only what no task's branch may change.
fn is_empty(site: &Site, held: &Claimed, tip: &CommitId) -> Result<bool, Error> {
    let Some(integration) = site.repository()?.branch_tip(site.integration())? else { return Ok(false) };
    if site.repository()?.is_ancestor(tip, &integration)? {
        return Ok(true);
    }
    let protected = site.protected(&held.queue);
    let protected: Vec<&str> = protected.iter().map(String::as_str).collect();
    // The same change by somebody else, who was faster, is no emptiness.
    let merge = site.repository()?.merge(&integration, tip, &protected, "probe")?;
    Ok(matches!(merge, Merge::UpToDate { left_out } if !left_out.is_empty()))
}

fn conclude(judged: &mut Judged, evidence: &Evidence) -> Option<bool> {
    if evidence.is_cut_short {
        *judged = Judged::said(Outcome::Killed, "interrupted while its work was verified");
        return None;
    }
    if let Some(failure) = evidence.failure() {
        *judged = Judged::said(Outcome::Failed, &failure);
    }
    Some(evidence.passed())
}
