//! A fault in a configuration file: its place, shown with a caret, and a hint.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tavern_core::problem::{Position, excerpt, one_line};
use tavern_core::suggestion::nearest;
use tavern_core::yaml::YamlError;

/// Whether the text could be parsed as settings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Untried,
    Failed,
}

/// One fault at one place of a file. Prints as `file:line:column: message`, then the line with a caret under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
    /// The place of the fault, if known.
    pub span: Option<Range<usize>>,
    /// Lower case, without a final period.
    pub message: String,
    pub hint: Option<String>,
}

impl Flaw {
    /// Creates a flaw at the word of `text` that begins at byte `start`; `path` is the file.
    pub(super) fn at(
        path: PathBuf,
        text: &str,
        start: Option<usize>,
        message: String,
        hint: Option<String>,
    ) -> Flaw {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = |start: usize| {
            text[start..]
                .find(|c| !is_word(c))
                .map_or(text.len(), |length| start + length)
        };
        let span = start.map(|start| start..end(start));
        Flaw {
            path,
            text: text.to_owned(),
            span,
            message,
            hint,
        }
    }

    /// Returns a flaw for a key with a parent that is commented out, if there is one. Unless parsing failed, a key that
    /// may belong to another parent is fine.
    pub(super) fn of_orphan(
        path: &Path,
        text: &str,
        reading: Reading,
        is_setting: impl Fn(&str) -> bool,
    ) -> Option<Flaw> {
        let (at, parent) = orphan(text, reading, is_setting)?;
        let (_, key, _) = key_of(text[at..].lines().next()?)?;
        let (_, above, _) = key_of(text.lines().nth(parent)?)?;
        let message = format!("`{key}` belongs below `{above}`, which is a comment");
        let line = parent + 1;
        let is_inline = text.lines().nth(parent)?.contains('{');
        let there = if is_inline {
            ", and set it between the braces"
        } else {
            ""
        };
        let hint = format!("remove the `#` before `{above}:` in line {line}{there}");
        Some(Flaw::at(
            path.to_owned(),
            text,
            Some(at),
            message,
            Some(hint),
        ))
    }

    /// Converts an error of the YAML reader into plain words.
    pub(super) fn from_yaml(path: PathBuf, text: &str, error: &YamlError) -> Flaw {
        let place = error.place.map(|(at, _)| text.floor_char_boundary(at));
        let full = error.to_string();
        let message = match full.rfind(" at line ") {
            Some(at) if place.is_some() => &full[..at],
            _ => &full,
        };
        let (within, fault) = split_path(message);
        let (message, hint) = reworded(within, fault);
        let word = quoted(fault).unwrap_or_default();
        let place = place
            .map(|place| at_word(text, place, word))
            .or_else(|| only_place(text, word));
        Flaw::at(path, text, place, message, hint)
    }
}

/// Returns the indent and the key with which a line of YAML begins, with or without a `#`, and whether nothing follows
/// the key. One blank behind a `#` is no indentation.
fn key_of(line: &str) -> Option<(usize, &str, bool)> {
    let bare = match line.strip_prefix('#') {
        Some(bare) => bare
            .strip_prefix(' ')
            .filter(|bare| !bare.starts_with(' '))
            .unwrap_or(bare),
        None => line,
    };
    let content = bare.trim_start();
    let (key, value) = content.split_once(':')?;
    let is_key = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    let is_parent = value.trim().is_empty() || value.starts_with(" {");
    (is_key && (is_parent || value.starts_with(' '))).then_some((
        bare.len() - content.len(),
        key,
        is_parent,
    ))
}

/// Finds the first key with a parent that is commented out, so that it would belong to another key or to none. Returns
/// its place and the line of the parent.
///
/// A comment is such a parent if it looks like a setting: a key of its own between the lines above and below, no
/// further out than the line that the key belongs to now. At the outermost level any remark looks like one (`# note:`),
/// so there it must be a name in `settings`.
/// Below a live key, a key commented out with its own content does not count, nor does one of the outermost level,
/// unless parsing failed.
fn orphan(text: &str, reading: Reading, settings: impl Fn(&str) -> bool) -> Option<(usize, usize)> {
    // The indents of the lines that enclose the current one, and the keys in the comments right above it, with their
    // lines.
    let mut within: Vec<usize> = Vec::new();
    let mut comments = Vec::new();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let content = line.trim_start();
        if line.starts_with('#') {
            comments.extend(key_of(line).map(|key| (key, number)));
        } else if !content.trim_end().is_empty() && !content.starts_with('#') {
            let indent = line.len() - content.len();
            while within.last().is_some_and(|outer| *outer >= indent) {
                within.pop();
            }
            let outer = within.last().copied();
            let mut deepest = 0;
            let parent = comments.iter().rev().find(|((above, key, is_parent), _)| {
                let has_lines = deepest > *above;
                deepest = deepest.max(*above);
                let is_clear =
                    !has_lines && *above > 0 || reading == Reading::Failed || outer.is_none();
                let is_between = (outer.unwrap_or_default()..indent).contains(above);
                *is_parent && is_clear && is_between && (*above > 0 || settings(key))
            });
            if let Some((_, parent)) = parent.filter(|_| key_of(line).is_some()) {
                return Some((start + indent, *parent));
            }
            within.push(indent);
            comments.clear();
        }
        start += line.len();
    }
    None
}

