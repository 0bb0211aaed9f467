//! Clearing up after what died: leases, orphaned processes, worktrees, agent files, temp files.
//!
//! First a plan, then its execution: what a dry run prints is what the real run does. Nothing that an agent made is
//! thrown away: before a worktree is removed, what it holds is kept.
#![expect(clippy::disallowed_methods, reason = "a run writes its artifacts and worktree")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::artifacts::{Artifacts, runs};
use super::error::Error;
use super::report::back_off;
use super::runners;
use super::site::Site;
use super::worktree;
use crate::board::document::parse;
use crate::board::event::{Blame, Event, Retry};
use crate::board::lease::{Lease, Life, Token};
use crate::board::task::{Status, Task, TaskId, Timestamp};
use crate::clock;
use crate::process::{self, Mark};
use crate::runner::Outcome;
use crate::store::{self, Note, Slot, life};

/// Temp files and half-written folders younger than this may still be somebody's.
const YOUNG_SECONDS: i64 = 60;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// End the processes of a run that nobody supervises any more.
    EndRun { run: String },
    /// Give a task back whose holder is gone, or whose lease ran out.
    GiveBack { task: TaskId, token: Option<Token>, agent: Option<String>, blame: Blame, why: String },
    /// Remove a lease whose item is no longer in progress.
    DropLease { task: TaskId, token: Token },
    /// Keep what an ended task's worktree holds, then remove it.
    RemoveWorktree { task: TaskId, path: PathBuf },
    /// Remove the file of an agent that is gone.
    RemoveAgent { name: String },
    /// Remove a temp file that a crash left.
    RemoveTemp { path: PathBuf },
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Action::EndRun { run } => write!(f, "end the processes of run {run}"),
            Action::GiveBack { task, agent: Some(agent), why, .. } => write!(f, "give {task} back from {agent}: {why}"),
            Action::GiveBack { task, why, .. } => write!(f, "give {task} back: {why}"),
            Action::DropLease { task, .. } => write!(f, "remove the lease of {task}, which is no longer in progress"),
            Action::RemoveWorktree { task, path } => {
                write!(f, "remove the worktree of {task} ({}), keeping what it holds", path.display())
            }
            Action::RemoveAgent { name } => write!(f, "remove the file of agent {name}, which is gone"),
            Action::RemoveTemp { path } => write!(f, "remove the temp file {}", path.display()),
        }
    }
}

/// How thorough a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What keeps others from working: dead holders and run-out leases. For an agent, before each claim.
    Leases,
    /// Everything.
    All,
}

/// An expired lease whose holder lives on this host is left to a second look: after a laptop slept, every lease has
/// run out at once and every holder is about to renew. The keys of what was seen expired go into `seen`.
#[derive(Debug, Default)]
pub struct Looks {
    seen: Vec<(TaskId, Token, Timestamp, std::time::Instant)>,
}

impl Looks {
    /// Seen like this before, at least half a lease ago, without a heartbeat since.
    fn is_second(&mut self, lease: &Lease) -> bool {
        let same = |seen: &&(TaskId, Token, Timestamp, std::time::Instant)| {
            seen.0 == lease.task && seen.1 == lease.token && seen.2 == lease.heartbeat_at
        };
        match self.seen.iter().find(same) {
            Some((.., first)) => first.elapsed() >= Duration::from_secs(u64::from(lease.seconds) / 2),
            None => {
                self.seen.retain(|seen| seen.0 != lease.task);
                self.seen.push((lease.task.clone(), lease.token, lease.heartbeat_at, clock::instant()));
                false
            }
        }
    }
}

