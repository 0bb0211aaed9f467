//! Agent files `agents/<name>.yaml`: the activity of each live agent, for `tavern-status`.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::atomic_write::Staged;
use super::board::Board;
use super::error::Error;
use tavern_core::lease::Holder;
use tavern_core::task::{TaskId, Timestamp};
use tavern_core::yaml;
use tavern_sys::files;

/// The state of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    Working,
    /// Has nothing to do, or a limit holds it; it wakes up by itself.
    Waiting,
}

/// The content of an agent file, written by the agent itself.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct AgentFile {
    pub name: String,
    pub role: String,
    pub state: AgentState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The current activity or the reason for waiting, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    pub since: Timestamp,
    #[serde(flatten)]
    pub holder: Holder,
    /// The file's modification time, as with leases.
    #[serde(skip)]
    pub heartbeat_at: Timestamp,
}

impl Board {
    pub fn write_agent(&self, agent: &AgentFile, now: Timestamp) -> Result<(), Error> {
        if self.is_dry() {
            return Ok(());
        }
        let path = self.path(&format!("agents/{}.yaml", agent.name));
        let text = serde_yaml::to_string(agent).expect("an agent file is plain data");
        Staged::volatile(&path, &[text.as_bytes()], Some(now.into()))?.put()
    }

    pub fn remove_agent(&self, name: &str) {
        if self.is_dry() {
            return;
        }
        // The file is only a display; `tavern-reap` removes one that stays behind.
        drop(fs::remove_file(self.path(&format!("agents/{name}.yaml"))));
    }

    /// Returns the agents that have a file, sorted by name, whether they still run or not.
    pub fn agents(&self) -> Vec<AgentFile> {
        let Ok(entries) = fs::read_dir(self.path("agents")) else {
            return Vec::new();
        };
        let mut agents: Vec<AgentFile> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                // The file name counts: a different name in the text would point at another agent's file.
                let name = path.file_stem()?.to_str()?.to_owned();
                let text = files::read_text(&path).ok()?;
                let modified = fs::metadata(&path)
                    .and_then(|meta| meta.modified())
                    .unwrap_or(SystemTime::UNIX_EPOCH);
                let agent: AgentFile = yaml::read(&text).ok()?;
                Some(AgentFile {
                    name,
                    heartbeat_at: modified.into(),
                    ..agent
                })
            })
            .collect();
        agents.sort_by(|a, b| a.name.cmp(&b.name));
        agents
    }
}
