//! Parses terminal input to keys. Pure: it reads nothing itself, so another program with the terminal loses
//! no keys.

/// A key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// A character of pasted text, which is never a command.
    Pasted(char),
    /// With Ctrl held.
    Control(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    Delete,
    PageUp,
    PageDown,
    Home,
    End,
    /// A key without a function.
    Other,
    /// Pasted text follows.
    PasteBegins,
    PasteEnds,
}

const ESC: u8 = 0x1b;

/// The maximal length of an escape sequence.
const MOST: usize = 32;

/// The bytes of an incomplete key.
#[derive(Debug, Default)]
pub struct KeyReader {
    pending: Vec<u8>,
    is_pasted: bool,
}

impl KeyReader {
    /// Returns the keys that `bytes` complete.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = first(&self.pending) {
            self.pending.drain(..length);
            match key {
                Key::PasteBegins => self.is_pasted = true,
                Key::PasteEnds => self.is_pasted = false,
                Key::Char(c) if self.is_pasted => keys.push(Key::Pasted(c)),
                // A pasted line end must not submit.
                Key::Enter | Key::Other if self.is_pasted => keys.push(Key::Pasted(' ')),
                _ if self.is_pasted => {}
                key => keys.push(key),
            }
        }
        keys
    }

    /// Returns true if more bytes may follow: Escape alone, or the start of another key.
    pub fn is_unfinished(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Ends an incomplete key after a pause.
    pub fn lapse(&mut self) -> Option<Key> {
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [] => None,
            [ESC] => Some(Key::Escape),
            _ => Some(Key::Other),
        }
    }
}

/// Returns the first key and its length, if it is complete.
fn first(bytes: &[u8]) -> Option<(Key, usize)> {
    match *bytes {
        [] | [ESC] => None,
        [ESC, b'[' | b'O', ref rest @ ..] => sequence(rest).map(|(key, length)| (key, length + 2)),
        // Pressed twice, or with Alt held.
        [ESC, ESC, ..] => Some((Key::Escape, 1)),
        [ESC, ..] => Some((Key::Other, 2)),
        [b'\r' | b'\n', ..] => Some((Key::Enter, 1)),
        [0x7f | 0x08, ..] => Some((Key::Backspace, 1)),
        [b'\t', ..] => Some((Key::Other, 1)),
        [0, ..] => Some((Key::Other, 1)),
        [byte @ 1..=26, ..] => Some((Key::Control(char::from(byte - 1 + b'a')), 1)),
        [0..0x20, ..] => Some((Key::Other, 1)),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Option<(Key, usize)> {
    let start = &bytes[..bytes.len().min(4)];
    let valid = match str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        // The rest of the character may follow.
        Err(error) if error.error_len().is_none() => return None,
        Err(error) => return Some((Key::Other, error.error_len().unwrap_or(1))),
    };
    valid.chars().next().map(|c| (Key::Char(c), c.len_utf8()))
}

/// Parses the bytes after `ESC [` or `ESC O`: parameters, and a final byte.
fn sequence(rest: &[u8]) -> Option<(Key, usize)> {
    let Some(end) = rest
        .iter()
        .take(MOST)
        .position(|byte| (0x40..=0x7e).contains(byte))
    else {
        return (rest.len() >= MOST).then_some((Key::Other, MOST));
    };
    let key = match (&rest[..end], rest[end]) {
        (_, b'A') => Key::Up,
        (_, b'B') => Key::Down,
        (_, b'C') => Key::Right,
        (_, b'D') => Key::Left,
        (b"3", b'~') => Key::Delete,
        (_, b'H') | (b"1" | b"7", b'~') => Key::Home,
        (_, b'F') | (b"4" | b"8", b'~') => Key::End,
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        ([], b'M') => Key::Enter,
        (b"200", b'~') => Key::PasteBegins,
        (b"201", b'~') => Key::PasteEnds,
        _ => Key::Other,
    };
    Some((key, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, proptest};

    #[test]
    fn keys_are_read_also_in_parts() {
        let rows: [(&[&[u8]], &[Key]); 10] = [
            (
                &[b"\x1b[200~y\r", b"q\x1b[201~y"],
                &[
                    Key::Pasted('y'),
                    Key::Pasted(' '),
                    Key::Pasted('q'),
                    Key::Char('y'),
                ],
            ),
            (&[b"a\r"], &[Key::Char('a'), Key::Enter]),
            (
                &[b"\x1b[D\x1bOC\x1b[3~\x1b[1;5D"],
                &[Key::Left, Key::Right, Key::Delete, Key::Left],
            ),
            (
                &[b"\x1b[A\x1bOB\x1b[5~\x1b[1;5H"],
                &[Key::Up, Key::Down, Key::PageUp, Key::Home],
            ),
            (&[b"\x1b", b"[", b"B"], &[Key::Down]),
            (&["ä漢".as_bytes()], &[Key::Char('ä'), Key::Char('漢')]),
            (
                &[&"漢".as_bytes()[..1], &"漢".as_bytes()[1..]],
                &[Key::Char('漢')],
            ),
            (&[b"\x03\x1a"], &[Key::Control('c'), Key::Control('z')]),
            (&[b"\xff\x7f"], &[Key::Other, Key::Backspace]),
            (
                &[b"\x1bx\x1b[99xy"],
                &[Key::Other, Key::Other, Key::Char('y')],
            ),
        ];
        for (parts, expected) in rows {
            let mut reader = KeyReader::default();
            let keys: Vec<Key> = parts.iter().flat_map(|part| reader.read(part)).collect();
            assert_eq!(keys, expected, "{parts:?}");
            assert!(!reader.is_unfinished());
        }
    }

    #[test]
    fn escape_is_known_when_nothing_follows() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b"), []);
        assert!(reader.is_unfinished());
        assert_eq!(reader.lapse(), Some(Key::Escape));
        assert_eq!(reader.lapse(), None);
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_read_to_its_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = KeyReader::default();
            reader.read(&bytes);
            assert!(reader.pending.len() <= MOST + 2);
        }
    }
}
