//! Keys in the middle of a title, where none are read.

use std::ops::Range;

use super::pairs::Pairs;
use super::value::{meaning, plain_of};
use super::{Field, Key, Meaning};

const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('（', '）')];

/// The keys that guard the work and stand, with a value that they can have, in brackets of `words` that open before `until`: where they
/// are, and what they say.
pub fn misplaced_guards(words: &str, until: usize) -> Vec<(Range<usize>, Field<'_>)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    // Where a key may begin, and what closes the brackets around it.
    let begin = |(at, c): (usize, char)| {
        match BRACKETS.iter().find(|(bracket, _)| *bracket == c) {
            Some((_, close)) => open.push((at, *close)),
            None if open.last().is_some_and(|(_, close)| *close == c) => drop(open.pop()),
            None if matches!(c, ',' | ';') => {}
            None => return None,
        }
        open.last().filter(|(opened, _)| *opened < until).map(|(_, close)| (at + c.len_utf8(), *close))
    };
    let guard = |(begin, close): (usize, char)| {
        let name = Pairs::new(words, begin..words.len()).name()?;
        let key = Key::meant(&words[name.clone()]).filter(|key| key.is_guard())?;
        let end = words[name.end..].find(close).map_or(words.len(), |at| name.end + at);
        let value = Pairs::new(words, begin..end).next()?.value;
        match meaning(key.as_str(), || plain_of(&words[value])) {
            Meaning::Known(_, field) => Some((name, field)),
            _ => None,
        }
    };
    words.char_indices().filter_map(begin).filter_map(guard).collect()
}
