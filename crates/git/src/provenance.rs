//! How a text came to be what HEAD holds: whether git brought it by itself, and what stood there before.
//!
//! Source: the reflog of HEAD, git-reflog(1). Reads references and objects only.

use std::fs;
use std::path::Path;

use git2::{ErrorCode, IndexEntry, Oid};

use super::{GitError, Repository};

/// So many moves of HEAD are looked at.
const MOST: usize = 64;

/// What puts commits onto what stood there, beside a pull, a merge and a rebase.
const ONTO: [&str; 3] = ["cherry-pick", "revert", "am"];

/// How a text came to be what HEAD holds at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// HEAD has held it all the time.
    Before,
    /// HEAD has held it all the time, and its files were reset to it, as by `git stash`. (Who has git write one file alone leaves no
    /// trace.)
    Reset,
    /// Somebody committed it, after these texts, the oldest first.
    Committed { earlier: Vec<String> },
    /// git brought it along.
    Moved {
        /// As the reflog says it, such as `checkout: moving from main to other`.
        how: String,
        /// What stood there is an ancestor: it was pulled or merged.
        goes_on: bool,
        /// The texts of the commits that HEAD was moved away from, the newest first. What somebody committed in the place of
        /// another text is no branch's any more.
        before: Vec<String>,
        /// What HEAD held at first.
        stood: Option<String>,
        /// Those of them, and of the texts before them, that somebody committed here, the oldest first.
        committed: Vec<String>,
        /// It was put onto what stood there, or nothing that HEAD was moved away from is left behind: its commit is an ancestor, or
        /// was rebased.
        is_ahead: bool,
    },
}

impl Repository {
    /// What HEAD of the main work tree holds at `path` (from the root), and how it came to be there, as far as that happened
    /// since the reflog had its first `known` bytes; `None` if it holds nothing.
    pub fn trace(&self, path: &Path, known: u64) -> Result<Option<(String, Provenance)>, GitError> {
        let reading = GitError::library("read what HEAD holds");
        let head = match self.git.head().and_then(|head| head.peel_to_commit()) {
            Ok(commit) => commit.id(),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {
                return Ok(None);
            }
            Err(error) => return Err(reading(error)),
        };
        let Some(now) = self.blob_at(head, path) else {
            return Ok(None);
        };
        let Some(text) = self.text_of(now) else {
            return Ok(None);
        };
        let log = fs::read(self.common_dir().join("logs/HEAD")).unwrap_or_default();
        // It may have been cut since.
        let new = log.get(known as usize..).unwrap_or(&log);
        let moves = new.iter().filter(|byte| **byte == b'\n').count().min(MOST);
        let reflog = self
            .git
            .reflog("HEAD")
            .map_err(GitError::library("read the reflog of HEAD"))?;
        let (mut provenance, mut last, mut is_onto) = (Provenance::Before, Some(now), false);
        for entry in reflog.iter().take(moves) {
            let old = self.blob_at(entry.id_old(), path);
            let how = entry.message().ok().flatten().unwrap_or_default();
            if old == last {
                if provenance == Provenance::Before && how.starts_with("reset: ") {
                    provenance = Provenance::Reset;
                }
                continue;
            }
            let since = std::mem::replace(&mut last, old);
            let is_commit = how.starts_with("commit");
            if matches!(provenance, Provenance::Before | Provenance::Reset) {
                if is_commit {
                    provenance = Provenance::Committed {
                        earlier: Vec::new(),
                    };
                    continue;
                }
                let begins = |words: &[&str]| words.iter().any(|word| how.starts_with(word));
                let goes_on = !is_rebase(how) && begins(&["pull", "merge"]);
                is_onto = goes_on || is_rebase(how) || begins(&ONTO);
                let (how, before, committed) = (how.to_owned(), Vec::new(), Vec::new());
                provenance = Provenance::Moved {
                    how,
                    goes_on,
                    before,
                    stood: None,
                    committed,
                    is_ahead: true,
                };
            }
            match &mut provenance {
                Provenance::Moved { committed, .. } if is_commit => {
                    committed.splice(..0, since.and_then(|since| self.text_of(since)));
                }
                // Between its start and its end HEAD is moved away from nothing.
                Provenance::Moved { .. } if is_rebase(how) && !how.contains("(start)") => {}
                Provenance::Moved {
                    before, is_ahead, ..
                } => {
                    let is_behind = |old| self.contains(head, old).unwrap_or_default();
                    *is_ahead &= is_onto || is_rebase(how) || is_behind(entry.id_old());
                    before.extend(old.and_then(|old| self.text_of(old)));
                }
                Provenance::Committed { earlier } if is_commit => {
                    earlier.splice(..0, since.and_then(|since| self.text_of(since)));
                }
                Provenance::Committed { .. } | Provenance::Before | Provenance::Reset => break,
            }
        }
        if let Provenance::Moved { stood, .. } = &mut provenance {
            *stood = last.and_then(|last| self.text_of(last));
        }
        Ok(Some((text, provenance)))
    }

    /// git has written `text` at `path`, has put it into the index, and is about to move HEAD to what has it. (Who puts what another
    /// branch has into the index by hand does the same.) Line ends don't matter.
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

