//! Finds the board: `.tavern/` at the root of the main work tree, from any folder of any work tree. The private part is
//! in the git directory, where no checkout, stash, clean or clone may touch it.
//!
//! Reads git's own link files rather than opening the repository, so that a claim needs no git library.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::atomic_write::replace_own;
use super::content::LastRead;
use super::dry_run::DryRunState;
use super::error::Error;
use super::git_queries::AskGit;
use super::state_cache::LastStates;
use tavern_sys::files;

/// A board on disk. Cheap to make; holds nothing open.
#[derive(Clone, Debug)]
pub struct Board {
    dir: PathBuf,
    root: PathBuf,
    private: PathBuf,
    /// Present in a dry run.
    pub(super) rehearsal: Option<Arc<DryRunState>>,
    /// The queries to git about the origin of a text.
    pub(super) git: Option<AskGit>,
    /// A person trusts all content for this run.
    trusts_all: bool,
    /// The actor of all changes by this process.
    actor: Option<String>,
    pub(super) last_read: Arc<LastRead>,
    pub(super) last_states: Arc<LastStates>,
}

/// The folders of the board that git ignores, created on first use.
pub(super) const VOLATILE: [&str; 5] = ["agents", "inbox", "quota", "runs", "worktrees"];

/// The folders of the private part, created on first use.
pub(super) const PRIVATE: [&str; 5] = ["events", "leases", "seen", "slots", "typed"];

/// The private part's own folder in the git directory.
const PRIVATE_FOLDER: &str = "tavern";

/// The content of `.tavern/.gitignore` on a board made for plain task files.
pub const HIDES_ALL: &str = "*\n";

/// The content of `.tavern/.gitignore` on a board that `tavern-init` made.
pub(super) const GITIGNORE: &str = include_str!("../../../templates/gitignore");

/// Returns the names in `.tavern/` that are Tavern's own and never committed.
pub fn own_names() -> impl Iterator<Item = &'static str> {
    GITIGNORE
        .lines()
        .filter_map(|line| line.strip_prefix('/'))
        .map(|name| name.trim_end_matches('/'))
}

impl Board {
    /// Returns the board of the repository around `from`; `Error::NoBoard` if it has none yet.
    pub fn find(from: &Path) -> Result<Board, Error> {
        let (board, found) = Board::placed(from)?;
        match found {
            Ok(found) if found.is_dir() => board.current(),
            Ok(_) => Err(Error::io("enter", &board.dir)(
                ErrorKind::NotADirectory.into(),
            )),
            Err(_) => Err(Error::NoBoard(board.root)),
        }
    }

    /// Returns the board named by `TAVERN_DIR`: the `.tavern` folder itself, or its parent. A linked worktree's
    /// `.tavern` is a checked-out copy and leads to the real board.
    pub fn open(dir: &Path) -> Result<Board, Error> {
        let dir = if dir.join(".tavern").is_dir() {
            dir.join(".tavern")
        } else {
            dir.to_owned()
        };
        let dir = fs::canonicalize(&dir).map_err(|_| Error::NoBoard(dir))?;
        let root = dir.parent().map_or_else(|| dir.clone(), Path::to_owned);
        let dot_git = root.join(".git");
        if dir.ends_with(".tavern")
            && dot_git.is_file()
            && linked_worktree(&root, &dot_git)? != root
        {
            return Board::find(&root);
        }
        Board::at(dir, root).current()
    }

    /// Returns the board of the repository around `from`, whether it exists or not.
    pub fn place(from: &Path) -> Result<Board, Error> {
        Board::placed(from).map(|(board, _)| board)
    }

    /// As [`Board::place`], with the metadata found there.
    fn placed(from: &Path) -> Result<(Board, io::Result<fs::Metadata>), Error> {
        let root = main_worktree(from)?;
        let dir = root.join(".tavern");
        let found = fs::symlink_metadata(&dir);
        if found.as_ref().is_ok_and(fs::Metadata::is_symlink) {
            return Err(Error::io("enter", &dir)(files::refused(files::A_LINK)));
        }
        Ok((Board::at(dir, root), found))
    }

    /// Both paths are free of links.
    fn at(dir: PathBuf, root: PathBuf) -> Board {
        let git = Some(&root)
            .filter(|_| dir.ends_with(".tavern"))
            .and_then(|root| {
                // Files are renamed between the two, so they must be on one device.
                let device = fs::metadata(root).ok()?.dev();
                git_dir(root).filter(|(_, there)| *there == device)
            });
        let private = git.map_or_else(|| dir.clone(), |(git, _)| git.join(PRIVATE_FOLDER));
        let (last_read, last_states) = Default::default();
        Board {
            dir,
            root,
            private,
            rehearsal: None,
            git: None,
            trusts_all: false,
            actor: None,
            last_read,
            last_states,
        }
    }

