//! Conflicts: their report, and their markers in the text, written and found again.

use std::fmt;

use crate::markup;
use crate::problem::Problem;

/// A conflict: both sides made different changes. Both versions are in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The item, by ID or title; `None` for prose.
    pub item: Option<String>,
    /// The subject: `title`, `status`, a key, `text`, `removed`.
    pub what: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(item) = &self.item {
            write!(f, "`{item}`: ")?;
        }
        match self.what.as_str() {
            "removed" => f.write_str(
                "one side removed it and the other changed it; the changed version is kept",
            ),
            "status" => {
                f.write_str("the two sides set different statuses; the more advanced one is kept")
            }
            part => write!(
                f,
                "the two sides changed the {part} differently; the file has both versions"
            ),
        }
    }
}

/// Start of a merge marker; its subject is behind it, or between it and the next. [`marks`] finds them.
pub(super) const MARK: &str = "<!-- conflict: ";

/// Returns true if a merge left a marker in the item with this title of the other side.
pub fn is_called(block: &str, title: &str) -> bool {
    block.contains(&format!(
        "{MARK}title: {} -->",
        title.replace("-->", "--&gt;")
    ))
}

/// Returns the markers that merges have left in a text, for a person to resolve.
pub fn marks(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (mark, end) in [(MARK, "-->"), ("\n# conflict: ", "\n")] {
        for (at, _) in text.match_indices(mark) {
            let start = at + mark.len() - mark.trim_start().len();
            let line = &text[start..markup::line_end(text, start, text.len())];
            let words = line[mark.trim_start().len()..]
                .trim_end()
                .trim_end_matches(end)
                .trim();
            // The first of the three markers around a stretch is reported for all of them.
            if matches!(words, Bound::THEIRS | Bound::END) {
                continue;
            }
            let (message, hint) = match words {
                Bound::OURS => (
                    "both sides changed these lines; both versions follow".to_owned(),
                    "keep the correct lines, and remove the three lines that begin with `<!-- conflict`",
                ),
                words => (
                    format!("both sides changed this; the other side says: {words}"),
                    "keep the correct version, and remove this line",
                ),
            };
            let span = start..start + line.trim_end().len();
            problems.push(Problem::warning("merge-conflict", span, message, hint));
        }
    }
    problems
}

/// The part that a marker begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Ours,
    Theirs,
    End,
}

impl Bound {
    const OURS: &str = "one side says";
    const THEIRS: &str = "the other side says";
    const END: &str = "end";

    /// Returns the marker that a line is.
    pub fn of(line: &str) -> Option<Bound> {
        let words = line.trim().strip_prefix(MARK)?.strip_suffix(" -->")?;
        match words {
            Bound::OURS => Some(Bound::Ours),
            Bound::THEIRS => Some(Bound::Theirs),
            Bound::END => Some(Bound::End),
            _ => None,
        }
    }

    pub fn text(self) -> String {
        let label = match self {
            Bound::Ours => Bound::OURS,
            Bound::Theirs => Bound::THEIRS,
            Bound::End => Bound::END,
        };
        format!("{MARK}{label} -->\n")
    }
}
