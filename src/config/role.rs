//! Roles: who takes work, with which program, under which limits.

use serde::{Deserialize, Serialize};

use crate::board::task::Budget;

use super::period::Period;

/// What an agent of this role is and may do. An item or a queue may override runner, model and budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Role {
    /// Name of an entry of `runners`.
    pub runner: String,
    /// IDs of the queues it takes from: the first that has work for it.
    pub queues: Vec<String>,
    /// File name of the prompt's template, in `.tavern/templates/` or built in.
    pub template: String,
    /// Passed on to the runner; `None`: the runner's own choice.
    pub model: Option<String>,
    /// Limits of one run; what is unset is unlimited.
    pub budget: Budget,
    /// A run that gives no sign of life for this long is prodded, then ended; zero: never.
    pub idle: Period,
    /// How often a silent or undecided agent is prodded on.
    pub prods: u32,
    /// Claude's mode of asking, which must be one that answers by itself.
    pub permission_mode: String,
    /// Claude's tools that need no permission.
    pub allowed_tools: Vec<String>,
}

impl Default for Role {
    fn default() -> Role {
        Role {
            runner: "shell".to_owned(),
            queues: vec!["main".to_owned()],
            template: "coder.md".to_owned(),
            model: None,
            budget: Budget::default(),
            idle: Period::minutes(10),
            prods: 3,
            permission_mode: "acceptEdits".to_owned(),
            allowed_tools: ["Bash", "Read", "Edit", "Write", "Glob", "Grep"].map(str::to_owned).to_vec(),
        }
    }
}
