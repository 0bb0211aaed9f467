//! Conflicts between external edits and other changes, in words.

use std::collections::HashSet;
use std::fmt;

use tavern_core::merge::Conflict;
use tavern_core::task::TaskId;

/// A conflict and its resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub conflict: Conflict,
    pub as_what: SettledAs,
}

/// The resolution of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettledAs {
    /// The holder's version is kept.
    Held,
    /// The changed version is kept, not the removal.
    Changed,
    /// Both versions are kept in the text.
    Both,
}

impl Settled {
    pub(super) fn of(conflict: Conflict, held: &HashSet<TaskId>) -> Settled {
        let is_held = || {
            conflict
                .item
                .as_ref()
                .is_some_and(|item| is_named(item, held))
        };
        let as_what = match conflict.what.as_str() {
            "removed" | "status" if is_held() => SettledAs::Held,
            "removed" => SettledAs::Changed,
            _ => SettledAs::Both,
        };
        Settled { conflict, as_what }
    }
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { item, what } = &self.conflict;
        let item = item.as_deref().unwrap_or("the text");
        let kept = match self.as_what {
            SettledAs::Held if what == "removed" => {
                return write!(
                    f,
                    "{item} was removed by hand; it is held, so it was put back"
                );
            }
            SettledAs::Held => {
                return write!(
                    f,
                    "the {what} of {item} was changed by hand; it is held, so it was put back"
                );
            }
            SettledAs::Changed => "the changed version was kept",
            SettledAs::Both => "both versions are kept",
        };
        write!(
            f,
            "{item}: {what} was changed by hand and by others; {kept}"
        )
    }
}

fn is_named(item: &str, held: &HashSet<TaskId>) -> bool {
    item.parse().is_ok_and(|id: TaskId| held.contains(&id))
}
