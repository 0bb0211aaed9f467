//! An item of a merged version, and the stretches that are compared.

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

    /// Returns its text with line ends normalized.
    pub fn bare_block(self) -> String {
        bare(self.block())
    }

    /// Returns its text without its ID, and without the `(status: null)` that goes with an ID.
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

    /// Returns true if it reads as `old`, but for a new ID, or one before the ID of `old`.
    pub fn is_renamed(self, old: One<'_, '_>) -> bool {
        [old.bare_block(), old.nameless_block()].contains(&self.nameless_block())
    }

    /// Returns true if its holder has it under the same ID and status in `other`.
    pub fn is_held_as(self, other: One<'_, '_>) -> bool {
        self.item.id == other.item.id && self.item.status == other.item.status
    }

    /// Returns the start of its first line: indent, bullet and box, up to the mark in the box.
    pub fn lead(self) -> &'t str {
        &self.document.text()[self.item.span.start..self.item.box_char]
    }

    /// Returns the name of its lane.
    pub fn lane(self) -> Option<&'t str> {
        self.document.heading_of(self.item)
    }

    /// Returns its ID, or its title.
    pub fn name(self) -> &'v str {
        self.item.id.as_ref().map_or(self.title(), |id| id.as_str())
    }

    /// Returns the end of its title line behind title and keys: blanks, and text that other programs read.
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

    /// Returns the end of its first line, line end included.
    pub fn first_line_end(self) -> usize {
        markup::line_end(
            self.document.text(),
            self.item.head.end,
            self.item.span.end.max(self.item.head.end),
        )
    }
}

/// Returns a block of text for comparison, with line ends normalized.
pub fn bare(block: &str) -> String {
    block.trim_end().replace("\r\n", "\n")
}

/// A stretch of a version: the whole document, or the text under an item's first line.
#[derive(Default)]
pub(super) struct Region<'v, 't> {
    pub range: Range<usize>,
    /// The items that are merged as such; everything else is lines.
    pub items: Vec<One<'v, 't>>,
    /// The lines of a `yaml task` block, which are merged key by key.
    pub block: Option<Range<usize>>,
    /// Whether the block is not compared, as its keys go elsewhere.
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

    /// Returns the stretch under the first line of `one`.
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

/// Returns the items directly within `parent` (`None`: within none) that begin a line.
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
