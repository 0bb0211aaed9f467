//! Runners: how agent programs are started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tavern_core::task::Budget;

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
}

impl RunnerKind {
    /// Returns the limits of `budget` that this kind can't enforce: only the Claude CLI reports its usage.
    pub fn unkept(self, budget: &Budget) -> Vec<&'static str> {
        let asked = [
            ("usd", budget.usd.is_some()),
            ("tokens", budget.tokens.is_some()),
            ("turns", budget.turns.is_some()),
        ];
        let is_kept = self == RunnerKind::Claude;
        asked
            .into_iter()
            .filter(|(_, is_set)| *is_set && !is_kept)
            .map(|(name, _)| name)
            .collect()
    }
}

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
    /// The command line of a `command` runner, with `{prompt_file}`, `{worktree}` and `{task}` filled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
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
        BTreeMap::from([("claude".to_owned(), claude), ("shell".to_owned(), shell)])
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
            RunnerKind::Command if self.command.is_empty() => Some((
                "has no `command`",
                "add one, such as `command: [codex, exec, -]`",
            )),
            RunnerKind::Claude | RunnerKind::Shell if !self.command.is_empty() => Some((
                "has a `command`, which only `kind: command` runs",
                "write `kind: command`, or take `command` out",
            )),
            RunnerKind::Command | RunnerKind::Shell
                if self.program.is_some() || !self.args.is_empty() =>
            {
                Some((
                    "has `program` or `args`, which only `kind: claude` uses",
                    "write `kind: claude`, or take them out",
                ))
            }
            _ => None,
        }
    }
}
