//! What an agent program may write to, for roles with `sandbox: true`: a command line for bubblewrap that goes before its
//! own. It keeps mistakes away from the rest of the machine's files; a jail against malice it is not.
//!
//! The order of the mounts matters: a later one hides what an earlier one shows.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cell::Cell;
use super::error::Error;
use super::keys;
use super::site::Site;
use crate::board::eligible::NotReady;
use crate::config::Role;
use crate::interrupt::Interrupt;
use crate::process::{CommandSpec, find_program, quoted, run_command};
use crate::runner::shell::SCRIPT;
use crate::runner::{PROMPT, ProgramHome, ProgramState};

/// Bubblewrap.
const PROGRAM: &str = "bwrap";

/// The folder for what is thrown away: its own one, in memory, is gone with it.
const THROWN_AWAY: &str = "/tmp";

/// What every sandbox is: all is shown and nothing can be written, it sees no process but its own, and is gone with whoever
/// started it.
const BASE: [&str; 12] = [
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    THROWN_AWAY,
    "--unshare-pid",
    "--unshare-ipc",
    "--die-with-parent",
];

/// Folders in which programs listen that do what they are told as the user, or as root: sessions' buses, container engines,
/// agents of keys.
const LISTENING: [&str; 2] = ["/run", "/var/run"];

/// What of these is shown all the same: how names are resolved, and the system's own programs where they are kept there.
const NEEDED: [&str; 8] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/connman",
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/wrappers",
];

/// Folders of the user's home with keys, and with programs that listen.
const SECRET: [&str; 4] = [".ssh", ".gnupg", ".docker/run", ".docker/desktop"];

/// What root keeps of its powers: those over files that are shown, none over the machine.
const POWERS: [&str; 7] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID"];

/// Bubblewrap's option for a path that is shown, if it is there, and can't be written to.
const READ: &str = "--ro-bind-try";

/// Likewise for one that can be written to.
const WRITE: &str = "--bind-try";

/// What a program in a sandbox has to do with the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// It is in a session of its own, from which nobody can be typed for.
    None,
    /// A person sits before it.
    Given,
}

/// Between what an agent program works in a sandbox.
pub struct Boxed<'a> {
    pub terminal: Terminal,
    pub worktree: &'a Path,
    pub run_dir: &'a Path,
    pub cell: &'a Cell,
    pub state: &'a ProgramState,
}

/// For the agent program of one run, which is the file `program`.
///
/// # Errors
/// The repository can't be opened.
pub fn of_agent(site: &Site, role: &Role, program: PathBuf, place: &Boxed<'_>) -> Result<Vec<OsString>, Error> {
    let Boxed { terminal, worktree, run_dir, cell, state } = *place;
    let mut line = begin(terminal);
    show(&mut line, shown(site, Some(program))?.into_iter().map(|path| (READ, path)));
    show_writable(&mut line, role);
    for home in &state.homes {
        show_home(&mut line, home);
    }
    show(&mut line, state.folders.iter().map(|folder| (WRITE, folder.clone())));
    show(&mut line, held(site)?);
    show(&mut line, [worktree.to_owned(), cell.git(), cell.mail().join("out")].map(|path| (WRITE, path)));
    let link = worktree.join(".git");
    let stands_for = [(READ, cell.link(), link), (WRITE, cell.results(), run_dir.to_owned())];
    let files = state.files.iter().map(|file| (WRITE, cell.copy_of(file), file.clone()));
    let told = [PROMPT, SCRIPT].map(|name| (READ, run_dir.join(name), run_dir.join(name)));
    for (option, from, to) in stands_for.into_iter().chain(files).chain(told) {
        line.extend([option.into(), from.into(), to.into()]);
    }
    let line = end(line, worktree);
    if terminal == Terminal::Given { without_keys(line, cell) } else { Ok(line) }
}

/// The same, which can't put keys into the terminal that it has. Bubblewrap reads the filter from a descriptor.
fn without_keys(line: Vec<OsString>, cell: &Cell) -> Result<Vec<OsString>, Error> {
    if keys::filter().is_none() {
        let message = "`sandbox: true` can't keep a program from typing into your terminal on this processor";
        return Err(NotReady::new(message, "talk with an agent of a role without it").into());
    }
    let shell = ["sh", "-c", "exec \"$@\" 9<\"$0\""].map(OsString::from);
    let mut words = line.into_iter();
    let program = words.next();
    let filter = ["--seccomp", "9"].map(OsString::from);
    Ok(shell.into_iter().chain([cell.keys().into()]).chain(program).chain(filter).chain(words).collect())
}

