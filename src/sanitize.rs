//! Untrusted text, sanitized for web pages: secrets redacted, control characters replaced. The template
//! escapes HTML.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::format;
use tavern_core::printable::is_command;
use tavern_sys::files;
use tavern_sys::secrets::redact;

/// Untrusted text, sanitized for a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Legible(String);

/// Limits of one line: characters, and bytes on the page.
const LINE: usize = 300;
const MOST_OF_LINE: usize = 900;

/// Bytes of a text that are read for one line.
const LOOKED_AT: usize = 16 << 10;

impl Legible {
    /// Returns the words in one line.
    pub fn line(words: &str) -> Legible {
        let end = words.floor_char_boundary(LOOKED_AT);
        let words = redact(&words[..end])
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let mut room = MOST_OF_LINE;
        let fits = |c: &char| {
            let left = room.checked_sub(weight(*c));
            room = left.unwrap_or_default();
            left.is_some()
        };
        let line: String = words
            .chars()
            .take(LINE)
            .take_while(fits)
            .map(shown)
            .collect();
        Legible(
            if line.chars().count() < words.chars().count() || end == LOOKED_AT {
                line + "…"
            } else {
                line
            },
        )
    }

    /// Returns the line unchanged, cut to `most` characters.
    pub fn whole_line(line: &str, most: usize) -> Legible {
        let end = line
            .char_indices()
            .nth(most)
            .map_or(line.len(), |(end, _)| end);
        // A cut could split a secret, so a little more is redacted.
        let more = line.floor_char_boundary(end + LOOKED_AT);
        let words = redact(&line[..more]);
        let shown: String = words.chars().take(most).map(shown).collect();
        Legible(if words.chars().count() > most || more < line.len() {
            shown + "…"
        } else {
            shown
        })
    }

    /// Keeps line ends.
    fn lines(text: &str) -> Legible {
        let text = text.replace("\r\n", "\n");
        Legible(
            text.chars()
                .map(|c| if c == '\n' { c } else { shown(c) })
                .collect(),
        )
    }

    /// Cuts it to so many cells.
    pub fn cut(&self, cells: usize) -> Legible {
        Legible(format::cut(&self.0, cells).into_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Legible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Replaces control characters and non-characters.
fn shown(c: char) -> char {
    let code = u32::from(c);
    let is_none = code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code);
    if is_command(c) || is_none { '·' } else { c }
}

/// Returns the bytes that a character takes on the page.
fn weight(c: char) -> usize {
    if matches!(c, '<' | '>' | '&' | '"' | '\'') {
        "&#60;".len()
    } else {
        shown(c).len_utf8()
    }
}

/// The beginning and the end of a text of any length.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    head: String,
    /// Empty if the head is the whole text.
    tail: String,
    /// The number of bytes between them.
    between: u64,
}

/// Bytes that are read at each end of a file.
const END: u64 = 64 << 10;

impl Ends {
    /// Reads the ends of a file of any length; empty if it can't be read.
    pub fn read(path: &Path) -> Ends {
        files::open(path)
            .and_then(Ends::of_file)
            .unwrap_or_default()
    }

    fn of_file(mut file: File) -> io::Result<Ends> {
        let length = file.metadata()?.len();
        let mut part = |start: u64, most: u64| -> io::Result<String> {
            file.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            (&file).take(most).read_to_end(&mut bytes)?;
            Ok(redact(&String::from_utf8_lossy(&bytes)).into_owned())
        };
        if length <= 2 * END {
            return Ok(Ends {
                head: part(0, 2 * END)?,
                ..Ends::default()
            });
        }
        Ok(Ends {
            head: part(0, END)?,
            tail: part(length - END, END)?,
            between: length - 2 * END,
        })
    }

