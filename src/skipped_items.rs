//! Items that Tavern leaves to people: under headings between lanes, in lanes for work in progress, or with
//! marks of their own.

use super::overview::queue_read::QueueRead;
use super::{Context, format};
use tavern_core::document::Item;
use tavern_core::lane::LaneKind;
use tavern_core::problem::{Position, Problem, Severity};

/// Prints notes on items that have a mark of their own: a box such as `[-]`, or `~~`.
pub(super) fn tell_of_marks(context: &Context, read: &[QueueRead<'_>]) {
    tell_of(context, read, "own-state");
}

fn tell_of(context: &Context, read: &[QueueRead<'_>], code: &str) {
    for QueueRead { text, problems, .. } in read {
        for problem in problems.iter().filter(|problem| problem.code == code) {
            let line = Position::of(&text.content, problem.span.start).line;
            let message = format::words(&problem.message);
            context
                .out
                .note(format!("{}:{line}: {message}", text.queue.id));
        }
    }
}

/// Prints notes on such items, and on guards that have no effect. Returns true if a queue has such items
/// under headings, and no lane where an item begins.
pub(super) fn tell(context: &Context, read: &[QueueRead<'_>]) -> bool {
    tell_of(context, read, "unread-guard");
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
                format::words(&own.message)
            ));
            has_no_lane |= !is_workable;
        }
        let busy: Vec<&Item<'_>> = document
            .items()
            .iter()
            .filter(|item| item.aside && item.status.is_held())
            .collect();
        if let Some(first) = busy.first() {
            let count = format::count(busy.len(), "item");
            let state = if busy.len() == 1 {
                "is in progress by hand; agents skip it"
            } else {
                "are in progress by hand; agents skip them"
            };
            context
                .out
                .note(format!("{}:{}: {count} {state}", queue.id, first.line));
        }
    }
    has_no_lane
}
