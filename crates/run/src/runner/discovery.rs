//! Learnings that an agent prints in lines of its own text. They are claims, not proven.

use super::answer::unfenced;
use super::event::{AgentEvent, Nesting};
use tavern_core::markup::bullet_end;

/// The word, in any case, that such a line begins with, followed by a colon.
const MARK: &str = "learned";

/// Returns the text of lines that begin with `LEARNED:`, after an optional bullet or number. Ignores fenced blocks
/// (quotes) and sub-agents (their agent has to judge their findings).
pub fn discoveries(event: &AgentEvent) -> Vec<&str> {
    let AgentEvent::Text {
        text,
        nesting: Nesting::Main,
    } = event
    else {
        return Vec::new();
    };
    unfenced(text)
        .into_iter()
        .filter_map(discovery)
        .filter(|said| !said.is_empty())
        .collect()
}

fn discovery(line: &str) -> Option<&str> {
    // `**LEARNED:** it` and `**LEARNED**: it`
    let line = bare(&line[bullet_end(line, 0).unwrap_or_default()..]);
    let (mark, rest) = line.split_at_checked(MARK.len())?;
    let said = bare(rest)
        .strip_prefix(':')
        .filter(|_| mark.eq_ignore_ascii_case(MARK))?;
    Some(bare(said).trim_end())
}

fn bare(text: &str) -> &str {
    text.trim_start_matches(['*', '_', ' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_that_begins_so_is_a_discovery() {
        for (text, found) in [
            ("LEARNED: It needs a slash.", &["It needs a slash."][..]),
            (
                "Look:\n- learned: one\n  2. Learned:two \r\n**LEARNED:** three\n* **LEARNED**: four",
                &["one", "two", "three", "four"],
            ),
            (
                "I learned: no. LEARNED: no.\nLEARNED no\nLEARNED:\nLEARNEDLY: no\n> LEARNED: no\nlearné: no",
                &[],
            ),
            (
                "```\nLEARNED: quoted\n```\nLEARNED: said\n~~~sh\nLEARNED: quoted",
                &["said"],
            ),
            ("```\nLEARNED: quoted", &[]),
        ] {
            let event = |nesting| AgentEvent::Text {
                text: text.to_owned(),
                nesting,
            };
            assert_eq!(discoveries(&event(Nesting::Main)), found, "{text:?}");
            assert!(discoveries(&event(Nesting::Inner)).is_empty(), "{text:?}");
        }
    }
}
