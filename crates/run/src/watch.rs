//! Supervises the runs of a board: diagnoses problems and reacts to them.

use std::fs;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::activity::activity_of;
use super::artifacts::Artifacts;
use super::error::Error;
use super::notices::tell_people;
use super::record::{Metadata, run_name, run_of};
use super::report::{policy, retry};
use super::rules;
use super::watcher_state::Watcher;
use super::workspace::Workspace;
use crate::runner::Outcome;
use tavern_core::activity::Activity;
use tavern_core::event::{Blame, Event, Kind, Retry};
use tavern_core::lease::{Lease, Life};
use tavern_core::monitor::{
    Reaction, Symptom, Trouble, Urgency, WATCHER, Watched, is_in_doubt, judge, may_break_rules,
    treat,
};
use tavern_core::rule::{Breach, question};
use tavern_core::task::{Task, TaskId, Timestamp};
use tavern_store::config::Role;
use tavern_store::{Board, Done, Entry, Note, life, walk_log};
use tavern_sys::clock;

/// The file in a run's folder that records reactions.
const FILE: &str = "watched.json";

/// A younger run is left alone.
const YOUNGEST: TimeDelta = TimeDelta::seconds(5);

/// How many runs per look are checked with git for rules: each check takes some milliseconds.
const MOST_ASKED: usize = 8;

/// A symptom of a run, and the reaction to it.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    pub task: TaskId,
    pub run: String,
    pub agent: String,
    pub symptom: Symptom,
    pub deed: Reaction,
    /// Symptom and reaction in words.
    pub cause: String,
}

impl Diagnosis {
    fn new(lease: &Lease, trouble: &Trouble, deed: Reaction) -> Diagnosis {
        let done = match deed {
            Reaction::Noted => "its agent is not notified".to_owned(),
            Reaction::Notified => "people are notified".to_owned(),
            Reaction::Nudged(urgency) => format!("it is nudged ({urgency})"),
            Reaction::Ended => "it is ended".to_owned(),
            Reaction::Restarted => "it is restarted".to_owned(),
            Reaction::Paused => "it is paused, with a question to a person".to_owned(),
        };
        Diagnosis {
            task: lease.task.clone(),
            run: run_name(&lease.task, lease.token),
            agent: lease.agent.clone(),
            symptom: trouble.symptom,
            deed,
            cause: format!("{}: {}; {done}", trouble.symptom, trouble.why),
        }
    }

    /// Reads it from a log entry; `None` if the entry is about something else.
    fn of(entry: Entry) -> Option<Diagnosis> {
        let Entry {
            task,
            run,
            agent,
            symptom,
            deed,
            cause,
            ..
        } = entry;
        Some(Diagnosis {
            task: task?,
            run: run?,
            agent: agent?,
            symptom: symptom?,
            deed: deed?,
            cause: cause.unwrap_or_default(),
        })
    }

    /// Formats it in one line, for people.
    pub fn line(&self) -> String {
        match self.symptom {
            Symptom::Spending | Symptom::Spent => {
                format!("{} works on {}: {}", self.agent, self.task, self.cause)
            }
            _ => format!(
                "{} is in trouble with {}: {}",
                self.agent, self.task, self.cause
            ),
        }
    }
}

/// Returns the diagnoses in the log after event `since`, oldest first, and the last event.
///
/// # Errors
/// The log can't be read.
pub fn news(board: &Board, since: u64) -> Result<(Vec<Diagnosis>, u64), Error> {
    let (mut found, mut last) = (Vec::new(), since);
    walk_log(board, None, &mut |entry| {
        last = last.max(entry.seq);
        let is_new = entry.seq > since;
        found.extend(Some(entry).filter(|_| is_new).and_then(Diagnosis::of));
        is_new
    })?;
    found.reverse();
    Ok((found, last))
}

/// The health of a run.
#[derive(Clone, Debug)]
pub struct Health {
    pub lease: Lease,
    pub activity: Activity,
    pub watched: Watched,
}

