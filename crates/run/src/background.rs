//! Work in a thread of its own, which nobody waits for before the program ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tavern_sys::clock::Deadline;
use tavern_sys::interrupt::{Interrupt, InterruptCause};
use tavern_sys::process::Bell;

/// How long its end is waited for: what is not done by then is for whoever comes next.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long what is broken off may take to end.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Does its work when it is asked to, until it is dropped. `T` is what it works with.
pub(super) struct Background<T> {
    requests: Option<SyncSender<Arc<Mutex<T>>>>,
    with: Arc<Mutex<T>>,
    /// Breaks the work off.
    own: Interrupt,
    program: Interrupt,
    bell: Bell,
    has_ended: Arc<AtomicBool>,
}

impl<T: Send + 'static> Background<T> {
    /// `own` breaks `work` off, at the latest when `program` is raised and this is dropped.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        with: T,
        own: Interrupt,
        program: &Interrupt,
        work: impl Fn(&T) + Send + 'static,
    ) -> io::Result<Background<T>> {
        let (bell, has_ended) = (Bell::new(), Arc::new(AtomicBool::new(false)));
        // One request that waits is enough for all that happened before it.
        let (requests, wanted) = sync_channel::<Arc<Mutex<T>>>(1);
        thread::Builder::new().spawn({
            let (bell, has_ended) = (bell.clone(), Arc::clone(&has_ended));
            move || {
                while let Ok(with) = wanted.recv() {
                    // Nobody else takes it.
                    work(&with.lock().unwrap_or_else(PoisonError::into_inner));
                }
                has_ended.store(true, Ordering::SeqCst);
                bell.ring();
            }
        })?;
        let (requests, with) = (Some(requests), Arc::new(Mutex::new(with)));
        Ok(Background {
            requests,
            with,
            own,
            program: program.clone(),
            bell,
            has_ended,
        })
    }

    /// Asks for the work, once more where it is being done.
    pub fn ask(&self) {
        if let Some(requests) = &self.requests {
            // Else one waits already.
            let _ = requests.try_send(Arc::clone(&self.with));
        }
    }

    /// What is asked for from now on is done with that. What is being done goes on as it began.
    pub fn go_on_with(&mut self, with: T) {
        self.with = Arc::new(Mutex::new(with));
    }

    /// What breaks the work off.
    pub fn interrupt(&self) -> Interrupt {
        self.own.clone()
    }
}

impl<T> Background<T> {
    fn wait(&self, patience: Duration, is_over: impl Fn() -> bool) -> bool {
        let deadline = Deadline::after(patience);
        while !self.has_ended.load(Ordering::SeqCst) && !deadline.has_passed() && !is_over() {
            self.bell.wait(deadline.left());
        }
        self.has_ended.load(Ordering::SeqCst)
    }
}

impl<T> Drop for Background<T> {
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
