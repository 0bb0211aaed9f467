//! An item's keys: `(key: value, …)` on its title line and the fenced `yaml task` block, read and edited without loss.
//!
//! Knows keys and their types, not lanes or lists. The ordinary case is a scan of the bytes; the YAML parser is asked
//! only about what the scan doesn't know (escapes, block scalars, anchors).

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use serde_yaml::Value;

use crate::board::markup::dedent;
use crate::board::problem::nearest;
use crate::board::task::{Budget, Status, TaskId, Timestamp};

/// A key that Tavern knows. Others are kept as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Priority,
    After,
    Role,
    Tags,
    Parent,
    Runner,
    Model,
    DoneWhen,
    Touches,
    Budget,
    Worktree,
    Empty,
    Attempt,
    Returns,
    MaxAttempts,
    NotBefore,
    Agent,
    Started,
    Completed,
    Commit,
    Reason,
    Status,
    Approve,
    Review,
    Question,
    Answer,
}

/// What a key's value must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Priority,
    Id,
    Ids,
    Text,
    /// One word that names something of the configuration.
    Word,
    /// Several, set apart by commas if not written as a list.
    Words,
    /// One or several; a comma belongs to the text.
    Commands,
    Budget,
    Flag,
    /// `allowed` or `fail`.
    Empty,
    Count,
    Time,
    Status,
    Any,
}

impl Key {
    pub const ALL: [Key; 26] = [
        Key::Priority,
        Key::After,
        Key::Role,
        Key::Tags,
        Key::Parent,
        Key::Runner,
        Key::Model,
        Key::DoneWhen,
        Key::Touches,
        Key::Budget,
        Key::Worktree,
        Key::Empty,
        Key::Attempt,
        Key::Returns,
        Key::MaxAttempts,
        Key::NotBefore,
        Key::Agent,
        Key::Started,
        Key::Completed,
        Key::Commit,
        Key::Reason,
        Key::Status,
        Key::Approve,
        Key::Review,
        Key::Question,
        Key::Answer,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Key::Priority => "priority",
            Key::After => "after",
            Key::Role => "role",
            Key::Tags => "tags",
            Key::Parent => "parent",
            Key::Runner => "runner",
            Key::Model => "model",
            Key::DoneWhen => "done_when",
            Key::Touches => "touches",
            Key::Budget => "budget",
            Key::Worktree => "worktree",
            Key::Empty => "empty",
            Key::Attempt => "attempt",
            Key::Returns => "returns",
            Key::MaxAttempts => "max_attempts",
            Key::NotBefore => "not_before",
            Key::Agent => "agent",
            Key::Started => "started",
            Key::Completed => "completed",
            Key::Commit => "commit",
            Key::Reason => "reason",
            Key::Status => "status",
            Key::Approve => "approve",
            Key::Review => "review",
            Key::Question => "question",
            Key::Answer => "answer",
        }
    }

    pub fn named(name: &str) -> Option<Key> {
        Some(match name {
            "priority" => Key::Priority,
            "after" => Key::After,
            "role" => Key::Role,
            "tags" => Key::Tags,
            "parent" => Key::Parent,
            "runner" => Key::Runner,
            "model" => Key::Model,
            "done_when" => Key::DoneWhen,
            "touches" => Key::Touches,
            "budget" => Key::Budget,
            "worktree" => Key::Worktree,
            "empty" => Key::Empty,
            "attempt" => Key::Attempt,
            "returns" => Key::Returns,
            "max_attempts" => Key::MaxAttempts,
            "not_before" => Key::NotBefore,
            "agent" => Key::Agent,
            "started" => Key::Started,
            "completed" => Key::Completed,
            "commit" => Key::Commit,
            "reason" => Key::Reason,
            "status" => Key::Status,
            "approve" => Key::Approve,
            "review" => Key::Review,
            "question" => Key::Question,
            "answer" => Key::Answer,
            _ => return None,
        })
    }

    /// The known key that `name` was most likely meant to be.
    pub fn nearest(name: &str) -> Option<Key> {
        nearest(name, Key::ALL.iter().map(|key| key.as_str())).and_then(Key::named)
    }

    fn shape(self) -> Shape {
        match self {
            Key::Priority => Shape::Priority,
            Key::After => Shape::Ids,
            Key::Parent => Shape::Id,
            Key::Role | Key::Runner => Shape::Word,
            Key::Tags | Key::Touches => Shape::Words,
            Key::Model | Key::Agent | Key::Commit | Key::Reason => Shape::Text,
            Key::DoneWhen => Shape::Commands,
            Key::Budget => Shape::Budget,
            Key::Worktree => Shape::Flag,
            Key::Empty => Shape::Empty,
            Key::Attempt | Key::Returns | Key::MaxAttempts => Shape::Count,
            Key::NotBefore | Key::Started | Key::Completed => Shape::Time,
            Key::Status => Shape::Status,
            Key::Approve | Key::Review | Key::Question | Key::Answer => Shape::Any,
        }
    }

    /// What to write, for the hint of a wrong value.
    pub fn expects(self) -> &'static str {
        match self.shape() {
            Shape::Priority => "write 0 (most urgent) to 9, or critical, high, medium or low",
            Shape::Id => "write one ID, such as T-k3f9",
            Shape::Ids => "write an ID or a list of IDs, such as [T-k3f9, AUTH-7]",
            Shape::Text => "write one text, in double quotes if it has commas or colons",
            Shape::Word => "write one word of letters, digits, `-`, `_` and `.`",
            Shape::Words => "write a list, such as [one, two]",
            Shape::Commands => "write a command, or a list of them",
            Shape::Budget => {
                "write {usd: 2.00, minutes: 30, tokens: 500000, turns: 50, memory_mb: 2048} or some of these"
            }
            Shape::Flag => "write true or false",
            Shape::Empty => "write `allowed` or `fail`",
            Shape::Count => "write a whole number",
            Shape::Time => "write a time such as 2026-11-22T10:00:00Z",
            Shape::Status => {
                "write draft, pending, in_progress, in_review, reviewing, waiting, approved, completed, dead or cancelled"
            }
            Shape::Any => "write a YAML value",
        }
    }
}

