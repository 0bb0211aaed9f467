//! Tells which processes use a file. Is its living creator still using it? This is checked before a lock file is taken
//! for the remains of a killed program. Is it being written? This is checked before a save is taken as complete.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};

use super::identity::sees_all;
use super::table::{ProcessEntry, all};
use crate::clock;

/// The kernel reports the boot time in whole seconds.
const ROUNDING: Duration = Duration::from_secs(2);

/// Returns false only if certainly no living process uses `file`, which was last written at `written`. That is: none
/// has it open, and no process
/// with a name that begins with `program` started before that and may work in one of `folders`.
pub fn may_be_in_use(program: &str, folders: &[PathBuf], file: &Path, written: SystemTime) -> bool {
    let (Some(boot), Ok(file)) = (boot_time(), fs::canonicalize(file)) else {
        return true;
    };
    let ticks = rustix::param::clock_ticks_per_second();
    let began = |entry: &ProcessEntry| {
        boot + Duration::from_secs_f64(entry.start_time as f64 / ticks as f64)
    };
    let may_be_it = |entry: &ProcessEntry| {
        has_open(entry.pid, &file)
            || (began(entry) <= written + ROUNDING
                && is_called(entry.pid, program)
                && may_work_in(entry.pid, folders))
    };
    // A process that ends during the check looks like one that may not be inspected.
    let is_there = |entry: &ProcessEntry| {
        ProcessEntry::of(entry.pid)
            .is_some_and(|now| now.start_time == entry.start_time && !now.is_zombie)
    };
    all()
        .iter()
        .filter(|entry| !entry.is_zombie)
        .any(|entry| may_be_it(entry) && is_there(entry))
}

/// A file changed this recently may change again, if its writers may be invisible.
const QUIET: Duration = Duration::from_millis(200);

/// Returns true if a process has one of `files` open for writing. The kernel answers only a file's owner; for others,
/// writers of other users are not seen, nor are writers over a network. In a container, where outside processes are
/// invisible, a file changed just now counts as well.
pub fn is_being_written(files: &[&Path]) -> bool {
    let files = files.iter().filter(|file| !has_no_writer(file));
    let files: Vec<fs::Metadata> = files.filter_map(|file| fs::metadata(file).ok()).collect();
    if files.is_empty() {
        return false;
    }
    let is_one = |open: &fs::Metadata| {
        files
            .iter()
            .any(|file| (file.dev(), file.ino()) == (open.dev(), open.ino()))
    };
    let is_fresh = |file: &fs::Metadata| {
        file.modified()
            .is_ok_and(|at| clock::since(at).is_some_and(|age| age < QUIET))
    };
    all().iter().any(|entry| writes(entry.pid, &is_one))
        || !sees_all() && files.iter().any(is_fresh)
}

/// From `asm-generic/fcntl.h`; the crate has it for few systems.
const F_SETSIG: libc::c_int = 10;

/// Returns true if the kernel grants a read lease on the file, so no process has it open for writing. It grants none
/// for a file of another user, or on a file system without leases.
#[expect(
    unsafe_code,
    reason = "no crate offers leases without; the arguments are numbers, and the file is open"
)]
fn has_no_writer(file: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(file, flags, Mode::empty()) else {
        return false;
    };
    let set = |what, to: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), what, to) } == 0;
    // A process that opens it for writing meanwhile waits until it is closed here. The kernel notifies us with a signal
    // that is ignored by default; the usual one would kill us.
    set(F_SETSIG, libc::SIGURG) && set(libc::F_SETLEASE, libc::F_RDLCK)
}

/// Returns true if the kernel grants a write lease on `file`, which is open here for writing, so no other process has
/// it open at all. It grants none either where [`is_being_written`] can't ask it.
#[expect(
    unsafe_code,
    reason = "no crate offers leases without; the arguments are numbers, and the file is open"
)]
pub fn is_open_here_alone(file: &File) -> bool {
    let set = |to: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, to) } == 0;
    // A process that opens it before the lease is released waits for that; the signal is ignored, as above.
    let has_sole =
        unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) } == 0 && set(libc::F_WRLCK);
    has_sole && set(libc::F_UNLCK)
}

/// Returns true if the process has the file open for writing. The mode of each link in `fd` shows how a file was
/// opened, so no other file is touched.
fn writes(pid: u32, is_one: &impl Fn(&fs::Metadata) -> bool) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let mut written =
        open.filter(|entry| entry.metadata().is_ok_and(|link| link.mode() & 0o200 != 0));
    written.any(|entry| fs::metadata(entry.path()).is_ok_and(|file| is_one(&file)))
}

fn boot_time() -> Option<SystemTime> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(line.trim().parse().ok()?))
}

fn has_open(pid: u32, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    open.into_iter()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == file))
}

/// Returns false for a process that has ended meanwhile.
fn is_called(pid: u32, program: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(program))
}

/// Returns true unless its working directory, environment and command line all point elsewhere; anything unreadable may
/// point anywhere.
fn may_work_in(pid: u32, folders: &[PathBuf]) -> bool {
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
    let own = fs::read_link("/proc/self/ns/mnt");
    // In another mount namespace its paths mean other files.
    let is_near = own.is_ok_and(|own| link("ns/mnt").is_ok_and(|theirs| theirs == own));
    let Ok(cwd) = link("cwd") else { return true };
    if !is_near || folders.iter().any(|folder| cwd.starts_with(folder)) {
        return true;
    }
    ["environ", "cmdline"].iter().any(|name| {
        let mut bytes = Vec::new();
        let file = File::open(format!("/proc/{pid}/{name}"));
        let Ok(_) = file.and_then(|mut file| file.read_to_end(&mut bytes)) else {
            return true;
        };
        // git passes `GIT_DIR=.git` to its children; a path that can't be resolved may lead anywhere.
        let leads_in = |word: &[u8]| {
            let value = word
                .strip_prefix(b"GIT_DIR=")
                .or_else(|| word.strip_prefix(b"--git-dir="));
            let path = value.map(|value| cwd.join(OsStr::from_bytes(value)).canonicalize());
            let is_in = |path: io::Result<PathBuf>| {
                path.map_or(true, |path| {
                    folders.iter().any(|folder| path.starts_with(folder))
                })
            };
            word == b"--git-dir" || path.is_some_and(is_in)
        };
        let names = |folder: &PathBuf| {
            let folder = folder.as_os_str().as_encoded_bytes();
            bytes.windows(folder.len()).any(|part| part == folder)
        };
        bytes.split(|byte| *byte == 0).any(leads_in) || folders.iter().any(names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_being_written_while_somebody_has_it_open_for_that() {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        assert!(is_being_written(&[Path::new("/nowhere"), file.path()]));
        let path = file.into_temp_path();
        let reading = File::open(&path).expect("it is there");
        reading
            .set_modified(SystemTime::UNIX_EPOCH)
            .expect("it is ours");
        assert!(!is_being_written(&[&path]));
    }

    #[test]
    fn a_file_is_open_here_alone_until_somebody_opens_it_to_read() {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        assert!(is_open_here_alone(file.as_file()));
        let reading = File::open(file.path()).expect("it is there");
        assert!(!is_open_here_alone(file.as_file()));
        drop(reading);
        assert!(is_open_here_alone(file.as_file()));
    }
}
