//! Sandboxes for roles with `sandbox: true`: the bubblewrap command line that goes before a program's own. They protect
//! the machine's other files from mistakes, and are no jail against malice.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bubblewrap::{
    ALONE, PROGRAM, READ, Terminal, WRITE, alone, begin, end, hide_secrets, show, shown,
};
use super::error::Error;
use super::sandbox_dir::Cell;
use super::syscalls;
use super::workspace::Workspace;
use super::writable::{refuse_trusted, writable};
use crate::runner::shell::SCRIPT;
use crate::runner::{PROMPT, ProgramHome, ProgramState};
use tavern_core::eligible::NotReady;
use tavern_git::matches;
use tavern_store::config::{Network, Role};
use tavern_store::replace_volatile;
use tavern_sys::files;
use tavern_sys::interrupt::Interrupt;
use tavern_sys::process::{CommandSpec, argument, find_program, run_command};

/// The places and the terminal of an agent program in a sandbox.
pub struct Boxed<'a> {
    pub terminal: Terminal,
    pub worktree: &'a Path,
    pub run_dir: &'a Path,
    pub cell: &'a Cell,
    pub state: &'a ProgramState,
}

/// Returns the sandbox for the agent program of one run, which is the file `program`.
///
/// # Errors
/// The repository can't be opened.
pub fn of_agent(
    workspace: &Workspace,
    role: &Role,
    program: PathBuf,
    place: &Boxed<'_>,
) -> Result<Vec<OsString>, Error> {
    let Boxed {
        terminal,
        worktree,
        run_dir,
        cell,
        state,
    } = *place;
    let mut line = begin(terminal);
    if role.network == Network::None {
        line.push(ALONE.into());
    }
    show(
        &mut line,
        shown(&workspace.board, workspace.repository()?, Some(program)),
    );
    show_writable(&mut line, &writable(workspace, role)?);
    for home in &state.homes {
        show_home(&mut line, home);
    }
    show(
        &mut line,
        state.folders.iter().map(|folder| (WRITE, folder.clone())),
    );
    show(&mut line, held(workspace)?);
    show(
        &mut line,
        [worktree.to_owned(), cell.git(), cell.mail().join("out")].map(|path| (WRITE, path)),
    );
    hide_lock(&mut line, workspace);
    let link = worktree.join(".git");
    let stands_for = [
        (READ, cell.link(), link),
        (WRITE, cell.results(), run_dir.to_owned()),
    ];
    let files = state
        .files
        .iter()
        .map(|file| (WRITE, cell.copy_of(file), file.clone()));
    let told = [PROMPT, SCRIPT].map(|name| (READ, run_dir.join(name), run_dir.join(name)));
    for (option, from, to) in stands_for.into_iter().chain(files).chain(told) {
        line.extend([option.into(), from.into(), to.into()]);
    }
    if terminal == Terminal::Given && syscalls::filter().is_none() {
        let message =
            "`sandbox: true` can't keep a program from typing into your terminal on this processor";
        return Err(NotReady::new(message, "talk with an agent of a role without it").into());
    }
    filtered(workspace, end(line, Some(worktree)))
}

/// The file with the filter of system calls. It also hides the board's lock, which must not be taken from inside.
const FILTER: &str = "syscalls";

/// Adds the filter of system calls that reach out of the sandbox. Bubblewrap reads it from a descriptor.
fn filtered(workspace: &Workspace, line: Vec<OsString>) -> Result<Vec<OsString>, Error> {
    let (file, filter) = (
        workspace.board.private(FILTER),
        syscalls::filter().unwrap_or_default(),
    );
    if !workspace.board.is_dry() && files::read(&file).ok().as_ref() != Some(&filter) {
        replace_volatile(&file, &filter)?;
    }
    if filter.is_empty() {
        return Ok(line);
    }
    let shell = ["sh", "-c", "exec \"$@\" 9<\"$0\""].map(OsString::from);
    let mut words = line.into_iter();
    let program = words.next();
    let option = ["--seccomp", "9"].map(OsString::from);
    Ok(shell
        .into_iter()
        .chain([file.into()])
        .chain(program)
        .chain(option)
        .chain(words)
        .collect())
}

/// Returns the sandbox for commands of the work of an agent of `role`, in `folder`: they see the agent's files, and
/// write only files there.
///
/// # Errors
/// The repository can't be opened.
pub fn of_command(
    workspace: &Workspace,
    role: &Role,
    folder: &Path,
) -> Result<Vec<OsString>, Error> {
    if !role.sandbox {
        return Ok(Vec::new());
    }
    let mut line = begin(Terminal::None);
    if role.network != Network::All {
        line.push(ALONE.into());
    }
    show(
        &mut line,
        shown(&workspace.board, workspace.repository()?, None),
    );
    show_writable(&mut line, &writable(workspace, role)?);
    show(&mut line, held(workspace)?);
    show(
        &mut line,
        [(WRITE, folder.to_owned()), (READ, folder.join(".git"))],
    );
    hide_lock(&mut line, workspace);
    filtered(workspace, end(line, Some(folder)))
}

