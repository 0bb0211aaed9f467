//! A new item, and its block as text.

use serde_yaml::Value;

use crate::document::parse;
use crate::markup;
use crate::metadata::{self, Key, Owner};
use crate::task::TaskId;
use crate::title_tail::before_tail;

/// An item to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewItem {
    pub id: Option<TaskId>,
    pub title: String,
    /// Keys of the title line.
    pub fields: Vec<(Key, Value)>,
    /// Keys of the `yaml task` block.
    pub yaml_fields: Vec<(Key, Value)>,
    pub description: String,
}

impl NewItem {
    /// The same with all that it says in other words, but for its commands: they are run as they were typed.
    #[must_use]
    pub fn with_words(self, told: impl Fn(&str) -> String) -> NewItem {
        let of = |fields: Vec<(Key, Value)>| {
            fields
                .into_iter()
                .map(|(key, value)| match key {
                    Key::DoneWhen => (key, value),
                    _ => (key, reworded(value, &told)),
                })
                .collect()
        };
        let (fields, yaml_fields) = (of(self.fields), of(self.yaml_fields));
        NewItem {
            title: told(&self.title),
            description: told(&self.description),
            fields,
            yaml_fields,
            ..self
        }
    }

    /// Says its commands in other words.
    pub(super) fn tell_commands(&mut self, told: &impl Fn(&str) -> String) {
        let fields = self.fields.iter_mut().chain(&mut self.yaml_fields);
        for (_, value) in fields.filter(|(key, _)| *key == Key::DoneWhen) {
            *value = reworded(std::mem::take(value), told);
        }
    }
}

/// A text, or a list of them, as no key of a new item has more.
fn reworded(value: Value, told: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => told(&text).into(),
        Value::Sequence(values) => values
            .into_iter()
            .map(|value| reworded(value, told))
            .collect(),
        value => value,
    }
}

/// The value of `after` for these; nothing if there are none.
pub fn written_ids(ids: &[TaskId]) -> Option<Value> {
    match ids {
        [] => None,
        [one] => Some(one.as_str().into()),
        several => Some(several.iter().map(|id| Value::from(id.as_str())).collect()),
    }
}

/// The item's block with `\n` line ends and the bullet `-`.
pub fn render(new: &NewItem) -> String {
    let title = new.title.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut block = String::from("- [ ]");
    if let Some(id) = &new.id {
        block.push_str(&format!(" {id}:"));
    }
    let (title, tail) = title.split_at(before_tail(&title));
    if !title.is_empty() {
        block.push_str(&format!(" {title}"));
    }
    if !new.fields.is_empty() {
        let pairs: Vec<String> = new
            .fields
            .iter()
            .map(|(key, value)| format!("{}: {}", key.as_str(), metadata::flow(value)))
            .collect();
        let title_end = block.len();
        block.push_str(&format!(" ({})", pairs.join(", ")));
        // In a line without an ID it would be title.
        block = if new.id.is_some() {
            metadata::legible(&block, title_end)
        } else {
            block
        };
    } else if new.id.is_some()
        && !matches!(
            metadata::find_parenthesis(title, Owner::Person),
            Ok(Some(_))
        )
    {
        block = metadata::closed(&block, block.len());
    }
    block.push_str(tail.trim_end());
    block.push('\n');
    let yaml = yaml_block(&new.yaml_fields);
    let description = markup::trim_blank_lines(&new.description).replace("\r\n", "\n");
    let text = indented(&description);
    if text.is_empty() && yaml.is_empty() {
        return block;
    }
    // Directly under the title stands only what can't change how the title reads.
    let gap = if description.starts_with(char::is_alphanumeric) {
        ""
    } else {
        "\n"
    };
    let usual = match (text.is_empty(), yaml.is_empty()) {
        (false, false) => format!("{block}{gap}{text}\n{yaml}"),
        (false, true) => format!("{block}{gap}{text}"),
        (true, _) => format!("{block}\n{yaml}"),
    };
    // A description that leaves a fence open, or has keys of its own, would swallow these.
    let has_keys = |text: &str| {
        let (document, _) = parse(text);
        let block = document
            .items()
            .first()
            .and_then(|item| item.block.as_deref());
        block.is_some_and(|block| text[block.fences.clone()] == yaml)
    };
    if yaml.is_empty() || text.is_empty() || has_keys(&usual) {
        usual
    } else {
        format!("{block}\n{yaml}\n{text}")
    }
}

fn indented(text: &str) -> String {
    text.split('\n').fold(String::new(), |mut lines, line| {
        if !line.trim().is_empty() {
            lines.push_str("  ");
            lines.push_str(line.trim_end_matches('\r'));
        }
        if !(lines.is_empty() && line.is_empty()) {
            lines.push('\n');
        }
        lines
    })
}

fn yaml_block(fields: &[(Key, Value)]) -> String {
    if fields.is_empty() {
        return String::new();
    }
    let mut block = String::from("  ```yaml task\n");
    for (key, value) in fields {
        let name = key.as_str();
        match value {
            Value::Sequence(list) if !list.is_empty() && *key == Key::DoneWhen => {
                block.push_str(&format!("  {name}:\n"));
                for element in list {
                    block.push_str(&format!("    - {}\n", metadata::flow(element)));
                }
            }
            _ => block.push_str(&format!("  {name}: {}\n", metadata::flow(value))),
        }
    }
    block.push_str("  ```\n");
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_run_as_it_was_typed_whatever_words_are_changed() {
        let told = |text: &str| text.replace("abc", "[redacted]");
        let new = NewItem {
            title: "Use abc".to_owned(),
            fields: vec![
                (Key::DoneWhen, "test abc".into()),
                (Key::Role, "abc".into()),
            ],
            yaml_fields: vec![(Key::DoneWhen, Value::Sequence(vec!["curl abc".into()]))],
            ..NewItem::default()
        };
        let mut changed = new.clone().with_words(told);
        assert_eq!(changed.title, "Use [redacted]");
        assert_eq!(changed.fields[0], new.fields[0]);
        assert_eq!(changed.fields[1].1, Value::from("[redacted]"));
        assert_eq!(changed.yaml_fields, new.yaml_fields);
        changed.tell_commands(&told);
        assert_eq!(changed.fields[0].1, Value::from("test [redacted]"));
    }
}
