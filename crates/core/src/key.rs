//! The keys of an item: the one table of them, with the shape of each value and its owner.

use std::sync::LazyLock;

use crate::id::{BadId, TaskId};
use crate::lane::LaneKind;
use crate::status::{Expected, Mode, OnFailure, Status};
use crate::suggestion::{mistyped, slipped};

/// The required shape of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Priority,
    Id,
    Ids,
    Text,
    /// One word that names something of the configuration.
    Word,
    /// Several words, separated by commas if not written as a list.
    Words,
    /// One or several commands; a comma belongs to the text.
    Commands,
    Budget,
    Flag,
    /// `answer` or `change`.
    Expected,
    Count,
    Time,
    /// A duration.
    Period,
    Status,
    /// `draft` or `pending`.
    Lane,
    /// Queues only: headings, each with its lane.
    Lanes,
    /// `start`, `merge` or both.
    Moments,
    Mode,
    OnFailure,
    /// A flag, or numbers.
    Watch,
}

/// The owner of a key, which writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A person, or an agent that adds an item; no transition changes the key.
    Person,
    /// Tavern, with each transition: the key is part of the item's state.
    State,
}

/// Further uses of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// It guards the work: without it an item would start too early or too often, or be merged unseen.
    Guard,
    /// A planner may set it.
    Planned,
    /// A schedule may set it.
    Scheduled,
}

impl Owner {
    /// Returns whose keys a title line may have. No program has written to a line without an ID.
    pub fn of_line(id: Option<&TaskId>) -> Owner {
        if id.is_some() {
            Owner::State
        } else {
            Owner::Person
        }
    }
}

macro_rules! keys {
    ($($key:ident $name:literal $shape:ident $owner:ident [$($use:ident)*],)*) => {
        /// A key that Tavern knows. Others are kept as written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Key { $($key,)* }

        impl Key {
            pub const ALL: [Key; [$($name),*].len()] = [$(Key::$key),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Key::$key => $name,)* }
            }

            pub fn named(name: &str) -> Option<Key> {
                match name {
                    $($name => Some(Key::$key),)*
                    _ => None,
                }
            }

            pub fn shape(self) -> Shape {
                match self { $(Key::$key => Shape::$shape,)* }
            }

            pub fn owner(self) -> Owner {
                match self { $(Key::$key => Owner::$owner,)* }
            }

            /// Returns true if the key has this use.
            pub fn is_for(self, use_: KeyUse) -> bool {
                let uses: &[KeyUse] = match self { $(Key::$key => &[$(KeyUse::$use),*],)* };
                uses.contains(&use_)
            }
        }
    };
}

keys! {
    Priority    "priority"     Priority  Person [Planned Scheduled],
    After       "after"        Ids       Person [Guard Planned Scheduled],
    Due         "due"          Time      Person [],
    Needs       "needs"        Words     Person [Guard Scheduled],
    Role        "role"         Word      Person [Planned Scheduled],
    Tags        "tags"         Words     Person [Planned Scheduled],
    Parent      "parent"       Id        Person [],
    Runner      "runner"       Word      Person [Scheduled],
    Model       "model"        Text      Person [Scheduled],
    DoneWhen    "done_when"    Commands  Person [Guard Planned Scheduled],
    Touches     "touches"      Words     Person [Planned Scheduled],
    Budget      "budget"       Budget    Person [Guard Scheduled],
    Worktree    "worktree"     Flag      Person [Planned Scheduled],
    Result      "result"       Expected  Person [Planned Scheduled],
    Attempt     "attempt"      Count     State  [],
    Returns     "returns"      Count     State  [],
    MaxAttempts "max_attempts" Count     Person [Guard Scheduled],
    MaxWait     "max_wait"     Period    Person [Scheduled],
    NotBefore   "not_before"   Time      State  [Guard],
    Agent       "agent"        Text      State  [],
    Started     "started"      Time      State  [],
    Completed   "completed"    Time      State  [],
    Commit      "commit"       Text      State  [],
    Reason      "reason"       Text      State  [],
    Status      "status"       Status    State  [],
    Approve     "approve"      Moments   Person [Guard Scheduled],
    Review      "review"       Words     Person [Guard Scheduled],
    Question    "question"     Text      State  [],
    Answer      "answer"       Text      Person [],
    Allowed     "allowed"      Flag      State  [],
    Author      "author"       Text      State  [],
    Approvals   "approvals"    Words     State  [],
    Rounds      "rounds"       Count     State  [],
    Mode        "mode"         Mode      State  [],
    OnFailure   "on_failure"   OnFailure Person [],
    Retried     "retried"      Flag      State  [],
    Answers     "answers"      Count     State  [],
    Trigger     "trigger"      Text      Person [],
    Lane        "lane"         Lane      Person [],
    Watch       "watch"        Watch     Person [],
    QueuedFor   "queued_for"   Text      Person [],
}

