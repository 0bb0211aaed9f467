//! The children of this process: those it started, and orphans it adopted. Knows only pids.
//!
//! A supervisor that adopts orphans (PR_SET_CHILD_SUBREAPER, prctl(2)) still sees a process that has lost its parent,
//! left its group and cleared its environment: it becomes a child of the supervisor. In return, the supervisor must
//! reap adopted processes.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use super::table::{self, ProcessEntry};

/// The known children of this process.
#[derive(Debug)]
pub(super) struct Family {
    /// Children started here and not reaped yet.
    started: BTreeSet<u32>,
    /// `None` until orphans are adopted; then the earlier children, which are no orphans (a shell may have started them
    /// and then become this program).
    older: Option<BTreeSet<u32>>,
}

static FAMILY: Mutex<Family> = Mutex::new(Family {
    started: BTreeSet::new(),
    older: None,
});

/// Locked while a child is started, so that it is not taken for an orphan before it is known.
pub(super) fn lock() -> MutexGuard<'static, Family> {
    FAMILY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes orphaned descendants children of this process instead of the first process. Call it once, at the start of a
/// supervising program.
///
/// # Errors
/// The system's error; everything works without it, less reliably.
pub fn adopt_orphans() -> io::Result<()> {
    let mut family = lock();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let own = std::process::id();
    family.older = Some(
        table::all()
            .iter()
            .filter(|entry| entry.parent == own)
            .map(|entry| entry.pid)
            .collect(),
    );
    Ok(())
}

/// Makes this process receive TERM when its parent dies. Returns false if the parent, which was `pid`, is gone already.
///
/// # Errors
/// The system's error.
pub fn end_with_parent(pid: u32) -> io::Result<bool> {
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    Ok(rustix::process::getppid()
        .is_some_and(|parent| i64::from(parent.as_raw_pid()) == i64::from(pid)))
}

/// Returns whether any process started here is still running.
pub fn has_living_children() -> bool {
    let is_living = |pid: &u32| ProcessEntry::of(*pid).is_some_and(|entry| !entry.is_zombie);
    lock().started.iter().any(is_living)
}

impl Family {
    pub(super) fn add(&mut self, pid: u32) {
        self.started.insert(pid);
    }

    pub(super) fn remove(&mut self, pid: u32) {
        self.started.remove(&pid);
    }

    /// Returns whether `pid` is the only child started here that is left: then every orphan is one of its own.
    pub(super) fn is_only(&self, pid: u32) -> bool {
        self.started.iter().all(|started| *started == pid)
    }

    /// Returns whether `entry` is an adopted orphan.
    pub(super) fn is_adopted(&self, entry: &ProcessEntry) -> bool {
        let Some(older) = &self.older else {
            return false;
        };
        entry.parent == std::process::id()
            && !self.started.contains(&entry.pid)
            && !older.contains(&entry.pid)
    }

    /// Returns whether all children were started here or are older: then an ended program has left nothing behind,
    /// since that would have been adopted. False if unknown.
    pub(super) fn has_no_orphans(&self) -> bool {
        let (Some(older), Some(children)) = (&self.older, table::own_children()) else {
            return false;
        };
        children
            .iter()
            .all(|child| self.started.contains(child) || older.contains(child))
    }

    /// Reaps those of `all` that were adopted and have ended.
    pub(super) fn reap(&self, all: &[ProcessEntry]) {
        for entry in all
            .iter()
            .filter(|entry| entry.is_zombie && self.is_adopted(entry))
        {
            if let Some(pid) = i32::try_from(entry.pid).ok().and_then(Pid::from_raw) {
                // Another thread may have been faster.
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
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
    use crate::process::start::{Spec, start};
    use std::process::Command;
    use std::time::Duration;

    /// Adopting changes the whole process, so the test runs itself in one of its own.
    const INNER: &str = "TAVERN_TEST_ADOPTS";

    #[test]
    fn an_orphan_that_hides_is_adopted_ended_and_reaped() {
        if std::env::var_os(INNER).is_some() {
            adopt();
            return;
        }
        let program = std::env::current_exe().expect("a test is a program");
        let name = "process::family::tests::an_orphan_that_hides_is_adopted_ended_and_reaped";
        let output = Command::new(program)
            .args(["--exact", name, "--nocapture"])
            .env(INNER, "1")
            .output();
        let output = output.expect("it can be started again");
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
    }

    fn adopt() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut older = Command::new("sleep")
            .arg("100")
            .spawn()
            .expect("sleep is on PATH");
        adopt_orphans().expect("Linux can do it");
        // No mark, no group, no session, no parent.
        let script = "(env -i PATH=\"$PATH\" setsid sh -c 'echo $$ > pid; exec sleep 100' &)
            while [ ! -s pid ]; do sleep 0.01; done";
        let mut child =
            start(Spec::new("sh", folder.path()).args(["-c", script])).expect("sh starts");
        assert!(child.wait(Duration::from_secs(20)).is_some());
        let text = std::fs::read_to_string(folder.path().join("pid")).expect("it wrote its pid");
        let orphan: u32 = text.trim().parse().expect("a pid");
        assert_eq!(
            ProcessEntry::of(orphan).map(|entry| entry.parent),
            Some(std::process::id())
        );
        child.sweep();
        assert_eq!(ProcessEntry::of(orphan), None, "it was reaped, too");
        assert!(
            older.try_wait().expect("it is ours").is_none(),
            "an older child is no orphan"
        );
        older
            .kill()
            .and_then(|()| older.wait())
            .expect("it is ours");
    }
}
