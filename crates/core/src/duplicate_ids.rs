//! Repairs duplicate IDs: all but one of the items with the same ID get a fresh one.
//!
//! Knows all documents of a board at once, but no files, leases or log.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::document::{Document, Item, parse};
use crate::patch::Patch;
use crate::task::TaskId;
use crate::text::Edit;

/// A document of the board.
#[derive(Clone, Debug)]
pub struct Mendable<'a> {
    /// Name for messages, from which fresh IDs are made.
    pub name: &'a str,
    pub text: &'a str,
    /// Whether it may be changed; otherwise it is only read for its references.
    pub may_change: bool,
}

/// A repaired document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    pub text: String,
    /// The changes made, one line each.
    pub done: Vec<String>,
}

/// An item's right to an ID that several items have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// It is a copy of an item in another queue.
    None,
    /// Nothing is known of its queue's items.
    Queue,
    /// The log's history under the ID belongs to this item.
    History,
    /// It is held under a lease.
    Held,
}

/// Repairs the pages, and returns as many. An ID stays with the item that is held, else with the one in the
/// log, else with the first. Dependencies keep meaning that one. An item with the same title is a copy, which
/// would be the same work again: it is left to a person.
///
/// `right` returns an item's right to its ID, by page; `is_archived` returns true for IDs that are in no page.
///
/// Fresh IDs depend only on the text, so that two repairs give the same result, and a dry run shows the IDs
/// of the real run.
pub fn mend(
    pages: &[Mendable<'_>],
    right: &dyn Fn(usize, &Document<'_>, &Item<'_>) -> Right,
    is_archived: &dyn Fn(&TaskId) -> bool,
) -> Vec<Mended> {
    let documents: Vec<Document<'_>> = pages.iter().map(|page| parse(page.text).0).collect();
    let mut by_id: BTreeMap<&TaskId, Vec<(usize, usize)>> = BTreeMap::new();
    for (page, document) in documents.iter().enumerate() {
        for (index, item) in document.items().iter().enumerate() {
            if let Some(id) = &item.id {
                by_id.entry(id).or_default().push((page, index));
            }
        }
    }
    let mut given: BTreeSet<TaskId> = by_id.keys().copied().cloned().collect();
    let mut doubles: Vec<((usize, usize), &TaskId)> = Vec::new();
    for (id, places) in by_id.into_iter().filter(|(_, places)| places.len() > 1) {
        let rank = |&(page, index): &(usize, usize)| {
            right(page, &documents[page], &documents[page].items()[index])
        };
        let title = |&(page, index): &(usize, usize)| {
            documents[page].title(&documents[page].items()[index])
        };
        let best = places.iter().map(rank).max();
        let keeper = places
            .iter()
            .find(|place| Some(rank(place)) == best)
            .map(title);
        doubles.extend(
            places
                .into_iter()
                .filter(|place| Some(title(place)) != keeper)
                .map(|place| (place, id)),
        );
    }
    doubles.sort_unstable();
    let mut mended = Vec::new();
    for (
        page,
        (
            Mendable {
                name,
                text,
                may_change,
            },
            document,
        ),
    ) in pages.iter().zip(&documents).enumerate()
    {
        let (mut edits, mut done) = (Vec::new(), Vec::new());
        for ((_, index), id) in doubles
            .iter()
            .filter(|(place, _)| *may_change && place.0 == page)
        {
            let item = &document.items()[*index];
            let seed = xxh3_64_with_seed(name.as_bytes(), 0);
            let random = xxh3_64_with_seed(document.block(item).as_bytes(), seed);
            let fresh = TaskId::mint(random, |id| given.contains(id) || is_archived(id));
            done.push(format!(
                "line {}: duplicate ID `{id}`; this item is now `{fresh}`",
                item.line
            ));
            given.insert(fresh.clone());
            match item.id_span() {
                // Numbers in a person's own scheme, such as requirements by section, stay.
                Some(own) if !id.is_tavern_s() => {
                    edits.push(Edit::insert(own.start, format!("{fresh}: ")));
                }
                _ => edits.extend(document.change(
                    item,
                    &Patch {
                        id: Some(fresh),
                        ..Patch::default()
                    },
                )),
            }
        }
        let changed = document.applied(&edits, &|_| true, &|_| true, &|new| {
            reads_but_for_ids(document, new)
        });
        let untouched = || Mended {
            text: (*text).to_owned(),
            done: Vec::new(),
        };
        mended.push(changed.map_or_else(untouched, |text| Mended { text, done }));
    }
    mended
}

fn reads_but_for_ids(old: &Document<'_>, new: &Document<'_>) -> bool {
    old.items().len() == new.items().len()
        && old.items().iter().zip(new.items()).all(|(was, is)| {
            old.fields(was) == new.fields(is)
                && [numbered(old, was), old.title(was)].contains(&new.title(is))
                && (was.status, was.line, was.nested, &was.within)
                    == (is.status, is.line, is.nested, &is.within)
        })
}

/// Returns its ID as written, and its title.
fn numbered<'t>(document: &Document<'t>, item: &Item<'_>) -> &'t str {
    let start = item.id_span().map_or(item.title.start, |id| id.start);
    &document.text()[start..item.title.end.max(start)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &str) -> Mended {
        let page = Mendable {
            name: "main",
            text,
            may_change: true,
        };
        mend(&[page], &|_, _, _| Right::Queue, &|_| false).remove(0)
    }

    #[test]
    fn the_first_keeps_the_id() {
        for (text, expected) in [
            (
                "- [ ] T-4: a\n- [ ] T-4: b\n",
                "- [ ] T-4: a\n- [ ] T-…: b\n",
            ),
            (
                "- [ ] T-4: a\r\n  - [ ] T-4: b\r\n- [x] T-4: c",
                "- [ ] T-4: a\r\n  - [ ] T-…: b\r\n- [x] T-…: c",
            ),
            (
                "- [ ] AC-1: a\n# B\n- [ ] AC-1: b\n",
                "- [ ] AC-1: a\n# B\n- [ ] T-…: AC-1: b\n",
            ),
            (
                "- [ ] T-4: a\n- [ ] b\n```\n- [ ] T-4: c\n```\n",
                "- [ ] T-4: a\n- [ ] b\n```\n- [ ] T-4: c\n```\n",
            ),
        ] {
            let found = mended(text);
            let words = found
                .text
                .split_inclusive(' ')
                .map(|word| match word.strip_suffix(": ") {
                    Some(id) if id.starts_with("T-") && id != "T-4" => "T-…: ",
                    _ => word,
                });
            assert_eq!(words.collect::<String>(), expected, "{found:?}");
            assert_eq!(found.done.is_empty(), text == expected, "{found:?}");
            assert_eq!(
                mended(&found.text).done,
                Vec::<String>::new(),
                "nothing is left to do"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_mended(pieces in proptest::collection::vec(0..12usize, 0..14)) {
            let known = [
                "- [ ] T-4: a\n", "- [ ] a (after: T-4)\n", "  - [ ] T-4: b\n", "# Pendng\n", "# Done\n", "<<<<<<< a\n",
                "=======\n", ">>>>>>> b\n", "```\n", "\n", "- [x] T-5: c\r\n", "> - [ ] d\n",
            ];
            let text: String = pieces.iter().map(|piece| known[*piece]).collect();
            let found = mended(&text);
            assert_eq!(found.done.is_empty(), found.text == text);
            assert_eq!(parse(&found.text).0.items().len(), parse(&text).0.items().len());
            let document = parse(&found.text).0;
            let mut titles = BTreeMap::new();
            for item in document.items().iter().filter(|item| item.id.is_some()) {
                let title = document.title(item);
                assert_eq!(*titles.entry(&item.id).or_insert(title), title, "{found:?}");
            }
        }
    }
}
