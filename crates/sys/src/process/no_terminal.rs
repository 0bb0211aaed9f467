//! Detaches a background process from its terminal: its children can neither write to one nor wait for keys.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Prevents this process and its children from opening `/dev/tty`, as if it had not been started at a terminal.
#[expect(
    unsafe_code,
    reason = "no crate offers it without; the file is open, and there is no argument"
)]
pub fn leave_terminal() {
    // Fails if there is no terminal.
    if let Ok(terminal) = File::open("/dev/tty") {
        unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
    }
}
