//! Queues: listing them and reading their text.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::DateTime;
use memchr::memchr_iter;
use serde::{Deserialize, Serialize};

use super::atomic_write::sync_folder;
use super::board::Board;
use super::config::{Config, Role};
use super::content::Content;
use super::error::{Error, MOST_ITEMS};
use super::file_version::{QueueFiles, Stamp};
use tavern_core::front;
use tavern_core::problem::one_line;
use tavern_core::states::States;
use tavern_core::task::Timestamp;
use tavern_sys::failpoint;
use tavern_sys::files;

/// A queue document: one of the board's own, or any task file in the repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The name in leases and the log: `main` for `.tavern/queues/main.md`, else the path from the repository's root.
    pub id: String,
    pub path: PathBuf,
}

impl Queue {
    /// Returns its path, and the target if it is a link (else the same path again).
    pub fn files(&self) -> [PathBuf; 2] {
        [self.path.clone(), real(&self.path)]
    }
}

/// A queue as it was read.
#[derive(Clone, Debug)]
pub struct Text {
    pub queue: Queue,
    pub content: Content,
    /// The stamp of the file as it was read; [`Stamp::TORN`] if it was written meanwhile.
    pub(super) stamp: Stamp,
    /// The stamps in the baseline, if it was looked at.
    pub(super) known: Option<QueueFiles>,
}

impl Text {
    /// Returns the same text with these states.
    pub(super) fn with_states(self, states: Arc<States>) -> Text {
        let content = self.content.with_states(states);
        Text { content, ..self }
    }

    /// Returns when its file was last saved; unknown if it was being written.
    pub fn saved_at(&self) -> Option<Timestamp> {
        let (seconds, _) = self.stamp.modified();
        DateTime::from_timestamp(seconds, 0)
    }
}

/// Returns true if the name is that of a queue or archive, rather than of an editor's own file.
pub fn is_queue(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.ends_with(".md") && !name.starts_with('.'))
        && fault_of_name(path).is_none()
}

/// Returns why files at this path are not read. Control characters in a name would forge lines in messages and lists of
/// paths; a name like a flag can't be typed in commands.
pub fn fault_of_name(path: &Path) -> Option<&'static str> {
    if path.to_string_lossy().contains(char::is_control) {
        return Some("has control characters");
    }
    let is_flag = path
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"-"));
    is_flag.then_some("begins with `-`, as a flag does")
}

/// Resolves a link in the last part of the path. (The board's folders above have none.)
fn real(path: &Path) -> PathBuf {
    let link = path
        .is_symlink()
        .then(|| fs::canonicalize(path).ok())
        .flatten();
    link.unwrap_or_else(|| path.to_owned())
}

impl Board {
    /// Returns the board's queues by name (`main` first), then the task files that were drained here. A file with
    /// several names is listed under the first.
    pub fn queues(&self) -> Result<Vec<Queue>, Error> {
        let mut queues = self.files_of_queues()?;
        queues.retain(|(queue, is_file)| !is_file || self.is_own(queue));
        queues.sort_by_key(|(queue, _)| queue.id != "main");
        queues.extend(self.outside().map(|queue| (queue, false)));
        let mut files = HashSet::new();
        queues.retain(|(Queue { path, .. }, is_file)| {
            let file = || if *is_file { path.clone() } else { real(path) };
            (*is_file || self.is_there(path)) && files.insert(file())
        });
        Ok(queues.into_iter().map(|(queue, _)| queue).collect())
    }

    /// Returns the known task files outside of the board, including missing ones.
    pub(super) fn outside(&self) -> impl Iterator<Item = Queue> {
        self.remembered().into_iter().map(|id| Queue {
            path: self.root().join(&id),
            id,
        })
    }

    /// Returns files beside the queues, by name, that are not queues, such as a copy by another program. Their items
    /// are not worked on.
    pub fn strangers(&self) -> Result<Vec<Queue>, Error> {
        let mut all = self.files_of_queues()?;
        all.retain(|(queue, is_file)| *is_file && !self.is_own(queue));
        Ok(all.into_iter().map(|(queue, _)| queue).collect())
    }

    /// Returns true if the file is a queue: it is `main`, Tavern has seen it, or its front matter (`id`) or config.yaml
    /// names it. An unreadable file is reported as a queue.
    fn is_own(&self, queue: &Queue) -> bool {
        let says_so = || {
            let text = self.read_file(queue);
            let id = |text: Text| front::read(&text.content, &mut Vec::new()).0.id;
            text.map_or(true, |text| id(text).as_ref() == Some(&queue.id))
        };
        queue.id == "main" || self.knows(queue) || says_so() || self.is_needed(&queue.id)
    }

    /// Returns true if a queue of this name is created on demand: the default one, or one that a role takes from.
    pub fn is_needed(&self, name: &str) -> bool {
        let is_of_role = |role: &Role| role.queues.iter().any(|own| own == name);
        name == "main"
            || Config::load(self.dir()).is_ok_and(|config| config.roles.values().any(is_of_role))
    }

