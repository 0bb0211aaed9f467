//! `tavern-runs follow`: the output of a run's program, as it comes.

use std::time::Duration;

use serde_json::json;

use crate::live::stream::LogTail;
use crate::{CliError, Context, Exit};
use tavern_core::lease::Life;
use tavern_run::record::{Metadata, run_of};
use tavern_store::{Board, life};
use tavern_sys::file_watch::WatchOrLook;
use tavern_sys::process::Bell;

/// Some file systems send no notifications.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints output until the run has ended, or its holder is gone.
pub(super) fn follow(context: &Context, board: &Board, run: &Metadata) -> Result<Exit, CliError> {
    let (folder, bell) = (board.run_dir(&run.run), Bell::new());
    let mut tail = LogTail::of(&folder);
    let ringing = bell.clone();
    let watch = WatchOrLook::new([folder], move |_| ringing.ring());
    let _watch = watch.map_err(|(_, error)| error)?;
    loop {
        let is_up = is_up(board, run);
        loop {
            for (text, _) in tail.more() {
                context
                    .out
                    .record(&json!({"run": run.run, "text": text}), &text)?;
            }
            if !tail.is_behind() {
                break;
            }
        }
        context.out.flush()?;
        if !is_up {
            return Ok(Exit::Done);
        }
        bell.wait(PATIENCE);
    }
}

/// Returns whether its program has not ended, and its holder lives.
fn is_up(board: &Board, run: &Metadata) -> bool {
    let lease = board
        .lease(&run.task)
        .ok()
        .flatten()
        .filter(|lease| lease.token == run.token);
    run_of(board, &run.run).is_some_and(|now| now.ended.is_none())
        && lease.is_some_and(|lease| life(&lease.holder) != Life::Gone)
}
