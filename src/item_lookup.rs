//! Finds the item for a typed name.

use super::{CliError, Context, ItemName, hints};
use tavern_core::task::TaskId;
use tavern_store::{Board, NamedItem};

impl Context {
    /// Returns the item called `name`, which may lack an ID.
    pub(super) fn item(&self, board: &Board, name: &ItemName) -> Result<NamedItem, CliError> {
        match name {
            ItemName::Id(id) => Ok(NamedItem::Id(id.clone())),
            ItemName::Line { queue, line } => {
                let queue = self
                    .files(board, std::slice::from_ref(queue))?
                    .swap_remove(0);
                Ok(board.item_at(&queue, *line)?)
            }
        }
    }

    /// Returns the ID of that item, if no other can be meant.
    pub(super) fn id_of(&self, board: &Board, name: &ItemName) -> Result<TaskId, CliError> {
        let item = self.item(board, name)?;
        if let Some(id) = item.id() {
            // A lookup by ID finds only items that the board knows.
            if let NamedItem::At { queue, .. } = &item {
                board.remember(queue)?;
            }
            return Ok(id.clone());
        }
        let first = match board.named(&item)?.task.status() {
            status if status.is_ended() => {
                format!(
                    "it is {status}; {}",
                    hints::again(&format!(": tavern edit {name}"))
                )
            }
            _ => format!("edit its line, where `[-]` cancels it: tavern edit {name}"),
        };
        let hint = format!("{first}; or write an ID before its title");
        Err(CliError::usage(
            format!("the item at `{name}` has no ID, as it was never claimed"),
            hint,
        ))
    }
}
