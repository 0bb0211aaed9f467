//! What is wrong with a configuration file: where, shown with a caret, and what to type.

use std::fmt;
use std::path::PathBuf;

use crate::near::nearest;

/// One fault at one place of a file. It prints as `file:line:column: message`, the line and a caret under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub path: PathBuf,
    /// Counted from 1; 0 if the place is not known.
    pub line: usize,
    /// In characters, counted from 1; 0 if the place is not known.
    pub column: usize,
    /// Lower case, without a final period.
    pub message: String,
    pub hint: Option<String>,
    /// The line itself, for the caret.
    excerpt: String,
    /// How many characters the caret spans.
    width: usize,
}

impl Flaw {
    /// At line and column `place` of `text`, the content of the file at `path`.
    pub(super) fn at(path: PathBuf, text: &str, place: Option<(usize, usize)>, message: String) -> Flaw {
        let (line, column) = place.unwrap_or((0, 0));
        let excerpt = text.lines().nth(line.wrapping_sub(1)).unwrap_or_default().to_owned();
        let rest = excerpt.chars().skip(column.saturating_sub(1));
        let width = rest.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')).count().max(1);
        Flaw { path, line, column, message, hint: None, excerpt, width }
    }

    pub(super) fn with_hint(mut self, hint: Option<String>) -> Flaw {
        self.hint = hint;
        self
    }

    /// From what the YAML reader says, put into words for people.
    pub(super) fn from_yaml(path: PathBuf, text: &str, error: &serde_yaml::Error) -> Flaw {
        let place = error.location().map(|location| (location.line(), location.column()));
        let full = error.to_string();
        let message = match full.rfind(" at line ") {
            Some(at) if place.is_some() => &full[..at],
            _ => &full,
        };
        let (within, fault) = split_path(message);
        let (message, hint) = reworded(within, fault);
        let word = quoted(fault).unwrap_or_default();
        let place = place.map(|place| at_word(text, place, word));
        Flaw::at(path, text, place, message).with_hint(hint)
    }
}

/// The reader names the place of a mapping rather than that of its wrong key: the key is at or below it.
fn at_word(text: &str, (line, column): (usize, usize), word: &str) -> (usize, usize) {
    if word.is_empty() {
        return (line, column);
    }
    for (number, content) in text.lines().enumerate().skip(line.saturating_sub(1)) {
        let code = content.split(" #").next().unwrap_or_default();
        if code.trim_start().starts_with('#') {
            continue;
        }
        let from = if number + 1 == line { column.saturating_sub(1) } else { 0 };
        let begin = code.char_indices().nth(from).map_or(code.len(), |(index, _)| index);
        if let Some(found) = code[begin..].find(word) {
            return (number + 1, code[..begin + found].chars().count() + 1);
        }
    }
    (line, column)
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
        write!(f, "{}", self.path.display())?;
        if self.line == 0 {
            return write!(f, ": {}", self.message);
        }
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(self.column.saturating_sub(1));
        // A tab in the line would put the caret elsewhere.
        let excerpt = self.excerpt.replace('\t', " ");
        writeln!(f, ":{}:{}: {}", self.line, self.column, self.message)?;
        writeln!(f, "{number} | {excerpt}")?;
        write!(f, "{gutter} | {indent}{}", "^".repeat(self.width))
    }
}
