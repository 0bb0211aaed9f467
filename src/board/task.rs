//! A task: one item of a queue, read into typed fields. Knows nothing of how it is spelt in Markdown.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A moment, always in UTC, written as RFC 3339 with whole seconds.
pub type Timestamp = DateTime<Utc>;

/// An item's name: an upper-case prefix, a hyphen, and a part with at least one digit (`T-k3f9`, `WI-001`,
/// `AUTH-7`); a child adds `.1`, `.2` and so on. By construction it is a safe file name and a safe part of a
/// branch name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TaskId(String);

/// Longest ID in bytes: with `tavern/` before it and `.lock` behind it it still is a valid ref file everywhere.
pub const MAX_ID: usize = 64;

/// Not an ID: the text, cut to 80 characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` can't be a task ID")]
pub struct BadId(pub String);

impl BadId {
    pub const HINT: &str = "an ID is capitals, a hyphen and letters with at least one digit, such as T-k3f9 or AUTH-7";
}

impl TaskId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The ID of this item's `number`th child.
    pub fn child(&self, number: u32) -> TaskId {
        TaskId(format!("{}.{number}", self.0))
    }

    /// A fresh ID `T-` and four characters of Crockford's base32 drawn from `random`, with at least one digit; one
    /// character longer for each time that `is_taken` says so.
    pub fn mint(mut random: u64, is_taken: impl Fn(&TaskId) -> bool) -> TaskId {
        const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let mut id = String::from("T-");
        // The first character is a digit or not as chance has it; the last of the four is a digit if none was.
        for _ in 0..3 {
            id.push(char::from(ALPHABET[(random % 32) as usize]));
            random /= 32;
        }
        let has_digit = id.bytes().any(|byte| byte.is_ascii_digit());
        let choices = if has_digit { 32 } else { 10 };
        id.push(char::from(ALPHABET[(random % choices) as usize]));
        random /= 32;
        while is_taken(&TaskId(id.clone())) && id.len() < MAX_ID {
            id.push(char::from(ALPHABET[(random % 32) as usize]));
            random = random.rotate_right(5) ^ 0x9e37_79b9_7f4a_7c15;
        }
        TaskId(id)
    }
}

impl FromStr for TaskId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<TaskId, BadId> {
        let bad = || BadId(text.chars().take(80).collect());
        if text.len() > MAX_ID {
            return Err(bad());
        }
        let hyphen = text.bytes().position(|byte| byte == b'-').ok_or_else(bad)?;
        let (prefix, rest) = (&text[..hyphen], &text[hyphen + 1..]);
        let prefix_is_good = prefix.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
            && prefix.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        // Letters and digits, in parts of at least one.
        let mut parts_are_good = true;
        let mut is_in_part = false;
        let mut has_digit = false;
        for byte in rest.bytes() {
            let is_mark = matches!(byte, b'-' | b'.' | b'_');
            parts_are_good &= if is_mark { is_in_part } else { byte.is_ascii_alphanumeric() };
            is_in_part = !is_mark;
            has_digit |= byte.is_ascii_digit();
        }
        parts_are_good &= is_in_part;
        // Git refuses a ref that ends in `.lock`.
        if prefix_is_good && parts_are_good && has_digit && !rest.ends_with(".lock") {
            Ok(TaskId(text.to_owned()))
        } else {
            Err(bad())
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<TaskId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Where a task stands. `specs/states.md` draws the arrows between these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not yet released for work.
    Draft,
    /// May be claimed when its dependencies are completed and its back-off is over.
    Pending,
    /// Held by an agent under a lease.
    InProgress,
    /// Verified at one commit; waits for a reviewer.
    InReview,
    /// Held by a reviewer under a lease.
    Reviewing,
    /// Parked for a person, its children or a limit.
    Waiting,
    /// Verified and approved at one commit; waits for integration.
    Approved,
    /// Integrated (or ticked by a person).
    Completed,
    /// Attempts used up; `tavern-release --revive` brings it back.
    Dead,
    /// Given up by a person.
    Cancelled,
}

impl Status {
    pub const ALL: [Status; 10] = [
        Status::Draft,
        Status::Pending,
        Status::InProgress,
        Status::InReview,
        Status::Reviewing,
        Status::Waiting,
        Status::Approved,
        Status::Completed,
        Status::Dead,
        Status::Cancelled,
    ];

