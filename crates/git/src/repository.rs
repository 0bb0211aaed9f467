//! A repository: its location, opening, and `HEAD`.
//!
//! Knows nothing of operations on it; the other files of the crate add them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::{OsString, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use git2::{Binding, ErrorClass, ErrorCode, Oid, RepositoryOpenFlags};

use super::config_files::ConfigFiles;
use super::gc_guard::CleanUpHeld;
use super::registration::{self, RegisteredHead, Registration};
use super::special_files::remove_endless;
use super::{CommitId, GitError};
use tavern_sys::process::{Spec, run_program};

/// A git repository with a main work tree, opened once. Later changes of references, objects and settings by other
/// processes are seen.
pub struct Repository {
    main_worktree: PathBuf,
    common_dir: PathBuf,
    pub(super) config: Option<ConfigFiles>,
    /// The sandbox in which the user's filters run on files of linked worktrees; empty: no sandbox.
    pub filter_sandbox: Vec<OsString>,
    /// The branch that the work of linked worktrees is merged into; empty: none.
    pub mainline: String,
    /// As seen from the main work tree.
    pub(super) git: git2::Repository,
    /// Object folders of cells that are read too.
    pub(super) seen: RefCell<HashSet<PathBuf>>,
    /// The current hold on clean-ups.
    pub(super) clean_up: RefCell<Weak<CleanUpHeld>>,
    pub(super) known_identity: RefCell<KnownIdentity>,
}

/// The time of the query, and names and addresses of author and committer as git reported them, if any.
pub(super) type KnownIdentity = Option<(Instant, [Option<(String, String)>; 2])>;

/// A git directory and its work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checkout {
    pub(super) git_dir: PathBuf,
    pub(super) root: PathBuf,
}

/// The target of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    Branch {
        name: String,
        commit: CommitId,
    },
    Detached {
        commit: CommitId,
    },
    /// A branch without a commit.
    Unborn {
        name: String,
    },
}

impl Head {
    /// Returns the current commit; `None` if there is none yet.
    pub fn commit(self) -> Option<CommitId> {
        match self {
            Head::Branch { commit, .. } | Head::Detached { commit } => Some(commit),
            Head::Unborn { .. } => None,
        }
    }
}

impl Checkout {
    /// Returns true if a folder above `path` is a link: nothing there can be staged, and git refuses to look.
    pub(super) fn is_behind_link(&self, path: &Path) -> bool {
        path.ancestors()
            .skip(1)
            .any(|above| self.root.join(above).is_symlink())
    }
}

impl Repository {
    /// Finds the repository that contains `dir`, also from a linked worktree, a submodule or a subfolder.
    ///
    /// `GIT_DIR` and similar variables are ignored. Fails with [`GitError::NotARepository`],
    /// [`GitError::DubiousOwnership`], [`GitError::UnsupportedFormat`] or [`GitError::Grafted`]. Fails with
    /// [`GitError::Bare`] for a repository without a known main work tree: a bare one, or one with a separate git
    /// directory that is seen from a linked worktree.
    pub fn discover(dir: &Path) -> Result<Repository, GitError> {
        Repository::discover_with(dir, ConfigFiles::from_environment())
    }