/// What there is to clear.
pub fn plan(site: &Site, scope: Scope, looks: &mut Looks) -> Result<Vec<Action>, Error> {
    let now = clock::now();
    let mut actions = Vec::new();
    let leases = site.board.leases()?;
    let statuses = statuses(site)?;
    for lease in &leases {
        let is_held = statuses.iter().any(|(id, status)| *id == lease.task && status.is_held());
        let verdict = match (life(&lease.holder), lease.is_live(now)) {
            (Life::Gone, _) => Some((Blame::Nobody, "its supervisor is gone".to_owned())),
            (_, true) => None,
            (Life::Unknown, false) => Some((Blame::Agent, format!("its lease ran out at {}", lease.expires_at()))),
            (Life::Alive, false) => looks
                .is_second(lease)
                .then(|| (Blame::Nobody, "its supervisor lives but has stopped renewing the lease".to_owned())),
        };
        let Some((blame, why)) = verdict else { continue };
        if let Some(work) = &lease.work {
            actions.push(Action::EndRun { run: work.run.clone() });
        }
        actions.push(if is_held {
            let (task, agent) = (lease.task.clone(), Some(lease.agent.clone()));
            Action::GiveBack { task, token: Some(lease.token), agent, blame, why }
        } else {
            Action::DropLease { task: lease.task.clone(), token: lease.token }
        });
    }
    let leased: HashSet<&TaskId> = leases.iter().map(|lease| &lease.task).collect();
    for (task, status) in &statuses {
        if status.is_held() && !leased.contains(task) {
            actions.push(Action::GiveBack {
                task: task.clone(),
                token: None,
                agent: None,
                blame: Blame::Nobody,
                why: "nobody holds a lease for it".to_owned(),
            });
        }
    }
    if scope == Scope::All {
        plan_rest(site, &leased, &statuses, now, &mut actions)?;
    }
    Ok(actions)
}

fn plan_rest(
    site: &Site,
    leased: &HashSet<&TaskId>,
    statuses: &[(TaskId, Status)],
    now: Timestamp,
    actions: &mut Vec<Action>,
) -> Result<(), Error> {
    let live_runs: HashSet<String> = site.board.leases()?.into_iter().filter_map(|l| Some(l.work?.run)).collect();
    for run in runs(&site.board)? {
        let log = site.board.run_dir(&run.run).join("thread.jsonl");
        let is_running = run.ended.is_none() && process::is_running(&log).unwrap_or(false);
        let planned = Action::EndRun { run: run.run.clone() };
        if is_running && !live_runs.contains(&run.run) && !actions.contains(&planned) {
            actions.push(planned);
        }
    }
    let folder = site.board.path("worktrees");
    let mut worktrees = children(&folder);
    // Those of which only git's registration is left, since a removal was killed.
    worktrees.extend(site.repository.worktrees_in(&folder)?);
    worktrees.sort();
    worktrees.dedup();
    for path in worktrees {
        let Some(task) = path.file_name().and_then(|name| name.to_str()?.parse::<TaskId>().ok()) else { continue };
        let status = statuses.iter().find(|(id, _)| *id == task).map(|(_, status)| *status);
        // An item that a person deleted has no status, and no way back either.
        if !leased.contains(&task) && status.is_none_or(Status::is_ended) {
            actions.push(Action::RemoveWorktree { task, path });
        }
    }
    for agent in site.board.agents() {
        let is_stale = life(&agent.holder) == Life::Unknown && (now - agent.heartbeat_at).num_minutes() > 60;
        if life(&agent.holder) == Life::Gone || is_stale {
            actions.push(Action::RemoveAgent { name: agent.name });
        }
    }
    let mut temps: Vec<PathBuf> = folders_of_files(site)?.iter().flat_map(|folder| children(folder)).collect();
    temps.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(store::TEMP_PREFIX) && is_old(path, now)
    });
    temps.sort();
    temps.dedup();
    actions.extend(temps.into_iter().map(|path| Action::RemoveTemp { path }));
    Ok(())
}

/// Where files are replaced, or folders taken out of sight before they are deleted.
fn folders_of_files(site: &Site) -> Result<Vec<PathBuf>, Error> {
    let mut folders: Vec<PathBuf> =
        ["", "queues", "leases", "agents", "quota", "worktrees"].map(|name| site.board.path(name)).to_vec();
    let queues = site.board.queues()?;
    folders.extend(queues.iter().filter_map(|queue| queue.path.canonicalize().ok()?.parent().map(Path::to_owned)));
    for name in ["runs", "inbox"] {
        folders.extend(children(&site.board.path(name)).into_iter().filter(|path| path.is_dir()));
    }
    Ok(folders)
}

