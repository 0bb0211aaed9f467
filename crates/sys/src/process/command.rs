//! Runs one shell command to its end within a time limit, leaving nothing behind. It doesn't judge the result.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::bell::Bell;
use super::excerpt::Excerpt;
use super::mark::Mark;
use super::pipe::read_all;
use super::running_program::ProgramExit;
use super::start::{Spec, UNATTENDED, start};
use crate::clock::{self, Deadline};
use crate::interrupt::Interrupt;
use crate::secrets::Redacting;

/// A command line for `sh -c`.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    pub command: String,
    pub cwd: PathBuf,
    pub env: Vec<(String, String)>,
    pub env_remove: Vec<String>,
    /// Its standard input; may be empty.
    pub input: Vec<u8>,
    /// See [`Spec::inherits`].
    pub inherits: bool,
    /// The time limit.
    pub timeout: Duration,
    /// Time between the request to end (TERM) and the kill (KILL).
    pub grace: Duration,
    /// How many bytes of the output to keep: half from its beginning, half from its end.
    pub keep: usize,
    /// The mark of its run, if any.
    pub run: Option<Mark>,
    /// See [`Spec::wrapper`].
    pub wrapper: Vec<OsString>,
}

/// How a command ended; prints as words that follow its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    Exited(ProgramExit),
    /// It was ended after this time limit.
    TimedOut(Duration),
    /// It was ended because the interrupt was raised.
    Interrupted,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandResult {
    pub end: CommandEnd,
    pub duration: Duration,
    /// Standard output and standard error, interleaved, with secrets redacted.
    pub output: String,
    /// Digest of the complete output (XXH3, 128 bits, hexadecimal).
    pub digest: String,
}

/// Quotes a name as one word of a POSIX shell, for people to paste. No program takes it for a flag, even if the name is
/// untrusted.
pub fn quoted(name: impl AsRef<OsStr>) -> String {
    let name = name.as_ref();
    let word = argument(name);
    if name.as_encoded_bytes().starts_with(b"-") {
        format!("./{word}")
    } else {
        word
    }
}

/// Quotes any word, even a flag, as one word of a POSIX shell.
pub fn argument(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl CommandSpec {
    /// Runs `command` in `cwd` for at most ten minutes, with 64 KiB of its output kept.
    pub fn new(command: impl Into<String>, cwd: impl Into<PathBuf>) -> CommandSpec {
        CommandSpec {
            command: command.into(),
            cwd: cwd.into(),
            env: Vec::new(),
            env_remove: Vec::new(),
            input: Vec::new(),
            inherits: true,
            timeout: Duration::from_secs(600),
            grace: Duration::from_secs(2),
            keep: 64 * 1024,
            run: None,
            wrapper: Vec::new(),
        }
    }
}

impl CommandResult {
    /// Returns true if it ended by itself, in time, with status 0.
    pub fn is_success(&self) -> bool {
        self.end == CommandEnd::Exited(ProgramExit::Code(0))
    }
}

impl fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandEnd::Exited(exit) => exit.fmt(f),
            CommandEnd::TimedOut(limit) => write!(f, "timed out after {} s", limit.as_secs()),
            CommandEnd::Interrupted => f.write_str("was interrupted"),
        }
    }
}

