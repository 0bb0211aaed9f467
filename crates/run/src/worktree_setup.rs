//! Sets up a new worktree before work begins in it: copies files that git ignores, and runs the set-up command.
#![expect(
    clippy::disallowed_methods,
    reason = "a run writes its artifacts and worktree"
)]

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::environment;
use super::error::Error;
use super::sandbox;
use super::trust::Trust;
use super::workspace::Workspace;
use tavern_core::task::Task;
use tavern_git::{Furnished, matches};
use tavern_store::config::Role;
use tavern_sys::files;
use tavern_sys::process::{CommandSpec, Mark, run_command};

/// Copies ignored files that work needs into a new worktree, and sets it up, sandboxed as the work of `role`. Returns
/// its actions.
pub fn furnish(
    workspace: &Workspace,
    role: &Role,
    task: &Task,
    mark: Mark,
    path: &Path,
) -> Result<Furnished, Error> {
    Trust::of(workspace).settings()?;
    let copied = copy_files(workspace, path)?;
    set_up(workspace, role, task, mark, path)?;
    Ok(Furnished {
        copied,
        is_set_up: !workspace.config.worktree.setup.is_empty(),
    })
}

fn copy_files(workspace: &Workspace, worktree: &Path) -> Result<Vec<PathBuf>, Error> {
    let root = workspace.board.root();
    let mut copied = Vec::new();
    for name in workspace
        .config
        .worktree
        .copy
        .iter()
        .flat_map(|glob| named(root, glob))
    {
        // A tracked dangling link exists, too.
        if fs::symlink_metadata(worktree.join(&name)).is_ok() {
            continue;
        }
        // A link to a folder is copied as a link, so writes below it would reach the original folder.
        let found = WalkDir::new(root.join(&name)).follow_root_links(false);
        for entry in found.into_iter().filter_map(Result::ok) {
            let inner = entry
                .path()
                .strip_prefix(root)
                .expect("it was found below the root");
            let to = worktree.join(inner);
            copy(&entry, &to, root, worktree).map_err(Error::io("copy to", &to))?;
        }
        copied.push(name);
    }
    Ok(copied)
}

/// Returns the files and folders below `root` that `glob` matches, relative to it, except git's and Tavern's own.
fn named(root: &Path, glob: &str) -> Vec<PathBuf> {
    let is_plain =
        |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    let fixed: PathBuf = Path::new(glob).components().take_while(is_plain).collect();
    let parts = Path::new(glob)
        .components()
        .filter(|part| part.as_os_str() != "**");
    let depth = parts.count() - fixed.components().count();
    let most = if glob.contains("**") {
        usize::MAX
    } else {
        depth
    };
    let found = WalkDir::new(root.join(fixed))
        .min_depth(depth)
        .max_depth(most)
        .sort_by_file_name();
    let is_own = |entry: &DirEntry| {
        [".git", ".tavern"]
            .iter()
            .any(|own| entry.path() == root.join(own))
    };
    let found = found
        .into_iter()
        .filter_entry(|entry| !is_own(entry))
        .filter_map(Result::ok);
    let found = found.filter_map(|entry| entry.path().strip_prefix(root).ok().map(Path::to_owned));
    found
        .filter(|path| depth == 0 || matches(glob, path))
        .collect()
}

/// Copies files, folders and links, but no sockets or pipes, which belong to their creator.
fn copy(entry: &DirEntry, to: &Path, root: &Path, worktree: &Path) -> io::Result<()> {
    let is_folder = entry.file_type().is_dir();
    let folder = if is_folder {
        to
    } else {
        to.parent().unwrap_or(to)
    };
    match files::make_folder(folder) {
        // The folder is a tracked link, which the copy must not follow.
        Err(error) if error.kind() == files::REFUSED => return Ok(()),
        made => made?,
    }
    if is_folder {
        return Ok(());
    }
    if entry.path().is_file() {
        return fs::copy(entry.path(), to).map(drop);
    }
    if entry.path_is_symlink() {
        return symlink(led(entry.path(), root, worktree)?, to);
    }
    Ok(())
}

/// Returns the target for the copy of a link. Targets below `root` move to the same place in the worktree, because a
/// worktree must not reach `root`.
fn led(link: &Path, root: &Path, worktree: &Path) -> io::Result<PathBuf> {
    let target = fs::read_link(link)?;
    // A dangling link is copied verbatim.
    let real = fs::canonicalize(link).unwrap_or(target);
    Ok(real
        .strip_prefix(root)
        .map(|inner| worktree.join(inner))
        .unwrap_or(real))
}

fn set_up(
    workspace: &Workspace,
    role: &Role,
    task: &Task,
    mark: Mark,
    worktree: &Path,
) -> Result<(), Error> {
    let command = &workspace.config.worktree.setup;
    if command.is_empty() {
        return Ok(());
    }
    let root = workspace.board.root().to_string_lossy().into_owned();
    let ours = [("TAVERN_TASK", task.id.to_string()), ("TAVERN_ROOT", root)];
    let spec = CommandSpec {
        timeout: workspace.config.worktree.timeout.limit(),
        env: environment::of_commands(workspace, ours),
        inherits: false,
        run: Some(mark),
        wrapper: sandbox::of_command(workspace, role, worktree)?,
        ..CommandSpec::new(command, worktree)
    };
    let repository = workspace.repository()?;
    let before = repository.head_of(worktree)?;
    let result =
        run_command(&spec, &workspace.interrupt).map_err(Error::io("run commands in", worktree))?;
    // Its commits would be merged as the work of the next run.
    let has_moved = repository.undo_moves(worktree, &before)?;
    if result.is_success() && !has_moved {
        return Ok(());
    }
    let how = if result.is_success() {
        "moved HEAD: a set-up must neither commit nor switch branches".to_owned()
    } else {
        let lack = environment::lack_of_commands(&workspace.config, &[command, &result.output]);
        format!("{}{lack}", result.end)
    };
    Err(Error::SetUp {
        command: command.clone(),
        how,
        output: result.output,
    })
}
