//! Structured questions to a person: a block at the end of an answer, and the Claude CLI's own tool, which fails in an
//! unattended run. Pure; both become text with numbered choices.

use serde_yaml::Value;

use super::answer::final_block;
use tavern_core::yaml;

/// The Claude CLI's tool for questions. It fails in an unattended run.
pub const TOOL: &str = "AskUserQuestion";

/// The longest question kept, in characters.
pub const LONGEST: usize = 4000;

/// Returns the question in the block at the end of `text`, which names the `nonce` if there is one: a mapping with
/// `question`, and perhaps `options`.
pub fn in_answer(text: &str, nonce: Option<&str>) -> Option<String> {
    let block = final_block(text, &["yaml", "yml", "json"], nonce).ok()?;
    asked(&yaml::read(&block).ok()?)
}

/// Returns all questions of a call of the tool with `input`.
pub fn of_tool(input: &serde_json::Value) -> Option<String> {
    let questions = input["questions"].as_array().map_or(&[][..], Vec::as_slice);
    let asked = questions
        .iter()
        .filter_map(|question| asked(&serde_yaml::to_value(question).ok()?));
    let text = asked.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

fn asked(value: &Value) -> Option<String> {
    let question = value.get("question")?.as_str()?.trim();
    if question.is_empty() {
        return None;
    }
    let options = value
        .get("options")
        .and_then(Value::as_sequence)
        .map_or(&[][..], Vec::as_slice);
    let options: Vec<String> = options.iter().filter_map(option).collect();
    let numbered = (1..)
        .zip(&options)
        .map(|(number, option)| format!("{number}: {option}"));
    let whole = match options.len() {
        0 => question.to_owned(),
        _ => format!("{question} ({})", numbered.collect::<Vec<_>>().join("; ")),
    };
    Some(whole.chars().take(LONGEST).collect())
}

/// Parses a choice: a word, a number, or a mapping with a `label` and a description.
fn option(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Mapping(_) => {
            let label = value.get("label")?.as_str()?.trim();
            let more = value
                .get("description")
                .and_then(Value::as_str)
                .map(str::trim)
                .filter(|more| !more.is_empty());
            Some(more.map_or_else(|| label.to_owned(), |more| format!("{label}, {more}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_block_at_the_end_is_a_question() {
        let rows = [
            (
                "```yaml\nquestion: red or blue?\noptions: [red, blue, 3, {label: none, description: as it is}]\n```",
                Some("red or blue? (1: red; 2: blue; 3: 3; 4: none, as it is)"),
            ),
            (
                "I looked.\n\n```yaml\nquestion: which one?\n```\n\n",
                Some("which one?"),
            ),
            (
                "```json\n{\"question\": \"which one?\", \"options\": []}\n```",
                Some("which one?"),
            ),
            (
                "~~~yaml\nquestion: |\n  Which\n  one?\n~~~",
                Some("Which\none?"),
            ),
            // Not at the end, or no question.
            ("```yaml\nquestion: which one?\n```\nI found out.", None),
            ("```yaml\nquestion: which one?\n```\n```sh\nls\n```", None),
            ("```yaml\nanswer: blue\n```", None),
            ("```yaml\nquestion: ''\n```", None),
            ("```yaml\nquestion: [\n```", None),
            ("question: which one?", None),
            ("```\n```", None),
            ("```", None),
            ("", None),
        ];
        for (text, question) in rows {
            assert_eq!(in_answer(text, None).as_deref(), question, "{text}");
        }
    }

    #[test]
    fn what_the_tool_was_to_ask_is_kept() {
        let both = json!({"questions": [
            {"question": "Red or blue?", "header": "Colour", "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
            {"question": "How many?", "multiSelect": false},
        ]});
        assert_eq!(
            of_tool(&both).as_deref(),
            Some("Red or blue? (1: Red, warm; 2: Blue)\nHow many?")
        );
        for odd in [
            json!({"questions": "?"}),
            json!({"questions": []}),
            json!({"questions": [{"question": 7}]}),
            json!(null),
        ] {
            assert_eq!(of_tool(&odd), None);
        }
    }
}
