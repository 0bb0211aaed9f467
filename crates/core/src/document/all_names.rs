//! The names that the items of a document go by, gathered once.

use std::collections::{BTreeMap, BTreeSet};

use crate::task::TaskId;

/// What is called how in a document.
#[derive(Clone, Debug, Default)]
pub(super) struct AllNames {
    /// The slugs of IDs, titles and headings, with the items that go by each.
    pub by_name: BTreeMap<String, Vec<usize>>,
    /// The first item with each ID.
    pub by_id: BTreeMap<TaskId, usize>,
    /// What is before the numbers of names, and before the hyphen of IDs.
    pub stems: BTreeSet<String>,
    /// What Obsidian Tasks calls those whose boxes are open.
    pub open: BTreeSet<String>,
    /// A parenthesis may be words. Not where there are so many of these and of names that to compare them all takes long.
    pub has_prose: bool,
}
