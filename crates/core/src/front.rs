//! A queue's front matter: settings for all of its items.
//!
//! Keys that are not Tavern's (Obsidian's `kanban-plugin`, a site generator's `title`) stay and are ignored.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use serde::Serialize;
use serde_yaml::Value;

use crate::key::{Key, Owner, Shape};
use crate::lane::LaneKind;
use crate::markup;
use crate::metadata::{Field, broken_yaml, is_word, read_field};
use crate::period::Period;
use crate::problem::{Problem, Severity};
use crate::status::{Consent, Expected, words};
use crate::suggestion::{mistyped, nearest};
use crate::watch_rules::WatchSetting;
use crate::yaml;

words! {
    /// An agent's behavior when its queues have no item for it.
    #[derive(Default)]
    EmptyBehavior {
        /// Waits for a change, renews its heartbeat, and cleans up after agents that die.
        #[default]
        Idle "idle",
        /// Waits for a change and does nothing else: no heartbeat, no wake-up.
        Hibernate "hibernate",
        /// Exits.
        Terminate "terminate",
    }
}

/// A queue's front matter: its own settings, and the defaults of its items. Other keys are the owner's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Front {
    pub id: Option<String>,
    pub name: Option<String>,
    /// `type:`, such as feature, bug or drone.
    pub kind: Option<String>,
    /// Its priority among queues: agents without a list of queues take from 0 first; `None`: [`DEFAULT_PRIORITY`].
    pub priority: Option<u8>,
    pub empty_behavior: Option<EmptyBehavior>,
    pub max_attempts: Option<u32>,
    /// Default for its items.
    pub max_wait: Option<Period>,
    pub runner: Option<String>,
    pub role: Option<String>,
    /// When a person has to approve: before the `start`, before the `merge`; may be empty.
    pub approve: Vec<Consent>,
    /// Default reviewers: roles, or `person`.
    pub review: Option<Vec<String>>,
    /// Default for its items.
    pub result: Option<Expected>,
    /// Watch settings for runs of its items.
    pub watch: Option<WatchSetting>,
    /// Its goal, for a planner.
    pub goal: Option<String>,
    /// Whether items move between its lanes at each transition. The default of a board of Obsidian's Kanban.
    pub live: bool,
    /// The owner's own headings, with their lanes.
    #[serde(skip)]
    pub lanes: Vec<(String, LaneKind)>,
    /// Whether it has an error: settings of its items are then unknown, and none is claimed.
    #[serde(skip)]
    pub is_broken: bool,
    /// The key that makes headings lanes: the first that only Tavern has, or that of Obsidian's Kanban. Where
    /// all keys are Tavern's, any of them.
    #[serde(skip)]
    pub board_key: Option<String>,
    /// Whether it has the key of Obsidian's Kanban: each heading is then a column.
    #[serde(skip)]
    pub is_kanban: bool,
}

/// Default priority of queues and items.
pub const DEFAULT_PRIORITY: u8 = 2;

const KEYS: [(&str, Shape); 16] = [
    ("id", Shape::Text),
    ("name", Shape::Text),
    ("type", Shape::Text),
    ("priority", Shape::Priority),
    ("empty_behavior", Shape::Word),
    ("max_attempts", Shape::Count),
    ("max_wait", Shape::Period),
    ("runner", Shape::Word),
    ("role", Shape::Word),
    ("approve", Shape::Moments),
    ("review", Shape::Words),
    ("result", Shape::Expected),
    ("watch", Shape::Watch),
    ("goal", Shape::Text),
    ("live", Shape::Flag),
    (LANES, Shape::Lanes),
];

/// The first of these keys are used by other programs, too: alone they make no board, and any value is fine.
const OF_OTHERS: usize = 4;

const LANES: &str = "lanes";

const TOML: &str = "+++";

/// Maximum bytes of front matter, as it is read for each item of the queue.
const MOST: usize = 16 << 10;

const KANBAN: &str = "kanban-plugin";

