//! Keys where none are read, such as in the middle of a title, or spelt otherwise.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::Key;
use super::pairs::{Pair, Pairs, behind_colon, skip_blanks, value_end};
use super::value::takes;

const BRACKETS: [(char, char); 4] = [('(', ')'), ('[', ']'), ('{', '}'), ('（', '）')];

/// Maximum bytes of a possible key, and of its value.
const LONGEST: usize = 32;
const LONGEST_VALUE: usize = 1 << 10;

/// Maximum keys of a text that are checked.
const MOST: usize = 100;

/// A guarding key.
pub struct Misplaced<'w> {
    pub name: Range<usize>,
    pub key: Key,
    /// Whether it names items that wait for this one.
    pub is_inverse: bool,
    /// The value of `after`.
    pub needed: Option<&'w str>,
    /// Whether it is a form that occurs in prose, too: `depends on Build`.
    pub is_prose: bool,
    /// Whether its brackets have only known keys.
    pub is_among_keys: bool,
}

/// Returns the guarding keys with a possible value in brackets of `words` that open before `until`. Code and
/// links don't count.
pub fn misplaced_guards(words: &str, until: usize) -> Vec<Misplaced<'_>> {
    let mut open: Vec<(usize, char)> = Vec::new();
    // The brackets around it, and where a key may begin.
    let begin = |(at, c): (usize, char)| {
        match BRACKETS.iter().find(|(bracket, _)| *bracket == c) {
            Some((_, close)) => open.push((at, *close)),
            None if open.last().is_some_and(|(_, close)| *close == c) => drop(open.pop()),
            None if matches!(c, ',' | ';' | '|') => {}
            None => return None,
        }
        open.last()
            .filter(|(opened, _)| *opened < until)
            .map(|bracket| (*bracket, at + c.len_utf8()))
    };
    let named = |(bracket, begin)| {
        let stated = stated(words, begin).filter(|(_, key, _)| key.is_guard())?;
        Some((bracket, stated))
    };
    let guard =
        |((opened, close), (name, key, start)): ((usize, char), (Range<usize>, Key, usize))| {
            let rest = &words[..words.floor_char_boundary(start + LONGEST_VALUE)];
            let end = rest[start..].find(close).map(|at| start + at);
            let inner = &rest[..end.unwrap_or(rest.len())];
            let value = inner[start..value_end(inner.as_bytes(), start)].trim();
            // `retry(max_attempts: 3)`, `{"after": "x"}` and `{budget: 5}` are code. `{after: x}` is not.
            let is_glued = words[opened..].starts_with(['(', '[', '{'])
                && words[..opened].ends_with(char::is_alphanumeric);
            let is_quoted = words[name.clone()].starts_with(['"', '\'']);
            let is_code =
                is_glued || words[opened..].starts_with('{') && (is_quoted || key != Key::After);
            let says = || key == Key::After || takes(key, value);
            if is_code || !says() {
                return None;
            }
            let is_prose = Key::is_prose(&words[name.clone()])
                || behind_colon(words.as_bytes(), name.end).is_none();
            let first = opened + words[opened..].chars().next().map_or(0, char::len_utf8);
            let mut pairs = Pairs::new(inner, first..inner.len());
            let is_known = |pair: Pair| Key::named(&inner[pair.name]).is_some();
            let is_among_keys = end.is_some() && pairs.by_ref().all(is_known) && !pairs.is_broken;
            Some(Misplaced {
                is_inverse: Key::is_inverse(&words[name.clone()]),
                name,
                key,
                needed: (key == Key::After).then_some(value),
                is_prose,
                is_among_keys,
            })
        };
    let mut found: Vec<Misplaced<'_>> = words
        .char_indices()
        .filter_map(begin)
        .filter_map(named)
        .take(MOST)
        .filter_map(guard)
        .collect();
    if !found.is_empty() {
        let quoted = quoted(words);
        found.retain(|it| !quoted.iter().any(|span| span.contains(&it.name.start)));
    }
    found
}

