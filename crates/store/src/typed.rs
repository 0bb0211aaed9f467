//! What a person typed of an item, as the log tells it from what Tavern wrote.

use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use tavern_core::task::TaskId;

impl Board {
    /// No event here but what was typed is of the item.
    pub fn is_only_typed(&self, id: &TaskId) -> Result<bool, Error> {
        let mut is_only_typed = true;
        walk_log(self, Some(id), &mut |entry| {
            is_only_typed = entry.is_typed();
            is_only_typed
        })?;
        Ok(is_only_typed)
    }
}
