//! A report that the agent program itself made on its item before the run was over. It is the result of the run.

use super::error::Error;
use super::result::{Ruling, RunResult, ShownBy, Verdict};
use super::workspace::Workspace;
use crate::runner::Outcome;
use tavern_core::event::Kind;
use tavern_core::task::Status;
use tavern_store::{Claimed, Entry, walk_log};

/// A report with the name and the token of the item's holder.
pub struct OwnReport {
    pub result: RunResult,
    /// The item's status after the report.
    pub status: Status,
}

/// Returns the report, if it is the item's last event.
pub fn reported(workspace: &Workspace, held: &Claimed) -> Result<Option<OwnReport>, Error> {
    let (task, lease) = (&held.task.id, &held.lease);
    let mut last = None;
    walk_log(&workspace.board, Some(task), &mut |entry| {
        let is_ours = entry.task.as_ref() == Some(task) && entry.token == Some(lease.token);
        last = Some(entry).filter(|_| is_ours);
        last.is_none()
    })?;
    let is_holders = |entry: &Entry| entry.agent.as_ref() == Some(&lease.agent);
    let report = last.filter(is_holders);
    Ok(report.and_then(|entry| {
        Some(OwnReport {
            status: entry.to()?,
            result: result(held, entry)?,
        })
    }))
}

fn result(held: &Claimed, entry: Entry) -> Option<RunResult> {
    let why = entry.cause.unwrap_or_default();
    let judged = |verdict, summary: String| {
        let verdict = Verdict {
            verdict,
            summary,
            findings: Vec::new(),
            commit: entry.commit.clone(),
        };
        RunResult::Reviewed {
            reason: verdict.line(),
            verdict,
        }
    };
    Some(match entry.kind {
        Kind::Submitted => {
            let shown_by = if held.task.done_when.is_empty() {
                ShownBy::Word
            } else {
                ShownBy::Commands
            };
            RunResult::Passed {
                commit: entry.commit,
                reason: "its agent has reported it".to_owned(),
                shown_by,
            }
        }
        Kind::Failed => RunResult::failed(why),
        Kind::Returned => RunResult::failed_as(Outcome::Killed, why),
        Kind::Asked => RunResult::Asks(why),
        Kind::Parked => {
            RunResult::Parked(why.split(", ").filter_map(|id| id.parse().ok()).collect())
        }
        Kind::Approved => judged(Ruling::Approve, why),
        Kind::Rejected => judged(Ruling::Reject, why),
        _ => return None,
    })
}