    pub(super) fn discover_with(
        dir: &Path,
        config: Option<ConfigFiles>,
    ) -> Result<Repository, GitError> {
        let no_ceiling: [&Path; 0] = [];
        let open = || git2::Repository::open_ext(dir, RepositoryOpenFlags::empty(), no_ceiling);
        let opened = match open() {
            // libgit2 reads `safe.directory` in fewer places than git, and not as a pattern.
            Err(error) if error.code() == ErrorCode::Owner && is_safe_to_git(dir) => {
                believe_git_about_owners().and_then(|()| open())
            }
            opened => opened,
        };
        let found = opened.map_err(|error| opening(dir, error))?;
        let common_dir = canonical(found.commondir())?;
        if found.object_format() != git2::ObjectFormat::Sha1 {
            return Err(GitError::UnsupportedFormat {
                path: common_dir,
                reason: "SHA-256 ids".to_owned(),
            });
        }
        // libgit2 would obey it, and has no option against it.
        let grafts = common_dir.join("info/grafts");
        if grafts.exists() {
            return Err(GitError::Grafted { path: grafts });
        }
        // A folder that looks like a git directory may have come with a clone; its settings are untrusted.
        let is_within = canonical(dir).is_ok_and(|dir| dir.starts_with(&common_dir));
        if is_within && common_dir.file_name().is_none_or(|name| name != ".git") {
            return Err(GitError::Bare { path: common_dir });
        }
        let main = if found.is_worktree() {
            seen_from_main(&common_dir)?
        } else {
            Some(found)
        };
        let bare = || GitError::Bare {
            path: common_dir.clone(),
        };
        let git = main.ok_or_else(bare)?;
        let main_worktree = canonical(git.workdir().ok_or_else(bare)?)?;
        if let Some(files) = &config {
            let config = files
                .with_local(&common_dir, git.path())
                .map_err(GitError::library("read the configuration"))?;
            git.set_config(&config)
                .map_err(GitError::library("use the configuration"))?;
        }
        Ok(Repository {
            main_worktree,
            common_dir,
            config,
            filter_sandbox: Vec::new(),
            mainline: String::new(),
            git,
            seen: RefCell::default(),
            clean_up: RefCell::default(),
            known_identity: RefCell::default(),
        })
    }

    /// Prevents clean-ups until all values returned by this are dropped. Needed while objects are written that no
    /// reference names.
    pub(super) fn hold_clean_up(&self) -> Result<Arc<CleanUpHeld>, GitError> {
        if let Some(held) = self.clean_up.borrow().upgrade() {
            return Ok(held);
        }
        let held = Arc::new(CleanUpHeld::take(self.common_dir())?);
        *self.clean_up.borrow_mut() = Arc::downgrade(&held);
        Ok(held)
    }

    /// The user's own checkout, an absolute path without links.
    pub fn main_worktree(&self) -> &Path {
        &self.main_worktree
    }

    /// The folder of objects and references, shared by all worktrees (usually `.git`); absolute, without links.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Returns the repository for history queries. libgit2 then reads parents from the commits alone: a forged
    /// `objects/info/commit-graph` could misstate them, and no setting disables it. Each added object folder brings
    /// its own graph.
    #[expect(unsafe_code, reason = "the bindings lack the function")]
    pub(super) fn histories(&self) -> Result<&git2::Repository, git2::Error> {
        unsafe extern "C" {
            fn git_odb_set_commit_graph(odb: *mut c_void, graph: *mut c_void) -> c_int;
        }
        let objects = self.git.odb()?;
        // SAFETY: `objects` lives meanwhile, and without a graph (null) libgit2 reads each commit.
        match unsafe { git_odb_set_commit_graph(objects.raw().cast(), ptr::null_mut()) } {
            0 => Ok(&self.git),
            code => Err(git2::Error::last_error(code)),
        }
    }

    /// `HEAD` of the main work tree.
    pub fn head(&self) -> Result<Head, GitError> {
        self.head_in(&self.common_dir)
    }

    /// `HEAD` of a linked worktree, by the path of its root.
    pub fn head_of(&self, worktree: &Path) -> Result<Head, GitError> {
        self.head_in(&self.checkout(worktree)?.git_dir)
    }

    pub(super) fn head_in(&self, git_dir: &Path) -> Result<Head, GitError> {
        let missing = || GitError::UnknownReference {
            name: "HEAD".to_owned(),
        };
        match registration::head(git_dir)? {
            RegisteredHead::Branch(reference) => {
                let name = reference
                    .strip_prefix("refs/heads/")
                    .unwrap_or(&reference)
                    .to_owned();
                match self.resolved_in(git_dir, &reference) {
                    Ok(oid) => Ok(Head::Branch {
                        name,
                        commit: oid.into(),
                    }),
                    Err(error) if error.code() == ErrorCode::NotFound => Ok(Head::Unborn { name }),
                    Err(error) => Err(GitError::library(format!("read `{reference}`"))(error)),
                }
            }
            RegisteredHead::Commit(id) => Ok(Head::Detached {
                commit: id.parse().map_err(|_| missing())?,
            }),
            RegisteredHead::Nothing => Err(missing()),
        }
    }

