//! The signal in the last line of an agent's answer. It is a request, not an outcome.

use super::answer::ends_in_block;
use super::question;

/// Read from the end of the final text only: quotes and echoes before it are no signal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// `DONE` or `COMPLETED`: verify it.
    Done,
    /// `WAITING: question` or `NEED INPUT: question`, or a block with a question: ask a person.
    Waiting(String),
    /// Neither.
    #[default]
    None,
}

impl Signal {
    /// Reads the last line of `text`, or the block with a question at its end, which names the `nonce` if there is one.
    /// Any other block is a quote.
    pub fn read(text: &str, nonce: Option<&str>) -> Signal {
        if let Some(question) = question::in_answer(text, nonce) {
            return Signal::Waiting(question);
        }
        let last = text.trim_end().lines().last().map_or("", str::trim);
        if ends_in_block(text) {
            return Signal::None;
        }
        if is_done(last) {
            return Signal::Done;
        }
        let question = asked(last).map(|words| words.chars().take(question::LONGEST).collect());
        question.map_or(Signal::None, Signal::Waiting)
    }
}

/// Returns the text without its final line that signals done.
pub fn without_signal(text: &str) -> &str {
    let text = text.trim_end();
    let last = text.lines().last().unwrap_or_default();
    if is_done(last.trim()) {
        text[..text.len() - last.len()].trim_end()
    } else {
        text
    }
}

fn is_done(line: &str) -> bool {
    let word = bare(line).trim_end_matches(['.', '!']);
    word == "DONE"
        || word == "COMPLETED"
        || word.starts_with("DONE:")
        || word.starts_with("COMPLETED:")
}

/// Returns the text after the word in `line`.
fn asked(line: &str) -> Option<&str> {
    let line = bare(line);
    ["WAITING", "NEED INPUT"].iter().find_map(|word| {
        let rest = line.strip_prefix(word)?;
        // `**WAITING:** which one?` and `**WAITING**: which one?`
        let rest = rest.trim_start_matches(['*', '_', '`']);
        if rest.is_empty() {
            return Some(rest);
        }
        Some(
            rest.strip_prefix(':')?
                .trim_start_matches(['*', '_', '`'])
                .trim(),
        )
    })
}

/// Returns `line` without the Markdown that people and models put around such a word.
fn bare(line: &str) -> &str {
    line.trim_start_matches(['#', '>', '-', '*', '_', '`', ' '])
        .trim_end_matches(['*', '_', '`', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_the_text_is_a_signal() {
        let waiting = |question: &str| Signal::Waiting(question.to_owned());
        let rows = [
            ("", Signal::None),
            ("DONE", Signal::Done),
            ("All tests pass.\n\n**DONE**\n", Signal::Done),
            ("Finished.\nDONE.", Signal::Done),
            ("COMPLETED: 3 files", Signal::Done),
            ("I am done", Signal::None),
            ("DONE\nbut one thing is left", Signal::None),
            (
                "The prompt says: end with DONE when ready, and I am not.",
                Signal::None,
            ),
            ("CONDONE", Signal::None),
            ("DONELY", Signal::None),
            ("WAITING: which database?", waiting("which database?")),
            ("text\n\n**WAITING:** which one?\n- a\n- b", Signal::None),
            (
                "It printed:\nWAITING: for the lock\nand went on.",
                Signal::None,
            ),
            ("```\nWAITING: for the lock\n```", Signal::None),
            ("It hangs:\n```\nWAITING: for the lock", Signal::None),
            ("~~~\n```\nDONE", Signal::None),
            ("```\nlog\n```\nWAITING: which one?", waiting("which one?")),
            ("**NEED INPUT**: the key", waiting("the key")),
            ("WAITING", waiting("")),
            (
                "WAITING: for the tests\n\nThey pass now.\nDONE",
                Signal::Done,
            ),
            (
                "WAITING: old question\n\nI found the answer myself.",
                Signal::None,
            ),
            ("I was WAITING: no", Signal::None),
            (
                "```yaml\nquestion: red or blue?\noptions: [red, blue]\n```\n",
                waiting("red or blue? (1: red; 2: blue)"),
            ),
            ("```yaml\nquestion: red or blue?\n```\nDONE", Signal::Done),
        ];
        for (text, signal) in rows {
            assert_eq!(Signal::read(text, None), signal, "{text:?}");
        }
    }

    #[test]
    fn a_question_is_bounded() {
        let Signal::Waiting(question) =
            Signal::read(&format!("WAITING: {}", "é".repeat(9000)), None)
        else {
            panic!("it is a question");
        };
        assert_eq!(question.chars().count(), question::LONGEST);
    }
}