/// Returns the health of each run with a living supervisor.
///
/// # Errors
/// The board can't be read.
pub fn health(board: &Board) -> Result<Vec<Health>, Error> {
    let of = |lease: Lease| {
        let artifacts = Artifacts::open(board, &run_name(&lease.task, lease.token));
        let (activity, watched) = (activity_of(&artifacts)?, watched_of(&artifacts));
        (life(&lease.holder) != Life::Gone).then_some(Health {
            lease,
            activity,
            watched,
        })
    };
    Ok(board.leases()?.into_iter().filter_map(of).collect())
}

/// Returns true if an earlier look at this run has reported the breach.
pub(super) fn was_reported(workspace: &Workspace, run: &Metadata, breach: &Breach) -> bool {
    watched_of(&Artifacts::open(&workspace.board, &run.run)).knows_of(breach)
}

fn watched_of(artifacts: &Artifacts) -> Watched {
    serde_json::from_str(&artifacts.read(FILE)).unwrap_or_default()
}

/// A supervisor's looks at its own run.
pub(super) struct Watch {
    every: Duration,
    looked: Instant,
    is_hurried: bool,
    lapse: Lapse,
}

impl Watch {
    pub(super) fn begin(workspace: &Workspace, role: &Role, task: &Task) -> Watch {
        let rules = workspace
            .config
            .watch
            .with(role.watch.iter().chain(&task.watch));
        Watch {
            every: rules.every.limit(),
            looked: clock::instant(),
            is_hurried: false,
            lapse: Lapse::default(),
        }
    }

    /// Returns the time until the next look.
    pub(super) fn patience(&self) -> Duration {
        self.every.saturating_sub(self.looked.elapsed())
    }

    /// Makes the next look due now.
    pub(super) fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// Looks at the run of `own`, if it is time and no other process watches the board. Returns true if that ended the
    /// run.
    pub(super) fn look(&mut self, workspace: &Workspace, own: &Lease) -> bool {
        if !std::mem::take(&mut self.is_hurried) && !self.patience().is_zero() {
            return false;
        }
        self.looked = clock::instant();
        let looked = look_at_own(workspace, own);
        self.lapse.note(
            workspace,
            Some(own),
            looked.as_ref().err().map(Error::in_words),
        );
        tell_people(workspace);
        looked.unwrap_or(false)
    }
}

/// A time in which looks fail: no agent is nudged or paused then. Limits, leases and the rules at the end of a run
/// still hold. The log records its start and its end.
#[derive(Debug, Default)]
pub struct Lapse {
    told: Option<String>,
}

impl Lapse {
    /// Records the result of a look: why it failed, if it did. Returns a message if that has changed.
    pub fn note(
        &mut self,
        workspace: &Workspace,
        of: Option<&Lease>,
        failure: Option<String>,
    ) -> Option<String> {
        if failure == self.told {
            return None;
        }
        let words = match &failure {
            Some(why) => format!("supervision is degraded, and goes on: {why}"),
            None => "supervision has recovered".to_owned(),
        };
        self.told = failure;
        // The reason may be that the board can't be written.
        drop(workspace.board.note(Entry {
            task: of.map(|lease| lease.task.clone()),
            agent: of.map(|lease| lease.agent.clone()),
            cause: Some(words.clone()),
            ..Entry::new(Kind::Noted, clock::now())
        }));
        Some(words)
    }
}

