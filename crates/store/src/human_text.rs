//! Distinguishes text that a person typed from text that Tavern wrote, using the log.

use super::board::Board;
use super::error::Error;
use super::log::walk_log;
use tavern_core::task::TaskId;

impl Board {
    /// Returns true if all events of the item are a person's edits.
    pub fn is_only_typed(&self, id: &TaskId) -> Result<bool, Error> {
        let mut is_only_typed = true;
        walk_log(self, Some(id), &mut |entry| {
            is_only_typed = entry.is_typed();
            is_only_typed
        })?;
        Ok(is_only_typed)
    }
}
