//! What nobody works, since it is a person's own: by headings among lanes, by lanes that say that somebody works on it, and by marks.

use super::overview::queue_read::QueueRead;
use super::{Context, human};
use tavern_core::document::Item;
use tavern_core::lane::LaneKind;
use tavern_core::problem::{Position, Problem, Severity};

/// Tells of what is so by a mark of its own: a box such as `[-]`, or `~~`.
pub(super) fn tell_of_marks(context: &Context, read: &[QueueRead<'_>]) {
    for QueueRead { text, problems, .. } in read {
        for own in problems
            .iter()
            .filter(|problem| problem.code == "own-state")
        {
            let line = Position::of(&text.content, own.span.start).line;
            context
                .out
                .note(format!("{}:{line}: {}", text.queue.id, own.message));
        }
    }
}

/// Tells of it. Returns whether one of the queues has such items under headings, and no lane in which an item begins.
pub(super) fn tell(context: &Context, read: &[QueueRead<'_>]) -> bool {
    let mut has_no_lane = false;
    for QueueRead {
        text,
        document,
        problems,
    } in read
    {
        let queue = &text.queue;
        let is_workable = document
            .lanes()
            .iter()
            .any(|lane| lane.kind == LaneKind::Pending);
        let is_own = |problem: &&Problem| {
            problem.code == "unknown-lane" && problem.severity == Severity::Warning
        };
        for own in problems.iter().filter(is_own) {
            let line = Position::of(&text.content, own.span.start).line;
            let hint = if is_workable {
                String::new()
            } else {
                format!("\nhint: {}", own.hint)
            };
            context.out.note(format!(
                "{}:{line}: {}{hint}",
                queue.id,
                human::words(&own.message)
            ));
            has_no_lane |= !is_workable;
        }
        let busy: Vec<&Item<'_>> = document
            .items()
            .iter()
            .filter(|item| item.aside && item.status.is_held())
            .collect();
        if let Some(first) = busy.first() {
            let count = human::count(busy.len(), "item");
            let what = if busy.len() == 1 {
                "is in progress by hand, and is left to you"
            } else {
                "are in progress by hand, and are left to you"
            };
            context
                .out
                .note(format!("{}:{}: {count} {what}", queue.id, first.line));
        }
    }
    has_no_lane
}
