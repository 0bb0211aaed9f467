//! What an agent has left in its cell is taken over after the run, by whoever follows the run, goes on with the item, or reaps: once,
//! and before anything else is done with the worktree.
#![expect(
    clippy::disallowed_methods,
    reason = "a run writes its artifacts and worktree"
)]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::artifacts::Artifacts;
use super::cell::Cell;
use super::error::Error;
use super::record::{Metadata, last_token, run_name, run_of};
use super::sandbox;
use super::site::Site;
use tavern_core::eligible::NotReady;
use tavern_core::event::Kind;
use tavern_core::task::TaskId;
use tavern_git::{Bundle, CellLeft, CommitId, GitError, KeptRef, LeftCell, OutsideChange};
use tavern_store::{Board, Entry};
use tavern_sys::clock;
use tavern_sys::failpoint;
use tavern_sys::files;
use tavern_sys::process::quoted;

/// What a cell is called that was taken over, until it is gone, and one that could not be.
const SPENT: &str = ".spent-";
const BROKEN: &str = ".broken-";

/// Bundles of what a run committed in submodules, in its folder.
pub const SUBMODULES: &str = "submodules";

/// How the references begin that the owner's own repository of a submodule has for it.
const OWN: &str = "refs/tavern/";

/// A cell of which there is nothing to be had any more.
#[derive(Clone, Debug)]
pub struct AsideCell {
    pub path: PathBuf,
    pub run: String,
    /// Else it could not be read.
    pub was_taken: bool,
}

/// What came of taking a cell over.
#[derive(Debug, Default)]
pub struct Taken {
    /// Why it could not be had, in words.
    pub broken: Option<String>,
    /// Where its work was pushed to.
    pub pushed: Vec<OutsideChange>,
}

/// Those that were put aside, in order.
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

/// Cells that nobody has taken over, by their runs.
pub fn left_cells(board: &Board) -> Vec<String> {
    let names = fs::read_dir(board.cells()).into_iter().flatten().flatten();
    let mut runs: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    runs.retain(|name| !name.starts_with('.'));
    runs.sort();
    runs
}

/// Takes over what all cells of the item have, of whose runs nothing is alive any more.
pub fn take_over_all(site: &Site, task: &TaskId) -> Result<(), Error> {
    let own = format!("{task}@");
    let names = left_cells(&site.board)
        .into_iter()
        .filter(|name| name.starts_with(&own));
    for run in names.filter_map(|name| run_of(&site.board, &name)) {
        take_over(site, task, &run)?;
    }
    Ok(())
}

/// Takes over what the cell of the run has, if there is one; nothing of the run is alive any more. Returns in words why it could
/// not be had: then its agent has broken it, it is kept aside, and what stands in the worktree is all there is.
pub fn take_over(site: &Site, task: &TaskId, run: &Metadata) -> Result<Taken, Error> {
    let cell = Cell::of(site, &run.run);
    if !cell.is_there() || site.board.is_dry() {
        return Ok(Taken::default());
    }
    let _slot = site.board.cell_slot()?;
    if !cell.is_there() {
        return Ok(Taken::default());
    }
    let taken = take_git(site, &cell, run);
    failpoint::hit("cell.taken").map_err(Error::io("go on in", &cell.dir))?;
    match taken {
        Ok(pushed) => {
            // What can't be removed is removed some other time: its name says that it was taken.
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
            // It may be gone.
            drop(site.repository()?.forsake_cell(&worktree_of(site, run)?));
            let why = format!(
                "its git directory can't be read, and is kept in {}: {error}",
                aside.display()
            );
            note(site, task, &run.run, why.clone())?;
            Ok(Taken {
                broken: Some(why),
                pushed: Vec::new(),
            })
        }
        Err(error) => Err(error),
    }
}

/// Returns to which remote-tracking branches it has pushed.
fn take_git(site: &Site, cell: &Cell, run: &Metadata) -> Result<Vec<(String, CommitId)>, Error> {
    if !cell.git().exists() {
        return Ok(Vec::new());
    }
    let worktree = worktree_of(site, run)?;
    if cell.is_open() {
        let left = site
            .repository()?
            .leave_cell(&worktree, &cell.git(), run.branch.as_deref())?;
        tell_left(site, run, &left)?;
        return Ok(left.pushed);
    }
    let out = cell.out();
    let made = files::remove_tree(&out).and_then(|()| fs::create_dir(&out));
    made.map_err(Error::io("make anew", &out))?;
    let wrapper = sandbox::of_look(site, &out)?;
    let left = LeftCell {
        cell: &cell.git(),
        out: &out,
        wrapper: &wrapper,
        branch: run.branch.as_deref(),
    };
    let received = site.repository()?.receive(&worktree, &left);
    // Also where the cell can't be read: people look at what stands in the worktree.
    let inner = site.repository()?.take_inner(&worktree, &cell.git())?;
    received?;
    site.repository()?.receive_lfs(&cell.git())?;
    let bundles = site.repository()?.submodules_of(&worktree, &left, &inner)?;
    keep_bundles(site, &run.task, &run.run, bundles)?;
    Ok(Vec::new())
}

