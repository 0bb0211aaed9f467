//! Files that this program's parent left open: a lock's, an editor's, a job server's.

use std::fs;

const FIRST: i32 = libc::STDERR_FILENO + 1;

/// Marks inherited files as close-on-exec. In a sandbox, an open folder would lead out of it (`/proc/self/fd/9/..`).
/// Call it only at the start of a program, while no other thread opens or closes files.
#[expect(
    unsafe_code,
    reason = "no crate marks descriptors that are only numbers; one that is closed by now is refused"
)]
pub fn keep_inherited() {
    // `int close_range(unsigned first, unsigned last, int flags)`, Linux 5.11.
    let marked = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if marked == 0 {
        return;
    }
    let open = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let numbers: Vec<i32> = open
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number >= FIRST) {
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
