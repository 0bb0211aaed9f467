//! `tavern-check --fix`: shows and fixes problems that need no person: duplicate IDs, and lost files or
//! lines.
//!
//! A dry run prints exactly the changes of a real run: both make the same plan, and fresh IDs derive from
//! their text.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::unified::{Names, painted, unified};
use crate::{CliError, Context, Exit};
use tavern_core::document::{Document, Item, parse};
use tavern_core::duplicate_ids::{self, Mended, Right, mend};
use tavern_core::task::TaskId;
use tavern_store::config::FILE;
use tavern_store::{ATTRIBUTES, Archived, Board, IGNORE, Incomplete, Lost, Queue, homes};

use super::documents::Page;
use super::fault::shown;
use super::git_files;

/// A queue, or a file for git, to be changed.
struct QueueFix {
    name: String,
    queue: Queue,
    before: String,
    after: String,
    /// Descriptions, one per line.
    done: Vec<String>,
    how: How,
}

enum How {
    /// Duplicate IDs are replaced.
    Mend,
    /// The file is missing or empty.
    PutBack(Lost),
    /// A file for git lacks lines of those that were `found`.
    Complete {
        name: &'static str,
        found: Option<String>,
    },
}

#[derive(Serialize)]
struct Record<'a> {
    file: &'a str,
    fixed: &'a [String],
    /// In unified format.
    diff: String,
}

/// Shows the possible fixes, and applies them unless this is a dry run. Updates `pages`, and returns the
/// names of the fixed files.
pub(super) fn fix(
    context: &Context,
    board: &Board,
    files: &[String],
    pages: &mut Vec<Page>,
) -> Result<Vec<String>, CliError> {
    let here = context.here();
    // In a dry run, the board holds the files' settled text.
    for page in pages.iter_mut().filter(|_| board.is_dry()) {
        let queue = board.queue(&page.path.to_string_lossy(), &here);
        page.text = queue
            .and_then(|queue| board.read(&queue))
            .map_or(page.text.clone(), |text| text.content.into_string());
    }
    let fixes = plan(board, files, &here, pages)?;
    if fixes.is_empty() {
        context.out.note("nothing can be fixed automatically");
    }
    for QueueFix {
        name,
        before,
        after,
        done,
        ..
    } in &fixes
    {
        let record = Record {
            file: name,
            fixed: done,
            diff: unified(
                Names {
                    old: name,
                    new: name,
                },
                before,
                after,
            ),
        };
        context
            .out
            .record(&record, painted(&record.diff).trimmed())?;
    }
    let is_other = |queue: &Queue| {
        ["queues/archive", "templates", FILE, IGNORE, ATTRIBUTES]
            .iter()
            .any(|other| queue.path.starts_with(board.path(other)))
    };
    let mut mended = Vec::new();
    for QueueFix {
        name,
        queue,
        before,
        after,
        done,
        how,
    } in fixes
    {
        let is_done = match how {
            How::Mend => board.mend(&queue, &before, &after, &done)?,
            How::PutBack(lost) => board.put_back(&lost)?,
            How::Complete { name, found } => {
                board.set_up(&[(name, after.clone())], &|_, now| {
                    found.as_deref() == Some(now)
                })? == [true]
            }
        };
        if !is_done {
            let message = format!("{name} was changed meanwhile");
            return Err(CliError::new(Exit::Busy, message)
                .with_hint("try again: tavern check --fix".to_owned()));
        }
        match pages.iter_mut().find(|page| page.path == queue.path) {
            Some(page) => page.text = after,
            None if is_other(&queue) => {}
            None => pages.push(Page {
                name: name.clone(),
                path: queue.path,
                text: after,
                is_wanted: true,
            }),
        }
        mended.push(name);
    }
    // Tavern tracks a named file's items by their IDs from now on.
    for page in pages
        .iter()
        .filter(|page| page.is_wanted && !parse(&page.text).0.items().is_empty())
    {
        if let Ok(queue) = board.queue(&page.path.to_string_lossy(), &here)
            && !is_other(&queue)
        {
            board.remember(&queue)?;
        }
    }
    Ok(mended)
}

