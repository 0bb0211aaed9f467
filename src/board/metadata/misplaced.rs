//! Keys in the middle of a title, where none are read.

use std::ops::Range;

use super::pairs::{key_at, skip_blanks};
use super::value::{meaning, plain_of};
use super::{Field, Key, Meaning};

const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('（', '）')];

/// The keys that guard the work and stand in brackets of `title` with a value that they can have: where they are, and what they say.
pub fn misplaced_guards(title: &str) -> Vec<(Range<usize>, Field<'_>)> {
    let bracket =
        |(at, c)| BRACKETS.iter().find(|(open, _)| *open == c).map(|(open, close)| (at + open.len_utf8(), *close));
    let guard = |(begin, close): (usize, char)| {
        let name = key_at(title.as_bytes(), skip_blanks(title.as_bytes(), begin))?;
        let value = &title[name.end + 1..];
        let value = value[..value.find(close).unwrap_or(value.len())].trim();
        Key::named(&title[name.clone()]).filter(|key| key.is_guard())?;
        match meaning(&title[name.clone()], || plain_of(value)) {
            Meaning::Known(_, field) => Some((name, field)),
            _ => None,
        }
    };
    title.char_indices().filter_map(bracket).filter_map(guard).collect()
}
