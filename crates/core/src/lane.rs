//! Lanes, and the table from an item's place to its status.
//!
//! Knows nothing of Markdown: a heading comes as its bare text.

use crate::status::Status;
use crate::suggestion::mistyped;

/// The meaning of a lane's heading for the items beneath it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneKind {
    Draft,
    Pending,
    InProgress,
    /// Holds in_review, reviewing and approved; a `status:` key tells them apart.
    InReview,
    Waiting,
    /// Holds completed and cancelled.
    Completed,
    Dead,
    /// Where other programs, such as Obsidian's Kanban, put finished items. Its items have ended, and nothing
    /// is ever moved there. It alone does not make a document one with lanes.
    Archive,
}

impl LaneKind {
    /// Lanes that items are moved to.
    pub const ALL: [LaneKind; 7] = [
        LaneKind::Draft,
        LaneKind::Pending,
        LaneKind::InProgress,
        LaneKind::InReview,
        LaneKind::Waiting,
        LaneKind::Completed,
        LaneKind::Dead,
    ];

    /// Returns the lane for items of this status.
    pub fn of(status: Status) -> LaneKind {
        match status {
            Status::Reviewing | Status::Approved => LaneKind::InReview,
            Status::Cancelled => LaneKind::Completed,
            status => LANES
                .iter()
                .find(|(_, own, ..)| *own == status)
                .map_or(LaneKind::Pending, |(kind, ..)| *kind),
        }
    }

    /// Returns the status of an open item in this lane without a key.
    pub fn status(self) -> Status {
        LANES[self as usize].1
    }

    /// Returns the heading as `tavern init` writes it.
    pub fn name(self) -> &'static str {
        LANES[self as usize].2
    }

    /// Returns the lane that a heading names. Case, emoji, emphasis, punctuation, counts (`Done (3)`) and the
    /// words "items", "tasks", "list", "queue" and "lane" behind the name don't matter.
    pub fn named(heading: &str) -> Option<LaneKind> {
        // No lane has a longer name, and most headings of a long document are no lanes.
        if heading.len() > 80 {
            return None;
        }
        let name = bare_name(heading);
        let mut name = name.as_str();
        for suffix in [" items", " tasks", " list", " queue", " lane"] {
            name = name.strip_suffix(suffix).unwrap_or(name);
        }
        LaneKind::called(name)
    }

    /// As [`LaneKind::named`], with names of the owner; of several the first.
    pub fn mapped(lanes: &[(String, LaneKind)], heading: &str) -> Option<LaneKind> {
        let spelt = spelt(heading);
        lanes
            .iter()
            .find(|(name, _)| self::spelt(name) == spelt)
            .map(|(_, kind)| *kind)
    }

    /// Returns the lane that a heading names with an unmistakable typo, as [`mistyped`] decides for words.
    /// `Undone` is not `Done`.
    pub fn nearest(heading: &str) -> Option<LaneKind> {
        let name: String = bare_name(heading).chars().take(40).collect();
        let begins_alike = |known: &str| {
            name.split(' ')
                .zip(known.split(' '))
                .all(|(one, other)| one.chars().next() == other.chars().next())
        };
        let known = LANES
            .iter()
            .flat_map(|(_, _, _, names)| names.iter().copied());
        mistyped(&name, known.filter(|known| begins_alike(known))).and_then(LaneKind::called)
    }

    fn called(name: &str) -> Option<LaneKind> {
        LANES
            .iter()
            .find(|(_, _, _, names)| names.contains(&name))
            .map(|(kind, ..)| *kind)
    }
}

