//! Roles: who takes work, with which program, under which limits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tavern_core::status::words;
use tavern_core::task::{Budget, Expected};
use tavern_core::watch_rules::WatchSetting;

use tavern_core::period::Period;

/// What agents of a role do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// They work on pending items.
    #[default]
    Work,
    /// They look at others' work before it is merged, and change nothing.
    Review,
    /// They turn a request into items, and change nothing.
    Plan,
    /// They answer a question, and change nothing.
    Answer,
}

/// Who reaches the network from a sandbox. Nothing but what it has itself started listens for who does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// The agent program, and commands.
    #[default]
    All,
    /// The agent program alone.
    Agent,
    None,
}

words! {
    /// How hard Claude thinks.
    Effort {
        Low "low",
        Medium "medium",
        High "high",
        Xhigh "xhigh",
        Max "max",
    }
}

/// What an agent of this role is and may do. An item or a queue may override runner, model and budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Role {
    pub does: Does,
    /// Name of an entry of `runners`; of a role that names none, that of `coder`.
    pub runner: String,
    /// IDs of the queues it takes from: the first that has work for it. Empty: all of the board's, by their `priority`.
    pub queues: Vec<String>,
    /// File name of the prompt's template, in `.tavern/templates/` or built in.
    pub template: String,
    /// Passed on to the runner; `None`: the runner's own choice.
    pub model: Option<String>,
    /// How hard Claude thinks; `None`: its own choice.
    pub effort: Option<Effort>,
    /// What Claude takes where its model is overloaded, if only for a moment; `None`: the run waits, or ends.
    pub fallback_model: Option<String>,
    /// Limits of one run; what is unset is unlimited.
    pub budget: Budget,
    /// A run that gives no sign of life for this long is prodded, then ended; zero: never.
    pub idle: Period,
    /// How often an agent is prodded on that is silent or undecided, or not done.
    pub prods: u32,
    /// How its runs are watched; `None`: as the board says.
    pub watch: Option<WatchSetting>,
    /// Attempts of an item of this role; `None`: as the item, its queue or the board says.
    pub max_attempts: Option<u32>,
    /// The result that its items are to have; `None`: as the item or its queue says.
    pub result: Option<Expected>,
    /// Its agents end after one item.
    pub once: bool,
    /// Claude's mode of asking, which must be one that answers by itself.
    pub permission_mode: String,
    /// Claude's tools that need no permission.
    pub allowed_tools: Vec<String>,
    /// Claude's tools that nobody unattended may use, whatever else is allowed.
    pub denied_tools: Vec<String>,
    /// Whether its agent programs may write only where their work is.
    pub sandbox: bool,
    /// Where they may write besides, in a sandbox; `~` is the user's home.
    pub writable: Vec<String>,
    /// Who reaches the network, in a sandbox.
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
    /// The roles that every board has.
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
