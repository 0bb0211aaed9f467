//! Leases: the holder of a task, its expiry and its fencing token.
//!
//! A lease is the volatile truth beside the queue document's durable one. Knows nothing of files; the caller
//! tells whether a process is alive.

use std::path::PathBuf;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::task::{Status, Task, TaskId, Timestamp};

/// A fencing token. It grows with every claim on a board, so the newer of two holders of a task has the
/// larger token. It is the sequence number of the claim in the event log.
pub type Token = u64;

/// The process that keeps a lease alive, and its host.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    /// `None`: no process keeps the lease (claimed from a shell), so only its expiry ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
}

/// A process of one host, with a unique name, as pids are reused.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Ticks from boot to its start (proc_pid_stat(5), field 22).
    pub start_time: u64,
    /// `/proc/sys/kernel/random/boot_id`: new at each boot.
    pub boot_id: String,
    /// Inode of its pid namespace: in another container the same pid is another process.
    pub pid_namespace: u64,
}

/// A claim of one task by one agent; a file `leases/<task>.yaml`.
///
/// The heartbeat is the file's modification time, not part of its text. So a renewal changes no byte and
/// can't tear, and a late holder that renews touches its own, already replaced file, not its successor's.
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
    /// Seconds from a heartbeat to the expiry.
    pub seconds: u32,
    #[serde(flatten)]
    pub holder: Holder,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The status to restore at the release, if not the usual one: a person only chats with the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<Status>,
    /// `None`: its item required nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
}

/// Requirements of an item when it was claimed. Its holder may have changed the queue since.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Terms {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done_when: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
}

impl Terms {
    /// Returns the requirements of `task`; `general` are the default reviewers.
    pub fn of(task: &Task, general: &[String]) -> Terms {
        Terms {
            done_when: task.done_when.clone(),
            reviewers: task.reviewers(general),
        }
    }

    /// Returns, in words, a requirement that is missing from `now`.
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

/// The holder's worktree, branch and session, known as soon as the worktree exists.
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
    /// The process that follows the agent program, and adopts its orphans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<Process>,
}

impl Lease {
    pub fn expires_at(&self) -> Timestamp {
        self.heartbeat_at + TimeDelta::seconds(i64::from(self.seconds))
    }

    /// Returns true if the lease has not expired at `now`. A dead holder on this host ends it earlier: see [`Life`].
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at()
    }
}

/// Whether a lease's holder is alive, as seen from this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The process runs on this host.
    Alive,
    /// The process ran on this host and is gone: the lease ends at once.
    Gone,
    /// The process is on another host or in another container, or there is none: the expiry decides.
    Unknown,
}

/// Time since the last sign of an agent: of its program, or of its supervisor before the program's first output.
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
