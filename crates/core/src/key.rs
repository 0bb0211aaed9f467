//! The keys of an item: the one table of them, with the shape of each one's value and whose it is.

use std::sync::LazyLock;

use crate::id::{BadId, TaskId};
use crate::lane::LaneKind;
use crate::near::{mistyped, slipped};
use crate::status::{Expected, Mode, OnFailure, Status};

/// What a key's value must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Priority,
    Id,
    Ids,
    Text,
    /// One word that names something of the configuration.
    Word,
    /// Several, set apart by commas if not written as a list.
    Words,
    /// One or several; a comma belongs to the text.
    Commands,
    Budget,
    Flag,
    /// `answer` or `change`.
    Expected,
    Count,
    Time,
    /// A length of time.
    Period,
    Status,
    /// `draft` or `pending`.
    Lane,
    /// Of a queue: headings, each with the lane that it is.
    Lanes,
    /// `start`, `merge` or both.
    Moments,
    Mode,
    OnFailure,
    /// A flag, or numbers.
    Watch,
}

/// Who writes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A person, or an agent that adds an item: no transition changes it.
    Person,
    /// Tavern, with each transition: it is part of the item's state.
    State,
}

impl Owner {
    /// Whose keys a title line may have: one without an ID no program has written to.
    pub fn of_line(id: Option<&TaskId>) -> Owner {
        if id.is_some() {
            Owner::State
        } else {
            Owner::Person
        }
    }
}

macro_rules! keys {
    ($($key:ident $name:literal $shape:ident $owner:ident,)*) => {
        /// A key that Tavern knows. Others are kept as they stand.
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
        }
    };
}

keys! {
    Priority    "priority"     Priority  Person,
    After       "after"        Ids       Person,
    Due         "due"          Time      Person,
    Needs       "needs"        Words     Person,
    Role        "role"         Word      Person,
    Tags        "tags"         Words     Person,
    Parent      "parent"       Id        Person,
    Runner      "runner"       Word      Person,
    Model       "model"        Text      Person,
    DoneWhen    "done_when"    Commands  Person,
    Touches     "touches"      Words     Person,
    Budget      "budget"       Budget    Person,
    Worktree    "worktree"     Flag      Person,
    Result      "result"       Expected  Person,
    Attempt     "attempt"      Count     State,
    Returns     "returns"      Count     State,
    MaxAttempts "max_attempts" Count     Person,
    MaxWait     "max_wait"     Period    Person,
    NotBefore   "not_before"   Time      State,
    Agent       "agent"        Text      State,
    Started     "started"      Time      State,
    Completed   "completed"    Time      State,
    Commit      "commit"       Text      State,
    Reason      "reason"       Text      State,
    Status      "status"       Status    State,
    Approve     "approve"      Moments   Person,
    Review      "review"       Words     Person,
    Question    "question"     Text      State,
    Answer      "answer"       Text      Person,
    Allowed     "allowed"      Flag      State,
    Author      "author"       Text      State,
    Approvals   "approvals"    Words     State,
    Rounds      "rounds"       Count     State,
    Mode        "mode"         Mode      State,
    OnFailure   "on_failure"   OnFailure Person,
    Retried     "retried"      Flag      State,
    Answers     "answers"      Count     State,
    Trigger     "trigger"      Text      Person,
    Lane        "lane"         Lane      Person,
    Watch       "watch"        Watch     Person,
    QueuedFor   "queued_for"   Text      Person,
}

impl Key {
    /// A person may mean it who types an item: a key of their own, or how it begins. Nobody has asked what they could answer.
    pub fn may_be_typed(self) -> bool {
        (self.owner() == Owner::Person && self != Key::Answer)
            || matches!(self, Key::Status | Key::NotBefore)
    }

    /// Tavern remembers it apart from the item's text ([`super::states`]).
    pub fn is_apart(self) -> bool {
        self.owner() == Owner::State
    }

    /// The key of this name, where a text may have it.
    pub fn of_text(name: &str) -> Option<Key> {
        Key::named(name).filter(|key| key.may_be_typed() || *key == Key::Answer)
    }

