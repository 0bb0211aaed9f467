//! Lines that were probably meant as items but are not, in a queue without other open items.

use tavern_core::document::Item;
use tavern_core::problem::{Position, Problem, Severity};
use tavern_sys::process::quoted;

use super::overview::queue_read::QueueRead;
use super::{Context, format};

/// Prints the number of such lines for each queue without open items, where they are, and how to fix them.
/// Returns true if there are any.
pub(super) fn tell(context: &Context, read: &[QueueRead<'_>]) -> bool {
    let mut is_any = false;
    for QueueRead {
        text,
        document,
        problems,
    } in read
    {
        let is_open = |item: &Item<'_>| !item.status.is_ended() && !item.aside;
        let misread = |problem: &&Problem| matches!(problem.code, "odd-box" | "plain-list");
        let mut misread = problems.iter().filter(misread);
        let Some(first) = misread
            .next()
            .filter(|_| !document.items().iter().any(is_open))
        else {
            continue;
        };
        let line = Position::of(&text.content, first.span.start).line;
        let more = match misread.count() {
            0 => String::new(),
            more => format!(", and {} like it", format::count(more, "line")),
        };
        let (message, hint) = (format::words(&first.message), &first.hint);
        context.out.note(format!(
            "{}:{line}: {message}{more}
hint: {hint}",
            text.queue.id
        ));
        is_any = true;
    }
    is_any
}

/// Prints the keys in titles of open items that are not read as such, because of a typo or a wrong value.
pub(super) fn tell_keys(context: &Context, read: &[QueueRead<'_>]) {
    for QueueRead {
        text,
        document,
        problems,
    } in read
    {
        let is_of_open = |problem: &Problem| {
            let mut items = document.items().iter();
            items.any(|item| !item.status.is_ended() && item.span.contains(&problem.span.start))
        };
        let is_key = |problem: &&Problem| {
            matches!(problem.code, "unknown-key" | "wrong-type")
                && problem.severity == Severity::Warning
                && is_of_open(problem)
        };
        let mut keys = problems.iter().filter(is_key);
        let Some(first) = keys.next() else {
            continue;
        };
        let line = Position::of(&text.content, first.span.start).line;
        let more = match keys.count() {
            0 => String::new(),
            more => format!("; {more} more: tavern check {}", quoted(&text.queue.id)),
        };
        let (message, hint) = (format::words(&first.message), &first.hint);
        let id = &text.queue.id;
        context
            .out
            .note(format!("{id}:{line}: {message}; {hint}{more}"));
    }
}
