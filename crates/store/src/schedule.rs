//! Queues the due items of schedules, each time once. The event that adds an item also logs up to when its schedule is
//! settled.
//!
//! `schedules.json` beside the log caches the marks up to an event, so that older lines need not be read again. It may
//! lag behind or be lost; the log has the rest.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::archived::Archived;
use super::atomic_write::replace_volatile;
use super::board::Board;
use super::change::{Change, Step};
use super::entry::Entry;
use super::error::Error;
use super::index::ItemIndex;
use super::log::walk_back;
use super::queue::Queue;
use super::submit::Note;
use super::transaction::View;
use tavern_core::document::{Document, open, parse_alone};
use tavern_core::event::Kind;
use tavern_core::metadata::{Field, Key, Meaning};
use tavern_core::new_item::{NewItem, render};
use tavern_core::patch::Patch;
use tavern_core::schedule::{DueTimes, Schedule, ScheduleMark, Turn, WhileOpen, read_sign};
use tavern_core::task::{Status, Task, TaskId, Timestamp};
use tavern_core::text::apply_in_place;
use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::secrets::redact;

/// In the private part of the board.
const FILE: &str = "schedules.json";

/// Log lines with a schedule's mark contain this; within texts it is escaped.
const MARK: &[u8] = b"\"schedule\":{";

/// The most log lines read again at each look.
const MOST_AGAIN: usize = 512;

/// The most items that one change queues, and the most schedules it handles: other processes wait for the lock
/// meanwhile.
const MOST_AT_ONCE: usize = 50;

/// The marks of schedules, from the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScheduleMarks {
    /// The last event read.
    seq: u64,
    marks: BTreeMap<String, KnownMark>,
}

/// The last known mark of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownMark {
    pub mark: ScheduleMark,
    /// The last item that it queued, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<(TaskId, Timestamp)>,
}

/// The result for one schedule in one look.
#[derive(Debug)]
pub struct ScheduleOutcome {
    pub name: String,
    pub what: ScheduleDeed,
}

/// See [`ScheduleOutcome`].
#[derive(Debug)]
pub enum ScheduleDeed {
    /// Its times count from this moment on.
    Begun(Timestamp),
    /// It was removed or paused, so its times no longer count.
    Ended,
    Queued {
        due: Timestamp,
        task: Box<Task>,
        queue: Queue,
    },
    /// Nothing was queued for the times up to this one, with the reason.
    Left { due: Timestamp, why: String },
    /// It is due, but can't be queued.
    Failed(String),
}

impl ScheduleMarks {
    pub fn of(&self, name: &str) -> Option<&KnownMark> {
        self.marks.get(name)
    }

    fn mark(&self, name: &str) -> Option<&ScheduleMark> {
        self.of(name).map(|known| &known.mark)
    }

    fn take(&mut self, entry: Entry) {
        let Some(mark) = entry.schedule else { return };
        if mark.until.is_none() {
            self.marks.remove(&mark.name);
            return;
        }
        let before = self.marks.remove(&mark.name).and_then(|known| known.last);
        let last = entry
            .task
            .filter(|_| entry.kind == Kind::Added)
            .map(|task| (task, entry.time))
            .or(before);
        self.marks
            .insert(mark.name.clone(), KnownMark { mark, last });
    }
}

impl Board {
    /// Returns the marks of schedules, from the cache and the log.
    pub fn schedule_marks(&self) -> Result<ScheduleMarks, Error> {
        let text = files::read(self.private(FILE)).unwrap_or_default();
        let mut marks: ScheduleMarks = serde_json::from_slice(&text).unwrap_or_default();
        let (mut entries, mut last, mut lines) = (Vec::new(), None, 0_usize);
        walk_back(self, &mut |line| {
            let Some(seq) = seq_of(line) else { return true };
            // In a log that was started anew, every line is news.
            let newest = *last.get_or_insert(seq);
            if newest >= marks.seq && seq <= marks.seq {
                return false;
            }
            lines += 1;
            if memmem::find(line, MARK).is_some() {
                entries.extend(serde_json::from_slice::<Entry>(line).ok());
            }
            true
        })?;
        entries
            .into_iter()
            .rev()
            .for_each(|entry| marks.take(entry));
        marks.seq = last.unwrap_or(marks.seq);
        self.rehearsal
            .iter()
            .flat_map(|rehearsal| rehearsal.entries())
            .for_each(|entry| marks.take(entry));
        if lines > MOST_AGAIN && !self.is_dry() {
            // On failure the log is read again next time.
            drop(self.keep_marks(&marks));
        }
        Ok(marks)
    }

