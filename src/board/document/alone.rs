//! One item read by itself, so that a long document isn't read again for it.

use std::ops::Range;

use super::reader::{parse, read_plain};
use super::{Document, Item};
use crate::board::front;
use crate::board::task::{Status, Task, TaskId};
use crate::board::text::{Edit, apply_within};

/// Parses the text of one item, under the front matter of `queue` if it is plain.
pub fn parse_alone<'t>(text: &'t str, queue: &str) -> Document<'t> {
    let (front, _) = front::read(queue, &mut Vec::new());
    read_plain(text, front).unwrap_or_else(|| parse(text).0)
}

impl Document<'_> {
    /// What `edits` (those of [`Document::change`] or [`Document::add`]) leave of one item: its text, and what that says
    /// as task `id` with `status`. Read from the edits alone, so that a long document isn't read again for one item;
    /// `None` where they don't plainly tell. `item` is what was changed, nothing if one was added.
    pub(crate) fn written(
        &self,
        item: Option<&Item<'_>>,
        edits: &[Edit],
        id: &TaskId,
        status: Status,
    ) -> Option<(String, Task)> {
        if item.is_some_and(|item| item.nested) {
            return None;
        }
        let stays = item.filter(|item| edits.iter().all(|edit| within(&item.span, &edit.span)));
        let text = match stays {
            Some(item) => apply_within(self.block(item), item.span.start, edits),
            None => {
                let mut insertions = edits.iter().filter(|edit| !edit.text.is_empty());
                insertions.next().filter(|edit| edit.span.is_empty() && insertions.next().is_none())?.text.clone()
            }
        };
        let alone = read_plain(&text, self.front.clone())?;
        let [only] = alone.items() else { return None };
        if only.id.as_ref() != Some(id) {
            return None;
        }
        // A key that is to say the status has to be read as one.
        if only.said.status != Some(status) && text.contains(&format!("status: {}", status.as_str())) {
            return None;
        }
        Some((alone.block(only).to_owned(), alone.task_as(only, id.clone(), status)))
    }
}

fn within(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
