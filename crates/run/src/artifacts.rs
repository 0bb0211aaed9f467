//! The folder of each run, `runs/<run>/`: its prompt, its log and its results.
//!
//! `prompt.md`, `rules.md` and the program's log are canonical. `result.txt`, `tool_calls/` and `diff.patch` are
//! derived from that log and from git, and `rebuild` restores them if they are torn or missing. It restores
//! `metadata.json` only as far as other records know the run.
#![expect(clippy::disallowed_methods, reason = "a run owns its folder")]

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::prompt::head;
use crate::runner::{AgentEvent, LOG_MIB, LOGS, OUTPUT_PARTS, THREAD_LOG};
use tavern_core::task::Timestamp;
use tavern_store::{Board, Error, TEMP_PREFIX, replace_own, replace_volatile};
use tavern_sys::files;
use tavern_sys::secrets::{Redacting, redact};

/// The record of the run.
pub const METADATA: &str = "metadata.json";
/// Its changes, from git.
pub const PATCH: &str = "diff.patch";
/// The last words of its agent.
pub const RESULT: &str = "result.txt";
/// A planner's plan, from its answer.
pub const PLAN: &str = "plan.md";
/// The output of `done_when` at the commit of the work.
pub const VERIFY: &str = "verify.txt";
/// The output of the checks at the merged commit.
pub const MERGED: &str = "verify-merged.txt";
/// The problems of a plan.
pub const PROBLEMS: &str = "plan-problems.txt";

/// A run's folder.
#[derive(Clone, Debug)]
pub struct Artifacts {
    dir: PathBuf,
}

impl Artifacts {
    pub fn create(board: &Board, run: &str) -> Result<Artifacts, Error> {
        let dir = board.run_dir(run);
        let calls = dir.join("tool_calls");
        files::make_folder(&calls).map_err(Error::io("create the folder", &calls))?;
        Ok(Artifacts { dir })
    }