/// For commands of the work of an agent of `role`, in `folder`: they see what the agent saw, and write nothing but files there.
///
/// # Errors
/// The repository can't be opened.
pub fn of_command(site: &Site, role: &Role, folder: &Path) -> Result<Vec<OsString>, Error> {
    if !role.sandbox {
        return Ok(Vec::new());
    }
    let mut line = begin(Terminal::None);
    show(&mut line, shown(site, None)?.into_iter().map(|path| (READ, path)));
    show_writable(&mut line, role);
    show(&mut line, held(site)?);
    show(&mut line, [(WRITE, folder.to_owned()), (READ, folder.join(".git"))]);
    Ok(end(line, folder))
}

/// For git that looks into a cell: it reaches nobody, and writes to `out` alone.
///
/// # Errors
/// The repository can't be opened.
pub fn of_look(site: &Site, out: &Path) -> Result<Vec<OsString>, Error> {
    let mut line = begin(Terminal::None);
    line.push("--unshare-net".into());
    show(&mut line, shown(site, None)?.into_iter().map(|path| (READ, path)));
    hide_secrets(&mut line, &[]);
    show(&mut line, [(WRITE, out.to_owned())]);
    Ok(end(line, out))
}

/// What nobody in a sandbox writes to, whatever else is let: git's folder, and the board.
fn held(site: &Site) -> Result<[(&'static str, PathBuf); 2], Error> {
    Ok([(READ, site.repository()?.common_dir().to_owned()), (READ, site.board.dir().to_owned())])
}

/// A folder with a program's settings: they can be read, what it keeps can be written, and what else it makes there is thrown
/// away.
fn show_home(line: &mut Vec<OsString>, home: &ProgramHome) {
    // It is made before the program starts.
    let folder = home.folder.canonicalize().unwrap_or_else(|_| home.folder.clone());
    line.extend(["--tmpfs".into(), folder.clone().into()]);
    let there = fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.file_name());
    let shown = there.filter(|name| !home.passing.iter().any(|passing| name == passing));
    show(line, shown.map(|name| (READ, folder.join(name))).collect::<BTreeSet<_>>());
    show(line, home.kept.iter().map(|name| (WRITE, folder.join(name))));
}

fn end(mut line: Vec<OsString>, folder: &Path) -> Vec<OsString> {
    line.extend(["--setenv", "TMPDIR", THROWN_AWAY, "--chdir"].map(OsString::from));
    line.extend([folder.into(), "--".into()]);
    line
}

/// What every sandbox begins with.
fn begin(terminal: Terminal) -> Vec<OsString> {
    let mut line: Vec<OsString> = std::iter::once(PROGRAM).chain(BASE).map(OsString::from).collect();
    if terminal == Terminal::None {
        line.push("--new-session".into());
    }
    hide(&mut line, LISTENING.iter().map(PathBuf::from));
    for path in NEEDED {
        line.extend([READ, path, path].map(OsString::from));
    }
    if rustix::process::geteuid().is_root() {
        line.extend(["--cap-drop", "ALL"].map(OsString::from));
        line.extend(POWERS.iter().flat_map(|power| ["--cap-add".into(), OsString::from(power)]));
    }
    line
}

/// What else the role lets be written to; keys and the like only where it names them.
fn show_writable(line: &mut Vec<OsString>, role: &Role) {
    let writable: Vec<PathBuf> = role.writable.iter().map(|path| at_home(path)).collect();
    show(line, writable.iter().map(|path| (WRITE, path.clone())));
    hide_secrets(line, &writable);
}

/// Hides the user's keys, and what listens for the user, but for what is `named`.
fn hide_secrets(line: &mut Vec<OsString>, named: &[PathBuf]) {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let secret = home.iter().flat_map(|home| SECRET.map(|name| home.join(name)));
    hide(line, secret.filter(|folder| !named.iter().any(|path| path.starts_with(folder))));
    for socket in sockets().filter_map(|path| path.canonicalize().ok()) {
        line.extend(["--ro-bind".into(), "/dev/null".into(), socket.into()]);
    }
}

