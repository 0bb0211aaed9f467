//! Items missing from a queue's newest save that stay anyway: the save was of an older text, or removed items its
//! author had not seen.
//! Found by the note logged when such a save is merged. Knows nothing of how a save is judged.

use std::collections::{BTreeMap, HashMap};

use super::board::Board;
use super::entry::{BY_HAND, Entry};
use super::error::Error;
use super::log::search_log;

/// The beginning of that note.
const STAYS: &str = "an older text was saved, and what it lacks stays: ";

/// How many of the newest events are searched.
const MOST: usize = 1000;

/// Returns the cause of the note that these items stay: IDs, and titles of items without one.
pub(super) fn cause(items: &[String]) -> String {
    format!("{STAYS}{}", items.join(", "))
}

/// Returns the items that stay according to this note.
pub(super) fn of(entry: &Entry) -> Option<&str> {
    entry.cause.as_deref()?.strip_prefix(STAYS)
}

impl Board {
    /// Returns the open items that the newest save of each queue lacks: IDs and titles, by the queue's ID. The next
    /// external edit clears them.
    pub fn stays(&self) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let (mut newest, mut stays) = (HashMap::new(), BTreeMap::new());
        let mut look = |entry: Entry| {
            if let Some(queue) = entry.queue.clone().filter(|_| entry.is_by_hand())
                && *newest.entry(queue.clone()).or_insert(entry.save()) == entry.save()
                && let Some(names) = of(&entry)
            {
                stays.insert(queue, names.split(", ").map(str::to_owned).collect());
            }
        };
        let rehearsed = self
            .rehearsal
            .iter()
            .flat_map(|rehearsal| rehearsal.entries());
        for entry in rehearsed.collect::<Vec<_>>().into_iter().rev() {
            look(entry);
        }
        search_log(self, &BY_HAND, MOST, &mut look)?;
        stays.retain(|queue, names: &mut Vec<String>| {
            self.retain_open(queue, names).is_ok() && !names.is_empty()
        });
        Ok(stays)
    }

    fn retain_open(&self, queue: &str, names: &mut Vec<String>) -> Result<(), Error> {
        let text = self.read_file(&self.queue_by_id(queue)?)?;
        let document = text.content.open();
        let is_open = |id| {
            document
                .find(&id)
                .is_some_and(|item| !item.status.is_ended())
        };
        names.retain(|name| {
            name.parse()
                .map_or_else(|_| text.content.contains(name), is_open)
        });
        Ok(())
    }
}
