//! Runs a program to its end within a time limit, and collects its output. It doesn't judge the result.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::pipe::read_all;
use super::running_program::ProgramExit;
use super::start::{Spec, start};
use super::waits::Waits;
use crate::clock::{self, Deadline};

/// A program's output and exit.
#[derive(Debug)]
pub struct Ran {
    pub exit: ProgramExit,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs `spec` to its end, in a group of its own, and reads its output; the streams in `spec` are replaced. `None`: the
/// time `limit` was reached, and it was killed with its descendants.
///
/// For programs that leave nothing running behind; use [`super::run_command`] for others.
///
/// # Errors
/// The system's error, with the program's or the folder's name. [`ErrorKind::Deadlock`]: the program, which is
/// [guarded](Spec::is_guarded), came upon a pipe or a device in place of a file, and was killed in the same way.
pub fn run_program(spec: Spec, limit: Duration) -> io::Result<Option<Ran>> {
    run(spec, limit, |pid| Some(Bounded::begin(pid)))
}

/// Like [`run_program`], for an independent program: it continues when this process is asked to end.
///
/// # Errors
/// The same.
pub fn run_beside(spec: Spec, limit: Duration) -> io::Result<Option<Ran>> {
    run(spec, limit, |_| None)
}

fn run(
    mut spec: Spec,
    limit: Duration,
    bound: impl FnOnce(u32) -> Option<Bounded>,
) -> io::Result<Option<Ran>> {
    let deadline = Deadline::after(limit);
    let (stdout, into_stdout) = io::pipe()?;
    let (stderr, into_stderr) = io::pipe()?;
    spec.stdout = into_stdout.into();
    spec.stderr = into_stderr.into();
    let is_guarded = spec.is_guarded;
    let mut child = start(spec)?;
    let bounded = bound(child.pid());
    let mut waits = is_guarded.then(|| Waits::of(child.pid()));
    let mut is_over = || deadline.has_passed() || waits.as_mut().is_some_and(Waits::are_endless);
    let read = |pipe| read_all(pipe, Vec::new(), Vec::extend_from_slice);
    let (stdout, stderr) = (read(stdout)?, read(stderr)?);
    let mut all_of = |pipe: &Receiver<Vec<u8>>| {
        loop {
            match pipe.recv_timeout(deadline.left().min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if !is_over() => {}
                received => return received.ok(),
            }
        }
    };
    let printed = all_of(&stdout).and_then(|stdout| Some((stdout, all_of(&stderr)?)));
    let ended = printed.and_then(|printed| Some((printed, child.wait(deadline.left())?)));
    let Some(((stdout, stderr), exit)) = ended else {
        child.end(Duration::ZERO);
        if is_guarded && !deadline.has_passed() {
            return Err(ErrorKind::Deadlock.into());
        }
        return Ok(None);
    };
    child.reap();
    if bounded.is_some_and(Bounded::end) {
        return Ok(None);
    }
    Ok(Some(Ran {
        exit,
        stdout,
        stderr,
    }))
}

/// How often a guarded program's waits are checked.
const LOOK: Duration = Duration::from_millis(500);

/// The start times of running programs, by pid. `None`: it was killed as overdue.
static RUNNING: Mutex<BTreeMap<u32, Option<Instant>>> = Mutex::new(BTreeMap::new());

fn running() -> MutexGuard<'static, BTreeMap<u32, Option<Instant>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all programs that have run for longer than `limit`: this process is about to end, and they may wait forever,
/// for example on a pipe in place of a file. Returns whether there were any.
pub fn end_overdue(limit: Duration) -> bool {
    let mut is_any = false;
    for (pid, since) in running().iter_mut() {
        if since.is_some_and(|since| since.elapsed() > limit) {
            (*since, is_any) = (None, true);
            // It may have ended just now.
            let _ = Pid::from_raw(pid.cast_signed())
                .map(|group| kill_process_group(group, Signal::KILL));
        }
    }
    is_any
}

/// A registration in `RUNNING`.
struct Bounded(u32);

impl Bounded {
    fn begin(pid: u32) -> Bounded {
        running().insert(pid, Some(clock::instant()));
        Bounded(pid)
    }

    /// Returns whether it was killed as overdue.
    fn end(self) -> bool {
        running().get(&self.0).is_some_and(Option::is_none)
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        running().remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> Option<Ran> {
        run_program(Spec::new("sh", "/").args(["-c", script]), limit).expect("there is a shell")
    }

    #[test]
    fn both_streams_are_read_to_their_end_however_much_there_is() {
        let script =
            "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exec 2>&-; printf x; exit 3";
        let ran = run(script, Duration::from_secs(60)).expect("it ends");
        assert_eq!(
            (ran.stdout.len(), ran.stderr.len(), ran.exit),
            (300_001, 200_000, ProgramExit::Code(3))
        );
    }

    #[test]
    fn what_ends_or_closes_its_output_alone_is_waited_for() {
        let ran =
            run("exec >&- 2>&-; sleep 0.05; exit 4", Duration::from_secs(60)).expect("it ends");
        assert_eq!(ran.exit, ProgramExit::Code(4));
        for lasting in [
            "sleep 600 & exit 0",
            "exec >&- 2>&-; sleep 600",
            "sleep 600",
        ] {
            assert!(
                run(lasting, Duration::from_millis(50)).is_none(),
                "{lasting}"
            );
        }
    }

    #[test]
    fn a_guarded_program_waits_for_no_pipe_in_the_place_of_a_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = |script: &str| {
            let spec = Spec {
                is_guarded: true,
                ..Spec::new("sh", folder.path()).args(["-c", script])
            };
            run_program(spec, Duration::from_secs(60))
        };
        run("mkfifo opened held").expect("the folder is ours");
        std::thread::scope(|all| {
            for script in ["read x <opened", "exec 3<>held; read x <&3"] {
                all.spawn(move || {
                    let error = run(script).expect_err("nobody writes");
                    assert_eq!(error.kind(), ErrorKind::Deadlock, "{script}");
                });
            }
            let ran = run("sleep 4; cat </dev/null; exit 3").expect("it starts");
            assert_eq!(ran.expect("it ends").exit, ProgramExit::Code(3));
        });
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = run_program(
            Spec::new("no-such-program-here", "/"),
            Duration::from_secs(1),
        )
        .expect_err("it is not there");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(
            error.to_string().contains("no-such-program-here"),
            "{error}"
        );
    }
}
