//! Work in a thread of its own, which nobody waits for before the program ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::clock::Deadline;
use crate::interrupt::{Interrupt, InterruptCause};
use crate::process::Bell;

/// How long its end is waited for: what is not done by then is for whoever comes next.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long what is broken off may take to end.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Does its work when it is asked to, until it is dropped.
pub(super) struct Background {
    requests: Option<SyncSender<()>>,
    /// Breaks the work off.
    own: Interrupt,
    program: Interrupt,
    bell: Bell,
    has_ended: Arc<AtomicBool>,
}

impl Background {
    /// `own` breaks `work` off, at the latest when `program` is raised and this is dropped.
    pub fn start(own: Interrupt, program: &Interrupt, work: impl Fn() + Send + 'static) -> Background {
        let (bell, has_ended) = (Bell::new(), Arc::new(AtomicBool::new(false)));
        // One request that waits is enough for all that happened before it.
        let (requests, wanted) = sync_channel(1);
        thread::spawn({
            let (bell, has_ended) = (bell.clone(), Arc::clone(&has_ended));
            move || {
                while wanted.recv().is_ok() {
                    work();
                }
                has_ended.store(true, Ordering::SeqCst);
                bell.ring();
            }
        });
        Background { requests: Some(requests), own, program: program.clone(), bell, has_ended }
    }

    /// Asks for the work, once more where it is being done.
    pub fn ask(&self) {
        if let Some(requests) = &self.requests {
            // Else one waits already.
            let _ = requests.try_send(());
        }
    }

    fn wait(&self, patience: Duration, is_over: impl Fn() -> bool) -> bool {
        let deadline = Deadline::after(patience);
        while !self.has_ended.load(Ordering::SeqCst) && !deadline.has_passed() && !is_over() {
            self.bell.wait(deadline.left());
        }
        self.has_ended.load(Ordering::SeqCst)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.requests = None;
        let _subscription = self.bell.ring_at(&self.program);
        if !self.wait(PATIENCE, || self.program.is_raised()) {
            self.own.raise(InterruptCause::Stopped);
            // What does not hear that is killed.
            if !self.wait(LAST_PATIENCE, || false) {
                self.own.raise(InterruptCause::Stopped);
                self.wait(LAST_PATIENCE, || false);
            }
        }
    }
}
