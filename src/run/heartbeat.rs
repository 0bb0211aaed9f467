//! The heartbeat of a held task: a thread of the supervisor's that renews the lease while the agent works, its
//! worktree is set up and its work is verified. The model never renews anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::board::lease::Lease;
use crate::clock;
use crate::interrupt::{Cause, Interrupt};
use crate::process::Bell;
use crate::store::{Board, Error};

/// Beats until dropped.
pub struct Heartbeat {
    board: Board,
    lease: Lease,
    stop: Interrupt,
    lost: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Renews `lease` three times in its length. If somebody else holds the task, `bell` rings and [`Heartbeat::is_lost`]
    /// says so: the late holder must stop.
    pub fn start(board: &Board, lease: &Lease, bell: &Bell) -> Heartbeat {
        let stop = Interrupt::new();
        let lost = Arc::new(AtomicBool::new(false));
        let pause = Duration::from_secs(u64::from(lease.seconds)) / 3;
        let thread = std::thread::spawn({
            let (board, lease, bell) = (board.clone(), lease.clone(), bell.clone());
            let (stop, lost) = (stop.clone(), Arc::clone(&lost));
            move || {
                while !stop.wait(pause) {
                    if is_refused(&board, &lease) {
                        lost.store(true, Ordering::SeqCst);
                        bell.ring();
                        return;
                    }
                }
            }
        });
        Heartbeat { board: board.clone(), lease: lease.clone(), stop, lost, thread: Some(thread) }
    }

    /// Beats now: after a sleep of this process, or of the machine, the thread may not have done so yet. True if somebody
    /// else holds the task.
    pub fn finds_lost(&self) -> bool {
        if is_refused(&self.board, &self.lease) {
            self.lost.store(true, Ordering::SeqCst);
        }
        self.is_lost()
    }

    /// Somebody else holds the task now.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }
}

fn is_refused(board: &Board, lease: &Lease) -> bool {
    // Any other error, of a full disk or a slow network drive, may be over before the lease runs out.
    matches!(board.renew(&lease.task, lease.token, clock::now()), Err(Error::Refused(_)))
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.raise(Cause::Stopped);
        if let Some(thread) = self.thread.take() {
            // It only beats; a panic in it would already have been printed.
            drop(thread.join());
        }
    }
}
