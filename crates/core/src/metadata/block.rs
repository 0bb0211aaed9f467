//! The fenced `yaml task` block: keys are read line by line, and by the YAML parser where the scan is not enough.

use std::collections::HashSet;
use std::ops::Range;

use serde_yaml::Value;

use super::KeyEntry;
use super::pairs::{Pair, Pairs, closing_quote};
use super::value::{Elements, list_of, meaning, plain_of, plain_of_yaml};
use crate::markup::dedent;
use crate::yaml::{self, YamlError};

/// The `yaml task` block of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskBlock {
    /// All of its lines, the fences' included.
    pub fences: Range<usize>,
    /// The lines between the fences.
    pub content: Range<usize>,
    /// Columns before the opening fence, which are no part of the YAML.
    pub column: usize,
}

/// An error of the YAML parser, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenYaml {
    pub at: usize,
    pub message: String,
}

/// Calls `found` for each key of the block, in order.
pub fn read_block<'t>(
    text: &'t str,
    block: &TaskBlock,
    found: &mut dyn FnMut(KeyEntry<'t>),
) -> Result<(), BrokenYaml> {
    let lines = Lines::of(text, block.content.clone());
    let whole = if lines.is_ordinary {
        Value::Null
    } else {
        parse_block(text, block)?
    };
    let mut read = HashSet::new();
    for pair in lines.pairs.iter().filter(|pair| !pair.name.is_empty()) {
        let name = &text[pair.name.clone()];
        if !lines.is_ordinary {
            read.insert(name);
        }
        let meaning = meaning(name, || match pair.style {
            Style::Line => plain_of(&text[pair.value.clone()]),
            Style::List => list_of(&text[pair.value.clone()]),
            Style::Odd => whole.get(name).and_then(plain_of_yaml),
        });
        found(KeyEntry {
            name,
            at: pair.name.start,
            value: pair.value.clone(),
            meaning,
        });
    }
    // Keys in another spelling, such as in quotes.
    let keys = whole
        .as_mapping()
        .into_iter()
        .flatten()
        .filter_map(|(key, _)| key.as_str());
    let content = &text[..block.content.end];
    let mut from = block.content.start;
    for key in keys.filter(|key| !read.contains(key)) {
        let is_whole = |at: &usize| {
            let (before, after) = (
                content[..*at].chars().next_back(),
                content[at + key.len()..].chars().next(),
            );
            ![before, after]
                .iter()
                .flatten()
                .any(|c| c.is_alphanumeric() || *c == '_')
        };
        let found_at = content[from..]
            .match_indices(key)
            .map(|(at, _)| from + at)
            .find(is_whole);
        let at = found_at.ok_or_else(|| BrokenYaml {
            at: from + content[from..].len() - content[from..].trim_start().len(),
            message: format!("the key `{key}` is written with escapes"),
        })?;
        from = at + key.len();
        let meaning = meaning(key, || whole.get(key).and_then(plain_of_yaml));
        found(KeyEntry {
            name: &text[at..at + key.len()],
            at,
            value: at..at + key.len(),
            meaning,
        });
    }
    Ok(())
}

fn parse_block(text: &str, block: &TaskBlock) -> Result<Value, BrokenYaml> {
    let content = &text[block.content.clone()];
    let mut own = String::with_capacity(content.len());
    for line in content.split_inclusive('\n') {
        own.push_str(&dedent(line, block.column));
    }
    match yaml::read::<Value>(&own) {
        Ok(Value::Null) => Ok(Value::Null),
        Ok(Value::Mapping(map)) => Ok(Value::Mapping(map)),
        Ok(_) => {
            let at = block.content.end - content.trim_start().len();
            Err(BrokenYaml {
                at,
                message: "the block is not a list of `key: value` lines".into(),
            })
        }
        Err(error) => Err(broken_yaml(text, block.content.clone(), &error)),
    }
}

/// Returns the parser's error at its place in the document, without the line within the block in its text.
pub fn broken_yaml(text: &str, content: Range<usize>, error: &YamlError) -> BrokenYaml {
    let message = error.to_string();
    let message = message
        .split(" at line ")
        .next()
        .unwrap_or(&message)
        .to_owned();
    let line = error.place.map_or(1, |(_, line)| line.max(1));
    let at = text[content.clone()]
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum::<usize>();
    let at = content.start + at;
    let blanks =
        text[at..content.end].len() - text[at..content.end].trim_start_matches([' ', '\t']).len();
    BrokenYaml {
        at: at + blanks,
        message,
    }
}

/// The block's own keys, line by line.
pub(super) struct Lines {
    pub(super) pairs: Vec<LinePair>,
    /// Whether all of it is plain, so that no YAML parser is needed.
    pub(super) is_ordinary: bool,
}

pub(super) struct LinePair {
    /// Empty if only the YAML parser can read the line.
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    /// The key's lines, line end included.
    pub(super) lines: Range<usize>,
    pub(super) style: Style,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `key: value`.
    Line,
    /// `key:` and lines of `- element`.
    List,
    /// Anything else.
    Odd,
}

