//! A task: one item of a queue, read into typed fields. Knows nothing of its Markdown spelling.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::front::{DEFAULT_PRIORITY, Front};
use super::metadata::{Field, Fields, Key};
use super::period::Period;
use super::watch_rules::WatchSetting;

pub use super::budget::Budget;
pub use super::id::{BadId, MAX_ID, TaskId};
pub use super::state::{Approval, State};
pub use super::status::{Consent, Expected, Mode, OnFailure, Status, Timestamp};

/// An item with typed fields. The queue document is the durable truth about it; its holder is in a `Lease`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Task {
    /// JSON `null` for an item without one.
    #[schemars(with = "Option<TaskId>")]
    pub id: TaskId,
    pub title: String,
    /// The indented text under the title, dedented, without the `yaml task` block; may be empty.
    pub description: String,
    /// In JSON: `status`, and the keys of specs/states.md.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub state: State,
    /// 0 is most urgent.
    pub priority: u8,
    /// When the item is due.
    pub due: Option<Timestamp>,
    pub after: Vec<TaskId>,
    /// The role that may take it; `None`: the default role.
    pub role: Option<String>,
    pub tags: Vec<String>,
    pub parent: Option<TaskId>,
    pub runner: Option<String>,
    pub model: Option<String>,
    /// Accounts, variables (`$NAME`), files (with a `/` in their names) and programs that a claim requires.
    pub needs: Vec<String>,
    /// Shell commands that must all exit 0 at the commit before the item counts as done.
    pub done_when: Vec<String>,
    /// Globs of the paths that the item is expected to change.
    pub touches: Vec<String>,
    pub budget: Budget,
    /// False: the item needs no repository and runs in an empty scratch folder.
    pub worktree: bool,
    /// `None`: a change, or commands that pass without one.
    pub result: Option<Expected>,
    pub max_attempts: Option<u32>,
    /// How long it waits for a person or its children before it is dead; `None`: the default of config.yaml.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait: Option<Period>,
    /// When a person has to approve: before the `start`, before the `merge`.
    pub approve: Vec<Consent>,
    /// Roles or [`PERSON`] that have to approve the work before its merge. A number means that many
    /// reviewers, `none` no review. `None`: the default of config.yaml.
    pub review: Option<Vec<String>>,
    /// Effect of its failure on its parent.
    pub on_failure: OnFailure,
    /// Planning items only: the reason to wake the planner.
    pub trigger: Option<String>,
    /// The schedule that queued it, and for which time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_for: Option<String>,
    /// Planning items only: the first status of planned items, draft or pending.
    pub lane: Option<Status>,
    /// Watch settings of its queue, then its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<WatchSetting>,
    /// Its `answer` key, with or without a question.
    #[serde(skip)]
    pub typed_answer: Option<String>,
}

/// The approver that is no role: a person.
pub const PERSON: &str = "person";

impl Task {
    /// Returns a pending task with only a title.
    pub fn new(id: TaskId, title: &str) -> Task {
        Task::read(
            id,
            title,
            State::default(),
            &Fields::default(),
            &Front::default(),
        )
    }

    /// Reads the keys of an item; missing keys take the queue's values, then the defaults. The description is
    /// left empty.
    pub fn read(id: TaskId, title: &str, state: State, keys: &Fields<'_>, queue: &Front) -> Task {
        let texts = |key| keys.texts(key).unwrap_or_default();
        let priority = keys
            .number(Key::Priority)
            .map(|number| u8::try_from(number).unwrap_or(u8::MAX));
        Task {
            id,
            title: title.to_owned(),
            description: String::new(),
            state,
            priority: priority.unwrap_or(DEFAULT_PRIORITY),
            due: keys.time(Key::Due),
            after: if let Some(Field::Ids(ids, _)) = keys.get(Key::After) {
                ids.clone()
            } else {
                Vec::new()
            },
            role: keys.text(Key::Role).or_else(|| queue.role.clone()),
            tags: texts(Key::Tags),
            parent: if let Some(Field::Id(id)) = keys.get(Key::Parent) {
                Some(id.clone())
            } else {
                None
            },
            runner: keys.text(Key::Runner).or_else(|| queue.runner.clone()),
            model: keys.text(Key::Model),
            needs: texts(Key::Needs),
            done_when: texts(Key::DoneWhen)
                .into_iter()
                .map(without_ticks)
                .collect(),
            touches: texts(Key::Touches),
            budget: if let Some(Field::Budget(budget)) = keys.get(Key::Budget) {
                budget.clone()
            } else {
                Budget::default()
            },
            worktree: keys.flag(Key::Worktree).unwrap_or(true),
            result: if let Some(Field::Expected(result)) = keys.get(Key::Result) {
                Some(*result)
            } else {
                queue.result
            },
            max_attempts: keys.number(Key::MaxAttempts).or(queue.max_attempts),
            max_wait: keys.period(Key::MaxWait).or(queue.max_wait),
            approve: if let Some(Field::Moments(moments)) = keys.get(Key::Approve) {
                moments.clone()
            } else {
                queue.approve.clone()
            },
            review: keys.texts(Key::Review).or_else(|| queue.review.clone()),
            on_failure: if let Some(Field::OnFailure(then)) = keys.get(Key::OnFailure) {
                *then
            } else {
                OnFailure::GoOn
            },
            trigger: keys.text(Key::Trigger),
            queued_for: keys.text(Key::QueuedFor),
            lane: if let Some(Field::Status(status)) = keys.get(Key::Lane) {
                Some(*status)
            } else {
                None
            },
            watch: queue
                .watch
                .iter()
                .chain(keys.watch(Key::Watch))
                .cloned()
                .collect(),
            typed_answer: keys.text(Key::Answer),
        }
    }

