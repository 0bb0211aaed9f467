//! Values: scalars and lists as spelt, and their meaning for a key.

use std::borrow::Cow;

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, TimeDelta, TimeZone};
use serde_yaml::Value;

use super::pairs::{Pairs, closing_quote, skip_blanks};
use super::{Field, Key, Meaning, Shape};
use crate::budget::Budget;
use crate::key::PRIORITIES;
use crate::lane::LaneKind;
use crate::status::{Consent, Status, Timestamp};
use crate::watch_rules::{Thresholds, WatchSetting};
use crate::yaml;

/// A value before its type is known; scalars have no quotes.
pub(super) enum Plain<'t> {
    Null,
    One(Cow<'t, str>),
    Many(Vec<Cow<'t, str>>),
    Map(Vec<(Cow<'t, str>, Cow<'t, str>)>),
}

/// Parses a value on one line.
pub(super) fn plain_of(raw: &str) -> Option<Plain<'_>> {
    match raw.as_bytes() {
        [] | b"~" | b"null" | b"Null" | b"NULL" => Some(Plain::Null),
        [b'[', .., b']'] => {
            let elements: Option<Vec<_>> =
                Elements(&raw[1..raw.len() - 1]).map(scalar_of).collect();
            elements.map(Plain::Many)
        }
        [b'{', .., b'}'] => map_of(&raw[1..raw.len() - 1]).map(Plain::Map),
        _ => scalar_of(raw).map(Plain::One),
    }
}

fn map_of(inner: &str) -> Option<Vec<(Cow<'_, str>, Cow<'_, str>)>> {
    let mut pairs = Pairs::new(inner, 0..inner.len());
    let map: Option<Vec<_>> = pairs
        .by_ref()
        .map(|pair| {
            Some((
                Cow::Borrowed(&inner[pair.name]),
                scalar_of(&inner[pair.value])?,
            ))
        })
        .collect();
    map.filter(|_| !pairs.is_broken || inner.trim().is_empty())
}

/// Parses lines that each begin with `- `.
pub(super) fn list_of(raw: &str) -> Option<Plain<'_>> {
    let elements = raw
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "));
    let elements: Option<Vec<_>> = elements.map(|element| scalar_of(element.trim())).collect();
    elements.map(Plain::Many)
}

pub(super) fn plain_of_yaml<'t>(value: &Value) -> Option<Plain<'t>> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(Cow::Owned(text.trim_end_matches('\n').to_owned())),
        Value::Bool(flag) => Some(Cow::Owned(flag.to_string())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    };
    match value {
        Value::Null => Some(Plain::Null),
        Value::Sequence(list) => list
            .iter()
            .map(scalar)
            .collect::<Option<Vec<_>>>()
            .map(Plain::Many),
        Value::Mapping(map) => map
            .iter()
            .map(|(k, v)| Some((scalar(k)?, scalar(v)?)))
            .collect::<Option<Vec<_>>>()
            .map(Plain::Map),
        _ => scalar(value).map(Plain::One),
    }
}

/// Returns a scalar without its quotes and escapes; `None` if it isn't one.
fn scalar_of(raw: &str) -> Option<Cow<'_, str>> {
    let bytes = raw.as_bytes();
    match bytes.first()? {
        quote @ (b'"' | b'\'') => {
            if closing_quote(bytes, 0) != Some(bytes.len() - 1) {
                return None;
            }
            let inner = &raw[1..raw.len() - 1];
            if *quote == b'"' && inner.contains('\\') {
                yaml::read::<String>(raw).ok().map(Cow::Owned)
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

/// The elements of a flow list, trimmed; a trailing comma adds none.
pub(super) struct Elements<'t>(pub(super) &'t str);

impl<'t> Iterator for Elements<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.0.trim_start().is_empty() {
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

/// Converts a value of the YAML parser to the shape.
pub fn read_field(shape: Shape, value: &Value) -> Option<Field<'static>> {
    typed(shape, plain_of_yaml(value)?)
}

/// Returns true if the key can have this value of a line.
pub fn takes(key: Key, value: &str) -> bool {
    matches!(
        meaning(key.as_str(), || plain_of(value)),
        Meaning::Known(..)
    )
}

/// Returns the meaning of the value for the key of that name.
pub(super) fn meaning<'t>(name: &str, value: impl FnOnce() -> Option<Plain<'t>>) -> Meaning<'t> {
    let Some(key) = Key::of_text(name) else {
        return Meaning::Unknown;
    };
    match value() {
        None => Meaning::Wrong(key),
        Some(Plain::Null) => Meaning::Absent(key),
        Some(value) => typed(key.shape(), value)
            .map_or(Meaning::Wrong(key), |field| Meaning::Known(key, field)),
    }
}

