//! Fences that take more of a document than their writer meant, or less: scripts that are torn from their items, and hidden boxes.

use super::Reader;
use crate::document::{Document, Item};
use crate::markup::{self, Fence};
use crate::problem::{Position, Problem, Severity};

/// How many of these lines begin with an open box.
fn open_boxes<'l>(lines: impl Iterator<Item = &'l str>) -> usize {
    let is_open = |line: &&str| {
        markup::bullet_end(line, 0).is_some_and(|end| line[end..].trim_start().starts_with("[ ]"))
    };
    lines.filter(is_open).count()
}

/// That the `fence` hides so many boxes makes it an error, of whatever item it is.
fn tell_of_hidden(problem: &mut Problem, fence: &str, count: usize) {
    if count > 0 {
        let boxes = if count == 1 { "box" } else { "boxes" };
        problem.message = format!("{fence} hides {count} {boxes}");
        (problem.code, problem.severity) = ("hidden-items", Severity::Error);
    }
}

impl Reader<'_, '_> {
    /// Tells of a fence that is not closed where it was opened, and of the boxes that it hides.
    ///
    /// A fence of an item ends with it, closed or not. Its closing line, where that stands further out, opens another one.
    pub(super) fn tell_of_unclosed(&mut self, fence: &Fence, info: &str) {
        let torn = self.torn.take().filter(|_| info.trim().is_empty());
        if fence.is_closed && torn.is_none() {
            return;
        }
        let hidden = open_boxes(self.text[fence.content.clone()].lines());
        if let Some((problem, name, before)) = torn {
            return tell_of_hidden(&mut self.problems[problem], &name, before + hidden);
        }
        let frame = self.frames.last();
        let item = frame.and_then(|frame| frame.item);
        let is_script =
            markup::shell_of(info).is_some() && frame.is_some_and(|frame| !frame.is_step);
        let name = format!("unclosed {}", named(self.text, fence.opening.start, info));
        let mut problem = Problem::warning(
            "unclosed-fence",
            fence.opening.clone(),
            name.clone(),
            "close it with a line of its own, indented as it is",
        );
        if is_script && item.is_some() {
            problem.severity = Severity::Error;
        }
        tell_of_hidden(&mut problem, &name, hidden);
        if let Some(item) = item {
            self.items[item].quarantined |= problem.severity == Severity::Error;
            self.torn = Some((self.problems.len(), name, hidden));
        }
        self.problems.push(problem);
    }

    /// The script of the item with this index is empty.
    pub(super) fn tell_of_empty(&mut self, fence: &Fence, info: &str, item: usize) {
        self.problems.push(Problem::error(
            "empty-script",
            fence.opening.clone(),
            format!("empty {}", named(self.text, fence.opening.start, info)),
            "write what is to be run between its lines, or remove them",
        ));
        self.items[item].quarantined = true;
    }
}

impl Document<'_> {
    /// A script right below an item that is no part of it, since it is indented by less than its words. At the margin, below a blank
    /// line, it stands for itself.
    pub(crate) fn script_beside(&self, item: &Item<'_>) -> Option<Problem> {
        let start = self.text.len() - self.text[item.span.end..].trim_start().len();
        let end = markup::line_end(self.text, start, self.text.len());
        let opening = self.text[start..end].trim_end();
        let info = opening.trim_start_matches(['`', '~']);
        let marks = &opening[..opening.len() - info.len()];
        let line = markup::line_start(self.text, item.span.end, start);
        let is_right_below = line == item.span.end || line < start;
        let is_torn = marks.len() > 2 && is_right_below && markup::shell_of(info).is_some();
        if !is_torn || item.shell.is_some() || item.within.is_some() {
            return None;
        }
        let name = format!("badly indented {}", named(self.text, start, info));
        let mut problem = Problem::error(
            "torn-script",
            item.head.clone(),
            name.clone(),
            format!(
                "put {} blanks before each of its lines",
                item.content_column
            ),
        );
        let content = self.text[end..]
            .lines()
            .take_while(|line| line.trim() != marks);
        tell_of_hidden(&mut problem, &name, open_boxes(content));
        Some(problem)
    }
}

/// What the fence that opens at `start` is called, and where it is.
fn named(text: &str, start: usize, info: &str) -> String {
    let line = Position::of(text, start).line;
    match info.split_ascii_whitespace().next() {
        Some(word) => format!("`{word}` fence in line {line}"),
        None => format!("fence in line {line}"),
    }
}
