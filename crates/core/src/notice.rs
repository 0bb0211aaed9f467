//! What people are told of, in words. Pure: what an item is by now is looked up by the caller.

use serde::Serialize;

use super::event::Kind;
use super::id::TaskId;
use super::monitor::{Deed, Symptom};
use super::status::{Status, Timestamp, words};

words! {
    /// What a notice is about.
    NoticeKind {
        /// An item waits for a person.
        NeedsYou "needs_you",
        /// An item is dead.
        Died "died",
        /// An item is completed.
        Finished "finished",
        /// All that was planned of a request has ended.
        Request "request",
        /// Half of a cap is used, or more.
        Cap "cap",
        /// A run is in trouble, or broke a rule.
        Trouble "trouble",
        /// Nothing: somebody tries whether it arrives.
        Test "test",
    }
}

words! {
    /// How much a notice matters.
    NoticeSeverity {
        Info "info",
        Warning "warning",
        Critical "critical",
    }
}

/// Something that a person is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Notice {
    /// The event that it tells of.
    pub seq: u64,
    pub time: Timestamp,
    pub kind: NoticeKind,
    pub severity: NoticeSeverity,
    pub task: Option<TaskId>,
    pub queue: Option<String>,
    pub title: Option<String>,
    /// What there is to say, in a line.
    pub text: String,
    /// What to type.
    pub todo: Option<String>,
}

/// What an event tells people of. That of [`NoticeKind::NeedsYou`] may be over, or be none.
pub fn kind_of(
    event: Kind,
    moved: Option<(Status, Status)>,
    found: Option<(Symptom, Deed)>,
) -> Option<(NoticeKind, NoticeSeverity)> {
    match (found, moved) {
        (Some((Symptom::Spent, _)), _) => Some((NoticeKind::Cap, NoticeSeverity::Critical)),
        (Some((Symptom::Spending, _)), _) => Some((NoticeKind::Cap, NoticeSeverity::Warning)),
        // Its question is told of.
        (Some((_, Deed::Paused)), _) => None,
        (Some((_, Deed::Notified | Deed::Ended)), _) => {
            Some((NoticeKind::Trouble, NoticeSeverity::Warning))
        }
        (Some(_), _) => Some((NoticeKind::Trouble, NoticeSeverity::Info)),
        (None, _) if event == Kind::Strayed => Some((NoticeKind::Trouble, NoticeSeverity::Warning)),
        (None, _) if event == Kind::Closed => Some((NoticeKind::NeedsYou, NoticeSeverity::Warning)),
        (None, Some((from, to))) if from != to && !is_a_persons(event) => match to {
            Status::Dead => Some((NoticeKind::Died, NoticeSeverity::Warning)),
            Status::Completed => Some((NoticeKind::Finished, NoticeSeverity::Info)),
            Status::Waiting | Status::InReview => {
                Some((NoticeKind::NeedsYou, NoticeSeverity::Warning))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Who does that need not be told of it.
fn is_a_persons(event: Kind) -> bool {
    matches!(
        event,
        Kind::Added
            | Kind::Edited
            | Kind::Moved
            | Kind::Undone
            | Kind::Redone
            | Kind::Archived
            | Kind::Withdrawn
            | Kind::Resumed
            | Kind::Revived
            | Kind::Reopened
            | Kind::Cancelled
            | Kind::Allowed
    )
}

impl Notice {
    /// In one line, with what to type.
    pub fn line(&self) -> String {
        let todo = self.todo.iter().map(|todo| format!(": {todo}"));
        self.text.clone() + &todo.collect::<String>()
    }
}

/// So many lines of a message tell of a notice each; of more it tells how many.
const MOST_LINES: usize = 20;

/// What matters most comes first, and of that the oldest.
pub fn by_severity(notices: &[Notice]) -> Vec<&Notice> {
    let mut notices: Vec<&Notice> = notices.iter().collect();
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.severity));
    notices
}

/// What stands above `notices`, in a line.
pub fn subject(notices: &[&Notice]) -> String {
    let [one] = notices else {
        let counts =
            NoticeKind::ALL.map(|kind| (kind, notices.iter().filter(|it| it.kind == kind).count()));
        let counts = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| format!("{count} {kind}"));
        return format!(
            "{} notices: {}",
            notices.len(),
            counts.collect::<Vec<_>>().join(", ")
        );
    };
    let name = one
        .task
        .as_ref()
        .map_or_else(|| "the board".to_owned(), ToString::to_string);
    let says = match one.kind {
        NoticeKind::NeedsYou => "needs you",
        NoticeKind::Died => "is dead",
        NoticeKind::Finished => "is completed",
        NoticeKind::Request => "is done",
        NoticeKind::Cap => "nears a cap",
        NoticeKind::Trouble => "is in trouble",
        NoticeKind::Test => return one.text.clone(),
    };
    let title = one.title.iter().map(|title| format!(": {title}"));
    format!("{name} {says}{}", title.collect::<String>())
}

/// `notices` as the text of a message, a line each.
pub fn text(notices: &[&Notice]) -> String {
    let mut lines: Vec<String> = notices
        .iter()
        .take(MOST_LINES)
        .map(|notice| notice.line())
        .collect();
    if notices.len() > MOST_LINES {
        lines.push(format!("and {} more", notices.len() - MOST_LINES));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_status_tells_of_what_came_of_it_and_nothing_else_does() {
        let told = |from, to| kind_of(Kind::Failed, Some((from, to)), None).map(|(kind, _)| kind);
        for (to, says) in [
            (Status::Waiting, Some(NoticeKind::NeedsYou)),
            (Status::InReview, Some(NoticeKind::NeedsYou)),
            (Status::Dead, Some(NoticeKind::Died)),
            (Status::Completed, Some(NoticeKind::Finished)),
            (Status::Pending, None),
            (Status::Cancelled, None),
        ] {
            assert_eq!(told(Status::InProgress, to), says, "{to}");
            assert_eq!(told(to, to), None, "{to}");
        }
        assert_eq!(kind_of(Kind::Told, None, None), None);
        assert_eq!(
            kind_of(
                Kind::Edited,
                Some((Status::Pending, Status::Completed)),
                None
            ),
            None
        );
    }
}
