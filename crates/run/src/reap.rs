//! Clears up after dead processes: leases, orphaned processes, worktrees, agent files, temp files.
//!
//! A plan comes first, then its execution, so a dry run prints the actions of a real run. No work of an agent is
//! lost: the content of a worktree is kept before the worktree is removed.
#![expect(
    clippy::disallowed_methods,
    reason = "a run writes its artifacts and worktree"
)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use serde::Serialize;

pub use super::expired_leases::ExpiredLeases;
use super::processes::{INTEGRATION, end_processes, is_marked, mark_of, marked_runs};
use super::record::{Metadata, run_name, run_of, runs, runs_of};

use super::error::Error;
use super::import_sandbox::{cells_aside, left_cells, take_over};
use super::outside_changes::end_of_dead;
use super::report::{back_off, most_attempts};
use super::run_retention::{cell_may_go, may_go, spent_runs};
use super::sandbox_dir::Cell;
use super::wait_expiry::{Expiry, expiries_in};
use super::workspace::{ITEM_BRANCHES, Workspace};
use super::worktree;
use tavern_core::archive::Policy;
use tavern_core::document::Item;
use tavern_core::event::{Blame, Event, Retry};
use tavern_core::lease::{Lease, Life, Token};

use tavern_core::task::{Status, Task, TaskId, Timestamp};
use tavern_store::{AgentFile, Archived, HAND, Note, Slot, life, walk_log};
use tavern_sys::clock;
use tavern_sys::files;

/// Temp files and half-written folders younger than this may still be in use.
const YOUNG_SECONDS: i64 = 60;

/// An event further in the future than this was written by a wrong clock.
const CLOCK_SECONDS: i64 = 60;

/// The number of newest events searched for a back-off.
const MOST_EVENTS: usize = 10_000;

/// One action of the reaper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// End the processes of a run that has no supervisor any more.
    EndRun { run: String },
    /// Return a task after its holder died or its lease expired.
    GiveBack {
        task: TaskId,
        token: Option<Token>,
        agent: Option<String>,
        blame: Blame,
        why: String,
    },
    /// Restore a missing or unreadable lease file from the log.
    PutBackLease { task: TaskId, token: Token },
    /// Remove the lease of an item that is no longer in progress; `None` is the token of an unreadable one.
    DropLease { task: TaskId, token: Option<Token> },
    /// Keep the content of an ended task's worktree, then remove the worktree.
    RemoveWorktree { task: TaskId, path: PathBuf },
    /// End the back-off of an item that was written while the clock was ahead.
    EndBackOff { task: TaskId },
    /// Put an item that has waited too long into the dead letter lane.
    Expire { task: TaskId, why: String },
    /// Remove the file of an agent that is gone.
    RemoveAgent { name: String },
    /// Move ended items from a queue to its archive.
    Archive { queue: String, items: usize },
    /// Delete the branch of an ended item that is fully merged.
    DeleteBranch { task: TaskId, branch: String },
    /// Remove the folder of a run that is too old, or for which there is no room.
    RemoveRun { run: String },
    /// Remove a cell that was imported, or the cell of a completed item that can't be imported.
    RemoveCell { run: String },
    /// Remove a temp file left by a crash.
    RemoveTemp { path: PathBuf },
    /// Remove a lock that a killed git left in the repository.
    RemoveLock { path: PathBuf },
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Action::EndRun { run } => write!(f, "end the processes of run {run}"),
            Action::GiveBack {
                task,
                agent: Some(agent),
                why,
                ..
            } => write!(f, "give {task} back from {agent}: {why}"),
            Action::GiveBack { task, why, .. } => write!(f, "give {task} back: {why}"),
            Action::PutBackLease { task, .. } => {
                write!(
                    f,
                    "write the lease of {task} again, since its file was lost"
                )
            }
            Action::DropLease { task, token: None } => {
                write!(f, "remove the lease of {task}, which can't be read")
            }
            Action::DropLease { task, .. } => write!(
                f,
                "remove the lease of {task}, which is no longer in progress"
            ),
            Action::RemoveWorktree { task, path } => {
                write!(
                    f,
                    "remove the worktree of {task} ({}), keeping its work",
                    path.display()
                )
            }
            Action::EndBackOff { task } => {
                write!(
                    f,
                    "reset the back-off of {task}, which was written while the clock was ahead"
                )
            }
            Action::Expire { task, why } => write!(f, "move {task} to the dead letter lane: {why}"),
            Action::RemoveAgent { name } => {
                write!(f, "remove the file of agent {name}, which is gone")
            }
            Action::Archive { queue, items: 1 } => {
                write!(f, "move 1 ended item of queue {queue} to its archive")
            }
            Action::Archive { queue, items } => write!(
                f,
                "move {items} ended items of queue {queue} to its archive"
            ),
            Action::DeleteBranch { task, branch } => {
                write!(f, "delete the branch {branch} of {task}, which is merged")
            }
            Action::RemoveRun { run } => {
                write!(
                    f,
                    "remove the files of run {run}, of which nothing is left to be merged"
                )
            }
            Action::RemoveCell { run } => {
                write!(f, "remove the remains of the cell of run {run}")
            }
            Action::RemoveTemp { path } => write!(f, "remove the temp file {}", path.display()),
            Action::RemoveLock { path } => write!(
                f,
                "remove the lock {}, which a killed git has left",
                path.display()
            ),
        }
    }
}

