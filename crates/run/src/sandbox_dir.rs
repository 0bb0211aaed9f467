//! The cell of a sandboxed run: its own git directory, results folder, mailbox, and copies of files that its program
//! would replace. They stand in for Tavern's, git's and the user's.
//!
//! Its contents are an agent's and untrusted: no process outside follows a path into it.
#![expect(
    clippy::disallowed_methods,
    reason = "a run writes its artifacts and worktree"
)]

use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::workspace::Workspace;
use crate::runner::ProgramState;
use tavern_sys::files;

/// The cell of one run.
#[derive(Clone, Debug)]
pub struct Cell {
    pub dir: PathBuf,
}

impl Cell {
    pub fn of(workspace: &Workspace, run: &str) -> Cell {
        Cell {
            dir: workspace.board.cells().join(run),
        }
    }

    /// Returns its git directory.
    pub fn git(&self) -> PathBuf {
        self.dir.join("git")
    }

    /// Returns the file shown in place of the worktree's `.git`.
    pub fn link(&self) -> PathBuf {
        self.dir.join("link")
    }

    /// Returns the folder shown in place of the run's folder.
    pub fn results(&self) -> PathBuf {
        self.dir.join("results")
    }

    /// Returns the mailbox, by which its programs reach the board.
    pub fn mail(&self) -> PathBuf {
        self.dir.join("mail")
    }

    /// Returns the folder for git's output while it reads the cell.
    pub fn out(&self) -> PathBuf {
        self.dir.join("out")
    }

    /// Returns the copy of a file that an agent program replaces.
    pub fn copy_of(&self, file: &Path) -> PathBuf {
        let name = file
            .to_string_lossy()
            .replace('%', "%25")
            .replace('/', "%2F");
        self.dir.join("files").join(name)
    }

    pub fn is_there(&self) -> bool {
        self.dir.exists()
    }

    /// Returns true if its run has no sandbox: it is a git directory, and nothing else.
    pub fn is_open(&self) -> bool {
        !self.mail().exists()
    }

    /// Creates it for a run in `worktree` without a sandbox.
    pub fn make_open(&self, workspace: &Workspace, worktree: &Path) -> Result<(), Error> {
        for folder in [workspace.board.cells(), self.dir.clone()] {
            files::make_own_folder(&folder).map_err(Error::io("create the folder", &folder))?;
        }
        Ok(workspace.repository()?.enter_cell(worktree, &self.git())?)
    }

    /// Creates it for a run in `worktree`; the run's program writes `state`.
    pub fn make(
        &self,
        workspace: &Workspace,
        worktree: &Path,
        state: &ProgramState,
    ) -> Result<(), Error> {
        let making = |path: &Path| {
            files::make_own_folder(path).map_err(Error::io("create the folder", path))
        };
        making(&workspace.board.cells())?;
        for folder in [
            self.dir.clone(),
            self.results(),
            self.dir.join("files"),
            self.mail().join("out"),
            self.mail().join("in"),
        ] {
            making(&folder)?;
        }
        let homes = state.homes.iter().map(|home| home.folder.clone());
        let kept = state
            .homes
            .iter()
            .flat_map(|home| home.kept.iter().map(|name| home.folder.join(name)));
        for folder in state
            .folders
            .iter()
            .cloned()
            .chain(homes)
            .chain(kept.filter(|path| path.extension().is_none()))
        {
            fs::create_dir_all(&folder).map_err(Error::io("make", &folder))?;
        }
        for file in state.files.iter().filter(|file| file.is_file()) {
            fs::copy(file, self.copy_of(file)).map_err(Error::io("copy", file))?;
        }
        if workspace.repository()?.is_worktree(worktree)? {
            workspace.repository()?.make_cell(worktree, &self.git())?;
            let text = [
                b"gitdir: ",
                self.git().as_os_str().as_encoded_bytes(),
                b"\n",
            ]
            .concat();
            files::write(self.link(), &text).map_err(Error::io("write", &self.link()))?;
        }
        Ok(())
    }
}
