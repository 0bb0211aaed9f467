//! The process table of `/proc`, and which processes belong together. It ends none of them.

use std::collections::HashSet;
use std::fs;
use std::io::Read;

use super::mark::{self, Mark};

/// One process at one moment, from `/proc/<pid>/stat` (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEntry {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    /// Start time in ticks since boot: with the pid, it identifies one process.
    pub start_time: u64,
    /// Resident memory in pages.
    pub resident_pages: u64,
    /// Whether it has ended and only waits to be reaped.
    pub is_zombie: bool,
}

impl ProcessEntry {
    /// Returns the current process `pid`; `None` if there is none.
    pub fn of(pid: u32) -> Option<ProcessEntry> {
        named(pid).map(|(entry, _)| entry)
    }
}

/// Returns the process `pid` and its program's name, of which the kernel keeps 15 bytes.
pub(super) fn named(pid: u32) -> Option<(ProcessEntry, Vec<u8>)> {
    // Longer than the part that is needed.
    let mut stat = [0; 1024];
    let length = fs::File::open(format!("/proc/{pid}/stat"))
        .ok()?
        .read(&mut stat)
        .ok()?;
    parse_stat(&stat[..length])
}

/// Returns every visible process.
pub fn all() -> Vec<ProcessEntry> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(ProcessEntry::of)
        .collect()
}

/// Returns the children of this process, including unreaped ones; `None` if the system has no list of them
/// (CONFIG_PROC_CHILDREN). An adopted orphan becomes a child of the first thread, which is always there.
pub(super) fn own_children() -> Option<Vec<u32>> {
    let threads = fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok);
    // A thread that has ended meanwhile has none.
    let lists: Vec<String> = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .collect();
    let pids = lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| pid.parse().ok());
    (!lists.is_empty()).then(|| pids.collect())
}

/// Returns the living processes of `all` that belong to a run: those for which `is_seed` is true, those with `mark`,
/// their descendants, and all in a group or session that one of these leads. Never this process, its ancestors, or pid
/// 1.
///
/// None of them started before `since` (in ticks, as [`ProcessEntry::start_time`]), so older processes' environments
/// are not read.
pub(super) fn members(
    all: Vec<ProcessEntry>,
    is_seed: impl Fn(&ProcessEntry) -> bool,
    mark: Option<&Mark>,
    since: u64,
) -> Vec<ProcessEntry> {
    // Pid 0 is the kernel's, and stands for groups without a leader.
    let spared: HashSet<u32> = [0, 1, std::process::id()]
        .into_iter()
        .chain(above())
        .collect();
    let is_marked = |entry: &ProcessEntry| {
        mark.is_some_and(|mark| entry.start_time >= since && is_marked(entry.pid, mark))
    };
    let mut found: HashSet<u32> = HashSet::new();
    for entry in &all {
        if !spared.contains(&entry.pid) && (is_seed(entry) || is_marked(entry)) {
            found.insert(entry.pid);
        }
    }
    loop {
        let before = found.len();
        for entry in &all {
            // A group or session counts only if a member leads it: a member may have been started in the session of a
            // person's terminal, and that shell must not be ended.
            let is_led = [entry.parent, entry.group, entry.session]
                .iter()
                .any(|leader| found.contains(leader));
            if is_led && !spared.contains(&entry.pid) {
                found.insert(entry.pid);
            }
        }
        if found.len() == before {
            break;
        }
    }
    all.into_iter()
        .filter(|entry| found.contains(&entry.pid) && !entry.is_zombie)
        .collect()
}

/// Returns the living processes with `mark`, and their descendants.
pub fn marked(mark: &Mark) -> Vec<ProcessEntry> {
    members(all(), |_| false, Some(mark), 0)
}

/// Returns the program that the wrapper `pid` started: its child. In a separate pid namespace that child is its first
/// process, which only reaps; then the program is that one's first child, since all others came later.
pub(super) fn wrapped_by(pid: u32) -> Vec<ProcessEntry> {
    let all = all();
    let children = |pid: u32| {
        all.iter()
            .filter(move |entry| entry.parent == pid && !entry.is_zombie)
    };
    let program = |child: &ProcessEntry| {
        let first = children(child.pid).min_by_key(|entry| (entry.start_time, entry.pid));
        if leads_namespace(child.pid) {
            first.copied()
        } else {
            Some(*child)
        }
    };
    children(pid).filter_map(program).collect()
}

