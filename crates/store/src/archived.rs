//! Reading the archives `queues/archive/<queue>.md`.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;

use super::board::Board;
use super::content::Content;
use super::error::Error;
use super::queue::{Queue, Text, is_queue};
use tavern_core::document::{Document, Item};
use tavern_core::searches::Searches;
use tavern_core::task::{Status, TaskId};

pub(super) const FOLDER: &str = "queues/archive";

/// The archived items of a board, read on first use.
#[derive(Debug)]
pub struct Archived<'b> {
    board: &'b Board,
    texts: OnceCell<Vec<Text>>,
    statuses: OnceCell<HashMap<TaskId, Status>>,
    searches: Searches,
}

impl<'b> Archived<'b> {
    pub fn of(board: &'b Board) -> Archived<'b> {
        Archived {
            board,
            texts: OnceCell::new(),
            statuses: OnceCell::new(),
            searches: Searches::default(),
        }
    }

    /// Returns the status with which the item ended; `None` if it is in no archive.
    pub fn status_of(&self, id: &TaskId) -> Option<Status> {
        let texts = self.texts.get_or_init(|| texts(self.board));
        let is_in = |text: &Text| text.content.contains(&format!("{id}:"));
        if self.statuses.get().is_none() && self.searches.are_few() && !texts.iter().any(is_in) {
            return None;
        }
        let all = || {
            texts
                .iter()
                .flat_map(|text| statuses(&text.content.open()))
                .collect()
        };
        self.statuses.get_or_init(all).get(id).copied()
    }

    /// Returns the texts of all archives.
    pub fn contents(&self) -> impl Iterator<Item = &Content> {
        self.texts
            .get_or_init(|| texts(self.board))
            .iter()
            .map(|text| &text.content)
    }

    /// Returns the number of archived items of the queue.
    pub fn count(&self, queue: &Queue) -> usize {
        let texts = self.texts.get_or_init(|| texts(self.board));
        let own = archive_of(self.board, queue);
        let text = own.and_then(|own| texts.iter().find(|text| text.queue.path == own.path));
        text.map_or(0, |text| text.content.open().count_whole())
    }
}

/// Returns the archives that can be read.
fn texts(board: &Board) -> Vec<Text> {
    archives(board)
        .iter()
        .filter_map(|queue| board.read(queue).ok())
        .collect()
}

/// Returns the archives, named like `archive/main`, in order.
fn archives(board: &Board) -> Vec<Queue> {
    let folder = board.path(FOLDER);
    let entries = fs::read_dir(&folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.retain(|name| is_queue(name.as_ref()));
    names.sort();
    let queue = |name: String| Queue {
        id: format!("archive/{}", name.trim_end_matches(".md")),
        path: folder.join(name),
    };
    names
        .into_iter()
        .map(queue)
        .filter(|queue| queue.path.is_file())
        .collect()
}

/// Returns the archive of a queue of the board; `None` for a user's own task file, which is never archived.
pub(super) fn archive_of(board: &Board, queue: &Queue) -> Option<Queue> {
    let is_own = queue.path.parent() == Some(&board.path("queues"));
    let path = board.path(FOLDER).join(format!("{}.md", queue.id));
    is_own.then(|| Queue {
        id: format!("archive/{}", queue.id),
        path,
    })
}

/// Returns the text of the archive; empty if there is none yet.
pub(super) fn content(board: &Board, archive: &Queue) -> Result<String, Error> {
    if fs::symlink_metadata(&archive.path).is_err() {
        Ok(String::new())
    } else {
        Ok(board.read(archive)?.content.into_string())
    }
}

/// Calls `then` with `task`'s item in its archive.
pub(super) fn with_archived<R>(
    board: &Board,
    task: &TaskId,
    then: impl FnOnce(&Text, &Document<'_>, &Item<'_>) -> R,
) -> Result<R, Error> {
    for text in texts(board)
        .iter()
        .filter(|text| text.content.contains(task.as_str()))
    {
        let (document, _) = text.content.parse();
        if let Some(item) = document.find(task) {
            return Ok(then(text, &document, item));
        }
    }
    Err(Error::NoTask(task.clone()))
}

/// Returns the status of each ID; of a duplicated ID the first item counts.
pub(super) fn statuses(document: &Document<'_>) -> HashMap<TaskId, Status> {
    (0..document.count())
        .rev()
        .filter_map(|at| Some((document.id_at(at)?, document.status_at(at))))
        .collect()
}