/// A value, read.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'t> {
    Number(u32),
    Text(Cow<'t, str>),
    Texts(Vec<Cow<'t, str>>),
    Id(TaskId),
    Ids(Vec<TaskId>),
    Budget(Budget),
    Flag(bool),
    Time(Timestamp),
    Status(Status),
    /// Of a key that is some other program's matter.
    Any,
}

/// One key as it stands in the document.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'t> {
    pub name: &'t str,
    /// Offset of the name in the document.
    pub at: usize,
    pub value: Range<usize>,
    pub meaning: Meaning<'t>,
}

/// What a key of an item says to Tavern.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<'t> {
    Known(Key, Field<'t>),
    /// A known key whose value is empty or null: as if it weren't there.
    Absent(Key),
    /// A known key with a value of the wrong type.
    Wrong(Key),
    Unknown,
}

// ---------------------------------------------------------------------------------------------- the title line

/// The metadata parenthesis at the end of `line` (a title line from after its ID on, without its line end), as a range
/// that includes both parentheses. `Err` carries the first key of one that would be metadata if that key were known.
pub fn find_parenthesis(line: &str) -> Result<Option<Range<usize>>, Range<usize>> {
    let end = line.trim_end().len();
    if end == 0 || line.as_bytes()[end - 1] != b')' {
        return Ok(None);
    }
    let Some(open) = matching_open(line, end) else { return Ok(None) };
    if open > 0 && !matches!(line.as_bytes()[open - 1], b' ' | b'\t') {
        return Ok(None);
    }
    let bytes = &line.as_bytes()[..end - 1];
    // The ordinary case: the first key is known.
    if let Some(name) = key_at(bytes, skip_blanks(bytes, open + 1))
        && Key::named(&line[name]).is_some()
    {
        return Ok(Some(open..end));
    }
    let mut pairs = Pairs::new(line, open + 1..end - 1);
    let mut first = None;
    let mut near = None;
    for pair in pairs.by_ref() {
        let name = &line[pair.name.clone()];
        if Key::named(name).is_some() {
            first = Some(pair.name);
            break;
        }
        if near.is_none() && Key::nearest(name).is_some() {
            near = Some(pair.name);
        }
    }
    if pairs.is_broken {
        return Ok(None);
    }
    match (first, near) {
        (Some(_), _) => Ok(Some(open..end)),
        (None, Some(name)) => Err(name),
        (None, None) => Ok(None),
    }
}

/// Where the parenthesis opens that closes just before `end`. Quotes count inside parentheses, where a value begins.
fn matching_open(line: &str, end: usize) -> Option<usize> {
    let bytes = &line.as_bytes()[..end - 1];
    // The ordinary case: nothing in between needs a closer look.
    let open = bytes.iter().rposition(|byte| matches!(byte, b'(' | b')' | b'"' | b'\''))?;
    if bytes[open] == b'(' {
        return Some(open);
    }
    let mut opened = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => opened.push(at),
            b')' => {
                opened.pop();
            }
            b'"' | b'\'' if !opened.is_empty() && begins_value(&bytes[..at]) => {
                if let Some(close) = closing_quote(bytes, at) {
                    at = close;
                }
            }
            _ => {}
        }
        at += 1;
    }
    opened.pop()
}

/// The quote that closes the one at `open`, if any does.
fn closing_quote(bytes: &[u8], open: usize) -> Option<usize> {
    let quote = bytes[open];
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 1,
            byte if byte == quote => {
                if quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') {
                    at += 1;
                } else {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// `key: value` pairs between commas. A part without a key belongs to the value before it (`after: T-1, T-2`).
struct Pairs<'t> {
    bytes: &'t [u8],
    at: usize,
    is_first: bool,
    is_done: bool,
    /// The text doesn't begin with a key, so none of it is pairs.
    is_broken: bool,
}

struct Pair {
    name: Range<usize>,
    /// Without surrounding blanks; may be empty.
    value: Range<usize>,
}

impl<'t> Pairs<'t> {
    fn new(text: &'t str, span: Range<usize>) -> Pairs<'t> {
        Pairs { bytes: &text.as_bytes()[..span.end], at: span.start, is_first: true, is_done: false, is_broken: false }
    }
}

impl Iterator for Pairs<'_> {
    type Item = Pair;

    fn next(&mut self) -> Option<Pair> {
        if self.is_done {
            return None;
        }
        let bytes = self.bytes;
        let Some(name) = key_at(bytes, skip_blanks(bytes, self.at)) else {
            // Behind the first pair this is a trailing comma.
            self.is_broken = self.is_first;
            self.is_done = true;
            return None;
        };
        self.is_first = false;
        let start = skip_blanks(bytes, name.end + 1);
        let mut end = value_end(bytes, start);
        self.is_done = end == bytes.len();
        self.at = end + 1;
        while end > start && matches!(bytes[end - 1], b' ' | b'\t') {
            end -= 1;
        }
        Some(Pair { name, value: start..end })
    }
}

/// Where the value that begins at `start` ends: at a comma that a key or nothing follows, else at the end.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0usize;
    while at < bytes.len() {
        // Most bytes of a value mean nothing here.
        if !IS_MARK[usize::from(bytes[at])] {
            at += 1;
            continue;
        }
        match bytes[at] {
            b'"' | b'\'' if begins_value(&bytes[start..at]) => {
                if let Some(close) = closing_quote(bytes, at) {
                    at = close;
                }
            }
            b'[' | b'{' | b'(' => depth += 1,
            b']' | b'}' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                let next = skip_blanks(bytes, at + 1);
                if next == bytes.len() || key_at(bytes, next).is_some() {
                    return at;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Bytes that may open, close or end a value.
const IS_MARK: [bool; 256] = {
    let mut marks = [false; 256];
    let mut at = 0;
    while at < MARKS.len() {
        marks[MARKS[at] as usize] = true;
        at += 1;
    }
    marks
};

const MARKS: &[u8; 9] = b"\"'[]{}(),";

/// Whether a quote behind these bytes opens a value.
fn begins_value(before: &[u8]) -> bool {
    match before.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')) {
        None => true,
        Some(last) => match before[last] {
            b',' | b'[' | b'{' | b'(' => true,
            b':' => last + 1 < before.len(),
            _ => false,
        },
    }
}

/// The `[a-z_]+` before a colon that a blank or the end follows; a known key needs no blank.
fn key_at(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let mut end = start;
    while end < bytes.len() && (bytes[end].is_ascii_lowercase() || bytes[end] == b'_') {
        end += 1;
    }
    if end == start || bytes.get(end) != Some(&b':') {
        return None;
    }
    match bytes.get(end + 1) {
        None | Some(b' ' | b'\t' | b',') => Some(start..end),
        Some(_) => std::str::from_utf8(&bytes[start..end]).ok().and_then(Key::named).map(|_| start..end),
    }
}

fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && matches!(bytes[at], b' ' | b'\t') {
        at += 1;
    }
    at
}

/// Calls `found` for each key of the parenthesis at `span` (both parentheses included), in order.
pub fn read_parenthesis<'t>(text: &'t str, span: Range<usize>, found: &mut dyn FnMut(Entry<'t>)) {
    for pair in Pairs::new(text, span.start + 1..span.end - 1) {
        let name = &text[pair.name.clone()];
        let meaning = match Key::named(name) {
            Some(key) => meaning(key, plain_of(&text[pair.value.clone()])),
            None => Meaning::Unknown,
        };
        found(Entry { name, at: pair.name.start, value: pair.value, meaning });
    }
}

// ---------------------------------------------------------------------------------------------- the task block

/// The `yaml task` block of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskBlock {
    /// All of its lines, the fences' included.
    pub fences: Range<usize>,
    /// The lines between the fences.
    pub content: Range<usize>,
    /// Columns before the opening fence; as many are no part of the YAML.
    pub column: usize,
}

/// What the YAML parser said, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenYaml {
    pub at: usize,
    pub message: String,
}

