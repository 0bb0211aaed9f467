//! What a person typed of an item, as the log tells it from what Tavern wrote.

use std::borrow::Cow;

use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use crate::board::document::{Document, Item};
use crate::board::task::TaskId;

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

    /// The item as it is meant: a parenthesis of keys that only Tavern writes, and that it did not write here, is title. What was typed was
    /// there before Tavern's first event of the item.
    pub(super) fn as_typed<'i, 't>(
        &self,
        document: &Document<'_>,
        item: &'i Item<'t>,
    ) -> Result<Cow<'i, Item<'t>>, Error> {
        let parts = (item.id.as_ref(), item.metadata.clone(), document.with_words(item));
        let (Some(id), Some(words), Some(titled)) = parts else { return Ok(Cow::Borrowed(item)) };
        let (mut first, words) = (None, &document.text()[words]);
        walk_log(self, Some(id), &mut |entry| {
            first = Some(entry);
            true
        })?;
        let is_typed = first.is_none_or(|first| {
            let typed = first.change.after().filter(|_| first.is_typed());
            first.change.before().or(typed).is_some_and(|text| text.contains(words))
        });
        Ok(if is_typed { Cow::Owned(titled) } else { Cow::Borrowed(item) })
    }
}
