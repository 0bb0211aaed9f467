//! Tells people what happened, each channel of config.yaml for itself: what it has told is kept beside the board's locks.
//!
//! The log says what happened, so whoever comes next tells what a killed program did not. Who is killed between a message and
//! its note of it tells twice.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::channels::{NoticeMessage, deliver};
use super::error::Error;
use super::readiness::lacks_of;
use super::site::Site;
use crate::board::document::parse;
use crate::board::eligible::Lack;
use crate::board::event::Kind;
use crate::board::need::need_of;
use crate::board::notice::{Notice, NoticeKind, NoticeSeverity, kind_of};
use crate::board::task::{Status, TaskId, Timestamp};
use crate::clock;
use crate::config::Channel;
use crate::failpoint;
use crate::files;
use crate::printable::one_line;
use crate::store::{self, Board, Entry, NamedItem, tail_log};

/// Beside the locks of the board.
const FILE: &str = "notices.json";

/// Of more than so many a channel is told in one message.
const MOST_ALONE: usize = 5;

/// Characters of a line, and of a title.
const LONGEST: usize = 1000;
const LONGEST_TITLE: usize = 120;

/// How long until a channel that failed is tried again: at first, and at most.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(30);
const LONGEST_PAUSE: TimeDelta = TimeDelta::hours(1);

/// What a channel could not tell for so long it does not tell any more.
const GIVEN_UP: TimeDelta = TimeDelta::days(1);

/// What a channel has told so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelState {
    /// The last event of which it has told what there was to tell.
    pub seq: u64,
    pub failure: Option<ChannelFailure>,
}

/// It can't tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChannelFailure {
    pub since: Timestamp,
    pub tries: u32,
    /// When it is tried again.
    pub next: Timestamp,
    pub why: String,
}

/// A message that was sent, or was to be.
#[derive(Clone, Debug, Serialize)]
pub struct Delivery {
    pub channel: String,
    pub notices: Vec<Notice>,
    /// Why it could not be sent.
    pub failure: Option<String>,
}

