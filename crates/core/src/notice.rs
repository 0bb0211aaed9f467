//! Notices for people, in words. Pure: the caller looks up the item's present state.

use serde::Serialize;

use super::event::Kind;
use super::id::TaskId;
use super::monitor::{Reaction, Symptom};
use super::status::{Status, Timestamp, words};

words! {
    /// The subject of a notice.
    NoticeKind {
        /// An item waits for a person.
        NeedsYou "needs_you",
        /// An item is dead.
        Died "died",
        /// An item is completed.
        Finished "finished",
        /// All items planned for a request have ended.
        Request "request",
        /// Half of a cap or more is used.
        Budget "budget",
        /// A run is in trouble, or broke a rule.
        Trouble "trouble",
        /// A test of delivery.
        Test "test",
    }
}

words! {
    /// The importance of a notice.
    NoticeSeverity {
        Info "info",
        Warning "warning",
        Critical "critical",
    }
}

/// A message to people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Notice {
    /// Number of its event.
    pub seq: u64,
    pub time: Timestamp,
    pub kind: NoticeKind,
    pub severity: NoticeSeverity,
    pub task: Option<TaskId>,
    pub queue: Option<String>,
    pub title: Option<String>,
    /// The message, in one line.
    pub text: String,
    /// The command to type.
    pub todo: Option<String>,
}

/// Returns the kind of notice for an event. [`NoticeKind::NeedsYou`] may be over by now, or turn out to be none.
pub fn kind_of(
    event: Kind,
    moved: Option<(Status, Status)>,
    found: Option<(Symptom, Reaction)>,
) -> Option<(NoticeKind, NoticeSeverity)> {
    match (found, moved) {
        (Some((Symptom::Spent, _)), _) => Some((NoticeKind::Budget, NoticeSeverity::Critical)),
        (Some((Symptom::Spending, _)), _) => Some((NoticeKind::Budget, NoticeSeverity::Warning)),
        // Its question gets a notice.
        (Some((_, Reaction::Paused)), _) => None,
        (Some((_, Reaction::Notified | Reaction::Ended)), _) => {
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

/// Returns true for events caused by a person: these need no notice.
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
    /// Returns the notice in one line, with the command to type.
    pub fn line(&self) -> String {
        let todo = self.todo.iter().map(|todo| format!(": {todo}"));
        self.text.clone() + &todo.collect::<String>()
    }
}

/// Maximum lines of notices in a message; the rest is only counted.
const MOST_LINES: usize = 20;

/// Sorts notices by severity, then oldest first.
pub fn by_severity(notices: &[Notice]) -> Vec<&Notice> {
    let mut notices: Vec<&Notice> = notices.iter().collect();
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.severity));
    notices
}

/// Returns the subject line of `notices`.
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
        NoticeKind::Budget => "nears its budget",
        NoticeKind::Trouble => "is in trouble",
        NoticeKind::Test => return one.text.clone(),
    };
    let title = one.title.iter().map(|title| format!(": {title}"));
    format!("{name} {says}{}", title.collect::<String>())
}

/// Returns `notices` as the text of a message, one line each.
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
