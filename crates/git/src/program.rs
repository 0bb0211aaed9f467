//! Calls of the `git` program: their common settings, and the meaning of their failures.
//!
//! Every call is non-interactive: no prompt, editor, hook, signature or background maintenance, and a fixed language.
//! Variables by which a surrounding git (a hook, an alias) points at another repository are removed. Each call has a
//! time-out, after which its whole process group is killed.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::filter::{FILTERS, Overruled, in_sandbox};
use super::lock::FileLock;
use super::repository::Checkout;
use super::special_files::remove_endless;
use super::stale_lock::{LOCK_PATIENCE, LOCK_PAUSE};
use super::{GitError, Repository};
use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::process::start::UNATTENDED;
use tavern_sys::process::{ProgramExit, Ran, Spec, fixed, run_program};

/// For steps that touch no file contents.
const QUICK: Duration = Duration::from_secs(60);

/// For steps that read or write a whole work tree, perhaps through filters that use the network.
pub(super) const THOROUGH: Duration = Duration::from_secs(30 * 60);

/// Settings that override the user's. They disable hooks, editors, daemons, clean-ups, questions, and formats that
/// libgit2 can't read. Writes of git survive a power cut.
const SETTINGS: [&str; 17] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // A forged commit graph in `.git` could misstate histories.
    "core.commitGraph=false",
    "core.editor=true",
    "core.safecrlf=false",
    "core.splitIndex=false",
    "commit.gpgSign=false",
    "commit.status=false",
    "commit.verbose=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "worktree.useRelativePaths=false",
    "i18n.commitEncoding=UTF-8",
    "advice.addEmbeddedRepo=false",
    "core.fsync=committed",
    "core.fsyncMethod=batch",
];

/// Variables of `git rev-parse --local-env-vars`, without the user's own `-c` settings and those that no program
/// inherits anyway; also variables that change the meaning of paths.
const FOREIGN: [&str; 8] = [
    "GIT_ATTR_SOURCE",
    "GIT_CONFIG",
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_SHALLOW_FILE",
];

/// One call of `git`, being prepared.
pub(super) struct Call<'r> {
    args: Vec<OsString>,
    filters: Vec<Overruled>,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
    limit: Duration,
    input: Option<File>,
    repository: &'r Repository,
}

impl Repository {
    /// Prepares `git` for exactly this checkout. Git directory and work tree are always named, never searched for. If
    /// an agent deleted the `.git` of a worktree, a search would find the user's own checkout above it.
    pub(super) fn call(&self, checkout: &Checkout) -> Call<'_> {
        let args = SETTINGS
            .iter()
            .flat_map(|setting| ["-c", setting])
            .map(OsString::from)
            .collect();
        let dir = checkout.root.clone();
        let filters = Vec::new();
        let call = Call {
            args,
            filters,
            env: Vec::new(),
            dir,
            limit: QUICK,
            input: None,
            repository: self,
        };
        let path = fixed(&env::var_os("PATH").unwrap_or_default());
        let call = if path.is_empty() {
            call
        } else {
            call.env("PATH", path)
        };
        let fixed = UNATTENDED.iter().chain(&[
            ("GIT_PAGER", "cat"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("LC_ALL", "C"),
        ]);
        let call = fixed.fold(call, |call, (name, value)| call.env(name, value));
        let call = call
            .env("GIT_DIR", &checkout.git_dir)
            .env("GIT_WORK_TREE", &checkout.root);
        let Some(files) = &self.config else {
            return call;
        };
        let call = match &files.system {
            Some(path) => call.env("GIT_CONFIG_SYSTEM", path),
            None => call.env("GIT_CONFIG_NOSYSTEM", "1"),
        };
        call.env(
            "GIT_CONFIG_GLOBAL",
            files
                .global
                .first()
                .map_or(Path::new("/dev/null"), PathBuf::as_path),
        )
    }
}

impl Repository {
    /// Removes pipes and devices from a linked worktree, for a git that is not started by this crate.
    pub fn remove_pipes(&self, worktree: &Path) -> Result<(), GitError> {
        remove_endless(&self.checkout(worktree)?.root)
    }
}

