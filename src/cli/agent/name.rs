//! The name that an agent goes by.

use crate::cli::CliError;
use crate::clock;
use crate::config::Does;
use crate::run::{Preflight, Site};
use crate::store::{Board, Queue, Seek, Slot};

/// The name asked for, or the first free one; no second agent goes by it while the slot is held.
pub(in crate::cli) fn take_name(
    site: &Site,
    wanted: Option<&str>,
    role: &str,
    queues: &[Queue],
) -> Result<(String, Slot), CliError> {
    let board: &Board = &site.board;
    let reviews = site.role(role)?.does == Does::Review;
    if let Some(name) = wanted {
        let slot = board.agent_slot(name)?;
        let slot = slot.ok_or_else(|| CliError::from(crate::store::Error::SecondAgent(name.to_owned())))?;
        return Ok((name.to_owned(), slot));
    }
    let look = Preflight::of(site);
    let is_open = |seek: &Seek| board.open_for(seek, clock::now(), &look.of_role(role)).0 > 0;
    let mut first = None;
    for name in &site.config.names {
        let Some(slot) = board.agent_slot(name)? else { continue };
        // Whoever reviews goes by a name that has no part in the work.
        if !reviews || is_open(&site.seek(name, role, queues)?) {
            return Ok((name.clone(), slot));
        }
        first = first.or_else(|| Some((name.clone(), slot)));
    }
    if let Some(first) = first {
        return Ok(first);
    }
    let hint = "give it one with --name, or add names to config.yaml";
    Err(CliError::refused("all names of config.yaml are taken", hint))
}