/// What it put elsewhere than on its item's branch is nowhere else.
fn tell_left(site: &Site, run: &Metadata, left: &CellLeft) -> Result<(), Error> {
    let kept = left.kept.iter().map(|KeptRef { name, reference }| {
        format!("what it put on `{name}` is kept at `{reference}`")
    });
    let gone = left
        .gone
        .iter()
        .map(|what| format!("it changed {what} for itself alone: that is gone with its run"));
    kept.chain(gone)
        .try_for_each(|cause| note(site, &run.task, &run.run, cause))
}

/// Where the run worked. It may have been moved with its repository.
fn worktree_of(site: &Site, run: &Metadata) -> Result<PathBuf, Error> {
    let name = run.worktree.file_name();
    name.map(|name| site.board.path("worktrees").join(name))
        .ok_or_else(|| Error::io("find", &run.worktree)(io::Error::from(ErrorKind::NotFound)))
}

/// Says it in the log.
fn note(site: &Site, task: &TaskId, run: &str, cause: String) -> Result<(), Error> {
    Ok(site.board.note(Entry {
        task: Some(task.clone()),
        run: Some(run.to_owned()),
        cause: Some(cause),
        ..Entry::new(Kind::Noted, clock::now())
    })?)
}

/// What was committed in repositories inside the worktree, in no cell, before that is removed.
pub fn take_inner(site: &Site, task: &TaskId, run: &str, worktree: &Path) -> Result<(), Error> {
    let out = tempfile::tempdir_in(site.board.private(""))
        .map_err(Error::io("write in", &site.board.private("")))?;
    let bundles = site.repository()?.bundle_inner(worktree, out.path())?;
    keep_bundles(site, task, run, bundles)
}

/// What was committed in repositories inside a worktree stays with the run, and is told once. The owner's own repository of a
/// submodule has it, too.
fn keep_bundles(site: &Site, task: &TaskId, run: &str, bundles: Vec<Bundle>) -> Result<(), Error> {
    for bundle in bundles {
        let folder = Artifacts::create(&site.board, run)?.path(SUBMODULES);
        files::make_own_folder(&folder).map_err(Error::io("make the folder", &folder))?;
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
            let fetched = site.repository()?.fetch_bundle(place, &part, &reference);
            let also = format!(", your own clone of it has it below `{reference}/`");
            (
                "submodule",
                Some(also).filter(|_| fetched.is_ok_and(|fetched| fetched)),
            )
        } else {
            ("repository", None)
        };
        let cause = format!(
            "what it committed in the {kind} `{place}` is on no remote of that{}, and it is kept for git to fetch from in {}",
            also.unwrap_or_default(),
            kept.display()
        );
        if !kept.exists() {
            note(site, task, run, cause)?;
        }
        // Who is killed before tells it again.
        fs::rename(&part, &kept).map_err(Error::io("write", &kept))?;
    }
    Ok(())
}

/// Why `merged` can't be merged into `tip` yet: it names a commit of a submodule that was pushed nowhere, and of which the owner would
/// have nothing but a bundle.
pub fn lost_link(
    site: &Site,
    task: &TaskId,
    tip: &CommitId,
    merged: &CommitId,
) -> Result<Option<NotReady>, Error> {
    let repository = site.repository()?;
    let mut links = repository.links_since(tip, merged)?;
    links.retain(|link| !repository.has_linked(link));
    if links.is_empty() {
        return Ok(None);
    }
    let last = last_token(&site.board, task)?;
    let worktree = site.board.worktree(task);
    if worktree.exists() && repository.is_worktree(&worktree)? {
        take_inner(site, task, &run_name(task, last), &worktree)?;
    }
    for link in links {
        let mut kept = None;
        let runs = (1..=last).map(|token| run_name(task, token));
        let files = runs.flat_map(|run| link.bundles().map(|name| (run.clone(), name)));
        for (run, name) in files {
            let file = Artifacts::open(&site.board, &run)
                .path(SUBMODULES)
                .join(name);
            if file.exists() {
                // What of it can't be had is missing below.
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

/// From now on there is nothing in the cell that counts.
fn put_aside(cell: &Cell, prefix: &str) -> Result<PathBuf, Error> {
    let name = cell.dir.file_name().unwrap_or_default().to_string_lossy();
    let aside = cell.dir.with_file_name(format!("{prefix}{name}"));
    files::remove_tree(&aside).map_err(Error::io("remove", &aside))?;
    fs::rename(&cell.dir, &aside).map_err(Error::io("move", &cell.dir))?;
    Ok(aside)
}
