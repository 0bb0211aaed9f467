//! `metadata.json`: what is known of a run, from its start to what it came to.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::artifacts::Artifacts;
use super::runners::{environment, runner};
use super::site::Site;
use crate::board::lease::Token;
use crate::board::task::{TaskId, Timestamp};
use crate::clock;
use crate::git::CommitId;
use crate::runner::{Outcome, Usage};
use crate::store::{Board, Error};

/// Why a run has ended whose end nobody has seen.
pub const DEAD_SUPERVISOR: &str = "its supervisor died";

/// `metadata.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// `<task>@<token>`.
    pub run: String,
    pub task: TaskId,
    pub title: String,
    pub queue: String,
    pub agent: String,
    pub role: String,
    pub attempt: u32,
    pub token: Token,
    pub runner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub worktree: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    pub started: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// What it came to; absent while it runs, and for ever if its supervisor died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The outcome in one line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The branch's tip when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether `done_when` passed at `commit`; absent if it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// What the agent asks of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// When the provider's limit ends, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    #[serde(default)]
    pub usage: Usage,
    /// Model turns, where the program counts them.
    #[serde(default)]
    pub turns: u32,
    #[serde(default)]
    pub tool_calls: u32,
    /// What the agent wanted to do and was not allowed to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<String>,
    /// At most 150 characters.
    #[serde(default)]
    pub summary: String,
}

impl Metadata {
    /// From start to end, or to `now` while it runs, in seconds.
    pub fn seconds(&self, now: Timestamp) -> i64 {
        (self.ended.unwrap_or(now) - self.started).num_seconds().max(0)
    }
}

impl Artifacts {
    pub fn write_metadata(&self, metadata: &Metadata) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(metadata).expect("metadata is plain data");
        text.push('\n');
        self.write("metadata.json", &text)
    }

    pub fn metadata(&self) -> Result<Metadata, Error> {
        let path = self.path("metadata.json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(Error::Io { action: "read", path, source }),
        };
        serde_json::from_str(&text).map_err(|error| Error::Damaged { path, why: error.to_string() })
    }
}

/// The name of the run that a claim with this token makes.
pub fn run_name(task: &TaskId, token: Token) -> String {
    format!("{task}@{token}")
}

/// The metadata of all runs, oldest first. Folders without readable metadata are passed over.
pub fn runs(board: &Board) -> Result<Vec<Metadata>, Error> {
    runs_named(board, "")
}

/// The runs of one task, oldest first.
pub fn runs_of(board: &Board, task: &TaskId) -> Result<Vec<Metadata>, Error> {
    runs_named(board, &format!("{task}@"))
}

fn runs_named(board: &Board, prefix: &str) -> Result<Vec<Metadata>, Error> {
    let folder = board.path("runs");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Io { action: "list", path: folder, source }),
    };
    let mut runs: Vec<Metadata> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .filter_map(|dir| Artifacts::at(dir).metadata().ok())
        .collect();
    runs.sort_by_key(|run| run.token);
    Ok(runs)
}

/// Writes the end that its supervisor could not write, for what it says in `why`.
pub fn close_run(site: &Site, run: &str, why: &str) -> Result<(), Error> {
    let artifacts = Artifacts::open(&site.board, run);
    let Ok(mut metadata) = artifacts.metadata() else { return Ok(()) };
    if metadata.ended.is_some() {
        return Ok(());
    }
    metadata.ended = Some(clock::now());
    metadata.outcome = Some(Outcome::Killed);
    metadata.reason = Some(why.to_owned());
    metadata.summary = summary(why);
    metadata.usage = recorded(site, &metadata);
    metadata.tool_calls =
        u32::try_from(fs::read_dir(artifacts.path("tool_calls")).into_iter().flatten().count()).unwrap_or(u32::MAX);
    artifacts.write_metadata(&metadata)
}

/// What a run has used up that nobody follows any more, as its program has recorded it.
pub fn recorded(site: &Site, run: &Metadata) -> Usage {
    let (Some(session), Ok(role)) = (&run.session, site.role(&run.role)) else { return Usage::default() };
    let Ok(program) = runner(&site.config, &run.runner, role) else { return Usage::default() };
    program.recorded(session, &environment(&site.config, &run.runner), run.started)
}

/// The first sentence or line of `text`, cut to 150 characters.
pub fn summary(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    match line.char_indices().nth(150) {
        Some(_) => line.chars().take(149).chain(['…']).collect(),
        None => line.to_owned(),
    }
}

/// Longest `diff.patch`, in bytes.
const PATCH_LIMIT: usize = 4 << 20;

/// `diff.patch`: derived from git, so a failure to write it harms nothing.
pub fn keep_patch(site: &Site, artifacts: &Artifacts, base: &CommitId, tip: &CommitId) {
    let Ok(repository) = site.repository() else { return };
    let patch = repository.diff(base, tip, PATCH_LIMIT);
    drop(patch.map(|patch| artifacts.write_derived("diff.patch", &patch.text)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_one_line_of_at_most_150_characters() {
        assert_eq!(summary("\n\n  Did it.\nMore.\n"), "Did it.");
        assert_eq!(summary(""), "");
        assert_eq!(summary(&"ä".repeat(400)).chars().count(), 150);
    }
}