    /// Returns git's entry of the worktree, whether it has a cell or not.
    pub(super) fn registered(&self, worktree: &Path) -> Result<Registration, GitError> {
        let path = registration::resolved(worktree)?;
        match registration::find(self.common_dir(), &path)? {
            Some(entry) if path.is_dir() => Ok(entry),
            _ => Err(GitError::NotAWorktree {
                path,
                repository: self.main_worktree().to_owned(),
            }),
        }
    }

    /// Makes the objects of the cell readable from now on.
    pub(super) fn see_objects(&self, cell: &Path) -> Result<(), GitError> {
        self.forget_gone_objects()?;
        let objects = cell.join("objects");
        let Some(name) = objects.to_str() else {
            return Ok(());
        };
        if !self.seen.borrow_mut().insert(objects.clone()) {
            return Ok(());
        }
        self.git
            .odb()
            .and_then(|all| all.add_disk_alternate(name))
            .map_err(GitError::library("read the objects"))
    }

    /// Reopens the object database if an added folder is gone: libgit2 would find no new objects any more.
    pub(super) fn forget_gone_objects(&self) -> Result<(), GitError> {
        let mut seen = self.seen.borrow_mut();
        if seen.iter().all(|objects| objects.is_dir()) {
            return Ok(());
        }
        seen.clear();
        git2::Repository::open_bare(&self.common_dir)
            .and_then(|anew| self.git.set_odb(&anew.odb()?))
            .map_err(GitError::library("read the objects"))
    }

    /// Resolves a reference; in a cell, the cell's own.
    fn resolved_in(&self, git_dir: &Path, reference: &str) -> Result<Oid, git2::Error> {
        let is_own = git_dir != self.common_dir && !git_dir.join("commondir").exists();
        if is_own {
            git2::Repository::open_bare(git_dir)?.refname_to_id(reference)
        } else {
            self.git.refname_to_id(reference)
        }
    }

    pub(super) fn main_checkout(&self) -> Checkout {
        Checkout {
            git_dir: self.common_dir.clone(),
            root: self.main_worktree.clone(),
        }
    }

    /// Returns a registered linked worktree, by the path of its root, with its current cell; never the main work
    /// tree.
    pub(super) fn checkout(&self, worktree: &Path) -> Result<Checkout, GitError> {
        let entry = self.registered(worktree)?;
        let root = registration::resolved(worktree)?;
        let Some(cell) = entry.cell(&self.common_dir) else {
            return Ok(Checkout {
                git_dir: entry.admin,
                root,
            });
        };
        remove_endless(&cell)?;
        self.see_objects(&cell)?;
        Ok(Checkout {
            git_dir: cell,
            root,
        })
    }
}

/// Returns true if git itself accepts the repository that contains `dir`.
fn is_safe_to_git(dir: &Path) -> bool {
    let spec = Spec {
        env_remove: ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"]
            .map(OsString::from)
            .to_vec(),
        ..Spec::new("git", dir).args(["rev-parse", "--git-dir"])
    };
    let ran = run_program(spec, Duration::from_secs(60));
    ran.is_ok_and(|ran| ran.is_some_and(|ran| ran.exit.is_success()))
}

/// Lets libgit2 open repositories of other users from now on.
#[expect(unsafe_code, reason = "libgit2 has no other switch for this")]
fn believe_git_about_owners() -> Result<(), git2::Error> {
    // SAFETY: it sets one number, and no other thread changes it to another value.
    unsafe { git2::opts::set_verify_owner_validation(false) }
}

/// Returns the repository as its main work tree sees it. The guess from its place is valid only if that leads back.
fn seen_from_main(common_dir: &Path) -> Result<Option<git2::Repository>, GitError> {
    let bare = git2::Repository::open(common_dir).map_err(|error| opening(common_dir, error))?;
    let guess = bare
        .workdir()
        .and_then(|guess| git2::Repository::open(guess).ok());
    let leads_back = |main: &git2::Repository| {
        !main.is_worktree() && canonical(main.commondir()).is_ok_and(|dir| dir == common_dir)
    };
    Ok(guess.filter(leads_back))
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
            GitError::UnsupportedFormat {
                path,
                reason: error.message().to_owned(),
            }
        }
        _ => GitError::Library {
            doing: format!("open the repository at `{}`", path.display()),
            source: error,
        },
    }
}

