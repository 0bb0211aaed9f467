//! An item's keys: `(key: value, …)` on its title line and the fenced `yaml task` block, read and edited
//! without loss.
//!
//! Knows keys and their types, not lanes or lists. The common case is a scan of the bytes. The YAML parser is
//! used only for escapes, block scalars and anchors.

use std::borrow::Cow;
use std::ops::Range;

use crate::budget::Budget;
use crate::id::TaskId;
use crate::key::Shape;
use crate::lane::LaneKind;
use crate::period::Period;
use crate::status::{Consent, Expected, Mode, OnFailure, Status, Timestamp};
use crate::watch_rules::WatchSetting;

pub use crate::key::{Key, KeyUse, Owner};
pub use block::{BrokenYaml, TaskBlock, broken_yaml, read_block};
pub use code_span::{bare, legible};
pub use line::read_parenthesis;
pub use misplaced::{Misplaced, guards_in_words, misplaced_guards};
pub use parenthesis::{Unread, Why, find_parenthesis, find_parenthesis_below};
pub use spelling::{
    block_has, closed, flow, line_has, parenthesis_behind, set_in_block, set_in_line, title_line,
};
pub use value::{is_word, priority, read_field, takes};

mod block;
mod code_span;
mod line;
mod misplaced;
mod pairs;
mod parenthesis;
mod spelling;
mod value;

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'t> {
    Number(u32),
    Text(Cow<'t, str>),
    Texts(Vec<Cow<'t, str>>),
    Id(TaskId),
    /// IDs, and other names.
    Ids(Vec<TaskId>, Vec<Cow<'t, str>>),
    Budget(Budget),
    Flag(bool),
    Time(Timestamp),
    Period(Period),
    Status(Status),
    Moments(Vec<Consent>),
    Mode(Mode),
    OnFailure(OnFailure),
    Expected(Expected),
    Lanes(Vec<(String, LaneKind)>),
    Watch(WatchSetting),
}

/// The known keys of an item, each once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields<'t>(pub Vec<(Key, Field<'t>)>);

impl<'t> Fields<'t> {
    pub fn get(&self, key: Key) -> Option<&Field<'t>> {
        self.0
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, field)| field)
    }

    pub fn text(&self, key: Key) -> Option<String> {
        let Some(Field::Text(text)) = self.get(key) else {
            return None;
        };
        Some(text.clone().into_owned())
    }

    pub fn texts(&self, key: Key) -> Option<Vec<String>> {
        let Some(Field::Texts(texts)) = self.get(key) else {
            return None;
        };
        Some(texts.iter().map(|text| text.clone().into_owned()).collect())
    }

    pub fn number(&self, key: Key) -> Option<u32> {
        let Some(Field::Number(number)) = self.get(key) else {
            return None;
        };
        Some(*number)
    }

    pub fn flag(&self, key: Key) -> Option<bool> {
        let Some(Field::Flag(flag)) = self.get(key) else {
            return None;
        };
        Some(*flag)
    }

    pub fn period(&self, key: Key) -> Option<Period> {
        let Some(Field::Period(period)) = self.get(key) else {
            return None;
        };
        Some(*period)
    }

    pub fn watch(&self, key: Key) -> Option<&WatchSetting> {
        let Some(Field::Watch(setting)) = self.get(key) else {
            return None;
        };
        Some(setting)
    }

    pub fn time(&self, key: Key) -> Option<Timestamp> {
        let Some(Field::Time(time)) = self.get(key) else {
            return None;
        };
        Some(*time)
    }
}

/// A key as written in the document.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyEntry<'t> {
    pub name: &'t str,
    /// Offset of the name in the document.
    pub at: usize,
    pub value: Range<usize>,
    pub meaning: Meaning<'t>,
}

/// The meaning of an item's key to Tavern.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<'t> {
    Known(Key, Field<'t>),
    /// A known key with an empty or null value, as if it were absent.
    Absent(Key),
    /// A known key with a value of the wrong type.
    Wrong(Key),
    Unknown,
}

