//! What became of the items of a drain, and where to look.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use super::crew::Post;
use crate::board::document::{Document, Item, parse};
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::event::Kind;
use crate::board::task::{Status, TaskId};
use crate::cli::need::{self, Need};
use crate::cli::status::faulted;
use crate::cli::{CliError, Context, hints, human};
use crate::run::record::runs_of;
use crate::run::unmerged::Unmerged;
use crate::run::{Preflight, Site};
use crate::store::{Board, Queue, tail_log};

/// One item that did not end completed.
#[derive(Serialize)]
pub(super) struct Left {
    pub queue: String,
    pub line: usize,
    pub task: Option<TaskId>,
    pub title: String,
    pub status: Status,
    pub reason: Option<String>,
    /// What it needs of a person.
    #[serde(flatten)]
    pub need: Option<Need>,
    /// The folder of its last run.
    pub run: Option<String>,
    /// Where its work is that is not merged, as `git show` takes it.
    pub kept: Vec<String>,
}

/// What became of all items.
#[derive(Default, Serialize)]
pub(super) struct Summary {
    pub completed: usize,
    pub cancelled: usize,
    pub left: Vec<Left>,
    pub usd: f64,
    pub seconds: u64,
}

impl Summary {
    /// Adds what was moved to the archives of the queues after the event `before`, and is there still.
    pub(super) fn add_archived(&mut self, site: &Site, queues: &[Queue], before: u64) -> Result<(), CliError> {
        let mut seen = HashSet::new();
        // The newest first: what was brought back and has ended again is there once.
        for entry in tail_log(&site.board, before)?.iter().rev().filter(|entry| entry.kind == Kind::Archived) {
            let is_ours = queues.iter().any(|queue| entry.queue.as_ref() == Some(&queue.id));
            let (true, Some(block)) = (is_ours, entry.change.before()) else { continue };
            let (document, _) = parse(block);
            for (number, item) in document.items().iter().enumerate() {
                if let Some(id) = &item.id {
                    let found = site.board.task(id);
                    let is_archived = found.is_ok_and(|found| found.queue.id.starts_with("archive/"));
                    if !is_archived || !seen.insert(id.clone()) {
                        continue;
                    }
                    self.usd += runs_of(&site.board, id)?.iter().map(|run| run.usage.usd).sum::<f64>();
                }
                // What the first one is its lane may have said.
                match entry.change.from().filter(|_| number == 0).unwrap_or(item.status) {
                    Status::Completed => self.completed += 1,
                    Status::Cancelled => self.cancelled += 1,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// A person can go on with each item that is left, or with the children that it waits for.
    pub(super) fn waits_for_person(&self) -> bool {
        let has_need = |left: &Left| left.need.is_some();
        let is_parked = |left: &Left| left.status == Status::Waiting;
        self.left.iter().any(has_need) && self.left.iter().all(|left| has_need(left) || is_parked(left))
    }

    pub(super) fn print(&self, context: &Context, site: &Site) -> Result<(), CliError> {
        let mut text = format!(
            "{} completed, {} left, {} in {} s",
            self.completed,
            self.left.len(),
            human::money(self.usd),
            self.seconds
        );
        for left in &self.left {
            let name = left.task.as_ref().map_or_else(|| format!("line {}", left.line), ToString::to_string);
            text.push_str(&format!("\n{}: {name} {} — {}", left.queue, left.status, human::title(&left.title)));
            if let Some(reason) = &left.reason {
                text.push_str(&format!("\n  {reason}"));
            }
            if let Some(need) = &left.need {
                text.push_str(&format!("\n  to do: {}", need.todo));
            }
            if let Some(run) = &left.run {
                text.push_str(&format!("\n  see {run}"));
            }
            left.kept.iter().for_each(|place| text.push_str(&format!("\n  its work: git show {place}")));
        }
        if self.completed > 0 {
            text.push_str(&format!("\nmerged work is on branch {}", site.integration()));
        }
        context.out.record(self, text)
    }
}

pub(super) fn summarise(site: &Site, queues: &[Queue], crew: &[Post]) -> Result<Summary, CliError> {
    let mut summary = Summary::default();
    let faulted = faulted(&site.board, queues);
    let preflight = &Preflight::of(site);
    let kept = Unmerged::of(site.repository()?, site.integration());
    for queue in queues {
        let text = site.board.read(queue)?;
        let (document, _) = parse(&text.content);
        let page = Page { board: &site.board, queue, document: &document, faulted: &faulted, crew, preflight };
        for item in document.items() {
            let runs = item.id.as_ref().map(|id| runs_of(&site.board, id)).transpose()?.unwrap_or_default();
            summary.usd += runs.iter().map(|run| run.usage.usd).sum::<f64>();
            let need = need::of_item(&site.board, &document, item, &site.config.review);
            match item.status {
                Status::Completed => summary.completed += 1,
                Status::Cancelled => summary.cancelled += 1,
                status => summary.left.push(Left {
                    kept: item.id.as_ref().filter(|_| !runs.is_empty()).map(|id| kept.places(id)).unwrap_or_default(),
                    queue: queue.id.clone(),
                    line: item.line,
                    task: item.id.clone(),
                    title: document.title(item).to_owned(),
                    status,
                    reason: page.why(item, need.as_ref()),
                    need,
                    run: runs.last().map(|run| shown(&site.board.run_dir(&run.run), site.board.root())),
                }),
            }
        }
    }
    Ok(summary)
}

/// A queue, and what its items are told by.
struct Page<'p> {
    board: &'p Board,
    queue: &'p Queue,
    document: &'p Document<'p>,
    /// Items that only a look at all queues finds fault with.
    faulted: &'p HashSet<(String, usize)>,
    /// Whom the drain was for.
    crew: &'p [Post],
    preflight: &'p Preflight<'p>,
}

impl Page<'_> {
    /// Why an item is not completed: what its last run came to, else what keeps it from being taken.
    fn why(&self, item: &Item<'_>, need: Option<&Need>) -> Option<String> {
        let task = self.document.task_of(item);
        let is_faulted = item.quarantined || self.faulted.contains(&(self.queue.id.clone(), item.line));
        let open: Vec<String> = task.after.iter().filter_map(|id| self.open(id)).collect();
        let role = task.role.as_deref().unwrap_or(DEFAULT_ROLE);
        let reason = || task.reason().map(str::to_owned);
        match item.status {
            Status::Waiting if task.question().is_some() => {
                task.question().map(|question| format!("it asks: {question}"))
            }
            Status::Waiting if task.state.is_parked() => need.map(|need| need.why.clone()).or_else(reason),
            _ if task.reason().is_some() => reason(),
            _ if is_faulted => Some(format!("its text has a problem: tavern check {}", self.queue.id)),
            Status::InReview => Some(self.preflight.judges(&task).map_or_else(
                |lack| hints::sentence(&lack, Some(&task.id)),
                |()| format!("verified, and in review: tavern status {} says who has to approve it", task.id),
            )),
            Status::Approved => Some("verified, but not merged: tavern merge says why".to_owned()),
            Status::Pending if !open.is_empty() => Some(format!("it waits for {}", open.join(", "))),
            Status::Pending if !self.crew.iter().any(|post| post.role == role) => {
                Some(format!("it is for role {role}"))
            }
            Status::Pending => {
                let lack = self.preflight.readiness(self.document, item).err();
                lack.map(|lack| hints::sentence(&lack, item.id.as_ref()))
            }
            _ => None,
        }
    }

    /// A dependency that is not completed, with its status.
    fn open(&self, id: &TaskId) -> Option<String> {
        let status = match self.document.find(id) {
            Some(item) => Some(item.status),
            None => self.board.task(id).ok().map(|found| found.task.status()),
        };
        let words = status.map_or("unknown", Status::as_str);
        (status != Some(Status::Completed)).then(|| format!("{id} ({words})"))
    }
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