/// How thorough a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Dead holders and expired leases, which block other agents. Used by an agent before each claim.
    Leases,
    /// Also the remains of killed programs. Used by an agent at its end.
    Dead,
    /// Also upkeep that blocks nothing: archives, branches, old runs, temp files.
    All,
}

/// Clears all that blocks other agents, and reports each action. Returns false if there was nothing to do, or another
/// reaper is at work.
///
/// # Errors
/// The board can't be read or written.
pub fn clear(
    workspace: &Workspace,
    looks: &mut ExpiredLeases,
    tell: &mut dyn FnMut(&Action),
) -> Result<bool, Error> {
    if plan(workspace, Scope::Leases, looks)?.is_empty() {
        return Ok(false);
    }
    let Some(slot) = workspace.board.try_reap_slot()? else {
        return Ok(false);
    };
    // Settling first finishes changes that a crash interrupted.
    workspace.board.settle()?;
    for action in plan(workspace, Scope::Leases, looks)? {
        if execute(workspace, &action, &slot)? {
            tell(&action);
        }
    }
    Ok(true)
}

/// Returns the actions that are due.
pub fn plan(
    workspace: &Workspace,
    scope: Scope,
    looks: &mut ExpiredLeases,
) -> Result<Vec<Action>, Error> {
    let now = clock::now();
    let mut actions = Vec::new();
    let items = Items::of(workspace, scope, now)?;
    // Includes leases that can't be read at the moment.
    let mut leased: HashSet<TaskId> = workspace.board.leased()?.into_iter().collect();
    let mut leases = workspace.board.leases()?;
    looks.retain(&leases);
    let has_file = |lost: &&Lease| leases.iter().any(|lease| lease.task == lost.task);
    let lost: Vec<Lease> = items
        .lost
        .iter()
        .filter(|lost| !has_file(lost))
        .cloned()
        .collect();
    leased.extend(lost.iter().map(|lease| lease.task.clone()));
    for task in workspace
        .board
        .damaged_leases()?
        .into_iter()
        .filter(|task| !lost.iter().any(|lease| lease.task == *task))
    {
        match items.status(&task) {
            // Treated as an item without a lease.
            Some(status) if status.is_held() => drop(leased.remove(&task)),
            None if !items.is_all => {}
            _ => actions.push(Action::DropLease { task, token: None }),
        }
    }
    leases.extend(lost);
    let is_lost = |lease: &Lease| items.lost.contains(lease);
    for lease in &leases {
        let verdict = match (life(&lease.holder), lease.is_live(now)) {
            (Life::Gone, _) => Some((Blame::Nobody, "its supervisor is gone".to_owned())),
            (_, true) => {
                let (task, token) = (lease.task.clone(), lease.token);
                actions.extend(is_lost(lease).then_some(Action::PutBackLease { task, token }));
                None
            }
            (Life::Unknown, false) => Some((
                Blame::Agent,
                format!(
                    "its lease ran out at {}",
                    lease.expires_at().format("%Y-%m-%d %H:%M:%S UTC")
                ),
            )),
            (Life::Alive, false) => looks.is_second(lease, now).then(|| {
                (
                    Blame::Nobody,
                    "its supervisor lives but has stopped renewing the lease".to_owned(),
                )
            }),
        };
        let Some((blame, why)) = verdict else {
            continue;
        };
        // Its holder may have died before the lease named its work: its set-up may still run.
        let run = run_name(&lease.task, lease.token);
        if is_open(workspace, &run) {
            actions.push(Action::EndRun { run });
        }
        match items.status(&lease.task) {
            Some(status) if status.is_held() => {
                let (task, agent) = (lease.task.clone(), Some(lease.agent.clone()));
                actions.push(Action::GiveBack {
                    task,
                    token: Some(lease.token),
                    agent,
                    blame,
                    why,
                });
            }
            None if !items.is_all => {}
            _ => actions.push(Action::DropLease {
                task: lease.task.clone(),
                token: Some(lease.token),
            }),
        }
    }
    for (task, status) in &items.statuses {
        if !status.is_held() || leased.contains(task) || items.own.contains(task) {
            continue;
        }
        // Only the document says that it is held: its lease was lost with the log, or a person typed that.
        let runs = runs_of(&workspace.board, task)?;
        if runs.is_empty() && workspace.board.is_only_typed(task)? {
            continue;
        }
        let open = runs.into_iter().filter(|run| run.ended.is_none());
        actions.extend(open.map(|run| Action::EndRun { run: run.run }));
        let (task, why) = (task.clone(), "it has no lease".to_owned());
        actions.push(Action::GiveBack {
            task,
            token: None,
            agent: None,
            blame: Blame::Nobody,
            why,
        });
    }
    actions.extend(
        items
            .ahead
            .iter()
            .map(|task| Action::EndBackOff { task: task.clone() }),
    );
    let is_over = |expiry: &&Expiry| expiry.at <= now;
    let expire = |Expiry { task, why, .. }: &Expiry| Action::Expire {
        task: task.clone(),
        why: why.clone(),
    };
    actions.extend(items.expiries.iter().filter(is_over).map(expire));
    actions.extend(items.due.iter().map(|(queue, items)| Action::Archive {
        queue: queue.clone(),
        items: *items,
    }));
    if scope != Scope::Leases {
        plan_dead(workspace, &leases, &leased, &items, now, &mut actions)?;
        if scope == Scope::All {
            plan_upkeep(workspace, &leased, &items, now, &mut actions)?;
        }
    }
    Ok(actions)
}

