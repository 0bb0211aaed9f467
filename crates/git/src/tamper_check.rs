//! The state of a repository outside of its worktrees, and changes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use git2::Config;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::branch::oid;
use super::{CommitId, GitError, Repository};
use tavern_sys::files;

/// Repository files that git obeys, beside settings and hooks.
const OBEYED: [&str; 6] = [
    "config.worktree",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "objects/info/alternates",
    "shallow",
];

/// A snapshot of references, settings and hooks; references are not serialized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outside {
    #[serde(skip)]
    references: BTreeMap<String, CommitId>,
    /// Digests of the values, which may be secrets.
    settings: BTreeMap<String, Vec<u64>>,
    /// Hooks and other files that git obeys, by name in the git directory, with mode and digest.
    files: BTreeMap<String, (u32, u64)>,
}

/// One change outside of the worktrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideChange {
    /// A branch, remote-tracking branch or tag contains commits of the work now.
    Published {
        reference: String,
        tip: CommitId,
    },
    Set {
        key: String,
    },
    Unset {
        key: String,
    },
    /// A hook, or another file that git obeys.
    File {
        name: String,
    },
}

impl fmt::Display for OutsideChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutsideChange::Published { reference, tip } => {
                write!(f, "its work was put on `{reference}` ({})", tip.short())
            }
            OutsideChange::Set { key } => write!(f, "`{key}` was set in .git/config"),
            OutsideChange::Unset { key } => write!(f, "`{key}` was taken out of .git/config"),
            OutsideChange::File { name } => write!(f, ".git/{name} was changed"),
        }
    }
}

impl Repository {
    /// Takes a snapshot, without references of this prefix.
    pub fn outside(&self, without: &str) -> Result<Outside, GitError> {
        let mut references = BTreeMap::new();
        for kind in ["refs/heads/", "refs/remotes/", "refs/tags/"] {
            references.extend(
                self.references(kind)?
                    .into_iter()
                    .filter(|(name, _)| !name.starts_with(without)),
            );
        }
        Ok(Outside {
            references,
            settings: settings_of(&self.common_dir().join("config"))?,
            files: self.files_obeyed(),
        })
    }

    /// Returns the changes from `before` to `now`. A reference counts only if it contains commits of `work` (start,
    /// end) that are not in its start.
    pub fn changed_since(
        &self,
        before: &Outside,
        now: &Outside,
        work: Option<(&CommitId, &CommitId)>,
    ) -> Result<Vec<OutsideChange>, GitError> {
        let mut changes = Vec::new();
        for (name, tip) in now
            .references
            .iter()
            .filter(|(name, tip)| before.references.get(*name) != Some(tip))
        {
            if let Some((start, end)) = work
                && let Some(base) = self.merge_base(oid(tip), oid(end))?
                && !self.is_ancestor(&base.into(), start)?
            {
                let short = name.splitn(3, '/').last().unwrap_or(name).to_owned();
                changes.push(OutsideChange::Published {
                    reference: short,
                    tip: tip.clone(),
                });
            }
        }
        let keys: BTreeSet<&String> = before.settings.keys().chain(now.settings.keys()).collect();
        changes.extend(
            keys.into_iter()
                .filter(|key| before.settings.get(*key) != now.settings.get(*key))
                .map(|key| {
                    let key = key.clone();
                    if now.settings.contains_key(&key) {
                        OutsideChange::Set { key }
                    } else {
                        OutsideChange::Unset { key }
                    }
                }),
        );
        let files: BTreeSet<&String> = before.files.keys().chain(now.files.keys()).collect();
        let files = files
            .into_iter()
            .filter(|name| before.files.get(*name) != now.files.get(*name));
        changes.extend(files.map(|name| OutsideChange::File { name: name.clone() }));
        Ok(changes)
    }

    /// Returns hooks, except for samples, and other files that git obeys.
    fn files_obeyed(&self) -> BTreeMap<String, (u32, u64)> {
        let names = hooks_in(self.common_dir()).chain(OBEYED.map(str::to_owned));
        let found = names.filter_map(|name| {
            let path = self.common_dir().join(&name);
            let mode = path.metadata().ok()?.permissions().mode();
            let digest = xxh3_64(&files::read(&path).unwrap_or_default());
            Some((name, (mode, digest)))
        });
        found.collect()
    }
}

/// Returns the hooks of a git directory, relative to it, except for samples.
pub(super) fn hooks_in(git_dir: &Path) -> impl Iterator<Item = String> {
    let hooks = std::fs::read_dir(git_dir.join("hooks"));
    hooks
        .into_iter()
        .flatten()
        .flatten()
        .map(|hook| hook.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with(".sample"))
        .map(|name| format!("hooks/{name}"))
}

/// Returns digests of the values of a configuration file, by key.
pub(super) fn settings_of(file: &Path) -> Result<BTreeMap<String, Vec<u64>>, GitError> {
    let read = || {
        let config = Config::open(file)?;
        let mut entries = config.entries(None)?;
        let mut settings: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let value = xxh3_64(entry.value_bytes());
            settings
                .entry(String::from_utf8_lossy(entry.name_bytes()).into_owned())
                .or_default()
                .push(value);
        }
        Ok(settings)
    };
    read().map_err(GitError::library("read the repository's settings"))
}
