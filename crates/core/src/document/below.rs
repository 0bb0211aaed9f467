//! Which lines below a title are the item's own words, told line by line.

use crate::markup;

/// What the lines so far say of the next one: fences and quotes are words of others, and what is below a box is of a step or a part.
#[derive(Default)]
pub(super) struct Below<'l> {
    /// The marks of the fence that is open.
    fence: Option<&'l str>,
    is_quoted: bool,
    /// The line before was blank.
    is_apart: bool,
    /// The column of the box whose lines these are.
    step: Option<usize>,
}

impl<'l> Below<'l> {
    /// Goes on with the next line, and says whether it is the item's own.
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
        let bullet =
            markup::bullet_end(words, 0).filter(|end| words[*end..].starts_with([' ', '\t']));
        // What is as far out as the box is not of it, but for what goes on with its words.
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
