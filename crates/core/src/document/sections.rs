//! The context of items: one within another, and under headings.

use std::ops::Range;

use super::heading_rules::STEPS;
use super::{Item, Lane, Under};
use crate::front::Front;
use crate::lane::{LaneKind, LaneSet};
use crate::markup;
use crate::metadata;
use crate::problem::{Position, Problem};

/// A heading that is no lane, and not within one.
pub(super) struct Other {
    pub heading: Range<usize>,
    /// Number of items right under it.
    pub items: usize,
    /// The lane that its name resembles by a typo.
    pub near: Option<LaneKind>,
}

/// Returns true if more headings name lanes than others have items right under them. A typo of a lane's name
/// counts as neither. Review as the only lane does not count, as it may be the name of a list of things to
/// look at.
pub(super) fn is_board(lanes: &[Lane], others: &[Other]) -> bool {
    let own = others
        .iter()
        .filter(|other| other.items > 0 && other.near.is_none());
    let is_of_reviewers = worked(lanes).all(|lane| lane.kind == LaneKind::InReview);
    worked(lanes).count() > own.count() && !is_of_reviewers
}

pub(super) fn lane_set(lanes: &[Lane]) -> LaneSet {
    let mut set = LaneSet::default();
    worked(lanes).for_each(|lane| set.insert(lane.kind));
    set
}

/// All but the archive.
fn worked(lanes: &[Lane]) -> impl Iterator<Item = &Lane> {
    lanes.iter().filter(|lane| lane.kind != LaneKind::Archive)
}

/// Returns problems of items under headings that are no lanes, in a document with lanes.
pub(super) fn unknown_lanes(
    text: &str,
    front: &Front,
    lanes: &[Lane],
    others: &[Other],
) -> Vec<Problem> {
    let key = front.says_lanes().or(front
        .board_key
        .as_deref()
        .filter(|_| worked(lanes).next().is_some()));
    let board = match (key, worked(lanes).next()) {
        (Some(key), _) => format!("`{key}` in the front matter makes this a board"),
        (None, Some(first)) => {
            let line = Position::of(text, first.heading.start).line;
            let name = markup::heading_text(text, first.heading.clone());
            format!("`{name}` in line {line} makes this a board")
        }
        (None, None) => return Vec::new(),
    };
    let names = LaneKind::ALL.map(LaneKind::name).join(", ");
    let told = |other: &Other| {
        let span = markup::trimmed(text, other.heading.clone());
        let name: String = markup::heading_text(text, other.heading.clone())
            .chars()
            .take(80)
            .collect();
        let count = other.items;
        let things = if count == 1 {
            "the item under it".to_owned()
        } else {
            format!("the {count} items under it")
        };
        let message = format!("`{name}` is not a lane, so agents skip {things}: {board}");
        match other.near {
            Some(near) => Problem::error(
                "unknown-lane",
                span,
                message,
                format!("did you mean `{}`?", near.name()),
            ),
            None => {
                let pair = format!("{}: pending", metadata::flow(&name.into()));
                let edit = if front.lanes.is_empty() {
                    format!("write `lanes: {{{pair}}}` in the front matter")
                } else {
                    format!("write `{pair}` at `lanes` in the front matter")
                };
                let hint = format!("{edit}, or another lane in place of pending: {names}");
                Problem::warning("unknown-lane", span, message, hint)
            }
        }
    };
    others
        .iter()
        .filter(|other| other.items > 0)
        .map(told)
        .collect()
}

/// Returns the problem of boxes under a heading by which they are no items.
pub(super) fn no_items_under(
    text: &str,
    heading: &Range<usize>,
    kind: &str,
    count: usize,
) -> Problem {
    let (name, span) = (
        markup::heading_text(text, heading.clone()),
        markup::trimmed(text, heading.clone()),
    );
    let message = format!("the boxes under `{name}` ({count}) are {kind}, not items");
    if kind == STEPS {
        let hint =
            format!("write `- [ ] {name}` in its place, and indent the lines below by two blanks");
        return Problem::error("steps-of-heading", span, message, hint);
    }
    let hint = "to have agents work on them, put them under another heading";
    Problem::warning("own-state", span, message, hint)
}

/// Returns the innermost item around `at`.
pub(super) fn innermost<'i, 't>(items: &'i [Item<'t>], at: usize) -> Option<&'i Item<'t>> {
    let last = items
        .partition_point(|item| item.span.start <= at)
        .checked_sub(1);
    let mut around = std::iter::successors(last.map(|last| &items[last]), |item| {
        Some(&items[item.within?])
    });
    around.find(|item| at < item.span.end)
}

/// Returns the headings that are no lanes, with the indices of the items right under each.
pub(super) fn sections(
    headings: impl Iterator<Item = Range<usize>>,
    items: &[Item<'_>],
    under: &[Option<Under>],
) -> Vec<(Range<usize>, Vec<usize>)> {
    let mut sections: Vec<_> = headings.map(|heading| (heading, Vec::new())).collect();
    for (index, under) in under
        .iter()
        .enumerate()
        .filter(|(index, _)| items[*index].within.is_none())
    {
        if let Some(Under::Other { number, .. }) = under {
            sections[*number].1.push(index);
        }
    }
    sections
}
