//! Guarding keys on lines of their own below a title, where none are read: `done_when: make`.

use std::ops::Range;

use super::dependencies::is_to_do;
use super::key_lines::{Says, Stated};
use super::{Document, Item};
use crate::key::Shape;
use crate::markup;
use crate::metadata::{self, Key, misplaced_guards};
use crate::problem::Problem;

/// The likely meaning of such a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meant {
    /// A key.
    AsKey,
    /// A key, or prose.
    Perhaps,
}

impl<'t> Document<'t> {
    /// Returns the first line that can only be meant as a key, with the place of its name.
    pub(super) fn guard_stated(&self, item: &Item<'_>) -> Option<(Range<usize>, Key)> {
        let mut guards = self.guards(item);
        guards.retain(|(_, _, meant)| *meant == Meant::AsKey);
        guards.into_iter().next().map(|(name, key, _)| (name, key))
    }

    /// Returns the first key other than `after` that a heading above states.
    pub(super) fn guard_above(&self, item: &Item<'_>) -> Option<(Range<usize>, Key)> {
        let mut stated = self.stated_above(item).into_iter();
        let (_, name, key) = stated.find(|(.., key)| *key != Key::After)?;
        Some((name, key))
    }

    /// Returns the keys in brackets of the headings above, with the values of `after`.
    pub(super) fn stated_above(&self, item: &Item<'_>) -> Vec<(&'t str, Range<usize>, Key)> {
        let mut stated = Vec::new();
        for start in item.stating.into_iter().flatten() {
            let line = &self.text[start..markup::line_end(self.text, start, self.text.len())];
            let guards = misplaced_guards(line, line.len()).into_iter();
            stated.extend(guards.filter(|guard| !guard.is_inverse).map(|guard| {
                let name = start + guard.name.start..start + guard.name.end;
                (guard.needed.unwrap_or_default(), name, guard.key)
            }));
        }
        stated
    }

    /// Returns warnings for lines that may be meant as keys but are prose.
    pub(super) fn unread_guards(&self, item: &Item<'_>) -> Vec<Problem> {
        if !is_to_do(item) || item.quarantined || item.aside {
            return Vec::new();
        }
        let guards = self.guards(item).into_iter();
        let perhaps = guards.filter(|(_, _, meant)| *meant == Meant::Perhaps);
        let told = perhaps.map(|(name, key, _)| {
            let message = format!(
                "`{}` is read as prose, not as a key",
                &self.text[name.clone()]
            );
            let hint = format!(
                "if it is meant as a key write `({}: …)` at the end of the first line",
                key.as_str()
            );
            Problem::warning("unread-guard", name, message, hint)
        });
        told.collect()
    }

    /// Returns a guarding key on the lines right below an item that have too little indent to be its own.
    pub(super) fn guard_beside(&self, item: &Item<'_>) -> Option<(Range<usize>, Key)> {
        let meant = |one: &Stated<'_>| match (self.key_of(one), one.says) {
            (Some(key), _) => Some(key).filter(|key| self.meant(*key, one) == Meant::AsKey),
            (None, Says::After { .. }) => (!self.needed(one).is_empty()).then_some(Key::After),
            (None, Says::Before) => self.read_names(&one.values).is_meant.then_some(Key::After),
            (None, _) => None,
        };
        let mut stated = self.stated_beside(item).into_iter();
        stated.find_map(|one| Some((one.name.clone(), meant(&one)?)))
    }

    /// Returns the lines that state a guarding key that the item does not have.
    fn guards(&self, item: &Item<'_>) -> Vec<(Range<usize>, Key, Meant)> {
        let stated = self.stated_below(item);
        if !stated.iter().any(|one| self.key_of(one).is_some()) {
            return Vec::new();
        }
        let entries = self.entries(item);
        let is_said = |key: Key| entries.iter().any(|entry| entry.name == key.as_str());
        let keys = stated
            .iter()
            .filter_map(|one| Some((self.key_of(one)?, one)));
        keys.filter(|(key, one)| !is_said(*key) && one.values.iter().any(|it| !it.is_empty()))
            .map(|(key, one)| (one.name.clone(), key, self.meant(key, one)))
            .collect()
    }

    /// Returns the key other than `after` that a line states.
    fn key_of(&self, stated: &Stated<'_>) -> Option<Key> {
        match stated.says {
            Says::Guard(key) => Some(key),
            // In other forms, people use it for dependencies.
            Says::After { .. } if &self.text[stated.name.clone()] == Key::Needs.as_str() => {
                let is_key = !stated.is_sentence && !self.read_names(&stated.values).is_meant;
                is_key.then_some(Key::Needs)
            }
            _ => None,
        }
    }

    fn meant(&self, key: Key, stated: &Stated<'_>) -> Meant {
        let value = self.text[stated.name.end..stated.end]
            .trim_start_matches([':', '=', '：', '*', '_', ' ']);
        let value = value.trim_end();
        let is_code = value.len() > 1 && value.starts_with('`') && value.ends_with('`');
        let is_list = value.starts_with(['[', '{']);
        let is_word = !value.is_empty() && !value.contains(char::is_whitespace);
        let takes = || metadata::takes(key, value);
        let is_key = stated.is_spelt_as_key
            || is_code
            || is_list
            || match key.shape() {
                Shape::Moments => {
                    is_word || takes() || stated.values.iter().all(|it| metadata::takes(key, it))
                }
                Shape::Commands => false,
                Shape::Words => {
                    is_word && &self.text[stated.name.clone()] == key.as_str() && key != Key::Needs
                }
                _ => takes(),
            };
        if is_key { Meant::AsKey } else { Meant::Perhaps }
    }
}
