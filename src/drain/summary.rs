//! The results of a drain.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::Serialize;

use super::failed_output::{end_of, fails};
use super::rejected::{NAMED, hindrance, lacking};
use super::roster::Post;
use super::stop_reason::Cut;
use crate::check::shown;
use crate::message_groups::Alike;
use crate::needs::{self, Need};
use crate::outside_changes::{OutsideReport, tell_of_tip};
use crate::{CliError, Context, format, hints};
use tavern_core::document::{Document, Item, parse};
use tavern_core::eligible::{Lack, for_roles};
use tavern_core::event::Kind;
use tavern_core::need::NeedKind;
use tavern_core::steps::Steps;
use tavern_core::task::{Status, Task, TaskId};
use tavern_run::readiness::Unready;
use tavern_run::record::RunNames;
use tavern_run::runner::EndReason;
use tavern_run::unmerged_work::Unmerged;
use tavern_run::{Metadata, Workspace};
use tavern_store::{Archived, Entry, Queue, tail_log};
use tavern_sys::clock;
use tavern_sys::process::quoted;

/// An item that was not completed.
#[derive(Serialize)]
pub(super) struct Left {
    pub queue: String,
    pub line: usize,
    pub task: Option<TaskId>,
    pub title: String,
    /// Context that tells it from others with its title.
    #[serde(skip)]
    pub above: String,
    pub status: Status,
    pub reason: Option<String>,
    /// A cap that it shares with other runs is used up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
    /// Its text has a problem, so no agent takes it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
    /// The agents can't work on it as it is.
    #[serde(skip)]
    pub stays: bool,
    /// It waits only for other items.
    #[serde(skip)]
    pub is_behind: bool,
    /// The action that it needs from a person.
    #[serde(flatten)]
    pub need: Option<Need>,
    /// The folder of its last run.
    pub run: Option<String>,
    /// Git revisions with its unmerged work.
    pub kept: Vec<String>,
    /// Its ID or line.
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    pub path: PathBuf,
    /// The time of this drain's runs of it, in seconds.
    #[serde(skip)]
    pub seconds: u64,
    /// The end of its last run's output, if that failed.
    #[serde(skip)]
    pub output: String,
}

impl Left {
    /// Returns the reason why it is not completed.
    pub(super) fn why(&self) -> &str {
        self.reason.as_deref().unwrap_or(self.status.as_str())
    }

    /// Returns its title for a list.
    pub(super) fn listed(&self) -> String {
        format!("{}{}", self.above, self.title)
    }

    /// Returns its name, and its queue.
    pub(super) fn place(&self) -> String {
        if self.task.is_some() {
            format!("{}: {}", self.queue, self.name)
        } else {
            self.name.clone()
        }
    }

    /// Returns hints and places to look, one per line.
    pub(super) fn details(&self) -> impl Iterator<Item = String> {
        let todo = self.need.iter().map(|need| format!("to do: {}", need.todo));
        let see = self.run.iter().map(|run| format!("see {run}"));
        let work = (!self.kept.is_empty()).then(|| format!("its work: tavern diff {}", self.name));
        let is_dead = self.status == Status::Dead;
        let again = is_dead.then(|| format!("to retry it: tavern retry {}", self.name));
        todo.chain(see).chain(work).chain(again)
    }
}

/// An item that was completed or cancelled.
#[derive(Serialize)]
pub(super) struct EndedItem {
    pub queue: String,
    pub task: TaskId,
    pub title: String,
    pub status: Status,
    /// The merge commit; `None` for an item without a worktree.
    pub commit: Option<String>,
    /// Its open steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_steps: Vec<String>,
    /// The time of this drain's runs of it, in seconds.
    #[serde(skip)]
    pub seconds: u64,
}

/// The results of all items that were open.
#[derive(Default, Serialize)]
pub(super) struct Summary {
    pub completed: usize,
    pub cancelled: usize,
    /// The number of items that died in this drain and still are dead.
    pub failed: usize,
    pub ended: Vec<EndedItem>,
    /// Items that had ended before.
    #[serde(skip)]
    pub earlier: Vec<EndedItem>,
    pub left: Vec<Left>,
    /// Changes outside of a worktree while its agent ran.
    pub strayed: Vec<OutsideReport>,
    pub usd: f64,
    pub seconds: u64,
}

impl Summary {
    /// Adds a completed or cancelled item; it is new if it `became` so in this drain.
    fn add_ended(&mut self, became: &HashSet<(&TaskId, Status)>, ended: EndedItem) {
        if !became.contains(&(&ended.task, ended.status)) {
            return self.earlier.push(ended);
        }
        match ended.status {
            Status::Completed => self.completed += 1,
            _ => self.cancelled += 1,
        }
        self.ended.push(ended);
    }

