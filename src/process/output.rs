//! A program that is run to its end within a time limit, with what it printed. It doesn't judge how it ended.

use std::io;
use std::time::Duration;

use super::pipe::read_all;
use super::running_program::ProgramExit;
use super::start::{Spec, start};
use crate::clock::Deadline;

/// What a program printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub exit: ProgramExit,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs `spec` to its end, in a group of its own, and reads what it prints, whatever `spec` says of that. `None`: `limit` was
/// over, and it was killed with all that it had started.
///
/// For programs that leave nothing running behind them; what may do so is run by [`super::run_command`].
///
/// # Errors
/// What the system says, with the program's or the folder's name in it.
pub fn run_program(mut spec: Spec, limit: Duration) -> io::Result<Option<Ran>> {
    let deadline = Deadline::after(limit);
    let (stdout, into_stdout) = io::pipe()?;
    let (stderr, into_stderr) = io::pipe()?;
    spec.stdout = into_stdout.into();
    spec.stderr = into_stderr.into();
    let mut child = start(spec)?;
    let [stdout, stderr] = [stdout, stderr].map(|pipe| read_all(pipe, Vec::new(), Vec::extend_from_slice));
    let printed = stdout.recv_timeout(deadline.left()).ok().zip(stderr.recv_timeout(deadline.left()).ok());
    let Some(((stdout, stderr), exit)) = printed.zip(child.wait(deadline.left())) else {
        child.end(Duration::ZERO);
        return Ok(None);
    };
    child.reap();
    Ok(Some(Ran { exit, stdout, stderr }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    fn run(script: &str, limit: Duration) -> Option<Ran> {
        run_program(Spec::new("sh", "/").args(["-c", script]), limit).expect("there is a shell")
    }

    #[test]
    fn both_streams_are_read_to_their_end_however_much_there_is() {
        let script = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exec 2>&-; printf x; exit 3";
        let ran = run(script, Duration::from_secs(60)).expect("it ends");
        assert_eq!((ran.stdout.len(), ran.stderr.len(), ran.exit), (300_001, 200_000, ProgramExit::Code(3)));
    }

    #[test]
    fn what_ends_or_closes_its_output_alone_is_waited_for() {
        let ran = run("exec >&- 2>&-; sleep 0.05; exit 4", Duration::from_secs(60)).expect("it ends");
        assert_eq!(ran.exit, ProgramExit::Code(4));
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