fn plan(
    board: &Board,
    files: &[String],
    here: &Path,
    pages: &[Page],
) -> Result<Vec<QueueFix>, CliError> {
    let lost = if files.is_empty() {
        board.lost_queues()?
    } else {
        Vec::new()
    };
    let is_there = |page: &&Page| !lost.iter().any(|lost| lost.queue.path == page.path);
    let queue = |page: &Page| board.queue(&page.path.to_string_lossy(), here).ok();
    let pages: Vec<(&Page, Queue)> = pages
        .iter()
        .filter(is_there)
        .filter_map(|page| Some((page, queue(page)?)))
        .collect();
    let own = board.path("queues");
    let drafts = pages.iter().map(|(page, queue)| duplicate_ids::Mendable {
        // The same text gets the same ID in each place.
        name: &queue.id,
        text: &page.text,
        // A task file outside the board is changed only if it is named.
        may_change: page.is_wanted && (!files.is_empty() || page.path.starts_with(&own)),
    });
    let mut places: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
    for (page, queue) in &pages {
        for id in parse(&page.text)
            .0
            .items()
            .iter()
            .filter_map(|item| item.id.clone())
        {
            places.entry(id).or_default().push(queue.id.clone());
        }
    }
    let homes = homes(board, places)?;
    let right = |page: usize, document: &Document<'_>, item: &Item<'_>| {
        let queue = &pages[page].1;
        let is_copy = item
            .id
            .as_ref()
            .and_then(|id| homes.get(id))
            .is_some_and(|home| *home != queue.id);
        if is_copy {
            Right::None
        } else {
            right(board, queue, document, item)
        }
    };
    let archived = Archived::of(board);
    let mended = mend(&drafts.collect::<Vec<_>>(), &right, &|id| {
        archived.status_of(id).is_some()
    });
    let mended = pages
        .iter()
        .zip(mended)
        .filter(|((page, _), mended)| page.text != mended.text);
    let mended = mended.map(|((page, queue), Mended { text, done })| {
        let (name, queue, before) = (page.name.clone(), queue.clone(), page.text.clone());
        QueueFix {
            name,
            queue,
            before,
            after: text,
            done,
            how: How::Mend,
        }
    });
    let mut others = if files.is_empty() {
        board.lost_archives()?
    } else {
        Vec::new()
    };
    others.extend(if files.is_empty() {
        board.lost_files()
    } else {
        Vec::new()
    });
    let put_back = lost.iter().chain(&others).map(|lost| QueueFix {
        name: shown(&lost.queue.path, here),
        queue: lost.queue.clone(),
        before: String::new(),
        after: lost.text.clone(),
        done: vec!["the file was lost; restored".to_owned()],
        how: How::PutBack(lost.clone()),
    });
    let incomplete = if files.is_empty() {
        git_files::incomplete(board)
    } else {
        Vec::new()
    };
    // A file that is not text is left to a person.
    let completed = incomplete.into_iter().filter_map(|(name, lacking)| {
        let (Incomplete { found, lacks, text }, path) = (lacking.ok()?, board.path(name));
        Some(QueueFix {
            name: shown(&path, here),
            queue: Queue {
                id: name.to_owned(),
                path,
            },
            before: found
                .clone()
                .filter(|_| !lacks.is_empty())
                .unwrap_or_default(),
            after: text,
            done: vec!["missing lines of Tavern's restored".to_owned()],
            how: How::Complete { name, found },
        })
    });
    Ok(put_back.chain(mended).chain(completed).collect())
}

/// Returns the claim of an item on its duplicate ID.
fn right(board: &Board, queue: &Queue, document: &Document<'_>, item: &Item<'_>) -> Right {
    let Some(id) = &item.id else {
        return Right::None;
    };
    if board.title_by(queue, id).as_deref() != Some(document.title(item)) {
        return Right::Queue;
    }
    // An unreadable lease counts as held.
    let is_held = board.lease(id).map_or(true, |lease| {
        lease.is_some_and(|lease| lease.queue == queue.id)
    });
    if is_held { Right::Held } else { Right::History }
}