/// Looks at each run once, and passes new diagnoses to `tell`. Reacts to them, unless the workspace is dry. Only some of
/// many runs are checked for file rules, those checked longest ago first; each is checked when its agent is done.
///
/// # Errors
/// The board, or one of the runs, can't be examined; the other runs were.
pub fn look(workspace: &Workspace, tell: &mut dyn FnMut(Diagnosis)) -> Result<(), Error> {
    let (mut failure, mut asks) = (None, MOST_ASKED);
    let mut leases = workspace.board.leases()?;
    leases.sort_by_cached_key(|lease| {
        watched_of(&Artifacts::open(
            &workspace.board,
            &run_name(&lease.task, lease.token),
        ))
        .held_to_rules_at
    });
    for lease in leases {
        if workspace.interrupt.is_raised() {
            break;
        }
        if let Err(error) = look_at(workspace, &lease, &mut asks, tell) {
            failure = failure.or(Some(error));
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Looks at the supervisor's own run. Returns true if that ended the run.
fn look_at_own(workspace: &Workspace, own: &Lease) -> Result<bool, Error> {
    let slot = workspace.board.try_watch_slot()?;
    // A watcher that hangs or was stopped does not count.
    if slot.is_none()
        && Watcher::of(&workspace.board).is_some_and(|watcher| watcher.is_at_it(clock::now()))
    {
        return Ok(false);
    }
    let Some(lease) = workspace
        .board
        .lease(&own.task)?
        .filter(|lease| lease.token == own.token)
    else {
        return Ok(false);
    };
    let mut is_over = false;
    look_at(workspace, &lease, &mut 1, &mut |found| {
        is_over |= found.task == own.task && found.deed.ends();
    })?;
    Ok(is_over)
}

/// Leaves runs of dead holders to `tavern-reap`, and chats to their person.
fn look_at(
    workspace: &Workspace,
    lease: &Lease,
    asks: &mut usize,
    tell: &mut dyn FnMut(Diagnosis),
) -> Result<(), Error> {
    if lease.back_to.is_some() || life(&lease.holder) == Life::Gone || !lease.is_live(clock::now())
    {
        return Ok(());
    }
    // This look may have ended it, together with another run.
    if !is_held(workspace, lease)? {
        return Ok(());
    }
    // The run may have ended meanwhile, and its worktree with it.
    look_into(workspace, lease, asks, tell).or_else(|error| {
        if is_held(workspace, lease)? {
            Err(error)
        } else {
            Ok(())
        }
    })
}

/// Examines one run; a part that can't be examined does not hide the others. `asks` is how often git may still be asked
/// for files.
fn look_into(
    workspace: &Workspace,
    lease: &Lease,
    asks: &mut usize,
    tell: &mut dyn FnMut(Diagnosis),
) -> Result<(), Error> {
    let (now, run) = (clock::now(), run_name(&lease.task, lease.token));
    let artifacts = Artifacts::open(&workspace.board, &run);
    let record = run_of(&workspace.board, &run).filter(|record| !record.damaged);
    let activity = activity_of(&artifacts);
    let (Some(record), Some(mut activity)) = (record, activity) else {
        // Both are written before the lease names its work.
        return if lease.work.is_none() {
            Ok(())
        } else {
            Err(Error::Unwatched(run))
        };
    };
    if record.ended.is_some() {
        return Ok(());
    }
    if now - activity.began < YOUNGEST && activity.breaches.is_empty() {
        return Ok(());
    }
    let of_role = workspace
        .role(&lease.role)
        .ok()
        .and_then(|role| role.watch.as_ref());
    let rules = &workspace
        .config
        .watch
        .with(of_role.into_iter().chain(&activity.watch));
    let before = watched_of(&artifacts);
    let mut watched = before.clone();
    let mut looked = Ok(());
    if record.branch.is_some() && is_in_doubt(&activity, rules, now) {
        looked = look_at_files(workspace, &record, &mut activity, &mut watched, now);
    }
    if *asks > 0 && rules::are_for_files(workspace) && may_break_rules(&activity, &watched) {
        *asks -= 1;
        watched.held_to_rules_at = now;
        match rules::broken(workspace, &record) {
            Ok(mut breaches) => {
                watched.held_to_rules = breaches.is_empty().then_some(activity.steps);
                // While it works one breach per rule is enough; the end of the run reports all of them.
                breaches.dedup_by(|other, first| other.rule == first.rule);
                activity.broke(breaches);
            }
            Err(error) => looked = looked.and(Err(error)),
        }
    }
    let found = treat(&activity, judge(&activity, rules, now), rules, &mut watched);
    let ends = found.as_ref().is_some_and(|(_, deed)| deed.ends());
    // Saved before a nudge, but after an ending: a killed watcher rather omits a nudge, and rather repeats an ending.
    if !ends {
        keep(workspace, &artifacts, &before, &watched)?;
    }
    if let Some((trouble, deed)) = found {
        let parent = activity.parent.filter(|_| {
            rules.gang > 0 && before.is_told_in_vain(trouble.symptom) && watched.nudges > 1
        });
        let gang = parent
            .map(|parent| Gang::of(workspace, parent, trouble.symptom))
            .transpose()?;
        match gang.filter(|gang| gang.members.len() >= rules.gang as usize) {
            Some(gang) => gang.begin_anew(workspace, tell)?,
            None => tell(carry_out(workspace, lease, &trouble, deed)?),
        }
    }
    if ends {
        keep(workspace, &artifacts, &before, &watched)?;
    }
    looked
}

fn is_held(workspace: &Workspace, lease: &Lease) -> Result<bool, Error> {
    Ok(workspace
        .board
        .lease(&lease.task)?
        .is_some_and(|now| now.token == lease.token))
}

/// Children of one item with the same symptom, which were nudged without effect.
struct Gang {
    parent: TaskId,
    symptom: Symptom,
    members: Vec<Lease>,
}

impl Gang {
    fn of(workspace: &Workspace, parent: TaskId, symptom: Symptom) -> Result<Gang, Error> {
        let is_member = |health: &Health| {
            health.activity.parent.as_ref() == Some(&parent)
                && health.watched.is_told_in_vain(symptom)
        };
        let members = health(&workspace.board)?
            .into_iter()
            .filter(is_member)
            .map(|health| health.lease)
            .collect();
        Ok(Gang {
            parent,
            symptom,
            members,
        })
    }

    /// Ends their runs, since the fault is not with one of them. Members that were restarted before are paused.
    fn begin_anew(
        &self,
        workspace: &Workspace,
        tell: &mut dyn FnMut(Diagnosis),
    ) -> Result<(), Error> {
        let trouble = Trouble::of_gang(&self.parent, self.symptom, self.members.len());
        for member in &self.members {
            let deed = if was_restarted(workspace, &member.task)? {
                Reaction::Paused
            } else {
                Reaction::Restarted
            };
            tell(carry_out(workspace, member, &trouble, deed)?);
        }
        Ok(())
    }
}

/// Returns true if it was restarted before, together with others.
fn was_restarted(workspace: &Workspace, task: &TaskId) -> Result<bool, Error> {
    let mut was_restarted = false;
    walk_log(&workspace.board, Some(task), &mut |entry| {
        was_restarted = entry.symptom == Some(Symptom::Divergence);
        !was_restarted
    })?;
    Ok(was_restarted)
}

fn keep(
    workspace: &Workspace,
    artifacts: &Artifacts,
    before: &Watched,
    watched: &Watched,
) -> Result<(), Error> {
    if before == watched || workspace.board.is_dry() {
        return Ok(());
    }
    let text = serde_json::to_string(watched).expect("it is plain data");
    Ok(artifacts.write(FILE, &(text + "\n"))?)
}

/// Looks for file changes that no call shows. This takes a git command, so it is done only in doubt.
fn look_at_files(
    workspace: &Workspace,
    run: &Metadata,
    activity: &mut Activity,
    watched: &mut Watched,
    now: Timestamp,
) -> Result<(), Error> {
    let files = files(workspace, run)?;
    if watched.files != Some(files) {
        if watched.files.is_some() {
            watched.forgive();
            (watched.files_since, watched.output) = (now, activity.output);
        }
        watched.files = Some(files);
    }
    if watched.files_since > activity.progress_at {
        activity.got_on(watched.files_since, watched.output);
    }
    Ok(())
}

/// Returns a digest of the worktree's content.
fn files(workspace: &Workspace, run: &Metadata) -> Result<u64, Error> {
    let (repository, folder) = (workspace.repository()?, &run.worktree);
    let changes = repository.changes(folder)?;
    let mut digest = Xxh3::new();
    workspace.tip_of(folder)?.as_str().hash(&mut digest);
    for path in changes
        .staged
        .iter()
        .chain(&changes.modified)
        .chain(&changes.untracked)
    {
        let file = fs::symlink_metadata(folder.join(path)).ok();
        let stamp = file.map(|file| (file.len(), file.modified().ok()));
        (path, stamp).hash(&mut digest);
    }
    Ok(digest.finish())
}

/// Nudges the agent or ends its run, and logs it; does nothing on a dry board. The log entry comes first, since the
/// report of a pause must be the item's last.
fn carry_out(
    workspace: &Workspace,
    lease: &Lease,
    trouble: &Trouble,
    deed: Reaction,
) -> Result<Diagnosis, Error> {
    let diagnosis = Diagnosis::new(lease, trouble, deed);
    if workspace.board.is_dry() {
        return Ok(diagnosis);
    }
    let (task, token, why) = (&lease.task, lease.token, trouble.why.clone());
    let (agent, run) = (Some(lease.agent.clone()), diagnosis.run.clone());
    workspace.board.note(Entry {
        task: Some(task.clone()),
        agent: agent.clone(),
        token: Some(token),
        run: Some(run.clone()),
        cause: Some(diagnosis.cause.clone()),
        symptom: Some(trouble.symptom),
        deed: Some(deed),
        ..Entry::new(Kind::Diagnosed, clock::now())
    })?;
    let submit = |event: Event| {
        workspace.board.submit(
            task,
            &event,
            &Note {
                agent,
                run: Some(run),
            },
        )
    };
    match deed {
        Reaction::Noted | Reaction::Notified => {}
        Reaction::Nudged(urgency) => {
            workspace
                .board
                .send(task, WATCHER, None, Some(urgency), &words(trouble, urgency))?;
        }
        Reaction::Paused => {
            let asked = match trouble.symptom {
                Symptom::Violation => question(&why),
                Symptom::Divergence => {
                    format!("{why}, and again after a restart. How should it continue?")
                }
                Symptom::Runaway => format!("{why}. How should it continue?"),
                _ => format!("{why}, and a nudge did not help. How should it continue?"),
            };
            drop(pause(workspace, lease, asked)?);
        }
        Reaction::Restarted => {
            let retry = Retry {
                blame: Blame::Nobody,
                not_before: None,
                most: workspace.config.max_returns,
            };
            submit(Event::Return {
                token,
                retry,
                reason: why,
            })?;
        }
        Reaction::Ended => {
            let item = workspace.board.task(task)?.task;
            let retry = retry(
                workspace,
                &item,
                policy(workspace, Outcome::Failed),
                None,
                &lease.role,
            );
            submit(Event::Fail {
                token,
                retry,
                reason: why,
            })?;
        }
    }
    Ok(diagnosis)
}

/// Ends the run that holds the lease. Its work and session are kept, and its item waits with `question`, as if its
/// agent had asked.
///
/// # Errors
/// Another process holds it by now, or the board can't be written.
pub fn pause(workspace: &Workspace, lease: &Lease, question: String) -> Result<Done, Error> {
    let note = Note {
        agent: Some(lease.agent.clone()),
        run: Some(run_name(&lease.task, lease.token)),
    };
    Ok(workspace.board.submit(
        &lease.task,
        &Event::Ask {
            token: lease.token,
            question,
        },
        &note,
    )?)
}

/// Returns the text of a nudge.
fn words(trouble: &Trouble, urgency: Urgency) -> String {
    let advice = match trouble.symptom {
        Symptom::Looping => {
            "Trying the same again will not help: look at why it fails, and try another way."
        }
        Symptom::Struggling => "Stop and find the common cause of these failures before you go on.",
        Symptom::Repeating => {
            "If you wait for something, wait for it in one command with a limit (`timeout 60 …`); else do something else."
        }
        Symptom::Stuck => {
            "Go on with the next step, or end your answer with WAITING and a question if you can't."
        }
        Symptom::Runaway => "Write your results to files now.",
        Symptom::Violation => "Undo it, and do without.",
        Symptom::Late => "Commit your work, and finish.",
        // Agents are never nudged for these.
        Symptom::Divergence | Symptom::Spending | Symptom::Spent => "",
    };
    let last = match urgency {
        Urgency::Critical => {
            " If you can't continue, end your answer with WAITING and your question; otherwise you will be paused."
        }
        Urgency::Hint | Urgency::Warning => "",
    };
    let mut why = trouble.why.clone();
    if let Some(first) = why.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{why}. {advice}{last}")
}