/// Puts an empty folder in the place of each of these that is there.
fn hide(line: &mut Vec<OsString>, folders: impl Iterator<Item = PathBuf>) {
    // A link is followed here: bubblewrap would make what it leads to.
    let there: BTreeSet<PathBuf> = folders.filter_map(|path| path.canonicalize().ok()).collect();
    line.extend(there.into_iter().filter(|path| path.is_dir()).flat_map(|path| ["--tmpfs".into(), path.into()]));
}

/// Where the user's own programs listen that are told of in the environment.
fn sockets() -> impl Iterator<Item = PathBuf> {
    let value = |name| std::env::var(name).ok();
    let named = [value("SSH_AUTH_SOCK"), value("DOCKER_HOST"), value("CONTAINER_HOST")].into_iter().flatten();
    named.map(|path| PathBuf::from(path.strip_prefix("unix://").unwrap_or(&path)))
}

/// Shows each path in its own place.
fn show<'o>(line: &mut Vec<OsString>, paths: impl IntoIterator<Item = (&'o str, PathBuf)>) {
    line.extend(paths.into_iter().flat_map(|(option, path)| [option.into(), path.clone().into(), path.into()]));
}

/// What must be seen though it is where the sandbox has a folder of its own: whatever the repository, programs or a home
/// are in there. Of what is thrown away that is the uppermost folder, since programs lead to files beside them.
fn shown(site: &Site, program: Option<PathBuf>) -> Result<BTreeSet<PathBuf>, Error> {
    let git = site.repository()?.common_dir();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe().ok().and_then(|exe| exe.parent().map(ToOwned::to_owned));
    let seen = std::env::split_paths(&path).chain(own).chain(std::env::var_os("HOME").map(PathBuf::from));
    let real = program.as_ref().and_then(|program| program.canonicalize().ok());
    let seen = seen.chain([site.board.root().to_owned(), git.to_owned()]).chain(program).chain(real);
    let within = |path: PathBuf| {
        if LISTENING.iter().any(|folder| path.starts_with(folder)) {
            return Some(path);
        }
        let name = path.strip_prefix(THROWN_AWAY).ok()?.components().next()?;
        Some(Path::new(THROWN_AWAY).join(name))
    };
    Ok(seen.filter_map(within).collect())
}

fn at_home(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match (path.strip_prefix('~').map(|rest| rest.trim_start_matches('/')), home) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// Checks that the program is there. Looks at files only.
///
/// # Errors
/// It is not.
pub fn check(role: &Role) -> Result<(), NotReady> {
    if !role.sandbox || find_program(OsStr::new(PROGRAM)).is_some() {
        return Ok(());
    }
    Err(NotReady::new(
        format!("`{PROGRAM}`, which `sandbox: true` needs, is not on PATH"),
        "install it (apt-get install bubblewrap), or set `sandbox: false` for the role in .tavern/config.yaml",
    ))
}

/// Checks that it can make a sandbox here, by starting it.
///
/// # Errors
/// It can't; not every container and not every kernel lets it.
pub fn try_out(role: &Role) -> Result<(), NotReady> {
    if !role.sandbox {
        return Ok(());
    }
    check(role)?;
    started().map_err(|why| {
        NotReady::new(
            format!("`sandbox: true` does not work here: {why}"),
            "let users make namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, or of a container its \
             --security-opt), or set `sandbox: false` for the role in .tavern/config.yaml",
        )
    })
}

/// Whether a sandbox can be had on this machine.
pub fn works_here() -> bool {
    find_program(OsStr::new(PROGRAM)).is_some() && started().is_ok()
}

/// Starts one in which nothing is done. Returns why it can't be.
fn started() -> Result<(), String> {
    let words = begin(Terminal::None).into_iter().chain(["true".into()]).map(quoted).collect::<Vec<_>>();
    let line = format!("exec {}", words.join(" "));
    let command = CommandSpec { timeout: Duration::from_secs(20), keep: 400, ..CommandSpec::new(line, "/") };
    match run_command(&command, &Interrupt::new()) {
        Ok(result) if result.is_success() => Ok(()),
        Ok(result) => Err(result.output.lines().next().map_or_else(|| result.end.to_string(), str::to_owned)),
        Err(error) => Err(error.to_string()),
    }
}
