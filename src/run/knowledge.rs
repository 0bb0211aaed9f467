//! What an agent is told of what others have found out.

use super::site::Site;
use super::trust::Trust;
use crate::board::task::Task;
use crate::clock;
use crate::prompt::{Learned, PromptLimits};

/// The newest learnings that concern `task`, hold now and are trusted here, the newest first.
pub(super) fn known_of(site: &Site, task: &Task) -> Vec<Learned> {
    let (now, trust) = (clock::now(), Trust::of(site));
    let newest = site.board.knowledge().into_iter().rev();
    let told = newest.filter_map(|file| {
        let learning = file.learning.ok().filter(|learning| learning.is_valid(now) && learning.concerns(task))?;
        trust.learning(&file.id, &learning).ok()?;
        Some(Learned {
            id: file.id,
            kind: learning.kind.to_string(),
            // It stands in a mark.
            from: learning.source().replace(['"', '<', '>', '\n'], " "),
            run: learning.run,
            date: clock::day_of(learning.created),
            text: learning.text,
        })
    });
    told.take(PromptLimits::default().learnings).collect()
}
