//! Where items stand: one in another, and under headings.

use std::ops::Range;

use super::{Item, Under};

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
