//! `tavern edit ID --set KEY=VALUE`: sets keys of an item without an editor.

use serde_yaml::Value;

use tavern_core::document::parse as parse_document;
use tavern_core::metadata::{Key, takes};
use tavern_core::patch::Patch;
use tavern_core::text::apply;
use tavern_core::yaml;
use tavern_store::{Board, Edited, Error, NamedItem, Queue};

use crate::CliError;

/// Sets these keys of the item, as an edit by hand.
pub(super) fn set(
    board: &Board,
    queue: &Queue,
    item: &NamedItem,
    assignments: &[String],
) -> Result<Edited, CliError> {
    let assignments = assignments.iter().flat_map(|words| split(words));
    let set = assignments.map(parse).collect::<Result<_, _>>()?;
    let content = board.read(queue)?.content;
    let (document, _) = content.parse();
    let at = item
        .index_in(queue, &document)
        .ok_or_else(|| item.clone().lost())?;
    let patch = Patch {
        set,
        ..Patch::default()
    };
    let item = document.item(at);
    let edited = apply(&content, &document.change(item, &patch));
    let is_broken = parse_document(&edited).0.item(at).quarantined;
    if is_broken && !item.quarantined {
        let task = document.task_of(item).id;
        return Err(Error::Quarantined { task }.into());
    }
    Ok(board.edit(queue, &content, &edited)?)
}

/// Splits `priority=1 after=T-2` before each known key.
fn split(words: &str) -> Vec<&str> {
    let begins = |at: &usize| {
        let rest = words[*at..].trim_start();
        let key = rest.split_once('=').map(|(key, _)| key);
        key.is_some_and(|key| Key::of_text(key).is_some())
    };
    let blanks = words.match_indices(' ').map(|(at, _)| at);
    let mut parts = Vec::new();
    let mut start = 0;
    for at in blanks.filter(begins) {
        parts.push(words[start..at].trim());
        start = at;
    }
    parts.push(words[start..].trim());
    parts
}

/// Parses `KEY=VALUE`; an empty value unsets the key.
fn parse(assignment: &str) -> Result<(Key, Option<Value>), CliError> {
    let Some((name, value)) = assignment.split_once('=') else {
        let hint = "write KEY=VALUE, such as priority=1";
        return Err(CliError::usage(format!("`{assignment}` sets no key"), hint));
    };
    let key = Key::of_text(name).filter(|key| *key != Key::Status);
    let Some(key) = key else {
        let hint = match Key::nearest(name) {
            Some(near) => format!("did you mean `{}`?", near.as_str()),
            None => "the keys of items: specs/queue-document.md".to_owned(),
        };
        return Err(CliError::usage(format!("unknown key `{name}`"), hint));
    };
    if value.is_empty() {
        return Ok((key, None));
    }
    if !takes(key, value) {
        let message = format!("invalid value for `{name}`: `{value}`");
        return Err(CliError::usage(message, key.shape().expects()));
    }
    let value = yaml::read(value).unwrap_or_else(|_| Value::from(value));
    Ok((key, Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_split_before_known_keys() {
        for (words, parts) in [
            ("priority=1", &["priority=1"][..]),
            ("priority=1 after=T-2", &["priority=1", "after=T-2"]),
            (
                "done_when=env A=1 make test priority=0",
                &["done_when=env A=1 make test", "priority=0"],
            ),
            ("priority", &["priority"]),
        ] {
            assert_eq!(split(words), parts);
        }
    }
}