    /// Without it an item would be worked on too early, or too often, or its work be merged unseen.
    pub fn is_guard(self) -> bool {
        use Key::{After, Approve, Budget, DoneWhen, MaxAttempts, Needs, NotBefore, Review};
        matches!(
            self,
            After | Needs | NotBefore | Budget | MaxAttempts | DoneWhen | Approve | Review
        )
    }

    /// `value` is a word that the key takes, but for its case or one slip; or, of a status, what a lane is called whose items are not
    /// to be worked (`done`).
    pub fn nearly_takes(self, value: &str) -> bool {
        let names_lane = || LaneKind::named(value).is_some_and(|lane| lane != LaneKind::Pending);
        slipped(value, self.shape().words()).is_some() || self == Key::Status && names_lane()
    }

    /// The known key that `name` is but for one slip.
    pub fn nearest(name: &str) -> Option<Key> {
        if is_of_others(name) {
            return Some(Key::After);
        }
        slipped(name.trim_matches(QUOTES), Key::names_of_text()).and_then(Key::named)
    }

    /// The known key that `name` says, be it mistyped.
    pub fn meant(name: &str) -> Option<Key> {
        Key::named(name).or_else(|| {
            if Key::is_mistyped(name) {
                Key::nearest(name)
            } else {
                None
            }
        })
    }

    /// `name` is a known key, mistyped: what it says was meant to count.
    pub fn is_mistyped(name: &str) -> bool {
        let name = name.trim_matches(QUOTES);
        let is_of_state = Key::named(name).is_some_and(Key::is_apart);
        !is_of_state && mistyped(name, Key::names_of_text()).is_some() || is_of_others(name)
    }

    fn names_of_text() -> impl Iterator<Item = &'static str> {
        let names = Key::ALL.iter().map(|key| key.as_str());
        names.filter(|name| Key::of_text(name).is_some())
    }

    /// `name` is a word of others for `after` that stands in prose, too, such as `Blocked by` or `requires`.
    pub fn is_prose(name: &str) -> bool {
        let is_spelt_as_key =
            |(at, c): (usize, char)| matches!(c, '-' | '_') || at > 0 && c.is_ascii_uppercase();
        is_of_others(name) && !name.char_indices().any(is_spelt_as_key)
    }

    /// `name` says what waits for the item: the other way round than `after`.
    pub fn is_inverse(name: &str) -> bool {
        INVERSE.contains(&letters(name).as_str())
    }

    /// Words that say what an item waits for, or what waits for it, may begin with this one: `Depends on x`.
    pub fn may_begin_sentence(word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let names = OF_PROGRAMS.iter().chain(&OF_PEOPLE).chain(&INVERSE);
        let known = [Key::After.as_str(), Key::Needs.as_str()];
        !word.is_empty() && names.chain(&known).any(|name| name.starts_with(&word))
    }

    /// A key that guards the work, or a word for what waits, or is waited for, may begin with this letter. A quick look: not in mistyped ones.
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

    /// `name` is what other programs call `after`.
    pub fn is_of_programs(name: &str) -> bool {
        !name.contains(' ') && OF_PROGRAMS.contains(&letters(name).as_str())
    }
}

/// The words for 0 to 3.
pub const PRIORITIES: [&str; 4] = ["critical", "high", "medium", "low"];

const QUOTES: [char; 2] = ['"', '\''];

/// What other programs call `after`, and people.
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
/// The other way round: what waits for the item.
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
    /// The words that it takes, where they are all that it takes, or nearly.
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

    /// What to write, for the hint of a wrong value.
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
            Shape::Period => "write a length of time such as 12h or 2d; 0 for no limit",
            Shape::Status => {
                "write draft, pending, in_progress, in_review, reviewing, waiting, approved, completed, dead or cancelled"
            }
            Shape::Lane => "write draft or pending",
            Shape::Lanes => {
                "write headings with the lanes that they are, such as {Fertig: completed, Offen: pending}"
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
