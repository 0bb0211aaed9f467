//! The heartbeat of a held task: a thread of its holder that renews the lease during set-up, work and verification.
//! The model never renews anything.

use std::thread::JoinHandle;
use std::time::Duration;

use super::record::run_name;
use tavern_core::lease::Lease;
use tavern_store::{AgentFile, AgentState, Board, Claimed, Error, this_process};
use tavern_sys::clock;
use tavern_sys::interrupt::{Interrupt, InterruptCause, Subscription};
use tavern_sys::process::Bell;

/// Beats until dropped. The holder of a task starts one, and passes it down.
pub struct Heartbeat {
    board: Board,
    lease: Lease,
    stop: Interrupt,
    lost: Interrupt,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Renews `lease` three times in its length and once a minute at least, until another process holds the task.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(board: &Board, lease: &Lease) -> Result<Heartbeat, Error> {
        let (stop, lost) = (Interrupt::new(), Interrupt::new());
        let pause =
            (Duration::from_secs(u64::from(lease.seconds)) / 3).min(Duration::from_secs(60));
        let thread = std::thread::Builder::new().spawn({
            let (board, lease) = (board.clone(), lease.clone());
            let (stop, lost) = (stop.clone(), lost.clone());
            move || {
                while !stop.wait(pause) {
                    if is_refused(&board, &lease) {
                        return lost.raise(InterruptCause::Stopped);
                    }
                }
            }
        });
        let thread = thread.map_err(Error::io("start a heartbeat in", board.dir()))?;
        Ok(Heartbeat {
            board: board.clone(),
            lease: lease.clone(),
            stop,
            lost,
            thread: Some(thread),
        })
    }

    /// Rings `bell` when the lease is lost: the late holder must stop.
    pub fn ring_when_lost(&self, bell: &Bell) -> Subscription {
        bell.ring_at(&self.lost)
    }

    /// Beats now: after a sleep of this process or the machine, the thread may not have beaten yet. Returns true if
    /// the lease is lost.
    pub fn finds_lost(&self) -> bool {
        if !self.is_lost() && is_refused(&self.board, &self.lease) {
            self.lost.raise(InterruptCause::Stopped);
        }
        self.is_lost()
    }

    /// Checks whether the lease still exists, so that a new holder need not wait for the next beat.
    pub fn look(&self) {
        let is_ours =
            |lease: Option<Lease>| lease.is_some_and(|lease| lease.token == self.lease.token);
        if !self.board.lease(&self.lease.task).map_or(true, is_ours) {
            self.finds_lost();
        }
    }

    /// Takes over external edits, which may have ended the lease, without waiting for the next beat.
    pub fn look_at_saves(&self) {
        if self.board.has_saves().unwrap_or(false) {
            drop(self.board.settle());
            self.look();
        }
    }

    /// Returns true if another process holds the task now.
    pub fn is_lost(&self) -> bool {
        self.lost.is_raised()
    }
}

/// Shows that an agent lives, and its activity: it works on `held`, or waits.
///
/// # Errors
/// The board can't be written.
pub fn show_agent(
    board: &Board,
    name: &str,
    role: &str,
    held: Option<&Claimed>,
    doing: String,
) -> Result<(), Error> {
    let now = clock::now();
    let file = AgentFile {
        name: name.to_owned(),
        role: role.to_owned(),
        state: if held.is_some() {
            AgentState::Working
        } else {
            AgentState::Waiting
        },
        task: held.map(|held| held.task.id.clone()),
        run: held.map(|held| run_name(&held.task.id, held.lease.token)),
        doing: Some(doing),
        since: now,
        holder: this_process(),
        heartbeat_at: now,
    };
    board.write_agent(&file, now)
}

fn is_refused(board: &Board, lease: &Lease) -> bool {
    // Changes from another clone, brought by git, may end the lease here.
    if board.is_settled().is_ok_and(|is_settled| !is_settled) {
        drop(board.settle());
    }
    // Any other error, of a full disk or a slow network drive, may be over before the lease runs out.
    matches!(
        board.renew(&lease.task, lease.token),
        Err(Error::Refused(_))
    )
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.raise(InterruptCause::Stopped);
        if let Some(thread) = self.thread.take() {
            // Ignored: a panic in it would already have been printed.
            drop(thread.join());
        }
    }
}