    fn keep_marks(&self, marks: &ScheduleMarks) -> Result<(), Error> {
        let text = serde_json::to_vec(marks).expect("marks are plain data");
        replace_volatile(&self.private(FILE), &text)
    }

    /// Queues the due items of `schedules`, each time once, even if other processes do the same. Marked schedules that
    /// are not in `names`, if given, are ended. A schedule that fails does not block the others. `is_trusted` is called
    /// under the lock.
    pub fn queue_due(
        &self,
        schedules: &[Schedule],
        names: Option<&HashSet<String>>,
        is_trusted: &dyn Fn(&Task) -> bool,
    ) -> Result<Vec<ScheduleOutcome>, Error> {
        let (marks, now) = (self.schedule_marks()?, clock::now());
        let live: Vec<&Schedule> = schedules
            .iter()
            .filter(|schedule| !schedule.is_paused)
            .collect();
        let is_gone = |name: &String| {
            names.is_some_and(|names| !names.contains(name))
                || schedules
                    .iter()
                    .any(|schedule| schedule.name == *name && schedule.is_paused)
        };
        let gone: Vec<String> = marks
            .marks
            .keys()
            .filter(|name| is_gone(name))
            .cloned()
            .collect();
        let turn = |schedule: &Schedule, marks: &ScheduleMarks, now| {
            schedule.turn(marks.mark(&schedule.name), now)
        };
        let (mut news, mut queues) = (false, BTreeMap::<&str, Vec<&Schedule>>::new());
        for schedule in &live {
            match turn(schedule, &marks, now) {
                Turn::Begin(_) => news = true,
                Turn::Due(_) => queues.entry(&schedule.queue).or_default().push(schedule),
                Turn::Wait => {}
            }
        }
        let mut outcomes = Vec::new();
        if news || !gone.is_empty() {
            outcomes = self.transact(|view| {
                let marks = self.schedule_marks()?;
                let gone = gone.into_iter().filter(|name| marks.of(name).is_some());
                let mut told: Vec<(ScheduleMark, ScheduleDeed)> = Vec::new();
                told.extend(gone.map(|name| (ended(name), ScheduleDeed::Ended)));
                told.extend(live.iter().filter_map(|schedule| {
                    match turn(schedule, &marks, view.now) {
                        Turn::Begin(from) => Some((schedule.mark(from), ScheduleDeed::Begun(from))),
                        _ => None,
                    }
                }));
                let entries = told.iter().map(|(mark, what)| {
                    let does = if matches!(what, ScheduleDeed::Ended) {
                        "no longer"
                    } else {
                        "from now on"
                    };
                    settled(
                        view,
                        mark.clone(),
                        format!("schedule {} counts {does}", mark.name),
                    )
                });
                let change = Change::notes(entries.collect());
                let told = told.into_iter().map(|(mark, what)| ScheduleOutcome {
                    name: mark.name,
                    what,
                });
                Ok((change, told.collect()))
            })?;
        }
        let groups = queues
            .values()
            .flat_map(|due| due.chunks(MOST_AT_ONCE).map(<[_]>::to_vec));
        let mut groups: Vec<Vec<&Schedule>> = groups.collect();
        groups.reverse();
        while let Some(due) = groups.pop() {
            let queued = self.queue_by_id(&due[0].queue);
            match queued
                .and_then(|queue| self.transact(|view| view.queue_due(&queue, &due, is_trusted)))
            {
                Ok((queued, done)) => {
                    outcomes.extend(queued);
                    groups.extend(Some(due[done..].to_vec()).filter(|rest| !rest.is_empty()));
                }
                Err(Error::Busy(seconds)) => return Err(Error::Busy(seconds)),
                // One of them may cause the failure, so each is tried by itself.
                Err(_) if due.len() > 1 => {
                    groups.extend(due.into_iter().map(|schedule| vec![schedule]));
                }
                Err(error) => {
                    let what = ScheduleDeed::Failed(error.to_string());
                    outcomes.push(ScheduleOutcome {
                        name: due[0].name.clone(),
                        what,
                    });
                }
            }
        }
        if !outcomes.is_empty() && !self.is_dry() {
            // The cache may lag behind.
            drop(self.keep_marks(&self.schedule_marks()?));
        }
        Ok(outcomes)
    }
}

