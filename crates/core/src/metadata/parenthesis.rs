//! Decides whether the parenthesis at the end of a title line is metadata.

use std::ops::Range;

use super::pairs::{Pair, Pairs, begins_value, closing_quote, key_at, skip_blanks};
use super::value::{meaning, plain_of};
use super::{Key, Meaning, Owner, Shape};

/// A parenthesis that looks like metadata but is part of the title because of one of its keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Unread {
    pub name: Range<usize>,
    pub why: Why,
}

/// Why a parenthesis can't be read as keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is a key of an item's state, which no text may have.
    NotTyped,
    /// The key can't have this value.
    WrongValue,
    /// A parenthesis in its value is not closed.
    Unclosed,
    /// The key is misspelt, and the item must not be worked without it.
    ReliedOn,
    /// The key is misspelt.
    Misspelt,
}

/// Finds the metadata parenthesis at the end of `line` (a title line from behind its ID, without its line
/// end). The range includes both parentheses, and backticks around them.
///
/// # Errors
/// Returns the first key of one that would be metadata if that key were known, had another value, or if the
/// parentheses in its values were quoted. In a line without an ID an answer is prose, as there is no
/// question.
pub fn find_parenthesis(line: &str, by: Owner) -> Result<Option<Range<usize>>, Unread> {
    let line = line.trim_end();
    let end = line.trim_end_matches('`').len();
    if !line[..end].ends_with(')') {
        return Ok(None);
    }
    match last_parenthesis(line, end, by) {
        Ok(None) => match key_of_unclosed(line, end, by) {
            Some(name) => Err(Unread {
                name,
                why: Why::Unclosed,
            }),
            None => Ok(None),
        },
        found => found,
    }
}

/// The same on a line of its own, where Tavern puts it. `under` is the text below a title line, and the range
/// is in `under`.
pub fn find_parenthesis_below(under: &str, by: Owner) -> Option<Range<usize>> {
    let line = under[..under.find(['\n', '\r']).unwrap_or(under.len())].trim();
    if !line.starts_with(['(', '`']) || find_parenthesis(line, by) != Ok(Some(0..line.len())) {
        return None;
    }
    if by == Owner::Person {
        return None;
    }
    let start = under.len() - under.trim_start().len();
    Some(start..start + line.len())
}

/// Returns true if the pair makes its parenthesis metadata. A wrong value does, too, if its author relies on
/// the key, as the item must not be worked without it. So does an open quote or bracket behind an ID, as it
/// may hold other keys.
fn counts(line: &str, pair: &Pair, by: Owner) -> bool {
    let (name, value) = (&line[pair.name.clone()], &line[pair.value.clone()]);
    let Some(key) = Key::named(name).filter(|key| may_stand(*key, by)) else {
        return false;
    };
    let is_wrong = || matches!(meaning(name, || plain_of(value)), Meaning::Wrong(_));
    let is_open = || by == Owner::State && plain_of(value).is_none();
    key.is_guard() || key.nearly_takes(value) || !is_wrong() || is_open()
}

fn may_stand(key: Key, by: Owner) -> bool {
    key.may_be_typed() || by == Owner::State && key == Key::Answer
}

