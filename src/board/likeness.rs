//! How much of two texts is the same, from 0 (nothing) to 1 (all).
//!
//! All comparisons go through numbers, so that the diff's algorithms are in a program once and not once a type.

use std::collections::HashMap;
use std::hash::Hash;

use similar::{Algorithm, DiffOp, capture_diff_slices, diff_ratio};

/// Line by line.
pub fn of_lines(one: &str, other: &str) -> f32 {
    of(one.split_inclusive('\n'), other.split_inclusive('\n'))
}

/// Word by word; what is between words counts as one.
pub fn of_words(one: &str, other: &str) -> f32 {
    of(words(one), words(other))
}

/// Letter by letter.
pub fn of_chars(one: &str, other: &str) -> f32 {
    of(one.chars(), other.chars())
}

fn of<T: Eq + Hash>(one: impl Iterator<Item = T>, other: impl Iterator<Item = T>) -> f32 {
    let mut numbers = HashMap::new();
    let (one, other) = (numbered(&mut numbers, one), numbered(&mut numbers, other));
    diff_ratio(&operations(Algorithm::Myers, &one, &other), one.len(), other.len())
}

/// The same number for the same thing.
pub(super) fn numbered<T: Eq + Hash>(numbers: &mut HashMap<T, usize>, things: impl Iterator<Item = T>) -> Vec<usize> {
    let number = |thing| {
        let next = numbers.len();
        *numbers.entry(thing).or_insert(next)
    };
    things.map(number).collect()
}

/// What makes `other` of `one`.
pub(super) fn operations(algorithm: Algorithm, one: &[usize], other: &[usize]) -> Vec<DiffOp> {
    capture_diff_slices(algorithm, one, other)
}

/// Words and the blanks between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_blank = rest.chars().next()?.is_whitespace();
        let end = rest.find(|char: char| char.is_whitespace() != is_blank).unwrap_or(rest.len());
        let word;
        (word, rest) = rest.split_at(end);
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use similar::TextDiff;

    use super::*;

    #[test]
    fn it_is_that_of_the_library_over_texts() {
        let texts =
            ["", "a", "foo    bar baz\n\n  aha", "foo bar\nbaz aha\n", "fo\u{f6} bar\n", "- [ ] T-1: Tee kochen\n"];
        for one in texts {
            for other in texts {
                let told = [of_lines(one, other), of_words(one, other), of_chars(one, other)];
                let expected = [
                    TextDiff::from_lines(one, other).ratio(),
                    TextDiff::from_words(one, other).ratio(),
                    TextDiff::from_chars(one, other).ratio(),
                ];
                assert_eq!(told.map(f32::to_bits), expected.map(f32::to_bits), "{one:?} and {other:?}");
            }
        }
    }
}
