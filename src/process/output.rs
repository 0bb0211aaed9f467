//! A program that is run to its end within a time limit, with what it printed. It doesn't judge how it ended.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::family;
use super::start::{Spec, spawn};
use crate::clock;

/// What a program printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs `spec` to its end, in a group of its own, and reads what it prints, whatever `spec` says of that. `None`: `limit` was
/// over, and the whole group was killed.
///
/// For programs that leave nothing running behind them; what may do so is run by [`super::run_command`].
///
/// # Errors
/// What the system says, with the program's or the folder's name in it.
pub fn run_program(spec: Spec, limit: Duration) -> io::Result<Option<Ran>> {
    let deadline = clock::instant() + limit;
    let mut child = spawn(spec, Stdio::piped(), Stdio::piped())?;
    let read = read_to_end(&mut child, deadline);
    let group = pid(&child);
    if !matches!(read, Ok(Some(_))) {
        // It has not been waited for yet, so the number still names its group.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait();
    family::lock().remove(child.id());
    let (read, status) = (read?, status?);
    Ok(read.map(|[stdout, stderr]| Ran { status, stdout, stderr }))
}

/// What it prints until it has ended and both pipes are closed; `None` if that takes longer than until `deadline`.
fn read_to_end(child: &mut Child, deadline: Instant) -> io::Result<Option<[Vec<u8>; 2]>> {
    let mut end = Some(pidfd_open(pid(child), PidfdFlags::empty())?);
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    let (mut printed, mut complained) = (Vec::new(), Vec::new());
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let open = [end.as_ref().map(AsFd::as_fd), stdout.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd)];
        let mut fds: Vec<PollFd<'_>> =
            open.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if fds.is_empty() {
            return Ok(Some([printed, complained]));
        }
        let left = deadline.saturating_duration_since(clock::instant());
        if left.is_zero() {
            return Ok(None);
        }
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut told = fds.iter().map(|fd| !fd.revents().is_empty());
        let [has_ended, has_printed, has_complained] =
            [end.is_some(), stdout.is_some(), stderr.is_some()].map(|is_open| is_open && told.next() == Some(true));
        drop(told);
        end.take_if(|_| has_ended);
        if has_printed {
            take(&mut stdout, &mut printed, &mut chunk)?;
        }
        if has_complained {
            take(&mut stderr, &mut complained, &mut chunk)?;
        }
    }
}

/// One piece of what stands in the pipe, which is given up at its end.
fn take(pipe: &mut Option<impl Read>, into: &mut Vec<u8>, chunk: &mut [u8]) -> io::Result<()> {
    match pipe.as_mut().map_or(Ok(0), |pipe| pipe.read(chunk)) {
        Ok(0) => *pipe = None,
        Ok(read) => into.extend_from_slice(&chunk[..read]),
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> Option<Ran> {
        run_program(Spec::new("sh", "/").args(["-c", script]), limit).expect("there is a shell")
    }

    #[test]
    fn both_streams_are_read_to_their_end_however_much_there_is() {
        let script = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exec 2>&-; printf x; exit 3";
        let ran = run(script, Duration::from_secs(60)).expect("it ends");
        assert_eq!((ran.stdout.len(), ran.stderr.len(), ran.status.code()), (300_001, 200_000, Some(3)));
    }

    #[test]
    fn what_ends_or_closes_its_output_alone_is_waited_for() {
        let ran = run("exec >&- 2>&-; sleep 0.05; exit 4", Duration::from_secs(60)).expect("it ends");
        assert_eq!(ran.status.code(), Some(4));
        for lasting in ["sleep 600 & exit 0", "exec >&- 2>&-; sleep 600", "sleep 600"] {
            assert!(run(lasting, Duration::from_millis(50)).is_none(), "{lasting}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error =
            run_program(Spec::new("no-such-program-here", "/"), Duration::from_secs(1)).expect_err("it is not there");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("no-such-program-here"), "{error}");
    }
}
