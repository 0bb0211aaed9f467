//! Lines and items that their owner has marked as none of an agent's work: they are left alone, and told.

use std::ops::Range;

use super::{Document, Item};
use crate::board::markup::{STRIKE, is_struck};
use crate::board::problem::Problem;

/// One character in a box that a person, or Obsidian's Tasks, gives a meaning to.
pub(super) fn is_mark(inner: &str) -> bool {
    matches!(inner, "-" | "/" | ">" | "<" | "!" | "?" | "*")
}

/// What the mark of a box, or around a title, says.
pub fn meaning_of_mark(mark: &str) -> &'static str {
    match mark {
        "[-]" => "cancelled",
        "[/]" => "in progress by hand",
        STRIKE => "struck out",
        _ => "in a state of its owner's own",
    }
}

impl Document<'_> {
    /// Its title is struck out, and it has not ended: its owner does without it.
    pub fn is_struck(&self, item: &Item<'_>) -> bool {
        !item.status.is_ended() && is_struck(self.title(item))
    }

    /// The item at this index is.
    pub(super) fn is_struck_at(&self, at: usize) -> bool {
        self.may_say(at, STRIKE) && self.is_struck(self.item(at))
    }
}

/// One warning for each mark, at the first of its lines.
pub(super) fn told(document: &Document<'_>, items: &[Item<'_>]) -> Vec<Problem> {
    let mut marks: Vec<(&str, Range<usize>, usize)> = Vec::new();
    let boxes = document.own.iter().map(|mark| (&document.text[mark.clone()], mark.clone()));
    let struck = items.iter().filter(|item| document.is_struck(item)).map(|item| (STRIKE, item.title.clone()));
    for (mark, span) in boxes.chain(struck) {
        match marks.iter_mut().find(|(known, ..)| *known == mark) {
            Some((.., count)) => *count += 1,
            None => marks.push((mark, span, 1)),
        }
    }
    let problem = |(mark, first, count): (&str, Range<usize>, usize)| {
        let lines = if count == 1 { "this line is".to_owned() } else { format!("{count} lines like this are") };
        let (shown, means) = (if mark == STRIKE { "~~…~~" } else { mark }, meaning_of_mark(mark));
        Problem::warning(
            "own-state",
            first,
            format!("`{shown}` is {means}: {lines} left alone"),
            "to have it worked write a box `[ ]` and a title that is not struck out",
        )
    };
    marks.into_iter().map(problem).collect()
}
