//! Locates a program's board and workspace, from the shared flags and the surrounding folder.

use std::fs;
use std::path::{Path, PathBuf};

use tavern_core::document::parse;
use tavern_core::problem::one_line;
use tavern_core::suggestion::nearest;
use tavern_git::{BOARD_BRANCH, GitError, Repository};
use tavern_run::{ASK_GIT, Workspace, refuse_tracked};
use tavern_store::{Board, Error, Lost, Queue, fault_of_name};
use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::interrupt::Interrupt;
use tavern_sys::process::quoted;

use super::init::QUEUE;
use super::run_program::run_sibling;
use super::shared::{held_here, known_person};
use super::{CliError, Context, Exit, OwnRun, hints};

impl Context {
    /// Returns the folder that the program was started in.
    pub fn here(&self) -> PathBuf {
        // The folder may have been removed; the board's own errors will name it.
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
    }

    /// Returns the board of `--dir`, else of the surrounding repository.
    pub fn board(&self) -> Result<Board, CliError> {
        let board = self.board_around(&self.here())?;
        drop(self.found.set(board.clone()));
        Ok(board)
    }

    /// Returns the board of `--dir`, else of the repository around `folder`.
    fn board_around(&self, folder: &Path) -> Result<Board, CliError> {
        let board = match &self.shared.dir {
            Some(dir) => Board::open(dir)?,
            None => self.found_or_restored(folder)?,
        };
        // The log itself could have come with a commit.
        if board.is_exposed() {
            match Repository::discover(board.root()) {
                Err(GitError::NotARepository { .. }) => {}
                repository => refuse_tracked(&board, &repository?)?,
            }
        }
        Ok(self.dried(board))
    }

    /// Returns the board of the repository around `folder`. Restores its queues first if all are gone, such as after
    /// `git clean -fdx`.
    fn found_or_restored(&self, folder: &Path) -> Result<Board, CliError> {
        let found = Board::find(folder);
        if found
            .as_ref()
            .is_ok_and(|board| board.path("queues").exists())
            || self.is_dry
        {
            return Ok(found?);
        }
        let Ok(place) = Board::place(folder) else {
            return Ok(found?);
        };
        let at = place.path("queues");
        // An emptied task file is no queue of a board.
        let is_its_own = |lost: &Lost| lost.queue.path.starts_with(&at);
        let is_lost = place
            .lost_queues()
            .is_ok_and(|lost| lost.iter().any(is_its_own));
        if is_lost && run_sibling("init", folder, &place).is_ok() {
            let text = format!("{} was missing; its queues were restored", at.display());
            self.out.note(text);
            return Ok(Board::find(folder)?);
        }
        let has_remote = || {
            let repository = Repository::discover(place.root()).ok()?;
            repository.remote_board().ok()?
        };
        // A board of task files has no queues.
        if found.is_ok() && !place.is_volatile() && has_remote().is_some() {
            let text =
                format!("the queues are on the remote's {BOARD_BRANCH}; restore them: tavern init");
            self.out.note(text);
        }
        Ok(found?)
    }

    /// Returns `board` set up from the shared flags; a dry run writes nothing.
    pub(super) fn dried(&self, board: Board) -> Board {
        let board = board.with_git(ASK_GIT).acted_on_by(known_person());
        let board = if self.shared.trust {
            board.trusting_all()
        } else {
            board
        };
        if self.is_dry { board.dry() } else { board }
    }

    /// Returns the board, or the place of a new one for plain task `files`, in the repository of the first file.
    /// Creates nothing yet.
    pub fn board_or_place(&self, files: &[String]) -> Result<Board, CliError> {
        let here = self.here();
        let path = files
            .first()
            .map(|file| here.join(file))
            .filter(|path| path.is_file());
        let folder = path
            .as_deref()
            .and_then(Path::parent)
            .filter(|folder| Board::place(folder).is_ok());
        let folder = folder.unwrap_or(&here);
        match Board::find(folder) {
            Err(Error::NoBoard(_)) if self.shared.dir.is_none() => {
                Ok(self.dried(Board::place(folder)?))
            }
            _ => self.board_around(folder),
        }
    }

