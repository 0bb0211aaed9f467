//! The command runner: any agent program that takes a prompt and works until it ends. Its exit status decides.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tavern_core::eligible::{NotReady, place_of};
use tavern_sys::process::Spec;

use super::job::{Job, PROMPT};
use super::programs::{Program, Written};
use super::{ProgramHome, ProgramState, Ready, Runner, Session, found, plain, variable_of};

/// Runs a command line from the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRunner {
    pub name: String,
    /// Program and arguments; `{prompt_file}`, `{worktree}`, `{task}`, `{run}` and `{model}` are replaced by the job's
    /// values. If the job names no model, an argument with `{model}` is left out, with the option before it. The prompt
    /// is standard input, unless an argument contains `{prompt_file}`.
    pub argv: Vec<String>,
    /// Whether it may read settings and memory files of the repository that it works in.
    pub obeys_repository: bool,
    /// Whether it runs in Tavern's sandbox.
    pub is_boxed: bool,
}

/// Words that turn codex's own sandbox off.
const WITHOUT_SANDBOX: [&str; 3] = [
    "danger-full-access",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
];

impl CommandRunner {
    /// Returns a runner for the command line `argv`.
    pub fn new(
        name: impl Into<String>,
        argv: impl IntoIterator<Item = impl Into<String>>,
    ) -> CommandRunner {
        let argv = argv.into_iter().map(Into::into).collect();
        CommandRunner {
            name: name.into(),
            argv,
            obeys_repository: true,
            is_boxed: false,
        }
    }

    /// Finds the program, since a user's own command line may run one that is known, too.
    pub(super) fn known(&self) -> Option<&'static Program> {
        Program::named(self.program_name())
    }

    /// Returns the file name of its program.
    pub(super) fn program_name(&self) -> &str {
        let program = self.argv.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or_default()
    }

    /// Refuses a command line of codex that can't work: one with a flag that is gone, or one with its own sandbox inside
    /// Tavern's, where each of its commands fails.
    fn refuse_own_sandbox(&self) -> Result<(), NotReady> {
        let is_exec = self.program_name() == "codex"
            && self
                .argv
                .get(1)
                .is_some_and(|verb| verb == "exec" || verb == "e");
        let has = |word: &str| self.argv.iter().any(|arg| arg.contains(word));
        if !is_exec {
            return Ok(());
        }
        if has("--full-auto") {
            return Err(NotReady::new(
                format!(
                    "`--full-auto` of the runner `{}` is gone from codex",
                    self.name
                ),
                "write `--sandbox danger-full-access`, and `sandbox: true` for the role",
            ));
        }
        if self.is_boxed && !WITHOUT_SANDBOX.into_iter().any(has) {
            return Err(NotReady::new(
                format!(
                    "the runner `{}` has codex's own sandbox, which fails in Tavern's",
                    self.name
                ),
                "write `--sandbox danger-full-access` into its command, or `sandbox: false` for the role",
            ));
        }
        Ok(())
    }

    fn alone(&self) -> Option<(&'static str, &'static str)> {
        self.known()?.alone
    }

    pub(super) fn program(&self) -> Result<&str, NotReady> {
        let first = self.argv.first().filter(|program| !program.is_empty());
        first.map(String::as_str).ok_or_else(|| {
            NotReady::new(
                format!("the runner `{}` has no command line", self.name),
                format!(
                    "set `runners: {{{}: {{command: [program, …]}}}}` in config.yaml",
                    self.name
                ),
            )
        })
    }

    fn args(&self, job: &Job) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        for arg in &self.argv[1..] {
            if arg.contains("{model}") && job.model.is_none() {
                if args.last().is_some_and(|option| option.starts_with('-')) {
                    args.pop();
                }
                continue;
            }
            args.push(fill(arg, job));
        }
        args
    }
}

impl Runner for CommandRunner {
    fn check(&self, env: &[(String, String)]) -> Result<Ready, NotReady> {
        self.refuse_own_sandbox()?;
        let program = self.program()?;
        let found = found(OsStr::new(program), env).ok_or_else(|| {
            NotReady::new(
                format!("`{program}` is not {}", place_of(program)),
                match self.known().map(|program| program.install) {
                    Some(how) if !how.is_empty() => {
                        format!(
                            "install it ({how}), or choose another runner than `{}`",
                            self.name
                        )
                    }
                    _ => format!("install it, or choose another runner than `{}`", self.name),
                },
            )
        })?;
        Ok(Ready {
            program: found.display().to_string(),
            version: String::new(),
        })
    }

    fn variables(&self) -> Vec<&'static str> {
        self.known()
            .map_or_else(Vec::new, |preset| preset.variables.to_vec())
    }

    fn state(&self, env: &[(String, String)], _worktree: &Path) -> ProgramState {
        let home = variable_of(env, "HOME")
            .map(PathBuf::from)
            .unwrap_or_default();
        let mut state = ProgramState::default();
        for (name, kept) in self.known().map_or(&[][..], |preset| preset.folders) {
            let folder = home.join(name);
            match kept {
                Written::All => state.folders.push(folder),
                Written::Only(names, passing) => {
                    let kept = names.iter().map(|name| (*name).to_owned()).collect();
                    state.homes.push(ProgramHome {
                        folder,
                        kept,
                        passing: passing.to_vec(),
                    });
                }
            }
        }
        state
    }

    fn obeyed_files(&self) -> &'static [&'static str] {
        self.known().map_or(&[], |program| program.obeyed)
    }

    fn is_led_by_repository(&self) -> bool {
        self.obeys_repository || self.alone().is_none()
    }

    fn spec(&self, job: &Job) -> Result<Spec, NotReady> {
        let mut spec = self.bare_spec(job)?;
        let reads_file = self.argv.iter().any(|arg| arg.contains("{prompt_file}"));
        spec.input = (!reads_file).then(|| job.prompt.clone().into_bytes());
        Ok(spec)
    }

    fn start(&self, job: &Job) -> Result<Session, NotReady> {
        Ok(plain::start(
            self.spec(job)?,
            job,
            self.known().and_then(|program| program.reports),
        )?)
    }
}

impl CommandRunner {
    /// Returns the start of the program, without its prompt.
    pub(super) fn bare_spec(&self, job: &Job) -> Result<Spec, NotReady> {
        let mut spec = job.spec(self.program()?);
        spec.args = self.args(job).into_iter().map(Into::into).collect();
        let alone = self.alone().filter(|_| !self.obeys_repository);
        spec.env
            .extend(alone.map(|(name, value)| (name.into(), value.into())));
        for (name, value) in self.known().map_or(&[][..], |program| program.env) {
            if job.variable(name).is_none() {
                spec.env.push((name.into(), value.into()));
            }
        }
        Ok(spec)
    }
}

/// Replaces the placeholders in one pass, so that braces in a value are not replaced again.
fn fill(arg: &str, job: &Job) -> String {
    let mut parts = arg.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .split_once('}')
            .and_then(|(name, rest)| Some((value(name, job)?, rest)))
        {
            Some((value, rest)) => filled.extend([value.as_str(), rest]),
            None => filled.extend(["{", part]),
        }
    }
    filled
}

fn value(name: &str, job: &Job) -> Option<String> {
    match name {
        "prompt_file" => Some(job.run_dir.join(PROMPT).display().to_string()),
        "worktree" => Some(job.worktree.display().to_string()),
        "task" => Some(job.task.clone()),
        "run" => Some(job.run.clone()),
        "model" => job.model.clone(),
        _ => None,
    }
}
