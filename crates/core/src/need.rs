//! What of an item waits for a person.

use super::eligible::Lack;
use super::status::{Status, words};

words! {
    /// What kind of thing a person is to do.
    NeedKind {
        /// Its agent asked a question.
        Answer "answer",
        /// It came back too often, or a schedule queued it as a draft.
        Release "release",
        /// It may be started only then.
        Permission "permission",
        /// Its work may be merged only then, and no agent can see to it.
        Approval "approval",
        /// A child failed that it does not go on without.
        Child "child",
        /// It used up its attempts.
        Dead "dead",
    }
}

impl NeedKind {
    /// `None`: it is not a person that it waits for.
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
}

/// What of all that an item lacks a person is to do, and why in words: the question, where one was asked; of a dead item its `reason`.
pub fn need_of<'l>(
    lacks: &'l [Lack],
    reason: Option<&str>,
) -> Option<(&'l Lack, NeedKind, String)> {
    let (lack, kind) = lacks
        .iter()
        .find_map(|lack| Some((lack, NeedKind::of(lack)?)))?;
    let why = match (lack, reason) {
        (Lack::Answer(question), _) => question.clone(),
        (_, Some(reason)) if kind == NeedKind::Dead => reason.to_owned(),
        _ => lack.to_string(),
    };
    Some((lack, kind, why))
}
