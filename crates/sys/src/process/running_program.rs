//! A running program and its descendants. Knows nothing of its purpose.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::bell::Bell;
use super::end::{end_found, request_end, send};
use super::family;
use super::mark::Mark;
use super::table;

/// How a program ended; prints as words that follow its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramExit {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Its status was collected elsewhere (this process ignores SIGCHLD).
    Lost,
}

/// The kind of the started process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Program,
    /// The parent of the program: it ends when the program does, with the same status, and does not pass signals on.
    Wrapper,
}

/// A program that was started here. Dropping it ends the whole tree at once.
#[derive(Debug)]
pub struct RunningProgram {
    inner: std::process::Child,
    root: Root,
    /// In ticks since boot.
    start_time: u64,
    mark: Option<Mark>,
    seen: Arc<Mutex<Seen>>,
    /// Descendants seen earlier: found again even if they have lost their parent and cleared their environment since.
    remembered: Vec<table::ProcessEntry>,
    is_reaped: bool,
}

#[derive(Debug, Default)]
struct Seen {
    exit: Option<ProgramExit>,
    bells: Vec<Bell>,
}

impl RunningProgram {
    pub(super) fn new(
        inner: std::process::Child,
        mark: Option<Mark>,
        root: Root,
    ) -> io::Result<RunningProgram> {
        let pid = inner.id();
        let start_time = table::ProcessEntry::of(pid).map_or(0, |entry| entry.start_time);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let cell = Arc::clone(&seen);
        let child = RunningProgram {
            inner,
            root,
            start_time,
            mark,
            seen,
            remembered: Vec::new(),
            is_reaped: false,
        };
        let waited = pid_of(pid);
        // The thread only observes (NOWAIT): until the owner reaps the child, its pid and group are not reused.
        std::thread::Builder::new()
            .name(format!("wait-{pid}"))
            .stack_size(64 * 1024)
            .spawn(move || {
                let exit = wait_without_reaping(waited);
                let mut seen = lock(&cell);
                seen.exit = Some(exit);
                seen.bells.drain(..).for_each(|bell| bell.ring());
            })?;
        Ok(child)
    }

    pub fn pid(&self) -> u32 {
        self.inner.id()
    }

    /// Returns how it ended, if it has. Its descendants may live on: see [`RunningProgram::sweep`].
    pub fn exit(&self) -> Option<ProgramExit> {
        lock(&self.seen).exit
    }

    /// Sleeps until it has ended, at most for `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<ProgramExit> {
        let bell = Bell::new();
        self.wake(&bell);
        bell.wait(timeout);
        self.exit()
    }

    /// Rings `bell` when it has ended; at once if it has already.
    pub fn wake(&self, bell: &Bell) {
        let mut seen = lock(&self.seen);
        match seen.exit {
            Some(_) => bell.ring(),
            None => seen.bells.push(bell.clone()),
        }
    }

    /// Sends `signal` to the program only, not to its descendants.
    pub fn signal(&self, signal: Signal) {
        if self.root == Root::Wrapper && !self.is_reaped {
            send(&table::wrapped_by(self.pid()), signal);
        } else if !self.is_reaped {
            // It may have ended just now.
            let _ = kill_process(pid_of(self.pid()), signal);
        }
    }

    /// Returns the program and its living descendants, including those seen earlier.
    pub fn members(&self) -> Vec<table::ProcessEntry> {
        let root = (!self.is_reaped).then_some(self.pid());
        let all = table::all();
        family::lock().reap(&all);
        let mut members = table::members(
            all,
            |entry| self.is_seed(root, entry),
            self.mark.as_ref(),
            self.start_time,
        );
        for old in &self.remembered {
            let is_new = members.iter().all(|entry| entry.pid != old.pid);
            let now = if is_new {
                table::ProcessEntry::of(old.pid)
            } else {
                None
            };
            members.extend(now.filter(|now| now.start_time == old.start_time && !now.is_zombie));
        }
        members
    }

    /// Records the whole tree and returns its resident memory in MiB. Call it now and then.
    pub fn look(&mut self) -> u64 {
        self.remembered = self.members();
        table::resident_mib(&self.remembered)
    }

    /// Asks the whole tree to end (TERM), without waiting.
    pub fn request_end(&mut self) {
        self.look();
        // Ending the wrapper would orphan its program in the middle of its graceful end.
        let is_asked =
            |entry: &&table::ProcessEntry| self.root == Root::Program || entry.pid != self.pid();
        request_end(
            &self
                .remembered
                .iter()
                .filter(is_asked)
                .copied()
                .collect::<Vec<_>>(),
        );
    }

    /// Ends the whole tree: TERM, `grace`, KILL. Returns when nothing is left, or only processes that resist SIGKILL.
    pub fn end(&mut self, grace: Duration) {
        if !self.has_left_nothing() {
            end_found(|| self.members(), grace);
        }
        self.reap();
    }

    /// Ends the processes that the ended program left behind. A program that still runs is ended too.
    pub fn sweep(&mut self) {
        self.end(Duration::from_millis(500));
    }

    /// Returns true if it ended by itself before it was ever looked at, and no descendant lives: then the process table
    /// need not be searched.
    fn has_left_nothing(&self) -> bool {
        self.exit().is_some() && self.remembered.is_empty() && family::lock().has_no_orphans()
    }

    fn is_seed(&self, root: Option<u32>, entry: &table::ProcessEntry) -> bool {
        let is_root = root.is_some_and(|root| entry.pid == root || entry.group == root);
        is_root || {
            let family = family::lock();
            // An adopted orphan without a mark can't be distinguished from another run's, unless there is no other run.
            family.is_adopted(entry) && family.is_only(self.pid())
        }
    }

    /// Reaps an ended program. Descendants that still run are not searched for.
    pub(super) fn reap(&mut self) {
        if self.exit().is_some() || self.wait(Duration::from_secs(1)).is_some() {
            // The status is known already; this frees the pid.
            self.is_reaped = self.inner.wait().is_ok();
            family::lock().remove(self.pid());
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.end(Duration::ZERO);
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProgramExit {
    pub fn is_success(self) -> bool {
        self == ProgramExit::Code(0)
    }
}

impl fmt::Display for ProgramExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramExit::Code(code) => write!(f, "exited with code {code}"),
            ProgramExit::Signal(signal) => write!(f, "was ended by signal {signal}"),
            ProgramExit::Lost => f.write_str("ended, and its exit status is lost"),
        }
    }
}

