//! Lines that a board's .gitignore and .gitattributes lack. Without them git commits volatile files, or
//! merges queues line by line.

use std::io;

use super::fault::{Faults, shown};
use crate::hints;
use crate::init::merging::DRIVER;
use crate::init::{Versioned, says_of_queues};
use tavern_core::problem::listed;
use tavern_git::Repository;
use tavern_store::{ATTRIBUTES, Board, IGNORE, Incomplete};
use tavern_sys::files;

/// Returns the files with missing lines: the lines, or the error that prevents a fix.
pub(super) fn incomplete(board: &Board) -> Vec<(&'static str, io::Result<Incomplete>)> {
    let Ok(repository) = Repository::discover(board.root()) else {
        return Vec::new();
    };
    let versioned = Versioned::of(board, &repository).ok();
    lacking(board, &repository, versioned)
}

fn lacking(
    board: &Board,
    repository: &Repository,
    versioned: Option<Versioned>,
) -> Vec<(&'static str, io::Result<Incomplete>)> {
    // Without the driver in git's configuration, git itself merges queues.
    let is_wanted = |name: &&str| {
        *name == IGNORE
            || repository
                .setting(DRIVER)
                .is_ok_and(|driver| driver.is_some())
    };
    // The .gitignore left by a drain of a plain file hides the whole folder, but git does not read a link.
    let is_ours = |name: &&str| !board.is_volatile() || board.path(name).is_symlink();
    let names = [IGNORE, ATTRIBUTES]
        .into_iter()
        .filter(is_ours)
        .filter(is_wanted);
    let whole = |name| {
        let mut lacking = board.incomplete(name).transpose()?;
        if let (IGNORE, Ok(lacking), Some(versioned)) = (name, &mut lacking, versioned) {
            lacking.text = versioned.written(std::mem::take(&mut lacking.text));
        }
        Some((name, lacking))
    };
    names.filter_map(whole).collect()
}

/// Warns about queues tracked by git, unless .gitignore says they should be: they change with each switch of
/// branches.
fn check_tracked(board: &Board, versioned: Option<Versioned>, faults: &mut Faults<'_>) {
    let path = board.path(IGNORE);
    let is_said = || files::read_text(&path).is_ok_and(|text| says_of_queues(&text));
    if versioned != Some(Versioned::AsItIs) || is_said() {
        return;
    }
    let message =
        "git tracks the queues: `git switch`, `stash` and `reset` replace them by older texts"
            .to_owned();
    let hint = "give them a branch of their own: git rm -r -q --cached .tavern/queues; tavern init (or keep them: tavern init --tracked)";
    faults.warning("tracked-queues", &path, message, hint.to_owned());
}

pub(super) fn check(board: &Board, faults: &mut Faults<'_>) {
    let Ok(repository) = Repository::discover(board.root()) else {
        return;
    };
    let versioned = Versioned::of(board, &repository).ok();
    check_tracked(board, versioned, faults);
    for (name, found) in lacking(board, &repository, versioned) {
        let path = board.path(name);
        let state = match &found {
            Ok(Incomplete { found: None, .. }) => "this file is gone".to_owned(),
            Ok(Incomplete { lacks, .. }) if lacks.is_empty() => "this file is empty".to_owned(),
            Ok(Incomplete { lacks, .. }) => {
                let lines: Vec<String> = lacks.iter().map(|&line| line.to_owned()).collect();
                format!("this lacks {}", listed(&lines))
            }
            Err(error) => format!("this can't be read, and lacks Tavern's lines: {error}"),
        };
        let away = found
            .err()
            .map(|_| format!("{}; ", hints::move_away(shown(&path, faults.here))));
        let hint = format!(
            "put it back: {}tavern check --fix",
            away.unwrap_or_default()
        );
        let follows = if name == IGNORE {
            "`git add` adds Tavern's own files, such as runs"
        } else {
            "git merges queues line by line"
        };
        faults.warning("lost-lines", &path, format!("{state}: {follows}"), hint);
    }
}
