//! The steps of an item: boxes in its description that are no items themselves.

use std::fmt;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde::Serialize;

use super::markup;

/// How far the steps of an item are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// How many are ticked.
    pub done: usize,
    /// What the others say, in order.
    pub open: Vec<String>,
}

impl Steps {
    /// Those in `description`; `None` if there are none.
    pub fn of(description: &str) -> Option<Steps> {
        let (mut steps, mut quotes) = (Steps::default(), 0);
        // For each list item around, whether it is a part, or in one: an item of its own.
        let mut parts: Vec<bool> = Vec::new();
        for (event, span) in Parser::new_ext(description, Options::ENABLE_TASKLISTS).into_offset_iter() {
            match event {
                Event::Start(Tag::BlockQuote(_)) => quotes += 1,
                Event::End(TagEnd::BlockQuote(_)) => quotes -= 1,
                Event::Start(Tag::Item) => parts.push(parts.last() == Some(&true)),
                Event::End(TagEnd::Item) => drop(parts.pop()),
                Event::TaskListMarker(is_done) if quotes == 0 => {
                    let line = &description[span.end..markup::line_end(description, span.end, description.len())];
                    let Some(is_part) = parts.last_mut() else { continue };
                    *is_part |= markup::leading_id(line).0.is_some();
                    match is_done {
                        _ if *is_part => {}
                        true => steps.done += 1,
                        false => steps.open.push(line.trim().to_owned()),
                    }
                }
                _ => {}
            }
        }
        (steps.done + steps.open.len() > 0).then_some(steps)
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} steps", self.done, self.done + self.open.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_steps_but_those_of_parts_in_quotes_and_in_code() {
        let text = "Words.\n- [x] one\n- [ ] two\n  1. [ ] two a\n- [ ] T-2: a part\n  - [ ] its own\n> - [ ] quoted\n\n    - [ ] code\n\n- three\n  - [X] three a\n";
        let steps = Steps::of(text).expect("there are some");
        assert_eq!((steps.done, steps.open), (2, vec!["two".to_owned(), "two a".to_owned()]));
        assert_eq!(Steps::of("Words.\n- [ ] T-2: a part\n"), None);
    }
}
