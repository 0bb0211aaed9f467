//! Lines and items that their owner has marked as none of an agent's work: they are skipped and reported.

use std::ops::Range;

use super::{Document, Item};
use crate::markup::{CLAIM, CLAIMED, LEFT_OUT, STRIKE, left_out};
use crate::problem::Problem;

/// Returns true for a character in a box to which a person, or Obsidian's Tasks, gives a meaning.
pub(super) fn is_mark(inner: &str) -> bool {
    matches!(inner, "-" | "/" | ">" | "<" | "!" | "?" | "*")
}

/// Returns the meaning of a mark in a box or around a title.
pub fn meaning_of_mark(mark: &str) -> &'static str {
    match mark {
        "[-]" => "cancelled",
        "[/]" => "in progress by hand",
        STRIKE | "<del>" | "<s>" => "struck out",
        "%%" | "<!--" => "commented out",
        CLAIMED => "claimed by its title",
        _ => "in a custom state",
    }
}

impl Document<'_> {
    /// Returns the mark by which an open item's title is struck or commented out.
    pub fn left_out(&self, item: &Item<'_>) -> Option<&'static str> {
        left_out(self.title(item)).filter(|_| !item.status.is_ended())
    }

    /// The same for the item at this index.
    pub(super) fn left_out_at(&self, at: usize) -> Option<&'static str> {
        let mut signs = LEFT_OUT.iter().map(|(open, _)| *open).chain([CLAIM]);
        let may_be = signs.any(|open| self.may_say(at, open));
        if may_be {
            self.left_out(self.item(at))
        } else {
            None
        }
    }

    /// Returns the name under which the item at this index is counted, if it is not its status.
    pub(super) fn counted_apart(&self, at: usize) -> Option<&'static str> {
        self.left_out_at(at)
            .map(|mark| match meaning_of_mark(mark) {
                "struck out" => "struck_out",
                "commented out" => "commented_out",
                _ => "claimed",
            })
    }
}

/// Returns one warning for each mark, at its first line.
pub(super) fn told(document: &Document<'_>, items: &[Item<'_>]) -> Vec<Problem> {
    let mut marks: Vec<(&str, Range<usize>, usize)> = Vec::new();
    let boxes = document
        .own
        .iter()
        .map(|mark| (&document.text[mark.clone()], mark.clone()));
    let titles = items
        .iter()
        .filter_map(|item| Some((document.left_out(item)?, item.title.clone())));
    for (mark, span) in boxes.chain(titles) {
        match marks.iter_mut().find(|(known, ..)| *known == mark) {
            Some((.., count)) => *count += 1,
            None => marks.push((mark, span, 1)),
        }
    }
    let problem = |(mark, first, count): (&str, Range<usize>, usize)| {
        let lines = if count == 1 {
            "this line is".to_owned()
        } else {
            format!("{count} lines like this are")
        };
        let (shown, means) = (
            if mark == STRIKE { "~~…~~" } else { mark },
            meaning_of_mark(mark),
        );
        Problem::warning(
            "own-state",
            first,
            format!("`{shown}` is {means}: {lines} skipped"),
            "to have agents work on it, write `[ ]` and a title without such marks",
        )
    };
    marks.into_iter().map(problem).collect()
}
