//! Detects a program that waits forever: it opens or reads a pipe, or reads an endless device, that was put in place of
//! a file after the check. Linux shows this (proc_pid_syscall(5)), at least to the parent.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::table;
use crate::clock;

/// How long a wait may last. A file on a slow network may take some time to open.
const PATIENCE: Duration = Duration::from_secs(3);

/// The system calls that open a file.
#[cfg(target_arch = "x86_64")]
const OPENING: [libc::c_long; 3] = [libc::SYS_open, libc::SYS_openat, libc::SYS_openat2];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: [libc::c_long; 2] = [libc::SYS_openat, libc::SYS_openat2];

/// The waits of the processes of one group, with their start times.
pub(super) struct Waits {
    group: u32,
    seen: BTreeMap<u32, (String, Instant)>,
}

impl Waits {
    pub(super) fn of(group: u32) -> Waits {
        Waits {
            group,
            seen: BTreeMap::new(),
        }
    }

    /// Checks the processes of the group that run the same program as its first one; other children may open any file.
    /// Returns whether one has waited for the same file at all checks for some time.
    pub(super) fn are_endless(&mut self) -> bool {
        let Some((_, first)) = table::named(self.group) else {
            return false;
        };
        let members = table::all().into_iter().map(|entry| entry.pid);
        let is_same = |pid: &u32| {
            table::named(*pid)
                .is_some_and(|(entry, name)| entry.group == self.group && name == first)
        };
        let mut seen = BTreeMap::new();
        for pid in members.filter(is_same) {
            if let Some(place) = held(pid).or_else(|| opened(pid)) {
                let before = self
                    .seen
                    .remove(&pid)
                    .filter(|(before, _)| *before == place);
                seen.insert(pid, before.unwrap_or_else(|| (place, clock::instant())));
            }
        }
        self.seen = seen;
        self.seen
            .values()
            .any(|(_, since)| since.elapsed() > PATIENCE)
    }
}

/// Returns the open call in progress: it lasts for a moment, unless it opens a pipe.
fn opened(pid: u32) -> Option<String> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let number = call.split(' ').next()?.parse().ok()?;
    OPENING.contains(&number).then_some(call)
}

/// Returns a pipe or a device that it reads and has opened by path.
fn held(pid: u32) -> Option<String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let mut open = open.filter_map(Result::ok).map(|entry| entry.path());
    open.find(|path| is_endless(path) && is_read(pid, path))
        .map(|path| path.display().to_string())
}

fn is_endless(open: &Path) -> bool {
    // A pipe between two programs has no path.
    let has_path = |to: &Path| to.is_absolute() && to != OsStr::new("/dev/null");
    fs::read_link(open).is_ok_and(|to| has_path(&to))
        && open.metadata().is_ok_and(|found| {
            let kind = found.file_type();
            kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
        })
}

/// The flags, an octal number, end with 1 if the file is write-only.
fn is_read(pid: u32, open: &Path) -> bool {
    let number = open.file_name().unwrap_or_default();
    let number = String::from_utf8_lossy(number.as_bytes());
    let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| !flags.ends_with('1'))
}
