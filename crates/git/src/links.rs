//! Commits of submodules that commits here name, and which the owner's own repositories of those submodules have.

use std::path::{Component, Path, PathBuf};

use git2::FileMode;

use super::branch::oid;
use super::history::path_of;
use super::inner::{InnerKind, bundle_name};
use super::program::records;
use super::repository::Checkout;
use super::{CommitId, GitError, Repository};

/// A commit of a submodule, as a tree names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmoduleLink {
    pub path: PathBuf,
    /// As `.gitmodules` calls it; its path if that does not.
    pub name: String,
    pub url: Option<String>,
    pub commit: CommitId,
    /// There was none in its place before.
    pub is_new: bool,
}

impl SubmoduleLink {
    /// The names of bundles that may have it.
    pub fn bundles(&self) -> [String; 2] {
        let path = self.path.to_string_lossy();
        [(&*self.name, InnerKind::Module), (&*path, InnerKind::Link)]
            .map(|(place, kind)| bundle_name(place, kind))
    }
}

impl Repository {
    /// The commits of submodules that `tip` names and `base` does not.
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
            let (old, new) = (delta.old_file(), delta.new_file());
            let path = path_of(
                new.path_bytes()
                    .filter(|_| new.mode() == FileMode::Commit)?,
            );
            Some(SubmoduleLink {
                name: path.to_string_lossy().into_owned(),
                path,
                url: None,
                commit: new.id().into(),
                is_new: old.mode() != FileMode::Commit,
            })
        };
        let mut links: Vec<SubmoduleLink> = diff.deltas().filter_map(of_link).collect();
        if !links.is_empty() {
            self.name_links(&mut links, tip)?;
        }
        Ok(links)
    }

    /// As `.gitmodules` of `tip` has them, if it has one.
    fn name_links(&self, links: &mut [SubmoduleLink], tip: &CommitId) -> Result<(), GitError> {
        let main = self.main_checkout();
        let call = self.call(&main).args(["config", "--null", "--blob"]);
        let call = call.arg(format!("{tip}:.gitmodules"));
        let keys = ["--get-regexp", r"^submodule\..*\.(path|url)$"];
        let listed = call.args(keys).ending(&[0, 1, 128])?.stdout;
        let listed: Vec<_> = records(&listed)
            .filter_map(|record| {
                let record = String::from_utf8_lossy(record);
                let (key, value) = record.split_once('\n')?;
                let (name, kind) = key.strip_prefix("submodule.")?.rsplit_once('.')?;
                Some((name.to_owned(), kind == "path", value.to_owned()))
            })
            .collect();
        for link in links {
            let is_own = |path: &str| Path::new(path) == link.path;
            let own = listed
                .iter()
                .find(|(_, is_path, value)| *is_path && is_own(value));
            let Some((name, ..)) = own else { continue };
            let url = listed
                .iter()
                .find(|(other, is_path, _)| other == name && !is_path);
            link.url = url.map(|(_, _, url)| url.clone());
            link.name.clone_from(name);
        }
        Ok(())
    }

    /// The owner's own repository of a submodule has the commit.
    pub fn has_linked(&self, link: &SubmoduleLink) -> bool {
        let path = link.path.to_string_lossy();
        let own = [&*link.name, &path]
            .into_iter()
            .find_map(|place| self.own_module(place));
        let found = own.and_then(|own| git2::Repository::open(own.git_dir).ok());
        found.is_some_and(|own| own.find_commit(oid(&link.commit)).is_ok())
    }

    /// The owner's own repository of the submodule of this name, or in this place of the main work tree.
    pub(super) fn own_module(&self, place: &str) -> Option<Checkout> {
        let is_plain = |part| matches!(part, Component::Normal(_));
        if !Path::new(place).components().all(is_plain) {
            return None;
        }
        let root = self.main_worktree();
        let places = [self.common_dir().join("modules"), root.to_owned()];
        let found = places
            .into_iter()
            .find_map(|folder| git2::Repository::open(folder.join(place)).ok())?;
        Some(Checkout {
            git_dir: found.path().to_owned(),
            root: root.to_owned(),
        })
    }
}
