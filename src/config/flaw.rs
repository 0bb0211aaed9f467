//! What is wrong with a configuration file: where, shown with a caret, and what to type.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use crate::board::problem::{Position, excerpt, one_line};
use crate::near::nearest;
use crate::yaml::YamlError;

/// One fault at one place of a file. It prints as `file:line:column: message`, the line and a caret under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
    /// Where it is, if that is known.
    pub span: Option<Range<usize>>,
    /// Lower case, without a final period.
    pub message: String,
    pub hint: Option<String>,
}

impl Flaw {
    /// At the word of `text`, the content of the file at `path`, that begins at the byte `start`.
    pub(super) fn at(path: PathBuf, text: &str, start: Option<usize>, message: String, hint: Option<String>) -> Flaw {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = |start: usize| text[start..].find(|c| !is_word(c)).map_or(text.len(), |length| start + length);
        let span = start.map(|start| start..end(start));
        Flaw { path, text: text.to_owned(), span, message, hint }
    }

    /// From what the YAML reader says, put into words for people.
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
        Flaw::at(path, text, place.map(|place| at_word(text, place, word)), message, hint)
    }
}

/// The reader names the place of a mapping rather than that of its wrong key: the key is at or below it.
fn at_word(text: &str, place: usize, word: &str) -> usize {
    let mut at = place;
    for line in text[place..].split_inclusive('\n').filter(|_| !word.is_empty()) {
        let code = line.split(" #").next().unwrap_or_default();
        if let Some(found) = code.find(word).filter(|_| !code.trim_start().starts_with('#')) {
            return at + found;
        }
        at += line.len();
    }
    place
}

/// `roles.coder: unknown field …` is the path of the mapping and the fault.
fn split_path(message: &str) -> (&str, &str) {
    match message.split_once(": ") {
        Some((path, fault)) if !path.contains([' ', '`']) => (path, fault),
        _ => ("", message),
    }
}

/// The first word in backquotes.
fn quoted(message: &str) -> Option<&str> {
    message.split('`').nth(1)
}

fn reworded(within: &str, fault: &str) -> (String, Option<String>) {
    let is_key = fault.starts_with("unknown field `");
    let is_value = fault.starts_with("unknown variant `");
    if !is_key && !is_value {
        let place = if within.is_empty() { String::new() } else { format!("`{within}`: ") };
        return (format!("{place}{fault}"), None);
    }
    let word = quoted(fault).unwrap_or_default();
    let known: Vec<&str> = fault.split('`').skip(3).step_by(2).collect();
    let place = if within.is_empty() { String::new() } else { format!(" in `{within}`") };
    let message =
        if is_key { format!("unknown key `{word}`{place}") } else { format!("unknown value `{word}`{place}") };
    let hint = match nearest(word, known.iter().copied()) {
        Some(guess) => format!("did you mean `{guess}`?"),
        None if known.is_empty() => "take it out: nothing can be set here".to_owned(),
        None => format!("one of: {}", known.join(", ")),
    };
    (message, Some(hint))
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, message) = (self.path.display(), one_line(&self.message));
        let Some(span) = &self.span else { return write!(f, "{path}: {message}") };
        let Position { line, column } = Position::of(&self.text, span.start);
        write!(f, "{path}:{line}:{column}: {message}\n{}", excerpt(&self.text, span))
    }
}
