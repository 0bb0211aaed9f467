//! What of an item waits for a person.

use super::eligible::Lack;
use super::status::words;

words! {
    /// What kind of thing a person is to do.
    NeedKind {
        /// Its agent asked a question.
        Answer "answer",
        /// It came back too often.
        Release "release",
        /// It may be started only then.
        Permission "permission",
        /// Its work may be merged only then, and no agent can see to it.
        Approval "approval",
        /// A child failed that it does not go on without.
        Child "child",
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
            _ => return None,
        })
    }
}

/// What of all that an item lacks a person is to do, and why in words: the question, where one was asked.
pub fn need_of(lacks: &[Lack]) -> Option<(&Lack, NeedKind, String)> {
    let (lack, kind) = lacks
        .iter()
        .find_map(|lack| Some((lack, NeedKind::of(lack)?)))?;
    let why = if let Lack::Answer(question) = lack {
        question.clone()
    } else {
        lack.to_string()
    };
    Some((lack, kind, why))
}