/// Returns the front matter at the head of `text`, and where the rest begins. A byte order mark may come
/// before it. Without front matter the rest begins behind such a mark.
pub fn read(text: &str, problems: &mut Vec<Problem>) -> (Front, usize) {
    let start = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let Some((content, rest)) = fenced(text) else {
        return (Front::default(), start + toml(&text[start..]));
    };
    if let Some(rest) = rest
        && let Some(front) = typed(text, content.clone(), problems)
    {
        let is_broken = problems
            .iter()
            .any(|problem| problem.severity == Severity::Error);
        return (Front { is_broken, ..front }, rest);
    }
    // A document may begin with a rule; it is front matter only with a key.
    let next = text[content.start..].lines().next().unwrap_or("");
    if next.split_once(':').is_some_and(|(name, _)| is_key(name)) {
        problems.push(Problem::warning(
            "unclosed-front-matter",
            start..start + 3,
            "front matter is opened by `---` here and never closed",
            "end it with a line `---`, or remove this one",
        ));
    }
    (Front::default(), start)
}

/// Returns the range between the fences at the head of `text`, behind a byte order mark, and where the rest
/// begins, if closed.
pub(super) fn fenced(text: &str) -> Option<(Range<usize>, Option<usize>)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines
        .next()
        .filter(|line| is_fence(line.strip_prefix('\u{feff}').unwrap_or(line), "---"))?;
    let mut at = first.len();
    for line in lines {
        if is_fence(line, "---") || is_fence(line, "...") {
            return Some((first.len()..at, Some(at + line.len())));
        }
        at += line.len();
    }
    Some((first.len()..at, None))
}

/// Returns the end of TOML front matter between `+++` lines (as in Hugo), which belongs to another program; 0
/// if there is none.
fn toml(text: &str) -> usize {
    let begins = |line: &str| {
        let is_key = |(key, _): (&str, &str)| is_word(key.trim_end());
        line.split_once('=').is_some_and(is_key)
            || line.starts_with('[') && line.trim_end().ends_with(']')
    };
    let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line))
    });
    let is_open = lines.next().is_some_and(|(_, line)| is_fence(line, TOML));
    let is_words = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let mut rest = lines.skip_while(|(_, line)| !is_words(line)).peekable();
    let is_toml = is_open && rest.peek().is_some_and(|(_, line)| begins(line));
    let end = if is_toml {
        rest.find(|(_, line)| is_fence(line, TOML))
    } else {
        None
    };
    end.map_or(0, |(end, _)| end)
}

fn is_fence(line: &str, fence: &str) -> bool {
    line.strip_prefix(fence).is_some_and(|rest| {
        rest.bytes()
            .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
    })
}

