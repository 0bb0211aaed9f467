//! Looks after the runs of a board: what is wrong with them, and what is done about it.

use std::fs;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::activity::activity_of;
use super::artifacts::Artifacts;
use super::error::Error;
use super::record::{Metadata, run_name, run_of};
use super::report::most_attempts;
use super::rules;
use super::site::Site;
use crate::board::activity::Activity;
use crate::board::event::{Blame, Event, Kind, Retry};
use crate::board::lease::{Lease, Life};
use crate::board::monitor::{Deed, Symptom, Trouble, Urgency, Watched, is_in_doubt, judge, treat};
use crate::board::rule::question;
use crate::board::task::{TaskId, Timestamp};
use crate::clock;
use crate::store::{Board, Done, Entry, Note, life};

/// By this name the watcher speaks.
pub const WATCHER: &str = "the watcher";

/// What was done about a run, in its folder.
const FILE: &str = "watched.json";

/// A run that is younger is left alone.
const YOUNGEST: TimeDelta = TimeDelta::seconds(5);

/// What was found of a run, and what is done about it.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    pub task: TaskId,
    pub run: String,
    pub agent: String,
    pub symptom: Symptom,
    pub why: String,
    pub deed: Deed,
}

impl Diagnosis {
    /// In a line, for people.
    pub fn line(&self) -> String {
        format!("{} is in trouble with {}: {}", self.agent, self.task, self.cause())
    }

    /// What is wrong, and what is done about it.
    fn cause(&self) -> String {
        let done = match self.deed {
            Deed::Noted => "it is not told".to_owned(),
            Deed::Nudged(urgency) => format!("it is told ({urgency})"),
            Deed::Ended => "it is ended".to_owned(),
            Deed::Paused => "it is paused, with a question to a person".to_owned(),
        };
        format!("{}: {}; {done}", self.symptom, self.why)
    }
}

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Health {
    pub lease: Lease,
    pub activity: Activity,
    pub watched: Watched,
}

/// How each run goes whose supervisor lives.
///
/// # Errors
/// The board can't be read.
pub fn health(board: &Board) -> Result<Vec<Health>, Error> {
    let of = |lease: Lease| {
        let artifacts = Artifacts::open(board, &run_name(&lease.task, lease.token));
        let (activity, watched) = (activity_of(&artifacts)?, watched_of(&artifacts));
        (life(&lease.holder) != Life::Gone).then_some(Health { lease, activity, watched })
    };
    Ok(board.leases()?.into_iter().filter_map(of).collect())
}

fn watched_of(artifacts: &Artifacts) -> Watched {
    serde_json::from_str(&artifacts.read(FILE)).unwrap_or_default()
}

/// When a supervisor looks at its own run.
pub(super) struct Watch {
    every: Duration,
    looked: Instant,
    is_hurried: bool,
}

impl Watch {
    pub(super) fn begin(site: &Site) -> Watch {
        Watch { every: site.config.watch.every.limit(), looked: clock::instant(), is_hurried: false }
    }

    /// Until the next look.
    pub(super) fn patience(&self) -> Duration {
        self.every.saturating_sub(self.looked.elapsed())
    }

    /// The next look is now.
    pub(super) fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// It is time to look; the next time is counted from now.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.is_hurried) || self.patience().is_zero();
        if is_due {
            self.looked = clock::instant();
        }
        is_due
    }
}