/// Runs `spec` in a group of its own. Ends it, with its descendants, on timeout or if `interrupt` is raised, and ends
/// any processes it leaves behind.
///
/// # Errors
/// The system's error on starting it: the folder does not exist, or there is no `sh`. A command that fails is no error.
pub fn run_command(spec: &CommandSpec, interrupt: &Interrupt) -> io::Result<CommandResult> {
    let started_at = clock::instant();
    let (reader, writer) = io::pipe()?;
    let mut program = Spec::new("sh", &spec.cwd)
        .args(["-c", &spec.command])
        .mark(Mark::command());
    program.wrapper.clone_from(&spec.wrapper);
    program.inherits = spec.inherits;
    program.input = Some(spec.input.clone()).filter(|input| !input.is_empty());
    let unattended = UNATTENDED
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    program.env = unattended
        .chain(
            spec.env
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        )
        .collect();
    program.env_remove = spec.env_remove.iter().map(Into::into).collect();
    // Processes left behind are found by this command's own mark only: other commands share the run's mark.
    program.env.extend(
        spec.run
            .iter()
            .map(|mark| (mark.name().into(), mark.value().into())),
    );
    // One pipe for both streams keeps their order. A file could fill the disk.
    program.stdout = writer.try_clone()?.into();
    program.stderr = writer.into();
    let mut child = start(program)?;
    let kept = (Redacting::new(), Excerpt::new(spec.keep));
    let output = read_all(reader, kept, |(secrets, excerpt), part| {
        excerpt.push(&secrets.push(part));
    })?;

    let bell = Bell::new();
    child.wake(&bell);
    let _subscription = bell.ring_at(interrupt);
    let deadline = Deadline::after(spec.timeout);
    while child.exit().is_none() && !interrupt.is_raised() && !deadline.has_passed() {
        bell.wait(deadline.left());
    }
    let end = match child.exit() {
        // It may have ended at the very moment of the timeout; then it was in time.
        Some(exit) => CommandEnd::Exited(exit),
        None if interrupt.is_raised() => CommandEnd::Interrupted,
        None => CommandEnd::TimedOut(spec.timeout),
    };
    match end {
        CommandEnd::Exited(_) => child.sweep(),
        _ => child.end(if interrupt.is_hurried() {
            Duration::ZERO
        } else {
            spec.grace
        }),
    }
    // No writer is left, so the reader is about to end, unless a process escaped with the pipe.
    let read = output.recv_timeout(Duration::from_secs(2));
    let (mut secrets, mut excerpt) = read.unwrap_or_else(|_| (Redacting::new(), Excerpt::new(0)));
    excerpt.push(&secrets.finish());
    Ok(CommandResult {
        end,
        duration: started_at.elapsed(),
        output: excerpt.text(),
        digest: excerpt.digest(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_name_is_one_word_and_no_flag() {
        for (name, typed) in [
            ("a-b", "a-b"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("-rf", "./-rf"),
            ("--x y", "./'--x y'"),
            ("'-x", r"''\''-x'"),
        ] {
            assert_eq!(quoted(name), typed);
        }
        assert_eq!(["-c", "a b"].map(argument).join(" "), "-c 'a b'");
    }

    fn run(command: &str) -> CommandResult {
        let folder = tempfile::tempdir().expect("a temporary folder");
        run_command(&CommandSpec::new(command, folder.path()), &Interrupt::new())
            .expect("sh starts")
    }

    #[test]
    fn output_of_both_streams_is_in_order_and_the_exit_code_is_told() {
        let result = run("echo one; echo two >&2; echo three; exit 4");
        assert_eq!(result.end, CommandEnd::Exited(ProgramExit::Code(4)));
        assert_eq!(result.output, "one\ntwo\nthree\n");
        assert!(run("true").is_success());
        // It has no input to wait for.
        assert_eq!(run("cat; read x || echo none").output, "none\n");
    }

    #[test]
    fn time_is_up_for_the_whole_tree() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut spec = CommandSpec::new(
            "echo start; setsid sh -c 'echo $$ > pid; sleep 100'",
            folder.path(),
        );
        // Long enough for the shell to write its pid even on a busy machine.
        spec.timeout = Duration::from_millis(1500);
        let result = run_command(&spec, &Interrupt::new()).expect("sh starts");
        assert_eq!(result.end, CommandEnd::TimedOut(spec.timeout));
        assert_eq!(result.output, "start\n");
        // On a very busy machine the time may be up before the pid is written; then there was nothing to end.
        if let Ok(pid) = fs::read_to_string(folder.path().join("pid")) {
            let entry = super::super::table::ProcessEntry::of(pid.trim().parse().expect("a pid"));
            assert!(entry.is_none_or(|entry| entry.is_zombie));
        }
    }

    #[test]
    fn a_flood_is_bounded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut spec = CommandSpec::new(
            "head -c 30000000 /dev/zero | tr '\\0' y; echo end",
            folder.path(),
        );
        spec.keep = 100;
        let result = run_command(&spec, &Interrupt::new()).expect("sh starts");
        assert!(result.is_success());
        assert!(result.output.len() < 200 && result.output.ends_with("end\n"));
    }

    #[test]
    fn an_interrupt_ends_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let spec = CommandSpec::new("sleep 100", folder.path());
        let interrupt = Interrupt::new();
        let raiser = interrupt.clone();
        let thread =
            std::thread::spawn(move || raiser.raise(crate::interrupt::InterruptCause::Stopped));
        let result = run_command(&spec, &interrupt).expect("sh starts");
        assert_eq!(result.end, CommandEnd::Interrupted);
        thread.join().expect("it does not panic");
    }
}
