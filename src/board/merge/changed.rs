//! What is different between two versions of a document, item by item.

use super::pair::pair;
use super::revision::Revision;
use crate::board::task::{Status, TaskId};
use crate::board::text::{Edit, apply};

/// An item that one version has otherwise than the other, or only one has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The ID in the newer version, else in the older one.
    pub task: Option<TaskId>,
    pub title: String,
    /// Its text and status in the older version.
    pub before: Option<(String, Status)>,
    /// Its text and status in the newer one.
    pub after: Option<(String, Status)>,
}

/// The items of the top level that differ, in the order of the newer version, the removed ones last. An item that only
/// stands elsewhere in its lane is the same.
pub fn changes(old: &str, new: &str) -> Vec<Changed> {
    let (old, new) = (Revision::of(old), Revision::of(new));
    let (before, after) = (old.top().items, new.top().items);
    let found = pair(&old, &before, &new, &after);
    let mut was = vec![None; after.len()];
    for (item, place) in before.iter().zip(&found) {
        if let Some(place) = place {
            was[*place] = Some(*item);
        }
    }
    let text = |version: &Revision<'_>, item: usize| {
        (version.document.block(version.item(item)).to_owned(), version.item(item).status)
    };
    let mut changes = Vec::new();
    for (item, was) in after.into_iter().zip(was) {
        let is_same = was.is_some_and(|was| {
            old.item(was).status == new.item(item).status && old.bare_block(was) == new.bare_block(item)
        });
        if !is_same {
            let id = new.item(item).id.clone();
            let id = id.or_else(|| was.and_then(|was| old.item(was).id.clone()));
            let (before, after) = (was.map(|was| text(&old, was)), Some(text(&new, item)));
            changes.push(Changed { task: id, title: new.title(item).to_owned(), before, after });
        }
    }
    for (item, _) in before.into_iter().zip(found).filter(|(_, place)| place.is_none()) {
        let (task, title) = (old.item(item).id.clone(), old.title(item).to_owned());
        changes.push(Changed { task, title, before: Some(text(&old, item)), after: None });
    }
    changes
}

/// The document without its items: the owner's words.
pub fn prose(text: &str) -> String {
    let version = Revision::of(text);
    let spans = version.top().items.into_iter().map(|item| version.item(item).span.clone());
    apply(text, &spans.map(Edit::delete).collect::<Vec<_>>())
}
