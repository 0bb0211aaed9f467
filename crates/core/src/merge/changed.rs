//! Differences between two versions of a document, item by item.

use super::matching::pair;
use super::merge_item::{One, directly_in};
use crate::document::parse;
use crate::task::{Status, TaskId};
use crate::text::{Edit, apply};

/// An item that differs between the versions, or is only in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its ID in the newer version, else in the older one.
    pub task: Option<TaskId>,
    pub title: String,
    /// Its start in the older version, and in the newer one.
    pub at: [Option<usize>; 2],
    /// Its text and status in the older version.
    pub before: Option<(String, Status)>,
    /// Its text and status in the newer one.
    pub after: Option<(String, Status)>,
}

/// Returns the top-level items that differ, in the order of the newer version, the removed ones last. An item
/// that only moved within its lane does not differ.
pub fn changes(old: &str, new: &str) -> Vec<Changed> {
    let ((old, _), (new, _)) = (parse(old), parse(new));
    let (before, after) = (directly_in(&old, None), directly_in(&new, None));
    let found = pair(&before, &after);
    let mut was = vec![None; after.len()];
    for (one, place) in before.iter().zip(&found) {
        if let Some(place) = place {
            was[*place] = Some(*one);
        }
    }
    let said = |one: One<'_, '_>| (one.block().to_owned(), one.item.status);
    let mut changes = Vec::new();
    for (one, was) in after.into_iter().zip(was) {
        let is_same = was.is_some_and(|was| {
            was.item.status == one.item.status && was.bare_block() == one.bare_block()
        });
        if !is_same {
            let task = one.item.id.clone().or_else(|| was?.item.id.clone());
            let title = one.title().to_owned();
            let at = [
                was.map(|was| was.item.span.start),
                Some(one.item.span.start),
            ];
            changes.push(Changed {
                task,
                title,
                at,
                before: was.map(said),
                after: Some(said(one)),
            });
        }
    }
    for (one, _) in before
        .into_iter()
        .zip(found)
        .filter(|(_, place)| place.is_none())
    {
        let (task, title) = (one.item.id.clone(), one.title().to_owned());
        let at = [Some(one.item.span.start), None];
        changes.push(Changed {
            task,
            title,
            at,
            before: Some(said(one)),
            after: None,
        });
    }
    changes
}

/// Returns the document without its items: the owner's prose.
pub fn prose(text: &str) -> String {
    let (document, _) = parse(text);
    let items = directly_in(&document, None);
    apply(
        text,
        &items
            .iter()
            .map(|one| Edit::delete(one.item.span.clone()))
            .collect::<Vec<_>>(),
    )
}