/// Calls `found` for each key of the block, in order.
pub fn read_block<'t>(text: &'t str, block: &TaskBlock, found: &mut dyn FnMut(Entry<'t>)) -> Result<(), BrokenYaml> {
    let lines = Lines::of(text, block.content.clone());
    let whole = if lines.is_ordinary { Value::Null } else { parse_block(text, block)? };
    let mut read = HashSet::new();
    for pair in &lines.pairs {
        let name = &text[pair.name.clone()];
        if !lines.is_ordinary {
            read.insert(name);
        }
        let value = match pair.style {
            Style::Line => plain_of(&text[pair.value.clone()]),
            Style::List => list_of(&text[pair.value.clone()]),
            Style::Odd => whole.get(name).and_then(plain_of_yaml),
        };
        let meaning = Key::named(name).map_or(Meaning::Unknown, |key| meaning(key, value));
        found(Entry { name, at: pair.name.start, value: pair.value.clone(), meaning });
    }
    // Keys that are written in another way, such as in quotes.
    let keys = whole.as_mapping().into_iter().flatten().filter_map(|(key, _)| key.as_str());
    for key in keys.filter(|key| !read.contains(key)) {
        let content = &text[block.content.clone()];
        let Some(at) = content.find(key) else { continue };
        let at = block.content.start + at;
        let meaning =
            Key::named(key).map_or(Meaning::Unknown, |known| meaning(known, whole.get(key).and_then(plain_of_yaml)));
        found(Entry { name: &text[at..at + key.len()], at, value: at..at + key.len(), meaning });
    }
    Ok(())
}

fn parse_block(text: &str, block: &TaskBlock) -> Result<Value, BrokenYaml> {
    let content = &text[block.content.clone()];
    let mut yaml = String::with_capacity(content.len());
    for line in content.split_inclusive('\n') {
        yaml.push_str(&dedent(line, block.column));
    }
    match serde_yaml::from_str::<Value>(&yaml) {
        Ok(Value::Null) => Ok(Value::Null),
        Ok(Value::Mapping(map)) => Ok(Value::Mapping(map)),
        Ok(_) => {
            let at = block.content.end - content.trim_start().len();
            Err(BrokenYaml { at, message: "the block is no list of `key: value` lines".into() })
        }
        Err(error) => Err(broken_yaml(text, block.content.clone(), &error)),
    }
}

/// The parser's words without its own place, which counts lines of the block, at the place in the document.
pub fn broken_yaml(text: &str, content: Range<usize>, error: &serde_yaml::Error) -> BrokenYaml {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
    let line = error.location().map_or(1, |location| location.line().max(1));
    let at = text[content.clone()].split_inclusive('\n').take(line - 1).map(str::len).sum::<usize>();
    let at = content.start + at;
    let blanks = text[at..content.end].len() - text[at..content.end].trim_start_matches([' ', '\t']).len();
    BrokenYaml { at: at + blanks, message }
}

/// The block's own keys, line by line.
struct Lines {
    pairs: Vec<LinePair>,
    /// All of it is of the plain kind that needs no YAML parser.
    is_ordinary: bool,
}

struct LinePair {
    name: Range<usize>,
    value: Range<usize>,
    /// The key's lines, with the last one's line end.
    lines: Range<usize>,
    style: Style,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `key: value`.
    Line,
    /// `key:` and lines of `- element`.
    List,
    /// Anything else.
    Odd,
}