impl Call<'_> {
    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(super) fn args<S: AsRef<OsStr>>(self, args: impl IntoIterator<Item = S>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(super) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The child keeps `lock` until it ends, even if this process is killed before.
    pub(super) fn holding(mut self, lock: &FileLock) -> Result<Self, GitError> {
        self.input = Some(lock.share()?);
        Ok(self)
    }

    /// Uses the whole file as input, without holding it in memory.
    pub(super) fn input_of(mut self, file: File) -> Self {
        self.input = Some(file);
        self
    }

    pub(super) fn input(self, bytes: &[u8]) -> Result<Self, GitError> {
        // A file needs no writer while git reads it. It lies in the git directory, where git writes anyway: the
        // user's temporary folder may not exist.
        let folder = self.repository.common_dir();
        let spooled =
            spooled(bytes, folder).map_err(GitError::io("write a temporary file in", folder))?;
        Ok(self.input_of(spooled))
    }

    /// Runs it and returns standard output. An exit status other than 0 is [`GitError::Program`].
    pub(super) fn read(self) -> Result<Vec<u8>, GitError> {
        self.ending(&[0]).map(|ran| ran.stdout)
    }

    /// Runs it. Fails with [`GitError::Program`] if the exit status is not one of `codes`, and with
    /// [`GitError::LockedByGit`] if a lock stays in the way. Pipes and devices in a linked worktree are removed
    /// before. A git that is killed from outside, or that meets a new pipe, is retried once.
    pub(super) fn ending(mut self, codes: &[i32]) -> Result<Ran, GitError> {
        self.make_way()?;
        if self.is_over_sandboxed() {
            self.filters = self.filters_in_sandbox()?;
        }
        let (deadline, mut was_killed) = (clock::instant() + LOCK_PATIENCE, false);
        loop {
            let ran = match self.once() {
                Err(GitError::AtPipe { .. }) if !was_killed => {
                    was_killed = true;
                    self.make_way()?;
                    continue;
                }
                ran => ran?,
            };
            if ran.exit == ProgramExit::Signal(Signal::KILL.as_raw()) && !was_killed {
                was_killed = true;
                continue;
            }
            let stderr = one_line(&ran.stderr);
            let lock = lock_in_the_way(&stderr).filter(|_| !ran.exit.is_success());
            let Some(lock) = lock else {
                let (command, status) = (self.describe(), ran.exit.to_string());
                return match ran.exit {
                    ProgramExit::Code(code) if codes.contains(&code) => Ok(ran),
                    // git's status for unknown options.
                    ProgramExit::Code(129) => Err(GitError::ProgramTooOld),
                    _ => Err(GitError::Program {
                        command,
                        dir: self.dir,
                        status,
                        stderr,
                    }),
                };
            };
            if !self.repository.is_ours(&lock) || clock::instant() >= deadline {
                return Err(GitError::LockedByGit { path: lock });
            }
            if !self.repository.remove_stale_lock(&lock)? {
                thread::sleep(LOCK_PAUSE);
            }
        }
    }

    /// Makes sure that git finds no pipe in its folder that it would wait for.
    fn make_way(&self) -> Result<(), GitError> {
        if self.dir == self.repository.main_worktree() {
            refuse_pipes(&self.dir)
        } else {
            remove_endless(&self.dir)
        }
    }

    /// Returns true if the files may come from an agent in a sandbox.
    fn is_over_sandboxed(&self) -> bool {
        self.dir != self.repository.main_worktree() && !self.repository.filter_sandbox.is_empty()
    }

    fn filters_in_sandbox(&self) -> Result<Vec<Overruled>, GitError> {
        let query = ["config", "--null", "--get-regexp", FILTERS].map(OsString::from);
        let args = SETTINGS
            .iter()
            .flat_map(|setting| ["-c", setting])
            .map(OsString::from)
            .chain(query)
            .collect();
        let mut call = Call {
            args,
            filters: Vec::new(),
            env: self.env.clone(),
            dir: self.dir.clone(),
            input: None,
            ..*self
        };
        let ran = call.once()?;
        match ran.exit {
            ProgramExit::Code(0 | 1) => Ok(in_sandbox(
                &ran.stdout,
                &self.repository.filter_sandbox,
                self.repository.common_dir(),
            )),
            exit => Err(GitError::Program {
                command: call.describe(),
                dir: call.dir,
                status: exit.to_string(),
                stderr: one_line(&ran.stderr),
            }),
        }
    }

    fn once(&mut self) -> Result<Ran, GitError> {
        let stdin = match &mut self.input {
            Some(file) => {
                let shared = file.rewind().and_then(|()| file.try_clone());
                shared
                    .map_err(GitError::io(
                        "read a temporary file in",
                        self.repository.common_dir(),
                    ))?
                    .into()
            }
            None => Stdio::null(),
        };
        let filters = || self.filters.iter().enumerate();
        let overruled = filters().map(|(number, filter)| filter.argument(number));
        let values = filters().map(|(number, filter)| filter.variable(number));
        let spec = Spec {
            args: overruled.chain(self.args.iter().cloned()).collect(),
            env: self.env.iter().cloned().chain(values).collect(),
            env_remove: FOREIGN.map(OsString::from).to_vec(),
            stdin,
            is_guarded: true,
            ..Spec::new("git", &self.dir)
        };
        let begun = clock::instant();
        let ran = run_program(spec, self.limit).map_err(|source| {
            if source.kind() == ErrorKind::Deadlock {
                return GitError::AtPipe {
                    dir: self.dir.clone(),
                };
            }
            // A missing folder gives the same error as a missing program.
            if source.kind() == ErrorKind::NotFound && self.dir.is_dir() {
                GitError::ProgramMissing
            } else {
                GitError::Io {
                    doing: "start `git` in",
                    path: self.dir.clone(),
                    source,
                }
            }
        })?;
        let after = begun.elapsed();
        ran.ok_or_else(|| GitError::TimedOut {
            command: self.describe(),
            dir: self.dir.clone(),
            after,
        })
    }

    /// Returns the command without the settings that every call has.
    fn describe(&self) -> String {
        let own = self
            .args
            .iter()
            .skip(2 * SETTINGS.len())
            .map(|arg| arg.to_string_lossy().into_owned());
        std::iter::once("git".to_owned())
            .chain(own)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Files that git reads in a folder beside any other.
const READ_BY_GIT: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];

/// Fails if one of them is a pipe, for which git would wait forever.
pub(super) fn refuse_pipes(folder: &Path) -> Result<(), GitError> {
    for path in READ_BY_GIT.map(|name| folder.join(name)) {
        if path
            .symlink_metadata()
            .is_ok_and(|found| !found.is_file() && !found.is_dir() && !found.is_symlink())
        {
            return Err(GitError::io("read", &path)(files::refused(
                files::NOT_A_FILE,
            )));
        }
    }
    Ok(())
}

/// Returns the lock that git names as the reason of its failure.
fn lock_in_the_way(complaint: &str) -> Option<PathBuf> {
    let (_, rest) = complaint.split_once("Unable to create '")?;
    let (path, _) = rest.split_once("': File exists")?;
    path.ends_with(".lock").then(|| PathBuf::from(path))
}

pub(super) fn pathspec(magic: &str, path: &Path) -> OsString {
    let mut text = OsString::from(format!(":({magic})"));
    text.push(path.as_os_str());
    text
}

/// Returns the zero-separated records of an output, without empty ones.
pub(super) fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output
        .split(|byte| *byte == 0)
        .filter(|record| !record.is_empty())
}

