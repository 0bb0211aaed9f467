//! Files that this program's parent left open: a lock's, an editor's, a job server's.

use std::fs;

/// Marks inherited files as close-on-exec. In a sandbox, an open folder would lead out of it (`/proc/self/fd/9/..`).
/// Call it only at the start of a program, while no other thread opens or closes files.
#[expect(
    unsafe_code,
    reason = "no crate sets it on a descriptor that is only a number; one that is closed by now is refused"
)]
pub fn keep_inherited() {
    let open = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let numbers: Vec<i32> = open
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers
        .into_iter()
        .filter(|number| *number > libc::STDERR_FILENO)
    {
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
