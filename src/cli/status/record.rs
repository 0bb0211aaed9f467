//! What `tavern-status` prints as JSON.

use serde::Serialize;

use crate::board::activity::Activity;
use crate::board::lease::{Freshness, Lease};
use crate::board::steps::Steps;
use crate::board::task::{OnFailure, Status, Task, TaskId, Timestamp};
use crate::cli::overview::listing::{ItemLine, NeedLine, QueueLine};
use crate::cli::overview::{AgentLine, QuotaLine, Switched};
use crate::cli::strayed::Strayed;
use crate::run::notices::ChannelState;
use crate::run::record::Metadata;
use crate::run::watcher::Watcher;

/// What is printed as one line of JSON.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Record<'a> {
    Queue(&'a QueueLine),
    Item(&'a ItemLine),
    Need(&'a NeedLine),
    Agent(&'a AgentLine),
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
    Quota(&'a QuotaLine),
    Switch(&'a Switched),
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