/// Returns `None` for text between two rules: it has boxes outside of the values of a mapping, and no key of
/// Tavern's. An unreadable mapping is recognized by its first line, with all boxes further in.
fn typed(text: &str, content: Range<usize>, problems: &mut Vec<Problem>) -> Option<Front> {
    let spans = LazyCell::new(|| key_spans(text, content.clone()));
    if content.len() > MOST {
        return too_long(text, content.clone(), &spans, problems);
    }
    let read = yaml::read::<Value>(&text[content.clone()]);
    let names: Vec<&str> = match &read {
        Ok(Value::Mapping(map)) => map.keys().filter_map(Value::as_str).collect(),
        _ => spans.keys().map(String::as_str).collect(),
    };
    let is_ours = |name: &&str| KEYS[OF_OTHERS..].iter().any(|(key, _)| key == name);
    let own = names.iter().find(|name| is_ours(name));
    let of_queues = own.is_some();
    let own = own.or(names
        .first()
        .filter(|_| names.iter().all(|name| is_key(name))));
    let is_own = own.is_some();
    let is_kanban = names.contains(&KANBAN);
    // A value of a mapping may be a text with boxes.
    let has_boxes = match &read {
        Ok(Value::Mapping(_)) => names.iter().any(|name| markup::has_box(name)),
        _ => {
            let mut lines = text[content.clone()]
                .lines()
                .filter(|line| !line.trim().is_empty());
            let is_pair = |(key, value): (&str, &str)| is_word(key) && !value.trim().is_empty();
            let is_mapping = lines
                .clone()
                .next()
                .and_then(|line| line.split_once(": "))
                .is_some_and(is_pair);
            lines
                .any(|line| markup::has_box(line) && !(is_mapping && line.starts_with([' ', '\t'])))
        }
    };
    if !is_own && !is_kanban && has_boxes {
        return None;
    }
    let board_key = own
        .copied()
        .or(is_kanban.then_some(KANBAN))
        .map(str::to_owned);
    let mut front = Front {
        board_key,
        is_kanban,
        live: is_kanban,
        ..Front::default()
    };
    let map = match read {
        Ok(Value::Mapping(map)) => map,
        // It belongs to another program or a person, in any form.
        _ if !is_own => return Some(front),
        Ok(_) => {
            problems.push(Problem::error(
                "broken-front-matter",
                content.clone(),
                "the front matter is not a list of `key: value` lines",
                "write lines such as `id: main`",
            ));
            return Some(front);
        }
        Err(error) => {
            let broken = broken_yaml(text, content.clone(), &error);
            let end = broken.at
                + text[broken.at..]
                    .find(['\n', '\r'])
                    .unwrap_or(text.len() - broken.at);
            problems.push(Problem::error(
                "broken-front-matter",
                broken.at..end,
                format!("the front matter can't be read: {}", broken.message),
                "fix the YAML, or put texts with colons in double quotes",
            ));
            return Some(front);
        }
    };
    for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        let Some(name) = key.as_str() else { continue };
        let span = || spans.get(name).cloned().unwrap_or_else(|| content.clone());
        match KEYS.iter().find(|(key, _)| *key == name) {
            Some((_, shape)) if !front.set(name, read_field(*shape, value)) && is_own => {
                let expects = if name == "empty_behavior" {
                    "write idle, hibernate or terminate"
                } else {
                    shape.expects()
                };
                let message = format!("invalid value for the queue's `{name}`");
                // If other programs use all of these keys, it may be theirs.
                let make = if of_queues {
                    Problem::error
                } else {
                    Problem::warning
                };
                problems.push(make("wrong-type", span(), message, expects));
            }
            Some(_) => {}
            None => {
                if let Some(severity) = of_items(name) {
                    let message = format!("`{name}` is a key of items, and has no effect here");
                    let hint = "set it on each of the items";
                    problems.push(Problem {
                        severity,
                        ..Problem::error("unknown-key", span(), message, hint)
                    });
                } else if let Some(near) = nearest(name, KEYS.map(|(key, _)| key)) {
                    let (message, hint) = (
                        format!("unknown key `{name}`"),
                        format!("did you mean `{near}`?"),
                    );
                    if mistyped(name, KEYS[OF_OTHERS..].iter().map(|(key, _)| *key)).is_some() {
                        problems.push(Problem::error("unknown-key", span(), message, hint));
                    } else if is_own {
                        problems.push(Problem::warning("unknown-key", span(), message, hint));
                    }
                }
            }
        }
    }
    Some(front)
}

/// Rejects front matter that is too long to read. Without a key that only Tavern has it is another program's
/// or, with boxes, text between two rules.
fn too_long(
    text: &str,
    content: Range<usize>,
    spans: &HashMap<String, Range<usize>>,
    problems: &mut Vec<Problem>,
) -> Option<Front> {
    let is_ours = KEYS[OF_OTHERS..]
        .iter()
        .any(|(key, _)| spans.contains_key(*key));
    if !is_ours {
        let has_boxes = text[content].lines().any(markup::has_box);
        return (!has_boxes).then(Front::default);
    }
    let message = format!(
        "the front matter has {} bytes; at most {MOST} are allowed",
        content.len()
    );
    let first = content.start
        + text[content.clone()]
            .find(['\n', '\r'])
            .unwrap_or(content.len());
    problems.push(Problem::error(
        "long-front-matter",
        content.start..first,
        message,
        "move long texts below it, or to a file of their own",
    ));
    Some(Front::default())
}

/// Returns true for a key of queues.
fn is_key(name: &str) -> bool {
    KEYS.iter().any(|(key, _)| *key == name)
}

/// Returns the severity for a key of items in front matter: it was meant for all of them. Other programs use
/// some of these words, and always `tags`.
fn of_items(name: &str) -> Option<Severity> {
    match Key::named(name).filter(|key| key.owner() == Owner::Person)? {
        Key::Tags => None,
        Key::Due
        | Key::Parent
        | Key::Model
        | Key::Answer
        | Key::Trigger
        | Key::Lane
        | Key::QueuedFor => Some(Severity::Warning),
        _ => Some(Severity::Error),
    }
}

impl Front {
    /// Returns its priority among queues, 0 first.
    pub fn rank(&self) -> u8 {
        self.priority.unwrap_or(DEFAULT_PRIORITY)
    }

    /// Returns the lane that a heading names: by the owner's names, else by Tavern's.
    pub fn lane_named(&self, heading: &str) -> Option<LaneKind> {
        LaneKind::mapped(&self.lanes, heading).or_else(|| LaneKind::named(heading))
    }