    /// As written in `status:` and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Draft => "draft",
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::InReview => "in_review",
            Status::Reviewing => "reviewing",
            Status::Waiting => "waiting",
            Status::Approved => "approved",
            Status::Completed => "completed",
            Status::Dead => "dead",
            Status::Cancelled => "cancelled",
        }
    }

    /// Somebody holds it under a lease.
    pub fn is_held(self) -> bool {
        matches!(self, Status::InProgress | Status::Reviewing)
    }

    /// Nothing more will be done to it unless a person asks.
    pub fn is_ended(self) -> bool {
        matches!(self, Status::Completed | Status::Dead | Status::Cancelled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Status {
    type Err = ();

    fn from_str(text: &str) -> Result<Status, ()> {
        Status::ALL.into_iter().find(|status| status.as_str() == text).ok_or(())
    }
}

/// What one run of a task may use; `None` leaves it to the role's and the board's limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Wall time in minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Tokens in and out, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Turns of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Resident memory of the process tree in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
}

/// An item, read. What stands in the queue document is the durable truth about it; who holds it is a `Lease`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Task {
    pub id: TaskId,
    pub title: String,
    /// The indented text under the title, dedented, without the `yaml task` block; may be empty.
    pub description: String,
    pub status: Status,
    /// 0 is most urgent; the queue's own default, else 2.
    pub priority: u8,
    pub after: Vec<TaskId>,
    /// Who may take it; `None` means any coder.
    pub role: Option<String>,
    pub tags: Vec<String>,
    pub parent: Option<TaskId>,
    pub runner: Option<String>,
    pub model: Option<String>,
    /// Shell commands that must all exit 0 at the commit before it counts as done.
    pub done_when: Vec<String>,
    /// Globs of the paths that it is expected to change.
    pub touches: Vec<String>,
    pub budget: Budget,
    /// False: the item needs no repository and is run in an empty scratch folder.
    pub worktree: bool,
    /// True: done without any change is fine.
    pub allow_empty: bool,
    /// While held: the number of this attempt. Otherwise: how many attempts the agents have used up.
    pub attempt: u32,
    /// How often it came back through nobody's fault.
    pub returns: u32,
    pub max_attempts: Option<u32>,
    /// Not to be claimed before this.
    pub not_before: Option<Timestamp>,
    pub agent: Option<String>,
    pub started: Option<Timestamp>,
    pub completed: Option<Timestamp>,
    /// The commit that was verified (approved) or integrated (completed); full or abbreviated hex.
    pub commit: Option<String>,
    /// Why it waits, died or came back, in one line.
    pub reason: Option<String>,
    /// When a person has to approve it: before the `start`, before the `merge`.
    pub approve: Vec<String>,
    /// A person has allowed it to start.
    pub allowed: bool,
    /// Who has to approve the work before it is merged: roles or [`PERSON`]; a number stands for so many reviewers,
    /// `none` for nobody. `None`: as config.yaml says.
    pub review: Option<Vec<String>>,
    /// Whose work is in review.
    pub author: Option<String>,
    /// Who has approved it so far: `role/name` each.
    pub approvals: Vec<String>,
    /// How often a review has rejected it.
    pub rounds: u32,
    pub mode: Mode,
    /// What its failure means to its parent.
    pub on_failure: OnFailure,
    /// What its agent has asked of a person.
    pub question: Option<String>,
    /// What a person has typed as the answer, as a key.
    pub answer: Option<String>,
    /// How many `Answer:` lines it had when the question was asked.
    pub answers: u32,
    /// Of a planning item: what woke the planner.
    pub trigger: Option<String>,
    /// Of a planning item: where the planned items begin, draft or pending.
    pub lane: Option<Status>,
}

/// The one that approves who is no role: a person.
pub const PERSON: &str = "person";

/// What the holder of a task is doing with it. Any of them may follow any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Execute,
    Delegate,
    Plan,
    BreakUp,
    /// Its children have ended; what they made is put together.
    Unify,
}

impl Mode {
    pub const ALL: [Mode; 5] = [Mode::Execute, Mode::Delegate, Mode::Plan, Mode::BreakUp, Mode::Unify];

    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Execute => "execute",
            Mode::Delegate => "delegate",
            Mode::Plan => "plan",
            Mode::BreakUp => "break_up",
            Mode::Unify => "unify",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Mode, ()> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or(())
    }
}

