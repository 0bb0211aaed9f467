//! An item named by its ID, or by the line at which it starts.

use super::board::Board;
use super::error::Error;
use super::queue::Queue;
use super::submit::Found;
use tavern_core::document::Document;
use tavern_core::task::TaskId;

/// How an item was named.
#[derive(Clone, Debug)]
pub enum NamedItem {
    Id(TaskId),
    /// The item as it was read. Edits above it may move it to another line.
    At {
        queue: Queue,
        line: usize,
        id: Option<TaskId>,
        text: String,
    },
}

impl NamedItem {
    pub fn id(&self) -> Option<&TaskId> {
        match self {
            NamedItem::Id(id) => Some(id),
            NamedItem::At { id, .. } => id.as_ref(),
        }
    }

    /// Returns the error for an item that is no longer there.
    pub fn lost(self) -> Error {
        match self {
            NamedItem::Id(id) => Error::NoTask(id),
            NamedItem::At { queue, line, .. } => Error::Changed {
                queue: queue.id,
                line,
            },
        }
    }

    /// Returns its index in `document`, which is that of `queue`. Of several equal items, the one nearest to its line.
    pub fn index_in(&self, queue: &Queue, document: &Document<'_>) -> Option<usize> {
        let (line, id, text) = match self {
            NamedItem::Id(id) => return document.index_of(id),
            NamedItem::At {
                queue: own,
                line,
                id,
                text,
            } => (own == queue).then_some((line, id, text))?,
        };
        let is_it = |at: &usize| {
            let item = document.item(*at);
            item.id == *id && (id.is_some() || document.block(item) == text)
        };
        (0..document.count())
            .filter(is_it)
            .min_by_key(|at| document.item(*at).line.abs_diff(*line))
    }
}

impl Board {
    /// Returns the item that starts at `line` of `queue`, counted from 1.
    ///
    /// # Errors
    /// No item starts there, or the queue can't be read.
    pub fn item_at(&self, queue: &Queue, line: usize) -> Result<NamedItem, Error> {
        let text = self.read(queue)?;
        let (document, _) = text.content.parse();
        if let Some(item) = document.items().iter().find(|item| item.line == line) {
            let (id, text) = (item.id.clone(), document.block(item).to_owned());
            return Ok(NamedItem::At {
                queue: queue.clone(),
                line,
                id,
                text,
            });
        }
        let nearest = document
            .items()
            .iter()
            .min_by_key(|item| item.line.abs_diff(line));
        let nearest = nearest.map(|item| (item.line, document.title(item).to_owned()));
        Err(Error::NoItemAt {
            queue: queue.id.clone(),
            line,
            nearest,
        })
    }

    /// Returns the current item. Without an ID, it has a placeholder ID.
    ///
    /// # Errors
    /// The item does not exist, or no longer.
    pub fn named(&self, name: &NamedItem) -> Result<Found, Error> {
        let queue = match name {
            NamedItem::Id(id) => return self.task(id),
            NamedItem::At { queue, .. } => queue,
        };
        let text = self.read(queue)?;
        let (document, _) = text.content.parse();
        let at = name.index_in(queue, &document);
        let item = at
            .map(|at| document.item(at))
            .ok_or_else(|| name.clone().lost())?;
        let lease = name.id().map_or(Ok(None), |id| self.lease(id))?;
        Ok(Found::of(&text, &document, item, lease))
    }
}