impl Key {
    /// Returns true if a person may type the key in a new item: a key of their own, or one for its start.
    /// `answer` is not, as there is no question yet.
    pub fn may_be_typed(self) -> bool {
        (self.owner() == Owner::Person && self != Key::Answer)
            || matches!(self, Key::Status | Key::NotBefore)
    }

    /// Returns true if Tavern keeps it apart from the item's text ([`super::states`]).
    pub fn is_apart(self) -> bool {
        self.owner() == Owner::State
    }

    /// Returns the key of this name, if it may stand in a text.
    pub fn of_text(name: &str) -> Option<Key> {
        Key::named(name).filter(|key| key.may_be_typed() || *key == Key::Answer)
    }

    /// Returns the keys with this use.
    pub fn all_for(use_: KeyUse) -> impl Iterator<Item = Key> {
        Key::ALL.into_iter().filter(move |key| key.is_for(use_))
    }

    /// Returns true if the key guards the work.
    pub fn is_guard(self) -> bool {
        self.is_for(KeyUse::Guard)
    }

    /// Returns true if the key takes `value` but for its case or one typo. For a status, also if it names a
    /// lane that agents skip (`done`).
    pub fn nearly_takes(self, value: &str) -> bool {
        let names_lane = || LaneKind::named(value).is_some_and(|lane| lane != LaneKind::Pending);
        slipped(value, self.shape().words()).is_some() || self == Key::Status && names_lane()
    }

    /// Returns the known key that `name` is but for one typo.
    pub fn nearest(name: &str) -> Option<Key> {
        if is_of_others(name) {
            return Some(Key::After);
        }
        slipped(name.trim_matches(QUOTES), Key::names_of_text()).and_then(Key::named)
    }

    /// Returns the known key that `name` means, also with a typo.
    pub fn meant(name: &str) -> Option<Key> {
        Key::named(name).or_else(|| {
            if Key::is_mistyped(name) {
                Key::nearest(name)
            } else {
                None
            }
        })
    }

    /// Returns true if `name` is a known key with a typo, so that it was meant to count.
    pub fn is_mistyped(name: &str) -> bool {
        let name = name.trim_matches(QUOTES);
        let is_of_state = Key::named(name).is_some_and(Key::is_apart);
        !is_of_state && mistyped(name, Key::names_of_text()).is_some() || is_of_others(name)
    }

    fn names_of_text() -> impl Iterator<Item = &'static str> {
        let names = Key::ALL.iter().map(|key| key.as_str());
        names.filter(|name| Key::of_text(name).is_some())
    }

    /// Returns true if `name` is a foreign word for `after` that occurs in prose, too, such as `Blocked by`
    /// or `requires`.
    pub fn is_prose(name: &str) -> bool {
        let is_spelt_as_key =
            |(at, c): (usize, char)| matches!(c, '-' | '_') || at > 0 && c.is_ascii_uppercase();
        is_of_others(name) && !name.char_indices().any(is_spelt_as_key)
    }

    /// Returns true if `name` is the inverse of `after`.
    pub fn is_inverse(name: &str) -> bool {
        INVERSE.contains(&letters(name).as_str())
    }

    /// Returns true if a sentence about dependencies may begin with this word: `Depends on x`.
    pub fn may_begin_sentence(word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let names = OF_PROGRAMS.iter().chain(&OF_PEOPLE).chain(&INVERSE);
        let known = [Key::After.as_str(), Key::Needs.as_str()];
        !word.is_empty() && names.chain(&known).any(|name| name.starts_with(&word))
    }

    /// Returns true if a guarding key, or a word for a dependency in either direction, may begin with this
    /// letter. A quick check that leaves out typos.
    pub fn may_begin_with(letter: u8) -> bool {
        static INITIALS: LazyLock<[bool; 256]> = LazyLock::new(|| {
            let guards = Key::ALL.iter().filter(|key| key.is_guard());
            let others = OF_PROGRAMS.iter().chain(&OF_PEOPLE).chain(&INVERSE);
            let mut initials = [false; 256];
            for name in guards.map(|key| key.as_str()).chain(others.copied()) {
                let initial = name.as_bytes()[0];
                initials[usize::from(initial)] = true;
                initials[usize::from(initial.to_ascii_uppercase())] = true;
            }
            initials
        });
        INITIALS[usize::from(letter)]
    }

    /// Returns true if other programs use `name` for `after`.
    pub fn is_of_programs(name: &str) -> bool {
        !name.contains(' ') && OF_PROGRAMS.contains(&letters(name).as_str())
    }
}

