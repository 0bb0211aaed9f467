//! The base of every sandbox: a bubblewrap command line that precedes another.
//!
//! The order of the mounts matters: a later one hides an earlier one.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use tavern_git::Repository;
use tavern_store::Board;
use tavern_store::config::Config;
use tavern_sys::process::find_program;

/// Bubblewrap.
pub const PROGRAM: &str = "bwrap";

/// The temp folder; the sandbox has its own in memory, which ends with it.
const THROWN_AWAY: &str = "/tmp";

/// The base of every sandbox: a read-only file system and its own processes only. It ends with its parent.
const BASE: [&str; 12] = [
    "--ro-bind",
    "/",
    "/",
    "--dev",
    DEVICES,
    "--proc",
    "/proc",
    "--tmpfs",
    THROWN_AWAY,
    "--unshare-pid",
    "--unshare-ipc",
    "--die-with-parent",
];

/// Replaced by the sandbox's own.
const DEVICES: &str = "/dev";

/// Folders with sockets of programs that act as the user or root: session buses, container engines, key agents.
const LISTENING: [&str; 2] = ["/run", "/var/run"];

/// Exceptions within these that stay visible: name resolution, and the system's own programs.
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

/// Folders of the user's home with keys or sockets, and data of snap and flatpak programs, including browsers.
const SECRET: [&str; 6] = [
    ".ssh",
    ".gnupg",
    ".docker/run",
    ".docker/desktop",
    ".var/app",
    "snap",
];

/// Name prefixes of browser and mail profiles, with histories, cookies and passwords. Each is a hidden folder of the
/// home, or one in its settings, cache or data folders.
const BROWSERS: [&str; 20] = [
    "brave",
    "bravesoftware",
    "chrome",
    "chromium",
    "epiphany",
    "falkon",
    "firefox",
    "floorp",
    "google-chrome",
    "librewolf",
    "microsoft-edge",
    "midori",
    "mozilla",
    "opera",
    "qutebrowser",
    "thunderbird",
    "vivaldi",
    "waterfox",
    "yandex-browser",
    "zen",
];

/// Capabilities that root keeps: over visible files, not over the machine.
const POWERS: [&str; 7] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
];

/// Machine-wide paths of `/proc` that root could write regardless of its capabilities.
const MACHINES: [&str; 9] = [
    "/proc/acpi",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/mtrr",
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/tty",
];

/// Bubblewrap's option for a path to mount read-only, if it exists.
pub const READ: &str = "--ro-bind-try";

/// The same, but writable.
pub const WRITE: &str = "--bind-try";

/// Bubblewrap's option for no network and no abstract sockets of others.
pub const ALONE: &str = "--unshare-net";

/// A sandboxed program's access to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// It has its own session, so it can't inject input into the terminal.
    None,
    /// A person uses it at the terminal.
    Given,
}

/// Returns the sandbox for filters that git runs over sandboxed work: no network, and no output but the filter's own.
/// Empty if no role has a sandbox.
pub fn of_filters(config: &Config, board: &Board, repository: &Repository) -> Vec<OsString> {
    if !config.roles.values().any(|role| role.sandbox) {
        return Vec::new();
    }
    end(alone(board, repository), None)
}

/// Returns the start of a sandbox without network and writable paths.
pub fn alone(board: &Board, repository: &Repository) -> Vec<OsString> {
    let mut line = begin(Terminal::None);
    line.push(ALONE.into());
    show(&mut line, shown(board, repository, None));
    hide_secrets(&mut line, &[]);
    line
}

/// Returns the start of every sandbox.
pub fn begin(terminal: Terminal) -> Vec<OsString> {
    // An absolute path, because it may be started from the folder of the work.
    let program = find_program(OsStr::new(PROGRAM))
        .unwrap_or_else(|| PROGRAM.into())
        .into_os_string();
    let mut line: Vec<OsString> = std::iter::once(program)
        .chain(BASE.map(OsString::from))
        .collect();
    if terminal == Terminal::None {
        line.push("--new-session".into());
    }
    hide(&mut line, LISTENING.iter().map(PathBuf::from));
    for path in NEEDED {
        line.extend([READ, path, path].map(OsString::from));
    }
    if rustix::process::geteuid().is_root() {
        line.extend(["--cap-drop", "ALL"].map(OsString::from));
        line.extend(
            POWERS
                .iter()
                .flat_map(|power| ["--cap-add".into(), OsString::from(power)]),
        );
        line.extend(
            MACHINES
                .iter()
                .flat_map(|path| [READ, path, path].map(OsString::from)),
        );
    }
    line
}

