//! What a person typed of an item, as the log tells it from what Tavern wrote.

use std::borrow::Cow;
use std::collections::HashSet;

use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use tavern_core::document::{Document, Item, open, parse_alone};
use tavern_core::event::Kind;
use tavern_core::task::TaskId;
use tavern_core::text::{Edit, apply};

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

    /// `text`, in which the items `ids` are as they are meant ([`Board::as_typed`]), whoever reads it.
    pub(super) fn with_typed_titles(
        &self,
        text: &str,
        ids: &HashSet<TaskId>,
    ) -> Result<String, Error> {
        let mut closed = Vec::new();
        let document = open(text);
        for item in document
            .items()
            .iter()
            .filter(|item| item.id.as_ref().is_some_and(|id| ids.contains(id)))
        {
            if let Cow::Owned(titled) = self.as_typed(&document, item)? {
                closed.push(Edit::insert(titled.title.end, " (status: null)"));
            }
        }
        Ok(apply(text, &closed))
    }

    /// The item as it is meant: a parenthesis of keys that only Tavern writes, and that neither it nor git wrote so here, is title. What
    /// the log does not know was typed.
    pub(super) fn as_typed<'i, 't>(
        &self,
        document: &Document<'_>,
        item: &'i Item<'t>,
    ) -> Result<Cow<'i, Item<'t>>, Error> {
        let (Some(id), Some(titled)) = (item.id.as_ref(), document.with_words(item)) else {
            return Ok(Cow::Borrowed(item));
        };
        let (pairs, mut is_written) = (pairs(document, item), false);
        walk_log(self, Some(id), &mut |entry| {
            // What was taken back may be what was typed.
            let writes = !entry.is_typed() && !matches!(entry.kind, Kind::Undone | Kind::Redone);
            let alone = entry
                .change
                .after()
                .filter(|_| writes)
                .map(|text| parse_alone(text, document.front()));
            is_written = alone.is_some_and(|alone| {
                let own = alone
                    .items()
                    .first()
                    .map(|item| self::pairs(&alone, item))
                    .unwrap_or_default();
                pairs.iter().all(|pair| own.contains(pair))
            });
            !is_written
        })?;
        Ok(if is_written {
            Cow::Borrowed(item)
        } else {
            Cow::Owned(titled)
        })
    }
}

/// Its keys, with what they say.
fn pairs(document: &Document<'_>, item: &Item<'_>) -> Vec<(String, String)> {
    let entries = document.entries(item).into_iter();
    entries
        .map(|entry| {
            (
                entry.name.to_owned(),
                document.text()[entry.value].to_owned(),
            )
        })
        .collect()
}