/// Returns the key stated at `begin`: the range of its name, and the start of its value. Dependencies are
/// also stated without a colon, or with `=`.
fn stated(words: &str, begin: usize) -> Option<(Range<usize>, Key, usize)> {
    let bytes = words.as_bytes();
    let start = skip_blanks(bytes, begin);
    let is_name = |byte: &&u8| {
        byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_' | b'-' | b'"' | b'\'')
    };
    let length = bytes[start..]
        .iter()
        .take(LONGEST)
        .take_while(is_name)
        .count();
    let named = words[start..start + length].trim_end();
    let end = start + named.len();
    // `after [[Build]]`: no letter follows.
    let is_apart = length > named.len();
    let sign = skip_blanks(bytes, end);
    let is_equated = bytes.get(sign) == Some(&b'=');
    let is_spelt = || Key::named(named).is_some_and(|key| !matches!(key, Key::After | Key::Needs));
    let equated = (is_equated && is_spelt()).then_some(sign + 1);
    if let Some(value) = behind_colon(bytes, end).or(equated) {
        return Some((start..end, meant(named)?, skip_blanks(bytes, value)));
    }
    let ends = named
        .match_indices(' ')
        .take(2)
        .map(|(at, _)| start + at)
        .chain((is_equated || is_apart).then_some(end));
    // No word of a sentence has an underscore.
    let key_to = |end: usize| match meant(&words[start..end])? {
        Key::After | Key::Needs => Some(Key::After),
        key => Some(key).filter(|_| is_spelt_as_key(&words[start..end])),
    };
    let (end, key) = ends.filter_map(|end| Some((end, key_to(end)?))).last()?;
    Some((start..end, key, end + 1))
}

/// Returns the guarding keys with a colon and a possible value outside of brackets of `words`. Of those
/// without an underscore only `after` counts.
pub fn guards_in_words(words: &str) -> Vec<Misplaced<'_>> {
    let (mut depth, mut found) = (0usize, Vec::new());
    if !words.contains(':') {
        return found;
    }
    for (at, c) in words.char_indices() {
        match c {
            '(' | '[' | '{' | '（' => depth += 1,
            ')' | ']' | '}' | '）' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && found.len() < MOST => found.extend(guard_before(words, at)),
            _ => {}
        }
    }
    if !found.is_empty() {
        let quoted = quoted(words);
        found.retain(|it: &Misplaced<'_>| !quoted.iter().any(|span| span.contains(&it.name.start)));
    }
    found
}

/// Returns the guarding key before that colon.
fn guard_before(words: &str, colon: usize) -> Option<Misplaced<'_>> {
    let start = skip_blanks(words.as_bytes(), behind_colon(words.as_bytes(), colon)?);
    let rest = &words[start..words.floor_char_boundary(start + LONGEST_VALUE)];
    let value = rest.split('|').next().unwrap_or(rest).trim();
    let from = words.ceil_char_boundary(colon.saturating_sub(LONGEST));
    let last = words[from..colon]
        .rmatch_indices(' ')
        .map(|(at, _)| from + at + 1);
    let begins = last.chain((from == 0).then_some(0)).take(2);
    let key_from = |begin: usize| {
        let name = words[begin..colon].trim_matches(['*', '_']);
        let key = if is_spelt_as_key(name) {
            Key::named(name).filter(|key| key.is_guard())?
        } else {
            let is_after = Key::may_begin_with(*name.as_bytes().first()?)
                && Key::may_begin_sentence(name.split(' ').next()?)
                && !Key::is_inverse(name)
                && matches!(Key::meant(name), Some(Key::After | Key::Needs));
            is_after.then_some(Key::After)?
        };
        let begin = begin + words[begin..].find(name)?;
        (key == Key::After || takes(key, value)).then_some((begin..begin + name.len(), key))
    };
    let (name, key) = begins.filter_map(key_from).last()?;
    Some(Misplaced {
        name,
        key,
        is_inverse: false,
        needed: (key == Key::After).then_some(value),
        is_prose: true,
        is_among_keys: false,
    })
}

fn is_spelt_as_key(name: &str) -> bool {
    name.contains('_') && Key::named(name).is_some()
}

/// Returns the key that `name` means, the inverse of `after` included.
fn meant(name: &str) -> Option<Key> {
    Key::meant(name).or_else(|| Key::is_inverse(name).then_some(Key::After))
}

/// Returns the code spans, formulas, links, images and tags of a title.
fn quoted(words: &str) -> Vec<Range<usize>> {
    // A word in front keeps it from beginning a block.
    const BEFORE: &str = "x ";
    let line = format!("{BEFORE}{words}");
    let is_quoted = |event: &Event<'_>| {
        use Event::{Code, DisplayMath, InlineHtml, InlineMath, Start};
        matches!(
            event,
            Code(_)
                | InlineMath(_)
                | DisplayMath(_)
                | InlineHtml(_)
                | Start(Tag::Link { .. } | Tag::Image { .. })
        )
    };
    let spans = Parser::new_ext(&line, Options::ENABLE_MATH)
        .into_offset_iter()
        .filter(|(event, _)| is_quoted(event));
    spans
        .map(|(_, span)| span.start - BEFORE.len()..span.end - BEFORE.len())
        .collect()
}
