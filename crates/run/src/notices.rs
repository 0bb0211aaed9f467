//! Notifies people of events, separately for each channel of config.yaml; each channel's progress is kept beside the
//! board's locks.
//!
//! Notices come from the log, so the next process sends those that a killed one did not. A process killed between a
//! message and its record sends the message twice.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use chrono::TimeDelta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::background::Background;
use super::channels::Sender;
use super::error::Error;
use super::readiness::{lacks_of, texts};
use super::record::{Metadata, runs};
use super::workspace::Workspace;
use tavern_core::document::title_of;
use tavern_core::eligible::Lack;
use tavern_core::event::Kind;
use tavern_core::need::{NeedKind, need_of};
use tavern_core::notice::{Notice, NoticeKind, NoticeSeverity, kind_of};
use tavern_core::printable::one_line;
use tavern_core::task::{Status, TaskId, Timestamp};
use tavern_store::config::Channel;
use tavern_store::{Board, Entry, Lineage, NamedItem, tail_log};
use tavern_sys::clock;
use tavern_sys::failpoint;
use tavern_sys::files;
use tavern_sys::interrupt::Interrupt;

/// Beside the locks of the board.
const FILE: &str = "notices.json";

/// More notices than this are sent to a channel as one message.
const MOST_ALONE: usize = 5;

/// Characters of a line, and of a title.
const LONGEST: usize = 1000;
const LONGEST_TITLE: usize = 120;

/// The pause before a failed channel is retried: the first, and the longest.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(30);
const LONGEST_PAUSE: TimeDelta = TimeDelta::hours(1);

/// After failing for this long, a channel drops its pending notices.
const GIVEN_UP: TimeDelta = TimeDelta::days(1);

/// A channel's progress.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelState {
    /// The last event with sent notices.
    pub seq: u64,
    pub failure: Option<ChannelFailure>,
}

/// A channel's ongoing failure.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ChannelFailure {
    pub since: Timestamp,
    pub tries: u32,
    /// When it is retried.
    pub next: Timestamp,
    pub why: String,
}

/// A message that was sent, or failed.
#[derive(Clone, Debug, Serialize)]
pub struct Delivery {
    pub channel: String,
    pub notices: Vec<Notice>,
    /// Why it could not be sent.
    pub failure: Option<String>,
}

