//! What the merge decided, as text; and the marks of what contradicts, written and found again.

use super::{Atom, Fate};
use crate::board::markup;
use crate::board::problem::Problem;

/// How a mark of the merge begins; what it speaks of stands behind it, or between it and the next. [`marks`] finds them.
pub(super) const MARK: &str = "<!-- conflict: ";

/// The marks that merges have left in a text, for a person to settle.
pub fn marks(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (mark, end) in [(MARK, "-->"), ("\n# conflict: ", "\n")] {
        for (at, _) in text.match_indices(mark) {
            let start = at + mark.len() - mark.trim_start().len();
            let line = &text[start..markup::line_end(text, start, text.len())];
            let words = line[mark.trim_start().len()..].trim_end().trim_end_matches(end).trim();
            // The first of the three marks around a stretch stands for all of them.
            if matches!(words, Mark::THEIRS | Mark::END) {
                continue;
            }
            let (message, hint) = match words {
                Mark::OURS => (
                    "two sides changed these lines, each in its own way; both versions follow".to_owned(),
                    "keep what is right, and remove the three lines that begin with `<!-- conflict`",
                ),
                words => (
                    format!("two sides changed this, each in its own way; the other side says: {words}"),
                    "keep what is right, and remove this line",
                ),
            };
            let span = start..start + line.trim_end().len();
            problems.push(Problem::warning("merge-conflict", span, message, hint));
        }
    }
    problems
}

/// A piece of the result.
pub(super) enum Piece {
    Line(String),
    Item(String),
    /// The keys of the item whose body this is.
    Block,
}

/// What a mark stands before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Ours,
    Theirs,
    End,
}

impl Mark {
    const OURS: &str = "one side says";
    const THEIRS: &str = "the other side says";
    const END: &str = "end";

    fn text(self) -> String {
        let what = match self {
            Mark::Ours => Mark::OURS,
            Mark::Theirs => Mark::THEIRS,
            Mark::End => Mark::END,
        };
        format!("{MARK}{what} -->\n")
    }
}

/// The atoms as pieces, with the marks in their places. `front` is the length of the front matter, `indent` the column of
/// marks.
pub(super) fn pieces(
    atoms: &[Atom<'_>],
    marked: &[(usize, Mark)],
    fates: &[Fate],
    front: usize,
    indent: usize,
) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(atoms.len());
    let mut marks = marked.iter().peekable();
    let mut length = 0;
    let mut is_yaml = false;
    for at in 0..=atoms.len() {
        while let Some((_, mark)) = marks.next_if(|(place, _)| *place == at) {
            // In the front matter a comment is written otherwise, and of two values one must go.
            if length < front {
                is_yaml = *mark == Mark::Theirs;
            } else {
                pieces.push(Piece::Line(format!("{}{}", " ".repeat(indent), mark.text())));
            }
        }
        let Some(atom) = atoms.get(at) else { break };
        match atom {
            Atom::Line(line) if is_yaml => pieces.push(Piece::Line(format!("# conflict: {}", line.0))),
            Atom::Line(line) => {
                length += line.0.len();
                pieces.push(Piece::Line(line.0.to_owned()));
            }
            Atom::Item(slot) => pieces.push(Piece::Item(fates[*slot].text.clone())),
            Atom::Block => pieces.push(Piece::Block),
        }
    }
    pieces
}

/// The pieces' text; `block` is what stands for the keys. `is_apart` puts blank lines where an item and what is beside
/// it could run together.
pub(super) fn written(pieces: &[Piece], block: &str, newline: &str, is_apart: bool) -> String {
    let mut text = String::new();
    let mut was_item = None;
    for piece in pieces {
        let (content, is_item) = match piece {
            Piece::Line(line) => (line.as_str(), false),
            Piece::Item(item) => (item.as_str(), true),
            Piece::Block => (block, false),
        };
        if !text.is_empty() && !text.ends_with(['\n', '\r']) {
            text.push_str(newline);
        }
        let is_blank = content.trim().is_empty();
        if is_apart && was_item.is_some_and(|was| was != is_item) && !is_blank {
            text.push_str(newline);
        }
        text.push_str(content);
        was_item = (!is_blank).then_some(is_item);
    }
    text
}

/// The text with a line end behind its last line, or without one.
pub(super) fn ended(mut text: String, newline: &str, ends: bool) -> String {
    let is_ended = text.is_empty() || text.ends_with(['\n', '\r']);
    if ends && !is_ended {
        text.push_str(newline);
    } else if !ends && is_ended {
        let end = if text.ends_with("\r\n") { 2 } else { 1 };
        text.truncate(text.len().saturating_sub(end));
    }
    text
}
