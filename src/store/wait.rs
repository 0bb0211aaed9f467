//! Waiting for the board to change: woken by the file system, not by polling.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::error::Error;
use super::find::Board;
use super::queue::Queue;
use crate::file_watch::FileWatch;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A queue, a lease's end, `PAUSE`, `STOP` or a quota file changed: look again.
    Changed,
    /// Somebody called [`Waker::wake`].
    Called,
    TimedOut,
}

/// Ends a [`Watch`]'s wait from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Sender<Wake>);

impl Waker {
    pub fn wake(&self) {
        // Nobody waits any more: nothing to do.
        let _ = self.0.send(Wake::Called);
    }
}

/// A watch on everything that could give an agent work or take it away. Make it before looking at the board, so that
/// no change falls between the look and the wait.
#[derive(Debug)]
pub struct Watch {
    wakes: Receiver<Wake>,
    sender: Sender<Wake>,
    _watch: FileWatch,
}

impl Watch {
    /// A watch for who looks into `queues`. Their items may wait for those of any other queue, so it is on all; on none
    /// for who looks into none.
    pub fn new(board: &Board, queues: &[Queue]) -> Result<Watch, Error> {
        board.make_folders()?;
        let (sender, wakes) = channel();
        let others = if queues.is_empty() { Vec::new() } else { board.queues()? };
        let queues = queues.iter().chain(&others).flat_map(Queue::files);
        let files: Vec<PathBuf> = queues.chain([board.path("PAUSE"), board.path("STOP")]).collect();
        let quota = board.path("quota");
        let folders = folders(&files, &quota);
        let tell = sender.clone();
        let watch = FileWatch::new(folders, move |path| {
            // Where too much has changed to be named, too: looking once more is always right.
            if path.is_none_or(|path| files.iter().any(|file| file == path) || path.starts_with(&quota)) {
                // Nobody waits any more: nothing to do.
                let _ = tell.send(Wake::Changed);
            }
        });
        let watch = watch.map_err(|(path, source)| Error::io("watch", &path)(source))?;
        Ok(Watch { wakes, sender, _watch: watch })
    }

    pub fn waker(&self) -> Waker {
        Waker(self.sender.clone())
    }

    /// Blocks until something changed, somebody called, or `timeout` is over. A burst of changes is one wake-up.
    pub fn wait(&self, timeout: Duration) -> Wake {
        let first = match self.wakes.recv_timeout(timeout) {
            Ok(wake) => wake,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Wake::TimedOut,
        };
        self.wakes.try_iter().fold(first, |seen, next| if next == Wake::Called { next } else { seen })
    }
}

fn folders(files: &[PathBuf], quota: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        files.iter().filter_map(|file| file.parent().map(Path::to_owned)).chain([quota.to_owned()]).collect();
    folders.sort();
    folders.dedup();
    folders.retain(|folder| folder.is_dir());
    folders
}