/// Returns true if it is process 1 of a pid namespace below the one that `/proc` shows.
fn leads_namespace(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .unwrap_or_default();
    pids.split_whitespace().skip(1).last() == Some("1")
}

/// Returns the summed resident memory of `members` in MiB; shared pages are counted for each.
pub fn resident_mib(members: &[ProcessEntry]) -> u64 {
    let page = rustix::param::page_size() as u64;
    members
        .iter()
        .map(|entry| entry.resident_pages * page)
        .sum::<u64>()
        / (1024 * 1024)
}

/// Returns the ancestors of this process, and pid 1, as far as visible.
fn above() -> Vec<u32> {
    let mut above = Vec::new();
    let mut next = ProcessEntry::of(std::process::id());
    while let Some(entry) = next.filter(|entry| entry.parent != 0 && !above.contains(&entry.parent))
    {
        above.push(entry.parent);
        next = ProcessEntry::of(entry.parent);
    }
    above
}

/// Returns the values of [`Mark::RUN`] of all living processes.
pub fn marks() -> Vec<String> {
    let living = all().into_iter().filter(|entry| !entry.is_zombie);
    let environs: Vec<Vec<u8>> = living.filter_map(|entry| environ(entry.pid)).collect();
    marks_in(environs.iter().map(Vec::as_slice))
}

pub(super) fn marks_in<'e>(environs: impl Iterator<Item = &'e [u8]>) -> Vec<String> {
    let mut marks: Vec<String> = environs
        .flat_map(|environ| mark::values(Mark::RUN, environ))
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .collect();
    marks.sort();
    marks.dedup();
    marks
}

fn is_marked(pid: u32, mark: &Mark) -> bool {
    environ(pid).is_some_and(|environ| mark.is_in(&environ))
}

/// Returns the environment that a process was started with; `None` for another user's.
pub(super) fn environ(pid: u32) -> Option<Vec<u8>> {
    // Linux limits it to 6 MB.
    const MOST: u64 = 8 * 1024 * 1024;
    let file = fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    // A read that does not fill the buffer was the last.
    let mut environ = vec![0; 16 * 1024];
    let read = (&file).read(&mut environ).ok()?;
    if read < environ.len() {
        environ.truncate(read);
    } else {
        file.take(MOST).read_to_end(&mut environ).ok()?;
    }
    Some(environ)
}

fn parse_stat(stat: &[u8]) -> Option<(ProcessEntry, Vec<u8>)> {
    // The program's name is in parentheses and may itself contain blanks and parentheses: the last one closes it.
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(stat.split(|byte| *byte == b' ').next()?)
        .ok()?
        .parse()
        .ok()?;
    let fields: Vec<&str> = std::str::from_utf8(&stat[close + 1..])
        .ok()?
        .split_whitespace()
        .collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let entry = ProcessEntry {
        pid,
        is_zombie: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: number(1)? as u32,
        group: number(2)? as u32,
        session: number(3)? as u32,
        start_time: number(19)?,
        resident_pages: number(21)?,
    };
    Some((entry, stat.get(open + 1..close)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_is_skipped() {
        let line = b"71 (a) S (b) R 7 70 69 34816 70 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 10000000 250 99 0\n";
        let (entry, name) = parse_stat(line).expect("it is a whole line");
        assert_eq!(name, b"a) S (b");
        assert_eq!(
            entry,
            ProcessEntry {
                pid: 71,
                parent: 7,
                group: 70,
                session: 69,
                start_time: 123_456,
                resident_pages: 250,
                is_zombie: false
            }
        );
        assert_eq!(
            parse_stat(b"71 (\xff) Z 7 70 69 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 0 0")
                .map(|(e, _)| (e.pid, e.is_zombie)),
            Some((71, true))
        );
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b"71 (sh) R 7"), None);
    }

    #[test]
    fn this_process_and_its_ancestors_are_never_members() {
        let own = ProcessEntry::of(std::process::id()).expect("this process runs");
        let found = members(
            all(),
            |entry| [own.pid, own.parent, 1].contains(&entry.pid),
            None,
            0,
        );
        assert!(
            found
                .iter()
                .all(|entry| entry.pid != own.pid && entry.pid != own.parent && entry.pid != 1)
        );
    }
}
