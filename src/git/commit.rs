//! A commit of everything that a linked worktree holds.

use std::fs;
use std::path::{Path, PathBuf};

use super::identity::Identity;
use super::program::{Call, THOROUGH};
use super::repository::Place;
use super::{Changes, CommitId, GitError, Head, Repository};

impl Repository {
    /// Commits all changes of a linked worktree, tracked and untracked, minus what is ignored or lies at or under a path of
    /// `exclude` (relative to the root), on whatever its `HEAD` names. `None` if that leaves nothing to commit. An
    /// unfinished merge whose conflicts are resolved is completed.
    ///
    /// [`GitError::Conflicted`] if conflict markers are left; [`GitError::Unfinished`] in a rebase;
    /// [`GitError::NotAWorktree`] for the main work tree; [`GitError::Busy`] if a git is at work there, or died there.
    pub fn commit_all(&self, worktree: &Path, message: &str, exclude: &[&str]) -> Result<Option<CommitId>, GitError> {
        let place = self.linked_place(worktree)?;
        if ["rebase-merge", "rebase-apply"].iter().any(|name| place.git_dir.join(name).exists()) {
            return Err(GitError::Unfinished { worktree: place.work_tree, operation: "rebase".to_owned() });
        }
        let changes = self.changes_at(&place)?;
        let paths = still_marked(&place, &changes);
        if !paths.is_empty() {
            return Err(GitError::Conflicted { worktree: place.work_tree, paths });
        }
        self.stage(&place, &changes, exclude)?;
        let merges = place.git_dir.join("MERGE_HEAD").exists();
        if !merges && !self.has_staged(&place)? {
            return Ok(None);
        }
        let identity = Identity::of(&self.open_at(&place.git_dir)?, self.config())?;
        let call = self.call(&place).args(["commit", "--quiet", "--no-verify", "--allow-empty-message"]);
        let call = call.args(["--cleanup=whitespace", "--file=-"]).input(message.replace('\0', " ").as_bytes())?;
        self.writing(&place, identity.give_to(call))?;
        match self.head_of(&place.work_tree)? {
            Head::Branch { commit, .. } | Head::Detached { commit } => Ok(Some(commit)),
            Head::Unborn { name } => Err(GitError::UnknownReference { name }),
        }
    }

    fn stage(&self, place: &Place, changes: &Changes, exclude: &[&str]) -> Result<(), GitError> {
        let mut call = self.call(place).args(["add", "--all", "--sparse", "--", ":/"]);
        for path in exclude {
            call = call.arg(pathspec("exclude,top,literal", Path::new(path)));
        }
        for path in &changes.nested {
            call = call.arg(pathspec("exclude,top,literal", path));
        }
        self.writing(place, call)?;
        if exclude.is_empty() {
            return Ok(());
        }
        // What somebody staged by hand is excluded as well.
        let call = self.call(place).args(["reset", "--quiet", "--"]);
        self.writing(place, call.args(exclude.iter().map(|path| pathspec("top,literal", Path::new(path)))))
    }

    fn has_staged(&self, place: &Place) -> Result<bool, GitError> {
        let quiet = ["diff", "--cached", "--quiet", "--no-ext-diff", "--ignore-submodules=dirty"];
        Ok(!self.call(place).args(quiet).limit(THOROUGH).run()?.status.success())
    }

    /// Runs what writes the index of `place`, whose lock another git may hold or have left behind.
    fn writing(&self, place: &Place, call: Call) -> Result<(), GitError> {
        match call.limit(THOROUGH).read() {
            Err(GitError::Program { stderr, .. }) if stderr.contains("index.lock': File exists") => {
                Err(GitError::Busy { path: place.git_dir.join("index.lock"), waited: std::time::Duration::ZERO })
            }
            other => other.map(drop),
        }
    }
}

pub(super) fn pathspec(magic: &str, path: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(format!(":({magic})"));
    text.push(path.as_os_str());
    text
}

/// The conflicted files that still have a line which only git writes.
fn still_marked(place: &Place, changes: &Changes) -> Vec<PathBuf> {
    let is_marked = |path: &&PathBuf| {
        let bytes = fs::read(place.work_tree.join(path)).unwrap_or_default();
        bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> "))
    };
    changes.conflicted.iter().filter(is_marked).cloned().collect()
}
