//! Writes values as flow text, and sets or removes one key of a line or a block.

use std::ops::Range;

use serde_yaml::Value;

use super::block::{Inside, Lines, Style, is_ordinary_scalar, is_unprintable};
use super::pairs::{Pair, Pairs};
use super::{Key, Owner, find_parenthesis};
use crate::yaml;

/// Returns the value as YAML flow text on one line, safe in a title line's parenthesis and in a task block.
pub fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => flow_text(text),
        Value::Sequence(list) => {
            format!("[{}]", list.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Mapping(map) => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", flow(key), flow(value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Tagged(tagged) => flow(&tagged.value),
    }
}

fn flow_text(text: &str) -> String {
    let is_plain = is_ordinary_scalar(text, Inside::Flow)
        && !text.starts_with(['"', '\''])
        && !text.contains(['(', ')', '#'])
        && text.trim() == text
        // A text that YAML would read as a number, a flag or null needs quotes.
        && matches!(yaml::read::<Value>(text), Ok(Value::String(read)) if read == text);
    if is_plain {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if is_unprintable(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns `line` with `name` set to the flow text `value`, or removed. `line` is a title line from behind
/// its ID, [`super::bare`], without line end and trailing blanks. Other keys are kept as written. The text up
/// to `title` stays title, whatever it ends with.
pub fn set_in_line(line: &str, title: usize, name: &str, value: Option<&str>) -> String {
    let Some(span) = parenthesis_behind(line, title) else {
        return match value {
            Some(value) if line.is_empty() => format!("({name}: {value})"),
            Some(value) => format!("{line} ({name}: {value})"),
            None => line.to_owned(),
        };
    };
    let pairs: Vec<Pair> = Pairs::of_parenthesis(line, span.clone()).collect();
    let Some(index) = pairs
        .iter()
        .position(|pair| &line[pair.name.clone()] == name)
    else {
        let last = pairs.last().map_or(span.start + 1, |pair| pair.value.end);
        return match value {
            Some(value) => {
                let behind = format!(
                    "{}, {name}: {value}{}",
                    &line[..last],
                    line[last..].trim_start_matches(',')
                );
                if line_has(&behind, title, name) {
                    return behind;
                }
                // The last value has an open bracket or quote, and would swallow text behind it.
                let first = span.start + 1;
                format!(
                    "{}{name}: {value}, {}",
                    &line[..first],
                    line[first..].trim_start_matches([' ', '\t'])
                )
            }
            None => line.to_owned(),
        };
    };
    let pair = &pairs[index];
    let replace = |value: &str| {
        let gap = if line.as_bytes()[pair.value.start - 1] == b':' {
            " "
        } else {
            ""
        };
        format!(
            "{}{gap}{value}{}",
            &line[..pair.value.start],
            &line[pair.value.end..]
        )
    };
    if let Some(value) = value {
        return replace(value);
    }
    let cut = match (index.checked_sub(1), pairs.get(index + 1)) {
        (_, Some(next)) => pair.name.start..next.name.start,
        (Some(before), None) => pairs[before].value.end..pair.value.end,
        (None, None) => title_line(&line[..span.start]).len()..span.end,
    };
    let without = format!("{}{}", &line[..cut.start], &line[cut.end..]);
    // The rest must read as before: unknown keys must not become title, nor the title's end metadata.
    let left = pairs.len() - 1;
    let reads_same = match find_parenthesis(&without, Owner::State) {
        Ok(Some(span)) => Pairs::of_parenthesis(&without, span).count() == left,
        Ok(None) => left == 0,
        Err(_) => false,
    };
    match reads_same {
        true => without,
        false if left == 0 => {
            format!(
                "{}{}: null{}",
                &line[..pair.name.start],
                Key::Status.as_str(),
                &line[pair.value.end..]
            )
        }
        false => replace("null"),
    }
}

/// Returns the text before a parenthesis without trailing blanks. If the parenthesis is on its own line, the
/// title's line stays as it was.
pub fn title_line(before: &str) -> &str {
    let before = before.trim_end_matches([' ', '\t']);
    ["\r\n", "\n", "\r"]
        .into_iter()
        .find_map(|end| before.strip_suffix(end))
        .unwrap_or(before)
}

/// Returns the line with its title, up to `title`, kept from being read as keys: a person's title stays title
/// under an ID.
pub fn closed(line: &str, title: usize) -> String {
    match find_parenthesis(line, Owner::State) {
        Ok(None) => line.to_owned(),
        _ => set_in_line(line, title, Key::Status.as_str(), Some("null")),
    }
}

/// Returns the metadata of `line`, behind a title up to `title`.
pub fn parenthesis_behind(line: &str, title: usize) -> Option<Range<usize>> {
    let span = find_parenthesis(&line[title..], Owner::State).ok()??;
    Some(title + span.start..title + span.end)
}

/// Returns true if the parenthesis at the end of `line`, behind a title up to `title`, has the key.
pub fn line_has(line: &str, title: usize, name: &str) -> bool {
    let Some(span) = parenthesis_behind(line, title) else {
        return false;
    };
    Pairs::of_parenthesis(line, span).any(|pair| &line[pair.name] == name)
}

/// Returns true if the lines `content` of a task block have the key.
pub fn block_has(content: &str, name: &str) -> bool {
    Lines::of(content, 0..content.len())
        .pairs
        .iter()
        .any(|pair| &content[pair.name.clone()] == name)
}

/// Returns the lines `content` of a task block with `name` set to the flow text `value`, or removed; `None`
/// without the key. Comments and all other lines stay.
pub fn set_in_block(content: &str, name: &str, value: Option<&str>) -> Option<String> {
    let lines = Lines::of(content, 0..content.len());
    let pair = lines
        .pairs
        .iter()
        .find(|pair| &content[pair.name.clone()] == name)?;
    let (cut, text) = match value {
        None => (pair.lines.clone(), String::new()),
        Some(value) => {
            let behind_colon = pair.name.end + 1;
            match pair.style {
                Style::Line if !pair.value.is_empty() => (pair.value.clone(), value.to_owned()),
                Style::Line => (behind_colon..behind_colon, format!(" {value}")),
                // The old value's lines are replaced, too.
                _ => {
                    let lines = content[pair.lines.clone()].trim_end().len();
                    (behind_colon..pair.lines.start + lines, format!(" {value}"))
                }
            }
        }
    };
    Some(format!(
        "{}{text}{}",
        &content[..cut.start],
        &content[cut.end..]
    ))
}