    pub fn status(&self) -> Status {
        self.state.status()
    }

    /// Returns everything that could be run or sent to an agent, as one text. An answer is part of it, as it
    /// passes for a person's word. The ID, keys that Tavern writes and keys that only set the order are not.
    pub fn wording(&self) -> String {
        let mut text = serde_json::to_string(&self.words()).expect("it is plain data");
        for (key, words) in self.words_for_a_person() {
            text.extend(["\n", key, ": ", words]);
        }
        text
    }

    /// Returns the [`wording`](Self::wording) line by line. Lines of the description stay as they are; other
    /// lines begin with a blank and their key, which no line of the description does.
    pub fn wording_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        add_lines(
            "",
            &serde_json::to_value(self.words()).expect("it is plain data"),
            &mut lines,
        );
        lines.extend(
            self.words_for_a_person()
                .map(|(key, words)| format!(" {key}: {words}")),
        );
        lines
    }

    fn words(&self) -> Words<'_> {
        let Task {
            title,
            description,
            role,
            runner,
            model,
            needs,
            done_when,
            touches,
            budget,
            worktree,
            result,
            max_attempts,
            approve,
            review,
            on_failure,
            trigger,
            lane,
            watch,
            // Tavern writes these, or they only set the order.
            id: _,
            state: _,
            priority: _,
            due: _,
            after: _,
            tags: _,
            parent: _,
            queued_for: _,
            max_wait: _,
            // Added by `words_for_a_person`.
            typed_answer: _,
        } = self;
        Words {
            title,
            description,
            role: role.as_deref(),
            runner: runner.as_deref(),
            model: model.as_deref(),
            needs,
            done_when,
            touches,
            budget,
            worktree: (!worktree).then_some(false),
            result: *result,
            max_attempts: *max_attempts,
            approve,
            review: review.as_deref(),
            on_failure: Some(*on_failure).filter(|then| *then != OnFailure::GoOn),
            trigger: trigger.as_deref(),
            lane: *lane,
            watch,
        }
    }

    fn words_for_a_person(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let answer = self.typed_answer.as_deref();
        answer
            .map(|answer| (Key::Answer.as_str(), answer))
            .into_iter()
    }

    pub fn mode(&self) -> Mode {
        self.state.mode
    }

    /// Returns why it waits, died, ended or was returned.
    pub fn reason(&self) -> Option<&str> {
        self.state.reason.as_deref()
    }

    /// Returns the commit of its work: verified, approved or merged.
    pub fn commit(&self) -> Option<&str> {
        self.state.commit()
    }

    /// Returns the author of the work in review.
    pub fn author(&self) -> Option<&str> {
        self.state.work()?.author.as_deref()
    }

    /// Returns the approvals so far.
    pub fn approvals(&self) -> &[Approval] {
        self.state.work().map_or(&[], |work| &work.approvals)
    }

    /// Returns the agent's question to a person.
    pub fn question(&self) -> Option<&str> {
        Some(&self.state.question()?.text)
    }

    /// Returns true if a person has to allow it before it starts.
    pub fn waits_for_permission(&self) -> bool {
        !self.state.allowed && self.approve.contains(&Consent::Start)
    }

    /// Returns the required approvers, one name for each approval: roles, or [`PERSON`]. `general` is the
    /// default of config.yaml.
    pub fn reviewers(&self, general: &[String]) -> Vec<String> {
        let mut reviewers = Vec::new();
        for name in self.review.as_deref().unwrap_or(general) {
            match name.parse::<usize>() {
                Ok(number) => {
                    reviewers.extend(std::iter::repeat_n(REVIEWER.to_owned(), number.min(9)));
                }
                Err(_) if name == "none" => {}
                Err(_) => reviewers.push(name.clone()),
            }
        }
        if self.approve.contains(&Consent::Merge) && !reviewers.iter().any(|name| name == PERSON) {
            reviewers.push(PERSON.to_owned());
        }
        reviewers
    }

    /// Returns those of `reviewers` that have not approved.
    pub fn open_reviews(&self, reviewers: &[String]) -> Vec<String> {
        let mut open = reviewers.to_vec();
        for approval in self.approvals() {
            if let Some(place) = open.iter().position(|name| *name == approval.role) {
                open.remove(place);
            }
        }
        open
    }

    /// Returns whether `agent` has approved the work already.
    pub fn is_approved_by(&self, agent: &str) -> bool {
        self.approvals().iter().any(|approval| approval.by == agent)
    }

    /// Returns a person's answer to its question: the `answer:` key, else the text behind and below the last
    /// `Answer:` line.
    pub fn answered(&self) -> Option<String> {
        let question = self.state.question()?;
        let typed = || {
            let lines: Vec<&str> = self.description.lines().collect();
            let starts: Vec<usize> = (0..lines.len())
                .filter(|at| is_answer(lines[*at]))
                .collect();
            let last = *starts
                .last()
                .filter(|_| starts.len() > question.answers as usize)?;
            let first = &lines[last][ANSWER.len()..];
            Some(
                [&[first], &lines[last + 1..]]
                    .concat()
                    .join("\n")
                    .trim()
                    .to_owned(),
            )
        };
        question
            .answer
            .clone()
            .or_else(typed)
            .filter(|answer| !answer.trim().is_empty())
    }

    /// Returns the number of answers in its text.
    pub fn answers_in_text(&self) -> u32 {
        u32::try_from(
            self.description
                .lines()
                .filter(|line| is_answer(line))
                .count(),
        )
        .unwrap_or(u32::MAX)
    }
}