/// Returns true if the run has no recorded end, a cell, or live processes.
fn is_open(workspace: &Workspace, run: &str) -> bool {
    let has_no_end = run_of(&workspace.board, run).is_some_and(|metadata| metadata.ended.is_none());
    has_no_end || Cell::of(workspace, run).is_there() || is_marked(&mark_of(workspace, run))
}

/// The items of all queues.
struct Items {
    statuses: Vec<(TaskId, Status)>,
    /// Leases with missing or unreadable files.
    lost: Vec<Lease>,
    /// Items that a person, and no claim, put in progress.
    own: HashSet<TaskId>,
    /// Items with a back-off from a time when the clock was ahead.
    ahead: Vec<TaskId>,
    /// When waiting items expire.
    expiries: Vec<Expiry>,
    /// False if a queue could not be read: an item missing from `statuses` may be there.
    is_all: bool,
    /// How many items are due for the archive, by queue.
    due: Vec<(String, usize)>,
}

impl Items {
    fn of(workspace: &Workspace, scope: Scope, now: Timestamp) -> Result<Items, Error> {
        let mut items = Items {
            statuses: Vec::new(),
            lost: Vec::new(),
            own: HashSet::new(),
            ahead: Vec::new(),
            expiries: Vec::new(),
            is_all: true,
            due: Vec::new(),
        };
        let mut waiting = HashSet::new();
        let policy = archive_policy(workspace);
        let at_least = match scope {
            // The whole archive is written each time.
            Scope::Leases => 1 + policy.keep.unwrap_or(0) / 4,
            Scope::Dead => usize::MAX,
            Scope::All => 0,
        };
        for queue in workspace.board.queues()? {
            let Ok(text) = workspace.board.read(&queue) else {
                items.is_all = false;
                continue;
            };
            let document = text.content.open();
            let named = |at| Some((document.id_at(at)?, document.status_at(at)));
            items
                .statuses
                .extend((0..document.count()).filter_map(named));
            for item in (0..document.count())
                .filter(|at| document.status_at(*at).is_held())
                .map(|at| document.item(at))
            {
                let Some(id) = &item.id else { continue };
                if item.aside {
                    items.own.insert(id.clone());
                } else if workspace.board.has_lost_lease(id)
                    && let Some(lost) = workspace.board.lost_lease(&document.task_of(item))?
                {
                    items.lost.push(lost);
                }
            }
            let waits = |item: &&Item<'_>| {
                document
                    .task_of(item)
                    .state
                    .not_before()
                    .is_some_and(|until| until > now)
            };
            let may_wait = (0..document.count()).filter(|at| document.may_wait(*at));
            waiting.extend(
                may_wait
                    .map(|at| document.item(at))
                    .filter(waits)
                    .filter_map(|item| item.id.clone()),
            );
            items.expiries.extend(expiries_in(workspace, &document)?);
            let due = workspace
                .board
                .due_for_archive(&text, &document, &policy, now, at_least)?;
            items.due.extend((due > 0).then_some((queue.id, due)));
        }
        items.ahead = told_ahead(workspace, waiting, now)?;
        Ok(items)
    }

    fn status(&self, task: &TaskId) -> Option<Status> {
        self.statuses
            .iter()
            .find(|(id, _)| id == task)
            .map(|(_, status)| *status)
    }
}

