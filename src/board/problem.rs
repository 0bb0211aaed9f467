//! What is wrong with a document: where it is, how it reads, and what to type next.

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth a look; everything goes on.
    Warning,
    /// The item (or the document, if no item is named) is quarantined: not claimed, not touched.
    Error,
}

/// One finding. `code` is a stable kebab-case name (`duplicate-id`, `dependency-cycle`, …) for programs; `message` and
/// `hint` are for people, in lower case and without a final period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: &'static str,
    pub severity: Severity,
    /// Bytes of the document that the caret line underlines.
    pub span: Range<usize>,
    pub message: String,
    pub hint: String,
}