/// Ends the line, for a program that starts in `folder`, else in bubblewrap's own folder.
pub fn end(mut line: Vec<OsString>, folder: Option<&Path>) -> Vec<OsString> {
    line.extend(["--setenv", "TMPDIR", THROWN_AWAY].map(OsString::from));
    line.extend(
        folder
            .into_iter()
            .flat_map(|folder| ["--chdir".into(), folder.into()]),
    );
    line.push("--".into());
    line
}

/// Hides the user's keys and sockets, except folders that contain a `named` path.
pub fn hide_secrets(line: &mut Vec<OsString>, named: &[PathBuf]) {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let secret = home
        .iter()
        .flat_map(|home| SECRET.map(|name| home.join(name)))
        .chain(home.iter().flat_map(|home| profiles(home)));
    hide(
        line,
        secret.filter(|folder| !named.iter().any(|path| path.starts_with(folder))),
    );
    for socket in sockets().filter_map(|path| path.canonicalize().ok()) {
        line.extend(["--ro-bind".into(), "/dev/null".into(), socket.into()]);
    }
}

/// Returns the folders of browser profiles.
fn profiles(home: &Path) -> impl Iterator<Item = PathBuf> {
    let own = ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"];
    let own = own
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from);
    let usual = [".config", ".cache", ".local/share"].map(|name| home.join(name));
    let is_one = |name: &OsStr, mark: &str| {
        let name = name.to_string_lossy().to_lowercase();
        let name = name.strip_prefix(mark);
        name.is_some_and(|name| BROWSERS.iter().any(|browser| begins(name, browser)))
    };
    let within = move |(folder, mark): (PathBuf, &'static str)| {
        let entries = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok);
        entries
            .filter(move |entry| is_one(&entry.file_name(), mark))
            .map(|entry| entry.path())
    };
    own.chain(usual)
        .map(|folder| (folder, ""))
        .chain([(home.to_owned(), ".")])
        .flat_map(within)
}

/// `chromium-beta` is a Chromium, `zenith` is no Zen.
fn begins(name: &str, browser: &str) -> bool {
    name.strip_prefix(browser)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// Mounts an empty folder over each existing one.
fn hide(line: &mut Vec<OsString>, folders: impl Iterator<Item = PathBuf>) {
    // Resolve links here: bubblewrap would create their targets.
    let there: BTreeSet<PathBuf> = folders
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    line.extend(
        there
            .into_iter()
            .filter(|path| path.is_dir())
            .flat_map(|path| ["--tmpfs".into(), path.into()]),
    );
}

/// Returns the sockets of the user's programs that the environment names.
fn sockets() -> impl Iterator<Item = PathBuf> {
    let value = |name| std::env::var(name).ok();
    let named = [
        value("SSH_AUTH_SOCK"),
        value("DOCKER_HOST"),
        value("CONTAINER_HOST"),
    ]
    .into_iter()
    .flatten();
    named.map(|path| PathBuf::from(path.strip_prefix("unix://").unwrap_or(&path)))
}

/// Mounts each path at its own place.
pub fn show<'o>(line: &mut Vec<OsString>, paths: impl IntoIterator<Item = (&'o str, PathBuf)>) {
    line.extend(
        paths
            .into_iter()
            .flat_map(|(option, path)| [option.into(), path.clone().into(), path.into()]),
    );
}

/// Returns paths that must stay visible although the sandbox replaces their parents: the repository, programs and the
/// home. In the temp folder this is the topmost folder, because programs refer to files beside them.
pub fn shown(
    board: &Board,
    repository: &Repository,
    program: Option<PathBuf>,
) -> BTreeSet<(&'static str, PathBuf)> {
    let git = repository.common_dir();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(ToOwned::to_owned));
    let seen = std::env::split_paths(&path)
        .chain(own)
        .chain(std::env::var_os("HOME").map(PathBuf::from));
    let real = program
        .as_ref()
        .and_then(|program| program.canonicalize().ok());
    let seen = seen
        .chain([board.root().to_owned(), git.to_owned()])
        .chain(program)
        .chain(real);
    let within = |path: PathBuf| {
        // These folders are never shown as a whole.
        let is_below = |folder: &str| {
            path.strip_prefix(folder)
                .is_ok_and(|rest| rest.components().next().is_some())
        };
        if LISTENING
            .iter()
            .chain([&DEVICES])
            .any(|folder| is_below(folder))
        {
            return Some(path);
        }
        let name = path.strip_prefix(THROWN_AWAY).ok()?.components().next()?;
        Some(Path::new(THROWN_AWAY).join(name))
    };
    seen.filter_map(within).map(|path| (READ, path)).collect()
}
