//! Parses a document with states from the spelling of tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_yaml::Value;

use crate::document::{Document, parse};
use crate::key::{Key, Shape};
use crate::metadata::{KeyEntry, read_parenthesis};
use crate::state::State;
use crate::states::{StateKeys, States};
use crate::text::{Edit, apply};
use crate::yaml;

/// Parses a text in the spelling of tests: behind an ID a parenthesis may also have keys of a state. They are
/// kept apart from the text, with the status in it.
pub(crate) fn with_states(typed: &str) -> Document<'static> {
    let (mut edits, mut remembered) = (Vec::new(), Vec::new());
    let (document, _) = parse(typed);
    for item in document.items() {
        let (head, mut entries) = (item.head.clone(), Vec::new());
        let line = typed[head.clone()].trim_end();
        let open = line.rfind(" (").filter(|_| line.ends_with(')'));
        let (Some(id), Some(open)) = (&item.id, open) else {
            continue;
        };
        let span = head.start + open..head.start + line.len();
        let mut add = |entry| entries.push(entry);
        read_parenthesis(typed, span.start + 1..span.end, &mut add);
        let is_of_state = |entry: &KeyEntry<'_>| {
            Key::named(entry.name).is_some() && Key::of_text(entry.name).is_none()
        };
        let (of_state, of_text): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_of_state);
        if of_state.is_empty() {
            continue;
        }
        let pair = |entry: &KeyEntry<'_>| &typed[entry.at..entry.value.end];
        let pairs: Vec<_> = of_text.iter().map(pair).collect();
        let parenthesis = if pairs.is_empty() {
            String::new()
        } else {
            format!(" ({})", pairs.join(", "))
        };
        edits.push(Edit::replace(span, parenthesis));
        let value = |entry: &KeyEntry<'_>| {
            let raw = &typed[entry.value.clone()];
            match Key::named(entry.name).map(Key::shape) {
                Some(Shape::Text) => yaml::read::<String>(raw).map(Value::from),
                _ => yaml::read(raw),
            }
        };
        let read = |entry: &KeyEntry<'_>| {
            let value = value(entry).expect("a test's value is YAML");
            (entry.name.to_owned(), value)
        };
        let keys: BTreeMap<_, _> = of_state.iter().map(read).collect();
        remembered.push((id.clone(), keys));
    }
    let text: &'static str = String::leak(apply(typed, &edits));
    let (document, _) = parse(text);
    let mut states = States::default();
    for (id, mut keys) in remembered {
        let status = document.find(&id).expect("it was there").status;
        keys.extend(as_read::<BTreeMap<String, Value>>(StateKeys::of(
            &State::from(status),
        )));
        states.set(id, as_read(keys));
    }
    document.with_states(Arc::new(states))
}

fn as_read<T: DeserializeOwned>(value: impl Serialize) -> T {
    let value = serde_yaml::to_value(value).expect("all keys are strings");
    serde_yaml::from_value(value).expect("it is of the same keys")
}
