//! The keys of a title line, read.

use std::ops::Range;

use super::parenthesis::Pairs;
use super::value::{meaning, plain_of};
use super::{Entry, Key, Meaning};

/// Calls `found` for each key of the parenthesis at `span` (both parentheses included), in order.
pub fn read_parenthesis<'t>(text: &'t str, span: Range<usize>, found: &mut dyn FnMut(Entry<'t>)) {
    for pair in Pairs::new(text, span.start + 1..span.end - 1) {
        let name = &text[pair.name.clone()];
        let meaning = match Key::named(name) {
            Some(key) => meaning(key, plain_of(&text[pair.value.clone()])),
            None => Meaning::Unknown,
        };
        found(Entry { name, at: pair.name.start, value: pair.value, meaning });
    }
}