fn pid_of(pid: u32) -> Pid {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("the system gave this pid to a child: it is above zero")
}

fn wait_without_reaping(pid: Pid) -> ProgramExit {
    loop {
        match waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        ) {
            Ok(Some(status)) => {
                let by_signal = status.terminating_signal().map(ProgramExit::Signal);
                return by_signal
                    .or(status.exit_status().map(ProgramExit::Code))
                    .unwrap_or(ProgramExit::Lost);
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return ProgramExit::Lost,
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::process::start::{Spec, start};
    use std::fs;
    use std::path::Path;

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str, folder: &Path) -> Spec {
        Spec::new("sh", folder).args(["-c", script])
    }

    /// Wait until `path` holds a whole line, and give it.
    fn read_line(path: &Path) -> String {
        let deadline = clock::instant() + LONG;
        loop {
            if let Ok(text) = fs::read_to_string(path)
                && let Some(line) = text.strip_suffix('\n')
            {
                return line.to_owned();
            }
            assert!(
                clock::instant() < deadline,
                "`{}` was never written",
                path.display()
            );
            std::thread::yield_now();
        }
    }

    fn is_gone(pid: &str) -> bool {
        table::ProcessEntry::of(pid.parse().expect("a pid was written"))
            .is_none_or(|entry| entry.is_zombie)
    }

    #[test]
    fn the_exit_status_is_told_and_the_bell_rings() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rows = [
            ("exit 0", ProgramExit::Code(0)),
            ("exit 7", ProgramExit::Code(7)),
            ("kill -9 $$", ProgramExit::Signal(9)),
        ];
        for (script, exit) in rows {
            let mut child = start(shell(script, folder.path())).expect("sh starts");
            let bell = Bell::new();
            child.wake(&bell);
            assert!(bell.wait(LONG), "{script}");
            assert_eq!(child.exit(), Some(exit), "{script}");
            child.sweep();
            assert!(is_gone(&child.pid().to_string()), "{script}");
        }
    }

    #[test]
    fn input_arrives_whole_and_output_is_a_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("out");
        let file = fs::File::create(&path).expect("the folder is writable");
        let mut spec = shell("cat", folder.path());
        // More than a pipe holds.
        let text = "tavern\n".repeat(100_000).into_bytes();
        spec.input = Some(text.clone());
        spec.stdout = file.into();
        let mut child = start(spec).expect("sh starts");
        assert_eq!(child.wait(LONG), Some(ProgramExit::Code(0)));
        child.sweep();
        assert!(fs::read(&path).expect("it was written") == text);
    }

    #[test]
    fn ending_reaches_sessions_of_their_own_and_those_who_ignore_the_request() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // One ignores TERM in a session of its own, one has cleared its environment, one has lost its parent.
        let script = "setsid sh -c 'trap \"\" TERM; echo $$ > one; while :; do sleep 100; done' &
            env -i PATH=\"$PATH\" setsid sh -c 'echo $$ > two; while :; do sleep 100; done' &
            (setsid sh -c 'echo $$ > three; exec sleep 100' &)
            wait";
        let mark = Mark::run(folder.path().display().to_string());
        let mut child = start(shell(script, folder.path()).mark(mark)).expect("sh starts");
        let pids: Vec<String> = ["one", "two", "three"]
            .iter()
            .map(|name| read_line(&folder.path().join(name)))
            .collect();
        assert!(child.look() > 0);
        child.end(Duration::from_millis(200));
        for pid in &pids {
            assert!(is_gone(pid), "{pid} of {pids:?} lives on");
        }
        assert_eq!(child.exit(), Some(ProgramExit::Signal(15)));
    }

    #[test]
    fn dropping_ends_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let child = start(shell("echo $$ > pid; sleep 100", folder.path())).expect("sh starts");
        let pid = read_line(&folder.path().join("pid"));
        drop(child);
        assert!(is_gone(&pid));
    }

    #[test]
    fn what_is_said_to_a_wrapped_program_reaches_it_and_not_its_wrapper() {
        for (signal, is_request) in [("INT", false), ("TERM", true)] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let script = format!(
                "trap 'echo said > heard; exit 7' {signal}; echo go > ready; while :; do sleep 0.05; done"
            );
            let mut spec = shell(&script, folder.path());
            spec.wrapper = ["sh", "-c", "\"$@\"; exit $?", "sh"]
                .map(Into::into)
                .to_vec();
            let mut child = start(spec).expect("sh starts");
            read_line(&folder.path().join("ready"));
            if is_request {
                child.request_end();
            } else {
                child.signal(Signal::INT);
            }
            assert_eq!(child.wait(LONG), Some(ProgramExit::Code(7)), "{signal}");
            assert_eq!(read_line(&folder.path().join("heard")), "said");
            child.sweep();
        }
    }
}
