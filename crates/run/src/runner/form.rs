//! The form of an answer, for a program that can enforce one. Turns such an answer into the text that other agents
//! give. Pure.

use serde_json::{Value, json};

use super::answer::longest_fence;

/// The kind of answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `verdict`, `summary` and `findings`, as in the block of an answer in words.
    Verdict,
    /// `plan`: the checklist, in Markdown.
    Plan,
}

impl Form {
    /// Returns its JSON schema: an object, since no provider takes a choice of several at the top.
    pub fn schema(self) -> Value {
        let text = |meaning: &str| json!({"type": "string", "description": meaning});
        let question = |where_not: &str| {
            text(&format!(
                "Your question for a person, in one line, {where_not}"
            ))
        };
        match self {
            Form::Verdict => object(
                &json!({
                    "verdict": {"enum": ["approve", "reject", "undecided"]},
                    "summary": text("In one line"),
                    "findings": {"type": "array", "items": object(&json!({
                            "severity": {"enum": ["blocker", "major", "minor", "nit"]},
                            "file": {"type": "string"},
                            "line": {"type": "integer"},
                            "text": text("The fault, and the correct behavior"),
                        }),
                        &["severity", "text"],
                    )},
                    "question": question("if the verdict is undecided"),
                }),
                &["verdict", "summary"],
            ),
            Form::Plan => object(
                &json!({
                    "plan": text("The whole plan: a Markdown checklist. Empty if you ask a person"),
                    "question": question("if there is no plan"),
                }),
                &["plan"],
            ),
        }
    }

    /// Returns the answer as the text of an agent without a form.
    pub fn words(self, answer: &Value) -> String {
        let text = |name: &str| answer[name].as_str().map(str::trim).unwrap_or_default();
        let (is_open, block) = match self {
            Form::Verdict => (
                text("verdict") == "undecided",
                format!("{}\n\n```json\n{answer:#}\n```", text("summary")),
            ),
            Form::Plan => {
                let plan = answer["plan"].as_str().unwrap_or_default().trim_end();
                // Some agents include the fence.
                let is_fenced = plan.trim_start().starts_with("```");
                let fence = "`".repeat(3.max(longest_fence(plan) + 1));
                let block = if is_fenced {
                    plan.to_owned()
                } else {
                    format!("{fence}markdown\n{plan}\n{fence}")
                };
                (plan.trim().is_empty(), block)
            }
        };
        match text("question") {
            question if is_open && !question.is_empty() => {
                format!(
                    "WAITING: {}",
                    question.lines().collect::<Vec<_>>().join(" ")
                )
            }
            _ => format!("{block}\n\nDONE"),
        }
    }
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Signal;
    use crate::runner::answer::final_block;
    use crate::runner::signal::without_signal;

    #[test]
    fn a_plan_is_said_in_a_fence_that_it_does_not_close() {
        let items = "- [ ] P-1: a\n  ````yaml task\n  done_when: [ls]\n  ````\n- [ ] P-2: b\n";
        for plan in [items.to_owned(), format!("`````markdown\n{items}`````")] {
            let said = Form::Plan.words(&json!({"plan": plan, "question": ""}));
            let plan = final_block(without_signal(&said), &["markdown"], None);
            assert_eq!(plan.as_deref(), Ok(items), "{said}");
            assert_eq!(Signal::read(&said, None), Signal::Done, "{said}");
        }
    }

    #[test]
    fn a_question_counts_where_nothing_was_decided() {
        let asked = Signal::Waiting("which one? this?".to_owned());
        let rows = [
            (
                Form::Plan,
                json!({"plan": "", "question": "which one?\nthis?"}),
                &asked,
            ),
            (
                Form::Verdict,
                json!({"verdict": "undecided", "summary": "?", "question": "which one?\nthis?"}),
                &asked,
            ),
            (
                Form::Verdict,
                json!({"verdict": "undecided", "summary": "?"}),
                &Signal::Done,
            ),
            (
                Form::Verdict,
                json!({"verdict": "approve", "summary": "", "question": "none"}),
                &Signal::Done,
            ),
            (
                Form::Plan,
                json!({"plan": "- [ ] P-1: a", "question": "none"}),
                &Signal::Done,
            ),
        ];
        for (form, answer, signal) in rows {
            assert_eq!(
                Signal::read(&form.words(&answer), None),
                *signal,
                "{answer}"
            );
        }
    }
}
