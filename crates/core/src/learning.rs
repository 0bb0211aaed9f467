//! A learning: front matter, and text below it. Knows no file and no prompt.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::front::fenced;
use super::markup::newline;
use super::metadata::broken_yaml;
use super::period::Period;
use super::problem::Problem;
use super::status::words;
use super::task::{Task, TaskId, Timestamp};
use super::text::{Edit, apply};
use super::touches;
use crate::yaml;

words! {
    /// The kind of a learning.
    LearningKind {
        /// How to do something.
        Learning "learning",
        /// A decision and its reason.
        Decision "decision",
        /// A fact.
        Fact "fact",
        /// A preference of people here.
        Preference "preference",
        /// The cause of an error, and its fix.
        ErrorResolution "error_resolution",
    }
}

/// Default time for which a learning is used.
pub const LIFETIME: Period = Period::minutes(30 * 24 * 60);

/// Maximum length of a learning's name in bytes.
const MOST_NAME: usize = 64;

/// A learning, as in its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learning {
    pub kind: LearningKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Paths and globs that it concerns, as in `touches`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// The author.
    pub by: String,
    /// The item that the finder worked on, and that item's parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The run that it comes from; `None`: a person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The run's last commit by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub created: Timestamp,
    /// `None`: it never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The learning that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The text.
    #[serde(skip)]
    pub text: String,
}

impl Learning {
    /// Returns true if it is neither expired nor superseded.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.superseded_by.is_none() && self.expires.is_none_or(|expires| now < expires)
    }

    /// Returns true if it is relevant for `task`. It shares a tag or a path, or comes from the item itself,
    /// its parent, a child, or another child of that parent.
    pub fn concerns(&self, task: &Task) -> bool {
        let is_near = |source: &TaskId| *source == task.id || Some(source) == task.parent.as_ref();
        self.tags.iter().any(|tag| task.tags.contains(tag))
            || touches::shared(&self.scope, &task.touches).is_some()
            || [&self.task, &self.parent]
                .into_iter()
                .flatten()
                .any(is_near)
    }

    /// Returns the author, and whether it is an agent.
    pub fn source(&self) -> String {
        let agent = if self.run.is_some() { ", an agent" } else { "" };
        format!("{}{agent}", self.by)
    }

    /// Returns the file's text.
    pub fn render(&self) -> String {
        let front = serde_yaml::to_string(self).expect("a learning is plain data");
        format!("---\n{front}---\n\n{}\n", self.text)
    }
}

/// Returns when a learning created at `created` expires. A lifetime of zero means never.
pub fn expiry(created: Timestamp, lifetime: Period) -> Option<Timestamp> {
    let lifetime = Some(lifetime.duration()).filter(|lifetime| !lifetime.is_zero())?;
    created.checked_add_signed(chrono::TimeDelta::from_std(lifetime).ok()?)
}

/// Returns true if the name is valid as a file name and as a mark in a prompt.
pub fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.len() <= MOST_NAME && name.bytes().all(is_plain)
}

/// Parses the text of a file.
///
/// # Errors
/// Returns the problem and its place.
pub fn parse(text: &str) -> Result<Learning, Problem> {
    const CODE: &str = "broken-learning";
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
            let hint = "choose the lines to keep, and remove the marks";
            return Err(Problem::error(
                "conflict-markers",
                start..start + 7,
                "two versions were left unmerged",
                hint,
            ));
        }
        start += line.len();
    }
    let first = text.find('\n').unwrap_or(text.len());
    let Some((front, rest)) = front(text) else {
        let hint = "begin with `---`, `kind: fact`, `by: NAME`, `created: 2026-01-31T12:00:00Z` and `---`, a line each";
        return Err(Problem::error(
            CODE,
            0..first,
            "a learning begins with front matter",
            hint,
        ));
    };
    let mut learning: Learning = match yaml::read(&text[front.clone()]) {
        Ok(learning) => learning,
        Err(error) => {
            let broken = broken_yaml(text, front.clone(), &error);
            let end = broken.at + text[broken.at..].find('\n').unwrap_or(0);
            let message = format!("the front matter can't be read: {}", broken.message);
            return Err(Problem::error(
                CODE,
                broken.at..end,
                message,
                "correct the line, or remove it",
            ));
        }
    };
    learning.text = text[rest..].trim().replace("\r\n", "\n");
    if learning.text.is_empty() {
        return Err(Problem::error(
            CODE,
            0..first,
            "a learning has no text",
            "write below its front matter",
        ));
    }
    Ok(learning)
}