    /// Returns the board with its configuration and repository. From now on signals raise the workspace's interrupt.
    pub fn site(&self, board: Board) -> Result<Workspace, CliError> {
        let mut workspace = Workspace::open(board, self.interrupt()?.clone())?;
        workspace.todo = hints::lack;
        Ok(workspace)
    }

    /// Returns the workspace for a program with steps that need no graceful end.
    pub fn quick_site(&self, board: Board) -> Result<Workspace, CliError> {
        Ok(Workspace::open(board, Interrupt::new())?)
    }

    /// Like [`Context::quick_site`], for a program that can work without the repository.
    pub fn light_site(&self, board: Board) -> Result<Workspace, CliError> {
        Ok(Workspace::unopened(board, Interrupt::new())?)
    }

    /// Refuses to work off items within the run of one: the two would wait for each other.
    pub(super) fn holds_nothing(&self, board: &Board) -> Result<(), CliError> {
        let held = match held_here() {
            Some((task, token)) => {
                let lease = board
                    .lease(&task)?
                    .filter(|lease| lease.token == token && lease.is_live(clock::now()));
                lease.map(|_| format!("this shell holds `{task}`"))
            }
            None => None,
        };
        // The run is known even if the agent has changed its environment.
        let held =
            held.or_else(|| OwnRun::around(board).map(|own| format!("this is run {}", own.run)));
        held.map_or(Ok(()), |held| {
            let message = format!("{held}, and an agent started here would wait for it");
            Err(CliError::refused(
                message,
                "end it first; to hand out parts of it: tavern add \"…\" --parent",
            ))
        })
    }

    /// Returns the queues that `--queue` names, or all of the board's.
    pub fn queues(&self, board: &Board, names: &[String]) -> Result<Vec<Queue>, CliError> {
        self.all_named(board, names, FLAG)
    }

    /// Like [`Context::queues`], for programs that take queues as arguments.
    pub fn files(&self, board: &Board, names: &[String]) -> Result<Vec<Queue>, CliError> {
        self.all_named(board, names, "")
    }

    fn all_named(
        &self,
        board: &Board,
        names: &[String],
        flag: &str,
    ) -> Result<Vec<Queue>, CliError> {
        let there = take_over(board)?;
        if names.is_empty() {
            return Ok(board.by_priority(there));
        }
        let mut queues: Vec<Queue> = Vec::with_capacity(names.len());
        for name in names {
            let queue = self.named_queue(board, name, flag)?;
            queues.extend((!queues.contains(&queue)).then_some(queue));
        }
        Ok(queues)
    }

    /// Returns the queues for an agent of `role`: those in `named`, else its role's. Empty means all of the board's.
    pub(super) fn names_for(
        workspace: &Workspace,
        role: &str,
        named: &[String],
    ) -> Result<Vec<String>, CliError> {
        let of_role = &workspace.role(role)?.queues;
        Ok(if named.is_empty() { of_role } else { named }.to_vec())
    }

    /// Returns the queue that `--queue` names.
    pub fn queue(&self, board: &Board, name: &str) -> Result<Queue, CliError> {
        take_over(board)?;
        // The usual one, unless another is the only one.
        if name == MAIN
            && let Ok([only]) = board.queues().as_deref()
            && only.id != MAIN
        {
            return Ok(only.clone());
        }
        self.named_queue(board, name, FLAG)
    }

    /// Like [`Context::queue`], but creates a missing queue if its name is no path.
    pub(super) fn queue_or_new(&self, board: &Board, name: &str) -> Result<Queue, CliError> {
        match self.queue(board, name) {
            Err(error) if error.exit == Exit::Usage && !board.is_volatile() => {
                self.make_queue(board, name)
            }
            found => found,
        }
    }