/// Returns those of the `waiting` tasks with a last event in the log that lies in the future and is not a person's.
fn told_ahead(
    workspace: &Workspace,
    mut waiting: HashSet<TaskId>,
    now: Timestamp,
) -> Result<Vec<TaskId>, Error> {
    let (mut ahead, mut looks) = (Vec::new(), 0);
    if waiting.is_empty() {
        return Ok(ahead);
    }
    walk_log(&workspace.board, None, &mut |entry| {
        if let Some(task) = entry.task.filter(|task| waiting.remove(task)) {
            let is_ahead = (entry.time - now).num_seconds() > CLOCK_SECONDS;
            ahead.extend(Some(task).filter(|_| is_ahead && entry.agent.as_deref() != Some(HAND)));
        }
        looks += 1;
        !waiting.is_empty() && looks < MOST_EVENTS
    })?;
    Ok(ahead)
}

fn archive_policy(workspace: &Workspace) -> Policy {
    let settings = &workspace.config.archive;
    let after = TimeDelta::from_std(settings.after.duration())
        .ok()
        .filter(|after| !after.is_zero());
    Policy {
        after,
        keep: (settings.keep > 0).then_some(settings.keep as usize),
        dead: settings.dead,
    }
}

fn plan_dead(
    workspace: &Workspace,
    leases: &[Lease],
    leased: &HashSet<TaskId>,
    items: &Items,
    now: Timestamp,
    actions: &mut Vec<Action>,
) -> Result<(), Error> {
    let live_runs: HashSet<&str> = leases
        .iter()
        .filter_map(|lease| Some(lease.work.as_ref()?.run.as_str()))
        .collect();
    let marked = marked_runs(workspace);
    for run in &marked {
        let is_open = |run: Metadata| run.ended.is_none() || run.damaged;
        let is_dead =
            run_of(&workspace.board, run).is_some_and(is_open) && !live_runs.contains(run.as_str());
        let planned = Action::EndRun { run: run.clone() };
        if is_dead && !actions.contains(&planned) {
            actions.push(planned);
        }
    }
    for run in left_cells(&workspace.board) {
        let is_held = leases
            .iter()
            .any(|lease| run_name(&lease.task, lease.token) == run);
        let is_known = run_of(&workspace.board, &run).is_some();
        let planned = Action::EndRun { run };
        if !is_held && is_known && !actions.contains(&planned) {
            actions.push(planned);
        }
    }
    if marked.iter().any(|run| run == INTEGRATION) && workspace.board.try_merge_slot()?.is_some() {
        actions.push(Action::EndRun {
            run: INTEGRATION.to_owned(),
        });
    }
    let folder = workspace.board.path("worktrees");
    let mut worktrees = children(&folder);
    // A killed removal may leave only git's registration.
    worktrees.extend(workspace.repository()?.worktrees_in(&folder)?);
    worktrees.sort();
    worktrees.dedup();
    if workspace.config.worktree.keep {
        worktrees.clear();
    }
    for path in worktrees {
        let Some(task) = path
            .file_name()
            .and_then(|name| name.to_str()?.parse::<TaskId>().ok())
        else {
            continue;
        };
        // A deleted item has no status, and can't come back.
        if !leased.contains(&task) && items.status(&task).map_or(items.is_all, Status::is_ended) {
            actions.push(Action::RemoveWorktree { task, path });
        }
    }
    for agent in workspace.board.agents() {
        let is_stale =
            life(&agent.holder) == Life::Unknown && (now - agent.heartbeat_at).num_minutes() > 60;
        if life(&agent.holder) == Life::Gone || is_stale {
            actions.push(Action::RemoveAgent { name: agent.name });
        }
    }
    let branch = format!("refs/heads/{}", workspace.integration());
    let locks = workspace
        .repository()?
        .stale_locks(&folder, &[branch.as_str()])?;
    actions.extend(locks.into_iter().map(|path| Action::RemoveLock { path }));
    Ok(())
}