/// Returns the place of the word, if it occurs exactly once.
fn only_place(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_whole = |at: &usize| {
        !text[..*at].ends_with(is_part)
            && !text[at + word.len()..].starts_with(is_part)
            && !word.is_empty()
    };
    let mut places = text.match_indices(word).map(|(at, _)| at).filter(is_whole);
    places.next().filter(|_| places.next().is_none())
}

/// Rewords a type error of the reader in terms of YAML; returns other errors as they are.
fn in_words(fault: &str) -> String {
    let Some((found, expected)) = fault.rsplit_once(", expected ") else {
        return fault.to_owned();
    };
    let Some(found) = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|start| found.strip_prefix(start))
    else {
        return fault.to_owned();
    };
    let word = |kind: &str| match kind {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative".to_owned(),
        "i8" | "i16" | "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" | "sequence" => "a list".to_owned(),
        "map" | "a map" => "a mapping".to_owned(),
        "unit value" => "nothing".to_owned(),
        "a YAML tag starting with '!'" => "a word".to_owned(),
        _ if kind.starts_with("struct ") => "a mapping".to_owned(),
        _ => match kind.split_once(" `").or_else(|| kind.split_once(" \"")) {
            Some(("integer" | "floating point" | "boolean" | "string", value)) => {
                format!(
                    "`{}`",
                    value
                        .rsplit_once(['`', '"'])
                        .map_or(value, |(value, _)| value)
                )
            }
            _ => kind.to_owned(),
        },
    };
    format!("{} where {} is expected", word(found), word(expected))
}

/// Finds the wrong key at or below `place`: the reader reports the place of its mapping.
fn at_word(text: &str, place: usize, word: &str) -> usize {
    let mut at = place;
    for line in text[place..]
        .split_inclusive('\n')
        .filter(|_| !word.is_empty())
    {
        let code = line.split(" #").next().unwrap_or_default();
        if let Some(found) = code
            .find(word)
            .filter(|_| !code.trim_start().starts_with('#'))
        {
            return at + found;
        }
        at += line.len();
    }
    place
}

/// Splits `roles.coder: unknown field …` into the path of the mapping and the fault.
fn split_path(message: &str) -> (&str, &str) {
    match message.split_once(": ") {
        Some((path, fault)) if !path.contains([' ', '`']) => (path, fault),
        _ => ("", message),
    }
}

/// Returns the first word in backquotes.
fn quoted(message: &str) -> Option<&str> {
    message.split('`').nth(1)
}

fn reworded(within: &str, fault: &str) -> (String, Option<String>) {
    let is_key = fault.starts_with("unknown field `");
    let is_value = fault.starts_with("unknown variant `");
    if !is_key && !is_value {
        let place = if within.is_empty() {
            String::new()
        } else {
            format!("`{within}`: ")
        };
        return (format!("{place}{}", in_words(fault)), None);
    }
    let word = quoted(fault).unwrap_or_default();
    let known: Vec<&str> = fault.split('`').skip(3).step_by(2).collect();
    let place = if within.is_empty() {
        String::new()
    } else {
        format!(" in `{within}`")
    };
    let message = if is_key {
        format!("unknown key `{word}`{place}")
    } else {
        format!("unknown value `{word}`{place}")
    };
    let hint = match nearest(word, known.iter().copied()) {
        Some(guess) => format!("did you mean `{guess}`?"),
        None if known.is_empty() => "remove it: nothing can be set here".to_owned(),
        None => format!("one of: {}", known.join(", ")),
    };
    (message, Some(hint))
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, message) = (self.path.display(), one_line(&self.message));
        let Some(span) = &self.span else {
            return write!(f, "{path}: {message}");
        };
        let Position { line, column } = Position::of(&self.text, span.start);
        write!(
            f,
            "{path}:{line}:{column}: {message}\n{}",
            excerpt(&self.text, span)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_reader_says_of_types_is_put_into_words() {
        for (says, words) in [
            (
                "invalid type: string \"x\", expected u32",
                "`x` where a whole number that is not negative is expected",
            ),
            (
                "invalid type: integer `5`, expected struct Cap",
                "`5` where a mapping is expected",
            ),
            (
                "invalid type: sequence, expected a string",
                "a list where a string is expected",
            ),
            (
                "invalid type: map, expected 30s, or none",
                "a mapping where 30s, or none is expected",
            ),
            (
                "invalid value: integer `99` as u128, expected u32",
                "`99` where a whole number that is not negative is expected",
            ),
            (
                "invalid type: sequence, expected a YAML tag starting with '!'",
                "a list where a word is expected",
            ),
            ("it is longer than 5 bytes", "it is longer than 5 bytes"),
        ] {
            assert_eq!(in_words(says), words);
        }
    }

    #[test]
    fn a_word_has_a_place_if_it_stands_in_one() {
        assert_eq!(only_place("paths: [1, 10]", "1"), Some(8));
        assert_eq!(only_place("paths: [1, 10]\nlines: 1", "1"), None);
        assert_eq!(only_place("paths: []", ""), None);
    }
}
