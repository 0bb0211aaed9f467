//! Lines and items that their owner has marked as none of an agent's work: they are left alone, and told.

use std::ops::Range;

use super::Item;
use crate::board::markup::is_struck;
use crate::board::problem::Problem;

/// A mark, and where it stands first, and how often.
pub(super) struct OwnState {
    mark: String,
    first: Range<usize>,
    count: usize,
}

/// One character in a box that a person, or Obsidian's Tasks, gives a meaning to.
pub(super) fn is_mark(inner: &str) -> bool {
    matches!(inner, "-" | "/" | ">" | "<" | "!" | "?" | "*")
}

pub(super) fn count(states: &mut Vec<OwnState>, mark: &str, at: Range<usize>) {
    match states.iter_mut().find(|state| state.mark == mark) {
        Some(state) => state.count += 1,
        None => states.push(OwnState { mark: mark.to_owned(), first: at, count: 1 }),
    }
}

/// One warning a mark.
pub(super) fn told(mut states: Vec<OwnState>, text: &str, items: &[Item<'_>]) -> Vec<Problem> {
    for item in items.iter().filter(|item| !item.status.is_ended() && is_struck(&text[item.title.clone()])) {
        count(&mut states, "~~…~~", item.title.clone());
    }
    let problem = |OwnState { mark, first, count }: OwnState| {
        let means = match &*mark {
            "[-]" => "cancelled",
            "[/]" => "in progress by hand",
            "~~…~~" => "struck out",
            _ => "a state of its owner's own",
        };
        let lines = if count == 1 { "this line is".to_owned() } else { format!("{count} lines like this are") };
        let message = format!("`{mark}` is {means}: {lines} left alone");
        Problem::warning(
            "own-state",
            first,
            message,
            "to have it worked write a box `[ ]` and a title that is not struck out",
        )
    };
    states.into_iter().map(problem).collect()
}
