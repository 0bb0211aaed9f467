//! Problems of a document: place, message, and a hint with a command to type.
//!
//! Knows nothing of Markdown or queues, only of text, spans and lines.

use std::fmt::Write;
use std::ops::Range;

use memchr::memchr_iter;
use serde::Serialize;

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth a look, with no effect.
    Warning,
    /// The item (or the document, if no item is named) is quarantined: neither claimed nor changed.
    Error,
}

impl Severity {
    /// Returns the word for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A problem. `code` is a stable kebab-case name (`duplicate-id`, `dependency-cycle`, …) for programs;
/// `message` and `hint` are for people, in lower case and without a final period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: &'static str,
    pub severity: Severity,
    /// Bytes of the document that the caret line underlines.
    pub span: Range<usize>,
    pub message: String,
    pub hint: String,
}

impl Problem {
    pub fn error(
        code: &'static str,
        span: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Problem {
        Problem {
            code,
            severity: Severity::Error,
            span,
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub fn warning(
        code: &'static str,
        span: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Problem {
        Problem {
            severity: Severity::Warning,
            ..Problem::error(code, span, message, hint)
        }
    }
}

/// A place as editors count: both from 1, the column in characters, without a leading byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// Returns the place of the byte `offset` in `text`. An offset past the end is the end; one inside a
    /// character is that character.
    pub fn of(text: &str, offset: usize) -> Position {
        let offset = text.floor_char_boundary(offset);
        let start = line_start(text, offset);
        Position {
            line: 1 + memchr_iter(b'\n', &text.as_bytes()[..start]).count(),
            column: 1 + text[start..offset].chars().count(),
        }
    }
}

/// Maximum characters of a line that are shown around the problem.
const SHOWN: usize = 120;

/// Returns the problem for people: `path:line:column: error: message`, the line with a caret under the span,
/// and the hint.
pub fn render(path: &str, text: &str, problem: &Problem) -> String {
    let Position { line, column } = Position::of(text, problem.span.start);
    let severity = problem.severity.as_str();
    let excerpt = excerpt(text, &problem.span);
    let message = one_line(&problem.message);
    let mut out = format!("{path}:{line}:{column}: {severity}: {message}\n{excerpt}\n");
    if !problem.hint.is_empty() {
        let gutter = " ".repeat(line.to_string().len());
        let _ = writeln!(out, "{gutter} = hint: {}", one_line(&problem.hint));
    }
    out
}

/// Returns the line with its number, and carets under the span. Of a very long line only the part around the
/// span is shown; control characters are shown as `·`.
pub fn excerpt(text: &str, span: &Range<usize>) -> String {
    let start = text.floor_char_boundary(span.start);
    let end = text.floor_char_boundary(span.end).max(start);
    let number = Position::of(text, start).line.to_string();

    let from = line_start(text, start);
    // Only this part of the line is read, so that a line of megabytes costs nothing.
    let window_from = text[from..start]
        .char_indices()
        .rev()
        .nth(SHOWN / 3)
        .map_or(from, |(index, _)| from + index);
    let line_end = text[start..]
        .find(['\n', '\r'])
        .map_or(text.len(), |index| start + index);
    let window_to = text[window_from..line_end]
        .char_indices()
        .nth(SHOWN)
        .map_or(line_end, |(index, _)| window_from + index);
    let end = end.clamp(start, window_to.max(start));

    let gutter = " ".repeat(number.len());
    let before_mark = if window_from > from { "…" } else { "" };
    let after_mark = if window_to < line_end { "…" } else { "" };
    let shown = |part: &str| -> String { part.chars().map(printable).collect() };
    let line = shown(&text[window_from..window_to]);
    // Tabs stay tabs in front of the caret, so that it is under its character at any tab width.
    let lead: String = text[window_from..start]
        .chars()
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let lead = format!("{}{lead}", if before_mark.is_empty() { "" } else { " " });
    let carets = "^".repeat(text[start..end].chars().count().max(1));
    format!("{number} | {before_mark}{line}{after_mark}\n{gutter} | {lead}{carets}")
}

/// Returns text on one line, even if a name in it has unusual characters.
pub fn one_line(words: &str) -> String {
    words.chars().map(printable).collect()
}

/// Returns the first few of these names, and the number of others, on one line.
pub fn listed(names: &[String]) -> String {
    const NAMED: usize = 6;
    let named = names
        .iter()
        .take(NAMED)
        .map(|name| one_line(name))
        .collect::<Vec<_>>()
        .join(", ");
    let more = names.len().saturating_sub(NAMED);
    if more > 0 {
        format!("{named} and {more} more")
    } else {
        named
    }
}

fn printable(c: char) -> char {
    if c.is_control() && c != '\t' { '·' } else { c }
}

fn line_start(text: &str, offset: usize) -> usize {
    let start = text[..offset].rfind('\n').map_or(0, |index| index + 1);
    let mark = '\u{feff}'.len_utf8();
    if start == 0 && text.starts_with('\u{feff}') && offset >= mark {
        mark
    } else {
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let text = "\u{feff}ab\r\ncä😀d\n";
        let at = |needle: &str| Position::of(text, text.find(needle).unwrap_or(text.len()));
        assert_eq!(at("ab"), Position { line: 1, column: 1 });
        assert_eq!(at("d"), Position { line: 2, column: 4 });
        assert_eq!(at("nothing"), Position { line: 3, column: 1 });
        assert_eq!(Position::of(text, 9999), Position { line: 3, column: 1 });
        assert_eq!(
            Position::of(text, text.find('😀').unwrap_or(0) + 2),
            Position { line: 2, column: 3 }
        );
    }

    #[test]
    fn a_finding_reads_like_a_compilers() {
        let text = "one\n\t- [ ] a (priority: high ) \u{1b}[31m\n";
        let start = text.find("high").unwrap_or(0);
        let problem = Problem::error(
            "wrong-type",
            start..start + 4,
            "`priority` can't be `high`",
            "write 0 to 9",
        );
        assert_eq!(
            render("queues/main.md", text, &problem),
            "queues/main.md:2:21: error: `priority` can't be `high`\n\
             2 | \t- [ ] a (priority: high ) ·[31m\n\
             \x20 | \t                   ^^^^\n\
             \x20 = hint: write 0 to 9\n"
        );
    }

    #[test]
    fn a_huge_line_is_cut_around_the_finding() {
        let text = format!("{}HERE{}", "ä".repeat(100_000), "x".repeat(5_000_000));
        let start = text.find("HERE").unwrap_or(0);
        let problem = Problem::warning("x", start..text.len(), "m", "");
        let out = render("p", &text, &problem);
        assert!(out.len() < 1000, "{} bytes", out.len());
        assert!(out.starts_with("p:1:100001: warning: m\n"), "{out}");
        assert!(out.contains("äHERExx") && out.contains('…'), "{out}");
    }

    #[test]
    fn any_span_renders() {
        let reversed = Range { start: 3, end: 1 };
        for span in [0..0, 0..100, reversed, 50..60, 1..2] {
            let _ = render(
                "p",
                "äö\r\n",
                &Problem::warning("x", span.clone(), "m", "h"),
            );
            let _ = render("p", "", &Problem::warning("x", span, "m", "h"));
        }
    }
}
