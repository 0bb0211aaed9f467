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

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_signal_wakes_and_a_second_one_hurries() {
        let interrupt = Interrupt::new();
        // Not one that would keep the test program from being ended.
        forward(&[signal_hook::consts::SIGUSR1], &interrupt).expect("a free signal");
        let (tell, told) = mpsc::channel();
        let _subscription = interrupt.subscribe(move || tell.send(()).expect("the test listens"));
        for is_hurried in [false, true] {
            kill_process(getpid(), Signal::USR1).expect("we may signal ourselves");
            assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(()));
            assert_eq!(interrupt.is_hurried(), is_hurried);
        }
        assert_eq!(interrupt.cause(), Some(InterruptCause::Terminated));
    }
}
