//! Lines that were probably meant as items but are not, in a queue without other open items.

use tavern_core::document::Item;
use tavern_core::problem::{Position, Problem};

use super::overview::queue_read::QueueRead;
use super::{Context, human};

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
