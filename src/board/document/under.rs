//! Where items stand: one in another, and under headings.

use std::ops::Range;

use super::{Item, Under};
use crate::board::lane::LaneKind;
use crate::board::markup;
use crate::board::problem::Problem;

/// The item that has the text at `at`, and not in a part of it.
pub(super) fn innermost<'i, 't>(items: &'i [Item<'t>], at: usize) -> Option<&'i Item<'t>> {
    let last = items.partition_point(|item| item.span.start <= at).checked_sub(1);
    let mut around = std::iter::successors(last.map(|last| &items[last]), |item| Some(&items[item.within?]));
    around.find(|item| at < item.span.end)
}

/// Headings that are no lanes, with the indices of the items right under each.
pub(super) fn sections(
    headings: impl Iterator<Item = Range<usize>>,
    items: &[Item<'_>],
    under: &[Option<Under>],
) -> Vec<(Range<usize>, Vec<usize>)> {
    let mut sections: Vec<_> = headings.map(|heading| (heading, Vec::new())).collect();
    for (index, under) in under.iter().enumerate().filter(|(index, _)| items[*index].within.is_none()) {
        if let Some(Under::Other { number, .. }) = under {
            sections[*number].1.push(index);
        }
    }
    sections
}

/// A heading that is no lane, and how many items are right under it.
pub(super) struct Other {
    pub heading: Range<usize>,
    pub items: usize,
}

/// That the items under it are not worked, of a document with lanes.
pub(super) fn unknown_lane(text: &str, other: &Other) -> Problem {
    let span = markup::trimmed(text, other.heading.clone());
    let name: String = markup::heading_text(text, other.heading.clone()).chars().take(80).collect();
    let count = other.items;
    let things = if count == 1 { "the item under it is".to_owned() } else { format!("the {count} items under it are") };
    let message = format!("`{name}` is not a lane, so {things} not worked");
    if let Some(near) = LaneKind::nearest(&name) {
        return Problem::error("unknown-lane", span, message, format!("did you mean `{}`?", near.name()));
    }
    let names = LaneKind::ALL.map(LaneKind::name).join(", ");
    let how = "to have them worked move them under one, or make this heading deeper than its lane's";
    Problem::warning("unknown-lane", span, message, format!("lanes are {names}; {how}"))
}
