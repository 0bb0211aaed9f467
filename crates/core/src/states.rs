//! State of items that Tavern keeps apart from their texts: by ID, the keys that people don't type.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use super::id::TaskId;
use super::key::Key;
use super::metadata::{Field, Fields, flow, read_field};
use super::state::State;
use super::status::{Status, Timestamp};

/// The states of all items that have any. Most items are completed, and their states are read on demand.
#[derive(Clone, Debug, Default)]
pub struct States {
    open: BTreeMap<TaskId, StateKeys>,
    completed: BTreeMap<TaskId, StateKeys>,
    /// States of items completed earlier: one line each with ID and keys as JSON, sorted by ID.
    written: Arc<str>,
}

/// The state keys of one item, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StateKeys(BTreeMap<String, Value>);

impl States {
    /// Parses the states from a text of [`States::write`].
    pub fn read(text: &str) -> Option<States> {
        let (open, written) = text.split_once(BETWEEN)?;
        let keys = |line: &str| {
            let (id, keys) = line.split_once(' ')?;
            Some((id.parse().ok()?, serde_json::from_str(keys).ok()?))
        };
        Some(States {
            open: open.lines().map(keys).collect::<Option<_>>()?,
            completed: BTreeMap::new(),
            written: written.into(),
        })
    }

    /// Returns all states as a text: those of open items, then those of completed ones.
    pub fn write(&self) -> String {
        let mut text = String::with_capacity(self.written.len() + 256 * self.open.len());
        let add = |text: &mut String, (id, keys): (&TaskId, &StateKeys)| {
            if !keys.is_empty() {
                let keys = serde_json::to_string(&keys.0).expect("all keys are strings");
                text.extend([id.as_str(), " ", &keys, "\n"]);
            }
        };
        self.open.iter().for_each(|open| add(&mut text, open));
        text.push_str(BETWEEN);
        let mut newer = self.completed.iter().peekable();
        for line in self.written.split_inclusive('\n') {
            let id = id_of(line);
            while let Some(earlier) = newer.next_if(|(other, _)| other.as_str() < id) {
                add(&mut text, earlier);
            }
            match newer.next_if(|(other, _)| other.as_str() == id) {
                Some(newer) => add(&mut text, newer),
                None => text.push_str(line),
            }
        }
        newer.for_each(|later| add(&mut text, later));
        text
    }

    /// Returns the state keys of an item. `None`: only its text counts.
    pub fn get(&self, id: &TaskId) -> Option<Cow<'_, StateKeys>> {
        let known = self.open.get(id).or_else(|| self.completed.get(id));
        let keys = match known {
            Some(keys) => Cow::Borrowed(keys),
            None => Cow::Owned(self.get_written(id.as_str())?),
        };
        Some(keys).filter(|keys| !keys.0.is_empty())
    }

    /// Returns the state keys of an item that is not completed.
    pub fn get_open(&self, id: &TaskId) -> Option<&StateKeys> {
        self.open.get(id)
    }

    /// Returns the items with states that are not completed.
    pub fn open_ids(&self) -> impl Iterator<Item = &TaskId> + Clone {
        self.open.keys()
    }

    /// Returns the items with states, each at least once.
    pub fn ids(&self) -> impl Iterator<Item = &str> + Clone {
        let known = self.open.keys().chain(self.completed.keys());
        let written = self.written.lines().map(id_of);
        known.map(TaskId::as_str).chain(written)
    }

    /// Returns true if an item that is not completed has this status.
    pub fn has_open(&self, status: Status) -> bool {
        self.open.values().any(|keys| keys.status() == Some(status))
    }

    /// Returns true if only completed items have states.
    pub fn has_no_open(&self) -> bool {
        self.open.is_empty()
    }

    fn get_written(&self, id: &str) -> Option<StateKeys> {
        let mut rest = &*self.written;
        while !rest.is_empty() {
            let half = rest.floor_char_boundary(rest.len() / 2);
            let middle = rest[..half].rfind('\n').map_or(0, |end| end + 1);
            let end = rest[middle..]
                .find('\n')
                .map_or(rest.len(), |end| middle + end + 1);
            let line = &rest[middle..end];
            match id_of(line).cmp(id) {
                Ordering::Less => rest = &rest[end..],
                Ordering::Greater => rest = &rest[..middle],
                Ordering::Equal => return serde_json::from_str(&line[id.len()..]).ok(),
            }
        }
        None
    }

    /// Replaces the keys of the item; empty ones remove it.
    pub fn set(&mut self, id: TaskId, keys: StateKeys) {
        if keys.is_empty() || keys.status() == Some(Status::Completed) {
            self.open.remove(&id);
            self.completed.insert(id, keys);
        } else {
            self.open.insert(id, keys);
        }
    }
}

