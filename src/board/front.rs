//! A queue's front matter: what holds for all of its items.
//!
//! Keys that are not Tavern's (Obsidian's `kanban-plugin`, a site generator's `title`) stay and are ignored.

use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use crate::board::metadata::{Key, broken_yaml, is_word, priority};
use crate::board::problem::Problem;
use crate::board::status::Consent;
use crate::near::nearest;

/// What an agent does when its queues have nothing for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyBehavior {
    /// Waits for a change, shows by its heartbeat that it lives, and looks after the work of agents that die.
    #[default]
    Idle,
    /// Waits for a change and does nothing else: no heartbeat, no wake-up.
    Hibernate,
    /// Ends.
    Terminate,
}

impl EmptyBehavior {
    pub fn as_str(self) -> &'static str {
        match self {
            EmptyBehavior::Idle => "idle",
            EmptyBehavior::Hibernate => "hibernate",
            EmptyBehavior::Terminate => "terminate",
        }
    }
}

impl FromStr for EmptyBehavior {
    type Err = ();

    fn from_str(text: &str) -> Result<EmptyBehavior, ()> {
        [EmptyBehavior::Idle, EmptyBehavior::Hibernate, EmptyBehavior::Terminate]
            .into_iter()
            .find(|behavior| behavior.as_str() == text)
            .ok_or(())
    }
}

/// A queue's front matter: its own settings, and the defaults of its items. Keys that are not here are the owner's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Front {
    pub id: Option<String>,
    pub name: Option<String>,
    /// `type:`, such as feature, bug or drone.
    pub kind: Option<String>,
    /// Of items that name none themselves.
    pub priority: Option<u8>,
    pub empty_behavior: Option<EmptyBehavior>,
    pub max_attempts: Option<u32>,
    pub runner: Option<String>,
    pub role: Option<String>,
    /// When a person is asked: before the `start`, before the `merge`; may be empty.
    pub approve: Vec<Consent>,
    /// Who reviews the work: roles, or `person`.
    pub review: Option<Vec<String>>,
    /// What it is to come to, for a planner.
    pub goal: Option<String>,
}

const KEYS: [&str; 11] =
    ["id", "name", "type", "priority", "empty_behavior", "max_attempts", "runner", "role", "approve", "review", "goal"];

/// The front matter at the head of `text` and where the rest begins. A byte order mark may come before it; without front
/// matter the rest begins at the first byte that is no such mark.
pub fn read(text: &str, problems: &mut Vec<Problem>) -> (Front, usize) {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    match find(text, start) {
        Found::None => (Front::default(), start),
        Found::Unclosed(span) => {
            problems.push(Problem::warning(
                "unclosed-front-matter",
                span,
                "front matter is opened by `---` here and never closed",
                "end it with a line `---`, or remove this one",
            ));
            (Front::default(), start)
        }
        Found::Block { content, body } => (typed(text, content, problems), body),
    }
}

enum Found {
    None,
    /// The opening line.
    Unclosed(Range<usize>),
    Block {
        content: Range<usize>,
        body: usize,
    },
}

fn find(text: &str, start: usize) -> Found {
    let rest = &text[start..];
    let Some(first) = rest.split_inclusive('\n').next().filter(|line| is_fence(line, "---")) else {
        return Found::None;
    };
    let content = start + first.len();
    let mut at = content;
    for line in text[content..].split_inclusive('\n') {
        if is_fence(line, "---") || is_fence(line, "...") {
            return Found::Block { content: content..at, body: at + line.len() };
        }
        at += line.len();
    }
    // A rule may stand at the head of a document; only what looks like a key makes it front matter.
    let next = text[content..].lines().next().unwrap_or("");
    let is_key = next.split_once(':').is_some_and(|(name, _)| KEYS.contains(&name));
    if is_key { Found::Unclosed(start..start + 3) } else { Found::None }
}

