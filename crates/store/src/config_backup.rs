//! `typed/`: backups of config.yaml and the templates. Uncommitted versions exist nowhere else, and `git clean` removes
//! them.
//!
//! Never synced: without a backup, nothing is restored. Knows nothing of the content of templates.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::atomic_write::Staged;
use super::board::Board;
use super::change::{Change, Rewrite};
use super::entry::Entry;
use super::error::Error;
use super::queue::{Queue, fault_of_name, is_blank};
use super::repairs::{Lost, note};
use crate::config::{self, Config};
use tavern_sys::files;

const FOLDER: &str = "typed";

const TEMPLATES: &str = "templates";

impl Board {
    /// Backs up changed files. The caller holds the lock; a file that can't be stored now is retried next time.
    pub(super) fn keep_typed(&self) {
        let config = config::FILE.to_owned();
        for name in templates(&self.path("")).into_iter().chain([config]) {
            drop(self.keep(&name));
        }
    }

    fn keep(&self, name: &str) -> Result<(), Error> {
        let (path, kept) = (self.path(name), self.kept_path(name));
        let found = look(&path).filter(|found| look(&kept).as_ref() != Some(found));
        let Some((modified, _)) = found else {
            return Ok(());
        };
        let text = files::read_text(&path).map_err(Error::io("read", &path))?;
        // Half a save replaces no backup.
        let is_half =
            is_blank(&text) || (name == config::FILE && Config::parse(&text, &path).is_err());
        if is_half {
            return Ok(());
        }
        let folder = kept.parent().unwrap_or(&kept);
        files::make_folder(folder).map_err(Error::io("create the folder", folder))?;
        Staged::volatile(&kept, &[text.as_bytes()], Some(modified))?.put()
    }

    /// Returns config.yaml and templates that were removed or emptied, but have a backup. Files on a branch are left to
    /// git.
    pub fn lost_files(&self) -> Vec<Lost> {
        let lost = names(&self.private(FOLDER)).into_iter().filter_map(|name| {
            let (path, kept) = (self.path(&name), self.kept_path(&name));
            let found = look(&path);
            let is_gone = found.is_none();
            // A file that still matches its backup is not blank.
            let is_emptied = || {
                found != look(&kept) && files::read_text(&path).is_ok_and(|text| is_blank(&text))
            };
            if !is_gone && !is_emptied() {
                return None;
            }
            let text = files::read_text(kept).ok()?;
            let queue = Queue { id: name, path };
            (!self.is_in_git(&queue)).then_some(Lost {
                queue,
                text,
                is_gone,
            })
        });
        lost.collect()
    }

    /// Returns config.yaml and templates that are missing or empty, with their backups.
    pub fn removed_files(&self) -> Vec<(String, String)> {
        let is_gone = |name: &String| {
            fs::symlink_metadata(self.path(name))
                .map_or(true, |known| !known.is_file() || known.len() == 0)
        };
        let gone = names(&self.private(FOLDER)).into_iter().filter(is_gone);
        gone.filter_map(|name| {
            files::read_text(self.kept_path(&name))
                .ok()
                .map(|was| (name, was))
        })
        .collect()
    }

    fn is_in_git(&self, file: &Queue) -> bool {
        self.whom_to_ask(file)
            .is_some_and(|(ask, root, path)| (ask.is_on_a_branch)(&root, &path))
    }

    /// Returns true if the file is config.yaml or a template rather than a queue.
    pub(super) fn is_kept(&self, path: &Path) -> bool {
        [config::FILE, TEMPLATES]
            .iter()
            .any(|own| path.starts_with(self.path(own)))
    }

    pub(super) fn kept_path(&self, name: &str) -> PathBuf {
        self.private(FOLDER).join(name)
    }

    /// Restores a file that is not a queue. Returns false if it exists again.
    pub(super) fn put_back_file(&self, lost: &Lost) -> Result<bool, Error> {
        self.transact(|view| {
            let is_it =
                |other: &Lost| (&other.queue.path, &other.text) == (&lost.queue.path, &lost.text);
            let is_there = files::read_text(&lost.queue.path).is_ok_and(|text| !is_blank(&text));
            // A torn archive exists, but still needs restoring.
            if is_there && !self.lost_archives()?.iter().any(is_it) {
                return Ok((Change::default(), false));
            }
            let cause = Some("the file was removed; it was put back".to_owned());
            let file = Rewrite::File {
                path: lost.queue.path.clone(),
                content: lost.text.clone(),
            };
            Ok((
                Change {
                    entries: vec![Entry {
                        cause,
                        ..note(&lost.queue, view.now)
                    }],
                    files: vec![file],
                },
                true,
            ))
        })
    }
}

/// Returns the modification time and length of the file, or of a link in its place; `None` if there is none.
fn look(path: &Path) -> Option<(SystemTime, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// Returns the names of config.yaml and the templates in `folder`.
fn names(folder: &Path) -> Vec<String> {
    let mut names = templates(folder);
    names.extend(
        fs::symlink_metadata(folder.join(config::FILE))
            .is_ok()
            .then(|| config::FILE.to_owned()),
    );
    names
}

/// Returns the names of the templates in `folder`.
fn templates(folder: &Path) -> Vec<String> {
    let templates = fs::read_dir(folder.join(TEMPLATES))
        .into_iter()
        .flatten()
        .flatten();
    // A name that `fault_of_name` rejects is never displayed, so it is not restored either.
    let templates = templates.filter(|file| fault_of_name(file.file_name().as_ref()).is_none());
    let templates =
        templates.filter_map(|file| Some(format!("{TEMPLATES}/{}", file.file_name().to_str()?)));
    let mut names: Vec<String> = templates.collect();
    names.sort();
    names
}
