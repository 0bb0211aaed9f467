//! Learnings of people and agents, one file each: `knowledge/<id>.md`. People and git may write them at any time.

use std::fs;
use std::path::{Path, PathBuf};

use super::atomic_write::replace_own;
use super::board::Board;
use super::entry::Entry;
use super::error::Error;
use super::lock::Lock;
use tavern_core::event::Kind;
use tavern_core::learning::{Learning, is_name, parse, with_key};
use tavern_core::problem::Problem;
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::files;

/// The folder of the board.
pub const KNOWLEDGE: &str = "knowledge";

/// The most learnings of one run.
pub const MOST_OF_RUN: usize = 20;

/// A longer file is no learning; only a few kilobytes of one are ever shown. In bytes.
const LONGEST: u64 = 256 << 10;

/// A file of the folder.
#[derive(Clone, Debug)]
pub struct KnowledgeFile {
    /// Its name without `.md`.
    pub id: String,
    pub path: PathBuf,
    /// Empty if it can't be read.
    pub text: String,
    /// The learning, or the problem with the file.
    pub learning: Result<Learning, Problem>,
}

impl Board {
    /// Returns all files of learnings, invalid ones first, then the oldest.
    pub fn knowledge(&self) -> Vec<KnowledgeFile> {
        let folder = self.path(KNOWLEDGE);
        let entries = files::is_plain_folder(&folder)
            .ok()
            .and_then(|()| fs::read_dir(&folder).ok());
        let mut found: Vec<KnowledgeFile> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| read(entry.ok()?.path()))
            .collect();
        let created =
            |file: &KnowledgeFile| file.learning.as_ref().ok().map(|learning| learning.created);
        found.sort_by(|one, other| (created(one), &one.id).cmp(&(created(other), &other.id)));
        found
    }

    /// Stores `learning` and returns its ID; `None` if its run has reached the limit. A dry run writes nothing.
    pub fn learn(&self, learning: &Learning) -> Result<Option<String>, Error> {
        let lock = if self.is_dry() {
            None
        } else {
            Some(Lock::take(self)?)
        };
        let known = self.knowledge();
        let of_run = |file: &&KnowledgeFile| {
            file.learning
                .as_ref()
                .is_ok_and(|known| known.run == learning.run)
        };
        if learning.run.is_some() && known.iter().filter(of_run).count() >= MOST_OF_RUN {
            return Ok(None);
        }
        let named = |id: &TaskId| id.as_str().replacen('T', "L", 1);
        let (_, random) = uuid::Uuid::new_v4().as_u64_pair();
        let id = named(&TaskId::mint(random, |id| {
            known.iter().any(|file| file.id == named(id))
        }));
        if !self.is_dry() {
            let path = self.path(KNOWLEDGE).join(format!("{id}.md"));
            replace_own(&path, learning.render().as_bytes())?;
        }
        drop(lock);
        let Learning {
            task,
            by,
            run,
            text,
            ..
        } = learning.clone();
        let cause = format!("{} ({id})", text.lines().next().unwrap_or_default());
        // After a crash before this note, the learning still counts.
        drop(self.note(Entry {
            task,
            agent: Some(by),
            run,
            cause: Some(cause),
            ..Entry::new(Kind::Learned, learning.created)
        }));
        Ok(Some(id))
    }

    /// Marks `file` as expired at `now`.
    pub fn expire(&self, file: &KnowledgeFile, now: Timestamp) -> Result<(), Error> {
        self.set_key(
            file,
            "expires",
            &now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        )
    }

    /// Marks `file` as superseded by the learning `by`.
    pub fn supersede(&self, file: &KnowledgeFile, by: &str) -> Result<(), Error> {
        self.set_key(file, "superseded_by", by)
    }

    fn set_key(&self, file: &KnowledgeFile, key: &str, value: &str) -> Result<(), Error> {
        if self.is_dry() {
            return Ok(());
        }
        replace_own(&file.path, with_key(&file.text, key, value).as_bytes())
    }
}

/// Reads a learning; `None` for files other than Markdown, such as temp files.
fn read(path: PathBuf) -> Option<KnowledgeFile> {
    let id = path.file_name()?.to_str()?.strip_suffix(".md")?.to_owned();
    let is_short = fs::metadata(&path).is_ok_and(|file| file.len() <= LONGEST);
    let (text, learning) = match files::read_text(&path) {
        _ if !is_short => (String::new(), Err(too_long(&path))),
        Ok(text) if is_name(&id) => (text.clone(), parse(&text)),
        Ok(text) => (text, Err(misnamed(&path))),
        Err(error) => {
            let message = format!("it can't be read: {error}");
            (
                String::new(),
                Err(Problem::error(
                    "broken-learning",
                    0..0,
                    message,
                    "save it as a file of UTF-8 text",
                )),
            )
        }
    };
    Some(KnowledgeFile {
        id,
        path,
        text,
        learning,
    })
}

fn too_long(path: &Path) -> Problem {
    let message = format!(
        "`{}` has more than {} KiB",
        path.file_name().unwrap_or_default().display(),
        LONGEST >> 10
    );
    Problem::error(
        "broken-learning",
        0..0,
        message,
        "put it into a file of the project, and name that",
    )
}

fn misnamed(path: &Path) -> Problem {
    let message = format!(
        "`{}` is not a valid learning name",
        path.file_name().unwrap_or_default().display()
    );
    Problem::error(
        "broken-learning",
        0..0,
        message,
        "use letters, digits, `-` and `_`, 64 at most",
    )
}