fn is_fence(line: &str, fence: &str) -> bool {
    line.strip_prefix(fence).is_some_and(|rest| rest.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')))
}

fn typed(text: &str, content: Range<usize>, problems: &mut Vec<Problem>) -> Front {
    let mut front = Front::default();
    let map = match serde_yaml::from_str::<Value>(&text[content.clone()]) {
        Ok(Value::Mapping(map)) => map,
        Ok(Value::Null) => return front,
        Ok(_) => {
            problems.push(Problem::error(
                "broken-front-matter",
                content.clone(),
                "the front matter is no list of `key: value` lines",
                "write lines such as `id: main`",
            ));
            return front;
        }
        Err(error) => {
            let broken = broken_yaml(text, content.clone(), &error);
            let end = broken.at + text[broken.at..].find(['\n', '\r']).unwrap_or(text.len() - broken.at);
            problems.push(Problem::error(
                "broken-front-matter",
                broken.at..end,
                format!("the front matter can't be read: {}", broken.message),
                "mend the YAML, or put texts with colons in double quotes; until then the defaults hold",
            ));
            return front;
        }
    };
    for (key, value) in &map {
        let Some(name) = key.as_str() else { continue };
        if value.is_null() {
            continue;
        }
        let word = || scalar(value).filter(|text| is_word(text));
        let good = match name {
            "id" => set(&mut front.id, word()),
            "name" => set(&mut front.name, scalar(value)),
            "goal" => set(&mut front.goal, scalar(value).filter(|goal| !goal.trim().is_empty())),
            "type" => set(&mut front.kind, scalar(value)),
            "priority" => {
                let number =
                    scalar(value).and_then(|text| priority(&text)).and_then(|number| u8::try_from(number).ok());
                set(&mut front.priority, number)
            }
            "empty_behavior" => set(&mut front.empty_behavior, scalar(value).and_then(|text| text.parse().ok())),
            "max_attempts" => set(&mut front.max_attempts, scalar(value).and_then(|text| text.parse().ok())),
            "runner" => set(&mut front.runner, word()),
            "role" => set(&mut front.role, word()),
            "review" => set(&mut front.review, words(value)),
            "approve" => {
                let moments = words(value).and_then(|words| Consent::read_all(words.iter().map(String::as_str)));
                moments.map(|moments| front.approve = moments).is_some()
            }
            _ => {
                if let Some(near) = nearest(name, KEYS) {
                    problems.push(Problem::warning(
                        "unknown-key",
                        key_span(text, content.clone(), name),
                        format!("unknown key `{name}`"),
                        format!("did you mean `{near}`?"),
                    ));
                }
                true
            }
        };
        if !good {
            problems.push(Problem::error(
                "wrong-type",
                key_span(text, content.clone(), name),
                format!("`{name}` of the queue can't be this"),
                expects(name),
            ));
        }
    }
    front
}

fn expects(name: &str) -> &'static str {
    match name {
        "priority" => "write 0 (most urgent) to 9, or critical, high, medium or low",
        "empty_behavior" => "write idle, hibernate or terminate",
        "max_attempts" => "write a whole number",
        "name" | "type" | "goal" => "write one text",
        "review" => Key::Review.expects(),
        "approve" => Key::Approve.expects(),
        _ => "write one word of letters, digits, `-`, `_` and `.`",
    }
}

/// Whether there was a value to set.
fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    *field = value;
    field.is_some()
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// A list of words, or words with commas.
fn words(value: &Value) -> Option<Vec<String>> {
    let words: Vec<String> = match value {
        Value::Sequence(list) => list.iter().map(scalar).collect::<Option<_>>()?,
        _ => scalar(value)?.split(',').map(|word| word.trim().to_owned()).collect(),
    };
    words.iter().all(|word| is_word(word)).then_some(words)
}

/// The line on which the key stands, from the key on.
fn key_span(text: &str, content: Range<usize>, name: &str) -> Range<usize> {
    let mut at = content.start;
    for line in text[content.clone()].split_inclusive('\n') {
        if line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':')) {
            return at..at + line.trim_end().len();
        }
        at += line.len();
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> (Front, usize, Vec<Problem>) {
        let mut problems = Vec::new();
        let (front, body) = read(text, &mut problems);
        (front, body, problems)
    }

    #[test]
    fn all_keys_are_read_and_others_ignored() {
        let text = "\u{feff}---\r\nid: main\r\nname: Main queue\r\ntype: feature\r\npriority: high\r\nempty_behavior: hibernate\r\n\
                    max_attempts: 3\r\nrunner: claude\r\nrole: coder\r\napprove: merge\r\nreview: [reviewer, person]\r\ngoal: a shop\r\nkanban-plugin: board\r\n--- \r\nrest";
        let (front, body, problems) = read_all(text);
        assert_eq!(
            front,
            Front {
                id: Some("main".into()),
                name: Some("Main queue".into()),
                kind: Some("feature".into()),
                priority: Some(1),
                empty_behavior: Some(EmptyBehavior::Hibernate),
                max_attempts: Some(3),
                runner: Some("claude".into()),
                role: Some("coder".into()),
                approve: vec![Consent::Merge],
                review: Some(vec!["reviewer".into(), "person".into()]),
                goal: Some("a shop".into()),
            }
        );
        assert_eq!(&text[body..], "rest");
        assert_eq!(problems, []);
    }

    #[test]
    fn what_is_wrong_is_said_and_the_rest_goes_on() {
        let rows = [
            ("---\nid: main\npriority: 12\n---\n", "wrong-type", "priority: 12", Some("main")),
            ("---\nid: main\nempty_behaviour: idle\n---\n", "unknown-key", "empty_behaviour: idle", Some("main")),
            ("---\nid: main\nname: a: b\n---\n", "broken-front-matter", "name: a: b", None),
            ("---\n- id\n---\n", "broken-front-matter", "- id\n", None),
            ("---\nid: main\n- [ ] a\n", "unclosed-front-matter", "---", None),
            ("---\nid: ../x\n---\n", "wrong-type", "id: ../x", None),
        ];
        for (text, code, at, id) in rows {
            let (front, _, problems) = read_all(text);
            assert_eq!(problems.len(), 1, "{text}");
            assert_eq!((problems[0].code, &text[problems[0].span.clone()]), (code, at), "{text}");
            assert_eq!(front.id.as_deref(), id, "{text}");
        }
    }

    #[test]
    fn a_rule_at_the_head_is_no_front_matter() {
        for text in ["---\n", "---\n- [ ] a\n", "---", "", "\u{feff}", "----\nid: x\n----\n", " ---\nid: x\n---\n"] {
            let (front, body, problems) = read_all(text);
            assert_eq!((front, problems), (Front::default(), vec![]), "{text:?}");
            assert!(body <= 3, "{text:?}");
        }
    }
}
