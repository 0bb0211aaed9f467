//! A repository: where it is, how it is opened, what its `HEAD` says.
//!
//! Knows nothing of what is done in it; the other files of the room add that.

use std::fs;
use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode, RepositoryOpenFlags};

use super::config_files::ConfigFiles;
use super::program::{Call, Place};
use super::registration;
use super::{CommitId, GitError};

/// A git repository with a main work tree. It holds paths only, and each operation opens the repository afresh: so it is
/// `Send`, `Sync` and cheap to clone, and never acts on what it read earlier.
#[derive(Clone, Debug)]
pub struct Repository {
    main_worktree: PathBuf,
    common_dir: PathBuf,
    config: Option<ConfigFiles>,
}

/// What `HEAD` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    Branch {
        name: String,
        commit: CommitId,
    },
    Detached {
        commit: CommitId,
    },
    /// A branch that has no commit yet.
    Unborn {
        name: String,
    },
}

impl Repository {
    /// The repository that `dir` is in, also from within a linked worktree, a submodule or a subfolder.
    ///
    /// `GIT_DIR` and its like are not looked at. [`GitError::NotARepository`], [`GitError::Bare`] (also a bare repository or
    /// one with a separate git directory, seen from a linked worktree: git doesn't know its main work tree either), [`GitError::DubiousOwnership`], [`GitError::UnsupportedFormat`].
    pub fn discover(dir: &Path) -> Result<Repository, GitError> {
        Repository::discover_with(dir, ConfigFiles::from_environment())
    }

    pub(super) fn discover_with(dir: &Path, config: Option<ConfigFiles>) -> Result<Repository, GitError> {
        let no_ceiling: [&Path; 0] = [];
        let found = git2::Repository::open_ext(dir, RepositoryOpenFlags::empty(), no_ceiling)
            .map_err(|error| opening(dir, error))?;
        let common_dir = canonical(found.commondir())?;
        if found.object_format() != git2::ObjectFormat::Sha1 {
            return Err(GitError::UnsupportedFormat { path: common_dir, reason: "SHA-256 ids".to_owned() });
        }
        let main_worktree =
            if found.is_worktree() { main_worktree(&common_dir)? } else { found.workdir().map(Path::to_owned) };
        match main_worktree {
            Some(path) => Ok(Repository { main_worktree: canonical(&path)?, common_dir, config }),
            None => Err(GitError::Bare { path: common_dir }),
        }
    }

    /// The user's own checkout, an absolute path without links.
    pub fn main_worktree(&self) -> &Path {
        &self.main_worktree
    }

    /// Where objects and references are, the same for all worktrees (usually `.git`); absolute, without links.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// `HEAD` of the main work tree.
    pub fn head(&self) -> Result<Head, GitError> {
        self.head_of(&self.main_worktree)
    }

    /// `HEAD` of the main work tree or of a linked one.
    pub fn head_of(&self, worktree: &Path) -> Result<Head, GitError> {
        let place = self.place(worktree)?;
        let repository = self.open_at(&place.git_dir)?;
        let head = repository.find_reference("HEAD").map_err(GitError::library("read HEAD"))?;
        if let Ok(Some(target)) = head.symbolic_target() {
            let name = target.strip_prefix("refs/heads/").unwrap_or(target).to_owned();
            return match repository.refname_to_id(target) {
                Ok(oid) => Ok(Head::Branch { name, commit: oid.into() }),
                Err(error) if error.code() == ErrorCode::NotFound => Ok(Head::Unborn { name }),
                Err(error) => Err(GitError::library(format!("read `{target}`"))(error)),
            };
        }
        let oid = head.target().ok_or_else(|| GitError::UnknownReference { name: "HEAD".to_owned() })?;
        Ok(Head::Detached { commit: oid.into() })
    }

    /// The repository as libgit2 sees it from the main work tree.
    pub(super) fn open(&self) -> Result<git2::Repository, GitError> {
        self.open_at(&self.main_worktree)
    }

