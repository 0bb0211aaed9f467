//! Lines that their owner has taken from the agents by a mark in the box, such as `[-]`: no items, but of the
//! same form.

use std::ops::Range;

use crate::document::parse;
use crate::merge::bare;
use crate::task::TaskId;
use crate::text::{Edit, apply};

/// A line that would be an item without its owner's mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedItem {
    pub id: Option<TaskId>,
    pub title: String,
    pub block: String,
    /// The mark in its box.
    pub mark: Range<usize>,
    pub start: usize,
}

impl MarkedItem {
    /// Returns all of a text.
    pub fn all(text: &str) -> Vec<MarkedItem> {
        let own: Vec<Range<usize>> = parse(text)
            .0
            .own
            .iter()
            .map(|own| own.start + 1..own.end - 1)
            .collect();
        if own.is_empty() {
            return Vec::new();
        }
        let opened = apply(
            text,
            &own.iter()
                .map(|mark| Edit::replace(mark.clone(), " "))
                .collect::<Vec<_>>(),
        );
        let (document, _) = parse(&opened);
        let found = own.into_iter().filter_map(|mark| {
            let item = document
                .items()
                .iter()
                .find(|item| item.box_char == mark.start && !item.nested)?;
            let (id, title) = (item.id.clone(), document.title(item).to_owned());
            Some(MarkedItem {
                id,
                title,
                block: text[item.span.clone()].to_owned(),
                mark,
                start: item.span.start,
            })
        });
        found.collect()
    }

    /// Returns those of `text` that are not in `before`.
    pub fn new_in(text: &str, before: &str) -> Vec<MarkedItem> {
        let mut all = MarkedItem::all(text);
        let known = if all.is_empty() {
            Vec::new()
        } else {
            MarkedItem::all(before)
        };
        for known in known {
            let is_it = |marked: &MarkedItem| bare(&marked.block) == bare(&known.block);
            all.iter().position(is_it).map(|at| all.remove(at));
        }
        all
    }

    /// Returns true if it may be the item with that ID and title, now marked.
    pub fn may_be(&self, id: Option<&TaskId>, title: &str) -> bool {
        self.id
            .as_ref()
            .map_or(self.title == title, |own| id == Some(own))
    }
}