    /// Adds items that were archived by the events `since` the beginning, and are still archived.
    fn add_archived(
        &mut self,
        workspace: &Workspace,
        queues: &[Queue],
        since: &[Entry],
        strayed: &HashSet<TaskId>,
        before: u64,
    ) -> Result<(), CliError> {
        let became = became(since);
        let (runs, archived, mut seen) = (
            RunNames::list(&workspace.board)?,
            Archived::of(&workspace.board),
            HashSet::new(),
        );
        let mut live = HashSet::new();
        // Unreadable queues count as empty.
        for text in workspace
            .board
            .queues()?
            .iter()
            .filter_map(|queue| workspace.board.read(queue).ok())
        {
            live.extend(
                text.content
                    .parse()
                    .0
                    .items()
                    .iter()
                    .filter_map(|item| item.id.clone()),
            );
        }
        // Newest first, so that an item that was reopened and ended again is added once.
        for entry in since
            .iter()
            .rev()
            .filter(|entry| entry.kind == Kind::Archived)
        {
            let is_ours = is_of(entry, queues)
                || entry
                    .task
                    .as_ref()
                    .is_some_and(|task| strayed.contains(task));
            let (true, Some(block)) = (is_ours, entry.change.before()) else {
                continue;
            };
            let (document, _) = parse(block);
            for (number, item) in document.items().iter().enumerate() {
                let Some(id) = &item.id else { continue };
                let is_archived = !live.contains(id) && archived.status_of(id).is_some();
                if !is_archived || !seen.insert(id.clone()) {
                    continue;
                }
                let runs = runs.runs_of(&workspace.board, id);
                let runs = since_then(&runs, before);
                self.usd += usd(&runs);
                // The lane may have decided the status of the first one.
                let status = entry.from().filter(|_| number == 0).unwrap_or(item.status);
                let queue = entry.queue.clone().unwrap_or_default();
                self.add_ended(
                    &became,
                    EndedItem {
                        status,
                        ..ended(queue, &document, item, id, &runs)
                    },
                );
            }
        }
        Ok(())
    }

    /// Returns true if a person can continue each item that is left, or one that it waits for.
    pub(super) fn waits_for_person(&self) -> bool {
        let has_need = |left: &Left| left.need.is_some();
        let is_behind = |left: &Left| left.is_behind || left.status == Status::Waiting;
        self.left.iter().any(has_need)
            && self
                .left
                .iter()
                .all(|left| has_need(left) || is_behind(left))
    }

    /// Returns true if there was nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        self.ended.is_empty() && self.left.is_empty()
    }

    /// Returns true if a higher cap would let some items continue.
    pub(super) fn is_capped(&self) -> bool {
        self.left.iter().any(|left| left.capped)
    }

    /// Returns true if a fixed text would let some items continue.
    pub(super) fn is_broken(&self) -> bool {
        self.left.iter().any(|left| left.broken)
    }

    /// Returns the totals in one line.
    pub(super) fn totals(&self) -> String {
        let spent = if self.usd > 0.0 {
            format!(", {}", format::money(self.usd))
        } else {
            String::new()
        };
        let (completed, left) = (self.completed, self.left.len() - self.failed);
        let all = completed + self.left.len();
        let failed = if self.failed == 0 {
            String::new()
        } else {
            format!(", {} failed", self.failed)
        };
        format!(
            "{completed} of {all} completed{failed}, {left} left{spent} in {} s",
            self.seconds
        )
    }

    /// Returns lines for completed items with open steps.
    fn open_steps<'s>(&'s self, context: &'s Context) -> impl Iterator<Item = String> + 's {
        let is_told =
            |one: &&EndedItem| one.status == Status::Completed && !one.open_steps.is_empty();
        let told = self.ended.iter().filter(is_told);
        let more = told.clone().count().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("… and {more} more: completed, with open steps"));
        let lines = told.take(NAMED).map(|one| {
            let head = format!(
                "{}: {} completed, with {} open: ",
                one.queue,
                one.task,
                format::count(one.open_steps.len(), "step")
            );
            context.out.fitted(&head, &one.open_steps.join("; "), "")
        });
        lines.chain(more)
    }

    pub(super) fn print(&self, context: &Context, workspace: &Workspace) -> Result<(), CliError> {
        let mut lines = vec![self.totals()];
        let mut alike = Alike::default();
        for left in &self.left {
            let said = [format!("{}: {}", left.queue, left.status)]
                .into_iter()
                .chain(left.reason.clone());
            if !alike.shows(&said.collect::<Vec<_>>().join(", "), left.task.as_ref()) {
                continue;
            }
            let head = format!("{} {} — ", left.place(), left.status);
            lines.push(context.out.fitted(&head, &left.listed(), ""));
            lines.extend(
                left.reason
                    .clone()
                    .into_iter()
                    .chain(left.details())
                    .map(|line| format!("  {line}")),
            );
        }
        lines.extend(alike.left_out());
        lines.extend(self.open_steps(context));
        lines.extend(self.strayed.iter().map(OutsideReport::to_string));
        let is_merged = self.ended.iter().any(|one| one.commit.is_some());
        lines.extend(is_merged.then(|| to_merge(workspace)));
        context.out.record(self, lines.join("\n"))?;
        tell_of_tip(context, workspace);
        Ok(())
    }
}

