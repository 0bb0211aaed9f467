//! `typed/`: config.yaml and the templates as they were last typed. Before they are committed they are nowhere else, and `git clean`
//! takes them away.
//!
//! Never synced: without it nothing is put back. Knows nothing of what stands in a template.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::change::{Change, Rewrite};
use super::entry::Entry;
use super::error::Error;
use super::find::Board;
use super::mend::{Lost, note};
use super::queue::{Queue, fault_of_name, is_blank};
use super::replace::Staged;
use crate::config::{self, Config};
use tavern_sys::files;

const FOLDER: &str = "typed";

const TEMPLATES: &str = "templates";

impl Board {
    /// Keeps what has changed since. Whoever asks holds the lock; what can't be kept now is kept when it is next taken.
    pub(super) fn keep_typed(&self) {
        for name in names(&self.path("")) {
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
        // Half a save takes the place of none.
        let is_half =
            is_blank(&text) || (name == config::FILE && Config::parse(&text, &path).is_err());
        if is_half {
            return Ok(());
        }
        let folder = kept.parent().unwrap_or(&kept);
        files::make_folder(folder).map_err(Error::io("make the folder", folder))?;
        Staged::volatile(&kept, &[text.as_bytes()], Some(modified))?.put()
    }

    /// config.yaml and templates that were removed or emptied, though their text is known. What a branch has is git's to bring back.
    pub fn lost_files(&self) -> Vec<Lost> {
        let lost = names(&self.private(FOLDER)).into_iter().filter_map(|name| {
            let (path, kept) = (self.path(&name), self.kept_path(&name));
            let found = look(&path);
            let is_gone = found.is_none();
            // What was kept as it stands has words.
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

    /// config.yaml and templates that are gone or empty, with what was last typed there.
    pub fn removed_files(&self) -> Vec<(String, String)> {
        let is_gone = |name: &String| {
            files::open_known(self.path(name)).map_or(true, |(_, known)| known.len() == 0)
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

    /// It is no queue.
    pub(super) fn is_kept(&self, path: &Path) -> bool {
        [config::FILE, TEMPLATES]
            .iter()
            .any(|own| path.starts_with(self.path(own)))
    }

    pub(super) fn kept_path(&self, name: &str) -> PathBuf {
        self.private(FOLDER).join(name)
    }

    /// Puts back a file that is no queue. False if it is there again.
    pub(super) fn put_back_file(&self, lost: &Lost) -> Result<bool, Error> {
        self.transact(|view| {
            let is_it =
                |other: &Lost| (&other.queue.path, &other.text) == (&lost.queue.path, &lost.text);
            let is_there = files::read_text(&lost.queue.path).is_ok_and(|text| !is_blank(&text));
            // An archive that breaks off is there, too.
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

/// When the file, or the link in its place, was modified, and its length; `None`: there is nothing.
fn look(path: &Path) -> Option<(SystemTime, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// Those that are in `folder`.
fn names(folder: &Path) -> Vec<String> {
    let templates = fs::read_dir(folder.join(TEMPLATES))
        .into_iter()
        .flatten()
        .flatten();
    // A name of two lines is told nowhere, so nothing by it is brought back.
    let templates = templates.filter(|file| fault_of_name(file.file_name().as_ref()).is_none());
    let templates =
        templates.filter_map(|file| Some(format!("{TEMPLATES}/{}", file.file_name().to_str()?)));
    let mut names: Vec<String> = templates.collect();
    names.sort();
    names.extend(
        fs::symlink_metadata(folder.join(config::FILE))
            .is_ok()
            .then(|| config::FILE.to_owned()),
    );
    names
}
