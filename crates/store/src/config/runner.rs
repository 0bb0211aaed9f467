//! Runners: how agent programs are started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::outcome::OutcomePolicy;
use super::pass::Pass;
use tavern_core::period::Period;

/// The implementation of a runner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    /// The Claude CLI, in a live conversation.
    Claude,
    /// The item's own `sh` fence: no model, no key, no network.
    Shell,
    /// Any command line.
    #[default]
    Command,
    /// Any program that speaks the Agent Client Protocol.
    Acp,
}

/// Known programs, each with its command line for unattended work, from its manual.
const PRESETS: [(&str, RunnerKind, &str); 7] = [
    (
        "aider",
        RunnerKind::Command,
        "aider --yes-always --no-gitignore --no-check-update --no-show-release-notes --no-pretty --model {model} --message-file {prompt_file}",
    ),
    // Set later, it would be written to its settings, which a sandbox keeps as they are.
    (
        "codex",
        RunnerKind::Acp,
        "codex-acp -c sandbox_mode=danger-full-access -c approval_policy=never",
    ),
    ("copilot", RunnerKind::Acp, "copilot --model {model} --acp"),
    (
        "gemini",
        RunnerKind::Acp,
        "gemini --skip-trust --model {model} --acp",
    ),
    ("goose", RunnerKind::Acp, "goose acp"),
    ("opencode", RunnerKind::Acp, "opencode acp"),
    ("qwen", RunnerKind::Acp, "qwen --model {model} --acp"),
];

/// The settings of one agent program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerConfig {
    pub kind: RunnerKind,
    /// The Claude CLI: its name on the PATH, or its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Further arguments of the Claude CLI.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The command line of a `command` or `acp` runner, with `{prompt_file}`, `{worktree}` and `{task}` filled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The mode in which an `acp` runner works, as its program calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Wait before the first retry after a failure of this program, overriding the outcome's back-off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Period>,
    /// Variables set for the agent, besides Tavern's own.
    pub env: BTreeMap<String, String>,
    /// Variables of Tavern's own environment that are passed on, besides the board's and those the program is known to
    /// need.
    pub pass: Pass,
}

impl RunnerConfig {
    pub(super) fn built_in() -> BTreeMap<String, RunnerConfig> {
        let claude = RunnerConfig {
            kind: RunnerKind::Claude,
            program: Some("claude".to_owned()),
            ..RunnerConfig::default()
        };
        let shell = RunnerConfig {
            kind: RunnerKind::Shell,
            ..RunnerConfig::default()
        };
        let presets = PRESETS.map(|(name, kind, line)| {
            let entry = RunnerConfig {
                kind,
                command: line.split(' ').map(str::to_owned).collect(),
                ..RunnerConfig::default()
            };
            (name.to_owned(), entry)
        });
        let own = [("claude".to_owned(), claude), ("shell".to_owned(), shell)];
        own.into_iter().chain(presets).collect()
    }

    /// Returns the wait before the first retry after its own failure. If `outcome` names none, a script is retried at
    /// once.
    pub fn backoff(&self, outcome: &OutcomePolicy) -> Option<Period> {
        let of_script = (self.kind == RunnerKind::Shell).then(|| Period::seconds(0));
        self.backoff.or(outcome.backoff).or(of_script)
    }

    /// Returns a contradiction in the settings, if any, with a hint.
    pub(super) fn fault(&self) -> Option<(&'static str, &'static str)> {
        match self.kind {
            RunnerKind::Command | RunnerKind::Acp if self.command.is_empty() => Some((
                "has no `command`",
                "add one, such as `command: [codex, exec, -]`",
            )),
            RunnerKind::Claude | RunnerKind::Shell if !self.command.is_empty() => Some((
                "has a `command`, which only the kinds command and acp run",
                "write `kind: command` or `kind: acp`, or remove `command`",
            )),
            RunnerKind::Command | RunnerKind::Shell | RunnerKind::Claude if self.mode.is_some() => {
                Some((
                    "has a `mode`, which only `kind: acp` uses",
                    "write `kind: acp`, or remove `mode`",
                ))
            }
            RunnerKind::Command | RunnerKind::Acp | RunnerKind::Shell
                if self.program.is_some() || !self.args.is_empty() =>
            {
                Some((
                    "has `program` or `args`, which only `kind: claude` uses",
                    "write `kind: claude`, or remove them",
                ))
            }
            _ => None,
        }
    }
}