    /// Returns the key that makes all headings lanes.
    pub fn says_lanes(&self) -> Option<&'static str> {
        let key = if self.is_kanban { Some(KANBAN) } else { None };
        key.or((!self.lanes.is_empty()).then_some(LANES))
    }

    /// Returns all text that could be sent to an agent or change commands, one line for each key.
    pub fn wording(&self) -> String {
        static PLAIN: LazyLock<Front> = LazyLock::new(Front::default);
        // This is read for each item of a queue, and most queues have none of it.
        if *self == *PLAIN {
            return String::new();
        }
        let (id, name, kind, priority, empty_behavior, max_wait, live, lanes) = Default::default();
        let (is_broken, board_key, is_kanban) = Default::default();
        let said = Front {
            id,
            name,
            kind,
            priority,
            empty_behavior,
            max_wait,
            live,
            lanes,
            is_broken,
            board_key,
            is_kanban,
            ..self.clone()
        };
        let [plain, said] =
            [&*PLAIN, &said].map(|front| serde_json::to_value(front).expect("it is plain data"));
        let said = said
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, value)| plain[key.as_str()] != **value);
        said.map(|(key, value)| format!("{key}: {value}\n"))
            .collect()
    }

    /// Sets a key. Returns false if the value does not fit it.
    fn set(&mut self, name: &str, value: Option<Field<'_>>) -> bool {
        match (name, value) {
            ("priority", Some(Field::Number(number))) => self.priority = u8::try_from(number).ok(),
            ("live", Some(Field::Flag(live))) => self.live = live,
            ("max_attempts", Some(Field::Number(number))) => self.max_attempts = Some(number),
            ("max_wait", Some(Field::Period(period))) => self.max_wait = Some(period),
            ("approve", Some(Field::Moments(moments))) => self.approve = moments,
            ("result", Some(Field::Expected(result))) => self.result = Some(result),
            ("review", Some(Field::Texts(names))) if names.iter().all(|name| is_word(name)) => {
                self.review = Some(names.into_iter().map(Cow::into_owned).collect());
            }
            ("empty_behavior", Some(Field::Text(text))) => {
                self.empty_behavior = text.parse().ok();
                return self.empty_behavior.is_some();
            }
            ("watch", Some(Field::Watch(setting))) => self.watch = Some(setting),
            (LANES, Some(Field::Lanes(lanes))) => self.lanes = lanes,
            ("goal", Some(Field::Text(text))) if text.trim().is_empty() => return false,
            (name, Some(Field::Text(text))) => {
                let field = match name {
                    "id" => &mut self.id,
                    "name" => &mut self.name,
                    "type" => &mut self.kind,
                    "runner" => &mut self.runner,
                    "role" => &mut self.role,
                    _ => &mut self.goal,
                };
                *field = Some(text.into_owned());
            }
            _ => return false,
        }
        true
    }
}