    /// Returns the queue called `name`. A missing queue that a role takes from is created. `flag` stands before a name
    /// in hints.
    fn named_queue(&self, board: &Board, name: &str, flag: &str) -> Result<Queue, CliError> {
        let error = match board.queue(name, &self.here()) {
            Err(error @ Error::NoQueue(_)) => error,
            found => return Ok(found?),
        };
        refuse_lost(board, name)?;
        if is_plain(name) && !board.is_volatile() && board.is_needed(name) {
            return self.make_queue(board, name);
        }
        let mut others: Vec<String> = board.queues()?.into_iter().map(|queue| queue.id).collect();
        if others.is_empty() {
            others = task_files(&self.here());
        }
        let path = self.here().join(name);
        if let Some(fault) = fault_of_name(&path).filter(|_| path.is_file()) {
            let message = format!(
                "the name of `{}` {fault}: Tavern ignores it",
                one_line(name)
            );
            return Err(CliError::usage(message, "give it another name"));
        }
        let file = Some(format!("{name}.md")).filter(|file| self.here().join(file).is_file());
        let near =
            nearest(name, others.iter().map(String::as_str)).or(others.first().map(String::as_str));
        let near = file.as_deref().or(near);
        let hint = match near {
            Some(near) if flag.is_empty() || !is_plain(name) => {
                format!("name an existing one: {flag}{}", quoted(near))
            }
            Some(near) => format!(
                "name an existing one: {flag}{}; to create it: tavern add {flag}{name} --create \"…\"",
                quoted(near)
            ),
            None => "write a list first: echo '- [ ] Say hello' > TODO.md".to_owned(),
        };
        Err(CliError::from(error).with_hint(hint))
    }

    /// Creates the missing queue `name`.
    pub(super) fn make_queue(&self, board: &Board, name: &str) -> Result<Queue, CliError> {
        refuse_lost(board, name)?;
        if !is_plain(name) {
            let message = format!("`{name}` can't be the name of a queue");
            let hint = if name.ends_with(".md") {
                format!("write the file first: touch {}", quoted(name))
            } else {
                "use letters, digits, `-` and `_`, such as `next-week`".to_owned()
            };
            return Err(CliError::usage(message, hint));
        }
        let file = format!("queues/{name}.md");
        board.set_up(&[(&file, new_queue(name))], &|_, _| false)?;
        Ok(board.queue(name, &self.here())?)
    }
}

/// The queue of commands that name none.
const MAIN: &str = "main";

/// Flag by which most programs name a queue.
const FLAG: &str = "--queue ";

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns the text of a new queue.
pub(super) fn new_queue(name: &str) -> String {
    let id = format!("id: {name}\n");
    QUEUE.replacen("id: main\nname: Main queue\n", &id, 1)
}

/// Refuses a queue that lost its file with unfinished items in it.
fn refuse_lost(board: &Board, name: &str) -> Result<(), CliError> {
    let lost = board
        .removed_queues()?
        .into_iter()
        .find(|lost| lost.queue.id == name);
    lost.map_or(Ok(()), |lost| {
        Err(CliError::usage(
            format!("queue `{name}` was {}", lost.how()),
            hints::of_lost(board, &lost),
        ))
    })
}

/// Returns the Markdown files in `folder` that have items.
fn task_files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let has_items = |name: &String| {
        let text = files::read_text(folder.join(name)).unwrap_or_default();
        !parse(&text).0.items().is_empty()
    };
    let mut names: Vec<String> = entries
        .filter(|name| name.ends_with(".md"))
        .filter(has_items)
        .collect();
    names.sort();
    names
}

/// Restores missing queues, so that their names are found, and returns the existing ones. Programs otherwise do so only
/// when they take the lock.
fn take_over(board: &Board) -> Result<Vec<Queue>, Error> {
    let queues = board.queues()?;
    if !board.is_dry() && !board.lacks_queue(&queues) {
        return Ok(queues);
    }
    board.settle()?;
    board.queues()
}
