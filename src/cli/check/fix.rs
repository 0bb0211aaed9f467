//! `tavern-check --fix`: what can be mended without a person is shown, and then done.
//!
//! What a dry run prints is what the run does: both make the same plan, and fresh IDs come from the text that they name.

use std::collections::HashMap;
use std::fs;
use std::io::{IsTerminal, Write, stdin};
use std::path::PathBuf;

use serde::Serialize;

use crate::board::document::{Document, Item};
use crate::board::mend::{self, Extent, Mended, Right, mend};
use crate::board::task::TaskId;
use crate::cli::unified::{Names, painted, unified};
use crate::clock;
use crate::interrupt::Interrupt;
use crate::run::Site;
use crate::run::reap::{Action, ExpiredLeases, Scope, execute, plan};
use crate::store::{Archived, Board, Lost, Queue, read_log, replace};

use super::args::Args;
use super::documents::{Page, gather};
use super::fault::shown;
use super::scene::Scene;
use crate::cli::{CliError, Context, Exit};

/// What is to be mended. Of a dry run it is all that is known of how the board would be; of a run nothing is left of it.
#[derive(Default)]
pub(super) struct Planned {
    texts: Vec<Change>,
    lost: Vec<Lost>,
    actions: Vec<Action>,
}

/// A text that is to be another.
struct Change {
    name: String,
    path: PathBuf,
    before: String,
    mended: Mended,
}

#[derive(Serialize)]
struct Record<'a> {
    file: &'a str,
    /// In words, a line each.
    fixed: &'a [String],
    /// Unified.
    diff: String,
}

impl Planned {
    pub(super) fn has(&self, action: &Action) -> bool {
        self.actions.contains(action)
    }

    pub(super) fn brings_back(&self, lost: &Lost) -> bool {
        self.lost.iter().any(|planned| planned.queue == lost.queue)
    }

    /// The pages as they would be.
    pub(super) fn apply(&self, pages: &mut Vec<Page>) {
        for change in &self.texts {
            match pages.iter_mut().find(|page| page.path == change.path) {
                Some(page) => page.text.clone_from(&change.mended.text),
                None => pages.push(change.page()),
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.actions.is_empty()
    }
}

impl Change {
    fn page(&self) -> Page {
        let (name, path, text) = (self.name.clone(), self.path.clone(), self.mended.text.clone());
        Page { name, path, text, is_wanted: true }
    }
}

/// Shows what can be mended, and mends it unless it is only asked for.
pub(super) fn fix(args: &Args, context: &Context, scene: &Scene<'_>) -> Result<Planned, CliError> {
    if let Some(board) = scene.board.filter(|_| !args.dry_run) {
        // What was saved by hand is taken over first, as it would be by any program.
        if board.lost_queues()?.is_empty() {
            board.settle(clock::now())?;
        }
    }
    let site = scene.whole().filter(|_| scene.config.is_some());
    let site = site.and_then(|board| Site::open(board.clone(), Interrupt::new()).ok());
    let mut planned = prepare(scene)?;
    if let Some(site) = &site {
        planned.actions = plan(site, Scope::All, &mut ExpiredLeases::load(&site.board)).unwrap_or_default();
        // Nothing is wrong with what is only to be archived.
        planned.actions.retain(|action| !action.is_upkeep());
    }
    if planned.is_empty() {
        context.out.note("there is nothing that can be mended without you");
        return Ok(planned);
    }
    for change in &planned.texts {
        let record = Record { file: &change.name, fixed: &change.mended.done, diff: diff(change) };
        context.out.record(&record, painted(&record.diff).trim_end())?;
    }
    planned.actions.iter().try_for_each(|action| context.out.record(action, action))?;
    if args.dry_run {
        return Ok(planned);
    }
    context.out.flush()?;
    if !args.yes && stdin().is_terminal() && !is_agreed(context) {
        return Err(CliError::new(Exit::Failed, "nothing was changed"));
    }
    for change in &planned.texts {
        carry_out(scene, &planned.lost, change)?;
    }
    if let Some(site) = &site {
        let slot = site.board.reap_slot()?;
        for action in &planned.actions {
            execute(site, action, &slot)?;
        }
    }
    Ok(Planned::default())
}

fn prepare(scene: &Scene<'_>) -> Result<Planned, CliError> {
    // What can't be read is told when all is looked at.
    let mut pages = gather(scene.board, scene.files, scene.here, &mut Vec::new())?;
    let lost = match scene.whole() {
        Some(board) => board.lost_queues()?,
        None => Vec::new(),
    };
    let before: Vec<String> = pages.iter().map(|page| page.text.clone()).collect();
    for lost in &lost {
        let (path, text) = (lost.queue.path.clone(), lost.text.clone());
        match pages.iter_mut().find(|page| page.path == path) {
            Some(page) => page.text = text,
            None => pages.push(Page { name: shown(&path, scene.here), path, text, is_wanted: true }),
        }
    }
    let is_lost = |page: &Page| lost.iter().any(|lost| lost.queue.path == page.path);
    let own = scene.board.map(|board| board.path("queues"));
    let extent = |page: &Page| {
        let is_named = !scene.files.is_empty();
        let is_own = own.as_ref().is_some_and(|own| page.path.starts_with(own));
        match page.is_wanted {
            // It is put back as it was; what else there is to mend is for another time.
            true if is_lost(page) => Extent::Nothing,
            true if is_named || is_own => Extent::FaultsAndIds,
            _ => Extent::Nothing,
        }
    };
    let queues: Vec<Option<Queue>> = pages.iter().map(|page| queue_of(scene.board, page)).collect();
    let drafts: Vec<mend::Page<'_>> = pages
        .iter()
        .zip(&queues)
        .map(|(page, queue)| mend::Page {
            // Wherever one stands, the same text gets the same ID.
            name: queue.as_ref().map_or(page.name.as_str(), |queue| queue.id.as_str()),
            text: &page.text,
            extent: extent(page),
        })
        .collect();
    let rights = Rights::of(scene.board, &queues);
    let archived = scene.board.map(Archived::of);
    let status_of = |id: &TaskId| archived.as_ref()?.status_of(id);
    let mended = mend(&drafts, &|page, document, item| rights.right(page, document, item), &status_of);
    let mut before = before.into_iter();
    let mut texts = Vec::new();
    for (page, mut mended) in pages.iter().zip(mended) {
        let before = before.next().unwrap_or_default();
        if is_lost(page) {
            mended.done.push("the file was lost; it is put back".to_owned());
        }
        if before != mended.text {
            texts.push(Change { name: page.name.clone(), path: page.path.clone(), before, mended });
        }
    }
    Ok(Planned { texts, lost, actions: Vec::new() })
}

fn queue_of(board: Option<&Board>, page: &Page) -> Option<Queue> {
    board?.queue(&page.path.to_string_lossy(), page.path.parent()?).ok()
}

/// Who has the better right to an ID that stands twice.
struct Rights<'a> {
    queues: &'a [Option<Queue>],
    board: Option<&'a Board>,
    /// The newest text under each ID, by queue.
    history: HashMap<(String, String), String>,
}

impl<'a> Rights<'a> {
    fn of(board: Option<&'a Board>, queues: &'a [Option<Queue>]) -> Rights<'a> {
        let mut history = HashMap::new();
        for entry in board.and_then(|board| read_log(board).ok()).unwrap_or_default() {
            if let (Some(task), Some(queue), Some(after)) = (entry.task, entry.queue, entry.after) {
                history.insert((queue, task.to_string()), after.trim_end().to_owned());
            }
        }
        Rights { queues, board, history }
    }