fn plan_upkeep(
    workspace: &Workspace,
    leased: &HashSet<TaskId>,
    items: &Items,
    now: Timestamp,
    actions: &mut Vec<Action>,
) -> Result<(), Error> {
    plan_branches(workspace, leased, items, actions)?;
    actions.extend(
        spent_runs(workspace, runs(&workspace.board)?, now)?
            .into_iter()
            .map(|run| Action::RemoveRun { run }),
    );
    for cell in cells_aside(&workspace.board) {
        if cell_may_go(workspace, &cell)? {
            actions.push(Action::RemoveCell { run: cell.run });
        }
    }
    let mut temps: Vec<PathBuf> = folders_of_files(workspace)?
        .iter()
        .flat_map(|folder| children(folder))
        .collect();
    temps.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(tavern_store::TEMP_PREFIX) && is_old(path, now)
    });
    temps.sort();
    temps.dedup();
    actions.extend(temps.into_iter().map(|path| Action::RemoveTemp { path }));
    Ok(())
}

/// Plans to delete fully merged branches of ended items. A person's own branches are never among these.
fn plan_branches(
    workspace: &Workspace,
    leased: &HashSet<TaskId>,
    items: &Items,
    actions: &mut Vec<Action>,
) -> Result<(), Error> {
    let (archived, held) = (
        Archived::of(&workspace.board),
        workspace.repository()?.held_branches()?,
    );
    for branch in workspace.repository()?.branches(ITEM_BRANCHES)? {
        let Some(id) = branch
            .strip_prefix(ITEM_BRANCHES)
            .and_then(|id| id.parse::<TaskId>().ok())
        else {
            continue;
        };
        if leased.contains(&id) || held.contains(&branch) || workspace.board.worktree(&id).exists()
        {
            continue;
        }
        let status = items.status(&id).or_else(|| archived.status_of(&id));
        if status.is_some_and(Status::is_ended)
            && worktree::merged_branch(workspace, &Task::new(id.clone(), ""))?.is_some()
        {
            actions.push(Action::DeleteBranch { task: id, branch });
        }
    }
    Ok(())
}

