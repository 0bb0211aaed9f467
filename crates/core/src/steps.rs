//! The steps of an item: boxes in its description that are no items themselves.

use std::fmt;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{Document, Item};
use super::markup;
use super::text::Edit;

/// Progress of an item's steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Steps {
    /// Number of ticked steps.
    pub done: usize,
    /// Texts of the open steps, in order.
    pub open: Vec<String>,
}

/// The box of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBox<'t> {
    /// The text behind it.
    pub says: &'t str,
    pub is_done: bool,
    /// Offset of the mark in its box.
    at: usize,
}

impl Steps {
    /// Returns the steps in `description`; `None` if there are none.
    pub fn of(description: &str) -> Option<Steps> {
        let (done, open): (Vec<_>, Vec<_>) = boxes(description)
            .into_iter()
            .partition(|step| step.is_done);
        let open: Vec<String> = open.iter().map(|step| step.says.to_owned()).collect();
        (done.len() + open.len() > 0).then_some(Steps {
            done: done.len(),
            open,
        })
    }
}

/// Returns the steps in `description`, in order.
pub fn boxes(description: &str) -> Vec<StepBox<'_>> {
    let (mut steps, mut quotes) = (Vec::new(), 0);
    // For each list item around, whether it is or is in a part, which is an item of its own.
    let mut parts: Vec<bool> = Vec::new();
    let source = markup::without_comments(description.into());
    for (event, span) in Parser::new_ext(&source, Options::ENABLE_TASKLISTS).into_offset_iter() {
        match event {
            Event::Start(Tag::BlockQuote(_)) => quotes += 1,
            Event::End(TagEnd::BlockQuote(_)) => quotes -= 1,
            Event::Start(Tag::Item) => parts.push(parts.last() == Some(&true)),
            Event::End(TagEnd::Item) => drop(parts.pop()),
            Event::TaskListMarker(is_done) if quotes == 0 => {
                let line = &description
                    [span.end..markup::line_end(description, span.end, description.len())];
                let Some(is_part) = parts.last_mut() else {
                    continue;
                };
                *is_part |= markup::leading_id(line).0.is_some();
                if let (false, Some(open)) = (*is_part, description[span.clone()].find('[')) {
                    steps.push(StepBox {
                        says: line.trim(),
                        is_done,
                        at: span.start + open + 1,
                    });
                }
            }
            _ => {}
        }
    }
    steps
}

impl Document<'_> {
    /// Returns the edits that tick the item's steps with these `numbers`, counted from 1.
    pub fn ticked(&self, item: &Item<'_>, numbers: &[usize]) -> Vec<Edit> {
        let description = self.description(item);
        // A description differs from the text only in blank lines and the starts of lines.
        let told: Vec<usize> = words(&description, 0..description.len()).collect();
        let stand: Vec<usize> = self
            .description_parts(item)
            .into_iter()
            .flat_map(|part| words(self.text(), part))
            .collect();
        let place = |at: usize| {
            let line = told.partition_point(|start| *start <= at) - 1;
            stand[line] + at - told[line]
        };
        let steps = (1..)
            .zip(boxes(&description))
            .filter(|(number, step)| numbers.contains(number) && !step.is_done);
        steps
            .map(|(_, step)| Edit::replace(place(step.at)..place(step.at) + 1, "x"))
            .collect()
    }
}

/// Returns where the text of each non-blank line of `span` begins.
fn words(text: &str, span: Range<usize>) -> impl Iterator<Item = usize> {
    let mut end = span.start;
    text[span].split_inclusive('\n').filter_map(move |line| {
        end += line.len();
        let words = line.trim_start().len();
        (words > 0).then_some(end - words)
    })
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} steps", self.done, self.done + self.open.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;
    use crate::text::apply;

    #[test]
    fn boxes_are_steps_but_those_of_parts_in_quotes_and_in_code() {
        let text = "Words.\n- [x] one\n- [ ] two\n  1. [ ] two a\n- [ ] T-2: a part\n  - [ ] its own\n> - [ ] quoted\n\n    - [ ] code\n\n- three\n  - [X] three a\n";
        let steps = Steps::of(text).expect("there are some");
        assert_eq!(
            (steps.done, steps.open),
            (2, vec!["two".to_owned(), "two a".to_owned()])
        );
        assert_eq!(Steps::of("Words.\n- [ ] T-2: a part\n"), None);
    }

    #[test]
    fn a_step_is_ticked_where_it_stands_whatever_is_before_it() {
        const LINES: [&str; 9] = [
            "  - [ ] one\n",
            "\t1. [ ] two\r\n",
            "    -   [\t] three  \n",
            "  - - [x] four\n",
            "  ```yaml task\n  priority: 1\n  ```\n",
            "  > - [ ] quoted\n",
            " \r\n",
            "  \u{a0} Words.\n",
            "  - [ ] T-2: a part\n",
        ];
        for number in 0..LINES.len().pow(4) {
            let below: String = (0..4)
                .map(|at| LINES[number / LINES.len().pow(at) % LINES.len()])
                .collect();
            let text = format!("- [ ] T-1: All\n{below}\n- [ ] T-3: Other");
            let (document, _) = parse(&text);
            let item = document.item(0);
            let description = document.description(item);
            let before = boxes(&description);
            for at in 0..before.len() {
                let ticked = apply(&text, &document.ticked(item, &[at + 1]));
                let (document, _) = parse(&ticked);
                let after = document.description(document.item(0));
                let expected = before
                    .iter()
                    .enumerate()
                    .map(|(other, step)| (step.says, step.is_done || other == at));
                let found: Vec<_> = boxes(&after)
                    .iter()
                    .map(|step| (step.says, step.is_done))
                    .collect();
                assert_eq!(found, expected.collect::<Vec<_>>(), "{text:?} {at}");
                let others = text
                    .bytes()
                    .zip(ticked.bytes())
                    .filter(|(old, new)| old != new)
                    .count();
                let is_new = usize::from(!before[at].is_done);
                assert_eq!(
                    (others, ticked.len()),
                    (is_new, text.len()),
                    "{text:?} {at}"
                );
            }
        }
    }
}
