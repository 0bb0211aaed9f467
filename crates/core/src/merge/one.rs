//! An item of one of the versions that are merged, and the stretches of them that are compared.

use std::ops::Range;

use crate::document::{Document, Item};
use crate::markup::{self, STRIKE, without_line_end};

/// A side of the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ours,
    Theirs,
}

/// An item of a version.
#[derive(Clone, Copy)]
pub(super) struct One<'v, 't> {
    pub document: &'v Document<'t>,
    pub item: &'v Item<'t>,
}

impl<'v, 't> One<'v, 't> {
    pub fn title(self) -> &'t str {
        self.document.title(self.item)
    }

    pub fn block(self) -> &'t str {
        self.document.block(self.item)
    }

    /// Its text, whatever its line ends.
    pub fn bare_block(self) -> String {
        bare(self.block())
    }

    /// The same without its ID, and what was written with that alone.
    pub fn nameless_block(self) -> String {
        let block = self.bare_block();
        let Some(id) = self.item.id_span() else {
            return block;
        };
        let [start, end] = [id.start, id.end].map(|at| at - self.item.span.start);
        format!(
            "{}{}",
            &block[..start],
            block[end + 1..].trim_start_matches(' ')
        )
        .replacen(" (status: null)", "", 1)
    }

    /// It reads as `old`, but for an ID of its own, or one before that of `old`.
    pub fn is_renamed(self, old: One<'_, '_>) -> bool {
        [old.bare_block(), old.nameless_block()].contains(&self.nameless_block())
    }

    /// Whoever holds it has it by the same ID in `other`, and in the same status.
    pub fn is_held_as(self, other: One<'_, '_>) -> bool {
        self.item.id == other.item.id && self.item.status == other.item.status
    }

    /// What its first line begins with: its indentation, its bullet and the box, up to what is in that.
    pub fn lead(self) -> &'t str {
        &self.document.text()[self.item.span.start..self.item.box_char]
    }

    /// The name of its lane.
    pub fn lane(self) -> Option<&'t str> {
        self.document.heading_of(self.item)
    }

    /// Its ID, or its title.
    pub fn name(self) -> &'v str {
        self.item.id.as_ref().map_or(self.title(), |id| id.as_str())
    }

    /// What stands at the end of its title line, behind the title and the keys: what other programs read there, and blanks.
    pub fn tail(self) -> &'t str {
        let (text, item) = (self.document.text(), self.item);
        let line = without_line_end(
            &text[..markup::line_end(text, item.title.end, item.span.end.max(item.title.end))],
        );
        let are_keys_below = item
            .metadata
            .as_ref()
            .is_some_and(|keys| keys.start > line.len());
        let start = if are_keys_below {
            item.title.end
        } else {
            item.head.end.min(line.len())
        };
        let tail = &line[start..];
        tail.strip_prefix(STRIKE).unwrap_or(tail)
    }

    /// Where its first line ends, line end included.
    pub fn first_line_end(self) -> usize {
        markup::line_end(
            self.document.text(),
            self.item.head.end,
            self.item.span.end.max(self.item.head.end),
        )
    }
}

/// A block of text to be compared, whatever its line ends.
pub fn bare(block: &str) -> String {
    block.trim_end().replace("\r\n", "\n")
}

/// A stretch of a version: the whole document, or what stands under an item's first line.
#[derive(Default)]
pub(super) struct Region<'v, 't> {
    pub range: Range<usize>,
    /// The items that are taken as such; all else is lines.
    pub items: Vec<One<'v, 't>>,
    /// The lines of a `yaml task` block, which are merged key by key.
    pub block: Option<Range<usize>>,
    /// The block is not compared: its keys go elsewhere.
    pub is_block_hidden: bool,
}

impl<'v, 't> Region<'v, 't> {
    pub fn whole(document: &'v Document<'t>) -> Region<'v, 't> {
        Region {
            range: 0..document.text().len(),
            items: directly_in(document, None),
            ..Region::default()
        }
    }

    /// What stands under the first line of `one`.
    pub fn under(one: One<'v, 't>) -> Region<'v, 't> {
        let start = one.first_line_end();
        let range = start..one.item.span.end.max(start);
        let mut items = directly_in(one.document, Some(one.item));
        items.retain(|part| range.contains(&part.item.span.start));
        let block = one.item.block.as_ref().map(|block| block.fences.clone());
        Region {
            range,
            items,
            block,
            is_block_hidden: false,
        }
    }
}

/// The items directly within `parent` (nothing: within none) that begin a line.
pub(super) fn directly_in<'v, 't>(
    document: &'v Document<'t>,
    parent: Option<&Item<'t>>,
) -> Vec<One<'v, 't>> {
    let begins_line =
        |at: usize| at == 0 || document.text()[..at].ends_with(['\n', '\r', '\u{feff}']);
    let is_in = |item: &Item<'_>| {
        item.within.map(|at| &document.items()[at].span) == parent.map(|item| &item.span)
    };
    let items = document
        .items()
        .iter()
        .filter(|item| is_in(item) && begins_line(item.span.start));
    items.map(|item| One { document, item }).collect()
}
