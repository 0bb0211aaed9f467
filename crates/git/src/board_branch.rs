//! The history of a board's queues, on a branch of its own, independent of work trees and the index.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, ObjectType, Oid, TreeWalkMode, TreeWalkResult};

use super::{CommitId, GitError, Repository};

/// Name of the branch, which is never checked out.
pub const BOARD_BRANCH: &str = "tavern/board";

const REFERENCE: &str = "refs/heads/tavern/board";

/// Reflog message of commits that were made here.
const MADE: &str = "tavern: the board";

impl Repository {
    /// Commits these files, by their paths from the root, as the whole content of the board's branch. `None` if
    /// nothing changed.
    ///
    /// # Errors
    /// Fails if another process moves the branch at the same time or holds its lock; then nothing has changed.
    pub fn commit_board(
        &self,
        files: &[(PathBuf, Vec<u8>)],
        message: &str,
    ) -> Result<Option<CommitId>, GitError> {
        let _held = self.hold_clean_up()?;
        let tip = self.tip(REFERENCE)?;
        let parent = tip.as_ref().map(|tip| self.find_commit(tip)).transpose()?;
        let made = self
            .tree_of(files)
            .map_err(GitError::library("make a tree"))?;
        if parent.as_ref().map(git2::Commit::tree_id) == Some(made) {
            return Ok(None);
        }
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        let commit = self.write_commit(&self.found_tree(made)?, &parents, message)?;
        self.swap(REFERENCE, tip.as_ref(), Some(&commit), MADE)?;
        Ok(Some(commit))
    }

    fn tree_of(&self, files: &[(PathBuf, Vec<u8>)]) -> Result<Oid, git2::Error> {
        let empty = self.git.treebuilder(None)?.write()?;
        let mut builder = TreeUpdateBuilder::new();
        for (path, bytes) in files {
            builder.upsert(path, self.git.blob(bytes)?, FileMode::Blob);
        }
        builder.create_updated(&self.git, &self.git.find_tree(empty)?)
    }

    /// Returns the files below `folder` on the board's branch. If this clone has no such branch, it is created from
    /// the remote's. Entries that are not regular files or not UTF-8 are skipped.
    pub fn board_files(&self, folder: &Path) -> Result<Vec<(PathBuf, String)>, GitError> {
        let reading = || GitError::library("read the branch of the board");
        let own = self.tip(REFERENCE)?;
        let Some(tip) = own.map_or_else(|| self.take_up_board(), |tip| Ok(Some(tip)))? else {
            return Ok(Vec::new());
        };
        let tree = self.find_commit(&tip)?.tree().map_err(reading())?;
        let mut found = Vec::new();
        tree.walk(TreeWalkMode::PreOrder, |above, entry| {
            let is_file = entry.kind() == Some(ObjectType::Blob)
                && entry.filemode() != i32::from(FileMode::Link);
            if let (true, Ok(name)) = (is_file, entry.name()) {
                found.push((Path::new(above).join(name), entry.id()));
            }
            TreeWalkResult::Ok
        })
        .map_err(reading())?;
        found.retain(|(path, _)| path.starts_with(folder));
        let text = |id| String::from_utf8(self.git.find_blob(id).ok()?.content().to_vec()).ok();
        let texts = found.into_iter().map(|(path, id)| Some((path, text(id)?)));
        Ok(texts.flatten().collect())
    }

    /// Returns the tip of the remote's board branch at the last fetch.
    pub fn remote_board(&self) -> Result<Option<CommitId>, GitError> {
        self.remote(None).map_or(Ok(None), |remote| {
            self.tip(&format!("refs/remotes/{remote}/{BOARD_BRANCH}"))
        })
    }

    fn take_up_board(&self) -> Result<Option<CommitId>, GitError> {
        let tip = self.remote_board()?;
        if let Some(tip) = &tip {
            self.swap(REFERENCE, None, Some(tip), "tavern: as the remote has it")?;
        }
        Ok(tip)
    }

    /// Returns the board's commits that were made here, with their times in seconds.
    pub(super) fn own_board_commits(&self) -> Result<HashMap<Oid, i64>, GitError> {
        // A branch named `tavern` would block this reference.
        if !matches!(self.tip(REFERENCE), Ok(Some(_))) {
            return Ok(HashMap::new());
        }
        let reflog = self.git.reflog(REFERENCE);
        let reflog = reflog.map_err(GitError::library("read a reflog"))?;
        let is_made = |entry: &git2::ReflogEntry<'_>| entry.message().ok().flatten() == Some(MADE);
        let made = reflog.iter().filter(is_made);
        let dated = made.map(|entry| (entry.id_new(), entry.committer().when().seconds()));
        Ok(dated.collect())
    }

    /// Returns true if a reference is the board's branch.
    pub(super) fn is_board(name: &str) -> bool {
        name == REFERENCE
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn the_board_has_a_history_that_no_checkout_knows_of() {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let before = fixture.git(&["log", "--format=%H", "HEAD"]);
        let commit = |text: &str| {
            let files = [(PathBuf::from(".tavern/queues/main.md"), text.into())];
            repository
                .commit_board(&files, "Plan")
                .expect("the repository is ours")
        };
        assert!(commit("- [ ] one\n").is_some());
        assert!(commit("- [ ] two\n").is_some());
        assert_eq!(commit("- [ ] two\n"), None);
        let log = ["log", "--format=%s", "--name-only", BOARD_BRANCH];
        assert_eq!(
            fixture.git(&log),
            "Plan\n\n.tavern/queues/main.md\nPlan\n\n.tavern/queues/main.md"
        );
        let found = repository
            .board_files(Path::new(".tavern"))
            .expect("it can be read");
        let expected = (".tavern/queues/main.md".into(), "- [ ] two\n".to_owned());
        assert_eq!(found, [expected]);
        assert_eq!(fixture.git(&["status", "--porcelain"]), "");
        assert_eq!(fixture.git(&["log", "--format=%H", "HEAD"]), before);
    }
}
