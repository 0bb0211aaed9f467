//! The content of the page, as plain values. Knows neither files nor HTML.

use crate::sanitize::{Extract, Legible};
use tavern_core::task::{Status, Timestamp};
use tavern_run::runner::Outcome;

/// The history of some queues.
#[derive(Debug)]
pub(super) struct Chronicle {
    /// Name of the board.
    pub board: Legible,
    pub made: Timestamp,
    /// Earlier runs and events are left out.
    pub since: Option<Timestamp>,
    pub queues: Vec<Legible>,
    /// The items in the order of their queues, then those that are no longer in one.
    pub items: Vec<ItemStory>,
    /// Number of omitted items.
    pub items_left_out: usize,
    /// The newest runs, oldest first.
    pub runs: Vec<RunStory>,
    /// Number of omitted earlier runs.
    pub runs_left_out: usize,
    /// Usage of each run, omitted ones too.
    pub shares: Vec<RunShare>,
}

/// An item and its history.
#[derive(Debug)]
pub(super) struct ItemStory {
    /// Its ID, or else its place.
    pub name: Legible,
    pub title: Legible,
    pub queue: Legible,
    /// `None` if it is no longer in a queue or an archive.
    pub status: Option<Status>,
    pub priority: u8,
    pub role: Legible,
    /// The rest of its text.
    pub text: Extract,
    /// The items that it depends on; `after_items` has the indices of those on the page.
    pub after: Vec<Legible>,
    pub after_items: Vec<usize>,
    pub parent: Option<usize>,
    /// Reason for its status.
    pub reason: Legible,
    /// Missing requirements.
    pub waits_for: Legible,
    /// Action that a person can take.
    pub need: Option<OpenNeed>,
    /// Status changes, the oldest first.
    pub moves: Vec<Move>,
    /// Indices of its runs, oldest first.
    pub runs: Vec<usize>,
}

/// An item's need for a person.
#[derive(Debug)]
pub(super) struct OpenNeed {
    /// The most pressing need has the lowest rank.
    pub rank: usize,
    /// Kind of need, in a word.
    pub word: &'static str,
    pub why: Legible,
    /// Command to type.
    pub todo: Legible,
}

/// A change of an item's status.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub at: Timestamp,
    pub to: Status,
    /// The agent or person that caused it, and the reason.
    pub who: Legible,
    pub why: Legible,
    /// Whether it came back after a failure or a rejection.
    pub is_retry: bool,
}

/// A run and its result.
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
    /// `None` while it runs.
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
    /// Command that prints the whole text.
    pub whole: Legible,
}

/// Format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartForm {
    Plain,
    /// Each line begins with a mark of its change.
    Patch,
}

/// Usage of one run.
#[derive(Debug)]
pub(super) struct RunShare {
    pub agent: Legible,
    pub role: Legible,
    /// The same money and tokens, split by model.
    pub models: Vec<(Legible, f64, u64)>,
    pub day: String,
    pub usd: f64,
    pub tokens: u64,
    pub seconds: u64,
}

/// The state of an item or a run, as a colour. Words beside it tell the same.
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

    /// Returns the hue of a run's outcome.
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

    /// Returns its CSS class.
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

    /// Returns the sign that distinguishes it without colours.
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
        self.status
            .map_or_else(|| "removed".to_owned(), |status| status.to_string())
    }

    pub fn retries(&self) -> usize {
        self.moves.iter().filter(|moved| moved.is_retry).count()
    }

    /// Returns each status that the item had, with its begin and end, until `now`.
    pub fn stays(&self, now: Timestamp) -> impl Iterator<Item = (Status, Timestamp, Timestamp)> {
        let ends = self.moves.iter().skip(1).map(|moved| moved.at).chain([now]);
        self.moves
            .iter()
            .zip(ends)
            .map(|(moved, end)| (moved.to, moved.at, end.max(moved.at)))
    }

    /// Returns the seconds in statuses that `is_meant` selects.
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
            Some(outcome) => outcome.to_string(),
            // The result of a damaged run is unknown.
            None if self.ended.is_some() => "damaged".to_owned(),
            None => "running".to_owned(),
        }
    }
}
