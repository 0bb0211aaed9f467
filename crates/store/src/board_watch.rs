//! Waits for changes of the board, woken by the file system rather than by polling.

use std::path::{Path, PathBuf};

use super::board::Board;
use super::error::Error;
use super::queue::{Queue, is_queue};
use tavern_sys::file_watch::WatchOrLook;
use tavern_sys::process::Bell;

impl Board {
    /// Rings `bell` at every change that could give an agent work or take it away (a queue, an event, `PAUSE`, `STOP`
    /// or a quota file), until the returned value is dropped. Call it before reading the board, so that no change is
    /// missed between the read and the wait.
    /// The watch covers all queues, even those missing for a moment, since items of `queues` may wait for items of any
    /// other; none if `queues` is empty. Missing folders are neither created nor watched.
    pub fn ring_at_changes(&self, queues: &[Queue], bell: &Bell) -> Result<WatchOrLook, Error> {
        let others = if queues.is_empty() {
            Vec::new()
        } else {
            self.queues()?.into_iter().chain(self.outside()).collect()
        };
        let named = queues.iter().chain(&others).flat_map(Queue::files);
        // Most events change no queue.
        let applied = (!others.is_empty()).then(|| self.private("applied"));
        let files: Vec<PathBuf> = named
            .chain(applied)
            .chain([self.path("PAUSE"), self.path("STOP")])
            .collect();
        let quota = self.path("quota");
        let own = (!others.is_empty()).then(|| self.path("queues"));
        let folders = folders(&files, &quota);
        let bell = bell.clone();
        // A queue that is created meanwhile.
        let is_new =
            move |path: &Path| own.is_some() && path.parent() == own.as_deref() && is_queue(path);
        let watch = WatchOrLook::new(folders, move |path| {
            // Also rings if too much has changed to be named: an extra look does no harm.
            if path.is_none_or(|path| {
                files.iter().any(|file| file == path) || path.starts_with(&quota) || is_new(path)
            }) {
                bell.ring();
            }
        });
        watch.map_err(|(path, source)| Error::io("watch", &path)(source))
    }
}

fn folders(files: &[PathBuf], quota: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = files
        .iter()
        .filter_map(|file| file.parent().map(Path::to_owned))
        .chain([quota.to_owned()])
        .collect();
    folders.sort();
    folders.dedup();
    folders.retain(|folder| folder.is_dir());
    folders
}