/// Separator between open and completed items in the text.
const BETWEEN: &str = "--\n";

fn id_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

impl StateKeys {
    /// Returns the keys of `state` that are kept apart from the text: those that differ from a new item's.
    pub fn of(state: &State) -> StateKeys {
        let status = Some(state.status()).filter(|status| *status != Status::Pending);
        let status = status.map(|status| (Key::Status, Some(status.as_str().into())));
        let all = state.keys().into_iter().chain(status);
        let apart = all.filter(|(key, _)| key.is_apart());
        let known = apart.filter_map(|(key, value)| Some((key.as_str().to_owned(), value?)));
        StateKeys(known.collect())
    }

    /// Returns true if nothing differs from a new item.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `None`: the text's status counts.
    pub fn status(&self) -> Option<Status> {
        self.0.get(Key::Status.as_str())?.as_str()?.parse().ok()
    }

    /// Returns the time before which it can't be claimed, apart from the text's.
    pub fn not_before(&self) -> Option<Timestamp> {
        self.fields().find_map(|(key, field)| match (key, field) {
            (Key::NotBefore, Field::Time(time)) => Some(time),
            _ => None,
        })
    }

    /// Returns the keys as a YAML mapping on one line, the status first.
    pub fn shown(&self, status: Status) -> String {
        let is_other = |(name, _): &(&String, &Value)| *name != Key::Status.as_str();
        let mut pairs = vec![format!("{}: {}", Key::Status.as_str(), status.as_str())];
        let others = self.0.iter().filter(is_other);
        pairs.extend(others.map(|(name, value)| format!("{name}: {}", flow(value))));
        format!("{{{}}}", pairs.join(", "))
    }

    /// Returns the keys without those that only the log can prove: a holder, approvals, and the permission to start.
    pub fn without_log(mut self) -> StateKeys {
        if self.status().is_some_and(Status::is_held) {
            self.remove(&[Key::Status, Key::Agent, Key::Started]);
        }
        self.remove(&[Key::Allowed, Key::Approvals]);
        self
    }

    /// Returns the keys without the status, for an item that sets it in its text from now on.
    pub fn without_status(mut self) -> StateKeys {
        self.remove(&[Key::Status]);
        self
    }

    fn remove(&mut self, keys: &[Key]) {
        self.0
            .retain(|name, _| !keys.iter().any(|key| key.as_str() == name));
    }

    /// Returns the keys with their parsed values. Keys of a later version are ignored.
    pub fn fields<'t>(&self) -> impl Iterator<Item = (Key, Field<'t>)> {
        self.0.iter().filter_map(|(name, value)| {
            let key = Key::named(name).filter(|key| key.is_apart())?;
            Some((key, read_field(key.shape(), value)?))
        })
    }

    /// Returns the `fields` of a text with these keys in place of its own. Of two `not_before` times the
    /// later counts.
    pub(crate) fn over<'t>(&self, fields: Fields<'t>) -> Fields<'t> {
        let typed = fields.time(Key::NotBefore).max(self.not_before());
        let Fields(mut fields) = fields;
        fields.retain(|(key, _)| !key.is_apart());
        fields.extend(self.fields().filter(|(key, _)| *key != Key::NotBefore));
        fields.extend(typed.map(|time| (Key::NotBefore, Field::Time(time))));
        Fields(fields)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn what_is_set_is_got_before_and_after_it_is_written(
            sets in proptest::collection::vec((0..40u32, 0..4u32, proptest::bool::ANY, proptest::bool::weighted(0.1)), 0..80)
        ) {
            let (mut states, mut model) = (States::default(), BTreeMap::new());
            for (number, attempt, is_completed, is_written) in sets {
                let id: TaskId = format!("T-{number}").parse().expect("an ID");
                let status = if is_completed { Status::Completed } else { Status::Pending };
                let keys = StateKeys::of(&State { attempt, ..State::from(status) });
                states.set(id.clone(), keys.clone());
                model.insert(id, keys);
                if is_written {
                    states = States::read(&states.write()).expect("it was just written");
                }
            }
            for (id, keys) in model {
                let got = states.get(&id).map(Cow::into_owned);
                prop_assert_eq!(got, Some(keys).filter(|keys| !keys.is_empty()), "{}", id);
            }
        }
    }
}
