//! Signals become an [`Interrupt`].

use std::io;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::interrupt::{Interrupt, InterruptCause};

/// Those that ask a program to end: Ctrl-C, `kill`, and a terminal that was closed.
pub const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// From now on each of `signals` raises `interrupt` instead of ending the process. A thread of its own blocks until one
/// comes, so nothing is polled.
pub fn forward(signals: &[i32], interrupt: &Interrupt) -> io::Result<()> {
    let mut signals = Signals::new(signals)?;
    let interrupt = interrupt.clone();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            interrupt.raise(if signal == SIGINT { InterruptCause::Interrupted } else { InterruptCause::Terminated });
        }
    })?;
    Ok(())
}