/// What it means to a parent that this child used up its attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The child gets its attempts once more, with a clear head; after that a person is asked.
    Retry,
    /// The parent waits until a person has looked after the child.
    Escalate,
    /// The parent is woken and told.
    #[default]
    GoOn,
}

impl OnFailure {
    pub const ALL: [OnFailure; 3] = [OnFailure::Retry, OnFailure::Escalate, OnFailure::GoOn];

    pub fn as_str(self) -> &'static str {
        match self {
            OnFailure::Retry => "retry",
            OnFailure::Escalate => "escalate",
            OnFailure::GoOn => "go_on",
        }
    }

    /// A child with this status keeps its parent waiting for a person.
    pub fn keeps_waiting(self, child: Status) -> bool {
        child == Status::Dead && self != OnFailure::GoOn
    }
}

impl FromStr for OnFailure {
    type Err = ();

    fn from_str(text: &str) -> Result<OnFailure, ()> {
        OnFailure::ALL.into_iter().find(|then| then.as_str() == text).ok_or(())
    }
}

impl Task {
    /// A pending task with nothing but a title.
    pub fn new(id: TaskId, title: &str) -> Task {
        Task {
            id,
            title: title.to_owned(),
            description: String::new(),
            status: Status::Pending,
            priority: 2,
            after: Vec::new(),
            role: None,
            tags: Vec::new(),
            parent: None,
            runner: None,
            model: None,
            done_when: Vec::new(),
            touches: Vec::new(),
            budget: Budget::default(),
            worktree: true,
            allow_empty: false,
            attempt: 0,
            returns: 0,
            max_attempts: None,
            not_before: None,
            agent: None,
            started: None,
            completed: None,
            commit: None,
            reason: None,
            approve: Vec::new(),
            allowed: false,
            review: None,
            author: None,
            approvals: Vec::new(),
            rounds: 0,
            mode: Mode::Execute,
            on_failure: OnFailure::GoOn,
            question: None,
            answer: None,
            answers: 0,
            trigger: None,
            lane: None,
        }
    }

    /// It waits for its children, and for nobody's word.
    pub fn is_parked(&self) -> bool {
        self.status == Status::Waiting && self.mode == Mode::Unify && self.question.is_none()
    }

    /// A person has to allow it before it is started.
    pub fn waits_for_permission(&self) -> bool {
        !self.allowed && self.approve.iter().any(|moment| moment == "start")
    }

    /// Who has to approve the work before it is merged, one name for each approval: roles, or [`PERSON`]. `general` is
    /// what config.yaml says.
    pub fn reviewers(&self, general: &[String]) -> Vec<String> {
        let mut reviewers = Vec::new();
        for name in self.review.as_deref().unwrap_or(general) {
            match name.parse::<usize>() {
                Ok(number) => reviewers.extend(std::iter::repeat_n(REVIEWER.to_owned(), number.min(9))),
                Err(_) if name == "none" => {}
                Err(_) => reviewers.push(name.clone()),
            }
        }
        if self.approve.iter().any(|moment| moment == "merge") && !reviewers.iter().any(|name| name == PERSON) {
            reviewers.push(PERSON.to_owned());
        }
        reviewers
    }

    /// Those of `reviewers` whose approval is still missing.
    pub fn open_reviews(&self, reviewers: &[String]) -> Vec<String> {
        let mut open = reviewers.to_vec();
        for approval in &self.approvals {
            let role = approval.split_once('/').map_or(approval.as_str(), |(role, _)| role);
            if let Some(place) = open.iter().position(|name| name == role) {
                open.remove(place);
            }
        }
        open
    }

    /// Has `agent` approved the work already?
    pub fn is_approved_by(&self, agent: &str) -> bool {
        self.approvals.iter().any(|approval| approval.split_once('/').is_some_and(|(_, name)| name == agent))
    }

    /// What a person has answered to its question, if it has one: the `answer:` key, else what stands behind the last
    /// `Answer:` of its text and below it.
    pub fn answered(&self) -> Option<String> {
        self.question.as_ref()?;
        let typed = || {
            let lines: Vec<&str> = self.description.lines().collect();
            let starts: Vec<usize> = (0..lines.len()).filter(|at| is_answer(lines[*at])).collect();
            let last = *starts.last().filter(|_| starts.len() > self.answers as usize)?;
            let first = &lines[last][ANSWER.len()..];
            Some([&[first], &lines[last + 1..]].concat().join("\n").trim().to_owned())
        };
        self.answer.clone().or_else(typed).filter(|answer| !answer.trim().is_empty())
    }

