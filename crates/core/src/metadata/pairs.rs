//! Scans bytes for `key: value` pairs between commas. A `;` or `|` before a known key is a comma, too.

use std::ops::Range;

use super::Key;

/// `key: value` pairs between commas. A part without a key belongs to the value before it (`after: T-1, T-2`).
pub(super) struct Pairs<'t> {
    bytes: &'t [u8],
    at: usize,
    is_first: bool,
    is_done: bool,
    /// Whether the text doesn't begin with a key, so that it has no pairs.
    pub(super) is_broken: bool,
}

pub(super) struct Pair {
    pub(super) name: Range<usize>,
    /// Without surrounding blanks; may be empty.
    pub(super) value: Range<usize>,
}

impl<'t> Pairs<'t> {
    pub(super) fn new(text: &'t str, span: Range<usize>) -> Pairs<'t> {
        Pairs {
            bytes: &text.as_bytes()[..span.end],
            at: span.start,
            is_first: true,
            is_done: false,
            is_broken: false,
        }
    }

    /// Returns the pairs of the parenthesis at `span`.
    pub(super) fn of_parenthesis(text: &'t str, span: Range<usize>) -> Pairs<'t> {
        Pairs::new(text, inside(text, span))
    }

    /// Returns the name of the next one.
    pub(super) fn name(&self) -> Option<Range<usize>> {
        key_at(self.bytes, skip_blanks(self.bytes, self.at))
    }
}

impl Iterator for Pairs<'_> {
    type Item = Pair;

    fn next(&mut self) -> Option<Pair> {
        if self.is_done {
            return None;
        }
        let bytes = self.bytes;
        let Some(name) = self.name() else {
            // Behind the first pair this is a trailing comma.
            self.is_broken = self.is_first;
            self.is_done = true;
            return None;
        };
        self.is_first = false;
        let start = skip_blanks(bytes, behind_colon(bytes, name.end).unwrap_or(name.end));
        let mut end = value_end(bytes, start);
        self.is_done = end == bytes.len();
        self.at = end + 1;
        while end > start && matches!(bytes[end - 1], b' ' | b'\t') {
            end -= 1;
        }
        Some(Pair {
            name,
            value: start..end,
        })
    }
}

/// Returns the end of the value that begins at `start`: at a comma before a key or the end, at a `;` or `|`
/// before a known key, else at the end.
pub(super) fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0usize;
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' if begins_value(&bytes[start..at]) => {
                if let Some(close) = closing_quote(bytes, at) {
                    at = close;
                }
            }
            b'[' | b'{' | b'(' => depth += 1,
            b']' | b'}' | b')' => depth = depth.saturating_sub(1),
            b',' | b';' | b'|' if depth == 0 => {
                let next = skip_blanks(bytes, at + 1);
                let is_comma = bytes[at] == b',';
                let is_known = |name| {
                    std::str::from_utf8(&bytes[name]).is_ok_and(|name| Key::meant(name).is_some())
                };
                if is_comma && next == bytes.len()
                    || key_at(bytes, next).is_some_and(|key| is_comma || is_known(key))
                {
                    return at;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Returns true if a quote behind these bytes opens a value.
pub(super) fn begins_value(before: &[u8]) -> bool {
    match before
        .iter()
        .rposition(|byte| !matches!(byte, b' ' | b'\t'))
    {
        None => true,
        Some(last) => match before[last] {
            b',' | b'[' | b'{' | b'(' => true,
            b':' => last + 1 < before.len(),
            _ => false,
        },
    }
}

/// Returns the range of the key at `start`: `[a-z_]+` before a colon with a blank or the end behind it. A
/// known key needs no blank, and may have one before its colon, or a full-width colon. Also keys are: known
/// ones with capitals or hyphens by mistake, other words for `after`, and names in quotes, which are unknown
/// with their quotes.
pub(super) fn key_at(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let is_name = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b' ');
    let end = match bytes.get(start)? {
        b'"' | b'\'' => closing_quote(bytes, start)? + 1,
        _ => {
            start
                + bytes[start..]
                    .iter()
                    .take_while(|byte| is_name(byte))
                    .count()
        }
    };
    let end = start + bytes[start..end].trim_ascii_end().len();
    let behind = behind_colon(bytes, end).filter(|_| end > start)?;
    let name = std::str::from_utf8(&bytes[start..end]).ok()?;
    let is_word = |name: &str| name.contains(|c: char| c == '-' || c.is_ascii_uppercase());
    let is_key = match bytes.get(behind) {
        _ if name.contains(' ') => Key::is_prose(name),
        None | Some(b' ' | b'\t' | b',') if behind == end + 1 => {
            name.starts_with(['"', '\'']) || !is_word(name) || Key::is_mistyped(name)
        }
        _ => Key::named(name).is_some(),
    };
    is_key.then_some(start..end)
}

/// Returns the end of the colon at `at` or behind blanks there: `:`, or the full-width one.
pub(super) fn behind_colon(bytes: &[u8], at: usize) -> Option<usize> {
    let at = skip_blanks(bytes, at);
    [":", "："]
        .iter()
        .find(|colon| bytes[at..].starts_with(colon.as_bytes()))
        .map(|colon| at + colon.len())
}

pub(super) fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && matches!(bytes[at], b' ' | b'\t') {
        at += 1;
    }
    at
}

/// Returns the quote that closes the one at `open`, if any.
pub(super) fn closing_quote(bytes: &[u8], open: usize) -> Option<usize> {
    let quote = bytes[open];
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 1,
            byte if byte == quote => {
                if quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') {
                    at += 1;
                } else {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the range between the parentheses at `span`, which may be a code span.
pub(super) fn inside(text: &str, span: Range<usize>) -> Range<usize> {
    let parenthesis = text[span.clone()].trim_matches('`');
    let ticks = (span.len() - parenthesis.len()) / 2;
    span.start + ticks + 1..span.end - ticks - 1
}
