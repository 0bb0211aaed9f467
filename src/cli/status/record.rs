//! What `tavern-status` prints as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::board::activity::Activity;
use crate::board::lease::{Freshness, Lease};
use crate::board::steps::Steps;
use crate::board::task::{Mode, OnFailure, Status, Task, TaskId, Timestamp};
use crate::cli::need::Need;
use crate::cli::strayed::Strayed;
use crate::run::notices::ChannelState;
use crate::run::record::Metadata;
use crate::run::watcher::Watcher;
use crate::store::{AgentFile, Quota};

/// What is printed as one line of JSON.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Record<'a> {
    Queue {
        queue: &'a str,
        items: BTreeMap<&'static str, usize>,
        quarantined: usize,
        /// Pending items that no agent can take as config.yaml is.
        unfit: usize,
        archived: usize,
    },
    Item {
        queue: &'a str,
        line: usize,
        task: Option<&'a TaskId>,
        status: Status,
        priority: u8,
        title: &'a str,
        /// When it is to be done.
        #[serde(skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
        quarantined: bool,
        /// Since when it has the status, as far as it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// An agent may take it now.
        ready: bool,
        /// The role whose agents take it before all others.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_for: Option<&'a str>,
        /// What it waits for: others' work, a time, a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        waits_for: Option<&'a str>,
        /// What it would need here and now, and is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        not_ready: Option<&'a str>,
        /// What its holder does with it, or will.
        mode: Mode,
        /// How far its steps are.
        #[serde(skip_serializing_if = "Option::is_none")]
        steps: Option<Steps>,
    },
    /// One item that waits for a person.
    Need {
        queue: String,
        line: usize,
        task: Option<TaskId>,
        #[serde(flatten)]
        need: Need,
    },
    Agent {
        #[serde(flatten)]
        agent: &'a AgentFile,
        heartbeat_at: Timestamp,
        freshness: Freshness,
        alive: bool,
        /// When its program has said something last.
        last_output: Option<Timestamp>,
        /// What it does with its item.
        mode: Option<Mode>,
    },
    /// How the program that watches them gets on.
    Watcher(&'a Watcher),
    /// A way in which people are told, and what it has told.
    Channel {
        channel: &'a str,
        #[serde(flatten)]
        state: &'a ChannelState,
    },
    /// How a run goes, as its supervisor sees it.
    Health {
        task: &'a TaskId,
        agent: &'a str,
        run: String,
        /// Since it last got on.
        nudges: u32,
        #[serde(flatten)]
        activity: &'a Activity,
    },
    /// A run whose supervisor died: nobody sees how it goes.
    Orphan {
        task: &'a TaskId,
        agent: &'a str,
        run: String,
    },
    Strayed(&'a Strayed),
    Quota {
        runner: &'a str,
        #[serde(flatten)]
        quota: &'a Quota,
    },
    Switch {
        state: &'static str,
        reason: &'a str,
    },
    Then {
        at: Timestamp,
        /// Where it does not reach back so far.
        log_begins: Option<Timestamp>,
    },
    /// One item in full.
    #[serde(rename = "task")]
    Full {
        #[serde(flatten)]
        task: &'a Task,
        queue: &'a str,
        line: usize,
        lease: Option<&'a Lease>,
        expires_at: Option<Timestamp>,
        freshness: Option<Freshness>,
        /// When its holder's program has said something last.
        last_output: Option<Timestamp>,
        runs: &'a [Metadata],
        /// What a person can do for it, with what to type.
        #[serde(skip_serializing_if = "Option::is_none")]
        to_do: Option<String>,
        /// Where its work is that is not merged, as git takes it.
        kept: &'a [String],
        children: &'a [Child],
        /// How far its steps are.
        #[serde(skip_serializing_if = "Option::is_none")]
        steps: Option<&'a Steps>,
    },
}

/// A child of an item.
#[derive(Serialize)]
pub(super) struct Child {
    pub task: TaskId,
    pub title: String,
    pub status: Status,
    pub on_failure: OnFailure,
}