    /// Moves aside any folder at the place of a run that has not begun, because another process put it there. It
    /// becomes a temp folder.
    pub fn clear(board: &Board, run: &str) -> Result<(), Error> {
        let dir = board.run_dir(run);
        match fs::rename(
            &dir,
            dir.with_file_name(format!("{TEMP_PREFIX}{}-{run}", uuid::Uuid::new_v4())),
        ) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed.map_err(Error::io("take away", &dir)),
        }
    }

    /// Opens the folder of an earlier run.
    pub fn open(board: &Board, run: &str) -> Artifacts {
        Artifacts {
            dir: board.run_dir(run),
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes the file atomically but not durably: a power cut also ends the run. A file with this text is left alone.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let (path, text) = (self.dir.join(name), redact(text));
        let is_written = files::read(&path).is_ok_and(|found| found == text.as_bytes());
        if is_written {
            Ok(())
        } else {
            replace_volatile(&path, text.as_bytes())
        }
    }

    /// Writes the file durably, for files that an event on the board depends on.
    pub fn write_durable(&self, name: &str, text: &str) -> Result<(), Error> {
        replace_own(&self.dir.join(name), redact(text).as_bytes())
    }

    /// Removes secrets from the logs of an ended program, and cuts them at their limit. The program writes them
    /// itself, so that they survive its supervisor.
    pub fn redact_logs(&self) -> Result<(), Error> {
        LOGS.iter()
            .chain(&OUTPUT_PARTS)
            .map(|name| self.path(name))
            .try_for_each(|path| redact_file(&path).map_err(Error::io("write", &path)))
    }

    /// Returns the output of the last check of its work, or an empty text. A failure after the merge is the newest.
    pub fn checked(&self) -> String {
        let outputs = [MERGED, VERIFY, PROBLEMS].map(|name| self.read(name));
        outputs
            .into_iter()
            .find(|output| !output.is_empty())
            .unwrap_or_default()
    }

    /// Restores a derived file that is missing, empty or truncated by a crash. Returns whether it was written. Other
    /// contents stay: another version may have made them.
    pub(super) fn mend(&self, name: &str, text: &str) -> Result<bool, Error> {
        let path = self.dir.join(name);
        let found = files::read(&path).unwrap_or_default();
        // Blocks that were never written read as zeros.
        let written = found
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        let (text, found) = (redact(text), &found[..written]);
        if found.len() >= text.len() || !text.as_bytes().starts_with(found) {
            return Ok(false);
        }
        replace_own(&path, text.as_bytes()).map(|()| true)
    }

    /// Returns the time of the latest write to these files.
    pub fn last_written<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<Timestamp> {
        let written = |name: &str| self.path(name).metadata().and_then(|file| file.modified());
        names
            .filter_map(|name| written(name).ok())
            .map(Timestamp::from)
            .max()
    }

    /// Returns a text artifact, empty if it does not exist.
    pub fn read(&self, name: &str) -> String {
        files::read(self.path(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }
}

fn redact_file(path: &Path) -> io::Result<()> {
    let mut log = match files::open_to_write(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        log => log?,
    };
    cut_off(&mut log, &cut_note(path))?;
    if !redact_into(&mut io::sink(), &mut log)? {
        return Ok(());
    }
    log.rewind()?;
    let mut temp = tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .tempfile_in(path.parent().unwrap_or(path))?;
    redact_into(&mut temp, &mut log)?;
    temp.persist(path).map(drop).map_err(|error| error.error)
}

/// Copies `log` without secrets. Returns whether it has any.
fn redact_into(copy: &mut dyn Write, log: &mut File) -> io::Result<bool> {
    let (mut secrets, mut part) = (Redacting::new(), vec![0; 64 * 1024]);
    loop {
        let length = log.read(&mut part)?;
        if length == 0 {
            break;
        }
        copy.write_all(&secrets.push(&part[..length]))?;
    }
    copy.write_all(&secrets.finish())?;
    Ok(secrets.has_found())
}

/// Cuts a log that is too long, and appends `line`. A sparse file is cut at its first hole.
fn cut_off(log: &mut File, line: &str) -> io::Result<()> {
    let most = LOG_MIB << 20;
    if log.metadata()?.len() <= most {
        return Ok(());
    }
    let hole = rustix::fs::seek(&*log, rustix::fs::SeekFrom::Hole(0)).unwrap_or(most);
    log.set_len(hole.min(most))?;
    log.seek(SeekFrom::End(0))?;
    log.write_all(format!("\n{line}\n").as_bytes())?;
    log.rewind()
}

/// Returns the line about the cut for the log at `path`.
fn cut_note(path: &Path) -> String {
    let words = format!("[cut off by Tavern: of a log {LOG_MIB} MiB are kept at most]");
    if path.ends_with(THREAD_LOG) {
        serde_json::json!({"type": "tavern", "text": words}).to_string()
    } else {
        words
    }
}

/// The most calls with a file of their own, and the most bytes of a call or result in it; the stream has all.
const MOST_CALLS: u32 = 1000;
const MOST_BYTES: usize = 256 << 10;

/// The contents of `tool_calls/NNN_name.txt`, from a run's stream.
#[derive(Default)]
pub(super) struct ToolCalls {
    open: Vec<OpenCall>,
    count: u32,
}

struct OpenCall {
    id: String,
    file: String,
    text: String,
}

impl ToolCalls {
    /// Returns the file for `event` and its new contents.
    pub(super) fn note(&mut self, event: &AgentEvent) -> Option<(String, String)> {
        match event {
            AgentEvent::ToolCall {
                id, name, input, ..
            } => {
                self.count += 1;
                if self.count > MOST_CALLS {
                    let left_out = self.count - MOST_CALLS;
                    let text = format!("{left_out} more calls are in thread.jsonl\n");
                    return Some(("tool_calls/left_out.txt".to_owned(), text));
                }
                let is_plain = |c: char| c.is_ascii_alphanumeric();
                let safe: String = name
                    .chars()
                    .map(|c| if is_plain(c) { c } else { '_' })
                    .take(40)
                    .collect();
                let file = format!("tool_calls/{:03}_{safe}.txt", self.count);
                let input = serde_json::to_string_pretty(input).unwrap_or_default();
                let text = format!("{name} {}\n", head(&input, MOST_BYTES));
                self.open.push(OpenCall {
                    id: id.clone(),
                    file: file.clone(),
                    text: text.clone(),
                });
                Some((file, text))
            }
            AgentEvent::ToolResult {
                id,
                ok,
                text: result,
            } => {
                let place = self.open.iter().position(|open| open.id == *id)?;
                let OpenCall { file, text, .. } = self.open.swap_remove(place);
                let verdict = if *ok { "ok" } else { "failed" };
                let text = format!("{text}\n--- {verdict}\n{}\n", head(result, MOST_BYTES));
                Some((file, text))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use serde_json::json;

    use super::*;
    use crate::runner::event::Nesting;

    #[test]
    fn what_is_written_already_stays_the_same_file() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let artifacts = Artifacts {
            dir: scratch.path().canonicalize().expect("it is there"),
        };
        let write = |text: &str| {
            artifacts.write(VERIFY, text).expect("the folder is ours");
            assert_eq!(artifacts.read(VERIFY), text);
            fs::metadata(artifacts.path(VERIFY))
                .expect("it is there")
                .ino()
        };
        let first = write("passed");
        assert_eq!(write("passed"), first);
        assert_ne!(write("failed"), first);
    }

    #[test]
    fn calls_beyond_number_and_size_are_told() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(scratch.path().join("tool_calls")).expect("the folder is ours");
        let artifacts = Artifacts {
            dir: scratch.path().to_owned(),
        };
        let mut calls = ToolCalls::default();
        let mut note = |event: &AgentEvent| {
            let (file, text) = calls.note(event).expect("it has a file");
            artifacts.write(&file, &text).expect("the folder is ours");
        };
        for number in 0..1003 {
            let id = number.to_string();
            note(&AgentEvent::ToolCall {
                id: id.clone(),
                name: "Bash".into(),
                input: json!({}),
                nesting: Nesting::Main,
            });
            if number < 1000 {
                note(&AgentEvent::ToolResult {
                    id,
                    ok: true,
                    text: "x".repeat(if number == 0 { 1 << 20 } else { 1 }),
                });
            }
        }
        assert_eq!(
            fs::read_dir(scratch.path().join("tool_calls"))
                .expect("it is there")
                .count(),
            1001
        );
        assert_eq!(
            artifacts.read("tool_calls/left_out.txt"),
            "3 more calls are in thread.jsonl\n"
        );
        let first = artifacts.read("tool_calls/001_Bash.txt");
        assert!(
            first.len() < 300_000 && first.contains("[… 786432 bytes left out …]"),
            "{}",
            first.len()
        );
    }
}
