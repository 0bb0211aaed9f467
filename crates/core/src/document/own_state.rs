//! Lines and items that their owner has marked as none of an agent's work: they are left alone, and told.

use std::ops::Range;

use super::{Document, Item};
use crate::markup::{CLAIM, CLAIMED, LEFT_OUT, STRIKE, left_out};
use crate::problem::Problem;

/// One character in a box that a person, or Obsidian's Tasks, gives a meaning to.
pub(super) fn is_mark(inner: &str) -> bool {
    matches!(inner, "-" | "/" | ">" | "<" | "!" | "?" | "*")
}

/// What the mark of a box, or around a title, says.
pub fn meaning_of_mark(mark: &str) -> &'static str {
    match mark {
        "[-]" => "cancelled",
        "[/]" => "in progress by hand",
        STRIKE | "<del>" | "<s>" => "struck out",
        "%%" | "<!--" => "commented out",
        CLAIMED => "claimed by its title",
        _ => "in a state of its owner's own",
    }
}

impl Document<'_> {
    /// The mark by which its title is struck or commented out, where it has not ended: its owner does without it.
    pub fn left_out(&self, item: &Item<'_>) -> Option<&'static str> {
        left_out(self.title(item)).filter(|_| !item.status.is_ended())
    }

    /// The same of the item at this index.
    pub(super) fn left_out_at(&self, at: usize) -> Option<&'static str> {
        let mut signs = LEFT_OUT.iter().map(|(open, _)| *open).chain([CLAIM]);
        let may_be = signs.any(|open| self.may_say(at, open));
        if may_be {
            self.left_out(self.item(at))
        } else {
            None
        }
    }

    /// What the item at this index counts as, where that is not its status.
    pub(super) fn counted_apart(&self, at: usize) -> Option<&'static str> {
        self.left_out_at(at)
            .map(|mark| match meaning_of_mark(mark) {
                "struck out" => "struck_out",
                "commented out" => "commented_out",
                _ => "claimed",
            })
    }
}

/// One warning for each mark, at the first of its lines.
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
            format!("`{shown}` is {means}: {lines} left alone"),
            "to have it worked write a box `[ ]` and a title that is neither struck nor commented out, nor claimed",
        )
    };
    marks.into_iter().map(problem).collect()
}
