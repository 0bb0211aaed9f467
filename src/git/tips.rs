//! Where Tavern has put a branch: its tips, a line each, the newest last. Written before the branch is moved, so that a kill in
//! between leaves a tip that is known.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use git2::ReflogEntry;

use super::{CommitId, GitError, Repository};
use crate::files;

/// So many moves of HEAD are looked at.
const MOST_MOVES: usize = 4096;

impl Repository {
    /// The tips that were remembered of `branch`, the newest last; none if nothing is known of it.
    pub fn remembered_tips(&self, branch: &str) -> Result<Vec<CommitId>, GitError> {
        let path = self.tips_file(branch);
        match files::read(&path) {
            // Garbage is as if it were not there.
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| line.parse().ok()).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(GitError::io("read", &path)(error)),
        }
    }

    /// From now on `tip` is known as one of `branch`'s.
    pub fn remember_tip(&self, branch: &str, tip: &CommitId) -> Result<(), GitError> {
        let path = self.tips_file(branch);
        let write = || -> io::Result<()> {
            path.parent().map_or(Ok(()), files::make_folder)?;
            let mut file = files::open_to_append(&path)?;
            file.write_all(format!("{tip}\n").as_bytes())?;
            file.sync_data()
        };
        write().map_err(GitError::io("write", &path))
    }

    /// HEAD of the main work tree came to `tip` by a commit, a merge, a pull or the like; switching there is only looking at it.
    pub fn was_made_in_checkout(&self, tip: &CommitId) -> Result<bool, GitError> {
        let reflog = self.git.reflog("HEAD").map_err(GitError::library("read the reflog of HEAD"))?;
        let is_look = |how: &str| how.starts_with("checkout:");
        let mut moves = reflog.iter().take(MOST_MOVES);
        Ok(moves.any(|entry| {
            CommitId::from(entry.id_new()) == *tip && entry.message().ok().flatten().is_some_and(|how| !is_look(how))
        }))
    }

    /// Where the local branch was before it was put to `tip` without a word, as `git update-ref` does; a commit, a merge or a fetch
    /// tells of itself in its reflog. `None` where it was not, or there is no reflog.
    pub fn put_in_silence(&self, branch: &str, tip: &CommitId) -> Result<Option<CommitId>, GitError> {
        let name = format!("refs/heads/{branch}");
        let reflog = self.git.reflog(&name).map_err(GitError::library("read the reflog of a branch"))?;
        let is_silent = |entry: &ReflogEntry<'_>| entry.message().ok().flatten().is_none_or(str::is_empty);
        let silent: Vec<ReflogEntry<'_>> = reflog.iter().take(MOST_MOVES).take_while(is_silent).collect();
        let is_there = silent.first().is_some_and(|newest| CommitId::from(newest.id_new()) == *tip);
        Ok(silent.last().filter(|oldest| is_there && !oldest.id_old().is_zero()).map(|oldest| oldest.id_old().into()))
    }

    fn tips_file(&self, branch: &str) -> PathBuf {
        self.common_dir().join("tavern/tips").join(branch.replace('%', "%25").replace('/', "%2F"))
    }
}
