//! Lines that were likely meant as items and are none, of a list in which nothing else is to be done.

use tavern_core::document::Item;
use tavern_core::problem::{Position, Problem};

use super::overview::queue_read::QueueRead;
use super::{Context, human};

/// Tells of each of the queues without an open item how many such lines it has, where, and how they become items. Returns whether
/// there are any.
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
            more => format!(", and {} like it", human::count(more, "line")),
        };
        let (message, hint) = (human::words(&first.message), &first.hint);
        context.out.note(format!(
            "{}:{line}: {message}{more}
hint: {hint}",
            text.queue.id
        ));
        is_any = true;
    }
    is_any
}
