//! `slots/committed`: the last event of the queues that was committed to git.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::atomic_write::replace_own;
use super::board::Board;
use super::change::Change;
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::knowledge::KNOWLEDGE;
use super::log::tail_log;
use super::queue::is_queue;
use tavern_sys::files;

/// The state of the last commit of the queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The last event in the commit.
    pub seq: u64,
    /// The error of the next commit, as reported.
    pub obstacle: Option<String>,
}

/// A consistent snapshot of the queues and the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The latest events, oldest first. The queues show exactly these events.
    pub entries: Vec<Entry>,
    /// Queues, archives and learnings, at their real paths.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

const NAME: &str = "slots/committed";

impl Board {
    /// Returns the default if nothing was committed yet.
    pub fn committed(&self) -> Committed {
        let text = files::read_text(self.private(NAME)).unwrap_or_default();
        let mut lines = text.lines();
        let seq = lines
            .next()
            .and_then(|line| line.parse().ok())
            .unwrap_or_default();
        Committed {
            seq,
            obstacle: lines.next().map(str::to_owned),
        }
    }

    /// Returns the time since the last commit or attempt at one; `None` if there was none.
    pub fn since_commit(&self) -> Option<Duration> {
        let file = fs::metadata(self.private(NAME)).ok()?;
        file.modified().ok()?.elapsed().ok()
    }

    /// Returns true if events since the last commit changed the text of a queue, or a state.
    pub fn has_uncommitted(&self) -> bool {
        tail_log(self, self.committed().seq).is_ok_and(|entries| {
            entries
                .iter()
                .any(|entry| entry.change != TextChange::Nothing || entry.state.is_some())
        })
    }

    /// Returns the current queues and the events since `seq`.
    pub fn snapshot(&self, seq: u64) -> Result<Snapshot, Error> {
        // An event is logged before its queue shows it; the lock first finishes the changes of a killed process.
        self.transact(|_| Ok((Change::default(), self.as_it_is(seq)?)))
    }

    fn as_it_is(&self, seq: u64) -> Result<Snapshot, Error> {
        let entries = tail_log(self, seq)?;
        let beside = ["queues/archive", KNOWLEDGE].map(|folder| fs::read_dir(self.path(folder)));
        let beside = beside
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| is_queue(path));
        let queues = self.queues()?;
        queues
            .iter()
            .for_each(|queue| drop(self.show_states(queue)));
        let states = queues.iter().map(|queue| self.state_file(queue));
        let states: Vec<PathBuf> = states.filter(|path| path.exists()).collect();
        let queues = queues.into_iter().map(|queue| queue.path);
        let paths = queues.chain(states).chain(beside);
        let mut files = Vec::new();
        for path in paths.filter_map(|path| files::led(&path, self.root()).ok()) {
            let bytes = files::read(&path).map_err(Error::io("read", &path))?;
            files.push((path, bytes));
        }
        Ok(Snapshot { entries, files })
    }

    /// Stores `committed`. The caller holds the slot for committing.
    pub fn set_committed(&self, committed: &Committed) -> Result<(), Error> {
        let obstacle = committed
            .obstacle
            .iter()
            .map(|why| format!("{}\n", why.replace('\n', " ")));
        let text = format!("{}\n{}", committed.seq, obstacle.collect::<String>());
        replace_own(&self.private(NAME), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back() {
        let scratch = tempfile::tempdir().expect("a temp dir");
        let board = Board::open(scratch.path()).expect("it is there");
        board.make_folders().expect("the folder is ours");
        assert_eq!(board.committed(), Committed::default());
        for obstacle in [None, Some("a merge is going on".to_owned())] {
            let committed = Committed { seq: 17, obstacle };
            board.set_committed(&committed).expect("the folder is ours");
            assert!(board.since_commit().is_some());
            assert_eq!(board.committed(), committed);
        }
    }
}