    /// Returns the files in the folder of queues, and whether each is known to be a file rather than a link.
    fn files_of_queues(&self) -> Result<Vec<(Queue, bool)>, Error> {
        let folder = self.path("queues");
        // Each name, and whether it is known to be a file rather than a link.
        let listed = self.by_link(&folder, files::names_in);
        let mut names: BTreeMap<String, bool> = match listed {
            Ok(entries) => entries
                .into_iter()
                .filter_map(|(name, is_file)| Some((name.into_string().ok()?, is_file)))
                .filter(|(name, _)| is_queue(name.as_ref()))
                .collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(Error::io("list", &folder)(error)),
        };
        let rehearsed = self
            .rehearsal
            .iter()
            .flat_map(|rehearsal| rehearsal.files());
        let own = rehearsed
            .filter_map(|path| Some(path.strip_prefix(&folder).ok()?.to_str()?.to_owned()));
        for name in own.filter(|name| name.ends_with(".md") && !name.contains('/')) {
            names.entry(name).or_default();
        }
        let queues = names.into_iter().map(|(name, is_file)| {
            let id = name.trim_end_matches(".md").to_owned();
            let path = folder.join(name);
            (Queue { id, path }, is_file)
        });
        Ok(queues.collect())
    }

    /// Returns the queues in the default order of claims: by the `priority` of their front matter, then as listed.
    pub fn queues_by_priority(&self) -> Result<Vec<Queue>, Error> {
        Ok(self.by_priority(self.queues()?))
    }

    /// Sorts `queues` in that order.
    pub fn by_priority(&self, mut queues: Vec<Queue>) -> Vec<Queue> {
        // An unreadable queue has the default priority.
        let front =
            |queue: &Queue| Some(front::read(&self.read(queue).ok()?.content, &mut Vec::new()).0);
        queues.sort_by_cached_key(|queue| front(queue).unwrap_or_default().rank());
        queues
    }

    /// Resolves `path` as [`files::led`] does. A link tracked by git must not lead to an untracked file: its author
    /// can't mean a file of this user's own.
    fn led(&self, path: &Path) -> io::Result<PathBuf> {
        let target = files::led(path, self.root())?;
        if let Some(git) = self.git.filter(|_| target != path && path.is_symlink()) {
            let root = fs::canonicalize(self.root())?;
            let link = path
                .parent()
                .map_or_else(|| Ok(root.clone()), fs::canonicalize)?;
            let is_tracked = |path: &Path| {
                path.strip_prefix(&root)
                    .is_ok_and(|path| (git.is_tracked)(&root, path))
            };
            let is_astray = is_tracked(&link.join(path.file_name().unwrap_or_default()))
                && !is_tracked(&target);
            if is_astray {
                return Err(files::refused(
                    "git has it as a link to a file that git does not have",
                ));
            }
        }
        Ok(target)
    }

    /// Opens `path`, or its target if a part of it is a link.
    fn by_link<T>(&self, path: &Path, open: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
        match open(path) {
            Err(error) if error.kind() == files::REFUSED => open(&self.led(path)?),
            opened => opened,
        }
    }

    /// Returns true if it is a file, or a dry run would create it.
    fn is_there(&self, path: &Path) -> bool {
        path.is_file() || self.rehearsed(path).is_some()
    }

    /// Returns its text in a dry run, if changed there.
    pub(super) fn rehearsed(&self, path: &Path) -> Option<String> {
        self.rehearsal.as_ref()?.text(path)
    }

    /// Returns the queue called `name`: a queue of the board, or a path (from `here`) to any task file.
    pub fn queue(&self, name: &str, here: &Path) -> Result<Queue, Error> {
        let own = self.path("queues").join(format!("{name}.md"));
        if !name.contains('/') && self.is_there(&own) {
            return Ok(self.queue_at(own));
        }
        for path in [here.join(name), self.root().join(name)] {
            if fault_of_name(&path).is_some() {
                return Err(Error::NoQueue(one_line(name)));
            }
            match self.led(&path) {
                Ok(path) if path.is_file() => return Ok(self.queue_at(path)),
                Err(error) if error.kind() == files::REFUSED => {
                    return Err(Error::io("read", &path)(error));
                }
                _ => {}
            }
        }
        let is_folder = !name.is_empty() && here.join(name).is_dir();
        Err(if is_folder {
            Error::Folder(name.to_owned())
        } else {
            Error::NoQueue(name.to_owned())
        })
    }

    fn queue_at(&self, path: PathBuf) -> Queue {
        let file = real(&path);
        let queues = self.queues().unwrap_or_default();
        if let Some(known) = queues.into_iter().find(|queue| real(&queue.path) == file) {
            return known;
        }
        let own = path
            .strip_prefix(self.path("queues"))
            .ok()
            .and_then(|name| name.to_str()?.strip_suffix(".md"));
        let id = match own {
            Some(name) => name.to_owned(),
            None => path
                .strip_prefix(self.root())
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned(),
        };
        Queue { id, path }
    }

