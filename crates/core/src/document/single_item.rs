//! Reads one item by itself, also after a change, in place of a long document where the item alone is enough.

use std::ops::Range;

use super::reader::{parse, read, read_plain};
use super::{Document, Item};
use crate::front::Front;
use crate::task::{Status, Task, TaskId};
use crate::text::{Edit, apply, apply_within};

/// An item as it reads after edits of its document.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub block: String,
    pub task: Task,
}

/// Parses the text of one item, under its queue's front matter if it is plain.
pub fn parse_alone<'t>(text: &'t str, front: &Front) -> Document<'t> {
    read_plain(text, front).unwrap_or_else(|| read(text).0)
}

impl Document<'_> {
    /// Returns the result of `edits`: those of [`Document::change`] for `item`, or of [`Document::add`] for
    /// none. `None` if the changed or added item does not read as task `id` with `status`.
    /// `Document::applied` checks all other items when it makes the edits.
    pub fn written(
        &self,
        item: Option<&Item<'_>>,
        edits: &[Edit],
        id: &TaskId,
        status: Status,
    ) -> Option<Written> {
        let in_full = || {
            let text = apply(self.text, edits);
            let (after, _) = parse(&text);
            // A copy reads as before.
            let is_item = |other: &Item<'_>| item.is_some_and(|item| item.span == other.span);
            let copies = self.named(id).into_iter().filter(|other| !is_item(other));
            let copies: Vec<&str> = copies.map(|copy| self.block(copy)).collect();
            let named = after
                .named(id)
                .into_iter()
                .filter(|item| item.status == status);
            let item = named.min_by_key(|item| copies.contains(&after.block(item)))?;
            Some(Written {
                block: after.block(item).to_owned(),
                task: after.task(item, id.clone()),
            })
        };
        let plainly = self.written_alone(item, edits, id, status);
        debug_assert!(
            plainly.is_none() || plainly == in_full(),
            "{plainly:?} is not {:?}",
            in_full()
        );
        plainly.or_else(in_full)
    }

    /// Returns the result for the item from the edits alone, without reading a long document again; `None`
    /// where they are not enough.
    fn written_alone(
        &self,
        item: Option<&Item<'_>>,
        edits: &[Edit],
        id: &TaskId,
        status: Status,
    ) -> Option<Written> {
        if item.is_some_and(|item| item.nested) {
            return None;
        }
        let stays = item.filter(|item| edits.iter().all(|edit| within(&item.span, &edit.span)));
        let text = match stays {
            Some(item) => apply_within(self.block(item), item.span.start, edits),
            None => {
                let mut insertions = edits.iter().filter(|edit| !edit.text.is_empty());
                insertions
                    .next()
                    .filter(|edit| edit.span.is_empty() && insertions.next().is_none())?
                    .text
                    .clone()
            }
        };
        let alone = read_plain(&text, &self.front)?;
        let [only] = alone.items() else { return None };
        if only.id.as_ref() != Some(id) {
            return None;
        }
        // Whether it is title depends on the names in the document.
        if alone.is_prose(only) {
            return None;
        }
        // A key for the status has to be read as one.
        if only.said.status != Some(status)
            && text.contains(&format!("status: {}", status.as_str()))
        {
            return None;
        }
        Some(Written {
            block: alone.block(only).to_owned(),
            task: alone.task_as(only, id.clone(), status),
        })
    }
}

fn within(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_is_not_read_back_is_not_written() {
        let text = "- [ ] T-1: a (model: see [x)\n";
        let (document, _) = parse(text);
        let (item, id) = (&document.items()[0], "T-1".parse().expect("an ID"));
        for (at, key, is_read) in [
            ("model", "status: in_progress, ", true),
            (")", ", status: in_progress", false),
        ] {
            let edits = [Edit::insert(text.find(at).expect("it is there"), key)];
            assert_eq!(
                document
                    .written(Some(item), &edits, &id, Status::InProgress)
                    .is_some(),
                is_read,
                "{key}"
            );
        }
    }
}