/// Returns the sandbox for git that examines a cell: without network, and `out` is all that it can write to.
///
/// # Errors
/// The repository can't be opened.
pub fn of_look(workspace: &Workspace, out: &Path) -> Result<Vec<OsString>, Error> {
    let mut line = alone(&workspace.board, workspace.repository()?);
    show(&mut line, [(WRITE, out.to_owned())]);
    Ok(end(line, Some(out)))
}

/// Returns the folders that are read-only in every sandbox: git's, and the board.
fn held(workspace: &Workspace) -> Result<[(&'static str, PathBuf); 2], Error> {
    Ok([
        (READ, workspace.repository()?.common_dir().to_owned()),
        (READ, workspace.board.dir().to_owned()),
    ])
}

/// Hides the board's lock: a process that can read a file can lock it.
fn hide_lock(line: &mut Vec<OsString>, workspace: &Workspace) {
    line.extend([
        READ.into(),
        workspace.board.private(FILTER).into(),
        workspace.board.private("lock").into(),
    ]);
}

/// Shows a folder with a program's settings: readable, with the program's state writable. Other files made there are
/// thrown away.
fn show_home(line: &mut Vec<OsString>, home: &ProgramHome) {
    // The folder is made before the program starts.
    let folder = home
        .folder
        .canonicalize()
        .unwrap_or_else(|_| home.folder.clone());
    line.extend(["--tmpfs".into(), folder.clone().into()]);
    let there = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.file_name());
    let shown = there.filter(|name| {
        !home
            .passing
            .iter()
            .any(|passing| matches(passing, Path::new(name)))
    });
    show(
        line,
        shown
            .map(|name| (READ, folder.join(name)))
            .collect::<BTreeSet<_>>(),
    );
    show(
        line,
        home.kept.iter().map(|name| (WRITE, folder.join(name))),
    );
}

/// Shows the other paths that are writable for the role, and hides keys and the like unless the role names them.
fn show_writable(line: &mut Vec<OsString>, writable: &[PathBuf]) {
    show(line, writable.iter().map(|path| (WRITE, path.clone())));
    hide_secrets(line, writable);
}

/// Checks that bubblewrap is installed, and that no [writable path](Role::writable) lets an agent out. Looks at files
/// only.
///
/// # Errors
/// One of them does not hold.
pub fn check(role: &Role) -> Result<(), NotReady> {
    if !role.sandbox {
        return Ok(());
    }
    refuse_trusted(role)?;
    if find_program(OsStr::new(PROGRAM)).is_some() {
        return Ok(());
    }
    Err(NotReady::new(
        format!("`{PROGRAM}`, which `sandbox: true` needs, is not on PATH"),
        "install it (apt-get install bubblewrap), or set `sandbox: false` for the role in .tavern/config.yaml",
    ))
}

/// Checks that a sandbox can be made here, by starting one, and that it shows the repository.
///
/// # Errors
/// It can't be made: some containers and kernels forbid it. Or the repository is where a sandbox has a folder
/// of its own.
pub fn try_out(workspace: &Workspace, role: &Role) -> Result<(), Error> {
    if !role.sandbox {
        return Ok(());
    }
    check(role)?;
    writable(workspace, role)?;
    started(begin(Terminal::None), &["true"]).map_err(|why| {
        NotReady::new(
            format!("`sandbox: true` does not work here: {why}"),
            "let users make namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, or of a container its \
             --security-opt), or set `sandbox: false` for the role in .tavern/config.yaml",
        )
    })?;
    // The sandbox in which git examines the work shows the least.
    let line = alone(&workspace.board, workspace.repository()?);
    let [root, git] = [workspace.board.dir(), workspace.repository()?.common_dir()]
        .map(|path| path.to_string_lossy());
    let seen = [
        "sh",
        "-c",
        "test -d \"$0\" && test -d \"$1\" && test -r \"$1/HEAD\"",
        &root,
        &git,
    ];
    let is_seen = started(end(line, None), &seen);
    Ok(is_seen.map_err(|_| {
        let place = workspace.board.root().display();
        let message = format!("the folder {place} is hidden in a sandbox, which has its own folder there");
        NotReady::new(
            message,
            "move the repository elsewhere, or set `sandbox: false` for the role in .tavern/config.yaml",
        )
    })?)
}

/// Returns true if a sandbox can be made on this machine.
pub fn works_here() -> bool {
    find_program(OsStr::new(PROGRAM)).is_some() && started(begin(Terminal::None), &["true"]).is_ok()
}

/// Runs `command` in the sandbox that `line` makes. Returns why it can't be made, or why the command failed.
fn started(line: Vec<OsString>, command: &[&str]) -> Result<(), String> {
    let words = line
        .into_iter()
        .chain(command.iter().map(OsString::from))
        .map(argument)
        .collect::<Vec<_>>();
    let line = format!("exec {}", words.join(" "));
    let command = CommandSpec {
        timeout: Duration::from_secs(20),
        keep: 400,
        ..CommandSpec::new(line, "/")
    };
    match run_command(&command, &Interrupt::new()) {
        Ok(result) if result.is_success() => Ok(()),
        Ok(result) => Err(result
            .output
            .lines()
            .next()
            .map_or_else(|| result.end.to_string(), str::to_owned)),
        Err(error) => Err(error.to_string()),
    }
}