/// Returns the line at the margin where each key first stands.
fn key_spans(text: &str, content: Range<usize>) -> HashMap<String, Range<usize>> {
    let mut spans = HashMap::new();
    let mut at = content.start;
    for line in text[content].split_inclusive('\n') {
        let key = line
            .split_once(':')
            .filter(|(key, _)| !key.starts_with([' ', '\t']));
        // Read as YAML, as it may be in quotes.
        if let Some(key) = key.and_then(|(key, _)| yaml::read(key).ok()) {
            spans.entry(key).or_insert(at..at + line.trim_end().len());
        }
        at += line.len();
    }
    spans
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
                    max_attempts: 3\r\nmax_wait: 2d\r\nrunner: claude\r\nrole: coder\r\napprove: merge\r\nreview: [reviewer, person]\r\nresult: change\r\nwatch: false\r\ngoal: a shop\r\nlanes: {Сделано: completed}\r\nkanban-plugin: board\r\ntags: [x]\r\n--- \r\nrest";
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
                max_wait: Some(Period::minutes(2880)),
                runner: Some("claude".into()),
                role: Some("coder".into()),
                approve: vec![Consent::Merge],
                review: Some(vec!["reviewer".into(), "person".into()]),
                result: Some(Expected::Change),
                watch: Some(WatchSetting::Flag(false)),
                goal: Some("a shop".into()),
                is_broken: false,
                board_key: Some("empty_behavior".into()),
                is_kanban: true,
                live: true,
                lanes: vec![("Сделано".into(), LaneKind::Completed)],
            }
        );
        assert_eq!(&text[body..], "rest");
        assert_eq!(problems, []);
    }

    #[test]
    fn what_is_very_long_is_not_read() {
        let long = "x".repeat(MOST);
        for (front, codes, is_front) in [
            (format!("goal: {long}"), vec!["long-front-matter"], true),
            (
                format!("- [ ] one\n\"goal\": {long}"),
                vec!["long-front-matter"],
                true,
            ),
            (format!("title: {long}"), vec![], true),
            (format!("- [ ] one\n{long}"), vec![], false),
        ] {
            let text = format!("---\n{front}\n---\n- [ ] two\n");
            let (front, body, problems) = read_all(&text);
            let found: Vec<_> = problems.iter().map(|problem| problem.code).collect();
            assert_eq!((found, body > 0), (codes.clone(), is_front));
            assert_eq!((front.is_broken, front.goal), (!codes.is_empty(), None));
        }
    }

    #[test]
    fn what_is_wrong_is_said_and_the_rest_goes_on() {
        let rows = [
            (
                "---\nid: main\npriority: 12\n---\n",
                "wrong-type",
                "priority: 12",
                Some("main"),
            ),
            (
                "---\nid: main\nempty_behaviour: idle\n---\n",
                "unknown-key",
                "empty_behaviour: idle",
                Some("main"),
            ),
            (
                "---\nid: main\n\"empty_behavi\\x6fur\": x\n---\n",
                "unknown-key",
                "\"empty_behavi\\x6fur\": x",
                Some("main"),
            ),
            (
                "---\nid: main\ndone_when: make\n---\n",
                "unknown-key",
                "done_when: make",
                Some("main"),
            ),
            (
                "---\nid: main\nmodel: T\n---\n",
                "unknown-key",
                "model: T",
                Some("main"),
            ),
            (
                "---\nid: main\nresult: maybe\n---\n",
                "wrong-type",
                "result: maybe",
                Some("main"),
            ),
            (
                "---\nid: main\nreveiw: person\n---\n",
                "unknown-key",
                "reveiw: person",
                Some("main"),
            ),
            (
                "---\nid: main\nname: a: b\n---\n",
                "broken-front-matter",
                "name: a: b",
                None,
            ),
            (
                "---\nid:main\n---\n",
                "broken-front-matter",
                "id:main\n",
                None,
            ),
            (
                "---\nid: main\n- [ ] a\n",
                "unclosed-front-matter",
                "---",
                None,
            ),
            (
                "---\nid: main\nlanes: {Fertig: finished}\n---\n",
                "wrong-type",
                "lanes: {Fertig: finished}",
                Some("main"),
            ),
        ];
        for (text, code, at, id) in rows {
            let (front, _, problems) = read_all(text);
            assert_eq!(problems.len(), 1, "{text}");
            assert_eq!(
                (problems[0].code, &text[problems[0].span.clone()]),
                (code, at),
                "{text}"
            );
            assert_eq!(
                problems[0].severity == Severity::Error,
                front.is_broken,
                "{text}"
            );
            assert_eq!(front.id.as_deref(), id, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_fail(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..24)) {
            let text = format!("---\n{}\n---\nrest", pieces.concat());
            let (_, body, problems) = read_all(&text);
            assert!(text[..body].ends_with("\n---\n"), "{text:?}: {body}");
            for problem in &problems {
                crate::problem::render("path", &text, problem);
            }
        }
    }

    const PIECES: &[&str] = &[
        "id",
        "name",
        "type",
        "review",
        "approve",
        "max_attempts",
        ": ",
        ":",
        "\n",
        "\n---\n",
        "\r\n",
        "[",
        "]",
        "{",
        "}",
        "- ",
        "&a ",
        "*a",
        "!!int ",
        "\"",
        "'",
        "\\x0",
        "|",
        ">-\n  ",
        "#",
        "1e999",
        "-1",
        "18446744073709551616",
        "é",
        "\u{202e}",
        "\0",
        "<<",
        "? ",
        "~",
        "\t",
        "\u{feff}",
    ];

    #[test]
    fn a_rule_at_the_head_is_no_front_matter() {
        for text in [
            "---\n",
            "---\n- [ ] a\n",
            "---",
            "",
            "\u{feff}",
            "----\nid: x\n----\n",
            " ---\nid: x\n---\n",
        ] {
            let (front, body, problems) = read_all(text);
            assert_eq!((front, problems), (Front::default(), vec![]), "{text:?}");
            assert!(body <= 3, "{text:?}");
        }
    }
}
