//! Lines that were likely meant as items but are none.

use std::ops::Range;

use super::Reader;
use crate::document::foreign_checkboxes::is_mark;
use crate::document::heading_rules::STEPS;
use crate::markup;
use crate::problem::Problem;

impl Reader<'_, '_> {
    /// Warns of a list item that was likely meant as a task but isn't one.
    pub(super) fn warn_of_odd_box(&mut self, start: usize) {
        let is_part =
            self.quotes > 0 || self.frames.last().is_some_and(|frame| frame.item.is_some());
        if is_part {
            return;
        }
        let odd = markup::odd_box(self.source, start);
        let line_end = markup::line_end(self.source, start, self.source.len());
        if odd.is_some() || !markup::has_box(&self.source[start..line_end]) {
            let end = markup::paragraph_end(self.source, start, self.source.len());
            let line_start = markup::line_start(self.source, self.body, start);
            self.warn_of_missing_bullets(
                line_end..end,
                markup::columns(&self.source[line_start..start]) + 2,
            );
        }
        let Some(span) = odd else { return };
        let found = &self.text[span.clone()];
        if is_mark(&found[1..found.len() - 1]) {
            return self.own.push(span);
        }
        self.problems.push(Problem::warning(
            "odd-box",
            span.clone(),
            format!(
                "`{}` is not a checkbox, so this line is not an item",
                &self.text[span]
            ),
            "write `[ ]` or `[x]`, and a plain blank before and behind it",
        ));
    }

    /// Warns of a document with lists, or boxes in quotes, but no items: it was likely meant to have some.
    pub(super) fn warn_of_plain_list(&mut self) {
        let is_told = |problem: &Problem| matches!(problem.code, "odd-box" | "empty-box");
        if !self.items.is_empty() || !self.own.is_empty() || self.problems.iter().any(is_told) {
            return;
        }
        let (first, message, hint) = match (self.listed, self.quoted.first()) {
            (_, Some(first)) => {
                let message = match self.quoted.len() {
                    1 => "the box stands in a quote, so its line is no item".to_owned(),
                    count => format!(
                        "the {count} boxes stand in quotes, so none of their lines is an item"
                    ),
                };
                (first.start, message, "remove the `>` before the box")
            }
            ((_, 0), None) => {
                let of_task = |(_, what, _): &&(_, &str, _)| *what == STEPS;
                let heading = self.no_items.iter().find(of_task);
                let (at, message) = match (self.table, heading) {
                    (Some(head), _) => {
                        (head, "tables are not read, so none of its rows is an item")
                    }
                    (None, Some((heading, ..))) => (
                        heading.start,
                        "headings are not read, so no task under them is an item",
                    ),
                    (None, None) => return,
                };
                (
                    at,
                    message.to_owned(),
                    "write each task as a line: `- [ ] ` and its title",
                )
            }
            ((first, count), None) => {
                let message = match count {
                    1 => "the list has no boxes, so its line is no item".to_owned(),
                    _ => format!("the list has no boxes, so none of its {count} lines is an item"),
                };
                (first, message, "write `- [ ] ` before the title")
            }
        };
        let line = markup::trimmed(
            self.text,
            first..markup::line_end(self.text, first, self.text.len()),
        );
        self.problems
            .push(Problem::warning("plain-list", line, message, hint));
    }

    /// Warns of lines in a paragraph, with less indent than `column`, that were likely meant as items.
    pub(super) fn warn_of_missing_bullets(&mut self, paragraph: Range<usize>, column: usize) {
        let mut at = paragraph.start;
        let before =
            markup::line_start(self.source, self.body, at.saturating_sub(1).max(self.body));
        let mut comment = markup::comment_left_open(&self.source[before..at], None);
        for line in self.source[paragraph].split_inclusive('\n') {
            let words = line.trim_start();
            let start = at + line.len() - words.len();
            at += line.len();
            let is_hidden = comment.is_some();
            comment = markup::comment_left_open(line, comment);
            let is_part = markup::columns(&line[..line.len() - words.len()]) >= column;
            let Some(found) = markup::box_without_bullet(words).filter(|_| !is_part && !is_hidden)
            else {
                continue;
            };
            self.problems.push(Problem::warning(
                "odd-box",
                start..start + found.len(),
                format!("`{found}` begins no list item, so this line is not an item"),
                "write `- [ ] ` before the title, with plain blanks, and below a blank line where it is indented",
            ));
        }
    }
}
