//! Where a program works: the board and the site, from the shared flags and the folder around it.

use std::path::PathBuf;

use crate::config::{Commit, Config};
use crate::interrupt::Interrupt;
use crate::run::Site;
use crate::run::commit::{Moment, commit_queues};
use crate::store::{Board, Error, Queue};

use super::{CliError, Context};

impl Context {
    /// The folder that the program was started in.
    pub fn here(&self) -> PathBuf {
        // A folder that was removed under our feet: the board's own errors will name it.
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
    }

    /// The board: that of `--dir`, else of the repository around.
    pub fn board(&self) -> Result<Board, CliError> {
        match &self.shared.dir {
            Some(dir) => Ok(Board::open(dir)?),
            None => Ok(Board::find(&self.here())?),
        }
    }

    /// The board, made for the occasion if there is none: to work a plain task file.
    pub fn board_or_new(&self) -> Result<Board, CliError> {
        match self.board() {
            Err(_) if self.shared.dir.is_none() => {
                let board = Board::place(&self.here())?;
                board.make_folders()?;
                Ok(board)
            }
            other => other,
        }
    }

    /// The board with its configuration and repository. Signals raise the site's interrupt from now on.
    pub fn site(&self, board: Board) -> Result<Site, CliError> {
        Ok(Site::open(board, self.interrupt()?.clone())?)
    }

    /// The site of a program that changes the board in steps which need no polite end.
    pub fn quick_site(&self, board: Board) -> Result<Site, CliError> {
        Ok(Site::open(board, Interrupt::new())?)
    }

    /// As [`Context::quick_site`], for a program that may do without the repository.
    pub fn light_site(&self, board: Board) -> Result<Site, CliError> {
        Ok(Site::unopened(board, Interrupt::new())?)
    }

    /// Commits the queues after a verb that may have changed them, where config.yaml asks for it. What can't be done is
    /// told, and fails nothing: the transition has happened, and the next commit takes it along.
    pub(super) fn commit_queues(&self) {
        let is_due = |board: &Board| Config::load(board.dir()).is_ok_and(|config| config.commit == Commit::Transition);
        let Some(board) = self.board().ok().filter(is_due) else { return };
        // Whoever reads our output need not wait for git.
        drop(self.out.flush());
        if let Ok(site) = self.quick_site(board)
            && let Some(why) = commit_queues(&site, Moment::Transition)
        {
            self.out.note(why);
        }
    }

    /// The queues that were named, or all of the board's.
    pub fn queues(&self, board: &Board, names: &[String]) -> Result<Vec<Queue>, CliError> {
        if names.is_empty() {
            return Ok(board.queues()?);
        }
        let here = self.here();
        names.iter().map(|name| board.queue(name, &here)).collect::<Result<_, Error>>().map_err(CliError::from)
    }
}
