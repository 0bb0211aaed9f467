//! What the newest save of a queue lacks, and stays: somebody saved an older text, or took out what they had not seen.
//! Found by the note that is written when such a save is taken over. Knows nothing of how a save is judged.

use std::collections::{BTreeMap, HashMap};

use super::entry::{BY_HAND, Entry};
use super::error::Error;
use super::find::Board;
use super::log::search_log;

/// So the note of it begins.
const STAYS: &str = "an older text was saved, and what it lacks stays: ";

/// So many of the newest events are looked at.
const MOST: usize = 1000;

/// The cause of the note that these items stay: the IDs, and the titles of those that have none.
pub(super) fn cause(items: &[String]) -> String {
    format!("{STAYS}{}", items.join(", "))
}

/// The items that stay by this note.
pub(super) fn of(entry: &Entry) -> Option<&str> {
    entry.cause.as_deref()?.strip_prefix(STAYS)
}

impl Board {
    /// What the newest save of a queue lacks, and is still to be done there: IDs and titles, by the queue's ID. Empty after the
    /// next save by hand.
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