    /// Refuses a board with its private part at the place of earlier versions.
    fn current(self) -> Result<Board, Error> {
        if self.is_of_older_version() {
            Err(Error::OlderBoard(self.dir))
        } else {
            Ok(self)
        }
    }

    /// Returns true if the private part is still in `.tavern/`, as in earlier versions.
    pub fn is_of_older_version(&self) -> bool {
        self.private != self.dir
            && !self.private.join("events").exists()
            && self.dir.join("events").is_dir()
    }

    /// Returns the same board for a dry run: changes are decided without the lock and kept in memory; nothing is
    /// written.
    pub fn dry(mut self) -> Board {
        self.rehearsal = Some(Arc::default());
        self.last_states = Arc::default();
        self
    }

    /// Returns the same board with queries to git about texts that Tavern didn't write: a branch switch, say, is no
    /// stale save.
    pub fn with_git(mut self, ask: AskGit) -> Board {
        self.git = Some(ask);
        self
    }

    /// Returns the same board, with all content trusted, of any origin.
    pub fn trusting_all(self) -> Board {
        Board {
            trusts_all: true,
            ..self
        }
    }

    /// Returns true if all content may be run in this process.
    pub fn trusts_all(&self) -> bool {
        self.trusts_all
    }

    /// Returns the same board, on which all changes by this process are `actor`'s.
    pub fn acted_on_by(self, actor: Option<String>) -> Board {
        Board { actor, ..self }
    }

    pub(super) fn actor(&self) -> Option<&str> {
        self.actor.as_deref()
    }

    /// Returns true in a dry run: side effects outside of the board must be left out too.
    pub fn is_dry(&self) -> bool {
        self.rehearsal.is_some()
    }

    /// `.tavern/` itself, absolute.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The main work tree, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.dir.join(relative)
    }

    /// Returns a path in the private part: `tavern/` in the git directory, which git never cleans, stashes, switches or
    /// clones. On a board without a repository, or with one on another disk, this is `.tavern/` itself.
    pub fn private(&self, relative: &str) -> PathBuf {
        self.private.join(relative)
    }

    /// Returns the folder of the runs' own git directories. It is beside the private part, since it holds work.
    pub fn cells(&self) -> PathBuf {
        if self.is_exposed() {
            self.dir.join("cells")
        } else {
            self.private.with_file_name("tavern-cells")
        }
    }

    pub fn worktree(&self, task: &tavern_core::task::TaskId) -> PathBuf {
        self.dir.join("worktrees").join(task.as_str())
    }

    /// Returns the worktree in which a reviewer or planner reads the task's work at one commit. No ID has an `@`.
    pub fn view(&self, task: &tavern_core::task::TaskId) -> PathBuf {
        self.path("worktrees").join(format!("{task}@view"))
    }

    pub fn run_dir(&self, run: &str) -> PathBuf {
        self.dir.join("runs").join(run)
    }

    /// Creates the missing ignored folders. On a board made without `tavern-init` (`tavern-drain TODO.md` in a plain
    /// repository), the whole of `.tavern/` is ignored, by a file that ignores itself too.
    pub fn make_folders(&self) -> Result<(), Error> {
        let ignore = self.dir.join(".gitignore");
        // Written first, so that a crash leaves nothing that git would show.
        if self.is_volatile() && !ignore.exists() {
            files::make_folder(&self.dir).map_err(Error::io("create the folder", &self.dir))?;
            replace_own(&ignore, HIDES_ALL.as_bytes())?;
        }
        // Without a repository the private part is the board itself, which other users may read.
        let private = Some(self.private.clone()).filter(|private| *private != self.dir);
        let folders = private
            .into_iter()
            .chain(VOLATILE.map(|folder| self.dir.join(folder)));
        for path in folders.chain(PRIVATE.map(|folder| self.private.join(folder))) {
            files::make_own_folder(&path).map_err(Error::io("create the folder", &path))?;
        }
        Ok(())
    }

    /// Returns true if the private part is `.tavern/` itself, where a commit may have put files.
    pub fn is_exposed(&self) -> bool {
        self.private == self.dir
    }

    /// Returns true if `tavern-init` was never run here: the folder only holds remains of a drain of a plain file.
    pub fn is_volatile(&self) -> bool {
        !self.dir.join("config.yaml").exists()
    }
}

/// A file in a run's own git directory that names the repository's.
const MAIN: &str = "tavern-main";

/// Returns the git directory of the work tree at `root`, resolved if it is a link, and its device.
fn git_dir(root: &Path) -> Option<(PathBuf, u64)> {
    let dot_git = root.join(".git");
    let found = fs::symlink_metadata(&dot_git).ok()?;
    if found.is_dir() {
        return Some((dot_git, found.dev()));
    }
    let git = if found.is_symlink() && dot_git.is_dir() {
        dot_git
    } else {
        let link = fs::read_to_string(&dot_git).ok()?;
        root.join(link.strip_prefix("gitdir:")?.trim())
    };
    let git = fs::canonicalize(git).ok()?;
    let device = fs::metadata(&git).ok()?.dev();
    Some((git, device))
}

