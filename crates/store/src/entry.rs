//! One line of the event log. Knows nothing of files.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use tavern_core::cap::CapShare;
use tavern_core::event::Kind;
use tavern_core::lease::{Lease, Token};
use tavern_core::monitor::{Reaction, Symptom, Urgency};
use tavern_core::position::ItemPosition;
use tavern_core::schedule::ScheduleMark;
use tavern_core::states::StateKeys;
use tavern_core::task::{Status, TaskId, Timestamp};

/// The `agent` of external edits in the log.
pub const HAND: &str = "hand";

/// The `agent` of changes that git brought, in the log. No agent can have this name.
pub(super) const BY_GIT: &str = "git itself";

/// A log line of a change that Tavern did not make contains one of these.
pub(super) const BY_HAND: [&str; 2] = ["\"agent\":\"hand\"", "\"agent\":\"git itself\""];

/// The cause that identifies a change of the text around the items.
pub(super) const PROSE: &str = "the text around the items";

/// The cause of a status change of an unmoved item: the lanes or their meaning changed.
pub(super) const LANES: &str = "what its heading means was changed";

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Entry {
    /// Sequence number; grows by one with each line of a board, forever.
    pub seq: u64,
    /// The last line of the change that this one is part of; without that line, the change never happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
    pub time: Timestamp,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The actor; for an item taken from its holder, that holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The actor that took the item from `agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The reason, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The `seq` of the event that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// The urgency of a message, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urgency: Option<Urgency>,
    /// The symptom that a diagnosis found, and the reaction to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symptom: Option<Symptom>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deed: Option<Reaction>,
    /// The share of a cap that usage has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<CapShare>,
    /// For a delivered message, the `seq` of the event that sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// The time up to which a schedule is settled: its due items were queued, or will not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleMark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// For submitted work: whether its commands passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed: bool,
    /// The change of the text. Its statuses are those that the text shows.
    #[serde(flatten)]
    pub change: TextChange,
    /// The item's status before and after, where the text does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<(Status, Status)>,
    /// The item's stored state from then on; absent: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateKeys>,
    /// The item's previous position, if it was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<ItemPosition>,
    /// The item's new position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put: Option<ItemPosition>,
    /// The line that stands for an item that its owner took from the agents by a mark in its box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseEntry>,
}

/// The change of a queue's text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Keys", into = "Keys")]
pub enum TextChange {
    #[default]
    Nothing,
    /// An added item; `from` is its status in the archive, or in the lane to which it was appended.
    Added {
        from: Option<Status>,
        to: Status,
        after: String,
    },
    /// A removed item.
    Removed { from: Status, before: String },
    /// An edited item; `moved` has the old and the new status.
    Edited {
        before: String,
        after: String,
        moved: Option<(Status, Status)>,
    },
    /// The text around the items.
    Prose { before: String, after: String },
}

/// The keys of a line that describe its text change.
#[derive(Serialize, Deserialize)]
struct Keys {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Status>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<Status>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// The change of the task's lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseEntry {
    Put(Box<Lease>),
    Drop,
}

impl Entry {
    pub fn new(kind: Kind, time: Timestamp) -> Entry {
        Entry {
            seq: 0,
            through: None,
            time,
            kind,
            task: None,
            queue: None,
            agent: None,
            by: None,
            token: None,
            run: None,
            cause: None,
            undoes: None,
            urgency: None,
            symptom: None,
            share: None,
            deed: None,
            sent: None,
            schedule: None,
            commit: None,
            passed: false,
            change: TextChange::Nothing,
            moved: None,
            state: None,
            left: None,
            put: None,
            marked: None,
            lease: None,
        }
    }

    /// Returns the item's status before, if the event changed it.
    pub fn from(&self) -> Option<Status> {
        self.moved.map(|(from, _)| from).or(self.change.from())
    }

    /// Returns the item's status afterwards, if the event changed it.
    pub fn to(&self) -> Option<Status> {
        self.moved.map(|(_, to)| to).or(self.change.to())
    }

    /// Returns true if the item has ended or is dead afterwards.
    pub(super) fn is_end(&self) -> bool {
        self.to()
            .is_some_and(|to| to.is_ended() || to == Status::Dead)
    }

    /// Returns true if the event changed an item, or its status.
    pub fn is_of_item(&self) -> bool {
        self.change.is_of_item() || self.moved.is_some()
    }

    /// Returns the actor, if known.
    pub fn actor(&self) -> Option<&str> {
        let is_taken = matches!(self.kind, Kind::Withdrawn | Kind::Reaped);
        self.by
            .as_deref()
            .or_else(|| self.agent.as_deref().filter(|_| !is_taken))
    }

    /// Sets `actor` as the actor, unless the entry names one.
    pub(super) fn done_by(&mut self, actor: &str) {
        let place = if matches!(self.kind, Kind::Withdrawn | Kind::Reaped) {
            &mut self.by
        } else {
            &mut self.agent
        };
        place.get_or_insert_with(|| actor.to_owned());
    }

    /// Returns the last event of the save that this entry belongs to.
    pub(super) fn save(&self) -> u64 {
        self.through.unwrap_or(self.seq)
    }

    /// Returns true if the change was made outside of Tavern.
    pub(super) fn is_by_hand(&self) -> bool {
        self.is_typed() || self.is_by_git()
    }

    /// Returns true if the change came with a person's save.
    pub(super) fn is_typed(&self) -> bool {
        self.agent.as_deref() == Some(HAND)
    }

    /// Returns true if the change came with a text that git wrote.
    pub(super) fn is_by_git(&self) -> bool {
        self.agent.as_deref() == Some(BY_GIT)
    }

    /// Returns true if `task` did not exist before the event, or had no ID.
    pub(super) fn is_first_of(&self, task: &TaskId) -> bool {
        match self.change.before() {
            Some(before) => !before.contains(task.as_str()),
            None => self.kind == Kind::Added,
        }
    }

    /// Returns true if a person chats with the agent that claimed the item.
    pub fn is_chat(&self) -> bool {
        matches!(&self.lease, Some(LeaseEntry::Put(lease)) if lease.back_to.is_some())
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Entry::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        let mut entry = Entry::deserialize(deserializer)?;
        if let TextChange::Edited { before, after, .. } = &mut entry.change
            && entry.cause.as_deref() == Some(PROSE)
        {
            entry.change = TextChange::Prose {
                before: std::mem::take(before),
                after: std::mem::take(after),
            };
        }
        Ok(entry)
    }
}

impl TextChange {
    /// Returns true if an item was changed.
    pub fn is_of_item(&self) -> bool {
        !matches!(self, TextChange::Nothing | TextChange::Prose { .. })
    }

    pub fn before(&self) -> Option<&str> {
        match self {
            TextChange::Removed { before, .. }
            | TextChange::Edited { before, .. }
            | TextChange::Prose { before, .. } => Some(before),
            TextChange::Nothing | TextChange::Added { .. } => None,
        }
    }

    pub fn after(&self) -> Option<&str> {
        match self {
            TextChange::Added { after, .. }
            | TextChange::Edited { after, .. }
            | TextChange::Prose { after, .. } => Some(after),
            TextChange::Nothing | TextChange::Removed { .. } => None,
        }
    }

    /// Returns the status before, if the change includes the status.
    pub fn from(&self) -> Option<Status> {
        match self {
            TextChange::Added { from, .. } => *from,
            TextChange::Removed { from, .. } => Some(*from),
            TextChange::Edited { moved, .. } => moved.map(|(from, _)| from),
            TextChange::Nothing | TextChange::Prose { .. } => None,
        }
    }

    /// Returns the status afterwards, if the change includes the status.
    pub fn to(&self) -> Option<Status> {
        match self {
            TextChange::Added { to, .. } => Some(*to),
            TextChange::Edited { moved, .. } => moved.map(|(_, to)| to),
            TextChange::Nothing | TextChange::Removed { .. } | TextChange::Prose { .. } => None,
        }
    }
}

impl From<Keys> for TextChange {
    fn from(
        Keys {
            from,
            to,
            before,
            after,
        }: Keys,
    ) -> TextChange {
        match (before, after) {
            (Some(before), Some(after)) => TextChange::Edited {
                before,
                after,
                moved: from.zip(to),
            },
            (None, Some(after)) => TextChange::Added {
                from,
                to: to.unwrap_or(Status::Pending),
                after,
            },
            (Some(before), None) => TextChange::Removed {
                from: from.unwrap_or(Status::Pending),
                before,
            },
            (None, None) => TextChange::Nothing,
        }
    }
}

impl From<TextChange> for Keys {
    fn from(change: TextChange) -> Keys {
        let (from, to) = (change.from(), change.to());
        let text = |text: Option<&str>| text.map(str::to_owned);
        Keys {
            from,
            to,
            before: text(change.before()),
            after: text(change.after()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::sample::subsequence;

    use super::*;

    const PAIRS: &[&str] = &[
        r#""through":18446744073709551615"#,
        r#""task":"T-1""#,
        r#""queue":"../x""#,
        r#""token":7"#,
        r#""cause":"the text around the items""#,
        r#""undoes":3"#,
        r#""sent":2"#,
        r#""commit":"\u0000\ud83d\ude00""#,
        r#""from":"pending""#,
        r#""to":"completed""#,
        r#""before":"""#,
        r#""after":"a\nb""#,
        r#""later":[{"x":1e999}]"#,
        r#""run":null"#,
        r#""agent":1"#,
        r#""seq":-1"#,
    ];

    proptest::proptest! {
        #[test]
        fn what_is_read_of_a_line_is_written_as_it_was_read(pairs in subsequence(PAIRS, 0..6)) {
            let pairs: String = pairs.iter().map(|pair| format!(",{pair}")).collect();
            let line = format!(r#"{{"seq":1,"time":"2026-01-01T01:00:00.5+01:00","kind":"edited"{pairs}}}"#);
            for length in 0..line.len() {
                let _ = serde_json::from_slice::<Entry>(&line.as_bytes()[..length]).expect_err("half a line");
            }
            if let Ok(entry) = serde_json::from_str::<Entry>(&line) {
                let written = serde_json::to_string(&entry).expect("it is plain data");
                assert_eq!(serde_json::from_str::<Entry>(&written).ok(), Some(entry), "{line}");
            }
        }
    }

    #[test]
    fn each_change_is_written_as_keys_of_its_line_and_read_back() {
        let [before, after] = ["a", "b"].map(str::to_owned);
        let edited = |moved| TextChange::Edited {
            before: before.clone(),
            after: after.clone(),
            moved,
        };
        let (from, to) = (Status::Pending, Status::Completed);
        let prose = TextChange::Prose {
            before: before.clone(),
            after: after.clone(),
        };
        for (change, cause, keys) in [
            (TextChange::Nothing, None, ""),
            (
                TextChange::Added {
                    from: None,
                    to,
                    after: after.clone(),
                },
                None,
                r#","to":"completed","after":"b""#,
            ),
            (
                TextChange::Removed {
                    from,
                    before: before.clone(),
                },
                None,
                r#","from":"pending","before":"a""#,
            ),
            (edited(None), None, r#","before":"a","after":"b""#),
            (
                edited(Some((from, to))),
                None,
                r#","from":"pending","to":"completed","before":"a","after":"b""#,
            ),
            (
                prose,
                Some(PROSE),
                r#","cause":"the text around the items","before":"a","after":"b""#,
            ),
        ] {
            let cause = cause.map(str::to_owned);
            let entry = Entry {
                cause,
                change,
                ..Entry::new(Kind::Edited, Timestamp::default())
            };
            let line = serde_json::to_string(&entry).expect("it is plain data");
            assert_eq!(
                line,
                format!(r#"{{"seq":0,"time":"1970-01-01T00:00:00Z","kind":"edited"{keys}}}"#)
            );
            assert_eq!(
                serde_json::from_str::<Entry>(&line).expect("it was just written"),
                entry
            );
        }
    }
}