/// What each channel of a board has told.
pub fn channel_states(board: &Board) -> BTreeMap<String, ChannelState> {
    let text = files::read_text(board.private(FILE)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Tells people what the log has told since they were told last. A channel that is new begins with what comes; one that
/// failed is tried again after a while. While somebody else is at it there is nothing to do. Returns what was sent, or on a dry board what
/// would be.
///
/// # Errors
/// The board can't be read or written.
pub fn tell_people(site: &Site) -> Result<Vec<Delivery>, Error> {
    let now = clock::now();
    tell(site, &|failure| failure.next <= now)
}

/// The same; what has failed is tried again now.
pub fn tell_people_now(site: &Site) -> Result<Vec<Delivery>, Error> {
    tell(site, &|_| true)
}

fn tell(site: &Site, is_over: &dyn Fn(&ChannelFailure) -> bool) -> Result<Vec<Delivery>, Error> {
    let (mut all, mut is_over) = (Vec::new(), is_over);
    if site.config.notify.is_empty() {
        return Ok(all);
    }
    while !site.interrupt.is_raised() {
        let last = site.board.last_seq()?;
        let Some(slot) = site.board.try_notice_slot()? else { break };
        all.extend(tell_until(site, last, is_over)?);
        drop(slot);
        // What has failed just now is not tried at once.
        is_over = &|failure| failure.next <= clock::now();
        // Who has come meanwhile found the slot taken.
        if site.board.is_dry() || site.board.last_seq()? == last {
            break;
        }
    }
    Ok(all)
}

/// Sends a message by each channel, to see whether it arrives.
pub fn try_channels(site: &Site) -> Vec<Delivery> {
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
    let tried = site.config.notify.iter().map(|(name, channel)| {
        let notices = vec![notice.clone()];
        let failure = deliver(site, channel, &NoticeMessage::of(&site.board, &notices)).err();
        Delivery { channel: name.clone(), notices, failure }
    });
    tried.collect()
}

fn tell_until(site: &Site, last: u64, is_over: &dyn Fn(&ChannelFailure) -> bool) -> Result<Vec<Delivery>, Error> {
    let (now, channels) = (clock::now(), &site.config.notify);
    let before = channel_states(&site.board);
    let of = |name: &String| before.get(name).cloned().unwrap_or(ChannelState { seq: last, failure: None });
    let mut states: BTreeMap<String, ChannelState> = channels.keys().map(|name| (name.clone(), of(name))).collect();
    // The log was cleaned away.
    states.values_mut().for_each(|state| state.seq = state.seq.min(last));
    let is_due = |state: &ChannelState| state.seq < last && state.failure.as_ref().is_none_or(is_over);
    let from = states.values().filter(|state| is_due(state)).map(|state| state.seq).min();
    let notices = from.map(|from| notices(site, from, last)).transpose()?.unwrap_or_default();
    let mut all = Vec::new();
    for (name, channel) in channels {
        let mut state = states[name].clone();
        if !is_due(&state) {
            continue;
        }
        let own = notices.iter().filter(|it| it.seq > state.seq && channel.takes(it.kind, it.severity));
        let own: Vec<Notice> = own.cloned().collect();
        let size = if own.len() > MOST_ALONE { own.len() } else { 1 };
        for part in own.chunks(size) {
            let failure = send(site, channel, &mut state, part);
            all.push(Delivery { channel: name.clone(), notices: part.to_vec(), failure });
            states.insert(name.clone(), state.clone());
            keep(site, &states)?;
            if let Some(failure) = &state.failure {
                note_failure(site, name, failure);
                break;
            }
        }
        if site.interrupt.is_raised() {
            return Ok(all);
        }
        if state.failure.as_ref().is_none_or(|failure| now - failure.since >= GIVEN_UP) {
            states.insert(name.clone(), ChannelState { seq: last, failure: None });
        }
    }
    if states != before {
        keep(site, &states)?;
    }
    Ok(all)
}

fn keep(site: &Site, states: &BTreeMap<String, ChannelState>) -> Result<(), Error> {
    if site.board.is_dry() {
        return Ok(());
    }
    let text = serde_json::to_string(states).expect("it is plain data");
    Ok(store::replace(&site.board.private(FILE), (text + "\n").as_bytes())?)
}

/// Why it could not be sent; `state` says so, too, or that it was.
fn send(site: &Site, channel: &Channel, state: &mut ChannelState, notices: &[Notice]) -> Option<String> {
    let told = deliver(site, channel, &NoticeMessage::of(&site.board, notices))
        .and_then(|()| failpoint::hit("notices.sent").map_err(|error| error.to_string()));
    let Err(why) = told else {
        state.seq = notices.last().map_or(state.seq, |last| last.seq);
        state.failure = None;
        return None;
    };
    // It was broken off, and is no failure of the channel's.
    if site.interrupt.is_raised() {
        return Some(why);
    }
    let (now, tries) = (clock::now(), state.failure.as_ref().map_or(0, |it| it.tries) + 1);
    let since = state.failure.as_ref().map_or(now, |it| it.since);
    let pause = FIRST_PAUSE * 2_i32.pow(tries.min(8) - 1);
    state.failure = Some(ChannelFailure { since, tries, next: now + pause.min(LONGEST_PAUSE), why: why.clone() });
    Some(why)
}

/// The log tells of it at the first time, and where it is given up. A board that can't be written is told of by others.
fn note_failure(site: &Site, channel: &str, failure: &ChannelFailure) {
    let what = match clock::now() - failure.since >= GIVEN_UP {
        true => "has told nobody for a day, and what there was is no longer told",
        false if failure.tries == 1 => "tells nobody, and is tried again",
        false => return,
    };
    let cause = Some(format!("the channel `{channel}` of `notify` {what}: {}", failure.why));
    drop(site.board.note(Entry { cause, ..Entry::new(Kind::Noted, clock::now()) }));
}

/// What the log tells people behind the event `from`, up to `last`, the oldest first.
fn notices(site: &Site, from: u64, last: u64) -> Result<Vec<Notice>, Error> {
    let entries = tail_log(&site.board, from)?;
    Ok(entries.into_iter().filter(|entry| entry.seq <= last).filter_map(|entry| notice(site, entry)).collect())
}

/// What an event tells people. An item that waits for nobody by now is told of no more.
fn notice(site: &Site, entry: Entry) -> Option<Notice> {
    let (kind, severity) =
        kind_of(entry.kind, entry.change.from().zip(entry.change.to()), entry.symptom.zip(entry.deed))?;
    if !site.config.notify.values().any(|channel| channel.takes(kind, severity)) {
        return None;
    }
    let (task, queue) = (entry.task.as_ref(), entry.queue.as_deref());
    let name = task.map_or_else(|| "an item".to_owned(), ToString::to_string);
    let agent = entry.agent.as_deref().unwrap_or("an agent");
    let cause = entry.cause.as_deref().unwrap_or_default();
    let todo = |lack: &Lack| (site.todo)(lack, task, queue);
    let (text, todo) = match kind {
        NoticeKind::NeedsYou if entry.kind == Kind::Closed => {
            let (runner, why) = cause.split_once(": ")?;
            let quota = site.board.quota(runner, clock::now())?;
            let (runner, until) = (runner.to_owned(), quota.closed_until);
            let lack = Lack::Closed { runner: runner.clone(), until, needs_person: quota.needs_person };
            (format!("runner {runner} takes nothing: {why}"), todo(&lack))
        }
        NoticeKind::Test => return None,
        NoticeKind::NeedsYou => {
            let lacks = lacks(site, task?, queue?);
            let (lack, _, why) = need_of(&lacks)?;
            let asks = if let Lack::Answer(_) = lack { "asks" } else { "needs you" };
            (format!("{name} {asks}: {why}"), todo(lack))
        }
        NoticeKind::Died => (format!("{name} is dead: {cause}"), todo(&Lack::Status(Status::Dead))),
        NoticeKind::Finished => (format!("{name} is completed"), None),
        NoticeKind::Cap => (format!("{agent} works on {name}: {cause}"), Some("see `caps` in config.yaml".to_owned())),
        NoticeKind::Trouble => (format!("{agent} works on {name}: {cause}"), None),
    };
    Some(Notice {
        seq: entry.seq,
        time: entry.time,
        kind,
        severity,
        title: entry.change.after().and_then(title).map(|title| one_line(&title, LONGEST_TITLE)),
        task: entry.task,
        queue: entry.queue,
        text: one_line(&text, LONGEST),
        todo: todo.map(|todo| one_line(&todo, LONGEST)),
    })
}

fn lacks(site: &Site, task: &TaskId, queue: &str) -> Vec<Lack> {
    let queue = site.board.queue_by_id(queue);
    queue.map(|queue| lacks_of(site, &queue, &NamedItem::Id(task.clone()))).unwrap_or_default()
}

/// That of an item's text.
fn title(text: &str) -> Option<String> {
    let (document, _) = parse(text);
    document.items().first().map(|item| document.title(item).to_owned()).filter(|title| !title.is_empty())
}
