//! Differences of two texts, in the format of `diff -u`.

use anstyle::{AnsiColor, Style};
use similar::TextDiff;

use super::format::Painted;

const OLD: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();

/// Names of the two texts, for the heading.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
}

/// Returns the unified diff; empty if the texts are equal.
pub(super) fn unified(names: Names<'_>, old: &str, new: &str) -> String {
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(names.old, names.new)
        .to_string()
}

/// Adds colours to a unified diff; they are left out without a terminal.
pub(super) fn painted(unified: &str) -> Painted {
    Painted::by_line(unified, |line| match line.as_bytes().first() {
        Some(b'-') => OLD,
        Some(b'+') => NEW,
        Some(b'@') => PLACE,
        _ => Style::new(),
    })
}