impl Lines {
    fn of(text: &str, content: Range<usize>) -> Lines {
        let mut pairs: Vec<LinePair> = Vec::new();
        let mut is_ordinary = true;
        let mut margin: Option<&str> = None;
        let mut at = content.start;
        for line in text[content].split_inclusive('\n') {
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
            let is_element = bare.starts_with("- ");
            if is_base && !is_element {
                let Some(name) = block_key(bare) else {
                    is_ordinary = false;
                    if let Some(last) = pairs.last_mut() {
                        last.lines.end = at;
                        last.style = Style::Odd;
                    }
                    continue;
                };
                let after = &bare[name.len() + 1..];
                let value_start = bare_start + bare.len() - after.trim_start().len();
                let value = without_comment(after.trim_start());
                let style = if is_ordinary_value(value) { Style::Line } else { Style::Odd };
                is_ordinary &= style == Style::Line;
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
            let is_plain = element.is_some_and(|element| is_ordinary_scalar(element, Inside::Block));
            let continues_list = last.style == Style::List || (last.style == Style::Line && last.value.is_empty());
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
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    (is_name && (after.is_empty() || after.starts_with([' ', '\t']))).then_some(name)
}

fn without_comment(value: &str) -> &str {
    if value.starts_with('#') {
        return "";
    }
    let after_quote = match value.as_bytes().first() {
        Some(b'"' | b'\'') => closing_quote(value.as_bytes(), 0).map_or(0, |close| close + 1),
        _ => 0,
    };
    let comment = value[after_quote..].find(" #").map_or(value.len(), |at| after_quote + at);
    value[..comment].trim_end()
}

fn is_ordinary_value(value: &str) -> bool {
    let inner = |open, close| value.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    if let Some(inner) = inner('[', ']') {
        return Elements(inner).all(|element| is_ordinary_scalar(element, Inside::Flow));
    }
    if let Some(inner) = inner('{', '}') {
        let mut pairs = Pairs::new(inner, 0..inner.len());
        return pairs.by_ref().all(|pair| is_ordinary_scalar(&inner[pair.value], Inside::Flow)) && !pairs.is_broken;
    }
    value.is_empty() || is_ordinary_scalar(value, Inside::Block)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Flow,
    Block,
}

/// A scalar that means the same to every YAML reader as to the scan here.
fn is_ordinary_scalar(text: &str, inside: Inside) -> bool {
    let bytes = text.as_bytes();
    let Some(first) = bytes.first() else { return false };
    if matches!(first, b'"' | b'\'') {
        return closing_quote(bytes, 0) == Some(bytes.len() - 1) && !text.contains(is_unprintable);
    }
    let is_start = match first {
        b'-' | b'?' | b':' => bytes.get(1).is_some_and(|second| !matches!(second, b' ' | b'\t' | b'-')),
        first => !b",[]{}#&*!|>%@`".contains(first),
    };
    is_start
        && bytes.last() != Some(&b':')
        && !text.contains(": ")
        && !text.contains(":\t")
        && !text.contains(" #")
        && !text.contains("\t#")
        && !text.contains(is_unprintable)
        && !(inside == Inside::Flow && text.contains([',', '[', ']', '{', '}']))
}

/// Characters that YAML refuses, or takes for something else than the scan here does.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

// ---------------------------------------------------------------------------------------------- values

/// A value before its type is known; scalars without their quotes.
enum Plain<'t> {
    Null,
    One(Cow<'t, str>),
    Many(Vec<Cow<'t, str>>),
    Map(Vec<(Cow<'t, str>, Cow<'t, str>)>),
}

/// Of a value on one line.
fn plain_of(raw: &str) -> Option<Plain<'_>> {
    match raw.as_bytes() {
        [] | b"~" | b"null" | b"Null" | b"NULL" => Some(Plain::Null),
        [b'[', .., b']'] => {
            let elements: Option<Vec<_>> = Elements(&raw[1..raw.len() - 1]).map(scalar_of).collect();
            elements.map(Plain::Many)
        }
        [b'{', .., b'}'] => map_of(&raw[1..raw.len() - 1]).map(Plain::Map),
        _ => scalar_of(raw).map(Plain::One),
    }
}

fn map_of(inner: &str) -> Option<Vec<(Cow<'_, str>, Cow<'_, str>)>> {
    let mut pairs = Pairs::new(inner, 0..inner.len());
    let map: Option<Vec<_>> =
        pairs.by_ref().map(|pair| Some((Cow::Borrowed(&inner[pair.name]), scalar_of(&inner[pair.value])?))).collect();
    map.filter(|_| !pairs.is_broken || inner.trim().is_empty())
}

/// Of lines that each begin with `- `.
fn list_of(raw: &str) -> Option<Plain<'_>> {
    let elements = raw.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let elements: Option<Vec<_>> = elements.map(|element| scalar_of(element.trim())).collect();
    elements.map(Plain::Many)
}

fn plain_of_yaml<'t>(value: &Value) -> Option<Plain<'t>> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(Cow::Owned(text.trim_end_matches('\n').to_owned())),
        Value::Bool(flag) => Some(Cow::Owned(flag.to_string())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    };
    match value {
        Value::Null => Some(Plain::Null),
        Value::Sequence(list) => list.iter().map(scalar).collect::<Option<Vec<_>>>().map(Plain::Many),
        Value::Mapping(map) => {
            map.iter().map(|(k, v)| Some((scalar(k)?, scalar(v)?))).collect::<Option<Vec<_>>>().map(Plain::Map)
        }
        _ => scalar(value).map(Plain::One),
    }
}

/// A scalar without its quotes and escapes; `None` if it isn't one.
fn scalar_of(raw: &str) -> Option<Cow<'_, str>> {
    let bytes = raw.as_bytes();
    match bytes.first()? {
        quote @ (b'"' | b'\'') => {
            if closing_quote(bytes, 0) != Some(bytes.len() - 1) {
                return None;
            }
            let inner = &raw[1..raw.len() - 1];
            if *quote == b'"' && inner.contains('\\') {
                serde_yaml::from_str::<String>(raw).ok().map(Cow::Owned)
            } else if *quote == b'\'' && inner.contains('\'') {
                Some(Cow::Owned(inner.replace("''", "'")))
            } else {
                Some(Cow::Borrowed(inner))
            }
        }
        b'[' | b'{' => None,
        _ => Some(Cow::Borrowed(raw)),
    }
}

