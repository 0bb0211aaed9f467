//! Writes the result of the merge as text.

use std::hash::{Hash, Hasher};

use super::conflict::Bound;
use super::merge_item::Side;
use crate::task::Status;

/// Unit of comparison of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom<'t> {
    Line(BareLine<'t>),
    /// Index among the slots.
    Item(usize),
    Block,
}

impl Atom<'_> {
    pub fn is_blank(&self) -> bool {
        matches!(self, Atom::Line(line) if line.0.trim().is_empty())
    }

    pub fn is_item(&self) -> bool {
        matches!(self, Atom::Item(_) | Atom::Block)
    }

    /// Returns the marker that the line is, if any.
    pub fn bound(&self) -> Option<Bound> {
        if let Atom::Line(line) = self {
            Bound::of(line.0)
        } else {
            None
        }
    }
}

/// A line with its line end, which comparisons ignore.
#[derive(Clone, Copy, Debug)]
pub(super) struct BareLine<'t>(pub &'t str);

impl<'t> BareLine<'t> {
    fn bare(self) -> &'t str {
        self.0.trim_end_matches(['\n', '\r'])
    }
}

impl PartialEq for BareLine<'_> {
    fn eq(&self, other: &BareLine<'_>) -> bool {
        self.bare() == other.bare()
    }
}

impl Eq for BareLine<'_> {}

impl Hash for BareLine<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bare().hash(state);
    }
}

/// The outcome for an item.
pub(super) struct Resolution {
    pub stand: Stand,
    pub text: String,
    /// The status that it must read as.
    pub status: Option<Status>,
}

/// The version that gives an item its order and lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    Nowhere,
    /// Neither side has moved it.
    Still,
    As(Side),
}

/// A piece of the result.
pub(super) enum Piece {
    Line(String),
    Item(String),
    /// The keys of the item that this body belongs to.
    Block,
}

/// Returns the atoms as pieces, with the markers in place. `front` is the length of the front matter,
/// `indent` the column of markers.
pub(super) fn pieces(
    atoms: &[Atom<'_>],
    marked: &[(usize, Bound)],
    fates: &[Resolution],
    front: usize,
    indent: usize,
) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(atoms.len());
    let mut marks = marked.iter().peekable();
    let mut length = 0;
    let mut is_yaml = false;
    for at in 0..=atoms.len() {
        while let Some((_, mark)) = marks.next_if(|(place, _)| *place == at) {
            // The front matter has another comment syntax, and only one of two values can stay.
            if length < front {
                is_yaml = *mark == Bound::Theirs;
            } else {
                pieces.push(Piece::Line(format!(
                    "{}{}",
                    " ".repeat(indent),
                    mark.text()
                )));
            }
        }
        let Some(atom) = atoms.get(at) else { break };
        match atom {
            Atom::Line(line) if is_yaml => {
                pieces.push(Piece::Line(format!("# conflict: {}", line.0)));
            }
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

/// Returns the pieces' text; `block` is the text of the keys. The `gap` goes where an item and its neighbor
/// could run together.
pub(super) fn written(pieces: &[Piece], block: &str, newline: &str, gap: &str) -> String {
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
        if was_item.is_some_and(|was| was != is_item) && !is_blank {
            text.push_str(gap);
        }
        text.push_str(content);
        was_item = (!is_blank).then_some(is_item);
    }
    text
}
