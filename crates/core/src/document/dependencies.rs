//! Dependencies of an item: from its keys, from lines below it, and from items that are to come after others.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use memchr::memmem;

use super::key_lines::{Says, Stated};
use super::phrase::says_nothing;
use super::{Document, Item, ItemList, parse};
use crate::markup;
use crate::metadata::Key;
use crate::task::{Status, TaskId};

/// IDs, and other names.
type Waits<'t> = (Vec<TaskId>, Vec<Cow<'t, str>>);

/// Characters allowed around a word.
const MARKS: [char; 7] = ['*', '_', '`', '~', '"', '\'', ' '];

impl<'t> Document<'t> {
    /// Returns the dependencies of an item by its keys and, before it is begun, by other places: IDs, and
    /// names of items here, known or not.
    pub(super) fn waits(&self, item: &Item<'t>) -> Waits<'t> {
        let (called, ids): (Vec<_>, Vec<_>) = item
            .after
            .iter()
            .cloned()
            .partition(|id| self.is_called(id));
        let mut waits: Waits<'t> = (ids, Vec::new());
        for name in &item.after_names {
            let named = self.read_names(&[name]);
            if named.is_whole() {
                self.wait_for(&mut waits, named.names);
            } else {
                waits.1.push(name.clone());
            }
        }
        waits
            .1
            .extend(called.iter().map(|id| id.to_string().into()));
        if !is_to_do(item) {
            return waits;
        }
        for stated in self.stated_below(item) {
            match stated.says {
                Says::After { .. } => self.wait_for(&mut waits, self.needed(&stated)),
                Says::Before => waits
                    .1
                    .extend(self.needing(&stated.values).1.map(Cow::Owned)),
                Says::Id | Says::Guard(_) => {}
            }
        }
        if let Some(value) = self.before_in_title(item) {
            // A line that is no item waits for nothing.
            waits.1.extend(self.needing(&[value]).1.map(Cow::Owned));
        }
        for (value, _, _) in self
            .stated_above(item)
            .iter()
            .filter(|(.., key)| *key == Key::After)
        {
            let named = self.read_names(&[value]);
            if named.is_meant {
                self.wait_for(
                    &mut waits,
                    named.names.into_iter().chain(named.unknown).collect(),
                );
            }
        }
        let before = self.before(item);
        self.wait_for(&mut waits, before);
        let mut seen = BTreeSet::new();
        waits.0.retain(|id| seen.insert(id.clone()));
        waits
    }

    /// Returns the names in such lines, unknown ones included.
    pub(super) fn needed(&self, stated: &Stated<'_>) -> Vec<String> {
        let values = stated.values.iter().copied();
        let values: Vec<&str> = values.filter(|value| !self.is_nothing(value)).collect();
        if values.is_empty() {
            return Vec::new();
        }
        let named = self.read_names(&values);
        let is_meant = if stated.is_sentence && stated.values.len() == 1 {
            named.is_whole()
        } else {
            stated.says == Says::After { is_always: true } || named.is_meant
        };
        if !is_meant {
            return Vec::new();
        }
        let unknown = named.unknown.or_else(|| {
            // An empty value was likely forgotten.
            named.names.is_empty().then(String::new)
        });
        named.names.into_iter().chain(unknown).collect()
    }

    /// Returns the span of a key for dependencies on the line, if it has no value.
    pub(crate) fn names_nothing(&self, item: &Item<'_>) -> Option<Range<usize>> {
        let mut stated = self.stated_below(item).into_iter();
        let is_empty = |stated: &Stated<'_>| {
            matches!(stated.says, Says::After { .. })
                && self.needed(stated).iter().any(String::is_empty)
        };
        Some(stated.find(is_empty)?.name)
    }

    /// Returns true if the value says that nothing is waited for, and no item has that name.
    fn is_nothing(&self, value: &str) -> bool {
        says_nothing(value) && !self.read_names(&[value]).is_meant
    }

    fn wait_for(&self, waits: &mut Waits<'t>, names: Vec<String>) {
        for name in names {
            match name.parse() {
                Ok(id) if !self.is_called(&id) => waits.0.push(id),
                _ => waits.1.push(name.into()),
            }
        }
    }