/// Returns `text` with this value of `key` in its front matter; all other lines stay.
pub fn with_key(text: &str, key: &str, value: &str) -> String {
    let Some((front, _)) = front(text) else {
        return text.to_owned();
    };
    let (mut at, line_end) = (front.start, newline(text));
    for line in text[front.clone()].split_inclusive('\n') {
        if line
            .strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(':'))
        {
            return apply(
                text,
                &[Edit::replace(
                    at..at + line.len(),
                    format!("{key}: {value}{line_end}"),
                )],
            );
        }
        at += line.len();
    }
    apply(
        text,
        &[Edit::insert(front.end, format!("{key}: {value}{line_end}"))],
    )
}

/// Returns the front matter's range, and where the text begins.
fn front(text: &str) -> Option<(Range<usize>, usize)> {
    fenced(text).and_then(|(front, rest)| Some((front, rest?)))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn learning() -> Learning {
        let (task, parent) = (
            Some("T-1.2".parse().expect("an ID")),
            Some("T-1".parse().expect("an ID")),
        );
        let created = Timestamp::default();
        Learning {
            kind: LearningKind::Fact,
            tags: vec!["api".into(), "a: b".into()],
            scope: vec!["src/api".into()],
            by: "Sam".into(),
            task,
            parent,
            run: Some("T-1.2@3".into()),
            commit: None,
            created,
            expires: expiry(created, Period::minutes(1)),
            superseded_by: None,
            text: "It needs a slash.\n\n---\n\nAlways.".into(),
        }
    }

    #[test]
    fn it_reads_back_and_a_key_changes_one_line() {
        let (learning, text) = (learning(), learning().render());
        assert_eq!(parse(&text).as_ref(), Ok(&learning));
        let superseded = with_key(
            &with_key(&text, "superseded_by", "L-2"),
            "superseded_by",
            "L-3",
        );
        assert_eq!(superseded.replace("superseded_by: L-3\n", ""), text);
        let read = parse(&superseded).expect("it is whole");
        assert_eq!(read.superseded_by.as_deref(), Some("L-3"));
        assert!(!read.is_valid(learning.created) && learning.is_valid(learning.created));
        assert!(
            !learning.is_valid(learning.created + TimeDelta::minutes(1)),
            "it has expired"
        );
        assert_eq!(expiry(learning.created, Period::default()), None);
    }

    #[test]
    fn it_reads_however_an_editor_saves_it_and_keeps_its_line_ends() {
        let (learning, text) = (learning(), learning().render());
        let dots = text.replacen("\n---\n\nIt", "\n...\nIt", 1);
        for text in [format!("\u{feff}{text}"), text.replace('\n', "\r\n"), dots] {
            assert_eq!(parse(&text).as_ref(), Ok(&learning), "{text:?}");
            for (key, lines) in [("superseded_by", 1), ("expires", 0)] {
                let changed = with_key(&text, key, "2026-01-31T12:00:00Z");
                let count = |text: &str| [text.matches('\n').count(), text.matches("\r\n").count()];
                let more = if text.contains('\r') { lines } else { 0 };
                assert_eq!(
                    count(&changed),
                    [count(&text)[0] + lines, count(&text)[1] + more],
                    "{changed:?}"
                );
                assert!(
                    parse(&changed).is_ok_and(|read| read != learning),
                    "{changed:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_broken_is_told_with_its_place() {
        let whole = learning().render();
        for (text, place) in [
            (whole.replace("kind: fact", "kind: rumour"), "kind"),
            (whole.replace("by: Sam", "by: [Sam"), ""),
            (whole.replace("by: Sam", "who: Sam"), "who"),
            (
                whole.replace("It needs", "<<<<<<< HEAD\nIt needs"),
                "<<<<<<<",
            ),
            ("It needs a slash.\n".to_owned(), "It needs"),
            (
                "---\nkind: fact\nby: Sam\ncreated: 2026-01-31T12:00:00Z\n---\n\n".to_owned(),
                "---",
            ),
        ] {
            let problem = parse(&text).expect_err(&text);
            assert!(
                text[problem.span.start..].starts_with(place),
                "{problem:?} in {text}"
            );
        }
    }

    #[test]
    fn it_concerns_what_shares_a_tag_a_path_or_a_family() {
        let task = |id: &str, parent: &str, tags: &[&str], touches: &[&str]| {
            let mut task = Task::new(id.parse().expect("an ID"), "x");
            task.parent = parent.parse().ok();
            task.tags = tags.iter().map(ToString::to_string).collect();
            task.touches = touches.iter().map(ToString::to_string).collect();
            task
        };
        for (task, expected) in [
            (task("T-9", "", &["api"], &[]), true),
            (task("T-9", "", &[], &["src/**/*.rs"]), true),
            (task("T-1.2", "T-1", &[], &[]), true),
            (task("T-1.3", "T-1", &[], &[]), true),
            (task("T-1", "", &[], &[]), true),
            (task("T-1.2.1", "T-1.2", &[], &[]), true),
            (task("T-9", "T-8", &["ui"], &["src/ui"]), false),
        ] {
            assert_eq!(learning().concerns(&task), expected, "{task:?}");
        }
    }
}
