//! Runners: how an agent program is started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tavern_core::task::Budget;

use super::outcome::OutcomePolicy;
use super::pass::Pass;
use tavern_core::period::Period;

/// Which of the implementations runs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    /// The Claude CLI, spoken to live.
    Claude,
    /// The item's own `sh` fence: no model, no key, no network.
    Shell,
    /// Any command line.
    #[default]
    Command,
}

impl RunnerKind {
    /// The limits of `budget` that a run of this kind does not keep: only the Claude CLI says what it uses.
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

/// One agent program.
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
    /// The command line of a `command` runner; `{prompt_file}`, `{worktree}`, `{task}` are filled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// How long an item waits for its second try after a failure of this program's, in the place of the outcome's back-off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Period>,
    /// Set for the agent, beside what Tavern sets.
    pub env: BTreeMap<String, String>,
    /// Variables of Tavern's own environment that it gets, beside those of the board and those that it is known to need.
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

    /// The wait for a second try after a failure of its own, where `outcome` names none: a script is tried again at once.
    pub fn backoff(&self, outcome: &OutcomePolicy) -> Option<Period> {
        let of_script = (self.kind == RunnerKind::Shell).then(|| Period::seconds(0));
        self.backoff.or(outcome.backoff).or(of_script)
    }

    /// What contradicts itself in it, and what to write instead.
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
