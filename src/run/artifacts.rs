//! The folder that each run leaves, `runs/<run>/`: what was asked, what was said and done, what it came to.
//!
//! `metadata.json`, `prompt.md`, `result.txt` and `thread.jsonl` are canonical; `tool_calls/`, `verify.txt` and
//! `diff.patch` are made from them and from git, and may fail without harm.
#![expect(clippy::disallowed_methods, reason = "a run writes its artifacts and worktree")]

use std::fs;
use std::path::{Path, PathBuf};

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
        fs::create_dir_all(&calls).map_err(|source| Error::Io { action: "make the folder", path: calls, source })?;
        Ok(Artifacts { dir })
    }

    /// The folder of an earlier run.
    pub fn open(board: &Board, run: &str) -> Artifacts {
        Artifacts { dir: board.run_dir(run) }
    }

    /// The run whose folder is `dir`.
    pub fn at(dir: PathBuf) -> Artifacts {
        Artifacts { dir }
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
        fs::write(&path, text).map_err(|source| Error::Io { action: "write", path, source })
    }

    /// A text artifact, empty if it is not there.
    pub fn read(&self, name: &str) -> String {
        fs::read(self.path(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}
