//! Work on a thread of its own, which the program waits for only at its end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tavern_sys::clock::Deadline;
use tavern_sys::interrupt::{Interrupt, InterruptCause};
use tavern_sys::process::Bell;

/// How long its end is waited for; the next process does the rest.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long interrupted work may take to end.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Does its work on request, until it is dropped. `T` is the work's input.
pub(super) struct Background<T> {
    requests: Option<SyncSender<Arc<Mutex<T>>>>,
    with: Arc<Mutex<T>>,
    /// Interrupts the work.
    own: Interrupt,
    program: Interrupt,
    bell: Bell,
    has_ended: Arc<AtomicBool>,
}

impl<T: Send + 'static> Background<T> {
    /// Starts the thread. `own` interrupts `work`, at the latest when `program` is raised and this is dropped.
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
        // One waiting request covers everything that happened before it.
        let (requests, wanted) = sync_channel::<Arc<Mutex<T>>>(1);
        thread::Builder::new().spawn({
            let (bell, has_ended) = (bell.clone(), Arc::clone(&has_ended));
            move || {
                while let Ok(with) = wanted.recv() {
                    // No other thread takes this lock.
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

    /// Requests the work, once more if it is being done.
    pub fn ask(&self) {
        if let Some(requests) = &self.requests {
            // If the channel is full, a request waits already.
            let _ = requests.try_send(Arc::clone(&self.with));
        }
    }

    /// Replaces the input of later requests. Work in progress keeps its own.
    pub fn go_on_with(&mut self, with: T) {
        self.with = Arc::new(Mutex::new(with));
    }

    /// Returns the interrupt of the work.
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
            // A second interrupt kills work that ignores the first.
            if !self.wait(LAST_PATIENCE, || false) {
                self.own.raise(InterruptCause::Stopped);
                self.wait(LAST_PATIENCE, || false);
            }
        }
    }
}