/// What stands between the commas of a flow list, trimmed; a trailing comma adds nothing.
struct Elements<'t>(&'t str);

impl<'t> Iterator for Elements<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.0.trim().is_empty() {
            return None;
        }
        let bytes = self.0.as_bytes();
        let mut at = skip_blanks(bytes, 0);
        let mut depth = 0usize;
        if let Some(b'"' | b'\'') = bytes.get(at) {
            at = closing_quote(bytes, at).unwrap_or(at);
        }
        while at < bytes.len() {
            match bytes[at] {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        let element = self.0[..at].trim();
        self.0 = self.0.get(at + 1..).unwrap_or("");
        Some(element)
    }
}

/// The value as the key wants it.
fn meaning(key: Key, value: Option<Plain<'_>>) -> Meaning<'_> {
    match value {
        None if key.shape() == Shape::Any => Meaning::Known(key, Field::Any),
        None => Meaning::Wrong(key),
        Some(Plain::Null) => Meaning::Absent(key),
        Some(value) => typed(key.shape(), value).map_or(Meaning::Wrong(key), |field| Meaning::Known(key, field)),
    }
}

fn typed(shape: Shape, value: Plain<'_>) -> Option<Field<'_>> {
    use Plain::{Many, Map, One};
    match (shape, value) {
        (Shape::Any, _) => Some(Field::Any),
        (Shape::Text, One(text)) => Some(Field::Text(text)),
        (Shape::Word, One(text)) => is_word(&text).then_some(Field::Text(text)),
        (Shape::Words, One(text)) => {
            let words = match text {
                Cow::Borrowed(text) => Elements(text).map(Cow::Borrowed).collect(),
                Cow::Owned(text) => Elements(&text).map(|word| Cow::Owned(word.to_owned())).collect(),
            };
            Some(Field::Texts(words))
        }
        (Shape::Commands, One(text)) => Some(Field::Texts(vec![text])),
        (Shape::Words | Shape::Commands, Many(texts)) => Some(Field::Texts(texts)),
        (Shape::Id, One(text)) => text.parse().ok().map(Field::Id),
        (Shape::Ids, One(text)) => {
            text.split(',').map(|id| id.trim().parse().ok()).collect::<Option<_>>().map(Field::Ids)
        }
        (Shape::Ids, Many(ids)) => ids.iter().map(|id| id.trim().parse().ok()).collect::<Option<_>>().map(Field::Ids),
        (Shape::Priority, One(text)) => priority(&text).map(Field::Number),
        (Shape::Count, One(text)) => text.parse().ok().map(Field::Number),
        (Shape::Flag, One(text)) => flag(&text).map(Field::Flag),
        (Shape::Empty, One(text)) => match &*text {
            "allowed" => Some(Field::Flag(true)),
            "fail" => Some(Field::Flag(false)),
            _ => None,
        },
        (Shape::Time, One(text)) => time(&text).map(Field::Time),
        (Shape::Status, One(text)) => text.parse().ok().map(Field::Status),
        (Shape::Budget, Map(pairs)) => budget(&pairs).map(Field::Budget),
        _ => None,
    }
}

/// 0 to 9, or a word for 0 to 3.
pub fn priority(text: &str) -> Option<u32> {
    match text.as_bytes() {
        [digit @ b'0'..=b'9'] => Some(u32::from(digit - b'0')),
        _ => ["critical", "high", "medium", "low"]
            .iter()
            .zip(0..)
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
            .map(|(_, number)| number),
    }
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "yes" => Some(true),
        "false" | "False" | "no" => Some(false),
        _ => None,
    }
}

/// Could `text` be a word of its own in a list or a name?
pub fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn time(text: &str) -> Option<Timestamp> {
    plain_time(text.as_bytes())
        .or_else(|| chrono::DateTime::parse_from_rfc3339(text).ok().map(|time| time.with_timezone(&chrono::Utc)))
}

/// `2026-11-22T10:00:00Z` exactly, as Tavern writes it: the general parser costs ten times as much.
fn plain_time(bytes: &[u8]) -> Option<Timestamp> {
    let pattern = b"dddd-dd-ddTdd:dd:ddZ";
    if bytes.len() != pattern.len() {
        return None;
    }
    let fits = |(byte, want): (&u8, &u8)| if *want == b'd' { byte.is_ascii_digit() } else { byte == want };
    if !bytes.iter().zip(pattern).all(fits) {
        return None;
    }
    let number =
        |from: usize, to: usize| bytes[from..to].iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    let date = chrono::NaiveDate::from_ymd_opt(i32::try_from(number(0, 4)).ok()?, number(5, 7), number(8, 10))?;
    Some(date.and_hms_opt(number(11, 13), number(14, 16), number(17, 19))?.and_utc())
}

fn budget(pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Option<Budget> {
    let amount = |text: &str| text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0);
    let mut budget = Budget::default();
    for (name, value) in pairs {
        match &**name {
            "usd" => budget.usd = Some(amount(value)?),
            "minutes" => budget.minutes = Some(amount(value)?),
            "tokens" => budget.tokens = Some(value.parse().ok()?),
            "turns" => budget.turns = Some(value.parse().ok()?),
            "memory_mb" => budget.memory_mb = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some(budget)
}

// ---------------------------------------------------------------------------------------------- writing

/// The value as YAML flow text on one line, safe in the parenthesis of a title line and in a task block alike.
pub fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => flow_text(text),
        Value::Sequence(list) => format!("[{}]", list.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Mapping(map) => {
            let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{}: {}", flow(key), flow(value))).collect();
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
        // A text that YAML would take for a number, a flag or nothing needs quotes.
        && matches!(serde_yaml::from_str::<Value>(text), Ok(Value::String(read)) if read == text);
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

/// `line` (a title line from after its ID on, without its line end and trailing blanks) with `name` set to the flow
/// text `value`, or removed. All other keys stay as they stand.
pub fn set_in_line(line: &str, name: &str, value: Option<&str>) -> String {
    let Ok(Some(span)) = find_parenthesis(line) else {
        return match value {
            Some(value) if line.is_empty() => format!("({name}: {value})"),
            Some(value) => format!("{line} ({name}: {value})"),
            None => line.to_owned(),
        };
    };
    let pairs: Vec<Pair> = Pairs::new(line, span.start + 1..span.end - 1).collect();
    let Some(index) = pairs.iter().position(|pair| &line[pair.name.clone()] == name) else {
        let last = pairs.last().map_or(span.start + 1, |pair| pair.value.end);
        return match value {
            Some(value) => format!("{}, {name}: {value}{}", &line[..last], line[last..].trim_start_matches(',')),
            None => line.to_owned(),
        };
    };
    let pair = &pairs[index];
    let replace = |value: &str| {
        let gap = if line.as_bytes()[pair.value.start - 1] == b':' { " " } else { "" };
        format!("{}{gap}{value}{}", &line[..pair.value.start], &line[pair.value.end..])
    };
    if let Some(value) = value {
        return replace(value);
    }
    let cut = match (index.checked_sub(1), pairs.get(index + 1)) {
        (_, Some(next)) => pair.name.start..next.name.start,
        (Some(before), None) => pairs[before].value.end..pair.value.end,
        (None, None) => line[..span.start].trim_end().len()..span.end,
    };
    let without = format!("{}{}", &line[..cut.start], &line[cut.end..]);
    // What is left must read as before: neither unknown keys as title nor the title's own end as metadata.
    let left = pairs.len() - 1;
    let reads_same = match find_parenthesis(&without) {
        Ok(Some(span)) => Pairs::new(&without, span.start + 1..span.end - 1).count() == left,
        Ok(None) | Err(_) => left == 0,
    };
    if reads_same { without } else { replace("null") }
}

/// Whether the parenthesis at the end of `line` has the key.
pub fn line_has(line: &str, name: &str) -> bool {
    let Ok(Some(span)) = find_parenthesis(line) else { return false };
    Pairs::new(line, span.start + 1..span.end - 1).any(|pair| &line[pair.name] == name)
}

/// Whether the lines `content` of a task block have the key.
pub fn block_has(content: &str, name: &str) -> bool {
    Lines::of(content, 0..content.len()).pairs.iter().any(|pair| &content[pair.name.clone()] == name)
}

/// The lines `content` of a task block with `name` set to the flow text `value`, or removed; `None` if there is no such
/// key. Comments and all other lines stay.
pub fn set_in_block(content: &str, name: &str, value: Option<&str>) -> Option<String> {
    let lines = Lines::of(content, 0..content.len());
    let pair = lines.pairs.iter().find(|pair| &content[pair.name.clone()] == name)?;
    let (cut, text) = match value {
        None => (pair.lines.clone(), String::new()),
        Some(value) => {
            let behind_colon = pair.name.end + 1;
            match pair.style {
                Style::Line if !pair.value.is_empty() => (pair.value.clone(), value.to_owned()),
                Style::Line => (behind_colon..behind_colon, format!(" {value}")),
                // The old value's lines go with it.
                _ => {
                    let lines = content[pair.lines.clone()].trim_end().len();
                    (behind_colon..pair.lines.start + lines, format!(" {value}"))
                }
            }
        }
    };
    Some(format!("{}{text}{}", &content[..cut.start], &content[cut.end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_parenthesis_is_metadata_only_if_it_reads_as_keys() {
        let rows: &[(&str, Option<&str>)] = &[
            ("a (priority: 1)", Some("(priority: 1)")),
            ("(priority: 1)", Some("(priority: 1)")),
            ("a (priority:1)  ", Some("(priority:1)")),
            ("a (x) (role: y)", Some("(role: y)")),
            ("a (role: y) (x)", None),
            ("a (role: y) b", None),
            ("a(role: y)", None),
            ("a (see: this)", None),
            ("a ()", None),
            ("a (role)", None),
            ("a )", None),
            ("a (role: y))", None),
            ("[x](role: y)", None),
            ("a (foo: b, role: y)", Some("(foo: b, role: y)")),
            ("a (reason: see (this))", Some("(reason: see (this))")),
            ("a (reason: \"a) b\")", Some("(reason: \"a) b\")")),
            ("a (reason: 'it''s (not')", Some("(reason: 'it''s (not')")),
            ("don't (reason: don't)", Some("(reason: don't)")),
            ("a (b (role: c)", Some("(role: c)")),
            ("a (role: b\" (c)", None),
            ("a (role: ä)", Some("(role: ä)")),
            ("a (after: T-1, T-2,)", Some("(after: T-1, T-2,)")),
            ("a (http://x, role: y)", None),
        ];
        for (line, expected) in rows {
            let found = find_parenthesis(line).unwrap_or_default();
            assert_eq!(found.map(|span| &line[span]), *expected, "{line}");
        }
        let near = "a (priorty: 1, foo: b)";
        assert_eq!(find_parenthesis(near).map_err(|span| &near[span]), Err("priorty"));
    }

    fn read_line(inner: &str) -> Vec<(String, Meaning<'static>)> {
        let text: &'static str = String::leak(format!("({inner})"));
        let mut found = Vec::new();
        read_parenthesis(text, 0..text.len(), &mut |entry| found.push((entry.name.to_owned(), entry.meaning)));
        found
    }

    #[test]
    fn values_have_types() {
        let text = |text: &'static str| Field::Text(text.into());
        let texts = |texts: &[&'static str]| Field::Texts(texts.iter().map(|text| Cow::Borrowed(*text)).collect());
        let ids = |ids: &[&str]| Field::Ids(ids.iter().filter_map(|id| id.parse().ok()).collect());
        let rows: Vec<(&str, Option<Field<'static>>)> = vec![
            ("priority: 0", Some(Field::Number(0))),
            ("priority: Critical", Some(Field::Number(0))),
            ("priority: \"low\"", Some(Field::Number(3))),
            ("priority: 10", None),
            ("priority: -1", None),
            ("priority: [1]", None),
            ("after: T-1", Some(ids(&["T-1"]))),
            ("after: T-1, T-2", Some(ids(&["T-1", "T-2"]))),
            ("after: [T-1, 'T-2',]", Some(ids(&["T-1", "T-2"]))),
            ("after: []", Some(ids(&[]))),
            ("after: T-1 T-2", None),
            ("after: [T-1, nope]", None),
            ("parent: T-1", "T-1".parse().ok().map(Field::Id)),
            ("role: code-reviewer_2.0", Some(text("code-reviewer_2.0"))),
            ("role: two words", None),
            ("role: a/b", None),
            ("tags: a, b c", Some(texts(&["a", "b c"]))),
            ("tags: [a, \"b, c\"]", Some(texts(&["a", "b, c"]))),
            ("touches: src/{a,b}/*.rs, *.md", Some(texts(&["src/{a,b}/*.rs", "*.md"]))),
            ("done_when: cargo test, all of it", Some(texts(&["cargo test, all of it"]))),
            ("done_when: [cargo test, cargo clippy]", Some(texts(&["cargo test", "cargo clippy"]))),
            ("commit: 0012e34", Some(text("0012e34"))),
            ("reason: see #12, and more", Some(text("see #12, and more"))),
            ("reason: \"tab\\there \\u00e4\"", Some(text("tab\there ä"))),
            ("reason: 'it''s'", Some(text("it's"))),
            ("reason: \"broken\" text", None),
            ("reason: \"bad \\q escape\"", None),
            ("attempt: 3", Some(Field::Number(3))),
            ("attempt: 3.5", None),
            ("worktree: false", Some(Field::Flag(false))),
            ("worktree: maybe", None),
            ("empty: allowed", Some(Field::Flag(true))),
            ("empty: fail", Some(Field::Flag(false))),
            ("empty: true", None),
            ("not_before: 2026-11-22T10:00:00Z", Some(Field::Time("2026-11-22T10:00:00Z".parse().unwrap_or_default()))),
            (
                "not_before: 2026-11-22T10:00:00.25+02:00",
                Some(Field::Time("2026-11-22T08:00:00.25Z".parse().unwrap_or_default())),
            ),
            ("not_before: 2026-02-30T10:00:00Z", None),
            ("not_before: 2026-11-22", None),
            ("status: in_review", Some(Field::Status(Status::InReview))),
            ("status: In Review", None),
            ("budget: {usd: 1.5}", Some(Field::Budget(Budget { usd: Some(1.5), ..Budget::default() }))),
            ("budget: {}", Some(Field::Budget(Budget::default()))),
            ("budget: {usd: -1}", None),
            ("budget: {usd: nan}", None),
            ("budget: {dollars: 1}", None),
            ("budget: 1", None),
            ("question: {any: [thing]}", Some(Field::Any)),
        ];
        for (pair, expected) in rows {
            let name = pair.split(':').next().unwrap_or("");
            let key = Key::named(name).expect("the rows have known keys");
            let expected = expected.map_or(Meaning::Wrong(key), |field| Meaning::Known(key, field));
            assert_eq!(read_line(pair), [(name.to_owned(), expected.clone())], "{pair}");
        }
        for empty in ["", "~", "null", "NULL"] {
            assert_eq!(read_line(&format!("role: {empty}")), [("role".to_owned(), Meaning::Absent(Key::Role))]);
        }
    }

    #[test]
    fn all_keys_are_named() {
        for key in Key::ALL {
            assert_eq!(Key::named(key.as_str()), Some(key));
            assert_eq!(Key::ALL[key as usize], key);
        }
    }

    #[test]
    fn one_key_of_a_title_line_changes() {
        let rows = [
            ("a", "role", Some("x"), "a (role: x)"),
            ("", "role", Some("x"), "(role: x)"),
            ("a (b)", "role", Some("x"), "a (b) (role: x)"),
            ("a (priority:  '1' ,b: c)", "role", Some("x"), "a (priority:  '1' ,b: c, role: x)"),
            ("a (priority: 1)", "priority", Some("2"), "a (priority: 2)"),
            ("a (priority:1,role:  x)", "priority", Some("2"), "a (priority: 2,role:  x)"),
            ("a (after: T-1, T-2, role: x)", "after", Some("[T-3]"), "a (after: [T-3], role: x)"),
            ("a (role: , tags: x)", "role", Some("y"), "a (role: y, tags: x)"),
            ("a (priority: 1)", "priority", None, "a"),
            ("a (priority: 1, role: x)", "priority", None, "a (role: x)"),
            ("a (priority: 1, role: x)", "role", None, "a (priority: 1)"),
            ("a (tags: y, priority: 1, role: x)", "priority", None, "a (tags: y, role: x)"),
            ("a", "priority", None, "a"),
            ("a (role: x)", "priority", None, "a (role: x)"),
            // What would read as something else is kept as null.
            ("a (foo: b, role: x)", "role", None, "a (foo: b, role: null)"),
            ("a (role: x) (tags: y)", "tags", None, "a (role: x) (tags: null)"),
        ];
        for (line, key, value, expected) in rows {
            assert_eq!(set_in_line(line, key, value), expected, "{line} {key} {value:?}");
        }
    }

    #[test]
    fn one_key_of_a_task_block_changes() {
        let block = "  # head\n  role: x   # why\n\n  done_when:\n    - a\n    # mid\n    - b\n  budget: {usd: 1}\n";
        let rows = [
            (
                "role",
                Some("y"),
                "  # head\n  role: y   # why\n\n  done_when:\n    - a\n    # mid\n    - b\n  budget: {usd: 1}\n",
            ),
            ("role", None, "  # head\n\n  done_when:\n    - a\n    # mid\n    - b\n  budget: {usd: 1}\n"),
            ("done_when", Some("[c]"), "  # head\n  role: x   # why\n\n  done_when: [c]\n  budget: {usd: 1}\n"),
            ("done_when", None, "  # head\n  role: x   # why\n\n  budget: {usd: 1}\n"),
            (
                "budget",
                Some("{usd: 2}"),
                "  # head\n  role: x   # why\n\n  done_when:\n    - a\n    # mid\n    - b\n  budget: {usd: 2}\n",
            ),
        ];
        for (key, value, expected) in rows {
            assert_eq!(set_in_block(block, key, value).as_deref(), Some(expected), "{key} {value:?}");
            let crlf = block.replace('\n', "\r\n");
            assert_eq!(set_in_block(&crlf, key, value), Some(expected.replace('\n', "\r\n")), "{key} {value:?}");
        }
        assert_eq!(set_in_block(block, "tags", Some("[x]")), None);
        let odd = "reason: |\n  a\n  b\nrole:\n";
        assert_eq!(set_in_block(odd, "reason", Some("c")).as_deref(), Some("reason: c\nrole:\n"));
        assert_eq!(set_in_block(odd, "role", Some("c")).as_deref(), Some("reason: |\n  a\n  b\nrole: c\n"));
        assert_eq!(set_in_block("role: # why\n", "role", Some("c")).as_deref(), Some("role: c # why\n"));
        assert_eq!(set_in_block("role: x", "role", None).as_deref(), Some(""));
    }

    #[test]
    fn written_values_are_yaml_for_every_reader() {
        let texts = [
            "plain",
            "two words",
            "",
            " lead",
            "a, b",
            "a: b",
            "a:",
            "- a",
            "-a",
            "#x",
            "a #b",
            "[x]",
            "{x",
            "it's",
            "\"q\"",
            "true",
            "no",
            "12",
            "1e3",
            "0x1f",
            "null",
            "~",
            "*.rs",
            "&x",
            "!x",
            "|",
            ">",
            "%x",
            "@x",
            "`x`",
            "(x)",
            "a\nb",
            "a\\b",
            "\u{0}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\u{ffff}",
            "😀",
            "2026-11-22T10:00:00Z",
            "?",
            "? x",
            ":",
            "::",
            ",",
            "a\tb",
            "=",
        ];
        for text in texts {
            let written = flow(&Value::from(text));
            assert_eq!(serde_yaml::from_str::<Value>(&written).ok(), Some(Value::from(text)), "{written}");
            assert!(!written.contains(['\n', '\r']), "{written}");
            let in_list = flow(&Value::from(vec![text, text]));
            assert_eq!(serde_yaml::from_str::<Value>(&in_list).ok(), Some(Value::from(vec![text, text])), "{in_list}");
        }
        let value: Value = serde_yaml::from_str("{a: [1, 2.5, true, null], b: {c: 'x, y'}}").unwrap_or_default();
        assert_eq!(flow(&value), "{a: [1, 2.5, true, null], b: {c: \"x, y\"}}");
    }

    /// What the scan takes for ordinary must mean to the YAML parser what it means to the scan.
    #[test]
    fn the_scan_agrees_with_the_yaml_parser() {
        use proptest::prelude::{ProptestConfig, Strategy, prop_oneof};
        let value = prop_oneof![
            "[ -~]{0,12}",
            "[a-z:#,'\"\\[\\]{}\\\\ *&!|>@%?-]{0,10}",
            "\\[[a-z, '\"]{0,10}\\]",
            "\\{[a-c: ,]{0,10}\\}",
            "(\n  - [a-z:# '\"]{1,6}){1,3}",
            "(\n- [a-z:# '\"]{1,6}){1,3}",
        ];
        let lines = proptest::collection::vec(
            ("[abc]", "[:] ?", value).prop_map(|(key, colon, value)| format!("{key}{colon}{value}")),
            1..4,
        );
        proptest::test_runner::TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })
        .run(&lines, |lines| {
            let text = lines.join("\n");
            let scanned = Lines::of(&text, 0..text.len());
            let names: Vec<&str> = scanned.pairs.iter().map(|pair| &text[pair.name.clone()]).collect();
            let twice = names.iter().any(|name| names.iter().filter(|other| *other == name).count() > 1);
            if !scanned.is_ordinary || twice {
                return Ok(());
            }
            let parsed: Value = serde_yaml::from_str(&text)
                .map_err(|error| proptest::test_runner::TestCaseError::fail(format!("{error} in {text:?}")))?;
            for pair in &scanned.pairs {
                let raw = &text[pair.value.clone()];
                let read = if pair.style == Style::List { list_of(raw) } else { plain_of(raw) };
                let expected = parsed.get(&text[pair.name.clone()]).and_then(plain_of_yaml);
                proptest::prop_assert_eq!(texts_of(read), texts_of(expected), "{:?}", text);
            }
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    }

    /// Numbers and flags as they would be written in lower case, since YAML gives back their values only.
    fn texts_of(plain: Option<Plain<'_>>) -> Vec<String> {
        let text = |text: Cow<'_, str>| match serde_yaml::from_str::<Value>(&text) {
            Ok(Value::Number(number)) => number.to_string(),
            Ok(Value::Bool(flag)) => flag.to_string(),
            _ => text.into_owned(),
        };
        match plain {
            None => vec!["wrong".to_owned()],
            Some(Plain::Null) => vec!["null".to_owned()],
            Some(Plain::One(one)) => vec![text(one)],
            Some(Plain::Many(many)) => many.into_iter().map(text).collect(),
            Some(Plain::Map(map)) => map.into_iter().flat_map(|(key, value)| [text(key), text(value)]).collect(),
        }
    }
}
