//! Turns signals into an [`Interrupt`].

use std::fs;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit::Exit;
use tavern_sys::clock;
use tavern_sys::interrupt::{Interrupt, InterruptCause};
use tavern_sys::process::{Bell, end_overdue, has_living_children};

/// Signals that ask a program to end: Ctrl-C, `kill`, and a closed terminal.
pub const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Makes each of `signals` raise `interrupt` instead of ending the process. A thread blocks until one arrives, so
/// nothing is polled. An ignored SIGHUP stays ignored, as `nohup` asks. An ignored SIGINT does not: a shell ignores it
/// for all programs that it starts with `&`.
pub fn forward(signals: &[i32], interrupt: &Interrupt) -> io::Result<()> {
    let is_nohup = is_ignored(SIGHUP);
    let is_heeded = |signal: &&i32| **signal != SIGHUP || !is_nohup;
    let mut signals = Signals::new(signals.iter().filter(is_heeded))?;
    let interrupt = interrupt.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                interrupt.raise(if signal == SIGINT {
                    InterruptCause::Interrupted
                } else {
                    InterruptCause::Terminated
                });
            }
        })?;
    Ok(())
}

/// Returns whether this process ignores `signal`; the mask has one bit for each signal from 1 on.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Interval between checks for hanging children, and the time they get after an end was requested. Agents and commands
/// are exempt. After the first overdue child, the others get only `LOOK`.
const LOOK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(2);

/// Ends this process in time after a request, even if it waits forever, such as for a pipe in place of a file that git
/// or libgit2 reads. Agents and commands have limits of their own.
pub fn end_in_time(interrupt: &Interrupt) -> io::Result<()> {
    let interrupt = interrupt.clone();
    thread::Builder::new()
        .name("end".to_owned())
        .spawn(move || {
            while !interrupt.wait(Duration::from_secs(86_400)) {}
            let (pause, mut patience) = (Bell::new(), PATIENCE);
            let mut busy = clock::instant();
            while busy.elapsed() < 3 * PATIENCE / 2 {
                pause.wait(LOOK);
                if end_overdue(patience) {
                    patience = LOOK;
                }
                if has_living_children() {
                    busy = clock::instant();
                }
            }
            give_up(&interrupt);
        })?;
    Ok(())
}

/// Exits as if killed: the next program puts all that is left in order.
#[expect(
    clippy::disallowed_methods,
    reason = "the thread that would return it hangs in the system"
)]
fn give_up(interrupt: &Interrupt) -> ! {
    let text = "error: a thread or process did not end in time: exiting without it; see `tavern reap --dry-run`\n";
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
    let exit = interrupt.cause().map_or(Exit::Terminated, Exit::from);
    std::process::exit(exit.code().into())
}
