//! One of the three versions of a merge: its document, and the stretches of it that are compared.

use std::ops::Range;

use crate::board::document::{Document, Item, parse};
use crate::board::markup;

/// A side of the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Ours,
    Theirs,
}

/// One of the three versions.
pub struct Revision<'t> {
    pub document: Document<'t>,
}

impl<'t> Revision<'t> {
    pub fn of(text: &'t str) -> Revision<'t> {
        Revision { document: parse(text).0 }
    }

    pub fn text(&self) -> &'t str {
        self.document.text()
    }

    pub fn item(&self, index: usize) -> &Item<'t> {
        &self.document.items()[index]
    }

    pub fn title(&self, index: usize) -> &'t str {
        self.document.title(self.item(index))
    }

    /// The item's text, whatever its line ends.
    pub fn bare_block(&self, index: usize) -> String {
        bare(self.document.block(self.item(index)))
    }

    pub fn one(&self, index: usize) -> One<'_, 't> {
        One { version: self, index }
    }

    pub fn top(&self) -> Region {
        self.part(0..self.text().len(), None)
    }

    /// The items directly within `parent` that begin a line in `range`.
    pub fn part(&self, range: Range<usize>, parent: Option<usize>) -> Region {
        let begins_line = |at: usize| at == 0 || self.text()[..at].ends_with(['\n', '\r', '\u{feff}']);
        let items = self.document.items().iter().enumerate();
        let items = items
            .filter(|(_, item)| {
                item.within == parent && range.contains(&item.span.start) && begins_line(item.span.start)
            })
            .map(|(index, _)| index)
            .collect();
        Region { range, items, ..Region::default() }
    }
}

/// An item of a version.
#[derive(Clone, Copy)]
pub struct One<'v, 't> {
    pub version: &'v Revision<'t>,
    pub index: usize,
}

impl<'v, 't> One<'v, 't> {
    pub fn item(self) -> &'v Item<'t> {
        self.version.item(self.index)
    }

    pub fn title(self) -> &'t str {
        self.version.title(self.index)
    }

    pub fn block(self) -> &'t str {
        self.version.document.block(self.item())
    }

    pub fn bare_block(self) -> String {
        self.version.bare_block(self.index)
    }

    /// The name of its lane.
    pub fn lane(self) -> Option<&'t str> {
        self.item().lane.map(|lane| self.version.document.lanes()[lane].name)
    }

    /// Its ID, or its title.
    pub fn name(self) -> &'v str {
        self.item().id.as_ref().map_or(self.title(), |id| id.as_str())
    }

    /// Where its first line ends, line end included.
    pub fn first_line_end(self) -> usize {
        let item = self.item();
        markup::line_end(self.version.text(), item.head.end, item.span.end.max(item.head.end))
    }
}

/// A block of text to be compared, whatever its line ends.
pub(crate) fn bare(block: &str) -> String {
    block.trim_end().replace("\r\n", "\n")
}

/// A stretch of a version: the whole document, or what stands under an item's first line.
#[derive(Default)]
pub struct Region {
    pub range: Range<usize>,
    /// The items that are taken as such, by index; all else is lines.
    pub items: Vec<usize>,
    /// The lines of a `yaml task` block, which are merged key by key.
    pub block: Option<Range<usize>>,
    /// The block is not compared: its keys go elsewhere.
    pub is_block_hidden: bool,
}