fn spooled(bytes: &[u8], folder: &Path) -> std::io::Result<File> {
    let mut file: File = tempfile::tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn failures_carry_what_git_said() {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let call = repository.call(&repository.main_checkout());
        let error = call
            .args(["rev-parse", "--verify", "nowhere"])
            .read()
            .expect_err("there is none");
        let GitError::Program {
            command,
            dir,
            status,
            stderr,
        } = error
        else {
            panic!("{error:?}")
        };
        assert_eq!(command, "git rev-parse --verify nowhere");
        assert_eq!(
            (dir, status.as_str()),
            (fixture.root(), "exited with code 128")
        );
        assert_eq!(stderr, "fatal: Needed a single revision");
    }

    #[test]
    fn nothing_asks_edits_or_waits_for_input() {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let script = "alias.x=!echo $GIT_EDITOR $GIT_SEQUENCE_EDITOR $GIT_TERMINAL_PROMPT \"[$GIT_ASKPASS]\" $SSH_ASKPASS $SSH_ASKPASS_REQUIRE $LC_ALL; cat";
        let call = repository.call(&repository.main_checkout());
        let output = call
            .args(["-c", script, "x"])
            .read()
            .expect("the alias succeeds");
        assert_eq!(
            String::from_utf8_lossy(&output),
            "true true 0 [] false force C\n"
        );
    }

    #[test]
    fn a_missing_program_and_a_missing_folder_are_told_apart() {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let missing = repository
            .call(&repository.main_checkout())
            .env("PATH", "/nowhere")
            .arg("--version")
            .read();
        assert!(
            matches!(missing, Err(GitError::ProgramMissing)),
            "{missing:?}"
        );
        let checkout = Checkout {
            root: fixture.beside("nowhere"),
            ..repository.main_checkout()
        };
        let nowhere = repository.call(&checkout).arg("--version").read();
        assert!(matches!(nowhere, Err(GitError::Io { .. })), "{nowhere:?}");
    }
}
