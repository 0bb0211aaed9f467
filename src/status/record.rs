//! The JSON output of `tavern-status`.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

use crate::outside_changes::OutsideReport;
use crate::overview::listing::{ItemLine, NeedLine, QueueLine};
use crate::overview::run_line::RunLine;
use crate::overview::spending::SpendingLine;
use crate::overview::{AgentLine, QuotaLine, Switched};
use tavern_core::activity::Activity;
use tavern_core::lease::{Freshness, Lease};
use tavern_core::steps::Steps;
use tavern_core::task::{OnFailure, Status, Task, TaskId, Timestamp};
use tavern_run::notices::ChannelState;
use tavern_run::record::Metadata;
use tavern_run::watcher_state::Watcher;

/// A line of `tavern status --format json`, by its `kind`. More keys and kinds may come within a version.
#[derive(JsonSchema, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(title = "tavern status --format json, version 1")]
pub(super) enum Record<'a> {
    /// The first line of each look at the board.
    Board {
        /// Version of the output. It grows with incompatible changes only, not with additions.
        version: u32,
        /// The folder that the board is in.
        board: &'a Path,
        /// The last event of the log by then: `tavern log --follow --after SEQ` continues from it.
        seq: u64,
        time: Timestamp,
    },
    /// A problem of a queue, or a loss from it.
    Problem {
        problem: &'a str,
    },
    Queue(&'a QueueLine),
    Item(&'a ItemLine),
    Need(&'a NeedLine),
    Agent(&'a AgentLine),
    /// The state of `tavern watch`.
    Watcher(&'a Watcher),
    /// A channel for notifications, and its state.
    Channel {
        channel: &'a str,
        #[serde(flatten)]
        state: &'a ChannelState,
    },
    /// The state of a run, as its supervisor sees it.
    Health {
        task: &'a TaskId,
        agent: &'a str,
        run: String,
        /// Nudges since its last progress.
        nudges: u32,
        #[serde(flatten)]
        activity: &'a Activity,
    },
    /// A run with a dead supervisor, so that its state is unknown.
    Orphan {
        task: &'a TaskId,
        agent: &'a str,
        run: String,
    },
    /// Usage of runs, and their caps.
    Spending(&'a SpendingLine),
    /// One of the newest runs.
    Run(&'a RunLine<'a>),
    Stats(&'a Stats),
    Digest(&'a DigestSums),
    Ended(&'a ItemEnd),
    Strayed(&'a OutsideReport),
    Quota(&'a QuotaLine),
    Switch(&'a Switched),
    Then {
        at: Timestamp,
        /// The beginning of the log, if it does not reach back so far.
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
        /// Time of the last output of its holder's program.
        last_output: Option<Timestamp>,
        runs: &'a [Metadata],
        /// Action that a person can take, with the command to type.
        #[serde(skip_serializing_if = "Option::is_none")]
        to_do: Option<String>,
        /// Places of its unmerged work, in a form that git accepts.
        kept: &'a [String],
        children: &'a [Child],
        /// Progress of its steps.
        #[serde(skip_serializing_if = "Option::is_none")]
        steps: Option<&'a Steps>,
    },
}

/// Returns the JSON schema of the output, described by the types' own comments.
pub(super) fn schema() -> Schema {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .transforms
        .push(Box::new(RecursiveTransform(|schema: &mut Schema| {
            if let Some(Value::String(text)) = schema.get_mut("description") {
                *text = text
                    .replace("[`", "`")
                    .replace("`]", "`")
                    .replace("`None`", "`null`");
            }
        })));
    settings
        .into_generator()
        .into_root_schema_for::<Record<'_>>()
}

/// A child of an item.
#[derive(JsonSchema, Serialize)]
pub(super) struct Child {
    pub task: TaskId,
    pub title: String,
    pub status: Status,
    pub on_failure: OnFailure,
}

/// Statistics of a board.
#[derive(Default, JsonSchema, Serialize)]
pub(super) struct Stats {
    /// Items by status.
    pub depth: BTreeMap<&'static str, usize>,
    /// Seconds since the oldest pending item was added or came back.
    pub oldest_pending_seconds: Option<i64>,
    /// Median seconds from pending to claimed, and from claimed to integrated.
    pub median_wait_seconds: Option<i64>,
    pub median_work_seconds: Option<i64>,
    pub completed: usize,
    pub completed_last_hour: usize,
    pub claims: usize,
    pub retries: usize,
    pub dead_letters: usize,
    /// Findings on runs, by symptom. The next keys count the reactions.
    pub diagnoses: BTreeMap<&'static str, usize>,
    pub nudges: usize,
    pub pauses: usize,
    pub restarts: usize,
    pub ends: usize,
    /// Learnings that agents received.
    pub learnings_told: usize,
    /// The state of `tavern watch`.
    pub watcher: Option<Watcher>,
    pub runs: usize,
    pub usd: f64,
    pub tokens: u64,
    pub usd_by_model: BTreeMap<String, f64>,
    pub usd_by_agent: BTreeMap<String, f64>,
    pub spent_by: SpentBy,
}

/// The same money and tokens in several ways, each complete.
#[derive(Default, JsonSchema, Serialize)]
pub(super) struct SpentBy {
    pub task: BTreeMap<String, Share>,
    pub role: BTreeMap<String, Share>,
    pub model: BTreeMap<String, Share>,
    /// The local day on which a run began.
    pub day: BTreeMap<String, Share>,
}

#[derive(Clone, Copy, Default, JsonSchema, Serialize)]
pub(super) struct Share {
    pub usd: f64,
    pub tokens: u64,
}

/// The sums of a digest.
#[derive(JsonSchema, Serialize)]
pub(super) struct DigestSums {
    pub since: Timestamp,
    pub needs: usize,
    pub ended: BTreeMap<&'static str, usize>,
    /// The runs that have ended since, and their usage.
    pub runs: usize,
    pub usd: f64,
    pub tokens: u64,
}

/// An item that has ended since, and is still ended.
#[derive(JsonSchema, Serialize)]
pub(super) struct ItemEnd {
    pub queue: Option<String>,
    pub task: Option<TaskId>,
    pub title: String,
    pub status: Status,
    pub at: Timestamp,
    /// The agent that worked on it last, else the one that ended it.
    pub agent: Option<String>,
    pub why: Option<String>,
}
