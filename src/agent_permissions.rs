//! The run that a program is part of. An agent may do anything with its own item, by its own token; to other items it
//! may only send messages. Each verb decides for itself ([`super::Verb::within`]).

use std::path::Path;

use tavern_core::lease::Token;
use tavern_core::task::TaskId;
use tavern_run::run_name;
use tavern_store::Board;
use tavern_sys::process::ancestry::Ancestry;
use tavern_sys::secrets::learn;

use super::{CliError, Context, ItemName};

/// Alternatives for an agent that was refused.
const INSTEAD: &str = "an agent may hand out parts of its item (tavern add \"…\" --parent), report on it (tavern report), \
                       write to others (tavern tell) and note findings (tavern learn); to ask a person, end your answer with WAITING and the question";

/// Prefix of the names of the programs' files, and so of their processes.
const OWN_PROGRAM: &str = "tavern";

/// The run of this board in which this program was started. Agents can't hide it by their environment.
#[derive(Clone, Debug)]
pub struct OwnRun {
    pub run: String,
    /// The item and the claim's token; `None` while merges are verified.
    pub held: Option<(TaskId, Token)>,
    /// The agent that holds the item.
    pub agent: Option<String>,
}

impl Context {
    /// Returns the run of the board that this program is part of, if any.
    pub(super) fn own_run(&self) -> Option<OwnRun> {
        let ancestry = Ancestry::look();
        // Usually there is nothing to look at, so no board is opened.
        if ancestry.marks().is_empty() && ancestry.programs(OWN_PROGRAM).is_empty() {
            return None;
        }
        let own = OwnRun::in_line(&self.board_or_place(&[]).ok()?, &ancestry)?;
        // An agent is not given its supervisor's keys, but may have found one.
        learn(ancestry.variables());
        Some(own)
    }
}

impl OwnRun {
    /// Returns the run of `board` that this program is part of. It is known by the mark of an ancestor process, else by
    /// its supervisor, which adopts orphaned processes.
    pub(super) fn around(board: &Board) -> Option<OwnRun> {
        OwnRun::in_line(board, &Ancestry::look())
    }

    fn in_line(board: &Board, ancestry: &Ancestry) -> Option<OwnRun> {
        let runs = board.path("runs");
        let name = |mark: &String| {
            Some(
                Path::new(mark)
                    .strip_prefix(&runs)
                    .ok()?
                    .to_string_lossy()
                    .into_owned(),
            )
        };
        let run = ancestry
            .marks()
            .iter()
            .find_map(name)
            .or_else(|| supervised(board, ancestry))?;
        let held = run
            .rsplit_once('@')
            .and_then(|(task, token)| Some((task.parse().ok()?, token.parse().ok()?)));
        let agent = held.as_ref().and_then(|(task, token): &(TaskId, Token)| {
            let lease = board
                .lease(task)
                .ok()
                .flatten()
                .filter(|lease| lease.token == *token);
            lease.map(|lease| lease.agent)
        });
        Some(OwnRun { run, held, agent })
    }

    /// Refuses actions on other items than the run's own `task`, or without its token.
    pub(super) fn holds(&self, task: &ItemName, token: Option<Token>) -> Result<(), CliError> {
        let is_own = self
            .held
            .as_ref()
            .is_some_and(|(own, held)| task.id() == Some(own) && Some(*held) == token);
        if is_own { Ok(()) } else { Err(self.refused()) }
    }

    /// Returns the refusal of an action that only a person may do.
    pub(super) fn refused(&self) -> CliError {
        CliError::refused(
            format!("this is run {}: only a person may do this", self.run),
            INSTEAD,
        )
    }
}

/// Returns the run that an ancestor process supervises.
fn supervised(board: &Board, ancestry: &Ancestry) -> Option<String> {
    let above = ancestry.programs(OWN_PROGRAM);
    if above.is_empty() {
        return None;
    }
    let leases = board.leases().ok()?;
    let own = leases.iter().find(|lease| {
        let by = lease
            .work
            .as_ref()
            .and_then(|work| work.supervisor.as_ref());
        by.is_some_and(|by| above.contains(by))
    })?;
    Some(run_name(&own.task, own.token))
}
