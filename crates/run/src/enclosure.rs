//! What every sandbox is made of: a command line for bubblewrap that goes before another.
//!
//! The order of the mounts matters: a later one hides what an earlier one shows.

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

/// The folder for what is thrown away: its own one, in memory, is gone with it.
const THROWN_AWAY: &str = "/tmp";

/// What every sandbox is: all is shown and nothing can be written, it sees no process but its own, and is gone with whoever
/// started it.
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

/// Folders that a sandbox has its own ones of.
const DEVICES: &str = "/dev";

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

/// Folders of the user's home with keys, and with programs that listen; what programs of snap and flatpak keep, browsers among them.
const SECRET: [&str; 6] = [
    ".ssh",
    ".gnupg",
    ".docker/run",
    ".docker/desktop",
    ".var/app",
    "snap",
];

/// How the names begin under which browsers and mail programs keep profiles: histories, cookies, passwords. Each is a hidden folder of
/// the home, or one of those for settings, caches and data.
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

/// What root keeps of its powers: those over files that are shown, none over the machine.
const POWERS: [&str; 7] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
];

/// What of `/proc` is the machine's, and root's to write to whatever powers it has kept.
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

/// Bubblewrap's option for a path that is shown, if it is there, and can't be written to.
pub const READ: &str = "--ro-bind-try";

/// Likewise for one that can be written to.
pub const WRITE: &str = "--bind-try";

/// Bubblewrap's option for who reaches no port and no abstract socket of others.
pub const ALONE: &str = "--unshare-net";

/// What a program in a sandbox has to do with the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// It is in a session of its own, from which nobody can be typed for.
    None,
    /// A person sits before it.
    Given,
}

/// For filters that git runs over what was worked in a sandbox: each reaches nobody, and writes nothing but its output. Nothing
/// where no role has one.
pub fn of_filters(config: &Config, board: &Board, repository: &Repository) -> Vec<OsString> {
    if !config.roles.values().any(|role| role.sandbox) {
        return Vec::new();
    }
    end(alone(board, repository), None)
}

/// Reaches nobody, and writes nothing yet.
pub fn alone(board: &Board, repository: &Repository) -> Vec<OsString> {
    let mut line = begin(Terminal::None);
    line.push(ALONE.into());
    show(&mut line, shown(board, repository, None));
    hide_secrets(&mut line, &[]);
    line
}

/// What every sandbox begins with.
pub fn begin(terminal: Terminal) -> Vec<OsString> {
    // In full, since others that start it are in the folder of the work.
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

/// The end of the line, for a program that begins in `folder`, else where bubblewrap was started.
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

/// Hides the user's keys, and what listens for the user, but for what is `named`.
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

/// Where browsers keep what they know of the user.
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

/// Puts an empty folder in the place of each of these that is there.
fn hide(line: &mut Vec<OsString>, folders: impl Iterator<Item = PathBuf>) {
    // A link is followed here: bubblewrap would make what it leads to.
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

/// Where the user's own programs listen that are told of in the environment.
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

/// Shows each path in its own place.
pub fn show<'o>(line: &mut Vec<OsString>, paths: impl IntoIterator<Item = (&'o str, PathBuf)>) {
    line.extend(
        paths
            .into_iter()
            .flat_map(|(option, path)| [option.into(), path.clone().into(), path.into()]),
    );
}

/// What must be seen though it is where the sandbox has a folder of its own: whatever the repository, programs or a home
/// are in there. Of what is thrown away that is the uppermost folder, since programs lead to files beside them.
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
        // All of one of these is never shown.
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