/// Returns the root of the main work tree of the repository around `from`.
fn main_worktree(from: &Path) -> Result<PathBuf, Error> {
    let from = files::real(from).map_err(Error::io("enter", from))?;
    for folder in from.ancestors() {
        let dot_git = folder.join(".git");
        if dot_git.is_dir() {
            return Ok(folder.to_owned());
        }
        if dot_git.is_file() {
            return linked_worktree(folder, &dot_git);
        }
        let looks_bare = folder.join("HEAD").is_file()
            && folder.join("objects").is_dir()
            && folder.join("refs").is_dir();
        if looks_bare {
            return worktree_of(folder);
        }
    }
    Err(Error::NoRepository(from))
}

/// Follows a `.git` file: a linked work tree leads by `commondir` to the main one. A submodule has no `commondir` and
/// is a repository of its own.
fn linked_worktree(folder: &Path, dot_git: &Path) -> Result<PathBuf, Error> {
    let link = fs::read_to_string(dot_git).map_err(Error::io("read", dot_git))?;
    let git_dir = link
        .strip_prefix("gitdir:")
        .map(str::trim)
        .ok_or_else(|| Error::NoRepository(folder.to_owned()))?;
    let git_dir = folder.join(git_dir);
    let read = |name: &str| fs::read_to_string(git_dir.join(name));
    // A run's own git directory belongs to no worktree.
    let Ok(common) = read("commondir").or_else(|_| read(MAIN)) else {
        return Ok(folder.to_owned());
    };
    let common = git_dir.join(common.trim());
    let common = fs::canonicalize(&common).map_err(Error::io("follow", &common))?;
    worktree_of(&common)
}

/// Returns the main work tree of a git directory: its parent, or the one its settings name. A submodule's settings do;
/// for other separate git directories git itself doesn't know.
fn worktree_of(git_dir: &Path) -> Result<PathBuf, Error> {
    if let (Some(name), Some(parent)) = (git_dir.file_name(), git_dir.parent())
        && name == ".git"
    {
        return Ok(parent.to_owned());
    }
    let settings = ["config.worktree", "config"]
        .map(|name| fs::read_to_string(git_dir.join(name)).unwrap_or_default());
    match settings
        .iter()
        .find_map(|text| core_setting(text, "worktree"))
    {
        Some(place) => {
            let place = git_dir.join(place);
            fs::canonicalize(&place).map_err(Error::io("follow", &place))
        }
        None if settings
            .iter()
            .any(|text| core_setting(text, "bare") == Some("true")) =>
        {
            Err(Error::Bare(git_dir.to_owned()))
        }
        None => Err(Error::NoWorktree(git_dir.to_owned())),
    }
}

/// Returns the value of `core.KEY` in a git settings file, as git writes it.
fn core_setting<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[core]")
        .skip(1);
    let mut own = lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='));
    own.find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().trim_matches('"'))
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_writes_them() {
        let text = "[other]\n\tworktree = no\n[core]\n\tbare = false\n\tworktree = \"../a b;c\"\n[last]\n\tkey = 1\n";
        assert_eq!(
            ["worktree", "bare", "key"].map(|key| core_setting(text, key)),
            [Some("../a b;c"), Some("false"), None]
        );
    }

    #[test]
    fn a_board_is_found_through_links() {
        let scratch = tempfile::tempdir().expect("a temp dir");
        let root = scratch.path().canonicalize().expect("it exists");
        let git_dir = root.join("main/.git/worktrees/w");
        fs::create_dir_all(&git_dir).expect("made");
        fs::create_dir_all(root.join("main/.tavern/worktrees/T-1/src")).expect("made");
        fs::write(git_dir.join("commondir"), "../..\n").expect("written");
        let link = format!("gitdir: {}\n", git_dir.display());
        fs::write(root.join("main/.tavern/worktrees/T-1/.git"), link).expect("written");
        // The worktree's own checked-out copy of the board is never a second truth.
        fs::create_dir_all(root.join("main/.tavern/worktrees/T-1/.tavern")).expect("made");
        for from in ["main", "main/.tavern/worktrees/T-1/src", "main/.git"] {
            let board = Board::find(&root.join(from)).expect("found");
            assert_eq!(board.dir(), root.join("main/.tavern"), "from {from}");
        }
        assert!(matches!(Board::find(&root), Err(Error::NoRepository(_))));
        fs::remove_dir_all(root.join("main/.tavern")).expect("removed");
        assert!(matches!(
            Board::find(&root.join("main")),
            Err(Error::NoBoard(_))
        ));
    }
}
