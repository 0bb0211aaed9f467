//! What the log has of an item's approval. What its queue says of that anybody can have written.

use super::error::Error;
use crate::board::eligible::{Lack, NotReady};
use crate::board::event::Kind;
use crate::board::task::{Task, TaskId};
use crate::git::CommitId;
use crate::store::{Board, walk_log};

/// The event that made an item approved, and all who have approved the same work.
struct LoggedApproval {
    commit: Option<String>,
    by: Vec<String>,
}

/// Why `task`, which its queue calls approved at `work`, is not merged; `None`: the log has the same.
///
/// # Errors
/// The log can't be read.
pub fn not_approved(board: &Board, task: &Task, work: Option<&CommitId>) -> Result<Option<Lack>, Error> {
    let Some(approval) = logged(board, &task.id)? else {
        let why = "its queue says that it was approved, and the log does not";
        return Ok(Some(Lack::Unapproved(why.to_owned())));
    };
    if approval.commit.as_deref() != work.map(CommitId::as_str) {
        let commit = approval.commit.as_deref().and_then(|commit| commit.get(..7)).unwrap_or("no commit");
        let other = work.map_or("none", CommitId::short);
        return Ok(Some(Lack::Unapproved(format!("it was approved at {commit}, and its queue says {other}"))));
    }
    let is_forged = |by: &str| !approval.by.iter().any(|known| known == by);
    let forged = task.approvals().iter().find(|approval| is_forged(&approval.by));
    Ok(forged.map(|forged| {
        let message = format!("the log has no approval of {}/{}", forged.role, forged.by);
        let hint = "take it out of `approvals`, and move the item to the In Review lane".to_owned();
        Lack::NotReady(NotReady::new(message, hint))
    }))
}

/// Of an item that its queue calls approved; `None` if it came to that by no approval.
fn logged(board: &Board, task: &TaskId) -> Result<Option<LoggedApproval>, Error> {
    let mut found: Option<LoggedApproval> = None;
    // What is not older was taken back, or came between.
    let mut older_than = u64::MAX;
    walk_log(board, Some(task), &mut |entry| {
        if entry.seq >= older_than || entry.kind == Kind::Moved {
            return true;
        }
        let is_change_of_status = entry.change.to().is_some();
        if let Some(undone) = entry.undoes.filter(|_| is_change_of_status) {
            older_than = undone;
            return true;
        }
        let is_first = found.is_none() && matches!(entry.kind, Kind::Approved | Kind::Submitted);
        if is_first {
            found = Some(LoggedApproval { commit: entry.commit.clone(), by: Vec::new() });
        }
        match &mut found {
            Some(approval) => {
                let is_same = entry.kind == Kind::Approved && entry.commit == approval.commit;
                approval.by.extend(entry.agent.filter(|_| is_same));
                entry.kind != Kind::Submitted
            }
            None => !is_change_of_status,
        }
    })?;
    Ok(found)
}
