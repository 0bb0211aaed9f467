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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