    /// git may have written what HEAD holds at `path` since the file `inode` was modified at `modified` (seconds and nanoseconds), and
    /// was no other: whatever git writes, it notes in the index. What somebody has staged since is none of HEAD's.
    pub fn may_have_written(
        &self,
        path: &Path,
        inode: u64,
        modified: (i64, i64),
    ) -> Result<bool, GitError> {
        let index = self
            .git
            .index()
            .map_err(GitError::library("read the index"))?;
        let Some(entry) = index.get_path(path, 0) else {
            return Ok(true);
        };
        let head = self.git.head().and_then(|head| head.peel_to_commit());
        if head.is_ok_and(|head| self.blob_at(head.id(), path) != Some(entry.id)) {
            return Ok(false);
        }
        // git keeps 32 bits of the seconds, and not everywhere the rest.
        let (seconds, nanoseconds) = (entry.mtime.seconds(), i64::from(entry.mtime.nanoseconds()));
        let then = modified.0 as i32;
        let is_later =
            seconds > then || seconds == then && (nanoseconds == 0 || nanoseconds >= modified.1);
        Ok(is_later && !is_noted(&entry, inode, modified))
    }

    /// By its index git has written the very file `inode` at `path`, which was modified at `modified` (seconds and nanoseconds); or
    /// has looked since, and it says what git would have written.
    pub fn has_noted(
        &self,
        path: &Path,
        inode: u64,
        modified: (i64, i64),
    ) -> Result<bool, GitError> {
        let index = self
            .git
            .index()
            .map_err(GitError::library("read the index"))?;
        Ok(index
            .get_path(path, 0)
            .is_some_and(|entry| is_noted(&entry, inode, modified)))
    }

    fn blob_at(&self, commit: Oid, path: &Path) -> Option<Oid> {
        let tree = self.git.find_commit(commit).ok()?.tree().ok()?;
        tree.get_path(path).ok().map(|entry| entry.id())
    }

    fn text_of(&self, blob: Oid) -> Option<String> {
        String::from_utf8(self.git.find_blob(blob).ok()?.content().to_vec()).ok()
    }
}

/// The file is the one of `entry`, and was not written since. Not all that write an index keep the nanoseconds and the inode.
fn is_noted(entry: &IndexEntry, inode: u64, (seconds, nanoseconds): (i64, i64)) -> bool {
    let noted = i64::from(entry.mtime.nanoseconds());
    entry.mtime.seconds() == seconds as i32
        && (noted == 0 || noted == nanoseconds)
        && (entry.ino == 0 || entry.ino == inode as u32)
}

/// A step of a rebase, of a pull's too: `pull --rebase (pick): …`. It may leave out commits that stood there.
fn is_rebase(how: &str) -> bool {
    let action = how.split_once(": ").map_or(how, |(action, _)| action);
    how.starts_with("rebase")
        || (how.starts_with("pull") && action.ends_with(')') && action.contains(" ("))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, discover};
    use super::*;

    #[test]
    fn a_text_was_there_or_was_committed_or_came_with_head() {
        let fixture = Fixture::new();
        let (root, path) = (fixture.root(), Path::new("list.md"));
        let commit = |text: &str| fixture.commit(&[("list.md", text)], text.trim());
        let trace = |text: &str, known: u64| {
            let found = discover(&root)
                .expect("it is a repository")
                .trace(path, known)
                .expect("it can be read");
            found
                .filter(|(held, _)| held == text)
                .map(|(_, provenance)| provenance)
        };
        let log = || {
            fs::metadata(root.join(".git/logs/HEAD"))
                .expect("it is there")
                .len()
        };
        assert_eq!(trace("one\n", 0), None);
        commit("one\n");
        fixture.git(&["branch", "old"]);
        commit("two\n");
        assert_eq!(trace("one\n", 0), None);
        assert_eq!(
            trace("two\n", 0),
            Some(Provenance::Committed {
                earlier: vec!["one\n".to_owned()]
            })
        );
        assert_eq!(trace("two\n", log()), Some(Provenance::Before));
        let before = log();
        fixture.git(&["reset", "--quiet", "--hard"]);
        assert_eq!(trace("two\n", before), Some(Provenance::Reset));
        let moved = |how: &str, goes_on: bool, before: &[&str]| {
            let before: Vec<String> = before.iter().map(|text| (*text).to_owned()).collect();
            let committed = vec!["one\n".to_owned(), "two\n".to_owned()];
            Some(Provenance::Moved {
                how: how.to_owned(),
                goes_on,
                before,
                stood: None,
                committed,
                is_ahead: false,
            })
        };
        let name = fixture.git(&["branch", "--show-current"]).trim().to_owned();
        fixture.git(&["checkout", "--quiet", "old"]);
        // What else is committed there does not make it typed.
        fixture.git(&["commit", "--quiet", "--allow-empty", "--message", "more"]);
        let how = format!("checkout: moving from {name} to old");
        assert_eq!(trace("one\n", 0), moved(&how, false, &["two\n"]));
        fixture.git(&["merge", "--quiet", "--no-edit", &name]);
        let merged = trace("two\n", 0);
        assert!(
            matches!(merged, Some(Provenance::Moved { goes_on: true, .. })),
            "{merged:?}"
        );
    }
}
