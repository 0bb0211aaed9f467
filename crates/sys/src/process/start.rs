//! A program to start: program file, arguments, environment, folder, standard streams, marks. It doesn't wait.
#![expect(
    clippy::disallowed_methods,
    reason = "this room starts programs and owns their logs"
)]

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::family;
use super::mark::Mark;
use super::running_program::{Root, RunningProgram};
use super::with_parent::end_with_us;

/// A program to start. Its environment is `env` and the mark, over this process's own if `inherits` is set, without
/// `env_remove` and the variables that point git at another repository. Git object replacement is disabled.
#[derive(Debug)]
pub struct Spec {
    /// A program and its arguments that start the program and stay its parent: a sandbox. Usually empty.
    pub wrapper: Vec<OsString>,
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub env_remove: Vec<OsString>,
    /// The program reads files that others may change, as git does in a worktree. It ends with us, and soon if it comes
    /// upon a pipe in place of a file. Only for [`run_program`](super::run_program).
    pub is_guarded: bool,
    /// Whether it inherits our environment; for Tavern's own helpers. Programs that work on items get only given
    /// variables.
    pub inherits: bool,
    pub cwd: PathBuf,
    /// A file is read from its current position; the program also shares its lock, if there is one.
    pub stdin: Stdio,
    /// Its whole input, in place of `stdin`. A thread writes it, so a program that never reads blocks no caller.
    pub input: Option<Vec<u8>>,
    /// Use a file rather than a pipe: nothing is lost when the supervisor dies.
    pub stdout: Stdio,
    pub stderr: Stdio,
    /// Set for it and its descendants.
    pub mark: Option<Mark>,
}

/// Variables that make git work on another repository than that of the current folder (gitrepository-layout(5)). They
/// are set when Tavern runs from a git hook, and never meant for a program in a worktree.
const GIT_VARIABLES: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// Disables `git replace` and `info/grafts`: judged, verified and merged content matches its ID, even if an
/// attacker can write in `.git`.
const TRUE_OBJECTS: [(&str, &str); 2] = [
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // For an existing file, even an empty one, git would print a warning.
    ("GIT_GRAFT_FILE", "/dev/null/grafts"),
];

/// Set for unattended programs: git and ssh fail where they would ask or edit.
pub const UNATTENDED: [(&str, &str); 6] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    // Otherwise `sequence.editor` wins for a rebase.
    ("GIT_SEQUENCE_EDITOR", "true"),
    // An empty value overrides `core.askPass` and SSH_ASKPASS; editors' terminals set it to a window.
    ("GIT_ASKPASS", ""),
    // Otherwise ssh asks at the terminal, which a background group may not read from.
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "force"),
];