    /// Returns the queue with this ID, as in leases and the log.
    pub fn queue_by_id(&self, id: &str) -> Result<Queue, Error> {
        let own = self.path("queues").join(format!("{id}.md"));
        let path = if !id.contains('/') && self.is_there(&own) {
            own
        } else {
            self.root().join(id)
        };
        if self.is_there(&path) {
            Ok(Queue {
                id: id.to_owned(),
                path,
            })
        } else {
            Err(Error::NoQueue(id.to_owned()))
        }
    }

    /// Returns the queue with this ID, whether it exists or not.
    pub(super) fn queue_of(&self, id: &str) -> Queue {
        let is_outside = id.contains('/') || self.remembered().iter().any(|outside| outside == id);
        let path = if is_outside {
            self.root().join(id)
        } else {
            self.path("queues").join(format!("{id}.md"))
        };
        Queue {
            id: id.to_owned(),
            path,
        }
    }

    /// Returns true if every program reads this queue: one of the board, or a remembered task file, whether it exists
    /// or not.
    pub(super) fn looks_after(&self, queue: &Queue) -> bool {
        queue.path.parent() == Some(&self.path("queues")) || self.remembered().contains(&queue.id)
    }

    /// Returns the IDs of known task files outside of the board.
    fn remembered(&self) -> Vec<String> {
        let files = files::read_text(self.private("files")).unwrap_or_default();
        let mut ids: Vec<String> = Vec::new();
        for line in files.lines().filter(|line| !line.is_empty()) {
            if !ids.iter().any(|id| id == line) {
                ids.push(line.to_owned());
            }
        }
        ids
    }

    /// Remembers a task file outside of the board, so that every program reads it from now on.
    pub fn remember(&self, queue: &Queue) -> Result<(), Error> {
        if self.is_dry() || self.looks_after(queue) {
            return Ok(());
        }
        self.make_folders()?;
        let path = self.private("files");
        let is_torn =
            files::read(&path).is_ok_and(|files| !files.is_empty() && !files.ends_with(b"\n"));
        let line = format!("{}{}\n", if is_torn { "\n" } else { "" }, queue.id);
        // Without a lock, so that a claim can't fail because of it. Another process that appends at the same time does
        // no harm.
        let append = || {
            let mut file = files::open_to_append(&path)?;
            file.write_all(line.as_bytes())?;
            file.sync_all()
        };
        append().map_err(Error::io("write to", &path))?;
        sync_folder(&path)
    }

    /// Checks that its file can be opened, regardless of cached content.
    ///
    /// # Errors
    /// The file can't be opened.
    pub fn can_open(&self, queue: &Queue) -> Result<(), Error> {
        self.by_link(&queue.path, |path| files::open(path))
            .map(drop)
            .map_err(Error::io("read", &queue.path))
    }

    /// Reads the text in its file, even while it is being written; in a dry run, the decided text.
    pub(super) fn read_file(&self, queue: &Queue) -> Result<Text, Error> {
        if let Some(content) = self.rehearsed(&queue.path) {
            let stamp = Stamp::at(&queue.path).unwrap_or(Stamp::NONE);
            return Ok(Text {
                queue: queue.clone(),
                content: content.into(),
                stamp,
                known: None,
            });
        }
        let (stamp, bytes) = self
            .by_link(&queue.path, |path| files::open_known(path))
            .and_then(|(file, known)| {
                let before = Stamp::of(&known);
                failpoint::hit("queue.open")?;
                let bytes = files::read_known(&file, &known)?;
                let stamp = if Stamp::of(&file.metadata()?) == before {
                    before
                } else {
                    Stamp::TORN
                };
                Ok((stamp, bytes))
            })
            .map_err(Error::io("read", &queue.path))?;
        let content =
            String::from_utf8(bytes).map_err(|error| Error::not_text(&queue.path, &error))?;
        // An archive has no limit.
        if queue.path.parent() == Some(&self.path("queues")) && has_too_many(&content) {
            return Err(Error::TooMany(queue.path.clone()));
        }
        Ok(Text {
            queue: queue.clone(),
            content: content.into(),
            stamp,
            known: None,
        })
    }
}

/// Returns true if more lines begin with a box than a queue may have items. Cheap: nothing is parsed.
pub fn has_too_many(text: &str) -> bool {
    memchr_iter(b'[', text.as_bytes()).count() > MOST_ITEMS && {
        let boxes = text
            .lines()
            .filter(|line| line.trim_start().starts_with("- ["));
        boxes.count() > MOST_ITEMS
    }
}

/// Returns true if the text is empty, as a full disk or a power cut leaves it.
pub(super) fn is_blank(saved: &str) -> bool {
    saved
        .trim_matches(|c: char| c == '\0' || c.is_whitespace())
        .is_empty()
}
