//! What became of the items of a drain, and where to look.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::crew::Post;
use crate::board::document::parse;
use crate::board::eligible::{DEFAULT_ROLE, Lack};
use crate::board::event::Kind;
use crate::board::task::{Status, Task, TaskId};
use crate::cli::alike::Alike;
use crate::cli::check::shown;
use crate::cli::need::{self, Need, NeedKind};
use crate::cli::strayed::{Strayed, tell_of_tip};
use crate::cli::{CliError, Context, hints, human};
use crate::run::Site;
use crate::run::readiness::{Unready, unready};
use crate::run::record::RunNames;
use crate::run::unmerged::Unmerged;
use crate::store::{Archived, Entry, Queue, tail_log};

/// One item that did not end completed.
#[derive(Serialize)]
pub(super) struct Left {
    pub queue: String,
    pub line: usize,
    pub task: Option<TaskId>,
    pub title: String,
    pub status: Status,
    pub reason: Option<String>,
    /// What its runs may use together with others is used up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
    /// Its text has a problem, so nobody takes it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
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
    /// What changed outside of a worktree while its agent ran.
    pub strayed: Vec<Strayed>,
    pub usd: f64,
    pub seconds: u64,
}

impl Summary {
    /// Adds what was moved to the archives of the queues by the events `since` it began, and is there still.
    fn add_archived(
        &mut self,
        site: &Site,
        queues: &[Queue],
        since: &[Entry],
        strayed: &HashSet<TaskId>,
    ) -> Result<(), CliError> {
        let (runs, archived, mut seen) = (RunNames::list(&site.board)?, Archived::of(&site.board), HashSet::new());
        let mut live = HashSet::new();
        for queue in site.board.queues()? {
            let text = site.board.read(&queue)?;
            live.extend(parse(&text.content).0.items().iter().filter_map(|item| item.id.clone()));
        }
        // The newest first: what was brought back and has ended again is there once.
        for entry in since.iter().rev().filter(|entry| entry.kind == Kind::Archived) {
            let is_ours = is_of(entry, queues) || entry.task.as_ref().is_some_and(|task| strayed.contains(task));
            let (true, Some(block)) = (is_ours, entry.change.before()) else { continue };
            let (document, _) = parse(block);
            for (number, item) in document.items().iter().enumerate() {
                if let Some(id) = &item.id {
                    let is_archived = !live.contains(id) && archived.status_of(id).is_some();
                    if !is_archived || !seen.insert(id.clone()) {
                        continue;
                    }
                    self.usd += runs.runs_of(&site.board, id).iter().map(|run| run.usage.usd).sum::<f64>();
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

    /// Some would go on if runs might use more together.
    pub(super) fn is_capped(&self) -> bool {
        self.left.iter().any(|left| left.capped)
    }

    /// Some would go on if their text was mended.
    pub(super) fn is_broken(&self) -> bool {
        self.left.iter().any(|left| left.broken)
    }

    pub(super) fn print(&self, context: &Context, site: &Site) -> Result<(), CliError> {
        let spent = if self.usd > 0.0 { format!(", {}", human::money(self.usd)) } else { String::new() };
        let (completed, left) = (self.completed, self.left.len());
        let mut lines = vec![format!("{completed} completed, {left} left{spent} in {} s", self.seconds)];
        let mut alike = Alike::default();
        for left in &self.left {
            let is_untouched = left.run.is_none() && left.need.is_none() && left.kept.is_empty();
            let said = [format!("{}: {}", left.queue, left.status)].into_iter().chain(left.reason.clone());
            if is_untouched && !alike.shows(&said.collect::<Vec<_>>().join(", "), left.task.as_ref()) {
                continue;
            }
            let name = left.task.as_ref().map_or_else(|| format!("line {}", left.line), ToString::to_string);
            lines.push(format!("{}: {name} {} — {}", left.queue, left.status, human::title(&left.title)));
            lines.extend(left.reason.iter().map(|reason| format!("  {reason}")));
            lines.extend(left.need.iter().map(|need| format!("  to do: {}", need.todo)));
            lines.extend(left.run.iter().map(|run| format!("  see {run}")));
            lines.extend(left.kept.iter().map(|place| format!("  its work: git show {place}")));
        }
        lines.extend(alike.left_out());
        lines.extend(self.strayed.iter().map(Strayed::to_string));
        lines.extend((self.completed > 0).then(|| format!("merged work is on branch {}", site.integration())));
        context.out.record(self, lines.join("\n"))?;
        tell_of_tip(context, site);
        Ok(())
    }
}

/// What became of the items of `queues`, and of those that were begun there after the event `before` and stand elsewhere now.
pub(super) fn summarise(site: &Site, queues: &[Queue], crew: &[Post], before: u64) -> Result<Summary, CliError> {
    let mut summary = Summary::default();
    let since = tail_log(&site.board, before)?;
    let mut strayed = begun(&since, queues);
    let mut all: Vec<Queue> = queues.iter().filter(|queue| queue.path.is_file()).cloned().collect();
    for queue in &all {
        let text = site.board.read(queue)?;
        let (document, _) = parse(&text.content);
        strayed.retain(|id| document.find(id).is_none());
    }
    let own = all.len();
    if !strayed.is_empty() {
        all.extend(site.board.queues()?.into_iter().filter(|queue| !queues.contains(queue)));
    }
    let kept = Unmerged::of(site.repository()?, site.integration());
    let names = RunNames::list(&site.board)?;
    let unready = unready(site, &all, None).into_iter();
    let mut unready: HashMap<(String, usize), Unready> =
        unready.map(|one| ((one.queue.clone(), one.line), one)).collect();
    for (number, queue) in all.iter().enumerate() {
        let text = site.board.read(queue)?;
        let (document, _) = parse(&text.content);
        for item in document.items() {
            if number >= own && !item.id.as_ref().is_some_and(|id| strayed.remove(id)) {
                continue;
            }
            let runs = item.id.as_ref().map(|id| names.runs_of(&site.board, id)).unwrap_or_default();
            summary.usd += runs.iter().map(|run| run.usage.usd).sum::<f64>();
            let lacking = unready.remove(&(queue.id.clone(), item.line));
            let need = lacking.as_ref().and_then(|one| need::of(&one.lacks, item.id.as_ref(), &queue.id));
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
                    broken: lacking.as_ref().is_some_and(Unready::is_broken),
                    capped: lacking.as_ref().is_some_and(|one| matches!(one.foremost(), Lack::Capped { .. })),
                    reason: why(&document.task_of(item), lacking.as_ref(), queue, crew),
                    need,
                    run: runs.last().map(|run| shown(&site.board.run_dir(&run.run), site.board.root())),
                }),
            }
        }
    }
    summary.add_archived(site, queues, &since, &strayed)?;
    summary.strayed = since.into_iter().filter_map(Strayed::of).collect();
    Ok(summary)
}

/// The items that were taken from `queues`, or went with the whole file.
fn begun(since: &[Entry], queues: &[Queue]) -> HashSet<TaskId> {
    let is_gone =
        |entry: &Entry| queues.iter().any(|queue| entry.queue.as_ref() == Some(&queue.id) && !queue.path.is_file());
    let is_begun = |entry: &&Entry| match entry.kind {
        Kind::Claimed => is_of(entry, queues),
        Kind::Moved => is_gone(entry),
        _ => false,
    };
    since.iter().filter(is_begun).filter_map(|entry| entry.task.clone()).collect()
}

fn is_of(entry: &Entry, queues: &[Queue]) -> bool {
    queues.iter().any(|queue| entry.queue.as_ref() == Some(&queue.id))
}

/// Why an item is not completed: what its last run came to, else what it lacks.
fn why(task: &Task, lacking: Option<&Unready>, queue: &Queue, crew: &[Post]) -> Option<String> {
    let lack = lacking.map(Unready::foremost);
    let role = task.role.as_deref().unwrap_or(DEFAULT_ROLE);
    match (task.status(), lack) {
        // What a person does about it stands by itself.
        (_, Some(lack)) if NeedKind::of(lack).is_some() => Some(lack.to_string()),
        (_, Some(lack @ Lack::Capped { .. })) => {
            Some(hints::sentence(lack, lacking.and_then(|one| one.task.as_ref()), Some(&queue.id)))
        }
        _ if task.reason().is_some() => task.reason().map(str::to_owned),
        (Status::Approved, _) => Some("not merged: tavern merge says why".to_owned()),
        (_, Some(lack)) => Some(hints::sentence(lack, lacking.and_then(|one| one.task.as_ref()), Some(&queue.id))),
        (Status::InReview, None) => Some(format!("tavern status {} says who has to approve it", task.id)),
        (Status::Pending, None) if !crew.iter().any(|post| post.role == role) => {
            Some(hints::sentence(&Lack::Role(role.to_owned()), Some(&task.id), Some(&queue.id)))
        }
        _ => None,
    }
}