impl View<'_> {
    /// Returns a change with the due items of `schedules`, which all go to `queue`, decided under the lock, and the
    /// number of schedules handled. Items beyond the limit of one change are left to later ones; each mark records the
    /// progress.
    fn queue_due(
        &self,
        queue: &Queue,
        schedules: &[&Schedule],
        is_trusted: &dyn Fn(&Task) -> bool,
    ) -> Result<(Change, (Vec<ScheduleOutcome>, usize)), Error> {
        let marks = self.board.schedule_marks()?;
        let text = self.read(queue)?;
        let known = schedules.iter().filter_map(|schedule| {
            let settled = marks.mark(&schedule.name)?.until?;
            Some((schedule.name.as_str(), (*schedule, settled)))
        });
        let (own, times, open_items) = Default::default();
        let mut signed = SignedItems {
            board: self.board,
            schedules: known.collect(),
            is_trusted,
            own,
            times,
            open: open_items,
        };
        self.read_signed(&mut signed, queue, &text.content)?;
        let (index, note) = (
            ItemIndex::among(self.board, &self.known.queues),
            Note::default(),
        );
        let mut content = text.content.to_string();
        let (mut steps, mut outcomes) = (Vec::new(), Vec::new());
        for (at, schedule) in schedules.iter().enumerate() {
            let mut mark = marks.mark(&schedule.name).cloned();
            while let Turn::Due(due) = schedule.turn(mark.as_ref(), self.now) {
                let room = MOST_AT_ONCE.saturating_sub(steps.len());
                if room == 0 {
                    return Ok((self.change(text, steps), (outcomes, at)));
                }
                let left = why_left(schedule, &due, &signed);
                let is_new = |time: &&Timestamp| {
                    left.is_none() && !signed.times.contains(&schedule.sign(**time))
                };
                let mut wanted: Vec<Timestamp> =
                    due.wanted.iter().filter(is_new).copied().collect();
                let rest = (wanted.len() > room).then_some(due.last);
                wanted.truncate(room);
                for time in &wanted {
                    let status = if schedule.is_draft {
                        Status::Draft
                    } else {
                        Status::Pending
                    };
                    let (item, none) = (schedule.item_for(*time), |_: &_, _: &_| Patch::default());
                    let (mut step, task) =
                        self.added(queue, &open(&content), &index, item, &none, status, &note)?;
                    step.entry.schedule = Some(ScheduleMark {
                        rest,
                        ..schedule.mark(*time)
                    });
                    step.entry.cause = Some(message_for(schedule, *time, &due));
                    apply_in_place(&mut content, &step.edits);
                    steps.push(step);
                    signed
                        .open
                        .entry(schedule.name.clone())
                        .or_default()
                        .push((*time, task.id.clone()));
                    let what = ScheduleDeed::Queued {
                        due: *time,
                        task: Box::new(task),
                        queue: queue.clone(),
                    };
                    outcomes.push(ScheduleOutcome {
                        name: schedule.name.clone(),
                        what,
                    });
                }
                if rest.is_none() && wanted.last() != Some(&due.last) {
                    let why = left.unwrap_or_else(|| "it is there already".to_owned());
                    let time = schedule.zone().shown(due.last);
                    let cause = format!(
                        "schedule {} queued nothing for {time}: {why}",
                        schedule.name
                    );
                    let what = ScheduleDeed::Left { due: due.last, why };
                    steps.push(settled(self, schedule.mark(due.last), cause).into());
                    outcomes.push(ScheduleOutcome {
                        name: schedule.name.clone(),
                        what,
                    });
                }
                mark = steps
                    .last()
                    .and_then(|step: &Step| step.entry.schedule.clone());
            }
        }
        Ok((self.change(text, steps), (outcomes, schedules.len())))
    }

    /// Finds items on the whole board that name their schedule; `text` is the content of `queue`.
    fn read_signed(
        &self,
        signed: &mut SignedItems<'_>,
        queue: &Queue,
        text: &str,
    ) -> Result<(), Error> {
        signed.take(text);
        for other in self
            .board
            .queues()?
            .iter()
            .filter(|other| other.path != queue.path)
        {
            // An unreadable queue does not block queueing into others.
            if let Ok(text) = self.read(other) {
                signed.take(&text.content);
            }
        }
        Archived::of(self.board)
            .contents()
            .for_each(|text| signed.take(text));
        Ok(())
    }
}

/// Items that name the schedule and the time they are for. Anyone can write that key, so it counts only for items that
/// are trusted or were queued here. An item that equals the schedule's own word for word counts as present, whichever
/// clone queued it.
struct SignedItems<'b> {
    board: &'b Board,
    /// The schedules in question by name, each with its last settled time.
    schedules: HashMap<&'b str, (&'b Schedule, Timestamp)>,
    is_trusted: &'b dyn Fn(&Task) -> bool,
    /// The items that the log has as queued here, read on first use.
    own: OnceCell<HashSet<(TaskId, Timestamp)>>,
    times: HashSet<String>,
    /// The open items, by schedule.
    open: HashMap<String, Vec<(Timestamp, TaskId)>>,
}

