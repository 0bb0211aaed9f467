//! A run in a line, as a plain value.

use schemars::JsonSchema;
use serde::Serialize;

use tavern_core::task::Timestamp;
use tavern_run::Metadata;
use tavern_run::runner::Outcome;

/// Number of newest runs shown by default.
pub const NEWEST_RUNS: usize = 60;

/// A run in a line.
#[derive(Debug, JsonSchema, Serialize)]
pub struct RunLine<'a> {
    run: &'a str,
    task: &'a str,
    title: &'a str,
    agent: &'a str,
    role: &'a str,
    model: Option<&'a str>,
    attempt: u32,
    started: Timestamp,
    ended: Option<Timestamp>,
    outcome: Option<Outcome>,
    /// The reason for its outcome, else a summary of its work.
    why: &'a str,
    usd: f64,
    /// Whether its `metadata.json` was torn or missing, so that its result is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    damaged: bool,
}

impl RunLine<'_> {
    pub fn of(run: &Metadata) -> RunLine<'_> {
        RunLine {
            run: &run.run,
            task: run.task.as_str(),
            title: &run.title,
            agent: &run.agent,
            role: &run.role,
            model: run.model.as_deref(),
            attempt: run.attempt,
            started: run.started,
            ended: run.ended,
            outcome: run.outcome,
            why: run.reason.as_deref().unwrap_or(&run.summary),
            usd: run.usage.usd,
            damaged: run.damaged,
        }
    }
}