/// Returns the folders where files are replaced, or where folders are hidden before they are deleted.
fn folders_of_files(workspace: &Workspace) -> Result<Vec<PathBuf>, Error> {
    let mut folders: Vec<PathBuf> = [
        "",
        "runs",
        "queues",
        "queues/archive",
        "agents",
        "quota",
        "worktrees",
    ]
    .map(|name| workspace.board.path(name))
    .to_vec();
    folders.extend(["", "seen", "leases", "slots"].map(|name| workspace.board.private(name)));
    let queues = workspace.board.queues()?;
    folders.extend(
        queues
            .iter()
            .filter_map(|queue| queue.path.canonicalize().ok()?.parent().map(Path::to_owned)),
    );
    for name in ["runs", "inbox"] {
        folders.extend(
            children(&workspace.board.path(name))
                .into_iter()
                .filter(|path| path.is_dir()),
        );
    }
    Ok(folders)
}

/// Executes the action, unless it is no longer due. Returns true if it was done, or would be in a dry run. The caller
/// holds the board's reap slot, so two reapers never work on the same worktree.
pub fn execute(workspace: &Workspace, action: &Action, _slot: &Slot) -> Result<bool, Error> {
    if workspace.board.is_dry() {
        return Ok(true);
    }
    match action {
        Action::EndRun { run } => end_run(workspace, run),
        Action::GiveBack {
            task,
            token,
            blame,
            why,
            ..
        } => give_back(workspace, task, *token, *blame, why),
        Action::PutBackLease { task, token } => Ok(workspace.board.put_back_lease(task, *token)?),
        Action::DropLease { task, token } => Ok(workspace.board.drop_stray_lease(task, *token)?),
        Action::EndBackOff { task } => submit(workspace, task, &Event::Resume { reason: None }),
        Action::Expire { task, why } => submit(
            workspace,
            task,
            &Event::Expire {
                reason: why.clone(),
            },
        ),
        Action::RemoveWorktree { task, .. } => remove_worktree(workspace, task),
        Action::DeleteBranch { task, .. } => match workspace.board.task(task) {
            Ok(found) if found.task.status().is_ended() && found.lease.is_none() => {
                worktree::delete_merged_branch(workspace, &found.task)
            }
            _ => Ok(false),
        },
        Action::RemoveRun { run } => remove_run(workspace, run),
        Action::RemoveCell { run } => remove_cells(workspace, run),
        Action::RemoveAgent { name } => {
            // Another agent may use the name by now.
            let is_back =
                |agent: &AgentFile| agent.name == *name && life(&agent.holder) == Life::Alive;
            if workspace.board.agents().iter().any(is_back) {
                return Ok(false);
            }
            workspace.board.remove_agent(name);
            Ok(true)
        }
        Action::Archive { queue, .. } => {
            // An editor may have moved the file away for a moment.
            let Ok(queue) = workspace.board.queue_by_id(queue) else {
                return Ok(false);
            };
            Ok(workspace
                .board
                .archive(&queue, &archive_policy(workspace))?
                > 0)
        }
        // A folder here is a removed worktree, say: its content was kept before.
        Action::RemoveTemp { path } if path.is_dir() => remove_folder(path),
        Action::RemoveLock { path } => Ok(workspace.repository()?.remove_stale_lock(path)?),
        Action::RemoveTemp { path } => match fs::remove_file(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true).map_err(Error::io("remove", path)),
        },
    }
}

fn end_run(workspace: &Workspace, run: &str) -> Result<bool, Error> {
    if run == INTEGRATION {
        // The slot's next holder has ended these processes, and its own must live.
        let Some(_slot) = workspace.board.try_merge_slot()? else {
            return Ok(false);
        };
        return end_processes(workspace, run).map(|()| true);
    }
    let task = run.rsplit_once('@').and_then(|(task, _)| task.parse().ok());
    let lease = task.and_then(|task| workspace.board.lease(&task).ok().flatten());
    let lease = lease.filter(|lease| run_name(&lease.task, lease.token) == run);
    // Its holder may have renewed the lease after all.
    if lease.is_some_and(|lease| life(&lease.holder) != Life::Gone && lease.is_live(clock::now())) {
        return Ok(false);
    }
    end_processes(workspace, run)?;
    if let Some(metadata) = run_of(&workspace.board, run) {
        take_over(workspace, &metadata.task, &metadata)?;
    }
    end_of_dead(workspace, run)?;
    Ok(true)
}

