//! What an agent program may write to, for roles with `sandbox: true`: a command line for bubblewrap that goes before its
//! own. It keeps mistakes away from the rest of the machine's files; a jail against malice it is not.
//!
//! The order of the mounts matters: a later one hides what an earlier one shows.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::Error;
use super::site::Site;
use crate::board::eligible::NotReady;
use crate::config::{self, Role};
use crate::interrupt::Interrupt;
use crate::process::{CommandSpec, find_program, run_command};
use crate::runner::Runner;

/// Bubblewrap.
const PROGRAM: &str = "bwrap";

/// The folder for what is thrown away: its own one, in memory, is gone with it.
const THROWN_AWAY: &str = "/tmp";

/// What root keeps of its powers: those over files that are shown, none over the machine.
const POWERS: [&str; 7] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID"];

/// Bubblewrap's option for a path that is shown, if it is there, and can't be written to.
const READ: &str = "--ro-bind-try";

/// Likewise for one that can be written to.
const WRITE: &str = "--bind-try";

/// For the agent program of one run; empty where `role` asks for none.
///
/// # Errors
/// The repository can't be opened, or a folder of the program's can't be made.
pub fn of_agent(
    site: &Site,
    role: &Role,
    worktree: &Path,
    run_dir: &Path,
    runner: &dyn Runner,
    env: &[(String, String)],
) -> Result<Vec<OsString>, Error> {
    if !role.sandbox {
        return Ok(Vec::new());
    }
    let program = PathBuf::from(runner.check(env)?.program);
    let state = runner.state(env);
    let board = &site.board;
    // `tavern-add` and the like replace files in it; settings, and other agents' runs and worktrees, are none of its own.
    let mut mounts = [board.dir().to_owned(), board.private("")].map(|path| (WRITE, path)).to_vec();
    mounts.extend([config::FILE, "templates", "runs", "worktrees"].map(|name| (READ, board.path(name))));
    mounts.extend([run_dir, worktree].map(|path| (WRITE, path.to_owned())));
    state.folders.iter().map(PathBuf::as_path).chain([board.path("templates").as_path()]).try_for_each(make)?;
    mounts.extend(state.folders.iter().chain(&state.files).map(|path| (WRITE, path.clone())));
    command_line(site, role, worktree, Some(program), mounts)
}

/// For commands that are run on what an agent has made: as the agent could have run them itself, without the board.
///
/// # Errors
/// The repository can't be opened.
pub fn of_command(site: &Site, role: Option<&Role>, folder: &Path) -> Result<Vec<OsString>, Error> {
    match role.filter(|role| role.sandbox) {
        Some(role) => command_line(site, role, folder, None, vec![(WRITE, folder.to_owned())]),
        None => Ok(Vec::new()),
    }
}

fn command_line(
    site: &Site,
    role: &Role,
    folder: &Path,
    program: Option<PathBuf>,
    own: Vec<(&str, PathBuf)>,
) -> Result<Vec<OsString>, Error> {
    let git = site.repository()?.common_dir();
    let mut mounts = vec![(WRITE, git.to_owned())];
    // What git would run for a person outside.
    make(&git.join("hooks"))?;
    mounts.extend(["config", "hooks"].map(|name| (READ, git.join(name))));
    mounts.push((READ, site.board.private("")));
    mounts.extend(role.writable.iter().map(|path| (WRITE, at_home(path))));
    mounts.extend(own);
    let mut line: Vec<OsString> =
        [PROGRAM, "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", THROWN_AWAY].map(OsString::from).to_vec();
    let hidden = hidden(site, git, program).into_iter().map(|path| (READ, path));
    for (option, path) in hidden.chain(mounts) {
        line.extend([option.into(), path.clone().into(), path.into()]);
    }
    if rustix::process::geteuid().is_root() {
        line.extend(["--cap-drop", "ALL"].map(OsString::from));
        line.extend(POWERS.iter().flat_map(|power| ["--cap-add".into(), OsString::from(power)]));
    }
    line.extend(["--setenv", "TMPDIR", THROWN_AWAY, "--chdir"].map(OsString::from));
    line.extend([folder.into(), "--".into()]);
    Ok(line)
}

/// A folder that is not there can't be shown, and what is not shown read-only could be made inside.
fn make(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("make", path))
}

/// What must be seen though it is where the sandbox has a folder of its own: whatever the repository, programs or a home
/// are in there, since programs lead to files beside them.
fn hidden(site: &Site, git: &Path, program: Option<PathBuf>) -> BTreeSet<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe().ok().and_then(|exe| exe.parent().map(ToOwned::to_owned));
    let seen = std::env::split_paths(&path).chain(own).chain(std::env::var_os("HOME").map(PathBuf::from));
    let real = program.as_ref().and_then(|program| program.canonicalize().ok());
    let seen = seen.chain([site.board.root().to_owned(), git.to_owned()]).chain(program).chain(real);
    let uppermost = |path: PathBuf| {
        let name = path.strip_prefix(THROWN_AWAY).ok()?.components().next()?;
        Some(Path::new(THROWN_AWAY).join(name))
    };
    seen.filter_map(uppermost).collect()
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
    let line = format!("exec {PROGRAM} --ro-bind / / --dev /dev --tmpfs {THROWN_AWAY} true");
    let command = CommandSpec { timeout: Duration::from_secs(20), keep: 400, ..CommandSpec::new(line, "/") };
    let why = match run_command(&command, &Interrupt::new()) {
        Ok(result) if result.is_success() => return Ok(()),
        Ok(result) => result.output.lines().next().map_or_else(|| result.end.to_string(), str::to_owned),
        Err(error) => error.to_string(),
    };
    Err(NotReady::new(
        format!("`sandbox: true` does not work here: {why}"),
        "let users make namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, or of a container its \
         --security-opt), or set `sandbox: false` for the role in .tavern/config.yaml",
    ))
}
