//! Leases: who holds a task, until when, and with which fencing token.
//!
//! A lease is the volatile truth beside the queue document's durable one. Knows nothing of files; whether a process
//! still lives is told to it.

use std::path::PathBuf;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::task::{Status, Task, TaskId, Timestamp};

/// A fencing token: it grows at every claim on a board, for ever, so that of two holders of a task the newer one has
/// the larger token. It is the sequence number of the claim in the event log.
pub type Token = u64;

/// Who keeps a lease alive, and where.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    /// `None`: no process stands for the lease (claimed from a shell), so only its expiry ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
}

/// A process of one host, named so that no other ever has the same name: pids are used again.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Ticks since boot at which it started (proc_pid_stat(5), field 22).
    pub start_time: u64,
    /// `/proc/sys/kernel/random/boot_id`: new at each boot.
    pub boot_id: String,
    /// Inode of its pid namespace: in another container the same pid is another process.
    pub pid_namespace: u64,
}

/// One task in one agent's hands; a file `leases/<task>.yaml`.
///
/// The heartbeat is not written in the file: it is the file's modification time. So a renewal changes no byte, can't
/// tear, and a late holder that renews touches its own, already replaced file and not its successor's.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Lease {
    pub task: TaskId,
    pub queue: String,
    pub agent: String,
    pub role: String,
    pub token: Token,
    pub attempt: u32,
    pub claimed_at: Timestamp,
    #[serde(skip)]
    pub heartbeat_at: Timestamp,
    /// How long the lease lasts after a heartbeat, in seconds.
    pub seconds: u32,
    #[serde(flatten)]
    pub holder: Holder,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The status that the task has again when it is given back, if not the usual one: a person only talks with the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<Status>,
    /// `None`: its item asked for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
}

/// What an item asked of its work when it was claimed. Whoever holds it may have written something else into its queue since.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Terms {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done_when: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
}

impl Terms {
    /// `general` are the reviewers of items that name none.
    pub fn of(task: &Task, general: &[String]) -> Terms {
        Terms {
            done_when: task.done_when.clone(),
            reviewers: task.reviewers(general),
        }
    }

    /// In words, what of this is asked for no more by `now`.
    pub fn missing_from(&self, now: &Terms) -> Option<String> {
        let missing = |then: &[String], now: &[String]| {
            let mut left = now.to_vec();
            let gone = then
                .iter()
                .find(|one| match left.iter().position(|other| other == *one) {
                    Some(at) => {
                        left.swap_remove(at);
                        false
                    }
                    None => true,
                });
            gone.cloned()
        };
        let command = missing(&self.done_when, &now.done_when).map(|command| {
            format!(
                "`{}` in `done_when`",
                command.lines().next().unwrap_or_default()
            )
        });
        command.or_else(|| {
            Some(format!(
                "`{}` in `review`",
                missing(&self.reviewers, &now.reviewers)?
            ))
        })
    }
}

/// What the holder works with, known from the moment the worktree stands.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Work {
    pub run: String,
    pub worktree: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that the branch started from, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The process that follows the agent program, and adopts what that leaves behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<Process>,
}

impl Lease {
    pub fn expires_at(&self) -> Timestamp {
        self.heartbeat_at + TimeDelta::seconds(i64::from(self.seconds))
    }

    /// The lease has not run out at `now`. A holder on this host that died ends it earlier: see [`Life`].
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at()
    }
}

/// What is known of a lease's holder from where one stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The process runs on this host.
    Alive,
    /// The process ran on this host and is gone: the lease is over at once.
    Gone,
    /// On another host or in another container, or no process stands for it: the expiry decides.
    Unknown,
}

/// How long ago something was last seen of an agent: of its program, or of its supervisor where that has said nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// Under two minutes.
    Fresh,
    /// Two to five minutes.
    Stale,
    /// Beyond five minutes.
    VeryStale,
}

impl Freshness {
    pub fn of(seen: Timestamp, now: Timestamp) -> Freshness {
        match (now - seen).num_seconds() {
            ..120 => Freshness::Fresh,
            120..300 => Freshness::Stale,
            _ => Freshness::VeryStale,
        }
    }
}