/// Looks at each run once, and gives `tell` what is found and was not told before. That is done something about, unless the site is dry.
///
/// # Errors
/// The board, or one of the runs, can't be looked at; the others were.
pub fn look(site: &Site, tell: &mut dyn FnMut(Diagnosis)) -> Result<(), Error> {
    let mut failure = None;
    for lease in site.board.leases()? {
        if site.interrupt.is_raised() {
            break;
        }
        match look_at(site, &lease) {
            Ok(found) => found.into_iter().for_each(&mut *tell),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Looks at the run of a task, where nobody watches the board: its supervisor does.
///
/// # Errors
/// The board can't be read.
pub fn look_at_own(site: &Site, own: &Lease) -> Result<Option<Diagnosis>, Error> {
    let Some(_slot) = site.board.try_watch_slot()? else { return Ok(None) };
    let lease = site.board.lease(&own.task)?.filter(|lease| lease.token == own.token);
    lease.map_or(Ok(None), |lease| look_at(site, &lease))
}

fn look_at(site: &Site, lease: &Lease) -> Result<Option<Diagnosis>, Error> {
    let (now, run) = (clock::now(), run_name(&lease.task, lease.token));
    let artifacts = Artifacts::open(&site.board, &run);
    let is_watched = site.role(&lease.role).is_ok_and(|role| role.watch) && lease.back_to.is_none();
    // Whoever is gone is for `tavern-reap`.
    if !is_watched || life(&lease.holder) == Life::Gone || !lease.is_live(now) {
        return Ok(None);
    }
    let record = run_of(&site.board, &run).filter(|record| record.ended.is_none());
    let (Some(record), Some(mut activity)) = (record, activity_of(&artifacts)) else { return Ok(None) };
    if now - activity.began < YOUNGEST && activity.breaches.is_empty() {
        return Ok(None);
    }
    let rules = &site.config.watch;
    let before = watched_of(&artifacts);
    let mut watched = before.clone();
    if is_in_doubt(&activity, rules, now) {
        look_at_files(site, &record, &mut activity, &mut watched, now);
    }
    activity.broke(rules::broken(site, &record).unwrap_or_default());
    let Some((trouble, deed)) = treat(&activity, judge(&activity, rules, now), rules, &mut watched) else {
        keep(site, &artifacts, &before, &watched)?;
        return Ok(None);
    };
    // Who is killed in between does it no more, rather than twice.
    keep(site, &artifacts, &before, &watched)?;
    let diagnosis = Diagnosis {
        task: lease.task.clone(),
        run,
        agent: lease.agent.clone(),
        symptom: trouble.symptom,
        why: trouble.why.clone(),
        deed,
    };
    if !site.board.is_dry() {
        carry_out(site, lease, &trouble, &diagnosis)?;
    }
    Ok(Some(diagnosis))
}

fn keep(site: &Site, artifacts: &Artifacts, before: &Watched, watched: &Watched) -> Result<(), Error> {
    if before == watched || site.board.is_dry() {
        return Ok(());
    }
    let text = serde_json::to_string(watched).expect("it is plain data");
    Ok(artifacts.write(FILE, &(text + "\n"))?)
}

/// What its agent does may change files that no call tells of. That takes a look of git's, so it is done only in doubt.
fn look_at_files(site: &Site, run: &Metadata, activity: &mut Activity, watched: &mut Watched, now: Timestamp) {
    let Some(files) = files(site, run) else { return };
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
}

/// A digest of what stands in its worktree.
fn files(site: &Site, run: &Metadata) -> Option<u64> {
    let (repository, folder) = (site.repository().ok()?, &run.worktree);
    let changes = repository.changes(folder).ok()?;
    let mut digest = Xxh3::new();
    site.tip_of(folder).ok()?.as_str().hash(&mut digest);
    for path in changes.staged.iter().chain(&changes.modified).chain(&changes.untracked) {
        let file = fs::symlink_metadata(folder.join(path)).ok();
        let stamp = file.map(|file| (file.len(), file.modified().ok()));
        (path, stamp).hash(&mut digest);
    }
    Some(digest.finish())
}

/// Tells the agent, or pauses it, and the log. The log's line comes first: the report of a pause is the last of the item's.
fn carry_out(site: &Site, lease: &Lease, trouble: &Trouble, diagnosis: &Diagnosis) -> Result<(), Error> {
    let (task, agent) = (&lease.task, Some(lease.agent.clone()));
    site.board.note(Entry {
        task: Some(task.clone()),
        agent: agent.clone(),
        token: Some(lease.token),
        run: Some(diagnosis.run.clone()),
        cause: Some(diagnosis.cause()),
        ..Entry::new(Kind::Diagnosed, clock::now())
    })?;
    match diagnosis.deed {
        Deed::Noted => {}
        Deed::Nudged(urgency) => {
            site.board.send(task, WATCHER, None, Some(urgency), &words(trouble, urgency))?;
        }
        Deed::Paused => {
            let asked = match trouble.symptom {
                Symptom::Violation => question(&trouble.why),
                _ => format!("{}, and was told so. How is it to go on?", trouble.why),
            };
            drop(pause(site, lease, asked)?);
        }
        Deed::Ended => {
            let most = most_attempts(site, &site.board.task(task)?.task, &lease.role);
            let retry = Retry { blame: Blame::Agent, not_before: None, most };
            let event = Event::Fail { token: lease.token, retry, reason: trouble.why.clone() };
            site.board.submit(task, &event, &Note { agent, run: Some(diagnosis.run.clone()) })?;
        }
    }
    Ok(())
}

/// Ends the run that holds the lease. Its work and its session are kept, and its item waits with `question`, as if its agent had asked.
///
/// # Errors
/// Somebody else holds it by now, or the board can't be written.
pub fn pause(site: &Site, lease: &Lease, question: String) -> Result<Done, Error> {
    let note = Note { agent: Some(lease.agent.clone()), run: Some(run_name(&lease.task, lease.token)) };
    Ok(site.board.submit(&lease.task, &Event::Ask { token: lease.token, question }, &note)?)
}

/// What an agent is told.
fn words(trouble: &Trouble, urgency: Urgency) -> String {
    let advice = match trouble.symptom {
        Symptom::Looping => "Trying the same again will not help: look at why it fails, and try another way.",
        Symptom::Struggling => "Stop and look at what these failures have in common before you go on.",
        Symptom::Repeating => {
            "If you wait for something, wait for it in one command with a limit (`timeout 60 …`); else do something else."
        }
        Symptom::Stuck => "Go on with the next step, or end your answer with WAITING and a question if you can't.",
        Symptom::Runaway => "Write down what you have as files now.",
        Symptom::Violation => "Undo it, and do without.",
        Symptom::Late => "Commit what you have, and come to an end.",
    };
    let last = match urgency {
        Urgency::Critical => {
            " If you can't get on, end your answer with WAITING and what you need: you will be paused else."
        }
        Urgency::Hint | Urgency::Warning => "",
    };
    let mut why = trouble.why.clone();
    if let Some(first) = why.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{why}. {advice}{last}")
}