/// Returns the parenthesis that closes at `end`, if it is metadata. Only the backticks of a code span are behind it.
fn last_parenthesis(line: &str, end: usize, by: Owner) -> Result<Option<Range<usize>>, Unread> {
    let Some(open) = matching_open(line, end) else {
        return Ok(None);
    };
    let Some(before) = line[..open].strip_suffix(&line[end..]) else {
        return Ok(None);
    };
    let span = before.len()..line.len();
    let is_apart = before.is_empty() || before.ends_with([' ', '\t', '\n', '\r']);
    // Only Tavern writes it as code, behind an ID; a person's code is prose.
    let is_code = || by == Owner::State && !has_ticks(&line[open..end], line.len() - end);
    if !is_apart || end < line.len() && !is_code() {
        return Ok(None);
    }
    let mut pairs = Pairs::new(line, open + 1..end - 1);
    let (mut is_any, mut state, mut unread) = (false, None, None::<Unread>);
    for pair in pairs.by_ref() {
        let name = &line[pair.name.clone()];
        if counts(line, &pair, by) {
            is_any = true;
            continue;
        }
        if let Some(key) = Key::named(name).filter(|key| !may_stand(*key, by)) {
            // A number or a flag has no words that could be lost.
            if !matches!(key.shape(), Shape::Count | Shape::Flag) {
                state = state.or(Some(Unread {
                    name: pair.name,
                    why: Why::NotTyped,
                }));
            }
            continue;
        }
        // Whether it names an item is not known here.
        let is_prose = Key::is_prose(name) && (by == Owner::Person || !Key::is_of_programs(name));
        // Tavern does not misspell the keys that only it writes.
        let is_meant =
            |near: &Key| may_stand(*near, by) && (near.as_str() == name || near.may_be_typed());
        let Some(near) = Key::nearest(name).filter(|near| !is_prose && is_meant(near)) else {
            continue;
        };
        // A status may keep the item from being worked, too.
        let is_relied_on =
            near.is_guard() || near == Key::Status && near.nearly_takes(&line[pair.value]);
        let why = match Key::named(name) {
            Some(_) => Why::WrongValue,
            None if Key::is_mistyped(name) && is_relied_on => Why::ReliedOn,
            None => Why::Misspelt,
        };
        if unread.is_none() || why == Why::ReliedOn {
            unread = Some(Unread {
                name: pair.name,
                why,
            });
        }
    }
    if pairs.is_broken {
        return Ok(None);
    }
    // A key of Tavern's state that only a person can have written is prose, and would be lost among keys.
    match (is_any, state, unread) {
        (true, Some(unread), _) | (false, _, Some(unread)) => Err(unread),
        (true, None, _) => Ok(Some(span)),
        (false, _, None) => Ok(None),
    }
}

/// Returns true if exactly this number of backticks stands somewhere in the text.
fn has_ticks(text: &str, count: usize) -> bool {
    text.split(|c| c != '`').any(|ticks| ticks.len() == count)
}

/// Returns where the parenthesis opens that closes just before `end`. In parentheses that begin with a key, a
/// quote counts at the start of a value.
fn matching_open(line: &str, end: usize) -> Option<usize> {
    let bytes = &line.as_bytes()[..end - 1];
    // The common case: nothing in between needs a closer look.
    let open = bytes
        .iter()
        .rposition(|byte| matches!(byte, b'(' | b')' | b'"' | b'\''))?;
    if bytes[open] == b'(' {
        return Some(open);
    }
    unclosed(bytes).0.pop().map(|(open, _)| open)
}

/// Returns the known key at the start of a parenthesis that another one in its values keeps from closing at `end`.
fn key_of_unclosed(line: &str, end: usize, by: Owner) -> Option<Range<usize>> {
    let bytes = &line.as_bytes()[..end - 1];
    let (mut opened, closed) = unclosed(bytes);
    // The last one is closed at the end; if there is none, an earlier one was closed too soon.
    let outer = if opened.pop().is_some() {
        opened
    } else {
        closed.into_iter().collect()
    };
    outer
        .into_iter()
        .filter(|(open, _)| *open == 0 || matches!(bytes[open - 1], b' ' | b'\t'))
        .find_map(|(open, _)| {
            let is_key = |key: Key| by == Owner::State && may_stand(key, by) || key.is_guard();
            key_at(bytes, skip_blanks(bytes, open + 1))
                .filter(|name| Key::named(&line[name.clone()]).is_some_and(is_key))
        })
}

/// Start of a parenthesis, and whether it or one around it begins with a key.
type Opened = (usize, bool);

/// Returns the parentheses that are open at the end, and the last one that was closed.
fn unclosed(bytes: &[u8]) -> (Vec<Opened>, Option<Opened>) {
    let mut opened: Vec<Opened> = Vec::new();
    let mut closed = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => {
                let has_keys = opened.last().is_some_and(|(_, has_keys)| *has_keys)
                    || key_at(bytes, skip_blanks(bytes, at + 1)).is_some();
                opened.push((at, has_keys));
            }
            b')' => closed = opened.pop().or(closed),
            b'"' | b'\''
                if opened.last().is_some_and(|(_, has_keys)| *has_keys)
                    && begins_value(&bytes[..at]) =>
            {
                if let Some(close) = closing_quote(bytes, at) {
                    at = close;
                }
            }
            _ => {}
        }
        at += 1;
    }
    (opened, closed)
}