    /// Returns the ends of a text.
    pub fn of(text: &str) -> Ends {
        let (head, tail) = (
            text.floor_char_boundary(END as usize),
            text.ceil_char_boundary(text.len().saturating_sub(END as usize)),
        );
        if head >= tail {
            return Ends {
                head: redact(text).into_owned(),
                ..Ends::default()
            };
        }
        let between = (tail - head) as u64;
        Ends {
            head: redact(&text[..head]).into_owned(),
            tail: redact(&text[tail..]).into_owned(),
            between,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.head.trim().is_empty() && self.tail.trim().is_empty()
    }
}

/// The part of a text that fits on a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Extract {
    pub head: Legible,
    pub tail: Legible,
    /// The number of bytes between them.
    pub left_out: u64,
    /// The bytes that it takes on the page.
    pub weight: usize,
}

impl Extract {
    /// Cuts `ends` to `room` bytes on the page, where each line takes `of_line` more.
    pub fn within(ends: &Ends, room: usize, of_line: usize) -> Extract {
        let weigh = |c: char| if c == '\n' { 1 + of_line } else { weight(c) };
        let (head, tail) = (
            ends.head.trim_end_matches('\n'),
            ends.tail.trim_end_matches('\n'),
        );
        let all: usize = head.chars().map(weigh).sum();
        if all <= room && ends.between == 0 && tail.is_empty() {
            return Extract {
                head: Legible::lines(head),
                weight: all,
                ..Extract::default()
            };
        }
        let (mut weight, mut first, half) = (0, 0, room / 2);
        for (at, c) in head.char_indices() {
            weight += weigh(c);
            if weight > half {
                break;
            }
            first = at + c.len_utf8();
        }
        let end = if tail.is_empty() {
            &head[first..]
        } else {
            tail
        };
        let (mut weight, mut last) = (0, end.len());
        for (at, c) in end.char_indices().rev() {
            weight += weigh(c);
            if weight > half {
                break;
            }
            last = at;
        }
        // Cut at line ends, if lines are short enough.
        let whole = head[..first]
            .rfind('\n')
            .filter(|line| *line > first / 2)
            .unwrap_or(first);
        let next = end[last..].find('\n').map(|line| last + line + 1);
        let last = next
            .filter(|next| end.len() - next > (end.len() - last) / 2)
            .unwrap_or(last);
        let between = if tail.is_empty() {
            first - whole + last
        } else {
            head.len() - whole + last
        };
        Extract {
            head: Legible::lines(&head[..whole]),
            tail: Legible::lines(&end[last..]),
            left_out: ends.between + between as u64,
            weight: room,
        }
    }

    pub fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_obey_nothing_and_hide_nothing() {
        let line = Legible::line("a\u{202e}b\u{0}c\n d\u{200b}\u{fffe}e");
        assert_eq!(line.as_str(), "a·b·c d··e");
        assert_eq!(Legible::lines("a\r\nb\rc\td").as_str(), "a\nb·c\td");
        let long = Legible::line(&"x".repeat(1 << 20));
        assert_eq!(
            (long.as_str().chars().count(), long.as_str().ends_with('…')),
            (LINE + 1, true)
        );
        assert_eq!(
            Legible::line(&"<".repeat(1_000)).as_str(),
            "<".repeat(MOST_OF_LINE / 5) + "…"
        );
        assert_eq!(
            Legible::line(&"漢".repeat(LINE)).as_str(),
            "漢".repeat(LINE)
        );
    }

    #[test]
    fn an_extract_has_both_ends_and_says_what_is_left_out() {
        let text: String = (0..1000).map(|line| format!("{line}\n")).collect();
        let whole = Extract::within(&Ends::of(&text), 1 << 20, 0);
        assert_eq!((whole.head.as_str(), whole.left_out), (text.trim_end(), 0));
        let part = Extract::within(&Ends::of(&text), 40, 0);
        assert!(
            part.head.as_str().starts_with("0\n1\n") && part.tail.as_str().ends_with("\n999"),
            "{part:?}"
        );
        let shown = part.head.as_str().len() + part.tail.as_str().len();
        assert_eq!(part.left_out as usize + shown, text.trim_end().len());
        // Escaped characters take more room.
        let marks = Extract::within(&Ends::of(&"<".repeat(100)), 100, 0);
        assert_eq!(
            (marks.head.as_str(), marks.tail.as_str(), marks.left_out),
            ("<".repeat(10).as_str(), "<".repeat(10).as_str(), 80)
        );
        let long = Extract::within(&Ends::of(&"x".repeat(10 << 20)), 100, 0);
        assert_eq!(
            (long.head.as_str().len(), long.left_out),
            (50, (10 << 20) - 100)
        );
    }
}
