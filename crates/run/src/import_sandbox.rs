//! Imports the work in an agent's cell after the run. The process that follows the run, continues the item, or reaps
//! does this once, before anything else happens to the worktree.
#![expect(
    clippy::disallowed_methods,
    reason = "a run writes its artifacts and worktree"
)]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::artifacts::Artifacts;
use super::error::Error;
use super::record::{Metadata, last_token, run_name, run_of};
use super::sandbox;
use super::sandbox_dir::Cell;
use super::workspace::Workspace;
use tavern_core::eligible::NotReady;
use tavern_core::event::Kind;
use tavern_core::task::TaskId;
use tavern_git::{Bundle, CellLeft, CommitId, GitError, KeptRef, LeftCell, OutsideChange};
use tavern_store::{Board, Entry};
use tavern_sys::clock;
use tavern_sys::failpoint;
use tavern_sys::files;
use tavern_sys::process::quoted;

/// Name prefixes of a cell that was imported and not removed yet, and of one that could not be imported.
const SPENT: &str = ".spent-";
const BROKEN: &str = ".broken-";

/// Bundles of a run's commits in submodules, in its folder.
pub const SUBMODULES: &str = "submodules";

/// The prefix of refs for a submodule in the owner's own repository of it.
const OWN: &str = "refs/tavern/";

/// A cell that was put aside: imported, or unreadable.
#[derive(Clone, Debug)]
pub struct AsideCell {
    pub path: PathBuf,
    pub run: String,
    /// False if it could not be read.
    pub was_taken: bool,
}

/// The result of an import.
#[derive(Debug, Default)]
pub struct Taken {
    /// Why the cell could not be imported.
    pub broken: Option<String>,
    /// Where its work was pushed to.
    pub pushed: Vec<OutsideChange>,
}