impl Meaning<'_> {
    /// One bit for each known key.
    pub(super) fn bit(&self) -> u64 {
        match self {
            Meaning::Known(key, _) | Meaning::Absent(key) | Meaning::Wrong(key) => 1 << *key as u32,
            Meaning::Unknown => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_yaml::Value;

    use super::block::{Lines, Style};
    use super::value::{Plain, list_of, plain_of, plain_of_yaml};
    use super::*;
    use crate::document::parse;
    use crate::watch_rules::Thresholds;

    #[test]
    fn the_last_parenthesis_is_metadata_only_if_it_reads_as_keys() {
        let rows: &[(&str, Option<&str>)] = &[
            ("a (priority: 1)", Some("(priority: 1)")),
            ("(priority: 1)", Some("(priority: 1)")),
            ("a (priority:1)  ", Some("(priority:1)")),
            ("a (x) (role: y)", Some("(role: y)")),
            ("a (role: y) (x)", None),
            ("a (role: y) b", None),
            ("a(role: y)", None),
            ("a (see: this)", None),
            ("a ()", None),
            ("a (role)", None),
            ("a )", None),
            ("a (role: y))", None),
            ("[x](role: y)", None),
            ("a (foo: b, role: y)", Some("(foo: b, role: y)")),
            ("a (model: see (this))", Some("(model: see (this))")),
            ("a (model: \"a) b\")", Some("(model: \"a) b\")")),
            ("a (model: 'it''s (not')", Some("(model: 'it''s (not')")),
            ("don't (model: don't)", Some("(model: don't)")),
            ("a (b (role: c)", Some("(role: c)")),
            ("a (role: b\" (c)", None),
            ("a (role: ä)", None),
            (
                "a (role: [ä, status: dead)",
                Some("(role: [ä, status: dead)"),
            ),
            ("a (after: T-1, T-2,)", Some("(after: T-1, T-2,)")),
            ("a (http://x, role: y)", None),
        ];
        for (line, expected) in rows {
            let found = find_parenthesis(line, Owner::State).unwrap_or(None);
            assert_eq!(found.map(|span| &line[span]), *expected, "{line}");
        }
        let unclosed = [
            "a (done_when: grep -q '(' f)",
            "a (done_when: grep -q ')' f)",
            "a (see: b, done_when: c) (done_when: see (x)",
        ];
        for line in unclosed {
            assert_eq!(
                find_parenthesis(line, Owner::State).map_err(|unread| &line[unread.name]),
                Err("done_when"),
                "{line}"
            );
        }
        let (_, problems) = parse("- [ ] T-1: a (done_when: grep -q '(' f)\n");
        let told =
            "`done_when` does not end with the line, so this parenthesis is part of the title";
        assert_eq!(
            problems
                .iter()
                .map(|problem| &*problem.message)
                .collect::<Vec<_>>(),
            [told]
        );
        for title in [
            "a (b) (see (x)",
            "a(role: (x)",
            "a (role: y) (x)",
            "a (role: y) f(see (x))",
        ] {
            assert_eq!(find_parenthesis(title, Owner::State), Ok(None), "{title}");
        }
        let near = "a (priorty: 1, foo: b)";
        assert_eq!(
            find_parenthesis(near, Owner::State).map_err(|unread| &near[unread.name]),
            Err("priorty")
        );
    }

    #[test]
    fn what_a_person_wrote_in_a_line_without_an_id_is_title_unless_it_is_a_key_of_theirs() {
        let title = [
            "Login fails (reason: token expired)",
            "Ask (agent: bob)",
            "Ask (question: may we?)",
            "Undo it (commit: abc1234)",
            "Go on (started: 2026-11-22)",
            "Settings (mode: protected, SSO)",
            "Tell them (Reason: it failed)",
            "Ask (question: may (we))",
            "Fix (answer: 42)",
            "Fix (answer: 42, question: which?)",
            "Migrate (started: 2026-11-22T10:00:00Z)",
        ];
        let keys = [
            "a (status: draft)",
            "a (not_before: 2026-11-22)",
            "a (approve: x)",
        ];
        for line in title {
            assert_eq!(find_parenthesis(line, Owner::Person), Ok(None), "{line}");
            // Behind an ID the answer alone is a key.
            let by_state = find_parenthesis(line, Owner::State);
            assert_eq!(by_state == Ok(None), !line.contains("answer"), "{line}");
        }
        for line in keys {
            assert!(
                matches!(find_parenthesis(line, Owner::Person), Ok(Some(_))),
                "{line}"
            );
        }
        for told in [
            "a (Priority: 1)",
            "Answer (status: urgent)",
            "Weigh (priority: very high)",
            "Fix (reason: unknown, priority: 1)",
            "Fix (priority: 1, see: a, commit: abc)",
            "Fix (question: which colour, priority: 1)",
            "Fix (priority: 1, answer: 42)",
        ] {
            assert!(find_parenthesis(told, Owner::Person).is_err(), "{told}");
        }
    }

    #[test]
    fn a_title_that_ends_as_keys_do_stays_title() {
        let (line, title) = ("Login fails (answer: token expired)", 35);
        let begun = set_in_line(line, title, "role", Some("coder"));
        assert_eq!(begun, format!("{line} (role: coder)"));
        let told = set_in_line(&begun, title, "answer", Some("blue"));
        assert_eq!(told, format!("{line} (role: coder, answer: blue)"));
        let back = set_in_line(&told, title, "role", None);
        assert_eq!(
            set_in_line(&back, title, "answer", None),
            format!("{line} (status: null)")
        );
    }

    fn read_line(inner: &str) -> Vec<(String, Meaning<'static>)> {
        let text: &'static str = String::leak(format!("({inner})"));
        let mut found = Vec::new();
        read_parenthesis(text, 0..text.len(), &mut |entry| {
            found.push((entry.name.to_owned(), entry.meaning));
        });
        found
    }

    #[test]
    fn values_have_types() {
        let text = |text: &'static str| Field::Text(text.into());
        let texts = |texts: &[&'static str]| {
            Field::Texts(texts.iter().map(|text| Cow::Borrowed(*text)).collect())
        };
        let ids = |ids: &[&str]| {
            Field::Ids(
                ids.iter().filter_map(|id| id.parse().ok()).collect(),
                Vec::new(),
            )
        };
        let rows: Vec<(&str, Option<Field<'static>>)> = vec![
            ("priority: 0", Some(Field::Number(0))),
            ("priority: Critical", Some(Field::Number(0))),
            ("priority: \"low\"", Some(Field::Number(3))),
            ("priority: 10", None),
            ("priority: -1", None),
            ("priority: [1]", None),
            ("after: T-1", Some(ids(&["T-1"]))),
            ("after: T-1, T-2", Some(ids(&["T-1", "T-2"]))),
            ("after: [T-1, 'T-2',]", Some(ids(&["T-1", "T-2"]))),
            ("after: []", Some(ids(&[]))),
            (
                "after: [T-1, Fix it]",
                Some(Field::Ids(
                    vec!["T-1".parse().expect("an ID")],
                    vec!["Fix it".into()],
                )),
            ),
            ("after: {T-1: T-2}", None),
            ("parent: T-1", "T-1".parse().ok().map(Field::Id)),
            ("role: code-reviewer_2.0", Some(text("code-reviewer_2.0"))),
            ("role: two words", None),
            ("role: a/b", None),
            ("tags: a, b c", Some(texts(&["a", "b c"]))),
            ("tags: [a, \"b, c\"]", Some(texts(&["a", "b, c"]))),
            (
                "touches: src/{a,b}/*.rs, *.md",
                Some(texts(&["src/{a,b}/*.rs", "*.md"])),
            ),
            (
                "done_when: cargo test, all of it",
                Some(texts(&["cargo test, all of it"])),
            ),
            (
                "done_when: [cargo test, cargo clippy]",
                Some(texts(&["cargo test", "cargo clippy"])),
            ),
            ("done_when: \"a\\0\"", None),
            ("done_when: [a, \"b\\u0000\"]", None),
            ("model: 0012e34", Some(text("0012e34"))),
            ("model: see #12, and more", Some(text("see #12, and more"))),
            ("model: \"tab\\there \\u00e4\"", Some(text("tab\there ä"))),
            ("model: 'it''s'", Some(text("it's"))),
            ("model: \"broken\" text", None),
            ("model: \"bad \\q escape\"", None),
            ("max_attempts: 3", Some(Field::Number(3))),
            ("max_attempts: 3.5", None),
            ("worktree: false", Some(Field::Flag(false))),
            ("worktree: maybe", None),
            ("result: answer", Some(Field::Expected(Expected::Answer))),
            ("result: change", Some(Field::Expected(Expected::Change))),
            ("result: maybe", None),
            (
                "not_before: 2026-11-22T10:00:00Z",
                Some(Field::Time(
                    "2026-11-22T10:00:00Z".parse().unwrap_or_default(),
                )),
            ),
            (
                "not_before: 2026-11-22T10:00:00.25+02:00",
                Some(Field::Time(
                    "2026-11-22T08:00:00.25Z".parse().unwrap_or_default(),
                )),
            ),
            ("not_before: 2026-02-30T10:00:00Z", None),
            ("not_before: 2026-11-31 10:00", None),
            ("not_before: 10:00", None),
            ("status: in_review", Some(Field::Status(Status::InReview))),
            ("status: In Review", None),
            (
                "budget: {usd: 1.5}",
                Some(Field::Budget(Budget {
                    usd: Some(1.5),
                    ..Budget::default()
                })),
            ),
            ("budget: {}", Some(Field::Budget(Budget::default()))),
            ("budget: {usd: -1}", None),
            ("budget: {usd: nan}", None),
            ("budget: {dollars: 1}", None),
            ("budget: 1", None),
            ("answer: {any: [thing]}", None),
            ("answer: red or blue?", Some(text("red or blue?"))),
            ("approve: start", Some(Field::Moments(vec![Consent::Start]))),
            (
                "approve: [start, merge]",
                Some(Field::Moments(Consent::ALL.to_vec())),
            ),
            ("approve: both", Some(Field::Moments(Consent::ALL.to_vec()))),
            ("approve: later", None),
            (
                "review: reviewer, person",
                Some(texts(&["reviewer", "person"])),
            ),
            ("lane: draft", Some(Field::Status(Status::Draft))),
            ("lane: completed", None),
            (
                "watch: false",
                Some(Field::Watch(WatchSetting::Flag(false))),
            ),
            (
                "watch: {stuck: 20m}",
                Thresholds::read([("stuck", "20m")])
                    .map(|set| Field::Watch(WatchSetting::Set(set))),
            ),
            ("watch: {stuck: soon}", None),
            ("watch: the video", None),
            ("on_failure: go_on", Some(Field::OnFailure(OnFailure::GoOn))),
        ];
        for (pair, expected) in rows {
            let name = pair.split(':').next().unwrap_or("");
            let key = Key::named(name).expect("the rows have known keys");
            let expected = expected.map_or(Meaning::Wrong(key), |field| Meaning::Known(key, field));
            assert_eq!(
                read_line(pair),
                [(name.to_owned(), expected.clone())],
                "{pair}"
            );
        }
        for empty in ["", "~", "null", "NULL"] {
            assert_eq!(
                read_line(&format!("role: {empty}")),
                [("role".to_owned(), Meaning::Absent(Key::Role))]
            );
        }
        for (mode, expected) in [
            ("break_up", Some(Field::Mode(Mode::BreakUp))),
            ("idle", None),
        ] {
            assert_eq!(read_field(Shape::Mode, &mode.into()), expected, "{mode}");
            // A key kept apart from the text is no key of a text.
            let name = Key::Mode.as_str().to_owned();
            assert_eq!(
                read_line(&format!("{name}: {mode}")),
                [(name, Meaning::Unknown)]
            );
        }
    }

    /// In more than one pass they would take minutes.
    #[test]
    fn long_texts_are_read_in_one_pass() {
        let (many, blanks) = (40_000, " ".repeat(400_000));
        let list = format!("[{}{blanks}]", "a, ".repeat(many));
        assert!(matches!(plain_of(&list), Some(Plain::Many(parts)) if parts.len() == many));
        let boxes = format!("- [ ] T-1: a {}{blanks}\n", "[ ]".repeat(many));
        let (document, _) = parse(&boxes);
        assert_eq!(document.items().len(), 1);
        let waits = format!("- [ ] x\n- [ ] a {}\n", "(depends on x ".repeat(10 * many));
        assert!(!parse(&waits).0.items()[1].quarantined);
        let many = 5_000;
        let quoted: String = (0..many)
            .map(|number| format!("\"k{number:05}\": 1\n"))
            .collect();
        let block = TaskBlock {
            fences: 0..quoted.len(),
            content: 0..quoted.len(),
            column: 0,
        };
        let mut found = 0;
        read_block(&quoted, &block, &mut |entry| {
            found += usize::from(entry.at == found * 12 + 1);
        })
        .expect("it is YAML");
        assert_eq!(found, many);
    }

    #[test]
    fn one_key_of_a_title_line_changes() {
        let rows = [
            ("a", "role", Some("x"), "a (role: x)"),
            ("", "role", Some("x"), "(role: x)"),
            ("a (b)", "role", Some("x"), "a (b) (role: x)"),
            (
                "a (priority:  '1' ,b: c)",
                "role",
                Some("x"),
                "a (priority:  '1' ,b: c, role: x)",
            ),
            ("a (priority: 1)", "priority", Some("2"), "a (priority: 2)"),
            (
                "a (priority:1,role:  x)",
                "priority",
                Some("2"),
                "a (priority: 2,role:  x)",
            ),
            (
                "a (after: T-1, T-2, role: x)",
                "after",
                Some("[T-3]"),
                "a (after: [T-3], role: x)",
            ),
            (
                "a (role: , tags: x)",
                "role",
                Some("y"),
                "a (role: y, tags: x)",
            ),
            ("a (priority: 1)", "priority", None, "a"),
            ("a (priority: 1, role: x)", "priority", None, "a (role: x)"),
            ("a (priority: 1, role: x)", "role", None, "a (priority: 1)"),
            (
                "a (tags: y, priority: 1, role: x)",
                "priority",
                None,
                "a (tags: y, role: x)",
            ),
            ("a", "priority", None, "a"),
            ("a (role: x)", "priority", None, "a (role: x)"),
            // A key that would be read as part of the last value goes before it.
            (
                "a (done_when: grep -q '{' f)",
                "role",
                Some("x"),
                "a (role: x, done_when: grep -q '{' f)",
            ),
            (
                "a ( role: y, model: see [x)",
                "status",
                Some("dead"),
                "a (status: dead, role: y, model: see [x)",
            ),
            (
                "a (model: \"see)",
                "answer",
                Some("\"x, y\""),
                "a (answer: \"x, y\", model: \"see)",
            ),
            (
                "a (\"b",
                "answer",
                Some("\"c, d\""),
                "a (\"b (answer: \"c, d\")",
            ),
            // If the rest would read differently, the key is kept as null.
            (
                "a (foo: b, role: x)",
                "role",
                None,
                "a (foo: b, role: null)",
            ),
            (
                "a (role: x) (tags: y)",
                "tags",
                None,
                "a (role: x) (status: null)",
            ),
        ];
        for (line, key, value, expected) in rows {
            assert_eq!(
                set_in_line(line, 0, key, value),
                expected,
                "{line} {key} {value:?}"
            );
            if value.is_some() {
                assert!(line_has(expected, 0, key), "{expected}");
            }
        }
    }

    #[test]
    fn one_key_of_a_task_block_changes() {
        let block = "  # head\n  role: x   # why\n\n  done_when:\n    - a\n    # mid\n    - b\n  budget: {usd: 1}\n";
        let rows = [
            (
                "role",
                Some("y"),
                "  # head\n  role: y   # why\n\n  done_when:\n    - a\n    # mid\n    - b\n  budget: {usd: 1}\n",
            ),
            (
                "role",
                None,
                "  # head\n\n  done_when:\n    - a\n    # mid\n    - b\n  budget: {usd: 1}\n",
            ),
            (
                "done_when",
                Some("[c]"),
                "  # head\n  role: x   # why\n\n  done_when: [c]\n  budget: {usd: 1}\n",
            ),
            (
                "done_when",
                None,
                "  # head\n  role: x   # why\n\n  budget: {usd: 1}\n",
            ),
            (
                "budget",
                Some("{usd: 2}"),
                "  # head\n  role: x   # why\n\n  done_when:\n    - a\n    # mid\n    - b\n  budget: {usd: 2}\n",
            ),
        ];
        for (key, value, expected) in rows {
            assert_eq!(
                set_in_block(block, key, value).as_deref(),
                Some(expected),
                "{key} {value:?}"
            );
            let crlf = block.replace('\n', "\r\n");
            assert_eq!(
                set_in_block(&crlf, key, value),
                Some(expected.replace('\n', "\r\n")),
                "{key} {value:?}"
            );
        }
        assert_eq!(set_in_block(block, "tags", Some("[x]")), None);
        let odd = "model: |\n  a\n  b\nrole:\n";
        assert_eq!(
            set_in_block(odd, "model", Some("c")).as_deref(),
            Some("model: c\nrole:\n")
        );
        assert_eq!(
            set_in_block(odd, "role", Some("c")).as_deref(),
            Some("model: |\n  a\n  b\nrole: c\n")
        );
        assert_eq!(
            set_in_block("role: # why\n", "role", Some("c")).as_deref(),
            Some("role: c # why\n")
        );
        assert_eq!(set_in_block("role: x", "role", None).as_deref(), Some(""));
        // Lines that only the YAML parser knows are no part of the key above them.
        for own in [
            "jira.ticket: X\n",
            "\"done_when\": a\n",
            "role : coder\n",
            "my key:\n  - v\n",
        ] {
            let text = |above: &str| format!("{above}{own}tags: [x]\n");
            assert_eq!(
                set_in_block(&text("model: a\n"), "model", None),
                Some(text(""))
            );
            assert_eq!(
                set_in_block(&text("model:\n  - a\n"), "model", Some("b")),
                Some(text("model: b\n"))
            );
        }
        // These are.
        for value in [
            "[a, (b,\n'c]',\nd e]",
            "{a: [b],\nc d: e}",
            "\"a\nb c\"",
            "'it''s\nb'",
            "\n-\n  a\n- b",
        ] {
            let text = |above: &str| format!("{above}my key: v\nrole: x\n");
            assert_eq!(
                set_in_block(&text(&format!("tags: {value}\n")), "tags", None),
                Some(text("")),
                "{value}"
            );
        }
    }

    #[test]
    fn written_values_are_yaml_for_every_reader() {
        let odd = " ,:-#[]{}'\"|>%@`()\\&!*?~=\n\t\0\u{85}\u{2028}\u{feff}\u{ffff}é😀".chars();
        let around = odd.flat_map(|c| {
            [
                format!("{c}"),
                format!("{c}a"),
                format!("{c} a"),
                format!("a{c}"),
                format!("a {c}b"),
            ]
        });
        let words = [
            "plain",
            "two words",
            "",
            "true",
            "no",
            "12",
            "1e3",
            "0x1f",
            "null",
            "2026-11-22T10:00:00Z",
            "::",
            "a:?b",
        ];
        for text in around.chain(words.map(str::to_owned)) {
            let text = text.as_str();
            let written = flow(&Value::from(text));
            assert_eq!(
                crate::yaml::read::<Value>(&written).ok(),
                Some(Value::from(text)),
                "{written}"
            );
            assert!(!written.contains(['\n', '\r']), "{written}");
            let in_list = flow(&Value::from(vec![text, text]));
            assert_eq!(
                crate::yaml::read::<Value>(&in_list).ok(),
                Some(Value::from(vec![text, text])),
                "{in_list}"
            );
        }
        let value: Value =
            crate::yaml::read("{a: [1, 2.5, true, null], b: {c: 'x, y'}}").unwrap_or_default();
        assert_eq!(flow(&value), "{a: [1, 2.5, true, null], b: {c: \"x, y\"}}");
    }

    /// The scan and the YAML parser must agree on ordinary text.
    #[test]
    fn the_scan_agrees_with_the_yaml_parser() {
        use proptest::prelude::{ProptestConfig, Strategy, prop_oneof};
        let value = prop_oneof![
            "[ -~]{0,12}",
            "[a-z:#,'\"\\[\\]{}\\\\ *&!|>@%?-]{0,10}",
            "\\[[a-z, '\"]{0,10}\\]",
            "\\{[a-c: ,]{0,10}\\}",
            "(\n  - [a-z:# '\"]{1,6}){1,3}",
            "(\n- [a-z:# '\"]{1,6}){1,3}",
        ];
        let lines = proptest::collection::vec(
            ("[abc]", "[:] ?", value)
                .prop_map(|(key, colon, value)| format!("{key}{colon}{value}")),
            1..4,
        );
        proptest::test_runner::TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })
        .run(&lines, |lines| {
            agrees(&lines.join("\n")).map_err(proptest::test_runner::TestCaseError::fail)
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    }

    #[test]
    fn what_yaml_reads_otherwise_is_left_to_its_parser() {
        let rows = [
            "a: {a: :a}",
            "a: [:a]",
            "a: [a:]",
            "a: {a: a:}",
            "a: [?a]",
            "a: [-]",
            "a: [a:b]",
            "a: \"\\>\"",
            "a: [\"\\,\"]",
        ];
        for text in rows {
            assert_eq!(agrees(text), Ok(()));
        }
    }

    /// Checks that the scan reads `text` as the parser does, if the scan considers it ordinary.
    fn agrees(text: &str) -> Result<(), String> {
        let scanned = Lines::of(text, 0..text.len());
        let names: Vec<&str> = scanned
            .pairs
            .iter()
            .map(|pair| &text[pair.name.clone()])
            .collect();
        let twice = names
            .iter()
            .any(|name| names.iter().filter(|other| *other == name).count() > 1);
        if !scanned.is_ordinary || twice {
            return Ok(());
        }
        let parsed: Value =
            crate::yaml::read(text).map_err(|error| format!("{error} in {text:?}"))?;
        for pair in &scanned.pairs {
            let raw = &text[pair.value.clone()];
            let read = if pair.style == Style::List {
                list_of(raw)
            } else {
                plain_of(raw)
            };
            let expected = parsed.get(&text[pair.name.clone()]).and_then(plain_of_yaml);
            let (read, expected) = (texts_of(read), texts_of(expected));
            if read != expected {
                return Err(format!("{read:?} is not {expected:?} in {text:?}"));
            }
        }
        Ok(())
    }

    /// Numbers and flags as they would be written in lower case, since YAML gives back their values only.
    fn texts_of(plain: Option<Plain<'_>>) -> Vec<String> {
        let text = |text: Cow<'_, str>| match crate::yaml::read::<Value>(&text) {
            Ok(Value::Number(number)) => number.to_string(),
            Ok(Value::Bool(flag)) => flag.to_string(),
            _ => text.into_owned(),
        };
        match plain {
            None => vec!["wrong".to_owned()],
            Some(Plain::Null) => vec!["null".to_owned()],
            Some(Plain::One(one)) => vec![text(one)],
            Some(Plain::Many(many)) => many.into_iter().map(text).collect(),
            Some(Plain::Map(map)) => map
                .into_iter()
                .flat_map(|(key, value)| [text(key), text(value)])
                .collect(),
        }
    }
}
