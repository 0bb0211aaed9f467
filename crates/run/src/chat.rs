//! A person talks with the agent of a held task: in its worktree, with its prompt and in its session. Nothing is
//! judged or removed; the caller returns the task.

use std::path::PathBuf;
use std::time::Duration;

use super::error::Error;
use super::heartbeat::Heartbeat;
use super::import_sandbox::take_over;
use super::launch::Launch;
use super::mail::Mailbox;
use super::processes::end_processes;
use super::prompt_context::Attendance;
use super::record::Metadata;
use super::result::RunResult;
use super::trust::Trust;
use super::workspace::Workspace;
use super::worktree;
use crate::runner::Outcome;
use tavern_store::Claimed;
use tavern_sys::process::Bell;

/// The interval at which `show` is called while the program runs.
const SHOWN: Duration = Duration::from_secs(30);

/// A chat that is over.
#[derive(Clone, Debug)]
pub struct Talked {
    pub run: String,
    pub worktree: PathBuf,
    /// How its program ended.
    pub exit: String,
    /// Another process holds the task by now.
    pub is_lost: bool,
}

/// Plans the launch for `held`, in its prepared worktree.
///
/// # Errors
/// This machine, the board or the repository lacks something that it needs.
pub fn launch<'a>(workspace: &'a Workspace, held: &'a Claimed) -> Result<Launch<'a>, Error> {
    Trust::of(workspace).item_of(&held.queue, &held.task)?;
    Launch::plan(
        workspace,
        held,
        worktree::prepare(workspace, held)?,
        Attendance::Attended,
    )
}

/// Gives the terminal to the runner's program until it ends. If the interrupt is raised or the lease is lost, ends it
/// with all processes that it started. Calls `begun` before it begins, and `show` now and then.
///
/// # Errors
/// The worktree can't be made, or the program can't be started.
pub fn talk(
    workspace: &Workspace,
    held: &Claimed,
    heartbeat: &Heartbeat,
    begun: impl FnOnce(&Metadata),
    show: impl Fn(),
) -> Result<Talked, Error> {
    let bell = Bell::new();
    let _loss = heartbeat.ring_when_lost(&bell);
    let _subscription = bell.ring_at(&workspace.interrupt);
    let launch = launch(workspace, held)?;
    let mut record = launch.record()?;
    launch.announce()?;
    let program = match launch.attend(&bell, || begun(record.metadata())) {
        Ok(program) => program,
        Err(error) => {
            record.broke_off(&RunResult::failed_as(Outcome::NotReady, error.to_string()))?;
            return Err(error.into());
        }
    };
    let Launch {
        worktree,
        metadata: Metadata { run, .. },
        ..
    } = launch;
    let seen = record.metadata().clone();
    let mut mailbox = Mailbox::open(workspace, &seen, &bell);
    let exit = loop {
        let has_answered = mailbox.as_mut().is_some_and(Mailbox::answer);
        if let Some(exit) = program.ended() {
            break exit;
        }
        if workspace.interrupt.is_raised() || heartbeat.is_lost() {
            end_processes(workspace, &run)?;
        }
        show();
        bell.wait(if has_answered { Duration::ZERO } else { SHOWN });
    };
    mailbox.into_iter().for_each(Mailbox::close);
    // End the processes that it left running.
    end_processes(workspace, &run)?;
    let is_lost = heartbeat.is_lost();
    if !is_lost {
        take_over(workspace, &held.task.id, record.metadata())?;
    }
    let tip = worktree
        .branch
        .and_then(|_| workspace.tip_of(&worktree.path).ok());
    record.talked(&exit, tip.as_ref())?;
    Ok(Talked {
        run,
        worktree: worktree.path,
        exit,
        is_lost,
    })
}