/// Returns the branch with the merged work, and the command that brings it into the user's own.
pub(crate) fn to_merge(workspace: &Workspace) -> String {
    let branch = quoted(workspace.integration());
    format!("merged work is on branch {branch}: git merge {branch}")
}

/// Returns the results of `queues`, and of items that were begun there after the event `before` and moved
/// elsewhere. `cut` is the reason if the drain ended early.
pub(super) fn summarise(
    workspace: &Workspace,
    queues: &[Queue],
    crew: &[Post],
    before: u64,
    cut: Option<&Cut>,
) -> Result<Summary, CliError> {
    let (mut summary, roles) = (Summary::default(), workspace.config.known_roles());
    let since = tail_log(&workspace.board, before)?;
    let (became, mut strayed) = (became(&since), begun(&since, queues));
    let mut all: Vec<Queue> = queues
        .iter()
        .filter(|queue| queue.path.is_file())
        .cloned()
        .collect();
    for queue in &all {
        let text = workspace.board.read(queue)?;
        let (document, _) = text.content.parse();
        strayed.retain(|id| document.find(id).is_none());
    }
    let own = all.len();
    if !strayed.is_empty() {
        let is_other =
            |queue: &Queue| !queues.contains(queue) && workspace.board.read(queue).is_ok();
        all.extend(workspace.board.queues()?.into_iter().filter(is_other));
    }
    let kept = Unmerged::of(workspace.repository()?, workspace.integration());
    let names = RunNames::list(&workspace.board)?;
    let mut unready = lacking(workspace, &all);
    for (number, queue) in all.iter().enumerate() {
        let text = workspace.board.read(queue)?;
        let (document, _) = text.content.parse();
        let mut apart = document.apart();
        for (at, item) in document.items().iter().enumerate() {
            let titled = for_roles(&document, item, &roles);
            let item = titled.as_ref();
            if item.aside || number >= own && !item.id.as_ref().is_some_and(|id| strayed.remove(id))
            {
                continue;
            }
            let runs = item
                .id
                .as_ref()
                .map(|id| names.runs_of(&workspace.board, id))
                .unwrap_or_default();
            let ours = since_then(&runs, before);
            summary.usd += usd(&ours);
            let lacking = unready.remove(&(queue.id.clone(), item.line));
            // A dead item has its own line.
            let need = lacking
                .as_ref()
                .filter(|one| {
                    let waits = |lack| NeedKind::of(lack).is_some();
                    item.status != Status::Dead && one.lacks.iter().any(waits)
                })
                .and_then(|one| needs::of(&one.lacks, None, item.id.as_ref(), &queue.id));
            if matches!(item.status, Status::Completed | Status::Cancelled) {
                if let Some(id) = &item.id {
                    summary.add_ended(&became, ended(queue.id.clone(), &document, item, id, &ours));
                }
                continue;
            }
            let (task, status) = (document.task_of(item), item.status);
            let hindrance = hindrance(workspace, &task, lacking.as_ref(), crew);
            let reason = task.reason();
            let failed = runs.last().filter(|run| has_failed(run, status));
            summary.left.push(Left {
                kept: item
                    .id
                    .as_ref()
                    .filter(|_| !runs.is_empty())
                    .map(|id| kept.places(id))
                    .unwrap_or_default(),
                queue: queue.id.clone(),
                line: item.line,
                task: item.id.clone(),
                title: document.title(item).to_owned(),
                above: apart.remove(&at).unwrap_or_default(),
                status,
                stays: hindrance.is_some(),
                broken: lacking.as_ref().is_some_and(Unready::is_broken),
                is_behind: lacking.as_ref().is_some_and(|one| {
                    one.lacks
                        .iter()
                        .all(|lack| matches!(lack, Lack::Dependencies(_)))
                }),
                capped: lacking
                    .as_ref()
                    .is_some_and(|one| matches!(one.foremost(), Lack::Capped { .. })),
                reason: cut
                    .and_then(|cut| why_cut(&task, cut))
                    .or_else(|| why(&task, reason, lacking.as_ref(), hindrance.as_ref(), queue)),
                need,
                output: failed
                    .map(|run| end_of(workspace, &run.run))
                    .unwrap_or_default(),
                run: runs
                    .last()
                    .map(|run| shown(&workspace.board.run_dir(&run.run), workspace.board.root())),
                path: queue.path.clone(),
                name: name_of(queue, item),
                seconds: seconds_of(&ours),
            });
        }
    }
    summary.add_archived(workspace, queues, &since, &strayed, before)?;
    let has_died = |left: &&Left| {
        left.task
            .as_ref()
            .is_some_and(|id| became.contains(&(id, Status::Dead)))
    };
    summary.failed = summary
        .left
        .iter()
        .filter(|left| left.status == Status::Dead)
        .filter(has_died)
        .count();
    summary.strayed = since.into_iter().filter_map(OutsideReport::of).collect();
    Ok(summary)
}