/// The fields that could be run or sent to an agent.
#[derive(Serialize)]
struct Words<'t> {
    title: &'t str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'t str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'t str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    needs: &'t [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    done_when: &'t [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    touches: &'t [String],
    #[serde(skip_serializing_if = "Budget::is_empty")]
    budget: &'t Budget,
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Expected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    approve: &'t [Consent],
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<&'t [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<OnFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<Status>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    watch: &'t [WatchSetting],
}

/// Adds the lines of `key`.
fn add_lines(key: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Array(values) => values.iter().for_each(|value| add_lines(key, value, lines)),
        Value::Object(keys) => keys
            .iter()
            .for_each(|(key, value)| add_lines(key, value, lines)),
        Value::String(text) => {
            let said = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.extend(said.map(|line| {
                if key == "description" {
                    line.to_owned()
                } else {
                    format!(" {key}: {line}")
                }
            }));
        }
        Value::Bool(_) | Value::Number(_) => lines.push(format!(" {key}: {value}")),
    }
}

/// The role that a bare number of reviews requires.
pub const REVIEWER: &str = "reviewer";

/// Start of an answer that a person types under an item.
const ANSWER: &str = "Answer:";

fn is_answer(line: &str) -> bool {
    line.get(..ANSWER.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(ANSWER))
}

/// Returns the command without the backticks of a code span.
fn without_ticks(command: String) -> String {
    let code = command.trim().strip_prefix('`');
    match code.and_then(|code| code.strip_suffix('`')) {
        Some(code) if !code.is_empty() && !code.contains('`') => code.to_owned(),
        _ => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::task_with;

    #[test]
    fn reviews_are_counted_by_role() {
        for (keys, open) in [
            ("review: none", &[][..]),
            ("review: 2, approvals: [reviewer/Sam]", &["reviewer"]),
            (
                "review: [reviewer, security, person], approvals: [security/Sam, person/rosie]",
                &["reviewer"],
            ),
            (
                "review: reviewer, approvals: [reviewer/Sam, reviewer/Merry]",
                &[],
            ),
            ("review: reviewer, approve: merge", &["reviewer", PERSON]),
            ("role: coder", &["general"]),
        ] {
            let task = task_with(Status::InReview, keys);
            assert_eq!(
                task.open_reviews(&task.reviewers(&["general".to_owned()])),
                open,
                "{keys}"
            );
        }
        let approved = task_with(Status::InReview, "approvals: [reviewer/Sam]");
        assert!(approved.is_approved_by("Sam") && !approved.is_approved_by("reviewer"));
    }

    #[test]
    fn an_answer_is_a_key_or_stands_under_the_item() {
        for (keys, text, expected) in [
            ("question: red?", "See a.md.\nAnswer: blue", Some("blue")),
            (
                "question: red?",
                "answer:\nblue,\n\nand red",
                Some("blue,\n\nand red"),
            ),
            ("question: red?", "Answer:", None),
            ("question: red?", "The Answer: blue", None),
            ("question: red?, answers: 1", "Answer: blue", None),
            (
                "question: red?, answers: 1",
                "Answer: blue\nAnswer: red",
                Some("red"),
            ),
            ("question: red?, answer: blue", "", Some("blue")),
            ("", "Answer: blue", None),
        ] {
            let task = Task {
                description: text.to_owned(),
                ..task_with(Status::Waiting, keys)
            };
            assert_eq!(task.answered().as_deref(), expected, "{keys} {text}");
        }
    }
}
