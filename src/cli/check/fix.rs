//! `tavern-check --fix`: what can be mended without a person, IDs that stand twice and lost queues, is shown and done.
//!
//! What a dry run prints is what the run does: both make the same plan, and fresh IDs come from the text that they name.

use std::collections::HashMap;

use serde::Serialize;

use crate::board::document::{Document, Item};
use crate::board::mend::{self, Right, mend};
use crate::cli::unified::{Names, painted, unified};
use crate::cli::{CliError, Context, Exit};
use crate::clock;
use crate::store::{Archived, Board, Lost, Queue, tail_log};

use super::args::Args;
use super::documents::{Page, gather};
use super::fault::shown;
use super::scene::Scene;

/// A queue that is to be another.
pub(super) struct Change {
    pub(super) name: String,
    queue: Queue,
    before: String,
    after: String,
    /// In words, a line each.
    done: Vec<String>,
    /// It is there no more, or empty.
    lost: Option<Lost>,
}

#[derive(Serialize)]
struct Record<'a> {
    file: &'a str,
    fixed: &'a [String],
    /// Unified.
    diff: String,
}

/// Shows what can be mended, and mends it unless it is only asked for. Gives what was not done of that.
pub(super) fn fix(args: &Args, context: &Context, scene: &Scene<'_>) -> Result<Vec<Change>, CliError> {
    let Some(board) = scene.board else { return Ok(Vec::new()) };
    if board.lost_queues()?.is_empty() {
        // What was saved by hand is taken over first, as it would be by any program.
        board.settle(clock::now())?;
    }
    let changes = plan(scene, board)?;
    if changes.is_empty() {
        context.out.note("nothing can be fixed without you");
    }
    for Change { name, before, after, done, .. } in &changes {
        let record = Record { file: name, fixed: done, diff: unified(Names { old: name, new: name }, before, after) };
        context.out.record(&record, painted(&record.diff).trim_end())?;
    }
    if args.dry_run {
        return Ok(changes);
    }
    for change in changes {
        if !change.carry_out(board)? {
            let message = format!("{} was changed meanwhile", change.name);
            return Err(CliError::new(Exit::Busy, message).with_hint("try again: tavern check --fix".to_owned()));
        }
    }
    Ok(Vec::new())
}

fn plan(scene: &Scene<'_>, board: &Board) -> Result<Vec<Change>, CliError> {
    // What can't be read is told when all is looked at.
    let mut pages = gather(Some(board), scene.files, scene.here, &mut Vec::new())?;
    let lost = if scene.files.is_empty() { board.lost_queues()? } else { Vec::new() };
    pages.retain(|page| !lost.iter().any(|lost| lost.queue.path == page.path));
    let put_back = lost.into_iter().map(|lost| Change {
        name: shown(&lost.queue.path, scene.here),
        queue: lost.queue.clone(),
        before: String::new(),
        after: lost.text.clone(),
        done: vec!["the file was lost; it is put back".to_owned()],
        lost: Some(lost),
    });
    let mut changes: Vec<Change> = put_back.collect();

    let queue = |page: &Page| board.queue(&page.path.to_string_lossy(), scene.here).ok();
    let pages: Vec<(Page, Queue)> =
        pages.into_iter().filter_map(|page| queue(&page).map(|queue| (page, queue))).collect();
    let own = board.path("queues");
    let drafts = pages.iter().map(|(page, queue)| mend::Mendable {
        // Wherever one stands, the same text gets the same ID.
        name: &queue.id,
        text: &page.text,
        // A task file that is nobody's but a person's is left alone unless it is named.
        may_change: page.is_wanted && (!scene.files.is_empty() || page.path.starts_with(&own)),
    });
    let history = history(board);
    let right =
        |page: usize, document: &Document<'_>, item: &Item<'_>| right(board, &history, &pages[page].1, document, item);
    let archived = Archived::of(board);
    let mended = mend(&drafts.collect::<Vec<_>>(), &right, &|id| archived.status_of(id).is_some());
    for ((page, queue), mended) in pages.into_iter().zip(mended) {
        if page.text != mended.text {
            let (before, after, done) = (page.text, mended.text, mended.done);
            changes.push(Change { name: page.name, queue, before, after, done, lost: None });
        }
    }
    Ok(changes)
}

/// The newest text under each ID, by queue.
fn history(board: &Board) -> HashMap<(String, String), String> {
    let entries = tail_log(board, 0).unwrap_or_default().into_iter();
    let texts = entries.filter_map(|entry| {
        Some(((entry.queue?, entry.task?.to_string()), entry.change.after()?.trim_end().to_owned()))
    });
    texts.collect()
}

/// Who has the better right to an ID that stands twice.
fn right(
    board: &Board,
    history: &HashMap<(String, String), String>,
    queue: &Queue,
    document: &Document<'_>,
    item: &Item<'_>,
) -> Right {
    let Some(id) = &item.id else { return Right::None };
    let agent = document.task(item, id.clone()).state.holder().and_then(|holder| holder.agent.clone());
    let is_leased = || match board.lease(id) {
        Ok(lease) => lease.is_some_and(|lease| lease.queue == queue.id && Some(lease.agent) == agent),
        Err(_) => true,
    };
    if item.status.is_held() && is_leased() {
        return Right::Held;
    }
    let known = history.get(&(queue.id.clone(), id.to_string()));
    let is_known = known.is_some_and(|known| known == document.block(item).trim_end());
    if is_known { Right::History } else { Right::None }
}

impl Change {
    /// The pages as they would be.
    pub(super) fn apply(&self, pages: &mut Vec<Page>) {
        match pages.iter_mut().find(|page| page.path == self.queue.path) {
            Some(page) => page.text.clone_from(&self.after),
            None => {
                let (name, path, text) = (self.name.clone(), self.queue.path.clone(), self.after.clone());
                pages.push(Page { name, path, text, is_wanted: true });
            }
        }
    }

    /// False if somebody else has changed it meanwhile.
    fn carry_out(&self, board: &Board) -> Result<bool, CliError> {
        Ok(match &self.lost {
            Some(lost) => board.put_back(lost, clock::now())?,
            None => board.mend(&self.queue, &self.before, &self.after, &self.done, clock::now())?,
        })
    }
}
