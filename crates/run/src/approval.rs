//! The log's record of an item's approval. The queue's own text about it could be written by anyone.

use super::error::Error;
use super::workspace::Workspace;
use tavern_core::eligible::{Lack, NotReady};
use tavern_core::event::Kind;
use tavern_core::lease::{Terms, Token};
use tavern_core::task::{Task, TaskId};
use tavern_git::CommitId;
use tavern_store::{Board, LeaseEntry, walk_log};

/// The event that made an item approved, and all approvers of the same work.
#[derive(Default)]
struct LoggedApproval {
    commit: Option<String>,
    by: Vec<String>,
    /// A person is among these, and has seen the item's requirements.
    is_persons: bool,
    /// The claim under which the work was submitted, and the terms at that time.
    token: Option<Token>,
    terms: Option<Terms>,
}

/// Returns why `task`, which its queue calls approved at `work`, is not merged; `None` if the log agrees.
///
/// # Errors
/// The log can't be read.
pub fn not_approved(
    workspace: &Workspace,
    task: &Task,
    work: Option<&CommitId>,
) -> Result<Option<Lack>, Error> {
    let Some(approval) = logged(&workspace.board, &task.id)? else {
        let why = "its queue says that it was approved, and the log does not";
        return Ok(Some(Lack::Unapproved(why.to_owned())));
    };
    if approval.commit.as_deref() != work.map(CommitId::as_str) {
        let commit = approval
            .commit
            .as_deref()
            .and_then(|commit| commit.get(..7))
            .unwrap_or("no commit");
        let other = work.map_or("none", CommitId::short);
        return Ok(Some(Lack::Unapproved(format!(
            "it was approved at {commit}, and its queue says {other}"
        ))));
    }
    let is_forged = |by: &str| !approval.by.iter().any(|known| known == by);
    if let Some(forged) = task
        .approvals()
        .iter()
        .find(|approval| is_forged(&approval.by))
    {
        let message = format!("the log has no approval of {}/{}", forged.role, forged.by);
        let hint = "remove it from `approvals`, and move the item to the In Review lane".to_owned();
        return Ok(Some(Lack::NotReady(NotReady::new(message, hint))));
    }
    let asked = approval.terms.filter(|_| !approval.is_persons);
    let missing =
        asked.and_then(|terms| terms.missing_from(&Terms::of(task, &workspace.config.review)));
    Ok(missing.map(|missing| {
        Lack::Unapproved(format!(
            "it was claimed with {missing}, which its queue no longer has"
        ))
    }))
}

/// Returns the approval of an item that its queue calls approved; `None` if the log has none.
fn logged(board: &Board, task: &TaskId) -> Result<Option<LoggedApproval>, Error> {
    let mut found: Option<LoggedApproval> = None;
    // Events from this one on are skipped: they were undone, or lie before the undo.
    let mut older_than = u64::MAX;
    walk_log(board, Some(task), &mut |entry| {
        if entry.seq >= older_than || entry.kind == Kind::Moved {
            return true;
        }
        let is_change_of_status = entry.to().is_some();
        if let Some(undone) = entry.undoes.filter(|_| is_change_of_status) {
            older_than = undone;
            return true;
        }
        let is_first = found.is_none() && matches!(entry.kind, Kind::Approved | Kind::Submitted);
        if is_first {
            let commit = entry.commit.clone();
            found = Some(LoggedApproval {
                commit,
                ..LoggedApproval::default()
            });
        }
        match &mut found {
            Some(approval) if approval.token.is_some() => {
                let LoggedApproval { token, terms, .. } = approval;
                match entry.lease {
                    Some(LeaseEntry::Put(lease)) if Some(lease.token) == *token => {
                        *terms = lease.terms;
                    }
                    _ => return entry.kind != Kind::Submitted,
                }
                false
            }
            Some(approval) => {
                let is_same = entry.kind == Kind::Approved && entry.commit == approval.commit;
                approval.is_persons |= is_same && entry.token.is_none();
                approval.by.extend(entry.agent.filter(|_| is_same));
                approval.token = entry.token.filter(|_| entry.kind == Kind::Submitted);
                entry.kind != Kind::Submitted || approval.token.is_some()
            }
            None => !is_change_of_status,
        }
    })?;
    Ok(found)
}
