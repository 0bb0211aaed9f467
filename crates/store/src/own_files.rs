//! Tavern's own files and folders, and obstacles to using them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::archived;
use super::board::{Board, PRIVATE, VOLATILE};
use super::error::AWAY;
use super::knowledge::KNOWLEDGE;
use tavern_sys::files;

impl Board {
    /// Returns Tavern's own files and folders that this user can't use, with the errors. Missing ones are created when
    /// needed.
    pub fn obstacles(&self) -> Vec<(PathBuf, io::Error)> {
        let own = ["", "queues", archived::FOLDER, KNOWLEDGE, "templates"]
            .iter()
            .chain(&VOLATILE)
            .map(|name| self.path(name));
        let gits = ["", "tips", "followed", "typed/templates"];
        let folders = own
            .chain(gits.iter().chain(&PRIVATE).map(|name| self.private(name)))
            .chain([self.cells()]);
        let below = [
            ("events", "jsonl"),
            ("leases", "yaml"),
            ("seen", "md"),
            ("seen", "old"),
            ("slots", ""),
            ("tips", ""),
        ];
        let below = below
            .iter()
            .flat_map(|(folder, ending)| listed(&self.private(folder), ending));
        let files = ["applied", "lock"]
            .map(|name| self.private(name))
            .into_iter()
            .chain([self.private("files")]);
        let files = files.chain(below).chain(files_of_archive(self));
        let used = folders
            .map(|path| (use_folder(&path), path))
            .chain(files.map(|path| (use_file(&path), path)));
        used.filter_map(|(used, path)| Some((path, used.err()?)))
            .collect()
    }
}

fn files_of_archive(board: &Board) -> Vec<PathBuf> {
    listed(&board.path(archived::FOLDER), "md")
}

fn listed(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.retain(|path| match path.extension() {
        Some(found) if !ending.is_empty() => found == ending,
        found => ending.is_empty() && found.is_none_or(|found| found != AWAY),
    });
    paths.sort();
    paths
}

fn use_folder(path: &Path) -> io::Result<()> {
    let Some(found) = found(path)? else {
        return Ok(());
    };
    let how = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    if found.is_dir() {
        may(path, how)
    } else {
        Err(ErrorKind::NotADirectory.into())
    }
}

fn use_file(path: &Path) -> io::Result<()> {
    let Some(found) = found(path)? else {
        return Ok(());
    };
    if found.is_dir() {
        Err(ErrorKind::IsADirectory.into())
    } else {
        may(path, Access::READ_OK | Access::WRITE_OK)
    }
}

fn found(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(files::refused(files::A_LINK)),
        Ok(found) if !found.is_dir() && !found.is_file() => Err(files::refused(files::NOT_A_FILE)),
        // A bad parent folder is reported by itself.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        found => found.map(Some).map_err(|error| error.kind().into()),
    }
}

fn may(path: &Path, how: Access) -> io::Result<()> {
    access(path, how).map_err(|error| io::Error::from(error).kind().into())
}
