//! The names of a document's items, collected once.

use std::collections::{BTreeMap, BTreeSet};

use crate::task::TaskId;

/// The names in a document.
#[derive(Clone, Debug, Default)]
pub(super) struct AllNames {
    /// Slugs of IDs, titles and headings, with the items of each.
    pub by_name: BTreeMap<String, Vec<usize>>,
    /// The first item with each ID.
    pub by_id: BTreeMap<TaskId, usize>,
    /// Names without their numbers, and the prefixes of IDs.
    pub stems: BTreeSet<String>,
    /// Obsidian Tasks names of open boxes.
    pub open: BTreeSet<String>,
    /// Whether a parenthesis may be prose. False if there are too many of them and of names to compare.
    pub has_prose: bool,
}
