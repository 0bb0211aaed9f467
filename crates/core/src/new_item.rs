//! A new item, and its block as text.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
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
    /// Returns the item with its texts mapped by the function, except commands: they run as typed.
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
            description: reworded_around(&self.description, &told),
            fields,
            yaml_fields,
            ..self
        }
    }

    /// Returns everything that is run for it: its commands and its scripts.
    pub fn commands(&self) -> Vec<String> {
        let fields = self.fields.iter().chain(&self.yaml_fields);
        let commands = fields.filter(|(key, _)| *key == Key::DoneWhen);
        let scripts = scripts(&self.description).into_iter();
        commands
            .flat_map(|(_, value)| texts(value))
            .chain(scripts.map(|span| self.description[span].to_owned()))
            .collect()
    }
}

/// Returns the ranges of script fences in a description.
fn scripts(description: &str) -> Vec<Range<usize>> {
    let events = Parser::new(description).into_offset_iter();
    let spans = events.filter_map(|(event, span)| {
        let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) = event else {
            return None;
        };
        let shell = info.split_ascii_whitespace().next()?;
        matches!(shell, "sh" | "bash" | "shell").then_some(span)
    });
    spans.collect()
}

/// Maps a description, except its scripts.
fn reworded_around(description: &str, told: &impl Fn(&str) -> String) -> String {
    let whole = told(description);
    if whole == description {
        return whole;
    }
    let (mut words, mut from) = (String::new(), 0);
    for span in scripts(description) {
        words += &told(&description[from..span.start]);
        words += &description[span.clone()];
        from = span.end;
    }
    words + &told(&description[from..])
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Sequence(values) => values.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Maps a text or a list of texts; keys of a new item have nothing deeper.
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

/// Returns the value of `after` for these; `None` if there are none.
pub fn written_ids(ids: &[TaskId]) -> Option<Value> {
    match ids {
        [] => None,
        [one] => Some(one.as_str().into()),
        several => Some(several.iter().map(|id| Value::from(id.as_str())).collect()),
    }
}

/// Returns the item's block with `\n` line ends and the bullet `-`.
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
        // In a line without an ID it would be part of the title.
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
    // Directly under the title, only text that can't change the title's meaning may stand.
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
    // A description with an open fence, or keys of its own, would swallow these.
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
            description: "An abc.\n\n  ~~~bash\n  curl abc\n  ~~~\n\nAnd abc.\n```yaml\nabc\n```\n"
                .to_owned(),
            ..NewItem::default()
        };
        let changed = new.clone().with_words(told);
        assert_eq!(changed.title, "Use [redacted]");
        assert_eq!(changed.fields[0], new.fields[0]);
        assert_eq!(changed.fields[1].1, Value::from("[redacted]"));
        assert_eq!(changed.yaml_fields, new.yaml_fields);
        assert_eq!(
            changed.description,
            "An [redacted].\n\n  ~~~bash\n  curl abc\n  ~~~\n\nAnd [redacted].\n```yaml\n[redacted]\n```\n"
        );
        assert_eq!(
            new.commands(),
            ["test abc", "curl abc", "~~~bash\n  curl abc\n  ~~~"]
        );
    }
}