impl SignedItems<'_> {
    fn take(&mut self, text: &str) {
        if memmem::find(text.as_bytes(), Key::QueuedFor.as_str().as_bytes()).is_none() {
            return;
        }
        let document: Document<'_> = open(text);
        for item in document.items() {
            let sign = document
                .entries(item)
                .into_iter()
                .find_map(|entry| match entry.meaning {
                    Meaning::Known(Key::QueuedFor, Field::Text(sign)) => Some(sign.into_owned()),
                    _ => None,
                });
            let Some(sign) = sign else { continue };
            let Some((name, time)) = read_sign(&sign) else {
                continue;
            };
            let Some((schedule, settled)) = self.schedules.get(name) else {
                continue;
            };
            let is_open = !item.status.is_ended();
            if !is_open && time <= *settled {
                continue;
            }
            let task = document.task_of(item);
            let is_known = (self.is_trusted)(&task) || self.was_queued_here(&task.id, time);
            if let (true, Some(id)) = (is_known && is_open, &item.id) {
                self.open
                    .entry(name.to_owned())
                    .or_default()
                    .push((time, id.clone()));
            }
            if is_known || is_as_queued(schedule, time, &document, &task) {
                self.times.insert(sign);
            }
        }
    }

    fn was_queued_here(&self, task: &TaskId, time: Timestamp) -> bool {
        let all = || queued_here(self.board).unwrap_or_default();
        self.own.get_or_init(all).contains(&(task.clone(), time))
    }
}

/// Returns the items that schedules have queued according to the log, with their times.
fn queued_here(board: &Board) -> Result<HashSet<(TaskId, Timestamp)>, Error> {
    let mut all = HashSet::new();
    walk_back(board, &mut |line| {
        let entry =
            memmem::find(line, MARK).and_then(|_| serde_json::from_slice::<Entry>(line).ok());
        all.extend(entry.and_then(|entry| Some((entry.task?, entry.schedule?.until?))));
        true
    })?;
    Ok(all)
}

/// Returns true if `task` of `document` equals word for word the item that the schedule queues for that time.
fn is_as_queued(
    schedule: &Schedule,
    time: Timestamp,
    document: &Document<'_>,
    task: &Task,
) -> bool {
    let item = schedule
        .item_for(time)
        .with_words(|text| redact(text).into_owned());
    let block = render(&NewItem {
        id: Some(TaskId::nobody()),
        ..item
    });
    let alone = parse_alone(&block, document.front());
    alone
        .items()
        .first()
        .is_some_and(|item| alone.task_of(item).wording() == task.wording())
}

/// Returns why nothing is queued of the due times.
fn why_left(schedule: &Schedule, due: &DueTimes, signed: &SignedItems) -> Option<String> {
    if due.wanted.is_empty() {
        return Some("it was missed".to_owned());
    }
    let holds_up = schedule.while_open == WhileOpen::Skip && !due.is_rest;
    let open = signed.open.get(&schedule.name).filter(|_| holds_up);
    let earlier = open
        .into_iter()
        .flatten()
        .find(|(time, _)| *time <= due.last);
    earlier.map(|(_, task)| format!("{task} of an earlier time is open"))
}

/// Returns the log's cause for a queued item.
fn message_for(schedule: &Schedule, time: Timestamp, due: &DueTimes) -> String {
    let missed = match (due.missed, due.has_more) {
        (0, false) => String::new(),
        (1, false) => ", and one earlier time was missed".to_owned(),
        (missed, false) => format!(", and {missed} earlier times were missed"),
        (missed, true) => format!(", and more than {missed} earlier times were missed"),
    };
    format!(
        "schedule {}, due {}{missed}",
        schedule.name,
        schedule.zone().shown(time)
    )
}

fn settled(view: &View<'_>, mark: ScheduleMark, cause: String) -> Entry {
    Entry {
        schedule: Some(mark),
        cause: Some(cause),
        ..Entry::new(Kind::Noted, view.now)
    }
}

fn ended(name: String) -> ScheduleMark {
    ScheduleMark {
        name,
        when: String::new(),
        until: None,
        rest: None,
    }
}

/// Returns the number of a log line, which comes first, without parsing the rest.
fn seq_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}
