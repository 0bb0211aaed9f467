//! Whether a program waits for what never comes: it opens or reads a pipe, or reads a device without an end, that somebody has put in the
//! place of a file after it was looked for. Linux shows it (proc_pid_syscall(5)), to the parent at least.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::table;
use crate::clock;

/// For so long. A file on a slow network may take some time to be opened.
const PATIENCE: Duration = Duration::from_secs(3);

/// The system calls that open a file.
#[cfg(target_arch = "x86_64")]
const OPENING: [libc::c_long; 3] = [libc::SYS_open, libc::SYS_openat, libc::SYS_openat2];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: [libc::c_long; 2] = [libc::SYS_openat, libc::SYS_openat2];

/// What the processes of one group wait for, and since when.
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

    /// Looks at those of the group that are of the same program as its first one: what else it has started may open what it likes.
    /// Returns whether one waits for the same as at all looks for some time.
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

/// What it is just opening: for a moment, unless that is a pipe.
fn opened(pid: u32) -> Option<String> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let number = call.split(' ').next()?.parse().ok()?;
    OPENING.contains(&number).then_some(call)
}

/// A pipe or a device that it reads and has opened by its path.
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

/// Its flags, an octal number, end with 1 if it is only written to.
fn is_read(pid: u32, open: &Path) -> bool {
    let number = open.file_name().unwrap_or_default();
    let number = String::from_utf8_lossy(number.as_bytes());
    let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| !flags.ends_with('1'))
}