/// Returns its name as it can be typed.
fn name_of(queue: &Queue, item: &Item<'_>) -> String {
    item.id.as_ref().map_or_else(
        || format!("{}:{}", queue.id, item.line),
        ToString::to_string,
    )
}

fn ended(
    queue: String,
    document: &Document<'_>,
    item: &Item<'_>,
    id: &TaskId,
    runs: &[&Metadata],
) -> EndedItem {
    let (title, status) = (document.title(item).to_owned(), item.status);
    let task = document.task_of(item);
    let commit = task.commit().map(str::to_owned);
    let open_steps = Steps::of(&task.description).unwrap_or_default().open;
    EndedItem {
        queue,
        task: id.clone(),
        title,
        status,
        commit,
        open_steps,
        seconds: seconds_of(runs),
    }
}

/// Returns the runs that began after the event `before`.
fn since_then(runs: &[Metadata], before: u64) -> Vec<&Metadata> {
    runs.iter().filter(|run| run.token > before).collect()
}

fn usd(runs: &[&Metadata]) -> f64 {
    runs.iter().map(|run| run.usage.usd).sum()
}

/// Returns their total time, in seconds.
fn seconds_of(runs: &[&Metadata]) -> u64 {
    runs.iter()
        .map(|run| u64::try_from(run.seconds(clock::now())).unwrap_or_default())
        .sum()
}

/// Returns true if the output of an item's last run, or of the check after its merge, shows its failure.
fn has_failed(run: &Metadata, status: Status) -> bool {
    status == Status::Dead || run.outcome.is_some_and(fails)
}

/// Returns the statuses that items got by these events.
fn became(since: &[Entry]) -> HashSet<(&TaskId, Status)> {
    since
        .iter()
        .filter_map(|entry| Some((entry.task.as_ref()?, entry.to()?)))
        .collect()
}

/// Returns the items that were claimed from `queues`, or moved with their whole file.
fn begun(since: &[Entry], queues: &[Queue]) -> HashSet<TaskId> {
    let is_gone = |entry: &Entry| {
        queues
            .iter()
            .any(|queue| entry.queue.as_ref() == Some(&queue.id) && !queue.path.is_file())
    };
    let is_begun = |entry: &&Entry| match entry.kind {
        Kind::Claimed => is_of(entry, queues),
        Kind::Moved => is_gone(entry),
        _ => false,
    };
    since
        .iter()
        .filter(is_begun)
        .filter_map(|entry| entry.task.clone())
        .collect()
}

fn is_of(entry: &Entry, queues: &[Queue]) -> bool {
    queues
        .iter()
        .any(|queue| entry.queue.as_ref() == Some(&queue.id))
}

/// Returns the reason if the end of the drain left it undone.
fn why_cut(task: &Task, cut: &Cut) -> Option<String> {
    match task.status() {
        Status::Approved => Some("the drain ended before the merge: tavern merge".to_owned()),
        Status::Pending if task.reason() == Some(EndReason::Stop.describe()) => {
            Some(format!("stopped: the drain was {cut}"))
        }
        _ => None,
    }
}

/// Returns why an item is not completed: its last run's `reason`, else its lack.
fn why(
    task: &Task,
    reason: Option<&str>,
    lacking: Option<&Unready>,
    hindrance: Option<&Lack>,
    queue: &Queue,
) -> Option<String> {
    let lack = lacking.map(Unready::foremost);
    let id = Some(&task.id).filter(|id| **id != TaskId::nobody());
    match (task.status(), lack) {
        // The person's action is shown separately.
        (_, Some(lack @ Lack::Approval)) if let Some(reason) = reason => {
            Some(format!("{lack}: {reason}"))
        }
        (status, Some(lack)) if status != Status::Dead && NeedKind::of(lack).is_some() => {
            Some(lack.to_string())
        }
        (_, Some(lack @ Lack::Capped { .. })) => Some(hints::sentence(lack, id, Some(&queue.id))),
        _ if reason.is_some() => reason.map(str::to_owned),
        (Status::Approved, _) => Some("not merged; for the reason: tavern merge".to_owned()),
        (_, Some(lack)) => Some(hints::sentence(lack, id, Some(&queue.id))),
        (_, None) => hindrance.map(|lack| hints::unattended(lack, id, &queue.id)),
    }
}