impl Spec {
    /// Starts `program` in `cwd`, with no arguments, no input and no output.
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Spec {
        Spec {
            wrapper: Vec::new(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_remove: Vec::new(),
            is_guarded: false,
            inherits: true,
            cwd: cwd.into(),
            stdin: Stdio::null(),
            input: None,
            stdout: Stdio::null(),
            stderr: Stdio::null(),
            mark: None,
        }
    }

    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Spec {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn mark(mut self, mark: Mark) -> Spec {
        self.mark = Some(mark);
        self
    }
}

/// Starts it in a process group of its own. It is ended with its descendants when the [`RunningProgram`] is dropped.
///
/// # Errors
/// The system's error, with the program's or the folder's name.
pub fn start(spec: Spec) -> io::Result<RunningProgram> {
    let mut command = command(&spec)?;
    let stdin = if spec.input.is_some() {
        Stdio::piped()
    } else {
        spec.stdin
    };
    command
        .process_group(0)
        .stdin(stdin)
        .stdout(spec.stdout)
        .stderr(spec.stderr);
    if spec.is_guarded {
        end_with_us(&mut command);
    }
    let mut live = family::lock();
    let started = command.spawn();
    // The command holds copies of the streams. They must be dropped, or a log would look locked and a pipe would never
    // end.
    let first = command.get_program().to_owned();
    drop(command);
    let mut child = started.map_err(|error| not_started(&first, &error))?;
    live.add(child.id());
    drop(live);
    let pipe = child.stdin.take_if(|_| spec.input.is_some());
    let root = if spec.wrapper.is_empty() {
        Root::Program
    } else {
        Root::Wrapper
    };
    // From here on it is ended if anything fails.
    let running = RunningProgram::new(child, spec.mark, root)?;
    if let (Some(bytes), Some(mut pipe)) = (spec.input, pipe) {
        std::thread::Builder::new().spawn(move || {
            // A program may end, or stop reading, before it has read everything.
            let _ = pipe.write_all(&bytes);
        })?;
    }
    Ok(running)
}

/// Builds the command of `spec`: program, arguments, environment and folder; streams and group are the caller's.
///
/// # Errors
/// The folder does not exist.
pub(super) fn command(spec: &Spec) -> io::Result<Command> {
    if !spec.cwd.is_dir() {
        // The system reports a missing folder as a missing program.
        let message = format!("the folder `{}` does not exist", spec.cwd.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let mut words = spec
        .wrapper
        .iter()
        .map(OsString::as_os_str)
        .chain([spec.program.as_os_str()]);
    let first = words.next().expect("the program is one of them");
    let set = spec
        .env
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map(|(_, path)| path.clone());
    let found = match set.or_else(|| env::var_os("PATH")) {
        Some(path) if !first.as_encoded_bytes().contains(&b'/') => {
            let missing = || {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    "it is in no folder of PATH that begins with `/`",
                )
            };
            Some(found_before(path, first).ok_or_else(|| not_started(first, &missing()))?)
        }
        _ => None,
    };
    let mut command = Command::new(found.as_deref().unwrap_or(first.as_ref()));
    command
        .arg0(first)
        .args(words)
        .args(&spec.args)
        .current_dir(&spec.cwd);
    if !spec.inherits {
        command.env_clear();
    }
    for name in GIT_VARIABLES
        .iter()
        .map(OsStr::new)
        .chain(spec.env_remove.iter().map(OsString::as_os_str))
    {
        command.env_remove(name);
    }
    let set = spec.env.iter().map(|(name, value)| (name, value));
    command
        .envs(TRUE_OBJECTS)
        .envs(set)
        .envs(spec.mark.iter().map(|mark| (mark.name(), mark.value())));
    Ok(command)
}

/// The hint if the system starts no more programs or threads ([`io::ErrorKind::WouldBlock`]).
pub const TOO_MANY: &str = "too many processes run: end some, or allow more (`ulimit -u`, or `pids.max` of a container), then run the same command again";

pub(super) fn not_started(program: &OsStr, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("can't start `{}`: {error}", program.display()),
    )
}

/// Returns the file that `program` names: itself if it contains a slash, else the first executable of that name on
/// PATH.
pub fn find_program(program: &OsStr) -> Option<PathBuf> {
    find_program_on(&env::var_os("PATH").unwrap_or_default(), program)
}

/// Like [`find_program`], with another `PATH` than this process's own.
pub fn find_program_on(path: &OsStr, program: &OsStr) -> Option<PathBuf> {
    let name = Path::new(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return is_executable(name).then(|| name.to_owned());
    }
    env::split_paths(&fixed(path))
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

/// Returns `PATH` without relative folders (`.`, `node_modules/.bin`): their content depends on the work in the current
/// folder.
pub fn fixed(path: &OsStr) -> OsString {
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    env::join_paths(folders).expect("each was between two colons")
}

/// Like [`find_program_on`], cached per program: otherwise the system tries one folder after the other at each start.
fn found_before(path: OsString, program: &OsStr) -> Option<PathBuf> {
    static FOUND: Mutex<BTreeMap<(OsString, OsString), PathBuf>> = Mutex::new(BTreeMap::new());
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (path, program.to_owned());
    // It may have been moved, or reinstalled elsewhere.
    if let Some(found) = known.get(&key).filter(|found| is_executable(found)) {
        return Some(found.clone());
    }
    let found = find_program_on(&key.0, program)?;
    known.insert(key, found.clone());
    Some(found)
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path_or_by_path() {
        let sh = find_program(OsStr::new("sh")).expect("every system has a shell");
        assert_eq!(find_program(sh.as_os_str()), Some(sh));
        assert_eq!(find_program(OsStr::new("no-such-program-here")), None);
        assert_eq!(find_program(OsStr::new("/")), None);
    }

    #[test]
    fn nothing_is_started_that_lies_where_the_work_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("sh");
        std::fs::copy("/bin/sh", &own).expect("both are ours");
        let on = |path: &str| find_program_on(path.as_ref(), "sh".as_ref());
        let whole = folder.path().to_str().expect("UTF-8");
        assert_eq!(on(whole), Some(own));
        assert_eq!(on(":.:bin:"), None);
        let mut spec = Spec::new("sh", folder.path());
        spec.env.push(("PATH".into(), ".".into()));
        let error = start(spec).expect_err("it lies where the work is");
        assert!(
            error.to_string().contains("in no folder of PATH"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_folder_is_not_taken_for_a_missing_program() {
        let error = start(Spec::new("sh", "/no/such/folder")).expect_err("the folder is not there");
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
        let error =
            start(Spec::new("no-such-program-here", "/")).expect_err("the program is not there");
        assert!(
            error.to_string().contains("no-such-program-here"),
            "{error}"
        );
    }
}
