//! The name of an agent.

use crate::CliError;
use tavern_run::{Preflight, Workspace};
use tavern_store::config::Does;
use tavern_store::{ClaimRequest, Error, Queue, Slot};
use tavern_sys::clock;

/// How often the names of config.yaml are tried, from the second time on with a number: `Frodo-2`.
const ROUNDS: usize = 100;

/// Takes the requested name, or the first free one. No second agent can use it while the slot is held.
pub(crate) fn take_name(
    workspace: &Workspace,
    wanted: Option<&str>,
    role: &str,
    queues: &[Queue],
) -> Result<(String, Slot), CliError> {
    let board = &workspace.board;
    let reviews = workspace.role(role)?.does == Does::Review;
    if let Some(name) = wanted {
        let slot = board
            .agent_slot(name)?
            .ok_or_else(|| Error::SecondAgent(name.to_owned()))?;
        return Ok((name.to_owned(), slot));
    }
    let look = Preflight::of(workspace);
    let is_open =
        |seek: &ClaimRequest| board.open_for(seek, clock::now(), &look.of_role(role)).0 > 0;
    let mut first = None;
    for name in &workspace.config.names {
        let Some(slot) = board.agent_slot(name)? else {
            continue;
        };
        // A reviewer gets a name without part in the work, if one is free.
        if !reviews || is_open(&workspace.seek(name, role, Some(queues.to_vec()))?) {
            return Ok((name.clone(), slot));
        }
        first = first.or_else(|| Some((name.clone(), slot)));
    }
    if let Some(first) = first {
        return Ok(first);
    }
    for round in 2..=ROUNDS {
        for name in &workspace.config.names {
            let name = format!("{name}-{round}");
            if let Some(slot) = board.agent_slot(&name)? {
                return Ok((name, slot));
            }
        }
    }
    let hint = "give it one with --agent, or add names to config.yaml";
    Err(CliError::refused(
        "all names of config.yaml are taken",
        hint,
    ))
}
