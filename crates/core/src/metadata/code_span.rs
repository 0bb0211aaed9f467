//! A title line's parenthesis as a code span. Tavern writes it so where Markdown would read markup in it,
//! such as two globs or `<T>`.
//!
//! Knows Markdown's inline marks, not keys.

use pulldown_cmark::{Event, Options, Parser};

use super::pairs::inside;
use super::parenthesis_behind;

/// Returns `line` without backticks around its parenthesis, which is behind a title up to `title`.
pub fn bare(line: &str, title: usize) -> String {
    let Some(span) = parenthesis_behind(line, title) else {
        return line.to_owned();
    };
    let inner = inside(line, span.clone());
    format!("{}({})", &line[..span.start], &line[inner])
}

/// Returns `line` with its bare parenthesis, behind a title up to `title`, made to render as spelt.
pub fn legible(line: &str, title: usize) -> String {
    let Some(span) = parenthesis_behind(line, title) else {
        return line.to_owned();
    };
    let (before, parenthesis) = line.split_at(span.start);
    if is_shown_as_spelt(before, parenthesis) {
        return line.to_owned();
    }
    let mut spans = (1..=line.len())
        .map(|count| "`".repeat(count))
        .map(|ticks| format!("{before}{ticks}{parenthesis}{ticks}"));
    spans
        .find(|line| ends_with_code(line, parenthesis))
        .unwrap_or_else(|| line.to_owned())
}

fn ends_with_code(line: &str, code: &str) -> bool {
    let line = format!("x {line}");
    let shown = Parser::new_ext(&line, Options::ENABLE_STRIKETHROUGH);
    shown.filter(|event| !matches!(event, Event::End(_))).last() == Some(Event::Code(code.into()))
}

/// Returns true if Markdown has no markup but code in `parenthesis`, behind `before` on its line.
fn is_shown_as_spelt(before: &str, parenthesis: &str) -> bool {
    // Twice, as opened markup may be closed by text below.
    let twice = format!("{parenthesis} {parenthesis}");
    let line = format!("x {before}{twice}");
    let text = |event| match event {
        Event::Text(text) => Some(text.into_string()),
        Event::Code(code) => Some(format!("`{code}`")),
        _ => None,
    };
    let shown: String = Parser::new_ext(&line, Options::ENABLE_STRIKETHROUGH)
        .filter_map(text)
        .collect();
    shown.ends_with(&twice)
}