/// Words for the priorities 0 to 3.
pub const PRIORITIES: [&str; 4] = ["critical", "high", "medium", "low"];

const QUOTES: [char; 2] = ['"', '\''];

/// Words for `after` used by other programs, and by people.
const OF_PROGRAMS: [&str; 5] = ["blockedby", "dependson", "depends", "deps", "requires"];
const OF_PEOPLE: [&str; 19] = [
    "blocked",
    "blockedon",
    "blockeduntil",
    "blocker",
    "blockers",
    "dependencies",
    "dependency",
    "dependenton",
    "dependsupon",
    "predecessor",
    "predecessors",
    "prereq",
    "prereqs",
    "prerequisite",
    "prerequisites",
    "waitfor",
    "waitsfor",
    "waitingfor",
    "waitingon",
];
/// Words for the inverse of `after`.
const INVERSE: [&str; 5] = ["before", "blocking", "blocks", "precedes", "unblocks"];

fn is_of_others(name: &str) -> bool {
    let letters = letters(name);
    OF_PROGRAMS
        .iter()
        .chain(&OF_PEOPLE)
        .any(|other| *other == letters)
}

fn letters(name: &str) -> String {
    name.to_lowercase().replace(['-', '_', ' '], "")
}

impl Shape {
    /// Returns the words that the shape takes, if it takes no others, or few.
    fn words(self) -> Vec<&'static str> {
        match self {
            Shape::Priority => PRIORITIES.to_vec(),
            Shape::Flag => vec!["true", "false"],
            Shape::Expected => Expected::ALL.map(Expected::as_str).to_vec(),
            Shape::Status => Status::ALL.map(Status::as_str).to_vec(),
            Shape::Lane => vec![Status::Draft.as_str(), Status::Pending.as_str()],
            Shape::Mode => Mode::ALL.map(Mode::as_str).to_vec(),
            Shape::OnFailure => OnFailure::ALL.map(OnFailure::as_str).to_vec(),
            _ => Vec::new(),
        }
    }

    /// Returns the expected value, for the hint about a wrong one.
    pub fn expects(self) -> &'static str {
        match self {
            Shape::Priority => "write 0 (most urgent) to 9, or critical, high, medium or low",
            Shape::Id => BadId::HINT,
            Shape::Ids => "write an ID or a list of IDs, such as [T-k3f9, AUTH-7]",
            Shape::Text => "write one text, in double quotes if it has commas or colons",
            Shape::Word => "write one word of letters, digits, `-`, `_` and `.`",
            Shape::Words => "write a list, such as [one, two]",
            Shape::Commands => "write a command, or a list of them",
            Shape::Budget => {
                "write {usd: 2.00, minutes: 30, tokens: 500000, turns: 50, memory_mb: 2048} or some of these"
            }
            Shape::Flag => "write true or false",
            Shape::Expected => "write `answer` or `change`",
            Shape::Count => "write a whole number",
            Shape::Time => {
                "write a time such as 2026-11-22T10:00:00Z, or 2026-11-22 10:00 where you are"
            }
            Shape::Period => "write a duration such as 12h or 2d; 0 for no limit",
            Shape::Status => {
                "write draft, pending, in_progress, in_review, reviewing, waiting, approved, completed, dead or cancelled"
            }
            Shape::Lane => "write draft or pending",
            Shape::Lanes => {
                "write headings with their lanes, such as {Fertig: completed, Offen: pending}"
            }
            Shape::Moments => "write start, merge or [start, merge]",
            Shape::Mode => "write execute, delegate, plan, break_up or unify",
            Shape::OnFailure => "write retry, escalate or go_on",
            Shape::Watch => {
                "write true, false, or {failures: 3, repeats: 5, tokens: 50000, stuck: 5m, late: 80, nudges: 5} or some of these"
            }
        }
    }
}
