//! A process that works for others and has no terminal: what it starts can neither write to one nor wait for keys.

use std::fs::File;
use std::os::fd::AsRawFd;

/// From now on neither this process nor what it starts can open `/dev/tty`, as if nobody had started it at a terminal.
#[expect(
    unsafe_code,
    reason = "no crate offers it without; the file is open, and there is no argument"
)]
pub fn leave_terminal() {
    // Where there is none it can't be opened.
    if let Ok(terminal) = File::open("/dev/tty") {
        unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
    }
}