    /// Returns true if no item has this ID but one has it as its name. A line with its owner's mark counts by
    /// the ID in it.
    fn is_called(&self, id: &TaskId) -> bool {
        let is_known = || self.called_so(id.as_str()).is_some();
        self.may_be_name(id) && is_known() && self.own_mark(id.as_str()).is_none()
    }

    /// Returns true if no item here has this ID, but one may have it as its name. Collecting the names of an
    /// unread document is slow, so an ID only in parentheses is not enough.
    fn may_be_name(&self, id: &TaskId) -> bool {
        let is_outside = |at| !self.text[markup::line_start(self.text, 0, at)..at].contains('(');
        let mut places = memmem::find_iter(self.text.as_bytes(), id.as_str());
        if matches!(self.items, ItemList::Read(_)) || self.names.get().is_some() {
            return self.by_id_in(id.as_str()).is_none();
        }
        self.index_of(id).is_none() && (!self.searches.are_few() || places.any(is_outside))
    }

    /// Returns the indices of the items that must wait for one with these values, and a name that is no item.
    fn needing(&self, values: &[&str]) -> (Vec<usize>, Option<String>) {
        let named = self.read_names(values);
        if !named.is_meant {
            return (Vec::new(), None);
        }
        let (mut items, mut unknown) = (Vec::new(), named.unknown);
        for name in named.names {
            let by_id = || Some(vec![self.by_id_in(&name)?]);
            match self.called_so(&name).map(<[usize]>::to_vec).or_else(by_id) {
                Some(found) => items.extend(found),
                None => unknown = unknown.or(Some(name)),
            }
        }
        (items, unknown)
    }

    /// Returns true if the text may say that an item comes before another.
    pub(super) fn says_before(&self) -> bool {
        *self.says_before.get_or_init(|| may_say_before(self.text))
    }

    /// Returns the items that state that they come before `item`: IDs and titles.
    fn before(&self, item: &Item<'_>) -> Vec<String> {
        let before = self.order.get_or_init(|| match &self.items {
            _ if !self.says_before() => BTreeMap::new(),
            ItemList::Read(items) => self.order_of(items),
            ItemList::Outlined { .. } => {
                let document = parse(self.text).0;
                document.order_of(document.items())
            }
        });
        if before.is_empty() {
            return Vec::new();
        }
        let at = self.index_from(item.span.start);
        before.get(&at).cloned().unwrap_or_default()
    }

    /// Maps the index of each item to the items that state that they come before it.
    fn order_of(&self, items: &[Item<'_>]) -> BTreeMap<usize, Vec<String>> {
        let mut order: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            if !may_say_before(self.block(item)) {
                continue;
            }
            let below = self.stated_below(item).into_iter();
            let below = below.filter(|stated| stated.says == Says::Before);
            let lists = below.map(|stated| stated.values);
            for values in lists.chain(self.before_in_title(item).map(|value| vec![value])) {
                for needing in self
                    .needing(&values)
                    .0
                    .into_iter()
                    .filter(|at| *at != index)
                {
                    order.entry(needing).or_default().push(self.called(item));
                }
            }
        }
        order
    }
}

/// Returns true if the text may state that an item comes before another. A cheap check, as texts rarely do.
pub(super) fn may_say_before(text: &str) -> bool {
    let ends = ["efore", "locks", "locking", "recedes"];
    let is_said = |word: &str, at: usize| {
        let start = text[..at]
            .trim_end_matches(char::is_alphabetic)
            .trim_end_matches(MARKS);
        let behind = text[at + word.len()..].trim_start_matches(MARKS);
        start.ends_with(['(', '[', '{', ',', ';', '|', '（'])
            || behind.starts_with([':', '=', '：'])
            || behind.is_empty()
            || behind.starts_with(['\n', '\r'])
    };
    ends.iter()
        .any(|word| memmem::find_iter(text.as_bytes(), word).any(|at| is_said(word, at)))
}

/// Returns true if the item is not begun, so that dependencies may still hold it up.
pub(super) fn is_to_do(item: &Item<'_>) -> bool {
    matches!(
        item.status,
        Status::Draft | Status::Pending | Status::Waiting
    )
}
