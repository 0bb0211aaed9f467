//! Ends a child when this process is killed: it could otherwise wait forever, unsupervised.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Makes `command` receive TERM when the thread that starts it ends, so that thread must wait for it.
#[expect(
    unsafe_code,
    reason = "no crate offers it without; between fork and exec there are system calls alone"
)]
pub(super) fn end_with_us(command: &mut Command) {
    let own = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // This process may have been killed before that.
        if getppid() == Some(own) {
            Ok(())
        } else {
            Err(io::ErrorKind::Interrupted.into())
        }
    };
    unsafe { command.pre_exec(ask) };
}