/// Returns the cells that were put aside, in order.
pub fn cells_aside(board: &Board) -> Vec<AsideCell> {
    let names = fs::read_dir(board.cells()).into_iter().flatten().flatten();
    let aside = |name: &str, path: PathBuf| {
        let (was_taken, run) = match (name.strip_prefix(SPENT), name.strip_prefix(BROKEN)) {
            (Some(run), _) => (true, run.to_owned()),
            (_, Some(run)) => (false, run.to_owned()),
            _ => return None,
        };
        Some(AsideCell {
            path,
            run,
            was_taken,
        })
    };
    let mut found: Vec<AsideCell> = names
        .filter_map(|entry| aside(&entry.file_name().to_string_lossy(), entry.path()))
        .collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Returns the runs with cells that still need an import.
pub fn left_cells(board: &Board) -> Vec<String> {
    let names = fs::read_dir(board.cells()).into_iter().flatten().flatten();
    let mut runs: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    runs.retain(|name| !name.starts_with('.'));
    runs.sort();
    runs
}

/// Imports all cells of the item; no process of their runs may be alive.
pub fn take_over_all(workspace: &Workspace, task: &TaskId) -> Result<(), Error> {
    let own = format!("{task}@");
    let names = left_cells(&workspace.board)
        .into_iter()
        .filter(|name| name.starts_with(&own));
    for run in names.filter_map(|name| run_of(&workspace.board, &name)) {
        take_over(workspace, task, &run)?;
    }
    Ok(())
}

/// Imports the run's cell, if there is one; no process of the run may be alive. If the agent has broken the cell,
/// returns why it could not be imported: the cell is kept aside, and only the files in the worktree remain.
pub fn take_over(workspace: &Workspace, task: &TaskId, run: &Metadata) -> Result<Taken, Error> {
    let cell = Cell::of(workspace, &run.run);
    if !cell.is_there() || workspace.board.is_dry() {
        return Ok(Taken::default());
    }
    let _slot = workspace.board.cell_slot()?;
    if !cell.is_there() {
        return Ok(Taken::default());
    }
    let taken = take_git(workspace, &cell, run);
    failpoint::hit("cell.taken").map_err(Error::io("continue in", &cell.dir))?;
    match taken {
        Ok(pushed) => {
            // A failed removal is repeated later: the name says that the cell was imported.
            drop(files::remove_tree(&put_aside(&cell, SPENT)?));
            let pushed = pushed
                .into_iter()
                .map(|(reference, tip)| OutsideChange::Published { reference, tip })
                .collect();
            Ok(Taken {
                broken: None,
                pushed,
            })
        }
        Err(Error::Git(
            error @ (GitError::Program { .. }
            | GitError::TimedOut { .. }
            | GitError::Library { .. }),
        )) => {
            let aside = put_aside(&cell, BROKEN)?;
            // git's entry may be gone already.
            drop(
                workspace
                    .repository()?
                    .forsake_cell(&worktree_of(workspace, run)?),
            );
            let why = format!(
                "its git directory can't be read, and is kept in {}: {error}",
                aside.display()
            );
            note(workspace, task, &run.run, why.clone())?;
            Ok(Taken {
                broken: Some(why),
                pushed: Vec::new(),
            })
        }
        Err(error) => Err(error),
    }
}

/// Imports the cell's git directory. Returns the remote-tracking branches that the run has pushed to.
fn take_git(
    workspace: &Workspace,
    cell: &Cell,
    run: &Metadata,
) -> Result<Vec<(String, CommitId)>, Error> {
    if !cell.git().exists() {
        return Ok(Vec::new());
    }
    let worktree = worktree_of(workspace, run)?;
    if cell.is_open() {
        let left =
            workspace
                .repository()?
                .leave_cell(&worktree, &cell.git(), run.branch.as_deref())?;
        tell_left(workspace, run, &left)?;
        return Ok(left.pushed);
    }
    let out = cell.out();
    let made = files::remove_tree(&out).and_then(|()| fs::create_dir(&out));
    made.map_err(Error::io("make anew", &out))?;
    let wrapper = sandbox::of_look(workspace, &out)?;
    let left = LeftCell {
        cell: &cell.git(),
        out: &out,
        wrapper: &wrapper,
        branch: run.branch.as_deref(),
    };
    let received = workspace.repository()?.receive(&worktree, &left);
    // Done even if the cell can't be read, since people look at the files of the worktree.
    let inner = workspace.repository()?.take_inner(&worktree, &cell.git())?;
    received?;
    workspace.repository()?.receive_lfs(&cell.git())?;
    let bundles = workspace
        .repository()?
        .submodules_of(&worktree, &left, &inner)?;
    keep_bundles(workspace, &run.task, &run.run, bundles)?;
    Ok(Vec::new())
}

/// Logs commits outside of the item's branch, which exist nowhere else.
fn tell_left(workspace: &Workspace, run: &Metadata, left: &CellLeft) -> Result<(), Error> {
    let kept = left.kept.iter().map(|KeptRef { name, reference }| {
        format!("its work on `{name}` is kept at `{reference}`")
    });
    let gone = left
        .gone
        .iter()
        .map(|part| format!("it changed {part} in its run only: the change is discarded"));
    kept.chain(gone)
        .try_for_each(|cause| note(workspace, &run.task, &run.run, cause))
}

/// Returns the run's worktree, which may have been moved with its repository.
fn worktree_of(workspace: &Workspace, run: &Metadata) -> Result<PathBuf, Error> {
    let name = run.worktree.file_name();
    name.map(|name| workspace.board.path("worktrees").join(name))
        .ok_or_else(|| Error::io("find", &run.worktree)(io::Error::from(ErrorKind::NotFound)))
}

/// Logs a note.
fn note(workspace: &Workspace, task: &TaskId, run: &str, cause: String) -> Result<(), Error> {
    Ok(workspace.board.note(Entry {
        task: Some(task.clone()),
        run: Some(run.to_owned()),
        cause: Some(cause),
        ..Entry::new(Kind::Noted, clock::now())
    })?)
}

/// Keeps commits of repositories inside the worktree, which are in no cell, before the worktree is removed.
pub fn take_inner(
    workspace: &Workspace,
    task: &TaskId,
    run: &str,
    worktree: &Path,
) -> Result<(), Error> {
    let out = tempfile::tempdir_in(workspace.board.private(""))
        .map_err(Error::io("write in", &workspace.board.private("")))?;
    let bundles = workspace.repository()?.bundle_inner(worktree, out.path())?;
    keep_bundles(workspace, task, run, bundles)
}

/// Keeps commits of repositories inside a worktree with the run, and logs that once. The owner's own repository of a
/// submodule gets them too.
fn keep_bundles(
    workspace: &Workspace,
    task: &TaskId,
    run: &str,
    bundles: Vec<Bundle>,
) -> Result<(), Error> {
    for bundle in bundles {
        let folder = Artifacts::create(&workspace.board, run)?.path(SUBMODULES);
        files::make_own_folder(&folder).map_err(Error::io("create the folder", &folder))?;
        let kept = folder.join(&bundle.name);
        let part = kept.with_extension("part");
        let mut source = files::open(&bundle.file).map_err(Error::io("read", &bundle.file))?;
        let mut copy = fs::File::create(&part).map_err(Error::io("write", &part))?;
        io::copy(&mut source, &mut copy)
            .and_then(|_| copy.sync_all())
            .map_err(Error::io("write", &part))?;
        let place = &bundle.place;
        let (kind, also) = if bundle.is_submodule {
            let reference = format!("{OWN}{run}");
            let fetched = workspace
                .repository()?
                .fetch_bundle(place, &part, &reference);
            let also = format!(", your own clone of it has them below `{reference}/`");
            (
                "submodule",
                Some(also).filter(|_| fetched.is_ok_and(|fetched| fetched)),
            )
        } else {
            ("repository", None)
        };
        let cause = format!(
            "its commits in the {kind} `{place}` are on no remote of that{}, and are kept in the bundle {}",
            also.unwrap_or_default(),
            kept.display()
        );
        if !kept.exists() {
            note(workspace, task, run, cause)?;
        }
        // If killed before this, the next call logs it again.
        fs::rename(&part, &kept).map_err(Error::io("write", &kept))?;
    }
    Ok(())
}

/// Returns why `merged` can't be merged into `tip` yet: it names a submodule commit that was never pushed, and that the
/// owner would only have in a bundle.
pub fn lost_link(
    workspace: &Workspace,
    task: &TaskId,
    tip: &CommitId,
    merged: &CommitId,
) -> Result<Option<NotReady>, Error> {
    let repository = workspace.repository()?;
    let mut links = repository.links_since(tip, merged)?;
    links.retain(|link| !repository.has_linked(link));
    if links.is_empty() {
        return Ok(None);
    }
    let last = last_token(&workspace.board, task)?;
    let worktree = workspace.board.worktree(task);
    if worktree.exists() && repository.is_worktree(&worktree)? {
        take_inner(workspace, task, &run_name(task, last), &worktree)?;
    }
    for link in links {
        let mut kept = None;
        let runs = (1..=last).map(|token| run_name(task, token));
        let files = runs.flat_map(|run| link.bundles().map(|name| (run.clone(), name)));
        for (run, name) in files {
            let file = Artifacts::open(&workspace.board, &run)
                .path(SUBMODULES)
                .join(name);
            if file.exists() {
                // Commits that can't be fetched are reported below.
                for place in [&*link.name, &link.path.to_string_lossy()] {
                    drop(repository.fetch_bundle(place, &file, &format!("{OWN}{run}")));
                }
                kept = Some(file);
            }
        }
        if let Some(bundle) = kept.filter(|_| !repository.has_linked(&link)) {
            let (path, commit) = (quoted(&link.path), link.commit.short());
            let message = format!(
                "its work names commit {commit} of the submodule {path}, which is on no remote of that, and you have no clone of it"
            );
            let hint = format!(
                "git submodule update --init {path}; or, where it is new, clone its remote to there, or {}",
                bundle.display()
            );
            return Ok(Some(NotReady::new(message, hint)));
        }
    }
    Ok(None)
}

/// Renames the cell, so that its content no longer counts.
fn put_aside(cell: &Cell, prefix: &str) -> Result<PathBuf, Error> {
    let name = cell.dir.file_name().unwrap_or_default().to_string_lossy();
    let aside = cell.dir.with_file_name(format!("{prefix}{name}"));
    files::remove_tree(&aside).map_err(Error::io("remove", &aside))?;
    fs::rename(&cell.dir, &aside).map_err(Error::io("move", &cell.dir))?;
    Ok(aside)
}
