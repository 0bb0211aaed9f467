//! Ending processes: gracefully, then by force, until none is left. Knows pids and marks, not reasons.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::mark::Mark;
use super::table::{self, ProcessEntry};
use crate::clock::Deadline;

/// Ends every process with `mark`, and its descendants: TERM, `grace`, KILL. For orphans of a dead supervisor. Returns
/// the pids that survived even SIGKILL so far (they wait in the kernel for a disk or the network).
pub fn end_marked(mark: &Mark, grace: Duration) -> Vec<u32> {
    end_found(|| table::marked(mark), grace)
}

/// Ends the processes that `find` returns, until it returns none. They are found before the first signal: after its
/// parent's death, a process can be recognised only by the mark. Returns the survivors' pids.
pub(super) fn end_found(find: impl Fn() -> Vec<ProcessEntry>, grace: Duration) -> Vec<u32> {
    /// After this long, remaining processes are survivors.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// How long one KILL may take before the next search.
    const ROUND: Duration = Duration::from_millis(200);

    let mut handles: Vec<Handle> = find().iter().filter_map(Handle::open).collect();
    if handles.is_empty() {
        return Vec::new();
    }
    handles.iter().for_each(Handle::request_end);
    wait_until_gone(&mut handles, grace);
    let deadline = Deadline::after(PATIENCE);
    loop {
        // Processes of the first search stay in, even if a later one can't find them: they may have cleared their
        // environment and lost their parent.
        let mut found = find();
        found.extend(handles.iter().map(|handle| handle.entry));
        handles = found.iter().filter_map(Handle::open).collect();
        if handles.is_empty() {
            return Vec::new();
        }
        handles.iter().for_each(|handle| handle.send(Signal::KILL));
        wait_until_gone(&mut handles, ROUND);
        if !handles.is_empty() && deadline.has_passed() {
            return handles.iter().map(|handle| handle.entry.pid).collect();
        }
    }
}

/// Asks `members` to end (TERM), without waiting.
pub(super) fn request_end(members: &[ProcessEntry]) {
    for handle in members.iter().filter_map(Handle::open) {
        handle.request_end();
    }
}

/// Sends `signal` to `members`.
pub(super) fn send(members: &[ProcessEntry], signal: Signal) {
    members
        .iter()
        .filter_map(Handle::open)
        .for_each(|handle| handle.send(signal));
}

/// A process that can be signalled without hitting a later one with the same pid (pidfd_open(2)).
struct Handle {
    entry: ProcessEntry,
    pidfd: OwnedFd,
}

impl Handle {
    /// Returns `None` if the process has ended, or its pid was reused.
    fn open(entry: &ProcessEntry) -> Option<Handle> {
        let pid = Pid::from_raw(i32::try_from(entry.pid).ok()?)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Checked after the descriptor was opened: if the start time matches, so does the descriptor.
        let now = ProcessEntry::of(entry.pid)?;
        (now.start_time == entry.start_time && !now.is_zombie).then_some(Handle {
            entry: *entry,
            pidfd,
        })
    }

    fn request_end(&self) {
        self.send(Signal::TERM);
        // A stopped process receives its TERM only when it continues.
        self.send(Signal::CONT);
    }

    fn send(&self, signal: Signal) {
        // It may have ended meanwhile, or be another user's; the next search shows.
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }
}

/// Sleeps until all have ended, at most for `timeout`; removes those that have.
fn wait_until_gone(handles: &mut Vec<Handle>, timeout: Duration) {
    // Bounded by the system call's limit.
    let deadline = Deadline::after(timeout.min(Duration::from_secs(86_400)));
    while !handles.is_empty() {
        let left = deadline.left();
        let Ok(left_spec) = Timespec::try_from(left) else {
            return;
        };
        let mut fds: Vec<PollFd<'_>> = handles
            .iter()
            .map(|h| PollFd::new(&h.pidfd, PollFlags::IN))
            .collect();
        if poll(&mut fds, Some(&left_spec)).is_err_and(|error| error != rustix::io::Errno::INTR) {
            return;
        }
        let has_ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = has_ended.iter();
        handles.retain(|_| !ended.next().copied().unwrap_or(false));
        if left.is_zero() {
            return;
        }
    }
}
