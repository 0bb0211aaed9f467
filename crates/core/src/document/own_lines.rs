//! Decides line by line which lines below a title are the item's own text.

use crate::markup;

/// Columns of extra indent that make text code, behind a blank line.
const CODE: usize = 4;

/// State of the lines so far: fences and quotes are not the item's own, and text below a box belongs to a
/// step or a part.
#[derive(Default)]
pub(super) struct Below<'l> {
    /// Text columns of the item, and of the list items around the line.
    columns: Vec<usize>,
    /// Whether the line before is code by its indent.
    is_code: bool,
    /// Marks of the open fence.
    fence: Option<&'l str>,
    is_quoted: bool,
    /// Whether the line before was blank.
    is_apart: bool,
    /// Column of the box that these lines belong to.
    step: Option<usize>,
}

impl<'l> Below<'l> {
    /// Begins below an item with its text in this column.
    pub fn of(column: usize) -> Self {
        Below {
            columns: vec![column],
            ..Below::default()
        }
    }

    /// Takes the next line, and returns whether it is the item's own.
    pub fn is_own(&mut self, line: &'l str) -> bool {
        let words = line.trim_start();
        let marks = &words[..words.len() - words.trim_start_matches(['`', '~']).len()];
        if marks.len() > 2 && self.fence.is_none_or(|open| marks.starts_with(open)) {
            self.fence = self.fence.xor(Some(marks));
            return false;
        }
        if self.fence.is_some() {
            return false;
        }
        if words.is_empty() {
            (self.is_apart, self.is_quoted) = (true, false);
            return false;
        }
        let column = markup::columns(&line[..line.len() - words.len()]);
        let bullet = bullet(words);
        if self.is_apart || bullet.is_some() {
            while self.columns.len() > 1 && self.columns.last().is_some_and(|it| *it > column) {
                self.columns.pop();
            }
        }
        let is_far_in = self.columns.last().is_some_and(|it| column >= it + CODE);
        self.is_code = is_far_in && (self.is_apart || self.is_code);
        if self.is_code {
            self.is_apart = false;
            return false;
        }
        if let Some(end) = bullet {
            let inner = words[end..].trim_start();
            let blanks = words.len() - end - inner.len();
            let blanks = if blanks > CODE || inner.is_empty() {
                1
            } else {
                blanks
            };
            self.columns.push(column + end + blanks);
        }
        // Text no further in than the box does not belong to it, unless it continues its paragraph.
        if self.step.is_some_and(|step| column <= step) && (self.is_apart || bullet.is_some()) {
            self.step = None;
        }
        if markup::has_box(line) {
            self.step = self.step.or(Some(column));
        }
        let is_quote = words[bullet.unwrap_or(0)..].trim_start().starts_with('>');
        self.is_quoted = is_quote || self.is_quoted && bullet.is_none();
        self.is_apart = false;
        self.step.is_none() && !self.is_quoted
    }
}

/// Returns the start of a list item's text.
pub(super) fn bullet(line: &str) -> Option<usize> {
    let end = markup::bullet_end(line, 0)?;
    line[end..].starts_with([' ', '\t']).then_some(end)
}
