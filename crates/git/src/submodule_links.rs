//! Commits of submodules that commits here name, and their presence in the user's own repositories of those
//! submodules.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use git2::FileMode;

use super::branch::oid;
use super::history::path_of;
use super::nested_repos::{InnerKind, bundle_name};
use super::program::records;
use super::repository::Checkout;
use super::{CommitId, GitError, Repository};

/// A commit of a submodule, as a tree names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmoduleLink {
    pub path: PathBuf,
    /// Its name in `.gitmodules`, else its path.
    pub name: String,
    pub commit: CommitId,
}

impl SubmoduleLink {
    /// Returns the names of bundles that may contain it.
    pub fn bundles(&self) -> [String; 2] {
        let path = self.path.to_string_lossy();
        [(&*self.name, InnerKind::Module), (&*path, InnerKind::Link)]
            .map(|(place, kind)| bundle_name(place, kind))
    }
}

impl Repository {
    /// Returns the commits of submodules that `tip` names and `base` does not.
    pub fn links_since(
        &self,
        base: &CommitId,
        tip: &CommitId,
    ) -> Result<Vec<SubmoduleLink>, GitError> {
        let compared = || {
            let [old, new] = [base, tip].map(|id| self.git.find_commit(oid(id))?.tree());
            self.git.diff_tree_to_tree(Some(&old?), Some(&new?), None)
        };
        let diff = compared().map_err(GitError::library("compare two trees"))?;
        let of_link = |delta: git2::DiffDelta<'_>| {
            let new = delta.new_file();
            let path = path_of(
                new.path_bytes()
                    .filter(|_| new.mode() == FileMode::Commit)?,
            );
            Some((path, CommitId::from(new.id())))
        };
        let found: Vec<_> = diff.deltas().filter_map(of_link).collect();
        let names = if found.is_empty() {
            HashMap::new()
        } else {
            self.module_names(tip)?
        };
        let named = found.into_iter().map(|(path, commit)| {
            let name = names.get(&path).cloned();
            SubmoduleLink {
                name: name.unwrap_or_else(|| path.to_string_lossy().into_owned()),
                path,
                commit,
            }
        });
        Ok(named.collect())
    }

    /// Returns the names of submodules by path, from `.gitmodules` of `tip`, if it exists.
    fn module_names(&self, tip: &CommitId) -> Result<HashMap<PathBuf, String>, GitError> {
        let main = self.main_checkout();
        let call = self.call(&main).args(["config", "--null", "--blob"]);
        let call = call.arg(format!("{tip}:.gitmodules"));
        let keys = ["--get-regexp", r"^submodule\..*\.path$"];
        let listed = call.args(keys).ending(&[0, 1, 128])?.stdout;
        let named = |record: &[u8]| {
            let record = String::from_utf8_lossy(record);
            let (key, path) = record.split_once('\n')?;
            let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
            Some((PathBuf::from(path), name.to_owned()))
        };
        Ok(records(&listed).filter_map(named).collect())
    }

    /// Returns true if the user's own repository of a submodule has the commit.
    pub fn has_linked(&self, link: &SubmoduleLink) -> bool {
        let path = link.path.to_string_lossy();
        let own = [&*link.name, &path]
            .into_iter()
            .find_map(|place| self.own_repository(place));
        own.is_some_and(|own| own.find_commit(oid(&link.commit)).is_ok())
    }

    /// Returns the user's own repository of the submodule with this name, or at this path of the main work tree.
    fn own_repository(&self, place: &str) -> Option<git2::Repository> {
        let is_plain = |part| matches!(part, Component::Normal(_));
        if !Path::new(place).components().all(is_plain) {
            return None;
        }
        let root = self.main_worktree();
        let places = [self.common_dir().join("modules"), root.to_owned()];
        places
            .into_iter()
            .find_map(|folder| git2::Repository::open(folder.join(place)).ok())
    }

    /// Returns the same repository as a checkout for git.
    pub(super) fn own_module(&self, place: &str) -> Option<Checkout> {
        let found = self.own_repository(place)?;
        Some(Checkout {
            git_dir: found.path().to_owned(),
            root: self.main_worktree().to_owned(),
        })
    }
}
