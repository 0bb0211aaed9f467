//! The keys of a title line, read.

use std::ops::Range;

use super::KeyEntry;
use super::pairs::Pairs;
use super::value::{meaning, plain_of};

/// Calls `found` for each key of the parenthesis at `span` (with its parentheses and backticks), in order.
pub fn read_parenthesis<'t>(
    text: &'t str,
    span: Range<usize>,
    found: &mut dyn FnMut(KeyEntry<'t>),
) {
    for pair in Pairs::of_parenthesis(text, span) {
        let name = &text[pair.name.clone()];
        let meaning = meaning(name, || plain_of(&text[pair.value.clone()]));
        found(KeyEntry {
            name,
            at: pair.name.start,
            value: pair.value,
            meaning,
        });
    }
}