    /// As seen from a work tree or with a git directory.
    pub(super) fn open_at(&self, path: &Path) -> Result<git2::Repository, GitError> {
        let repository = git2::Repository::open(path).map_err(|error| opening(path, error))?;
        if let Some(files) = &self.config {
            let config = files
                .with_local(&self.common_dir, repository.path())
                .map_err(GitError::library("read the configuration"))?;
            repository.set_config(&config).map_err(GitError::library("use the configuration"))?;
        }
        Ok(repository)
    }

    pub(super) fn config(&self) -> Option<&ConfigFiles> {
        self.config.as_ref()
    }

    pub(super) fn main_place(&self) -> Place {
        Place { git_dir: self.common_dir.clone(), work_tree: self.main_worktree.clone() }
    }

    /// The main work tree or a registered linked one, by the path of its root.
    pub(super) fn place(&self, worktree: &Path) -> Result<Place, GitError> {
        if canonical(worktree).is_ok_and(|path| path == self.main_worktree) {
            return Ok(self.main_place());
        }
        self.linked_place(worktree)
    }

    /// A registered linked worktree, by the path of its root; never the main work tree.
    pub(super) fn linked_place(&self, worktree: &Path) -> Result<Place, GitError> {
        let path = registration::resolved(worktree)?;
        match registration::find(&self.common_dir, &path)? {
            Some(found) if path.is_dir() => Ok(Place { git_dir: found.admin, work_tree: path }),
            _ => Err(GitError::NotAWorktree { path, repository: self.main_worktree.clone() }),
        }
    }

    pub(super) fn call(&self, place: &Place) -> Call {
        Call::new(place, self.config()).of(&self.common_dir, &self.main_worktree)
    }
}

/// The work tree that the common directory belongs to. The guess from its place is right only if that leads back.
fn main_worktree(common_dir: &Path) -> Result<Option<PathBuf>, GitError> {
    let main = git2::Repository::open(common_dir).map_err(|error| opening(common_dir, error))?;
    let Some(guess) = main.workdir() else { return Ok(None) };
    let leads_back = git2::Repository::open(guess)
        .is_ok_and(|back| canonical(back.commondir()).is_ok_and(|dir| dir == common_dir) && !back.is_worktree());
    Ok(leads_back.then(|| guess.to_owned()))
}

fn canonical(path: &Path) -> Result<PathBuf, GitError> {
    fs::canonicalize(path).map_err(GitError::io("resolve", path))
}

fn opening(path: &Path, error: git2::Error) -> GitError {
    let path = path.to_owned();
    match (error.code(), error.class()) {
        (ErrorCode::NotFound, _) => GitError::NotARepository { dir: path },
        (ErrorCode::Owner, _) => GitError::DubiousOwnership { path },
        (_, ErrorClass::Repository) if is_about_format(error.message()) => {
            GitError::UnsupportedFormat { path, reason: error.message().to_owned() }
        }
        _ => GitError::Library { doing: format!("open the repository at `{}`", path.display()), source: error },
    }
}