fn give_back(
    workspace: &Workspace,
    task: &TaskId,
    token: Option<Token>,
    blame: Blame,
    why: &str,
) -> Result<bool, Error> {
    let lease = workspace
        .board
        .task(task)
        .ok()
        .and_then(|found| found.lease);
    let role = lease
        .as_ref()
        .map(|lease| lease.role.as_str())
        .unwrap_or_default();
    // A role with one try has used it once the agent program was about to start, however it ended.
    let has_begun = lease.as_ref().is_some_and(|lease| lease.work.is_some());
    let is_spent = has_begun
        && workspace
            .config
            .roles
            .get(role)
            .is_some_and(|role| role.once);
    let blame = if is_spent { Blame::Agent } else { blame };
    let (policy, most) = match blame {
        Blame::Agent => (
            &workspace.config.outcomes.failed,
            most_attempts(workspace, &workspace.board.task(task)?.task, role),
        ),
        Blame::Nobody => (
            &workspace.config.outcomes.killed,
            workspace.config.max_returns,
        ),
    };
    let nth = lease.as_ref().map_or(1, |lease| lease.attempt);
    let not_before = if blame == Blame::Agent {
        back_off(policy.wait(nth))
    } else {
        None
    };
    let life = lease.map_or(Life::Unknown, |lease| life(&lease.holder));
    let event = Event::Reap {
        token,
        life,
        retry: Retry {
            blame,
            not_before,
            most,
        },
        reason: why.to_owned(),
    };
    submit(workspace, task, &event)
}

/// Submits the event. Returns false if it is no longer due.
fn submit(workspace: &Workspace, task: &TaskId, event: &Event) -> Result<bool, Error> {
    match workspace.board.submit(task, event, &Note::default()) {
        Ok(done) => {
            if done.task.status() == Status::Dead {
                worktree::clear_ended(workspace, &done.task)?;
            }
            Ok(true)
        }
        // Another process was faster, the holder has renewed, or a person has removed the item or must fix it first.
        Err(
            tavern_store::Error::Refused(_)
            | tavern_store::Error::NoTask(_)
            | tavern_store::Error::Quarantined { .. },
        ) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Hides the folder first: if the reaper is killed in between, the rest is a temp folder.
fn remove_run(workspace: &Workspace, run: &str) -> Result<bool, Error> {
    if !may_go(workspace, run)? {
        return Ok(false);
    }
    let aside = workspace
        .board
        .path("runs")
        .join(format!("{}{run}", tavern_store::TEMP_PREFIX));
    let folder = workspace.board.run_dir(run);
    fs::rename(&folder, &aside).map_err(Error::io("remove the run in", &folder))?;
    remove_folder(&aside)
}

fn remove_cells(workspace: &Workspace, run: &str) -> Result<bool, Error> {
    // A cell is put aside only at the end of its import, which holds the slot.
    let _slot = workspace.board.cell_slot()?;
    let mut was_removed = false;
    for cell in cells_aside(&workspace.board)
        .into_iter()
        .filter(|cell| cell.run == run)
    {
        was_removed |= cell_may_go(workspace, &cell)? && remove_folder(&cell.path)?;
    }
    Ok(was_removed)
}

fn remove_folder(path: &Path) -> Result<bool, Error> {
    files::remove_tree(path).map_err(Error::io("remove", path))?;
    Ok(true)
}

fn remove_worktree(workspace: &Workspace, task: &TaskId) -> Result<bool, Error> {
    // A person may have reopened the item, and an agent taken it.
    match workspace.board.task(task) {
        Ok(found) if found.task.status().is_ended() && found.lease.is_none() => {}
        Err(tavern_store::Error::NoTask(_)) if workspace.board.lease(task)?.is_none() => {}
        _ => return Ok(false),
    }
    worktree::clear(workspace, &Task::new(task.clone(), ""))?;
    Ok(true)
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

fn is_old(path: &Path, now: Timestamp) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    // A file that is gone or can't be examined must not be removed.
    modified
        .is_ok_and(|modified| (now - clock::whole_seconds(modified)).num_seconds() > YOUNG_SECONDS)
}