fn typed(shape: Shape, value: Plain<'_>) -> Option<Field<'_>> {
    use Plain::{Many, Map, One};
    match (shape, value) {
        (Shape::Period, One(text)) => text.parse().ok().map(Field::Period),
        (Shape::Text, One(text)) => Some(Field::Text(text)),
        (Shape::Word, One(text)) => is_word(&text).then_some(Field::Text(text)),
        (Shape::Words, One(text)) => {
            let words = match text {
                Cow::Borrowed(text) => Elements(text).map(Cow::Borrowed).collect(),
                Cow::Owned(text) => Elements(&text)
                    .map(|word| Cow::Owned(word.to_owned()))
                    .collect(),
            };
            Some(Field::Texts(words))
        }
        // Arguments of a program can't have a NUL.
        (Shape::Commands, One(text)) if text.contains('\0') => None,
        (Shape::Commands, Many(texts)) if texts.iter().any(|text| text.contains('\0')) => None,
        (Shape::Commands, One(text)) => Some(Field::Texts(vec![text])),
        (Shape::Words | Shape::Commands, Many(texts)) => Some(Field::Texts(texts)),
        (Shape::Id, One(text)) => text.parse().ok().map(Field::Id),
        (Shape::Ids, One(Cow::Borrowed(text))) => needed(text.split(',').map(Cow::Borrowed)),
        (Shape::Ids, One(Cow::Owned(text))) => {
            needed(text.split(',').map(|name| Cow::Owned(name.to_owned())))
        }
        (Shape::Ids, Many(names)) => needed(names.into_iter()),
        (Shape::Priority, One(text)) => priority(&text).map(Field::Number),
        (Shape::Count, One(text)) => text.parse().ok().map(Field::Number),
        (Shape::Flag, One(text)) => flag(&text).map(Field::Flag),
        (Shape::Expected, One(text)) => text.parse().ok().map(Field::Expected),
        (Shape::Time, One(text)) => time(&text).map(Field::Time),
        (Shape::Status, One(text)) => text.parse().ok().map(Field::Status),
        (Shape::Lane, One(text)) => {
            let lanes = [Status::Draft, Status::Pending].into_iter();
            lanes
                .into_iter()
                .find(|lane| lane.as_str() == text)
                .map(Field::Status)
        }
        (Shape::Lanes, Map(pairs)) => {
            let lane = |(heading, lane): (Cow<'_, str>, Cow<'_, str>)| {
                Some((heading.into_owned(), LaneKind::named(&lane)?))
            };
            pairs
                .into_iter()
                .map(lane)
                .collect::<Option<Vec<_>>>()
                .map(Field::Lanes)
        }
        (Shape::Mode, One(text)) => text.parse().ok().map(Field::Mode),
        (Shape::OnFailure, One(text)) => text.parse().ok().map(Field::OnFailure),
        (Shape::Moments, value) => match typed(Shape::Words, value)? {
            Field::Texts(words) => {
                Consent::read_all(words.iter().map(|word| &**word)).map(Field::Moments)
            }
            _ => None,
        },
        (Shape::Budget, Map(pairs)) => budget(&pairs).map(Field::Budget),
        (Shape::Watch, One(text)) => flag(&text).map(|flag| Field::Watch(WatchSetting::Flag(flag))),
        (Shape::Watch, Map(pairs)) => {
            let set = Thresholds::read(pairs.iter().map(|(name, value)| (&**name, &**value)))?;
            Some(Field::Watch(WatchSetting::Set(set)))
        }
        _ => None,
    }
}

/// Parses dependencies.
fn needed<'t>(all: impl Iterator<Item = Cow<'t, str>>) -> Option<Field<'t>> {
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    for name in all {
        match name.trim().parse() {
            Ok(id) => ids.push(id),
            Err(_) if name.trim().is_empty() => return None,
            Err(_) => names.push(name),
        }
    }
    Some(Field::Ids(ids, names))
}

/// Parses 0 to 9, or a word for 0 to 3.
pub fn priority(text: &str) -> Option<u32> {
    match text.as_bytes() {
        [digit @ b'0'..=b'9'] => Some(u32::from(digit - b'0')),
        _ => PRIORITIES
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

/// Returns true if `text` could be a word of its own in a list or a name.
pub fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn time(text: &str) -> Option<Timestamp> {
    plain_time(text.as_bytes())
        .or_else(|| {
            DateTime::parse_from_rfc3339(text)
                .ok()
                .map(|time| time.to_utc())
        })
        .or_else(|| local_time(text))
}

/// Parses a time without a zone, or a day, in the local zone.
fn local_time(text: &str) -> Option<Timestamp> {
    let text = text.replacen(['T', 't'], " ", 1);
    let of_format = |format| NaiveDateTime::parse_from_str(&text, format).ok();
    let day = || text.parse::<NaiveDate>().ok().map(NaiveDateTime::from);
    let typed = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"]
        .into_iter()
        .find_map(of_format)
        .or_else(day)?;
    // A time skipped in spring is an hour later on the clock.
    let later = typed.checked_add_signed(TimeDelta::hours(1));
    [Some(typed), later]
        .into_iter()
        .flatten()
        .find_map(|time| Some(Local.from_local_datetime(&time).earliest()?.to_utc()))
}

/// Parses exactly `2026-11-22T10:00:00Z`, as Tavern writes it: the general parser is ten times as slow.
fn plain_time(bytes: &[u8]) -> Option<Timestamp> {
    let pattern = b"dddd-dd-ddTdd:dd:ddZ";
    if bytes.len() != pattern.len() {
        return None;
    }
    let fits = |(byte, want): (&u8, &u8)| {
        if *want == b'd' {
            byte.is_ascii_digit()
        } else {
            byte == want
        }
    };
    if !bytes.iter().zip(pattern).all(fits) {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to]
            .iter()
            .fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'))
    };
    let date = NaiveDate::from_ymd_opt(
        i32::try_from(number(0, 4)).ok()?,
        number(5, 7),
        number(8, 10),
    )?;
    Some(
        date.and_hms_opt(number(11, 13), number(14, 16), number(17, 19))?
            .and_utc(),
    )
}

fn budget(pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Option<Budget> {
    let amount = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|amount| amount.is_finite() && *amount >= 0.0)
    };
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
