//! Roles: a kind of work with its program and limits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tavern_core::status::words;
use tavern_core::task::{Budget, Expected};
use tavern_core::watch_rules::WatchSetting;

use tavern_core::period::Period;

/// The task of a role's agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// Work on pending items.
    #[default]
    Work,
    /// Review others' work before it is merged; change nothing.
    Review,
    /// Turn a request into items; change nothing.
    Plan,
    /// Answer a question; change nothing.
    Answer,
}

/// Network access from a sandbox. Without access, only services that the sandbox started itself are reachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// The agent program and commands.
    #[default]
    All,
    /// The agent program alone.
    Agent,
    None,
}

words! {
    /// Claude's effort.
    Effort {
        Low "low",
        Medium "medium",
        High "high",
        Xhigh "xhigh",
        Max "max",
    }
}

/// Settings of a role. An item or a queue may override runner, model and budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Role {
    pub does: Does,
    /// An entry of `runners`; a role that names none uses that of `coder`.
    pub runner: String,
    /// IDs of the queues it takes from, in order. Empty: all of the board's, by their `priority`.
    pub queues: Vec<String>,
    /// File name of the prompt template, in `.tavern/templates/` or built in.
    pub template: String,
    /// Passed on to the runner; `None`: the runner's own choice.
    pub model: Option<String>,
    /// Claude's effort; `None`: its own choice.
    pub effort: Option<Effort>,
    /// Claude's fallback while its model is overloaded; `None`: the run waits, or ends.
    pub fallback_model: Option<String>,
    /// Limits of one run; unset fields are unlimited.
    pub budget: Budget,
    /// How long a run may show no activity before it is nudged, then ended; 0: forever.
    pub idle: Period,
    /// How often a silent, undecided or unfinished agent is nudged.
    pub prods: u32,
    /// The watch rules of its runs; `None`: the board's.
    pub watch: Option<WatchSetting>,
    /// Attempts of this role's items; `None`: set by the item, its queue or the board.
    pub max_attempts: Option<u32>,
    /// The result that its items should have; `None`: set by the item or its queue.
    pub result: Option<Expected>,
    /// Whether its agents end after one item.
    pub once: bool,
    /// Claude's permission mode, which must be one that decides without a person.
    pub permission_mode: String,
    /// Claude's tools that need no permission.
    pub allowed_tools: Vec<String>,
    /// Claude's tools denied to unattended agents; even if they are allowed elsewhere.
    pub denied_tools: Vec<String>,
    /// Whether its agent programs may write only in their workspace.
    pub sandbox: bool,
    /// Other paths writable in a sandbox; `~` is the user's home.
    pub writable: Vec<String>,
    /// Network access in a sandbox.
    pub network: Network,
}

impl Default for Role {
    fn default() -> Role {
        Role {
            does: Does::Work,
            runner: "shell".to_owned(),
            queues: Vec::new(),
            template: "coder.md".to_owned(),
            model: None,
            effort: None,
            fallback_model: None,
            budget: Budget::default(),
            idle: Period::minutes(10),
            prods: 3,
            watch: None,
            max_attempts: None,
            result: None,
            once: false,
            permission_mode: "acceptEdits".to_owned(),
            allowed_tools: ["Bash", "Read", "Edit", "Write", "Glob", "Grep"]
                .map(str::to_owned)
                .to_vec(),
            denied_tools: [
                "EnterWorktree",
                "ExitWorktree",
                "CronCreate",
                "Bash(git push:*)",
            ]
            .map(str::to_owned)
            .to_vec(),
            sandbox: false,
            writable: Vec::new(),
            network: Network::All,
        }
    }
}

impl Role {
    /// Returns the roles that every board has.
    pub(super) fn built_in() -> BTreeMap<String, Role> {
        let looks = ["Bash", "Read", "Glob", "Grep"].map(str::to_owned).to_vec();
        let reviewer = Role {
            does: Does::Review,
            template: "reviewer.md".to_owned(),
            allowed_tools: looks.clone(),
            ..Role::default()
        };
        let planner = Role {
            does: Does::Plan,
            template: "planner.md".to_owned(),
            allowed_tools: looks.clone(),
            ..Role::default()
        };
        let answerer = Role {
            does: Does::Answer,
            template: "answerer.md".to_owned(),
            allowed_tools: looks,
            budget: Budget {
                minutes: Some(5.0),
                ..Budget::default()
            },
            max_attempts: Some(1),
            ..Role::default()
        };
        let drone = Role {
            template: "drone.md".to_owned(),
            model: Some("haiku".to_owned()),
            budget: Budget {
                minutes: Some(5.0),
                ..Budget::default()
            },
            prods: 0,
            max_attempts: Some(1),
            once: true,
            ..Role::default()
        };
        let names = ["coder", "reviewer", "planner", "answerer", "drone"].map(str::to_owned);
        names
            .into_iter()
            .zip([Role::default(), reviewer, planner, answerer, drone])
            .collect()
    }
}