impl Lines {
    pub(super) fn of(text: &str, content: Range<usize>) -> Lines {
        let mut pairs: Vec<LinePair> = Vec::new();
        let mut is_ordinary = true;
        let mut margin: Option<&str> = None;
        let mut at = content.start;
        // End of the last value that may continue at the margin.
        let mut open_until = content.start;
        for line in text[content.clone()].split_inclusive('\n') {
            let start = at;
            at += line.len();
            let trimmed = line.trim_start_matches([' ', '\t']);
            let indent = &line[..line.len() - trimmed.len()];
            let bare = trimmed.trim_end();
            if bare.is_empty() || bare.starts_with('#') {
                continue;
            }
            let bare_start = start + indent.len();
            let is_base = *margin.get_or_insert(indent) == indent;
            let is_element = bare == "-" || bare.starts_with("- ");
            if is_base && !is_element {
                let Some(name) = block_key(bare) else {
                    is_ordinary = false;
                    match pairs.last_mut() {
                        Some(last) if start < open_until => {
                            last.lines.end = at;
                            last.style = Style::Odd;
                        }
                        _ => pairs.push(LinePair {
                            name: start..start,
                            value: bare_start..bare_start + bare.len(),
                            lines: start..at,
                            style: Style::Odd,
                        }),
                    }
                    continue;
                };
                let after = &bare[name.len() + 1..];
                let value_start = bare_start + bare.len() - after.trim_start().len();
                let value = without_comment(after.trim_start());
                let style = if is_ordinary_value(value) {
                    Style::Line
                } else {
                    Style::Odd
                };
                is_ordinary &= style == Style::Line;
                if style == Style::Odd && start >= open_until {
                    open_until = end_of_flow(&text.as_bytes()[..content.end], value_start);
                }
                pairs.push(LinePair {
                    name: bare_start..bare_start + name.len(),
                    value: value_start..value_start + value.len(),
                    lines: start..at,
                    style,
                });
                continue;
            }
            let Some(last) = pairs.last_mut() else {
                is_ordinary = false;
                continue;
            };
            let element = bare.strip_prefix("- ").map(str::trim_start);
            let is_plain =
                element.is_some_and(|element| is_ordinary_scalar(element, Inside::Block));
            let continues_list =
                last.style == Style::List || (last.style == Style::Line && last.value.is_empty());
            if is_plain && continues_list && indent.len() >= margin.map_or(0, str::len) {
                if last.value.is_empty() {
                    last.value.start = bare_start;
                }
                last.style = Style::List;
            } else {
                last.style = Style::Odd;
                is_ordinary = false;
            }
            last.value.end = bare_start + bare.len();
            last.lines.end = at;
        }
        Lines { pairs, is_ordinary }
    }
}

/// The name in `name:` or `name: value`.
fn block_key(line: &str) -> Option<&str> {
    let (name, after) = line.split_once(':')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    (is_name && (after.is_empty() || after.starts_with([' ', '\t']))).then_some(name)
}

/// Returns the end of the list, map or quoted text that begins at `start`; other values end there.
fn end_of_flow(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' if at == start || !bytes[at - 1].is_ascii_alphanumeric() => {
                at = closing_quote(bytes, at).unwrap_or(bytes.len());
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

fn without_comment(value: &str) -> &str {
    if value.starts_with('#') {
        return "";
    }
    let after_quote = match value.as_bytes().first() {
        Some(b'"' | b'\'') => closing_quote(value.as_bytes(), 0).map_or(0, |close| close + 1),
        _ => 0,
    };
    let comment = value[after_quote..]
        .find(" #")
        .map_or(value.len(), |at| after_quote + at);
    value[..comment].trim_end()
}

fn is_ordinary_value(value: &str) -> bool {
    let inner = |open, close| {
        value
            .strip_prefix(open)
            .and_then(|rest: &str| rest.strip_suffix(close))
    };
    if let Some(inner) = inner('[', ']') {
        return Elements(inner).all(|element| is_ordinary_scalar(element, Inside::Flow));
    }
    if let Some(inner) = inner('{', '}') {
        let mut pairs = Pairs::new(inner, 0..inner.len());
        let is_ordinary = |pair: Pair| {
            !inner[pair.name].starts_with(['"', '\''])
                && is_ordinary_scalar(&inner[pair.value], Inside::Flow)
        };
        return pairs.by_ref().all(is_ordinary) && !pairs.is_broken;
    }
    value.is_empty() || is_ordinary_scalar(value, Inside::Block)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Flow,
    Block,
}

/// Returns true if the scan and every YAML parser read the scalar the same.
pub(super) fn is_ordinary_scalar(text: &str, inside: Inside) -> bool {
    let bytes = text.as_bytes();
    let Some(first) = bytes.first() else {
        return false;
    };
    if matches!(first, b'"' | b'\'') {
        let has_escape = *first == b'"' && text.contains('\\');
        return closing_quote(bytes, 0) == Some(bytes.len() - 1)
            && !has_escape
            && !text.contains(is_unprintable);
    }
    let is_start = match first {
        // In a flow, YAML parsers differ over values with these beginnings.
        b'?' | b':' if inside == Inside::Flow => false,
        b'-' | b'?' | b':' => bytes
            .get(1)
            .is_some_and(|second| !matches!(second, b' ' | b'\t' | b'-')),
        first => !b",[]{}#&*!|>%@`".contains(first),
    };
    is_start
        && bytes.last() != Some(&b':')
        && !text.contains(": ")
        && !text.contains(":\t")
        && !text.contains(" #")
        && !text.contains("\t#")
        && !text.contains(is_unprintable)
        && !(inside == Inside::Flow
            && (text.contains([',', '[', ']', '{', '}']) || text.contains(":?")))
}

/// Returns true for characters that YAML rejects, or reads differently than the scan.
pub(super) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}
