//! A text read byte by byte that records whether its end was reached: then more text may change the result.

use std::cell::Cell;

#[derive(Debug)]
pub(super) struct Text<'t> {
    bytes: &'t [u8],
    has_ended: Cell<bool>,
    last_run: Cell<(usize, usize, usize)>,
}

/// The most bytes of a value that are examined.
pub(super) const MOST: usize = 2048;

/// The most bytes of context before a position.
pub(super) const BEFORE: usize = 160;

impl<'t> Text<'t> {
    pub(super) fn new(bytes: &'t [u8]) -> Text<'t> {
        Text {
            bytes,
            has_ended: Cell::new(false),
            last_run: Cell::default(),
        }
    }

    pub(super) fn bytes(&self) -> &'t [u8] {
        self.bytes
    }

    /// Returns whether the end was reached since the last call.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.take()
    }

    pub(super) fn get(&self, at: usize) -> Option<u8> {
        let byte = self.bytes.get(at).copied();
        if byte.is_none() {
            self.has_ended.set(true);
        }
        byte
    }

    pub(super) fn has(&self, at: usize, part: impl AsRef<[u8]>) -> bool {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if rest.len() < part.as_ref().len() && part.as_ref().starts_with(rest) {
            self.has_ended.set(true);
        }
        rest.starts_with(part.as_ref())
    }

    /// Returns the end of the run of bytes that satisfy `is_part`.
    pub(super) fn run(&self, at: usize, is_part: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        if let Some(length) = rest.iter().position(|byte| !is_part(*byte)) {
            return at + length;
        }
        self.has_ended.set(true);
        at + rest.len()
    }

    /// Like `Text::run`, for at most `MOST` + 1 bytes. Many words may be followed by the same run, which is read
    /// once: runs of one kind share a `tag`.
    pub(super) fn bounded(&self, at: usize, tag: usize, is_part: impl Fn(u8) -> bool) -> usize {
        let (kind, from, known) = self.last_run.get();
        let end = if kind == tag && (from..known).contains(&at) {
            known
        } else {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let length = rest.iter().position(|byte| !is_part(*byte));
            let end = at + length.unwrap_or(rest.len());
            self.last_run.set((tag, at, end));
            end
        };
        if end - at > MOST {
            return at + MOST + 1;
        }
        if end >= self.bytes.len() {
            self.has_ended.set(true);
        }
        end
    }

    /// Like `Text::bounded`, without the dots that end a sentence.
    pub(super) fn sentence(&self, at: usize, tag: usize, is_part: impl Fn(u8) -> bool) -> usize {
        let end = self.bounded(at, tag, is_part);
        let dots = self.bytes[at.min(end)..end].iter().rev();
        end - dots.take_while(|byte| **byte == b'.').count()
    }

    /// Returns the bytes just before `at`.
    pub(super) fn before(&self, at: usize) -> &'t [u8] {
        &self.bytes[at.saturating_sub(BEFORE)..at]
    }

    /// Returns the bytes before `at` on its line.
    pub(super) fn line_before(&self, at: usize) -> &'t [u8] {
        let before = self.before(at);
        let start = before.iter().rposition(|byte| *byte == b'\n');
        &before[start.map_or(0, |start| start + 1)..]
    }

    /// Returns the text before `at` on its line, or on a line within a JSON string; empty if it is long.
    pub(super) fn margin(&self, at: usize) -> &'t [u8] {
        let line = self.line_before(at);
        let line = match line.iter().rposition(|byte| matches!(byte, b'"' | b'\\')) {
            Some(quote) if line[quote] == b'"' => &line[quote + 1..],
            Some(escape) => line.get(escape + 2..).unwrap_or_default(),
            None => line,
        };
        if line.len() <= 40 { line } else { &[] }
    }
}

/// Returns true if a token may begin here, rather than within a longer word. Escapes of JSON and URLs, and colour
/// codes, don't count as part of a word.
pub(super) fn is_apart(before: &[u8]) -> bool {
    let are_hex = |digits: &[&u8]| digits.iter().all(|digit| digit.is_ascii_hexdigit());
    match before {
        [] => true,
        [.., last] if !is_word(*last) => true,
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', one, two] if are_hex(&[one, two]) => true,
        [.., b'\\', b'u', one, two, three, four] if are_hex(&[one, two, three, four]) => true,
        [start @ .., b'm'] => {
            let is_colour = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
            let colours = start.iter().rev().take(30).take_while(is_colour).count();
            start[..start.len() - colours].ends_with(b"[")
        }
        _ => false,
    }
}

pub(super) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn is_word(byte: u8) -> bool {
    is_plain(byte) || matches!(byte, b'_' | b'-')
}

pub(super) fn is_base64(byte: u8) -> bool {
    is_plain(byte) || matches!(byte, b'+' | b'/')
}

pub(super) fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

pub(super) fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}
