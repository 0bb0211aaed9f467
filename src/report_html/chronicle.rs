//! What the page tells, as plain values. Nothing here knows of files or of HTML.

use crate::legible::{Extract, Legible};
use tavern_core::task::{Status, Timestamp};
use tavern_run::runner::Outcome;

/// What came of some queues.
#[derive(Debug)]
pub(super) struct Chronicle {
    /// What the board is called.
    pub board: Legible,
    pub made: Timestamp,
    /// Earlier runs and events are left out.
    pub since: Option<Timestamp>,
    pub queues: Vec<Legible>,
    /// The items, in the order of their queues; then those that are in none any more.
    pub items: Vec<ItemStory>,
    /// So many more there are.
    pub items_left_out: usize,
    /// The newest runs, oldest first.
    pub runs: Vec<RunStory>,
    /// So many earlier ones there are.
    pub runs_left_out: usize,
    /// What each run has used, also those that are told of no more.
    pub shares: Vec<RunShare>,
}

/// An item and what became of it.
#[derive(Debug)]
pub(super) struct ItemStory {
    /// Its ID, or its place.
    pub name: Legible,
    pub title: Legible,
    pub queue: Legible,
    /// Nothing where it is in no queue and no archive any more.
    pub status: Option<Status>,
    pub priority: u8,
    pub role: Legible,
    /// What it says besides.
    pub text: Extract,
    /// The items that it comes after, and those of them that the page has.
    pub after: Vec<Legible>,
    pub after_items: Vec<usize>,
    pub parent: Option<usize>,
    /// Why it stands as it does.
    pub reason: Legible,
    /// What it lacks.
    pub waits_for: Legible,
    /// What a person can do about it.
    pub need: Option<OpenNeed>,
    /// Oldest first.
    pub moves: Vec<Move>,
    /// Indices of its runs, oldest first.
    pub runs: Vec<usize>,
}

/// What an item needs of a person.
#[derive(Debug)]
pub(super) struct OpenNeed {
    /// The most pressing ones are the least.
    pub rank: usize,
    /// What kind of thing it is, in a word.
    pub word: &'static str,
    pub why: Legible,
    /// What to type.
    pub todo: Legible,
}

/// An item went from one status to another.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub at: Timestamp,
    pub to: Status,
    /// By whom, and why.
    pub who: Legible,
    pub why: Legible,
    /// It came back since it had failed, or was sent back.
    pub is_retry: bool,
}

/// A run and what came of it.
#[derive(Debug)]
pub(super) struct RunStory {
    pub name: Legible,
    /// Index of its item.
    pub item: usize,
    pub agent: Legible,
    pub role: Legible,
    /// The model, or else the runner.
    pub model: Legible,
    pub attempt: u32,
    pub started: Timestamp,
    /// `None`: it runs.
    pub ended: Option<Timestamp>,
    pub seconds: u64,
    pub outcome: Option<Outcome>,
    pub reason: Legible,
    pub verified: Option<bool>,
    pub commit: Legible,
    pub usd: f64,
    pub tokens: u64,
    pub turns: u32,
    pub parts: Vec<RunPart>,
}

/// One text of a run.
#[derive(Debug)]
pub(super) struct RunPart {
    pub name: &'static str,
    pub form: PartForm,
    pub text: Extract,
    /// What to type for all of it.
    pub whole: Legible,
}

/// How a text reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartForm {
    Plain,
    /// Lines begin with what became of them.
    Patch,
}

/// What one run has used.
#[derive(Debug)]
pub(super) struct RunShare {
    pub agent: Legible,
    pub role: Legible,
    /// The same money and tokens, a model each.
    pub models: Vec<(Legible, f64, u64)>,
    pub day: String,
    pub usd: f64,
    pub tokens: u64,
    pub seconds: u64,
}

/// How something stands, as a colour shows it. Words beside it say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hue {
    Bad,
    Wait,
    Busy,
    Review,
    Idle,
    Good,
}

impl Hue {
    pub fn of(status: Option<Status>) -> Hue {
        match status {
            Some(Status::Completed) => Hue::Good,
            Some(Status::Dead) => Hue::Bad,
            Some(Status::Waiting) => Hue::Wait,
            Some(Status::InProgress) => Hue::Busy,
            Some(Status::InReview | Status::Reviewing | Status::Approved) => Hue::Review,
            Some(Status::Pending | Status::Draft | Status::Cancelled) | None => Hue::Idle,
        }
    }

    /// Of a run.
    pub fn of_outcome(outcome: Option<Outcome>) -> Hue {
        match outcome {
            None => Hue::Busy,
            Some(Outcome::Success) => Hue::Good,
            Some(
                Outcome::Waiting
                | Outcome::UsageLimit
                | Outcome::Overloaded
                | Outcome::Capped
                | Outcome::NotReady,
            ) => Hue::Wait,
            Some(Outcome::Killed) => Hue::Idle,
            Some(_) => Hue::Bad,
        }
    }

    /// The class of the page that paints it.
    pub fn class(self) -> &'static str {
        match self {
            Hue::Bad => "bad",
            Hue::Wait => "wait",
            Hue::Busy => "busy",
            Hue::Review => "review",
            Hue::Idle => "idle",
            Hue::Good => "good",
        }
    }

    /// What tells it apart without colours.
    pub fn sign(self) -> &'static str {
        match self {
            Hue::Bad => "✕",
            Hue::Wait => "?",
            Hue::Busy => "▸",
            Hue::Review => "◇",
            Hue::Idle => "–",
            Hue::Good => "✓",
        }
    }
}

impl ItemStory {
    pub fn hue(&self) -> Hue {
        Hue::of(self.status)
    }

    pub fn status_word(&self) -> String {
        self.status.map_or_else(
            || "removed".to_owned(),
            |status| status.as_str().replace('_', " "),
        )
    }

    pub fn retries(&self) -> usize {
        self.moves.iter().filter(|moved| moved.is_retry).count()
    }

    /// For how long it had each status that it had, until `now`.
    pub fn stays(&self, now: Timestamp) -> impl Iterator<Item = (Status, Timestamp, Timestamp)> {
        let ends = self.moves.iter().skip(1).map(|moved| moved.at).chain([now]);
        self.moves
            .iter()
            .zip(ends)
            .map(|(moved, end)| (moved.to, moved.at, end.max(moved.at)))
    }

    /// Seconds in which `is_meant` was so.
    pub fn seconds(&self, now: Timestamp, is_meant: impl Fn(Status) -> bool) -> u64 {
        let stays = self.stays(now).filter(|(status, ..)| is_meant(*status));
        stays
            .map(|(_, from, to)| (to - from).num_seconds().unsigned_abs())
            .sum()
    }
}

impl RunStory {
    pub fn hue(&self) -> Hue {
        match self.outcome {
            None if self.ended.is_some() => Hue::Idle,
            outcome => Hue::of_outcome(outcome),
        }
    }

    pub fn outcome_word(&self) -> String {
        match self.outcome {
            Some(outcome) => outcome.as_str().replace('_', " "),
            // What a damaged run came to is not known.
            None if self.ended.is_some() => "damaged".to_owned(),
            None => "running".to_owned(),
        }
    }
}