    fn right(&self, page: usize, document: &Document<'_>, item: &Item<'_>) -> Right {
        let (Some(board), Some(queue), Some(id)) = (self.board, &self.queues[page], &item.id) else {
            return Right::None;
        };
        let agent = document.task(item, id.clone()).state.holder().and_then(|holder| holder.agent.clone());
        let is_leased = || match board.lease(id) {
            Ok(lease) => lease.is_some_and(|lease| lease.queue == queue.id && Some(lease.agent) == agent),
            Err(_) => true,
        };
        if item.status.is_held() && is_leased() {
            return Right::Held;
        }
        let known = self.history.get(&(queue.id.clone(), id.to_string()));
        let is_known = known.is_some_and(|known| known == document.block(item).trim_end());
        if is_known { Right::History } else { Right::None }
    }
}

fn carry_out(scene: &Scene<'_>, lost: &[Lost], change: &Change) -> Result<(), CliError> {
    let now = clock::now();
    let busy = || {
        let message = format!("{} was changed by somebody else meanwhile", change.name);
        CliError::new(Exit::Busy, message).with_hint("try again: tavern check --fix".to_owned())
    };
    let Some(board) = scene.board else {
        // A task file without a board: no lock, and no log.
        if fs::read_to_string(&change.path).is_ok_and(|text| text != change.before) {
            return Err(busy());
        }
        return Ok(replace(&change.path, change.mended.text.as_bytes())?);
    };
    if let Some(lost) = lost.iter().find(|lost| lost.queue.path == change.path) {
        return if board.put_back(lost, now)? { Ok(()) } else { Err(busy()) };
    }
    let queue = board.queue(&change.path.to_string_lossy(), scene.here)?;
    let is_done = board.mend(&queue, &change.before, &change.mended.text, &change.mended.done, now)?;
    if is_done { Ok(()) } else { Err(busy()) }
}

/// Asks on the terminal; anything but a yes is a no.
fn is_agreed(context: &Context) -> bool {
    drop(context.out.flush());
    let mut terminal = anstream::stderr();
    let asked = write!(terminal, "do all this? [y/N] ").and_then(|()| terminal.flush());
    let mut answer = String::new();
    asked.is_ok()
        && stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// As `diff -u` has it.
fn diff(change: &Change) -> String {
    unified(Names { old: &change.name, new: &change.name }, &change.before, &change.mended.text)
}
