//! Whether git wrote a text to its path, and whether that text continues another one.
//!
//! Reads only references, the index and objects.

use std::fs;
use std::path::Path;

use git2::{ErrorCode, Oid};

use super::{GitError, Repository};

/// Limit of commits, or moves of HEAD, that are read.
const MOST: usize = 64;

impl Repository {
    /// Returns true if `text` continues `newest`, which was at `path` (from the root) in one of the last commits.
    /// HEAD of the main work tree must hold `text` there, otherwise returns `None`. Line endings don't matter.
    pub fn goes_on(&self, path: &Path, text: &str, newest: &str) -> Result<Option<bool>, GitError> {
        let head = match self.git.head().and_then(|head| head.peel_to_commit()) {
            Ok(commit) => commit.id(),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {
                return Ok(None);
            }
            Err(error) => return Err(GitError::library("read the files of HEAD")(error)),
        };
        let plain = |text: &str| text.replace("\r\n", "\n");
        let is = |blob: Oid, text: &str| {
            self.text_of(blob)
                .is_some_and(|held| plain(&held) == plain(text))
        };
        let held = self.blob_at(head, path);
        if !held.is_some_and(|held| is(held, text)) {
            return Ok(None);
        }
        let walked = self.git.revwalk().and_then(|mut commits| {
            commits.push(head)?;
            Ok(commits)
        });
        let commits = walked.map_err(GitError::library("walk the commits of HEAD"))?;
        let mut blobs: Vec<Oid> = commits
            .take(MOST)
            .filter_map(|commit| self.blob_at(commit.ok()?, path))
            .collect();
        blobs.dedup();
        Ok(Some(blobs.into_iter().any(|blob| is(blob, newest))))
    }

    /// Returns the text at `path` in HEAD of the main work tree.
    pub fn head_text(&self, path: &Path) -> Option<String> {
        let head = self.git.head().and_then(|head| head.peel_to_commit());
        self.text_of(self.blob_at(head.ok()?.id(), path)?)
    }

    /// Returns true if git has written `text` at `path` and to the index, and is about to move HEAD to a commit with
    /// it. Staging another branch's version by hand looks the same. Line endings don't matter.
    pub fn is_bringing(&self, path: &Path, text: &str) -> Result<bool, GitError> {
        let index = self
            .git
            .index()
            .map_err(GitError::library("read the index"))?;
        let Some(coming) = index.get_path(path, 0).map(|entry| entry.id) else {
            return Ok(false);
        };
        let plain = |text: &str| text.replace("\r\n", "\n");
        let is_written = || {
            self.text_of(coming)
                .is_some_and(|coming| plain(&coming) == plain(text))
        };
        let head = self
            .git
            .head()
            .and_then(|head| head.peel_to_commit())
            .map(|commit| commit.id());
        if head.is_ok_and(|head| self.blob_at(head, path) == Some(coming)) || !is_written() {
            return Ok(false);
        }
        let fetched = fs::read_to_string(self.common_dir().join("FETCH_HEAD")).unwrap_or_default();
        let fetched = fetched
            .lines()
            .filter_map(|line| Oid::from_str(line.split('\t').next()?).ok());
        let reflog = self
            .git
            .reflog("HEAD")
            .map_err(GitError::library("read the reflog of HEAD"))?;
        let former = reflog.iter().take(MOST).map(|entry| entry.id_old());
        let references = self
            .git
            .references()
            .map_err(GitError::library("read branches and tags"))?;
        let tips =
            references.filter_map(|reference| Some(reference.ok()?.peel_to_commit().ok()?.id()));
        let mut commits = fetched.chain(former).chain(tips);
        Ok(commits.any(|commit| self.blob_at(commit, path) == Some(coming)))
    }

    fn blob_at(&self, commit: Oid, path: &Path) -> Option<Oid> {
        let tree = self.git.find_commit(commit).ok()?.tree().ok()?;
        tree.get_path(path).ok().map(|entry| entry.id())
    }

    fn text_of(&self, blob: Oid) -> Option<String> {
        String::from_utf8(self.git.find_blob(blob).ok()?.content().to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, discover};
    use super::*;

    #[test]
    fn a_text_goes_on_from_those_of_its_branch() {
        let fixture = Fixture::new();
        let (root, path) = (fixture.root(), Path::new("list.md"));
        let commit = |text: &str| fixture.commit(&[("list.md", text)], text.trim());
        let goes_on = |text: &str, newest: &str| {
            discover(&root)
                .expect("it is a repository")
                .goes_on(path, text, newest)
                .expect("it can be read")
        };
        assert_eq!(goes_on("one\n", "one\n"), None);
        commit("one\n");
        fixture.git(&["branch", "old"]);
        commit("two\n");
        assert_eq!(goes_on("one\n", "two\n"), None);
        assert_eq!(goes_on("two\n", "one\r\n"), Some(true));
        assert_eq!(goes_on("two\n", "never\n"), Some(false));
        fixture.git(&["checkout", "--quiet", "old"]);
        assert_eq!(goes_on("one\n", "two\n"), Some(false));
    }
}
