//! The command runner: any agent program that takes a prompt and works until it ends. Its exit status decides.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tavern_core::eligible::{NotReady, place_of};
use tavern_sys::process::Spec;

use super::job::{Job, PROMPT};
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
}

/// An agent program.
struct Preset {
    name: &'static str,
    /// The command line for unattended work, from the program's manual.
    line: &'static str,
    /// Folders of its own state, below HOME; and what it writes in those that also hold settings.
    folders: &'static [(&'static str, Kept)],
    /// As [`Runner::variables`].
    variables: &'static [&'static str],
    /// The variable that keeps it from reading files of the repository on its own; `None`: nothing does.
    alone: Option<(&'static str, &'static str)>,
}

/// The part of a program's folder that it writes.
enum Kept {
    All,
    /// These names; the second list holds name patterns of what it recreates, which are hidden.
    Only(&'static [&'static str], &'static [&'static str]),
}

const PRESETS: [Preset; 4] = [
    // Never asks; its sandbox confines edits and commands to the worktree.
    Preset {
        name: "codex",
        line: "codex exec --skip-git-repo-check --sandbox workspace-write --model {model} -",
        folders: &[(
            ".codex",
            Kept::Only(
                &["sessions", "log", "auth.json", "history.jsonl"],
                &[
                    "*.sqlite*",
                    "installation_id",
                    ".tmp",
                    "tmp",
                    "shell_snapshots",
                    "thread-writer-locks",
                ],
            ),
        )],
        variables: &["CODEX_*", "OPENAI_*"],
        alone: None,
    },
    // Reads the prompt from standard input; never asks, and has no sandbox of its own.
    Preset {
        name: "gemini",
        line: "gemini --skip-trust --approval-mode yolo --model {model}",
        folders: &[(
            ".gemini",
            Kept::Only(
                &["tmp", "history", "oauth_creds.json", "google_accounts.json"],
                &["projects.json*"],
            ),
        )],
        variables: &["GEMINI_*", "GOOGLE_*"],
        alone: None,
    },
    Preset {
        name: "aider",
        line: "aider --yes-always --no-check-update --no-show-release-notes --no-pretty --model {model} --message-file {prompt_file}",
        folders: &[(".aider", Kept::All)],
        variables: &[
            "AIDER_*",
            "ANTHROPIC_*",
            "DEEPSEEK_*",
            "GEMINI_*",
            "OLLAMA_*",
            "OPENAI_*",
            "OPENROUTER_*",
        ],
        alone: None,
    },
    // Approves everything that its own configuration does not deny.
    Preset {
        name: "opencode",
        line: "opencode run --auto --model {model}",
        folders: &[
            (".config/opencode", Kept::Only(&[], &[])),
            (
                ".local/share/opencode",
                Kept::Only(&["storage", "log", "snapshot", "auth.json"], &["*.db*"]),
            ),
            (".local/state/opencode", Kept::All),
            (".cache/opencode", Kept::Only(&[], &[])),
        ],
        variables: &[
            "OPENCODE_*",
            "ANTHROPIC_*",
            "DEEPSEEK_*",
            "GEMINI_*",
            "OLLAMA_*",
            "OPENAI_*",
            "OPENROUTER_*",
        ],
        alone: Some(("OPENCODE_DISABLE_PROJECT_CONFIG", "true")),
    },
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
        }
    }

    /// Returns the names of the presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|preset| preset.name)
    }

    /// Returns the preset `name`.
    pub fn preset(name: &str) -> Option<CommandRunner> {
        let preset = PRESETS.iter().find(|preset| preset.name == name)?;
        Some(CommandRunner::new(preset.name, preset.line.split(' ')))
    }

    /// Finds the preset by the program, since a user's own command line may run one of them too.
    fn known(&self) -> Option<&'static Preset> {
        let program = self
            .argv
            .first()
            .and_then(|program| program.rsplit('/').next());
        PRESETS.iter().find(|preset| program == Some(preset.name))
    }

    fn alone(&self) -> Option<(&'static str, &'static str)> {
        self.known()?.alone
    }

    fn program(&self) -> Result<&str, NotReady> {
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
        let program = self.program()?;
        let found = found(OsStr::new(program), env).ok_or_else(|| {
            NotReady::new(
                format!("`{program}` is not {}", place_of(program)),
                format!("install it, or choose another runner than `{}`", self.name),
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
                Kept::All => state.folders.push(folder),
                Kept::Only(names, passing) => {
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

    fn is_led_by_repository(&self) -> bool {
        self.obeys_repository || self.alone().is_none()
    }

    fn spec(&self, job: &Job) -> Result<Spec, NotReady> {
        let mut spec = job.spec(self.program()?);
        spec.args = self.args(job).into_iter().map(Into::into).collect();
        let alone = self.alone().filter(|_| !self.obeys_repository);
        spec.env
            .extend(alone.map(|(name, value)| (name.into(), value.into())));
        let reads_file = self.argv.iter().any(|arg| arg.contains("{prompt_file}"));
        spec.input = (!reads_file).then(|| job.prompt.clone().into_bytes());
        Ok(spec)
    }

    fn start(&self, job: &Job) -> Result<Session, NotReady> {
        Ok(plain::start(self.spec(job)?, job)?)
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