/// libgit2 has no error code for unknown extensions, object formats and versions.
fn is_about_format(message: &str) -> bool {
    [
        "unsupported extension",
        "unsupported repository version",
        "object format",
        "unknown object",
    ]
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
        for dir in [
            root.clone(),
            root.join("deep/er"),
            linked.clone(),
            linked.join("sub"),
            fixture.beside("current"),
        ] {
            let found = discover(&dir).expect("it is inside");
            assert_eq!(found.main_worktree(), root, "from {}", dir.display());
            assert_eq!(
                found.common_dir(),
                root.join(".git"),
                "from {}",
                dir.display()
            );
        }
    }

    #[test]
    fn a_submodule_and_a_separate_git_dir_have_their_own_work_trees() {
        let fixture = Fixture::new();
        let other = Fixture::new();
        fixture.git(&[
            "submodule",
            "--quiet",
            "add",
            &other.root().display().to_string(),
            "mod",
        ]);
        let found = discover(&fixture.root().join("mod")).expect("a submodule is a repository");
        assert_eq!(found.main_worktree(), fixture.root().join("mod"));
        let apart = fixture.beside("apart");
        fs::create_dir(&apart).expect("the folder is writable");
        git_in(
            &apart,
            &[
                "init",
                "--quiet",
                "--initial-branch=master",
                "--separate-git-dir=../elsewhere",
            ],
        );
        let found = discover(&apart).expect("it is a repository");
        assert_eq!(
            (found.main_worktree(), found.common_dir()),
            (apart.as_path(), fixture.beside("elsewhere").as_path())
        );
        assert_eq!(
            found.head().expect("it can be opened again"),
            Head::Unborn {
                name: "master".to_owned()
            }
        );
        git_in(
            &apart,
            &["commit", "--quiet", "--allow-empty", "--message", "first"],
        );
        git_in(
            &apart,
            &["worktree", "add", "--quiet", "--detach", "../of-apart"],
        );
        assert!(matches!(
            discover(&fixture.beside("of-apart")),
            Err(GitError::Bare { .. })
        ));
    }

    #[test]
    fn what_is_no_usable_repository_is_told_apart() {
        let fixture = Fixture::new();
        let none = fixture.beside("");
        assert!(matches!(discover(&none), Err(GitError::NotARepository { dir }) if dir == none));

        fixture.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
        let bare = fixture.beside("bare.git");
        assert!(matches!(discover(&bare), Err(GitError::Bare { path }) if path == bare));
        git_in(
            &bare,
            &["worktree", "add", "--quiet", "--detach", "../of-bare"],
        );
        assert!(
            matches!(discover(&fixture.beside("of-bare")), Err(GitError::Bare { path }) if path == bare)
        );

        fixture.git(&["clone", "--quiet", "--bare", ".", "docs"]);
        let docs = fixture.root().join("docs");
        git_in(&docs, &["config", "core.bare", "false"]);
        git_in(&docs, &["config", "core.worktree", "objects"]);
        assert!(matches!(discover(&docs), Err(GitError::Bare { path }) if path == docs));

        for (name, setting) in [
            ("sha256", "--object-format=sha256"),
            ("tables", "--ref-format=reftable"),
        ] {
            git_in(&fixture.beside(""), &["init", "--quiet", setting, name]);
            let error = discover(&fixture.beside(name)).err();
            assert!(
                matches!(error, Some(GitError::UnsupportedFormat { .. })),
                "{error:?}"
            );
        }
    }

    #[test]
    fn errors_of_opening_are_sorted_by_code_and_words() {
        let error =
            |code, class, text: &str| opening(Path::new("/r"), git2::Error::new(code, class, text));
        let owner = error(
            ErrorCode::Owner,
            ErrorClass::Config,
            "repository path '/r' is not owned by current user",
        );
        assert!(
            matches!(owner, GitError::DubiousOwnership { .. }),
            "{owner:?}"
        );
        let partial = "unsupported extension name extensions.partialclone";
        let partial = error(ErrorCode::GenericError, ErrorClass::Repository, partial);
        assert!(
            matches!(partial, GitError::UnsupportedFormat { .. }),
            "{partial:?}"
        );
        let other = error(
            ErrorCode::GenericError,
            ErrorClass::Os,
            "input/output error",
        );
        assert!(matches!(other, GitError::Library { .. }), "{other:?}");
    }
}
