//! The shell runner: runs the item's own script in its worktree. It needs no model, no key and no network.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use tavern_core::eligible::NotReady;
use tavern_sys::files;
use tavern_sys::process::Spec;

use super::job::Job;
use super::{Ready, Runner, Session, found, plain, variable_of};

/// Runs [`Job::script`] with `sh -eu`, or with `bash -eu` if its first line names bash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shell;

/// The script as it ran, in the run's folder.
pub const SCRIPT: &str = "script.sh";

impl Runner for Shell {
    fn check(&self, env: &[(String, String)]) -> Result<Ready, NotReady> {
        let program = on_path("sh", env)?;
        Ok(Ready {
            program: program.display().to_string(),
            version: String::new(),
        })
    }

    fn spec(&self, job: &Job) -> Result<Spec, NotReady> {
        let first = script(job)?.lines().next().unwrap_or_default();
        let shell = if first.starts_with("#!") && first.contains("bash") {
            "bash"
        } else {
            "sh"
        };
        on_path(shell, &job.env)?;
        let mut spec = job.spec(shell);
        // A file and no argument: the system limits one argument to 128 KiB.
        spec.args = vec!["-eu".into(), job.run_dir.join(SCRIPT).into()];
        Ok(spec)
    }

    /// Starts a person's own shell.
    fn attended(&self, job: &Job) -> Result<Spec, NotReady> {
        let own = variable_of(&job.env, "SHELL").filter(|shell| !shell.is_empty());
        Ok(job.spec(own.unwrap_or_else(|| "sh".into())))
    }

    fn start(&self, job: &Job) -> Result<Session, NotReady> {
        let path = job.run_dir.join(SCRIPT);
        files::write(&path, script(job)?.as_bytes()).map_err(|error| {
            io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
        })?;
        Ok(plain::start(self.spec(job)?, job, None)?)
    }
}

fn on_path(shell: &str, env: &[(String, String)]) -> Result<PathBuf, NotReady> {
    let missing = || {
        NotReady::new(
            format!("`{shell}` is not on PATH"),
            format!("install {shell}, or put it on PATH"),
        )
    };
    found(OsStr::new(shell), env).ok_or_else(missing)
}

fn script(job: &Job) -> Result<&str, NotReady> {
    job.script.as_deref().ok_or_else(|| {
        NotReady::new(
            "the item has no script for the shell runner",
            "add a ```sh block to the item, or choose an agent: --runner claude",
        )
    })
}

impl Job {
    /// Returns the start of `program` in the worktree, with the job's environment and mark.
    pub(super) fn spec(&self, program: impl Into<PathBuf>) -> Spec {
        let mut spec = Spec::new(program, &self.worktree).mark(self.mark());
        spec.wrapper.clone_from(&self.wrapper);
        spec.inherits = false;
        spec.env = self
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        spec
    }
}
