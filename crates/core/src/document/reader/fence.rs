//! Fences that hold more or less of a document than intended: torn scripts, and hidden boxes.

use std::collections::HashSet;

use super::Reader;
use crate::document::{Document, Item};
use crate::markup::{self, Fence};
use crate::problem::{Position, Problem, Severity};

/// Returns true if the line begins with an open box.
fn has_open_box(line: &&str) -> bool {
    markup::bullet_end(line, 0).is_some_and(|end| line[end..].trim_start().starts_with("[ ]"))
}

/// Returns the first line in the fence that was meant to open another one.
fn opening_within<'t>(text: &'t str, fence: &Fence) -> Option<&'t str> {
    let marks = |line: &str| line.len() - line.trim_start_matches(&line[..1]).len();
    let opening = &text[fence.opening.clone()];
    let least = &opening[..marks(opening)];
    let opens = |line: &&str| {
        line.starts_with(least) && marks(line) < line.len() && !line[marks(line)..].contains('`')
    };
    text[fence.content.clone()]
        .lines()
        .map(str::trim)
        .find(opens)
}

/// Returns true if the closing line was meant for another fence, which opens inside, or belongs to the last
/// box inside.
fn takes_end_of_another(text: &str, fence: &Fence) -> bool {
    let lines = || text[fence.content.clone()].lines();
    // Scripts rarely have boxes, and this check runs for each.
    let may_have_box = text[fence.content.clone()].contains("[ ]");
    let last = may_have_box.then(|| lines().rfind(has_open_box)).flatten();
    let Some(last) = last else { return false };
    let column = |line: &str| markup::columns(&line[..line.len() - line.trim_start().len()]);
    let closing = column(&text[fence.content.end..fence.lines.end]);
    opening_within(text, fence).is_some() || closing > fence.column && closing > column(last) + 1
}

/// Makes it an error if the `fence` hides boxes of any item.
fn tell_of_hidden(problem: &mut Problem, fence: &str, count: usize) {
    if count > 0 {
        let boxes = if count == 1 { "box" } else { "boxes" };
        problem.message = format!("{fence} hides {count} {boxes}");
        (problem.code, problem.severity) = ("hidden-items", Severity::Error);
    }
}

impl Reader<'_, '_> {
    /// Reports a fence that is not closed where it was opened, and the boxes that it hides.
    ///
    /// A fence of an item ends with the item, closed or not. A closing line further out opens another one.
    pub(super) fn tell_of_unclosed(&mut self, fence: &Fence, info: &str) {
        let torn = self.torn.take().filter(|_| info.trim().is_empty());
        if fence.is_closed && torn.is_none() && !takes_end_of_another(self.text, fence) {
            return;
        }
        let lines = self.text[fence.content.clone()].lines();
        let hidden = lines.filter(has_open_box).count();
        if let Some((problem, name, before)) = torn {
            tell_of_hidden(&mut self.problems[problem], &name, before + hidden);
            self.torn = Some((problem, name, before + hidden)).filter(|_| hidden > 0);
            return;
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
            "close it with a line of its own, indented as it is; one around another fence has more marks",
        );
        // Behind a script it may be the script's intended end.
        let is_behind_script = item.is_some_and(|item| self.items[item].shell.is_some());
        if is_script && item.is_some() || is_behind_script && !fence.is_closed {
            problem.severity = Severity::Error;
        }
        tell_of_hidden(&mut problem, &name, hidden);
        if let Some(item) = item {
            self.items[item].quarantined |= problem.severity == Severity::Error;
        }
        self.torn = Some((self.problems.len(), name, hidden));
        self.problems.push(problem);
    }

    /// Reports the item's script if it is empty, or ends with a line meant for another fence or a
    /// here-document in it.
    pub(super) fn tell_of_half(&mut self, fence: &Fence, info: &str, item: usize) {
        let script = &self.text[fence.content.clone()];
        let below = &self.text[fence.lines.end..self.items[item].span.end.max(fence.lines.end)];
        // Counting the lines above is slow, so it is done only for a problem.
        let name = || named(self.text, fence.opening.start, info);
        let (code, message, hint) = if script.trim().is_empty() {
            let hint = "write the commands between its lines, or remove them";
            ("empty-script", format!("empty {}", name()), hint.to_owned())
        } else if let Some(line) = opening_within(self.text, fence) {
            let message = format!("{} holds the beginning of another, `{line}`", name());
            let hint = "close it before, or begin and end it with more marks";
            ("torn-script", message, hint.to_owned())
        } else if let Some(word) = torn_document(script, below) {
            let marks = &self.text[fence.opening.start..][..3];
            let (message, mark) = (format!("{} ends within `<<{word}`", name()), &marks[..1]);
            let hint = format!("begin and end the script with a longer fence: {marks}{mark}{info}");
            ("torn-script", message, hint)
        } else {
            return;
        };
        let problem = Problem::error(code, fence.opening.clone(), message, hint);
        self.problems.push(problem);
        self.items[item].quarantined = true;
    }
}

impl Document<'_> {
    /// Returns the problem of a script right below an item that is no part of it by its indent. At the margin
    /// below a blank line it stands for itself.
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
        tell_of_hidden(&mut problem, &name, content.filter(has_open_box).count());
        Some(problem)
    }
}

/// Returns the word of a here-document that begins in the script and ends in the lines below it.
fn torn_document<'t>(script: &'t str, below: &'t str) -> Option<&'t str> {
    let word = |behind: &'t str| {
        let word = behind.trim_start_matches(['-', ' ', '\'', '"', '\\']);
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_');
        &word[..end.unwrap_or(word.len())]
    };
    let lines = |text: &'t str| text.lines().map(str::trim).collect::<HashSet<_>>();
    let mut words = script.split("<<").skip(1).map(word).peekable();
    words.peek()?;
    let (script, below) = (lines(script), lines(below));
    words.find(|word| !word.is_empty() && below.contains(word) && !script.contains(word))
}

/// Returns the name and the line of the fence that opens at `start`.
fn named(text: &str, start: usize, info: &str) -> String {
    let line = Position::of(text, start).line;
    match info.split_ascii_whitespace().next() {
        Some(word) => format!("`{word}` fence in line {line}"),
        None => format!("fence in line {line}"),
    }
}
