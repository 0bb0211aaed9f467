//! The tips to which Tavern moved a branch, one a line, newest last. A tip is written before the branch moves, so it
//! is known even after a kill in between.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use git2::{Reflog, ReflogEntry};

use super::branch::oid;
use super::{CommitId, GitError, Repository};
use tavern_sys::files;

/// Limit of moves of HEAD that are read.
const MOST_MOVES: usize = 4096;

/// Prefix of reflog messages of an agent's actions, set by the variable below.
const BY_AGENT: &str = "agent ";

/// Returns the variable, and its value, that makes git name `run` in the reflog when its agent commits, merges or
/// resets.
pub fn reflog_action(run: &str) -> (String, String) {
    ("GIT_REFLOG_ACTION".to_owned(), format!("{BY_AGENT}{run}"))
}

/// The position of a reference after the last move with a reflog message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastWord {
    Here,
    /// It was moved from there without a message, or by an agent.
    Elsewhere(CommitId),
    /// There is no log, or it is empty.
    Nowhere,
}

impl Repository {
    /// Returns the remembered tips of `branch`, newest last; empty if none are known.
    pub fn remembered_tips(&self, branch: &str) -> Result<Vec<CommitId>, GitError> {
        let path = self.tips_file(branch);
        match files::read(&path) {
            // Invalid lines are ignored.
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes)
                .lines()
                .filter_map(|line| line.parse().ok())
                .collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(GitError::io("read", &path)(error)),
        }
    }

    /// Remembers `tip` as one of `branch`.
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

    /// Returns true if HEAD of the main work tree came to `tip` by a commit, a merge, a pull or the like. Switching
    /// there does not count.
    pub fn was_made_in_checkout(&self, tip: &CommitId) -> Result<bool, GitError> {
        let Some(log) = self.log_of("HEAD")? else {
            return Ok(false);
        };
        let is_look = |how: &str| how.starts_with("checkout:") || how.starts_with(BY_AGENT);
        let mut moves = log.iter().take(MOST_MOVES);
        Ok(moves.any(|entry| {
            CommitId::from(entry.id_new()) == *tip
                && entry
                    .message()
                    .ok()
                    .flatten()
                    .is_some_and(|how| !is_look(how))
        }))
    }

    /// Returns the position of `reference` by git's log, compared with `tip`. A direct write of the reference file or
    /// `git update-ref` leaves no message; a commit, a merge or a fetch does. Messages of agents don't count.
    pub fn last_word(&self, reference: &str, tip: &CommitId) -> Result<LastWord, GitError> {
        let led = self
            .git
            .find_reference(reference)
            .and_then(|found| found.resolve());
        let name = led.ok().and_then(|led| Some(led.name().ok()?.to_owned()));
        let Some(log) = name.map_or(Ok(None), |name| self.log_of(&name))? else {
            return Ok(LastWord::Nowhere);
        };
        let is_word = |how: &str| !how.is_empty() && !how.starts_with(BY_AGENT);
        let has_word =
            |entry: &ReflogEntry<'_>| entry.message().ok().flatten().is_some_and(is_word);
        // git writes the entry just before it moves the branch.
        let is_of_tip =
            |entry: &ReflogEntry<'_>| [entry.id_new(), entry.id_old()].contains(&oid(tip));
        if log
            .get(0)
            .is_some_and(|newest| has_word(&newest) && is_of_tip(&newest))
        {
            return Ok(LastWord::Here);
        }
        let last = log
            .iter()
            .take(MOST_MOVES)
            .find(has_word)
            .map(|entry| entry.id_new());
        let oldest = || {
            log.iter()
                .take(MOST_MOVES)
                .next_back()
                .map(|entry| entry.id_old())
        };
        let known = last.or_else(oldest).filter(|id| !id.is_zero());
        Ok(known.map_or(LastWord::Nowhere, |id| LastWord::Elsewhere(id.into())))
    }

    /// Returns true if git logs moves of branches, which is the default.
    pub fn keeps_logs(&self) -> bool {
        let setting = self
            .git
            .config()
            .and_then(|config| config.get_bool("core.logAllRefUpdates"));
        !setting.is_ok_and(|is_on| !is_on)
    }

    /// Returns the reflog, if it exists. libgit2 would create a missing one.
    fn log_of(&self, name: &str) -> Result<Option<Reflog>, GitError> {
        let read = || {
            if self.git.reference_has_log(name)? {
                self.git.reflog(name).map(Some)
            } else {
                Ok(None)
            }
        };
        read().map_err(GitError::library(format!("read the reflog of `{name}`")))
    }

    fn tips_file(&self, branch: &str) -> PathBuf {
        self.common_dir()
            .join("tavern/tips")
            .join(branch.replace('%', "%25").replace('/', "%2F"))
    }
}
