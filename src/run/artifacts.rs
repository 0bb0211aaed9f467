//! The folder that each run leaves, `runs/<run>/`: what was asked, what was said and done, what it came to.
//!
//! `metadata.json`, `prompt.md`, `result.txt` and `thread.jsonl` are canonical; `tool_calls/`, `verify.txt` and
//! `diff.patch` are made from them and from git, and may fail without harm.
#![expect(clippy::disallowed_methods, reason = "a run writes its artifacts and worktree")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;
use crate::runner::AgentEvent;
use crate::store::{Board, Error, replace, replace_volatile};

/// A run's folder.
#[derive(Clone, Debug)]
pub struct Artifacts {
    dir: PathBuf,
}

impl Artifacts {
    pub fn create(board: &Board, run: &str) -> Result<Artifacts, Error> {
        let dir = board.run_dir(run);
        let calls = dir.join("tool_calls");
        files::make_folder(&calls).map_err(Error::io("make the folder", &calls))?;
        Ok(Artifacts { dir })
    }

    /// The folder of an earlier run.
    pub fn open(board: &Board, run: &str) -> Artifacts {
        Artifacts { dir: board.run_dir(run) }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The whole file or none of it, and on disk when the system likes: a power cut ends the run with it.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        replace_volatile(&self.dir.join(name), text.as_bytes())
    }

    /// On disk when it returns: for what an event on the board rests on.
    pub fn write_durable(&self, name: &str, text: &str) -> Result<(), Error> {
        replace(&self.dir.join(name), text.as_bytes())
    }

    /// For what can be made again from the canonical files: not waited for, and torn by a crash at worst.
    pub fn write_derived(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.dir.join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))
    }

    /// A text artifact, empty if it is not there.
    pub fn read(&self, name: &str) -> String {
        files::read(self.path(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

/// `tool_calls/NNN_name.txt`: derived from the stream, so a failure to write one harms nothing.
pub(super) struct ToolCalls<'a> {
    artifacts: &'a Artifacts,
    open: Vec<OpenCall>,
    count: u32,
}

struct OpenCall {
    id: String,
    file: String,
    text: String,
}

impl<'a> ToolCalls<'a> {
    pub(super) fn of(artifacts: &'a Artifacts) -> ToolCalls<'a> {
        ToolCalls { artifacts, open: Vec::new(), count: 0 }
    }

    /// Writes down what `event` tells of a call.
    pub(super) fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolCall { id, name, input, .. } => {
                self.count += 1;
                let is_plain = |c: char| c.is_ascii_alphanumeric();
                let safe: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(40).collect();
                let file = format!("tool_calls/{:03}_{safe}.txt", self.count);
                let text = format!("{name} {}\n", serde_json::to_string_pretty(input).unwrap_or_default());
                drop(self.artifacts.write_derived(&file, &text));
                self.open.push(OpenCall { id: id.clone(), file, text });
            }
            AgentEvent::ToolResult { id, ok, text: result } => {
                let Some(place) = self.open.iter().position(|open| open.id == *id) else { return };
                let OpenCall { file, text, .. } = self.open.swap_remove(place);
                let verdict = if *ok { "ok" } else { "failed" };
                drop(self.artifacts.write_derived(&file, &format!("{text}\n--- {verdict}\n{result}\n")));
            }
            _ => {}
        }
    }
}
