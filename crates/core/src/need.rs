//! Reasons for which an item waits for a person.

use super::eligible::Lack;
use super::status::{Status, words};

words! {
    /// The kind of action needed from a person.
    NeedKind {
        /// Its agent asked a question.
        Answer "answer",
        /// It was returned too often, or a schedule queued it as a draft.
        Release "release",
        /// It needs permission to start.
        Permission "permission",
        /// Its work needs approval for the merge, and no agent can give it.
        Approval "approval",
        /// A child failed, and it must not continue without it.
        Child "child",
        /// It used up its attempts.
        Dead "dead",
        /// It depends on an item that is cancelled or missing.
        Blocked "blocked",
        /// Its text has a problem.
        Problem "problem",
        /// Its approved work is not merged yet.
        Merge "merge",
    }
}

impl NeedKind {
    /// Returns the kind, if the item waits for a person's decision.
    pub fn of(lack: &Lack) -> Option<NeedKind> {
        Some(match lack {
            Lack::Answer(_) => NeedKind::Answer,
            Lack::FailedChild(_) => NeedKind::Child,
            Lack::Permission => NeedKind::Permission,
            Lack::Approval | Lack::NoReviewer(_) | Lack::NoJudge { .. } => NeedKind::Approval,
            Lack::Release(_) => NeedKind::Release,
            Lack::Status(Status::Dead) => NeedKind::Dead,
            _ => return None,
        })
    }

    /// Returns the kind, if only a person gets the item on: by a decision, or by mending the board.
    pub fn of_any(lack: &Lack) -> Option<NeedKind> {
        let is_lost = |status: &Option<Status>| matches!(status, None | Some(Status::Cancelled));
        NeedKind::of(lack).or(match lack {
            Lack::Problem { .. } => Some(NeedKind::Problem),
            // An item that is dead, a draft or waits is a need of its own.
            Lack::Dependencies(open) if open.iter().any(|(_, status)| is_lost(status)) => {
                Some(NeedKind::Blocked)
            }
            Lack::Status(Status::Approved) => Some(NeedKind::Merge),
            _ => None,
        })
    }
}

/// Returns the reason for which a person is needed, with its kind and text: the question, or `reason` for a
/// dead item.
pub fn need_of<'l>(
    lacks: &'l [Lack],
    reason: Option<&str>,
) -> Option<(&'l Lack, NeedKind, String)> {
    let (lack, kind) = lacks
        .iter()
        .find_map(|lack| Some((lack, NeedKind::of_any(lack)?)))?;
    let why = match (lack, reason) {
        (Lack::Answer(question), _) => question.clone(),
        (_, Some(reason)) if kind == NeedKind::Dead => reason.to_owned(),
        _ => lack.to_string(),
    };
    Some((lack, kind, why))
}