    /// How many answers stand in its text.
    pub fn answers_in_text(&self) -> u32 {
        u32::try_from(self.description.lines().filter(|line| is_answer(line)).count()).unwrap_or(u32::MAX)
    }
}

/// The role that a bare number of reviews asks for.
pub const REVIEWER: &str = "reviewer";

/// How an answer begins that a person types under an item.
const ANSWER: &str = "Answer:";

fn is_answer(line: &str) -> bool {
    line.get(..ANSWER.len()).is_some_and(|start| start.eq_ignore_ascii_case(ANSWER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_are_counted_by_role() {
        let task = |review: &[&str], approvals: &[&str]| Task {
            review: Some(review.iter().map(|&name| name.to_owned()).collect()),
            approvals: approvals.iter().map(|&name| name.to_owned()).collect(),
            ..Task::new("T-1".parse().expect("an ID"), "Do it")
        };
        for (review, approvals, open) in [
            (&["none"][..], &[][..], &[][..]),
            (&["2"], &["reviewer/Sam"], &["reviewer"]),
            (&["reviewer", "security", "person"], &["security/Sam", "person/rosie"], &["reviewer"]),
            (&["reviewer"], &["reviewer/Sam", "reviewer/Merry"], &[]),
        ] {
            let task = task(review, approvals);
            assert_eq!(task.open_reviews(&task.reviewers(&[])), open, "{review:?} {approvals:?}");
        }
        let asked = Task { approve: vec!["merge".into()], ..task(&["reviewer"], &[]) };
        assert_eq!(asked.reviewers(&[]), ["reviewer", PERSON]);
        let general = Task { review: None, ..task(&[], &["reviewer/Sam"]) };
        assert_eq!(general.reviewers(&["reviewer".into()]), ["reviewer"]);
        assert!(general.is_approved_by("Sam") && !general.is_approved_by("reviewer"));
    }

    #[test]
    fn an_answer_is_a_key_or_stands_under_the_item() {
        let task = |question: bool, answers, text: &str| Task {
            question: question.then(|| "red or blue?".to_owned()),
            answers,
            description: text.to_owned(),
            ..Task::new("T-1".parse().expect("an ID"), "Do it")
        };
        for (question, answers, text, expected) in [
            (true, 0, "See a.md.\nAnswer: blue", Some("blue")),
            (true, 0, "answer:\nblue,\n\nand red", Some("blue,\n\nand red")),
            (true, 0, "Answer:", None),
            (true, 0, "The Answer: blue", None),
            (true, 1, "Answer: blue", None),
            (true, 1, "Answer: blue\nAnswer: red", Some("red")),
            (false, 0, "Answer: blue", None),
        ] {
            assert_eq!(task(question, answers, text).answered().as_deref(), expected, "{text}");
        }
        let keyed = Task { answer: Some("blue".into()), ..task(true, 0, "") };
        assert_eq!(keyed.answered().as_deref(), Some("blue"));
    }

    #[test]
    fn ids_are_safe_names() {
        for good in ["T-k3f9", "WI-001", "AUTH-7", "T-k3f9.1", "T-k3f9.1.12", "A2-0", "X-1_2"] {
            assert_eq!(good.parse::<TaskId>().map(|id| id.to_string()), Ok(good.to_owned()));
        }
        let long = format!("T-{}", "1".repeat(MAX_ID));
        for bad in
            ["", "-rf", "../x", "a b", "T-", "t-1", "T", "T-abc", "T-1.", "T-1..2", "T-1/2", "T-1.lock", "Ä-1", &long]
        {
            assert!(bad.parse::<TaskId>().is_err(), "`{bad}` must not be an ID");
        }
    }

    #[test]
    fn minted_ids_are_ids_and_avoid_taken_ones() {
        for random in (0..50_000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let id = TaskId::mint(random, |_| false);
            assert_eq!(id.as_str().len(), 6);
            assert_eq!(id.as_str().parse(), Ok(id.clone()));
            let other = TaskId::mint(random, |taken| *taken == id);
            assert_eq!(other.as_str().len(), 7);
            assert_eq!(other.as_str().parse(), Ok(other));
        }
    }
}
