//! How a person may name an item: its ID, or the line of a queue where it starts.

use std::fmt;
use std::str::FromStr;

use tavern_core::task::{BadId, TaskId};
use tavern_sys::process::quoted;

/// The name of an item, as typed.
#[derive(Clone, Debug)]
pub enum ItemName {
    Id(TaskId),
    /// `QUEUE:LINE`; the queue is a name or a path. A column after it, as editors print it, is ignored.
    Line {
        queue: String,
        line: usize,
    },
}

impl ItemName {
    /// Returns the ID, if it was typed.
    pub(super) fn id(&self) -> Option<&TaskId> {
        match self {
            ItemName::Id(id) => Some(id),
            ItemName::Line { .. } => None,
        }
    }
}

impl FromStr for ItemName {
    type Err = String;

    fn from_str(text: &str) -> Result<ItemName, String> {
        let line = || {
            let numbered = |text: &str| {
                let (before, number) = text.rsplit_once(':')?;
                Some((
                    before.to_owned(),
                    number.parse().ok().filter(|number| *number > 0)?,
                ))
            };
            let (queue, line) = numbered(text)?;
            let (queue, line) = numbered(&queue).unwrap_or((queue, line));
            (!queue.is_empty()).then_some(ItemName::Line { queue, line })
        };
        let id = text.parse().map(ItemName::Id).ok();
        id.or_else(line)
            .ok_or_else(|| format!("{}; or name its line, such as TODO.md:12", BadId::HINT))
    }
}

impl fmt::Display for ItemName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemName::Id(id) => id.fmt(f),
            ItemName::Line { queue, line } => write!(f, "{}:{line}", quoted(queue)),
        }
    }
}
