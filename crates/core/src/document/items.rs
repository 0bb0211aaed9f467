//! The items of a document: read, or for a plain one only their places, to be read on demand.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use memchr::{memchr_iter, memmem};

use super::outline::BOX;
use super::reader::{parse, read_item};
use super::{Document, Item, ItemList, Under};
use crate::lane;
use crate::markup;
use crate::metadata::Key;
use crate::states::StateKeys;
use crate::task::{Status, TaskId, Timestamp};

/// Limit of IDs that are searched for one by one.
const MOST_SEARCHES: usize = 32;

impl<'t> Document<'t> {
    /// Returns all items in the order of the text; a nested item comes after the one around it.
    pub fn items(&self) -> &[Item<'t>] {
        match &self.items {
            ItemList::Read(items) => items,
            ItemList::Outlined { all, .. } => all.get_or_init(|| {
                let document = parse(self.text).0.with_states(self.states.clone());
                match document.items {
                    ItemList::Read(items) => items,
                    ItemList::Outlined { .. } => unreachable!("`parse` reads all items"),
                }
            }),
        }
    }

    /// Returns the number of items.
    pub fn count(&self) -> usize {
        match &self.items {
            ItemList::Read(items) => items.len(),
            ItemList::Outlined { places, .. } => places.len(),
        }
    }

    /// Returns the number of items that are no part of another.
    pub fn count_whole(&self) -> usize {
        match &self.items {
            ItemList::Read(items) => items.iter().filter(|item| item.within.is_none()).count(),
            ItemList::Outlined { places, .. } => places.len(),
        }
    }