/// Returns the state of each channel of a board.
pub fn channel_states(board: &Board) -> BTreeMap<String, ChannelState> {
    let text = files::read_text(board.private(FILE)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Notifies people of events since the last notices, on another thread. A channel may take half a minute; only
/// dropping `workspace` waits for it. Undelivered notices remain in the log, and work goes on.
pub fn tell_people(workspace: &Workspace) {
    if workspace.config.notify.is_empty() || workspace.board.is_dry() {
        return;
    }
    let start = || {
        let own = Interrupt::new();
        let is_over = |failure: &ChannelFailure| failure.next <= clock::now();
        let tell = move |apart: &Workspace| drop(tell(apart, &is_over));
        Background::start(
            workspace.apart(own.clone()),
            own,
            &workspace.interrupt,
            tell,
        )
    };
    // Without a thread, the next process sends them.
    if workspace.teller.get().is_none()
        && let Ok(teller) = start()
    {
        drop(workspace.teller.set(teller));
    }
    if let Some(teller) = workspace.teller.get() {
        teller.ask();
    }
}

/// Notifies people now, also by channels that failed a moment ago. A new channel starts with the next event. Returns
/// the messages sent, or on a dry board those it would send. `None` if another process is sending, which then sends
/// these too.
///
/// # Errors
/// The board can't be read or written.
pub fn tell_people_now(workspace: &Workspace) -> Result<Option<Vec<Delivery>>, Error> {
    tell(workspace, &|_| true)
}

fn tell(
    workspace: &Workspace,
    is_over: &dyn Fn(&ChannelFailure) -> bool,
) -> Result<Option<Vec<Delivery>>, Error> {
    let (mut all, mut is_over, mut is_first) = (Vec::new(), is_over, true);
    while !workspace.interrupt.is_raised() {
        let last = workspace.board.last_seq()?;
        let Some(slot) = workspace.board.try_notice_slot()? else {
            return Ok((!is_first).then_some(all));
        };
        is_first = false;
        all.extend(tell_until(workspace, last, is_over)?);
        drop(slot);
        // A channel that just failed is not retried at once.
        is_over = &|failure| failure.next <= clock::now();
        // Another process may have logged an event meanwhile and found the slot taken.
        if workspace.board.is_dry() || workspace.board.last_seq()? == last {
            break;
        }
    }
    Ok(Some(all))
}

/// Sends a test message by each channel.
///
/// # Errors
/// No thread can be started.
pub fn try_channels(workspace: &Workspace) -> Result<Vec<Delivery>, Error> {
    let notice = Notice {
        seq: 0,
        time: clock::now(),
        kind: NoticeKind::Test,
        severity: NoticeSeverity::Info,
        task: None,
        queue: None,
        title: None,
        text: "a test: nothing happened".to_owned(),
        todo: None,
    };
    let (sender, notices) = (Sender::of(workspace), [notice]);
    let each: Vec<_> = workspace.config.notify.iter().collect();
    at_once(workspace, each, |(name, channel)| {
        let failure = sender.send(channel, &notices).err();
        Delivery {
            channel: name.clone(),
            notices: notices.to_vec(),
            failure,
        }
    })
}

/// Runs `work` for each of `all` on its own thread, so that a slow channel delays no other.
fn at_once<T: Send, R: Send>(
    workspace: &Workspace,
    all: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Result<Vec<R>, Error> {
    thread::scope(|scope| {
        let threads = all
            .into_iter()
            .map(|one| thread::Builder::new().spawn_scoped(scope, || work(one)))
            .collect::<io::Result<Vec<_>>>()
            .map_err(Error::io("tell of", workspace.board.dir()))?;
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        Ok(joined.collect())
    })
}

fn tell_until(
    workspace: &Workspace,
    last: u64,
    is_over: &dyn Fn(&ChannelFailure) -> bool,
) -> Result<Vec<Delivery>, Error> {
    let channels = &workspace.config.notify;
    let before = channel_states(&workspace.board);
    let of = |name: &String| {
        before.get(name).cloned().unwrap_or(ChannelState {
            seq: last,
            failure: None,
        })
    };
    let mut states: BTreeMap<String, ChannelState> = channels
        .keys()
        .map(|name| (name.clone(), of(name)))
        .collect();
    // The log may have been removed.
    states
        .values_mut()
        .for_each(|state| state.seq = state.seq.min(last));
    let is_due =
        |state: &ChannelState| state.seq < last && state.failure.as_ref().is_none_or(is_over);
    let from = states
        .values()
        .filter(|state| is_due(state))
        .map(|state| state.seq)
        .min();
    let notices = from
        .map(|from| notices(workspace, from, last))
        .transpose()?
        .unwrap_or_default();
    let due: Vec<_> = channels
        .iter()
        .filter(|(name, _)| is_due(&states[*name]))
        .collect();
    let is_new = states != before;
    let telling = Telling {
        sender: Sender::of(workspace),
        file: (!workspace.board.is_dry()).then(|| workspace.board.private(FILE)),
        states: Mutex::new(states),
        notices: &notices,
        last,
    };
    if is_new {
        telling.write(&telling.states())?;
    }
    let told = at_once(workspace, due, |(name, channel)| {
        telling.tell_by(name, channel)
    })?;
    let mut all = Vec::new();
    for told in told {
        let (deliveries, failure) = told?;
        let name = deliveries.last().map_or("", |last| &last.channel);
        failure
            .iter()
            .for_each(|failure| note_failure(workspace, name, failure));
        all.extend(deliveries);
    }
    Ok(all)
}

/// Sends by several channels in parallel and records the progress of each.
struct Telling<'a> {
    sender: Sender,
    /// `None` on a dry board.
    file: Option<PathBuf>,
    states: Mutex<BTreeMap<String, ChannelState>>,
    notices: &'a [Notice],
    last: u64,
}

impl Telling<'_> {
    /// Returns the messages sent, and the failure that stopped the rest.
    fn tell_by(
        &self,
        name: &str,
        channel: &Channel,
    ) -> Result<(Vec<Delivery>, Option<ChannelFailure>), Error> {
        let (mut state, mut all) = (self.states()[name].clone(), Vec::new());
        let own = self
            .notices
            .iter()
            .filter(|it| it.seq > state.seq && channel.takes(it.kind, it.severity));
        let own: Vec<Notice> = own.cloned().collect();
        if own.is_empty() {
            // The undelivered notices are gone.
            state.failure = None;
        }
        // The notices of one event stay together, because progress is counted in events.
        let parts: Vec<&[Notice]> = match own.len() {
            ..=MOST_ALONE => own.chunk_by(|one, next| one.seq == next.seq).collect(),
            _ => vec![&own],
        };
        for part in parts {
            let told = self.sender.send(channel, part);
            let told = told
                .and_then(|()| failpoint::hit("notices.sent").map_err(|error| error.to_string()));
            let failure = told.err();
            all.push(Delivery {
                channel: name.to_owned(),
                notices: part.to_vec(),
                failure: failure.clone(),
            });
            match failure {
                None => {
                    state = ChannelState {
                        seq: part.last().map_or(state.seq, |last| last.seq),
                        failure: None,
                    }
                }
                // An interrupt is no failure of the channel.
                Some(_) if self.sender.interrupt.is_raised() => return Ok((all, None)),
                Some(why) => {
                    state.failure = Some(ChannelFailure::after(state.failure.as_ref(), why));
                }
            }
            self.keep(name, &state)?;
            if state.failure.is_some() {
                break;
            }
        }
        if state
            .failure
            .as_ref()
            .is_none_or(ChannelFailure::is_given_up)
        {
            self.keep(
                name,
                &ChannelState {
                    seq: self.last,
                    failure: None,
                },
            )?;
        }
        Ok((all, state.failure))
    }

    fn keep(&self, name: &str, state: &ChannelState) -> Result<(), Error> {
        let mut states = self.states();
        let before = states.insert(name.to_owned(), state.clone());
        if before.as_ref() == Some(state) {
            Ok(())
        } else {
            self.write(&states)
        }
    }

    fn write(&self, states: &BTreeMap<String, ChannelState>) -> Result<(), Error> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let text = serde_json::to_string(states).expect("it is plain data");
        Ok(tavern_store::replace_own(file, (text + "\n").as_bytes())?)
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<String, ChannelState>> {
        // States are inserted whole, so another thread's panic leaves none half written.
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChannelFailure {
    fn is_given_up(&self) -> bool {
        clock::now() - self.since >= GIVEN_UP
    }

    /// Returns the failure that follows `before`, with twice its pause.
    fn after(before: Option<&ChannelFailure>, why: String) -> ChannelFailure {
        let (now, tries) = (clock::now(), before.map_or(0, |it| it.tries) + 1);
        let pause = FIRST_PAUSE * 2_i32.pow(tries.min(8) - 1);
        ChannelFailure {
            since: before.map_or(now, |it| it.since),
            tries,
            next: now + pause.min(LONGEST_PAUSE),
            why,
        }
    }
}

/// Logs the first failure, and giving up. Errors are ignored: an unwritable board is reported elsewhere.
fn note_failure(workspace: &Workspace, channel: &str, failure: &ChannelFailure) {
    let state = match failure.is_given_up() {
        true => "failed for a day: its notices are dropped",
        false if failure.tries == 1 => "failed; it will be retried",
        false => return,
    };
    let cause = Some(format!(
        "the channel `{channel}` of `notify` {state}: {}",
        failure.why
    ));
    drop(workspace.board.note(Entry {
        cause,
        ..Entry::new(Kind::Noted, clock::now())
    }));
}

/// Returns the notices of events after `from`, up to `last`, oldest first.
fn notices(workspace: &Workspace, from: u64, last: u64) -> Result<Vec<Notice>, Error> {
    let mut entries = tail_log(&workspace.board, from)?;
    entries.retain(|entry| entry.seq <= last);
    let mut notices = requests(workspace, &entries);
    notices.extend(permissions(workspace, &entries));
    notices.extend(
        entries
            .into_iter()
            .filter_map(|entry| notice(workspace, entry)),
    );
    notices.sort_by_key(|notice| notice.seq);
    Ok(notices)
}

/// Returns notices of requests after all of their planned items have ended, each at the event of the last end.
fn requests(workspace: &Workspace, entries: &[Entry]) -> Vec<Notice> {
    let (kind, severity) = (NoticeKind::Request, NoticeSeverity::Warning);
    if !workspace
        .config
        .notify
        .values()
        .any(|channel| channel.takes(kind, severity))
    {
        return Vec::new();
    }
    let ended: Vec<(&TaskId, &Entry)> = entries
        .iter()
        .filter(|entry| has_ended(entry))
        .filter_map(|entry| Some((entry.task.as_ref()?, entry)))
        .collect();
    if ended.is_empty() {
        return Vec::new();
    }
    let lineage = workspace.board.lineage();
    let mut last: BTreeMap<TaskId, &Entry> = BTreeMap::new();
    for (task, entry) in ended {
        last.extend(
            lineage
                .above(task)
                .into_iter()
                .map(|request| (request, entry)),
        );
    }
    // Events after `entries` belong to a later notice, and so do their requests.
    let behind = behind(workspace, entries);
    let behind = behind
        .iter()
        .filter(|entry| has_ended(entry))
        .filter_map(|entry| entry.task.as_ref());
    let later: HashSet<TaskId> = behind.flat_map(|task| lineage.above(task)).collect();
    last.retain(|request, _| !later.contains(request));
    let all_runs = LazyCell::new(|| runs(&workspace.board).unwrap_or_default());
    let told = |(request, entry): (TaskId, &Entry)| {
        let items = lineage.came_of(&request);
        let is_open = |id: &TaskId| {
            lineage
                .status_of(id)
                .is_none_or(|status| !status.is_ended())
        };
        if is_open(&request) || items.is_empty() || items.iter().any(is_open) {
            return None;
        }
        let text = summary(&request, &items, &lineage, &all_runs);
        let asked = workspace
            .board
            .task(&request)
            .ok()
            .filter(|found| found.task.status().is_ended())?;
        let title = one_line(&asked.task.title, LONGEST_TITLE);
        let (queue, todo) = (Some(asked.queue.id), None);
        Some(Notice {
            seq: entry.seq,
            time: entry.time,
            kind,
            severity,
            title: Some(title),
            task: Some(request),
            queue,
            text,
            todo,
        })
    };
    last.into_iter().filter_map(told).collect()
}

/// Returns the events after the last of `entries`.
fn behind(workspace: &Workspace, entries: &[Entry]) -> Vec<Entry> {
    entries
        .last()
        .map(|entry| tail_log(&workspace.board, entry.seq).unwrap_or_default())
        .unwrap_or_default()
}

/// Returns true if an item has ended, or was removed externally.
fn has_ended(entry: &Entry) -> bool {
    let moved = entry.from().zip(entry.to());
    entry.kind == Kind::Removed || moved.is_some_and(|(from, to)| from != to && to.is_ended())
}

/// Summarizes the results of a request in one line; `items` have ended.
fn summary(
    request: &TaskId,
    items: &HashSet<TaskId>,
    lineage: &Lineage,
    all_runs: &[Metadata],
) -> String {
    let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
    items
        .iter()
        .filter_map(|item| lineage.status_of(item))
        .for_each(|status| *counts.entry(status).or_default() += 1);
    let own: Vec<&Metadata> = all_runs
        .iter()
        .filter(|run| run.task == *request || items.contains(&run.task))
        .collect();
    let counts: Vec<String> = counts
        .iter()
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    let usd: f64 = own.iter().map(|run| run.usage.usd).sum();
    let money = if usd > 0.0 {
        format!(", ${usd:.2}")
    } else {
        String::new()
    };
    format!(
        "all items planned for {request} have ended: {}; runs: {}{money}",
        counts.join(", "),
        own.len()
    )
}

/// Returns notices of items that now only wait for a person's permission, and of drafts from schedules. Each is at the
/// event that completed its last dependency, or queued it.
fn permissions(workspace: &Workspace, entries: &[Entry]) -> Vec<Notice> {
    let (kind, severity) = (NoticeKind::NeedsYou, NoticeSeverity::Warning);
    if !workspace
        .config
        .notify
        .values()
        .any(|channel| channel.takes(kind, severity))
    {
        return Vec::new();
    }
    let is_completed = |entry: &&Entry| entry.to() == Some(Status::Completed);
    let by_task = |entries| -> HashMap<TaskId, &Entry> {
        let entries: Vec<&Entry> = entries;
        entries
            .into_iter()
            .filter_map(|entry| Some((entry.task.clone()?, entry)))
            .collect()
    };
    let done = by_task(entries.iter().filter(is_completed).collect());
    let queued = by_task(
        entries
            .iter()
            .filter(|entry| entry.schedule.is_some())
            .collect(),
    );
    if done.is_empty() && queued.is_empty() {
        return Vec::new();
    }
    // Completions after `entries` belong to a later notice, and so do their dependents.
    let behind = behind(workspace, entries);
    let later = by_task(behind.iter().filter(is_completed).collect());
    let (lineage, mut told) = (workspace.board.lineage(), Vec::new());
    let is_open = |id: &TaskId| {
        lineage
            .status_of(id)
            .is_some_and(|status| status != Status::Completed)
    };
    for text in texts(&workspace.board, &[]).0 {
        let document = text.content.open();
        for item in document
            .items()
            .iter()
            .filter(|item| matches!(item.status, Status::Pending | Status::Draft))
        {
            let Some(id) = &item.id else { continue };
            let last = item
                .after
                .iter()
                .filter_map(|id| done.get(id))
                .max_by_key(|entry| entry.seq);
            let Some(entry) = last.or_else(|| queued.get(id)) else {
                continue;
            };
            if item
                .after
                .iter()
                .any(|id| is_open(id) || later.contains_key(id))
            {
                continue;
            }
            let lacks = lacks(workspace, id, &text.queue.id);
            let Some((lack, NeedKind::Permission | NeedKind::Release, why)) = need_of(&lacks, None)
            else {
                continue;
            };
            let todo = (workspace.todo)(lack, Some(id), Some(&text.queue.id));
            told.push(Notice {
                seq: entry.seq,
                time: entry.time,
                kind,
                severity,
                title: Some(one_line(document.title(item), LONGEST_TITLE)),
                task: Some(id.clone()),
                queue: Some(text.queue.id.clone()),
                text: one_line(&format!("{id} needs you: {why}"), LONGEST),
                todo: todo.map(|todo| one_line(&todo, LONGEST)),
            });
        }
    }
    told
}

/// Returns the notice of an event, if any. Items that no longer need a person get none.
fn notice(workspace: &Workspace, entry: Entry) -> Option<Notice> {
    let (kind, severity) = kind_of(
        entry.kind,
        entry.from().zip(entry.to()),
        entry.symptom.zip(entry.deed),
    )?;
    if !workspace
        .config
        .notify
        .values()
        .any(|channel| channel.takes(kind, severity))
    {
        return None;
    }
    let (task, queue) = (entry.task.as_ref(), entry.queue.as_deref());
    let name = task.map_or_else(|| "an item".to_owned(), ToString::to_string);
    let agent = entry.agent.as_deref().unwrap_or("an agent");
    let cause = entry.cause.as_deref().unwrap_or_default();
    let todo = |lack: &Lack| (workspace.todo)(lack, task, queue);
    let (text, todo) = match kind {
        NoticeKind::NeedsYou if entry.kind == Kind::Closed => {
            let (runner, why) = cause.split_once(": ")?;
            let quota = workspace.board.quota(runner, clock::now())?;
            let (runner, until) = (runner.to_owned(), quota.closed_until);
            let lack = Lack::Closed {
                runner: runner.clone(),
                until,
                needs_person: quota.needs_person,
            };
            (format!("runner {runner} is closed: {why}"), todo(&lack))
        }
        NoticeKind::Test | NoticeKind::Request => return None,
        NoticeKind::NeedsYou => {
            let lacks = lacks(workspace, task?, queue?);
            let (lack, kind, why) = need_of(&lacks, None)?;
            // A death has its own notice.
            if kind == NeedKind::Dead {
                return None;
            }
            let asks = if let Lack::Answer(_) = lack {
                "asks"
            } else {
                "needs you"
            };
            (format!("{name} {asks}: {why}"), todo(lack))
        }
        NoticeKind::Died => (
            format!("{name} is dead: {cause}"),
            todo(&Lack::Status(Status::Dead)),
        ),
        NoticeKind::Finished => (format!("{name} is completed"), None),
        NoticeKind::Budget => (
            format!("{agent} works on {name}: {cause}"),
            Some("see `budget` in config.yaml".to_owned()),
        ),
        NoticeKind::Trouble => (format!("{agent} works on {name}: {cause}"), None),
    };
    Some(Notice {
        seq: entry.seq,
        time: entry.time,
        kind,
        severity,
        title: entry
            .change
            .after()
            .and_then(title_of)
            .or_else(|| Some(workspace.board.task(entry.task.as_ref()?).ok()?.task.title))
            .map(|title| one_line(&title, LONGEST_TITLE)),
        task: entry.task,
        queue: entry.queue,
        text: one_line(&text, LONGEST),
        todo: todo.map(|todo| one_line(&todo, LONGEST)),
    })
}

fn lacks(workspace: &Workspace, task: &TaskId, queue: &str) -> Vec<Lack> {
    let queue = workspace.board.queue_by_id(queue);
    queue
        .map(|queue| lacks_of(workspace, &queue, &NamedItem::Id(task.clone())))
        .unwrap_or_default()
}
