//! Paths besides the worktree that a role may write to in a sandbox. They exclude files that programs outside run or
//! obey, since an agent that writes there could escape.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::workspace::Workspace;
use tavern_core::eligible::NotReady;
use tavern_store::config::Role;
use tavern_sys::process::fixed;

/// Names in the home folder that shells, sessions, git, ssh, agent programs and other tools obey, and programs that may
/// not be on our `PATH`. Includes everything below them.
const OBEYED: [&str; 53] = [
    ".asdf",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".claude",
    ".claude.json",
    ".codex",
    ".config",
    ".deno/bin",
    ".docker/cli-plugins",
    ".docker/config.json",
    ".emacs",
    ".emacs.d",
    ".gemini",
    ".git",
    ".gitconfig",
    ".gnupg",
    ".gradle/gradle.properties",
    ".gradle/init.d",
    ".inputrc",
    ".local/bin",
    ".local/lib",
    ".local/share/applications",
    ".local/share/systemd",
    ".m2/settings.xml",
    ".netrc",
    ".npm/_npx",
    ".npmrc",
    ".nvm",
    ".opencode",
    ".pam_environment",
    ".profile",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".ssh",
    ".tmux.conf",
    ".vim",
    ".vimrc",
    ".volta",
    ".xprofile",
    ".xsession",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// The same outside of the home, which root could write to.
const SYSTEM: [&str; 6] = ["/boot", "/etc", "/lib", "/lib64", "/usr", "/var/spool/cron"];

/// Variables that name such paths.
const NAMED: [&str; 8] = [
    "BASH_ENV",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "ENV",
    "GIT_CONFIG_GLOBAL",
    "GNUPGHOME",
    "XDG_CONFIG_HOME",
    "ZDOTDIR",
];

/// Names of folders with programs.
const PROGRAMS: [&str; 3] = ["bin", "sbin", "shims"];

/// The parts of these that a tool chain has to write to.
const CACHES: [(&str, &str); 3] = [
    (".cargo", "~/.cargo/registry, ~/.cargo/git"),
    (".npm", "~/.npm/_cacache"),
    ("go", "~/go/pkg/mod"),
];

/// Returns the role's other writable paths, without those inside another one.
///
/// # Errors
/// Programs outside run or obey something there. Or a path is inside another role's writable path: an agent of
/// that role could put a link in its place, which leads out of the sandbox.
pub(super) fn writable(workspace: &Workspace, role: &Role) -> Result<Vec<PathBuf>, NotReady> {
    let of = |role: &Role| {
        role.writable
            .iter()
            .map(|path| at_home(path))
            .collect::<Vec<_>>()
    };
    let is_in = |path: &Path, outer: &Path| {
        path != outer
            && (path.starts_with(outer)
                || path
                    .parent()
                    .is_some_and(|own| real(own).starts_with(real(outer))))
    };
    refuse_trusted(role)?;
    let mut own = of(role);
    let all = own.clone();
    own.retain(|path| !all.iter().any(|outer| is_in(path, outer)));
    for (name, other) in workspace
        .config
        .roles
        .iter()
        .filter(|(_, other)| other.sandbox)
    {
        for outer in of(other) {
            if let Some(path) = own.iter().find(|path| is_in(path, &outer)) {
                let (path, outer) = (path.display(), outer.display());
                let message = format!(
                    "`writable` has {path}, which is in {outer}: an agent of the role `{name}` could put a link there"
                );
                return Err(NotReady::new(
                    message,
                    "name the outer one for both roles, in .tavern/config.yaml",
                ));
            }
        }
    }
    Ok(own)
}

/// Refuses writable paths that programs outside of the sandbox run or obey.
///
/// # Errors
/// A path in the role's `writable` is such a path, or contains one.
pub(super) fn refuse_trusted(role: &Role) -> Result<(), NotReady> {
    role.writable.iter().try_for_each(|typed| refuse(typed))
}

fn refuse(typed: &str) -> Result<(), NotReady> {
    let place = at_home(typed);
    let place = [real(&place), place];
    let is_in_reach = |found: &Path| {
        [found, &real(found)]
            .iter()
            .any(|found| place.iter().any(|place| meet(place, found)))
    };
    let Some((found, why)) = trusted(&place[0]).find(|(found, _)| is_in_reach(found)) else {
        return Ok(());
    };
    let message = format!(
        "`writable` has {typed}, which lets an agent escape its sandbox: `{}` {why}",
        explain(&found)
    );
    let at = |name: &str| home().is_some_and(|home| place.contains(&home.join(name)));
    let caches = CACHES.iter().find(|(name, _)| at(name));
    let caches = caches.map_or("~/.cargo/registry, ~/.npm/_cacache", |(_, caches)| caches);
    let hint = format!("name folders of caches alone, such as {caches}, in .tavern/config.yaml");
    Err(NotReady::new(message, hint))
}

/// Returns true if one of them is the other one, or in it.
fn meet(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns the paths near `place` that are run or obeyed outside, and why.
fn trusted(place: &Path) -> impl Iterator<Item = (PathBuf, &'static str)> {
    let path = fixed(&env::var_os("PATH").unwrap_or_default());
    let own = env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(ToOwned::to_owned));
    let folders: Vec<PathBuf> = env::split_paths(&path).chain(own).collect();
    let linked: Vec<PathBuf> = folders.iter().flat_map(|folder| links(folder)).collect();
    let home = home();
    // A path around the whole home is left out; the names in the home cover it.
    let is_apart = |path: &PathBuf| home.as_ref().is_none_or(|home| !home.starts_with(path));
    let obeyed: Vec<PathBuf> = home
        .iter()
        .flat_map(|home| OBEYED.map(|name| home.join(name)))
        .collect();
    let named = NAMED.iter().filter_map(env::var_os).map(PathBuf::from);
    let named: Vec<PathBuf> = named
        .filter(|path| path.is_absolute() && is_apart(path))
        .collect();
    let is_named = |folder: &PathBuf| PROGRAMS.iter().any(|name| folder.ends_with(name));
    let inner = PROGRAMS.map(|name| place.join(name));
    let inner = inner.into_iter().filter(|folder| folder.is_dir());
    let inner: Vec<PathBuf> = inner
        .chain(Some(place.to_owned()).filter(is_named))
        .collect();
    let because =
        |found: Vec<PathBuf>, why: &'static str| found.into_iter().map(move |path| (path, why));
    because(folders, "is on PATH")
        .chain(because(linked, "is on PATH"))
        .chain(because(inner, "holds programs"))
        .chain(because(obeyed, "is run or read as configuration outside"))
        .chain(because(named, "is read as configuration outside"))
        .chain(because(
            SYSTEM.map(PathBuf::from).to_vec(),
            "is run or read as configuration outside",
        ))
}

/// Returns the targets of links in a folder, which may lie anywhere.
fn links(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// Resolves the path, even if its last parts don't exist.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

fn home() -> Option<PathBuf> {
    env::var_os("HOME").map(PathBuf::from)
}

/// Formats the path as people type it.
fn explain(path: &Path) -> String {
    match home().and_then(|home| path.strip_prefix(home).ok().map(ToOwned::to_owned)) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

fn at_home(path: &str) -> PathBuf {
    match (
        path.strip_prefix('~')
            .map(|rest| rest.trim_start_matches('/')),
        home(),
    ) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