    /// Returns the item at this index of [`Document::items`].
    pub fn item(&self, at: usize) -> &Item<'t> {
        match &self.items {
            ItemList::Read(items) => &items[at],
            ItemList::Outlined { places, read, .. } => read[at].get_or_init(|| {
                let mut item = read_item(self, &places[at]);
                self.remember(&mut item);
                Box::new(item)
            }),
        }
    }

    /// Returns the first item with this ID.
    pub fn find(&self, id: &TaskId) -> Option<&Item<'t>> {
        self.index_of(id).map(|at| self.item(at))
    }

    /// Returns the index of the first item with this ID.
    pub fn index_of(&self, id: &TaskId) -> Option<usize> {
        self.indices_of(id).first().copied()
    }

    /// Returns all items with this ID.
    pub fn named(&self, id: &TaskId) -> Vec<&Item<'t>> {
        let indices = self.indices_of(id).into_iter();
        indices.map(|at| self.item(at)).collect()
    }

    fn indices_of(&self, id: &TaskId) -> Vec<usize> {
        match &self.items {
            ItemList::Read(_) => self.by_id().get(id).cloned().unwrap_or_default(),
            // While an item is being read, its own ID may be looked up.
            ItemList::Outlined { .. } => self
                .indices_naming(id)
                .filter(|at| self.id_at(*at).as_ref() == Some(id))
                .collect(),
        }
    }

    /// Returns the indices by ID, built on demand. Taking over a save looks up every item, which would be
    /// quadratic without it.
    fn by_id(&self) -> &BTreeMap<TaskId, Vec<usize>> {
        self.ids.get_or_init(|| {
            let mut ids: BTreeMap<TaskId, Vec<usize>> = BTreeMap::new();
            for at in 0..self.count() {
                if let Some(id) = self.id_at(at) {
                    ids.entry(id).or_default().push(at);
                }
            }
            ids
        })
    }

    /// Returns candidates that contain this ID: every item that names it is among them.
    pub fn naming(&self, id: &TaskId) -> impl Iterator<Item = &Item<'t>> {
        self.indices_naming(id).map(|at| self.item(at))
    }

    /// Returns those of these items that the document has, by index.
    pub fn named_among<'i>(
        &self,
        ids: impl Iterator<Item = &'i str> + Clone,
    ) -> BTreeMap<usize, TaskId> {
        let indices = |id: &str| self.indices_of(&id.parse().expect("it is the ID of an item"));
        // For a few IDs, searching the text is faster than checking each item.
        if ids.clone().nth(MOST_SEARCHES).is_none() {
            let found = ids.flat_map(indices);
            return found.filter_map(|at| Some((at, self.id_at(at)?))).collect();
        }
        let ids: HashSet<&str> = ids.collect();
        let all = (0..self.count()).filter_map(|at| Some((at, self.id_at(at)?)));
        all.filter(|(_, id)| ids.contains(id.as_str())).collect()
    }

    /// Returns the indices of the items that contain this ID anywhere; if the items are read, all indices.
    fn indices_naming(&self, id: &TaskId) -> Box<dyn Iterator<Item = usize>> {
        match &self.items {
            ItemList::Read(items) => Box::new(0..items.len()),
            ItemList::Outlined { places, .. } => {
                let text = self.text.as_bytes();
                // `T-1` is no part of `T-12`.
                let ends = |at: &usize| {
                    let next = text.get(at + id.as_str().len());
                    !next.is_some_and(u8::is_ascii_alphanumeric)
                };
                let named = memmem::find_iter(text, id.as_str()).filter(ends);
                let mut indices: Vec<usize> = named
                    .map(|at| places.partition_point(|place| place.span.end <= at))
                    .collect();
                indices.dedup();
                indices.retain(|at| *at < places.len());
                Box::new(indices.into_iter())
            }
        }
    }

    /// Returns the ID of the item at this index.
    pub fn id_at(&self, at: usize) -> Option<TaskId> {
        match &self.items {
            ItemList::Read(items) => items[at].id.clone(),
            ItemList::Outlined { places, .. } => {
                let span = &places[at].span;
                markup::leading_id(&self.text[span.start + BOX + 2..span.end]).0
            }
        }
    }

    /// Returns the status of the item at this index.
    pub fn status_at(&self, at: usize) -> Status {
        match &self.items {
            ItemList::Outlined { places, .. } => match places[at].status {
                Some(status) if self.states.has_no_open() => status,
                Some(status) => self.remembered_status(at).unwrap_or(status),
                None => self.item(at).status,
            },
            ItemList::Read(items) => items[at].status,
        }
    }

    /// Returns the priority of the item at this index: its own, else 2.
    pub fn priority_at(&self, at: usize) -> u8 {
        match &self.items {
            ItemList::Outlined { places, .. } => places[at]
                .priority
                .unwrap_or_else(|| self.item(at).priority),
            ItemList::Read(items) => items[at].priority,
        }
    }

    /// Returns when the item at this index is due.
    pub fn due_at(&self, at: usize) -> Option<Timestamp> {
        match &self.items {
            ItemList::Outlined { places, .. } if !places[at].may_be_due => None,
            _ => self.item(at).due,
        }
    }

    /// Returns true if the item at this index may contain these words, such as a key. The item is not read.
    pub fn may_say(&self, at: usize, words: &str) -> bool {
        let ItemList::Outlined { places, .. } = &self.items else {
            return true;
        };
        memmem::find(
            &self.text.as_bytes()[places[at].span.clone()],
            words.as_bytes(),
        )
        .is_some()
    }

    /// Returns true if the item at this index may have a time before which it can't be claimed. The item is not read.
    pub fn may_wait(&self, at: usize) -> bool {
        let is_remembered = || Some(self.remembered_of(at)?.not_before().is_some());
        self.may_say(at, Key::NotBefore.as_str()) || is_remembered().unwrap_or(false)
    }

    /// Returns the index of the first item that begins at or behind `start`.
    pub fn index_from(&self, start: usize) -> usize {
        match &self.items {
            ItemList::Read(items) => items.partition_point(|item| item.span.start < start),
            ItemList::Outlined { places, .. } => {
                places.partition_point(|place| place.span.start < start)
            }
        }
    }

    /// Returns true if an item with its bullet at the margin begins at `start`.
    pub(crate) fn begins_item(&self, start: usize) -> bool {
        match &self.items {
            ItemList::Read(items) => items
                .binary_search_by_key(&start, |item| item.span.start)
                .is_ok_and(|found| items[found].column == 0),
            ItemList::Outlined { places, .. } => places
                .binary_search_by_key(&start, |place| place.span.start)
                .is_ok(),
        }
    }

    /// Returns true if an item with its bullet at the margin, and part of no other, ends at `end`.
    pub(crate) fn ends_item(&self, end: usize) -> bool {
        match &self.items {
            ItemList::Read(items) => items
                .iter()
                .any(|other| other.span.end == end && other.column == 0 && !other.nested),
            ItemList::Outlined { places, .. } => places
                .binary_search_by_key(&end, |place| place.span.end)
                .is_ok(),
        }
    }

    fn remembered_status(&self, at: usize) -> Option<Status> {
        self.remembered_of(at)?.status()
    }

    /// Returns the state of the item at this index kept apart from the text, if it is not completed.
    fn remembered_of(&self, at: usize) -> Option<&StateKeys> {
        let open_ids = || self.states.open_ids().map(TaskId::as_str);
        let remembered = self.remembered.get_or_init(|| self.named_among(open_ids()));
        self.states.get_open(remembered.get(&at)?)
    }

    /// Returns the status by an item's box, lane and `status:` key, without its state kept apart.
    pub fn text_status(&self, item: &Item<'_>) -> Status {
        lane::status(self.place(item), item.said, self.lane_set)
    }

    /// Returns true if the item is held only by typed text, not by Tavern's state.
    pub fn is_typed_as_held(&self, item: &Item<'_>) -> bool {
        let known = item.id.as_ref().and_then(|id| self.states.get_open(id));
        item.status.is_held() && known.is_none()
    }

    /// Applies the state kept apart to the item.
    pub(super) fn remember(&self, item: &mut Item<'t>) {
        let Some(keys) = item.id.as_ref().and_then(|id| self.states.get_open(id)) else {
            return;
        };
        item.not_before = item.not_before.max(keys.not_before());
        if let Some(status) = keys.status() {
            let was_typed_as_held = item.status.is_held();
            item.status = status;
            item.aside &= !was_typed_as_held || self.is_left_out(item);
        }
    }

    fn is_left_out(&self, item: &Item<'_>) -> bool {
        // An ended claim belongs to its author.
        let is_left = |mark| mark != markup::CLAIMED || !item.status.is_ended();
        markup::left_out(self.title(item)).is_some_and(is_left)
    }

    /// Sets the status by the item's text and the heading above it.
    pub(super) fn settle(&self, item: &mut Item<'t>, under: Option<Under>) {
        item.status = self.text_status(item);
        item.aside |= item.status.is_held() || self.is_left_out(item);
        let Some(Under::Other { is_slip, .. }) = under.filter(|_| self.has_lanes()) else {
            return;
        };
        item.quarantined = true;
        item.aside |= !is_slip;
    }

    /// Returns the number of the line that begins at `start`, counted from the last request. Items are mostly
    /// read in a row, and counting from the top for each would be quadratic.
    pub(super) fn line_at(&self, start: usize) -> usize {
        let ends = |span: Range<usize>| memchr_iter(b'\n', &self.text.as_bytes()[span]).count();
        let (at, before) = self.counted.get();
        let before = if at <= start {
            before + ends(at..start)
        } else {
            before - ends(start..at)
        };
        self.counted.set((start, before));
        before + 1
    }
}