/// A lane, the status of its open items, its heading, and its other names.
type Row = (LaneKind, Status, &'static str, &'static [&'static str]);

const LANES: [Row; 8] = [
    (
        LaneKind::Draft,
        Status::Draft,
        "Draft",
        &["draft", "drafts"],
    ),
    (
        LaneKind::Pending,
        Status::Pending,
        "Pending",
        &["pending", "todo", "todos", "to do", "backlog"],
    ),
    (
        LaneKind::InProgress,
        Status::InProgress,
        "In Progress",
        &["in progress", "doing", "wip"],
    ),
    (
        LaneKind::InReview,
        Status::InReview,
        "In Review",
        &["in review", "review"],
    ),
    (
        LaneKind::Waiting,
        Status::Waiting,
        "Waiting",
        &["waiting", "blocked", "on hold"],
    ),
    (
        LaneKind::Completed,
        Status::Completed,
        "Completed",
        &["completed", "complete", "done"],
    ),
    (
        LaneKind::Dead,
        Status::Dead,
        "Dead Letter",
        &["dead letter", "dead letters", "dead", "failed"],
    ),
    (
        LaneKind::Archive,
        Status::Completed,
        "Archive",
        &["archive", "archived"],
    ),
];

/// The word between asterisks under a column of finished cards in Obsidian's Kanban, in each of its languages.
const COMPLETE: [&str; 8] = [
    "Complete",
    "Fertiggestellt",
    "Completato",
    "完了",
    "완료됨",
    "Concluído",
    "Выполнено",
    "完成",
];

/// Returns true if a paragraph right under a heading marks its items as done.
pub fn is_complete_mark(paragraph: &str) -> bool {
    paragraph
        .strip_prefix("**")
        .and_then(|rest| rest.strip_suffix("**"))
        .is_some_and(|word| COMPLETE.contains(&word))
}

/// Returns a heading's letters and digits in lower case without a count (`Done (3)`), or the whole heading if
/// it has neither.
fn spelt(heading: &str) -> String {
    let is_count = |text: &str| {
        text.strip_suffix(')')
            .is_some_and(|count| count.bytes().all(|it| it.is_ascii_digit()))
    };
    let bare = heading
        .rsplit_once('(')
        .filter(|(_, behind)| is_count(behind))
        .map_or(heading, |(bare, _)| bare);
    let spelt: String = bare
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    if spelt.is_empty() {
        bare.trim().to_owned()
    } else {
        spelt
    }
}

/// Returns the letters of a heading in lower case, with one space for everything between them.
fn bare_name(heading: &str) -> String {
    let mut name = String::with_capacity(heading.len());
    for c in heading.chars() {
        if c.is_alphabetic() {
            name.extend(c.to_lowercase());
        } else if !name.is_empty() && !name.ends_with(' ') && c != '\'' {
            name.push(' ');
        }
    }
    name.truncate(name.trim_end().len());
    name
}

/// The lanes of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneSet(u8);

impl LaneSet {
    pub fn insert(&mut self, kind: LaneKind) {
        self.0 |= 1 << kind as u8;
    }

    pub fn has(self, kind: LaneKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The place of an item, as far as its status depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanePlace {
    Lane(LaneKind),
    /// Under no lane: in a document without lanes, or before the first heading of one with lanes.
    Loose,
    /// Inside another item, which carries it from lane to lane. Its lane only counts if it is Draft or Archive.
    Nested(Option<LaneKind>),
}

/// The status shown by the item's own line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    pub ticked: bool,
    /// The `status:` key.
    pub status: Option<Status>,
}

/// Returns an item's status. The box wins over the lane and the lane over the key. But the key counts where
/// the lane has several statuses, or where the document has no lane for the key's status.
pub fn status(place: LanePlace, said: Said, lanes: LaneSet) -> Status {
    if said.ticked {
        return if said.status == Some(Status::Cancelled) {
            Status::Cancelled
        } else {
            Status::Completed
        };
    }
    let unplaced = said
        .status
        .filter(|status| !lanes.has(LaneKind::of(*status)));
    match place {
        LanePlace::Loose if lanes.is_empty() => said.status.unwrap_or(Status::Pending),
        LanePlace::Loose => unplaced.unwrap_or(Status::Pending),
        LanePlace::Nested(lane) => said.status.unwrap_or(match lane {
            Some(LaneKind::Draft) => Status::Draft,
            Some(LaneKind::Archive) => Status::Completed,
            _ => Status::Pending,
        }),
        LanePlace::Lane(LaneKind::Archive) => said.status.unwrap_or(Status::Completed),
        LanePlace::Lane(LaneKind::Completed) => match (unplaced, said) {
            (Some(status), _) => status,
            // A person has moved it here.
            (
                None,
                Said {
                    status: Some(Status::Cancelled),
                    ..
                },
            ) => Status::Cancelled,
            (None, _) => Status::Completed,
        },
        LanePlace::Lane(LaneKind::InReview) => {
            let here = said
                .status
                .filter(|status| LaneKind::of(*status) == LaneKind::InReview);
            here.or(unplaced).unwrap_or(Status::InReview)
        }
        LanePlace::Lane(lane) => unplaced.unwrap_or(lane.status()),
    }
}

/// Returns true if the box is ticked for this status.
pub fn is_ticked(status: Status) -> bool {
    matches!(status, Status::Completed | Status::Cancelled)
}

/// Returns true if an item with `status` at `place` and the right box needs a `status:` key to show it.
pub fn needs_key(status: Status, place: LanePlace, lanes: LaneSet) -> bool {
    self::status(
        place,
        Said {
            ticked: is_ticked(status),
            status: None,
        },
        lanes,
    ) != status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_lanes() {
        let rows = [
            ("Pending", Some(LaneKind::Pending)),
            ("PENDING ITEMS", Some(LaneKind::Pending)),
            ("To-Do:", Some(LaneKind::Pending)),
            ("📋 Backlog (12)", Some(LaneKind::Pending)),
            ("**In_Progress**", Some(LaneKind::InProgress)),
            ("Doing", Some(LaneKind::InProgress)),
            ("In  review", Some(LaneKind::InReview)),
            ("Blocked", Some(LaneKind::Waiting)),
            ("✅ Done", Some(LaneKind::Completed)),
            ("Dead Letter", Some(LaneKind::Dead)),
            ("Failed tasks", Some(LaneKind::Dead)),
            ("## Archive", Some(LaneKind::Archive)),
            ("Definition of done", None),
            ("Notes", None),
            ("", None),
            ("😀", None),
        ];
        for (heading, expected) in rows {
            assert_eq!(LaneKind::named(heading), expected, "{heading}");
        }
        for kind in LaneKind::ALL {
            assert_eq!(LaneKind::named(kind.name()), Some(kind));
            assert_eq!(LaneKind::of(kind.status()), kind);
        }
        let slips = [
            ("Complted", "Completed"),
            ("In Porgress", "In Progress"),
            ("Deadletter", "Dead Letter"),
        ];
        for (heading, lane) in slips {
            assert_eq!(
                LaneKind::nearest(heading).map(LaneKind::name),
                Some(lane),
                "{heading}"
            );
        }
        let others = "Ideas Undone Incomplete Uncompleted Testing Planning Won't Working Active Locked Notes Reviews Drafting Backlogs";
        for heading in others.split(' ').chain(["In Preview"]) {
            assert_eq!(LaneKind::nearest(heading), None, "{heading}");
        }
    }

    fn set(kinds: &[LaneKind]) -> LaneSet {
        let mut lanes = LaneSet::default();
        kinds.iter().for_each(|kind| lanes.insert(*kind));
        lanes
    }

    #[test]
    fn the_status_table() {
        use LaneKind as L;
        use Status as S;
        let none = set(&[]);
        let all = set(&L::ALL);
        let few = set(&[L::Pending, L::Completed]);
        let open = |status| Said {
            ticked: false,
            status,
        };
        let done = |status| Said {
            ticked: true,
            status,
        };
        let rows = [
            // Without lanes the box and the key speak.
            (LanePlace::Loose, open(None), none, S::Pending),
            (LanePlace::Loose, open(Some(S::Waiting)), none, S::Waiting),
            (LanePlace::Loose, done(None), none, S::Completed),
            (LanePlace::Loose, done(Some(S::Waiting)), none, S::Completed),
            (
                LanePlace::Loose,
                done(Some(S::Cancelled)),
                none,
                S::Cancelled,
            ),
            // Before the first heading of a document with lanes.
            (LanePlace::Loose, open(None), all, S::Pending),
            (LanePlace::Loose, open(Some(S::InProgress)), all, S::Pending),
            (
                LanePlace::Loose,
                open(Some(S::InProgress)),
                few,
                S::InProgress,
            ),
            // A tick counts in any lane.
            (LanePlace::Lane(L::Pending), done(None), all, S::Completed),
            (
                LanePlace::Lane(L::Dead),
                done(Some(S::Dead)),
                all,
                S::Completed,
            ),
            (
                LanePlace::Lane(L::Pending),
                done(Some(S::Cancelled)),
                all,
                S::Cancelled,
            ),
            // The lane wins over the key, unless there is no lane for the key's status.
            (
                LanePlace::Lane(L::Pending),
                open(Some(S::InProgress)),
                all,
                S::Pending,
            ),
            (
                LanePlace::Lane(L::Pending),
                open(Some(S::InProgress)),
                few,
                S::InProgress,
            ),
            (LanePlace::Lane(L::Dead), open(None), all, S::Dead),
            (
                LanePlace::Lane(L::Draft),
                open(Some(S::Pending)),
                all,
                S::Draft,
            ),
            // In Review holds three.
            (LanePlace::Lane(L::InReview), open(None), all, S::InReview),
            (
                LanePlace::Lane(L::InReview),
                open(Some(S::Reviewing)),
                all,
                S::Reviewing,
            ),
            (
                LanePlace::Lane(L::InReview),
                open(Some(S::Approved)),
                all,
                S::Approved,
            ),
            (
                LanePlace::Lane(L::InReview),
                open(Some(S::Pending)),
                all,
                S::InReview,
            ),
            (
                LanePlace::Lane(L::InReview),
                open(Some(S::Dead)),
                set(&[L::InReview]),
                S::Dead,
            ),
            // Unticked among the completed ones.
            (LanePlace::Lane(L::Completed), open(None), all, S::Completed),
            (
                LanePlace::Lane(L::Completed),
                open(Some(S::Cancelled)),
                all,
                S::Cancelled,
            ),
            (
                LanePlace::Lane(L::Completed),
                open(Some(S::Waiting)),
                all,
                S::Completed,
            ),
            (
                LanePlace::Lane(L::Completed),
                open(Some(S::Waiting)),
                few,
                S::Waiting,
            ),
            // Nested: only its own line speaks, but a draft's parts are drafts.
            (
                LanePlace::Nested(Some(L::Completed)),
                open(None),
                all,
                S::Pending,
            ),
            (
                LanePlace::Nested(Some(L::Pending)),
                open(Some(S::InProgress)),
                all,
                S::InProgress,
            ),
            (LanePlace::Nested(Some(L::Draft)), open(None), all, S::Draft),
            (
                LanePlace::Nested(Some(L::Draft)),
                open(Some(S::Pending)),
                all,
                S::Pending,
            ),
            (LanePlace::Nested(None), done(None), all, S::Completed),
            // Archived items have ended, unless their own line has another status.
            (LanePlace::Lane(L::Archive), open(None), all, S::Completed),
            (
                LanePlace::Lane(L::Archive),
                open(Some(S::Pending)),
                all,
                S::Pending,
            ),
            (
                LanePlace::Lane(L::Archive),
                done(Some(S::Cancelled)),
                all,
                S::Cancelled,
            ),
            (
                LanePlace::Nested(Some(L::Archive)),
                open(None),
                all,
                S::Completed,
            ),
        ];
        for (place, said, lanes, expected) in rows {
            assert_eq!(
                status(place, said, lanes),
                expected,
                "{place:?} {said:?} {lanes:?}"
            );
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for bits in 0..128u8 {
            let lanes = LaneSet(bits);
            let archive = LaneKind::Archive;
            let mut places = vec![
                LanePlace::Loose,
                LanePlace::Nested(None),
                LanePlace::Lane(archive),
                LanePlace::Nested(Some(archive)),
            ];
            for kind in LaneKind::ALL.into_iter().filter(|kind| lanes.has(*kind)) {
                places.extend([LanePlace::Lane(kind), LanePlace::Nested(Some(kind))]);
            }
            for place in places {
                for wanted in Status::ALL {
                    // An item with a lane of its own moves there; nested ones stay.
                    let place = match place {
                        LanePlace::Nested(_) => place,
                        _ if lanes.has(LaneKind::of(wanted)) => {
                            LanePlace::Lane(LaneKind::of(wanted))
                        }
                        _ => place,
                    };
                    let key = needs_key(wanted, place, lanes).then_some(wanted);
                    let said = Said {
                        ticked: is_ticked(wanted),
                        status: key,
                    };
                    assert_eq!(
                        status(place, said, lanes),
                        wanted,
                        "{place:?} {said:?} {lanes:?}"
                    );
                }
            }
        }
    }
}
