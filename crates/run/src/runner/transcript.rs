//! The Claude CLI's own record of a session, from which usage is recovered if there was no result. Read only; the CLI
//! owns the file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::job::Job;
use super::outcome::Usage;
use tavern_sys::clock;

/// The location of a session's record, and the start of this run in it.
#[derive(Debug)]
pub struct Transcript {
    /// `projects` in the CLI's configuration folder; `None` without a home.
    projects: Option<PathBuf>,
    session: String,
    /// Earlier entries belong to earlier runs.
    since: DateTime<Utc>,
}

impl Transcript {
    /// For `job`, which is about to be started.
    pub fn of(job: &Job) -> Transcript {
        Transcript::at(|name| job.variable(name), &job.session, clock::now())
    }

    /// For a run of `session` that began at `since`; `variable` returns its environment.
    pub fn at(
        variable: impl Fn(&str) -> Option<OsString>,
        session: &str,
        since: DateTime<Utc>,
    ) -> Transcript {
        let projects = config_folder(variable).map(|folder| folder.join("projects"));
        Transcript {
            projects,
            session: session.to_owned(),
            since,
        }
    }

    /// Returns true if the session was recorded, so that it can be resumed.
    pub fn is_there(&self) -> bool {
        !self.files().is_empty()
    }

    /// Returns the usage of this run, summed over the recorded replies: tokens, since the record has no money.
    pub fn usage(&self) -> Usage {
        let mut replies: BTreeMap<String, (String, Usage)> = BTreeMap::new();
        for path in self.files() {
            // An unreadable file adds nothing.
            let _ = read_replies(&path, self.since, &mut replies);
        }
        let mut all = Usage {
            is_estimate: true,
            ..Usage::default()
        };
        for (model, usage) in replies.into_values() {
            all.add(&Usage {
                models: BTreeMap::from([(model, usage.clone())]),
                ..usage
            });
        }
        all
    }

    /// Returns the session's file, and those of its sub-agents. The naming of folders for worktrees has changed between
    /// versions, so all are searched: the session's name is unique.
    fn files(&self) -> Vec<PathBuf> {
        let Some(projects) = &self.projects else {
            return Vec::new();
        };
        let mut files = Vec::new();
        for project in entries(projects) {
            let main = project.join(format!("{}.jsonl", self.session));
            if main.is_file() {
                files.push(main);
                files.extend(
                    entries(&project.join(&self.session).join("subagents")).filter(|path| {
                        path.extension()
                            .is_some_and(|extension| extension == "jsonl")
                    }),
                );
            }
        }
        files
    }
}

/// Returns the folder of the CLI's settings, account and sessions.
pub(super) fn config_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = variable("CLAUDE_CONFIG_DIR")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".claude")))
}

/// Collects `message id → (model, usage)` from the lines of `path` since `since`. A reply has several lines with the
/// same id and the same figures; the last one counts.
fn read_replies(
    path: &Path,
    since: DateTime<Utc>,
    replies: &mut BTreeMap<String, (String, Usage)>,
) -> std::io::Result<()> {
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        // The last line may be torn if the CLI was killed while writing.
        let Ok(value) = serde_json::from_slice::<Value>(&line?) else {
            continue;
        };
        let message = &value["message"];
        let (Some(id), Some(model)) = (message["id"].as_str(), message["model"].as_str()) else {
            continue;
        };
        if value["type"] != "assistant" || model == "<synthetic>" || is_earlier(&value, since) {
            continue;
        }
        let tokens = |name: &str| message["usage"][name].as_u64().unwrap_or(0);
        let usage = Usage {
            input: tokens("input_tokens"),
            output: tokens("output_tokens"),
            cache_read: tokens("cache_read_input_tokens"),
            cache_write: tokens("cache_creation_input_tokens"),
            is_estimate: true,
            ..Usage::default()
        };
        replies.insert(id.to_owned(), (model.to_owned(), usage));
    }
    Ok(())
}

/// Returns true if the line is from before `since`. A line without a time is not.
fn is_earlier(line: &Value, since: DateTime<Utc>) -> bool {
    let time = line["timestamp"]
        .as_str()
        .and_then(|time| DateTime::parse_from_rfc3339(time).ok());
    time.is_some_and(|time| time < since)
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;

    #[test]
    fn replies_are_counted_once_and_only_those_of_this_run() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut job = Job::in_folder(folder.path());
        job.session = "11111111-2222-4333-8444-555555555555".to_owned();
        let home = folder.path().display().to_string();
        job.env = vec![
            ("HOME".to_owned(), home),
            ("CLAUDE_CONFIG_DIR".to_owned(), String::new()),
        ];
        assert!(!Transcript::of(&job).is_there());
        let project = folder.path().join(".claude/projects/-repo");
        fs::create_dir_all(&project).expect("writable");
        let recording = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/fixtures/claude/transcript-success.jsonl");
        let path = project.join(format!("{}.jsonl", job.session));
        fs::copy(recording, &path).expect("the recording is in the repository");
        let since = |time: &str| {
            let since = DateTime::parse_from_rfc3339(time)
                .expect("it is a time")
                .to_utc();
            Transcript::at(|name| job.variable(name), &job.session, since)
        };

        // The same tokens as the result of that recording.
        let first = since("2026-11-22T00:00:00Z");
        assert!(first.is_there());
        let usage = first.usage();
        assert_eq!(
            (
                usage.input,
                usage.output,
                usage.cache_read,
                usage.cache_write
            ),
            (3600, 342, 24_000, 900)
        );
        assert!(usage.is_estimate && usage.usd == 0.0, "{usage:?}");

        // A later run of the session counts only lines after its start, and no torn line.
        let resumed = since("2096-11-22T00:00:00Z");
        assert_eq!(resumed.usage().total(), 0);
        let mut file = OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("writable");
        let line = r#"{"type":"assistant","timestamp":"2096-11-22T00:00:00Z","message":{"id":"m9","model":"claude-haiku-4-5","usage":{"input_tokens":10,"output_tokens":2}}}"#;
        write!(file, "{line}\n{line}\n{{\"type\":\"assis").expect("writable");
        let usage = resumed.usage();
        assert_eq!((usage.input, usage.output, usage.models.len()), (10, 2, 1));
    }
}
