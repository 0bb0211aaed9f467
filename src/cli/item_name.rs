//! What a person may type for an item: its ID, or the line of a queue at which it starts.

use std::fmt;
use std::str::FromStr;

use super::{CliError, Context};
use crate::board::task::{BadId, TaskId};
use crate::process::quoted;
use crate::store::{Board, NamedItem};

/// An item as it was typed.
#[derive(Clone, Debug)]
pub enum ItemName {
    Id(TaskId),
    /// `QUEUE:LINE`, where the queue is a name or a path.
    Line {
        queue: String,
        line: usize,
    },
}

impl ItemName {
    /// The ID, if that was typed.
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
            let (queue, line) = text.rsplit_once(':')?;
            let line = line.parse().ok().filter(|line| *line > 0 && !queue.is_empty())?;
            Some(ItemName::Line { queue: queue.to_owned(), line })
        };
        let id = text.parse().map(ItemName::Id).ok();
        id.or_else(line).ok_or_else(|| format!("{}; or name its line, such as TODO.md:12", BadId::HINT))
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

impl Context {
    /// The item that goes by `name`; it may have no ID.
    pub(super) fn item(&self, board: &Board, name: &ItemName) -> Result<NamedItem, CliError> {
        match name {
            ItemName::Id(id) => Ok(NamedItem::Id(id.clone())),
            ItemName::Line { queue, line } => {
                let queue = self.files(board, std::slice::from_ref(queue))?.swap_remove(0);
                Ok(board.item_at(&queue, *line)?)
            }
        }
    }

    /// The ID of that item, where no other can be meant.
    pub(super) fn id_of(&self, board: &Board, name: &ItemName) -> Result<TaskId, CliError> {
        self.item(board, name)?.id().cloned().ok_or_else(|| {
            let hint = format!("take it: tavern claim --task {name}; or write an ID before its title");
            CliError::usage(format!("the item at `{name}` has no ID: no one has claimed it"), hint)
        })
    }
}