/// Does it. The caller holds the board's reap slot, so that two reapers never work on the same worktree.
pub fn execute(site: &Site, action: &Action, _slot: &Slot) -> Result<(), Error> {
    match action {
        Action::EndRun { run } => {
            let grace = site.config.grace.duration();
            let swept = process::end_marked(&Mark::run(mark_of(site, run)), grace);
            if !swept.survivors.is_empty() {
                let path = site.board.run_dir(run);
                let source = std::io::Error::other(format!("processes {:?} do not end", swept.survivors));
                return Err(Error::Io { action: "end the run in", path, source });
            }
            close_run(site, run)
        }
        Action::GiveBack { task, token, blame, why, .. } => {
            let policy = match blame {
                Blame::Agent => &site.config.outcomes.failed,
                Blame::Nobody => &site.config.outcomes.killed,
            };
            let (most, not_before) = match blame {
                Blame::Agent => {
                    let own = site.board.task(task)?.task.max_attempts;
                    (own.unwrap_or(site.config.max_attempts), back_off(policy, 1))
                }
                Blame::Nobody => (site.config.max_returns, None),
            };
            let retry = Retry { blame: *blame, not_before, most };
            let event = Event::Reap { token: *token, retry, reason: why.clone() };
            match site.board.submit(task, &event, &Note::default(), clock::now()) {
                // Somebody was faster, or the holder has renewed after all.
                Ok(_) | Err(store::Error::Refused(_)) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        Action::DropLease { task, token } => {
            if let Some(lease) = site.board.lease(task)?.filter(|lease| lease.token == *token) {
                site.board.drop_stray_lease(&lease, clock::now())?;
            }
            Ok(())
        }
        Action::RemoveWorktree { task, path } => {
            // A plain folder is what a task without a repository worked in.
            let mut ended = Task::new(task.clone(), "");
            let folder = site.repository.worktrees_in(&site.board.path("worktrees"))?;
            ended.worktree = folder.contains(path) || path.join(".git").exists();
            let merged = site.repository.branch_tip(site.integration())?;
            worktree::clear(site, &ended, merged.as_ref())?;
            Ok(())
        }
        Action::RemoveAgent { name } => {
            site.board.remove_agent(name);
            Ok(())
        }
        // The folder of a removed worktree: what was in it is kept already.
        Action::RemoveTemp { path } if path.is_dir() => {
            site.repository.sweep_removed(&site.board.path("worktrees"));
            Ok(())
        }
        Action::RemoveTemp { path } => match fs::remove_file(path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Io { action: "remove", path: path.clone(), source })
            }
            _ => Ok(()),
        },
    }
}

/// The mark in the environment of a run's processes: its folder, which is unique on this host.
pub fn mark_of(site: &Site, run: &str) -> String {
    site.board.run_dir(run).to_string_lossy().into_owned()
}

/// Writes the end that its supervisor could not write any more.
fn close_run(site: &Site, run: &str) -> Result<(), Error> {
    let artifacts = Artifacts::open(&site.board, run);
    let Ok(mut metadata) = artifacts.metadata() else { return Ok(()) };
    if metadata.ended.is_some() {
        return Ok(());
    }
    metadata.ended = Some(clock::now());
    metadata.outcome = Some(Outcome::Killed);
    metadata.reason = Some("its supervisor died".to_owned());
    metadata.summary = String::from("its supervisor died");
    metadata.usage = runners::recorded(site, &metadata);
    metadata.tool_calls = u32::try_from(children(&artifacts.path("tool_calls")).len()).unwrap_or(u32::MAX);
    Ok(artifacts.write_metadata(&metadata)?)
}

fn statuses(site: &Site) -> Result<Vec<(TaskId, Status)>, Error> {
    let mut statuses = Vec::new();
    for queue in site.board.queues()? {
        let Ok(text) = site.board.read(&queue) else { continue };
        let (document, _) = parse(&text.content);
        statuses.extend(document.items().iter().filter_map(|item| Some((item.id.clone()?, item.status))));
    }
    Ok(statuses)
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    paths
}

fn is_old(path: &Path, now: Timestamp) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    // What is gone, or can't be looked at, is not ours to remove.
    modified.is_ok_and(|modified| (now - clock::whole_seconds(modified)).num_seconds() > YOUNG_SECONDS)
}