/// libgit2 has no code of its own for extensions, object formats and versions that it doesn't know.
fn is_about_format(message: &str) -> bool {
    ["unsupported extension", "unsupported repository version", "object format", "unknown object"]
        .iter()
        .any(|start| message.contains(start))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, discover, git_in};
    use super::*;

    #[test]
    fn it_is_found_from_everywhere_inside() {
        let fixture = Fixture::new();
        let root = fixture.root();
        fs::create_dir_all(root.join("deep/er")).expect("the folder is writable");
        let linked = fixture.beside("linked");
        fixture.git(&["worktree", "add", "--quiet", "--detach", "../linked"]);
        fs::create_dir(linked.join("sub")).expect("the folder is writable");
        for dir in [root.clone(), root.join("deep/er"), linked.clone(), linked.join("sub"), fixture.beside("current")] {
            let found = discover(&dir).expect("it is inside");
            assert_eq!(found.main_worktree(), root, "from {}", dir.display());
            assert_eq!(found.common_dir(), root.join(".git"), "from {}", dir.display());
        }
    }

    #[test]
    fn a_submodule_and_a_separate_git_dir_have_their_own_work_trees() {
        let fixture = Fixture::new();
        let other = Fixture::new();
        fixture.git(&["submodule", "--quiet", "add", &other.root().display().to_string(), "mod"]);
        let found = discover(&fixture.root().join("mod")).expect("a submodule is a repository");
        assert_eq!(found.main_worktree(), fixture.root().join("mod"));
        let apart = fixture.beside("apart");
        fs::create_dir(&apart).expect("the folder is writable");
        git_in(&apart, &["init", "--quiet", "--initial-branch=master", "--separate-git-dir=../elsewhere"]);
        let found = discover(&apart).expect("it is a repository");
        assert_eq!(
            (found.main_worktree(), found.common_dir()),
            (apart.as_path(), fixture.beside("elsewhere").as_path())
        );
        assert_eq!(found.head().expect("it can be opened again"), Head::Unborn { name: "master".to_owned() });
        git_in(&apart, &["commit", "--quiet", "--allow-empty", "--message", "first"]);
        git_in(&apart, &["worktree", "add", "--quiet", "--detach", "../of-apart"]);
        assert!(matches!(discover(&fixture.beside("of-apart")), Err(GitError::Bare { .. })));
    }

    #[test]
    fn what_is_no_usable_repository_is_told_apart() {
        let fixture = Fixture::new();
        let none = fixture.beside("");
        assert!(matches!(discover(&none), Err(GitError::NotARepository { dir }) if dir == none));

        fixture.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
        let bare = fixture.beside("bare.git");
        assert!(matches!(discover(&bare), Err(GitError::Bare { path }) if path == bare));
        git_in(&bare, &["worktree", "add", "--quiet", "--detach", "../of-bare"]);
        assert!(matches!(discover(&fixture.beside("of-bare")), Err(GitError::Bare { path }) if path == bare));

        for (name, setting) in [("sha256", "--object-format=sha256"), ("tables", "--ref-format=reftable")] {
            git_in(&fixture.beside(""), &["init", "--quiet", setting, name]);
            let error = discover(&fixture.beside(name)).expect_err("libgit2 can't read it");
            assert!(matches!(error, GitError::UnsupportedFormat { .. }), "{error:?}");
        }
    }

    #[test]
    fn errors_of_opening_are_sorted_by_code_and_words() {
        let error = |code, class, text: &str| opening(Path::new("/r"), git2::Error::new(code, class, text));
        let owner = error(ErrorCode::Owner, ErrorClass::Config, "repository path '/r' is not owned by current user");
        assert!(matches!(owner, GitError::DubiousOwnership { .. }), "{owner:?}");
        let partial = "unsupported extension name extensions.partialclone";
        let partial = error(ErrorCode::GenericError, ErrorClass::Repository, partial);
        assert!(matches!(partial, GitError::UnsupportedFormat { .. }), "{partial:?}");
        let other = error(ErrorCode::GenericError, ErrorClass::Os, "input/output error");
        assert!(matches!(other, GitError::Library { .. }), "{other:?}");
    }

    #[test]
    fn head_is_a_branch_a_commit_or_not_yet_born() {
        let fixture = Fixture::unborn();
        let repository = fixture.repository();
        assert_eq!(repository.head().expect("HEAD is there"), Head::Unborn { name: "main".to_owned() });
        let commit = fixture.commit(&[("a", "one\n")], "first");
        let on_branch = Head::Branch { name: "main".to_owned(), commit: commit.clone() };
        assert_eq!(repository.head().expect("HEAD is there"), on_branch);
        fixture.git(&["worktree", "add", "--quiet", "-b", "topic/x", "../linked"]);
        fixture.git(&["checkout", "--quiet", "--detach"]);
        assert_eq!(repository.head().expect("HEAD is there"), Head::Detached { commit: commit.clone() });
        let linked = repository.head_of(&fixture.beside("linked")).expect("it is registered");
        assert_eq!(linked, Head::Branch { name: "topic/x".to_owned(), commit });
    }
}
