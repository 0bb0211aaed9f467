//! The run that a program is part of. An agent does what it likes with its own item, by its own token; to the items of others it
//! may only say something. Each verb says so of itself ([`super::Verb::within`]).

use std::path::Path;

use tavern_core::lease::Token;
use tavern_core::task::TaskId;
use tavern_run::run_name;
use tavern_store::Board;
use tavern_sys::process::ancestry::Ancestry;
use tavern_sys::secrets::learn;

use super::{CliError, Context, ItemName};

/// What an agent may do in the place of what it is refused.
const INSTEAD: &str = "an agent may hand out parts of its item (tavern add \"…\" --parent), report on it (tavern report), \
                       write to others (tavern tell) and note what it finds out (tavern learn); to ask a person, end your answer with WAITING and the question";

/// What the programs' files are called, and so what such a process is.
const OWN_PROGRAM: &str = "tavern";

/// A run of this board that this program was started in, whatever an agent has put into its environment.
#[derive(Clone, Debug)]
pub struct OwnRun {
    pub run: String,
    /// Of the item that is worked on, and of the claim; nothing where merges are verified.
    pub held: Option<(TaskId, Token)>,
    /// The agent that holds it.
    pub agent: Option<String>,
}

impl Context {
    /// The run of the board that this program is part of, if it is part of one.
    pub(super) fn own_run(&self) -> Option<OwnRun> {
        let ancestry = Ancestry::look();
        // Nearly always there is nothing to look at, and so no board to open.
        if ancestry.marks().is_empty() && ancestry.programs(OWN_PROGRAM).is_empty() {
            return None;
        }
        let own = OwnRun::in_line(&self.board_or_place(&[]).ok()?, &ancestry)?;
        // An agent is not given its supervisor's keys, and may have found one all the same.
        learn(ancestry.variables());
        Some(own)
    }
}

impl OwnRun {
    /// The run of `board` that this program is part of: by the mark of a process above it, else by that of a supervisor, which
    /// adopts what has lost its parent.
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

    /// Refuses what is not done to the run's own `task`, with its token.
    pub(super) fn holds(&self, task: &ItemName, token: Option<Token>) -> Result<(), CliError> {
        let is_own = self
            .held
            .as_ref()
            .is_some_and(|(own, held)| task.id() == Some(own) && Some(*held) == token);
        if is_own { Ok(()) } else { Err(self.refused()) }
    }

    /// What only a person may do.
    pub(super) fn refused(&self) -> CliError {
        CliError::refused(
            format!("this is run {}: only a person may do this", self.run),
            INSTEAD,
        )
    }
}

/// The run that is supervised by a process above this one.
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
