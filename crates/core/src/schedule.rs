//! A schedule: an item that is queued at certain times, and which times are due. Knows no file and no clock.

use chrono::{DateTime, TimeDelta};
use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use super::metadata::Key;
use super::new_item::NewItem;
use super::status::Timestamp;
use super::timetable::{PassedTimes, SIGNED, Timetable, Zone};

/// With `missed: skip`, a time not looked at for this long is missed.
pub const LATE: TimeDelta = TimeDelta::hours(1);

/// An item that is queued repeatedly.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub name: String,
    pub when: Timetable,
    /// Name of the queue.
    pub queue: String,
    pub missed: Missed,
    pub while_open: WhileOpen,
    /// Whether it is paused, as if it were not there.
    pub is_paused: bool,
    pub is_draft: bool,
    /// The item to queue, without its time.
    pub item: NewItem,
}

/// Handling of times that passed unnoticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// One item for the last of them.
    #[default]
    Once,
    /// One item for each.
    All,
    /// None, unless the last one is less than [`LATE`] ago.
    Skip,
}

/// Handling of a time while the item of an earlier one is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhileOpen {
    /// Nothing is queued for it.
    #[default]
    Skip,
    Queue,
}

/// The log's record of a schedule: until when its times are settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleMark {
    pub name: String,
    /// The settled timetable, as written. With another one, nothing before the next look is due.
    pub when: String,
    /// `None`: the schedule no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The last of the times due with this one, which later changes queue: one change has no room for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Timestamp>,
}

/// The next action for a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is new or has another timetable: its times count from there on.
    Begin(Timestamp),
    Wait,
    /// Times have passed.
    Due(DueTimes),
}

/// Passed times, and those for which an item is to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTimes {
    /// Oldest first.
    pub wanted: Vec<Timestamp>,
    /// The last of all.
    pub last: Timestamp,
    /// Number of times not wanted.
    pub missed: usize,
    /// Whether there are older ones, which were not counted.
    pub has_more: bool,
    /// Whether they were due with others that are queued by now. Those being open does not stop these.
    pub is_rest: bool,
}

impl Schedule {
    /// Returns the action at `now`, with `mark` as the log's last record.
    pub fn turn(&self, mark: Option<&ScheduleMark>, now: Timestamp) -> Turn {
        let known = mark.and_then(|mark| mark.until.filter(|_| mark.when == self.when.to_string()));
        let Some(since) = known else {
            // A clock that was set back repeats no time.
            return Turn::Begin(
                mark.and_then(|mark| mark.until)
                    .map_or(now, |until| until.max(now)),
            );
        };
        let passed = |until: Timestamp| self.when.passed(since, until.min(now));
        // Later times wait until these are done.
        let rest = mark
            .and_then(|mark| mark.rest)
            .map(passed)
            .filter(|rest| !rest.times.is_empty());
        let is_rest = rest.is_some();
        let PassedTimes {
            mut times,
            has_more,
        } = rest.unwrap_or_else(|| passed(now));
        let Some(last) = times.last().copied() else {
            return Turn::Wait;
        };
        let is_wanted = self.missed != Missed::Skip || now - last < LATE;
        let most = match self.missed {
            Missed::All => times.len(),
            Missed::Once | Missed::Skip => usize::from(is_wanted),
        };
        let missed = times.len() - most;
        Turn::Due(DueTimes {
            wanted: times.split_off(missed),
            last,
            missed,
            has_more,
            is_rest,
        })
    }

    /// Returns the next time after `mark` and `now`.
    pub fn next(&self, mark: Option<&ScheduleMark>, now: Timestamp) -> Option<Timestamp> {
        let settled = mark.and_then(|mark| mark.until).unwrap_or(now);
        self.when
            .next_after(settled.max(now))
            .filter(|_| !self.is_paused)
    }

    /// Returns the record after all times up to `until` are settled.
    pub fn mark(&self, until: Timestamp) -> ScheduleMark {
        ScheduleMark {
            name: self.name.clone(),
            when: self.when.to_string(),
            until: Some(until),
            rest: None,
        }
    }

    /// Returns the mark that ties an item to this time: the same in each clone.
    pub fn sign(&self, time: Timestamp) -> String {
        format!("{}@{}", self.name, self.zone().written(time))
    }

    pub fn zone(&self) -> Zone {
        self.when.zone()
    }

    /// Returns the item for a time, with `{date}`, `{time}` and `{name}` in its texts replaced.
    pub fn item_for(&self, time: Timestamp) -> NewItem {
        let (date, clock) = (
            self.zone().format(time, "%Y-%m-%d"),
            self.zone().format(time, "%H:%M"),
        );
        let told = |text: &str| {
            text.replace("{date}", &date)
                .replace("{time}", &clock)
                .replace("{name}", &self.name)
        };
        let mut item = self.item.clone();
        item.title = told(&item.title);
        item.description = told(&item.description);
        item.fields
            .push((Key::QueuedFor, Value::from(self.sign(time))));
        item
    }
}

/// Parses the schedule's name and the time from the result of [`Schedule::sign`].
pub fn read_sign(sign: &str) -> Option<(&str, Timestamp)> {
    let (name, time) = sign.rsplit_once('@')?;
    Some((name, DateTime::parse_from_str(time, SIGNED).ok()?.to_utc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn daily(missed: Missed) -> Schedule {
        Schedule {
            name: "backup".to_owned(),
            when: Timetable::of_cron("0 6 * * *", "Europe/Berlin".parse().expect("a zone"))
                .expect("an expression"),
            queue: "main".to_owned(),
            missed,
            while_open: WhileOpen::Skip,
            is_paused: false,
            is_draft: false,
            item: NewItem {
                title: "Check {name} of {date} {time} {else}".to_owned(),
                ..NewItem::default()
            },
        }
    }

    #[test]
    fn what_passed_is_queued_as_the_schedule_says() {
        let now = at("2026-11-28T09:00:00Z");
        let due = |missed, wanted: &[&str]| {
            let schedule = daily(missed);
            let mark = schedule.mark(at("2026-11-25T05:00:00Z"));
            let Turn::Due(due) = schedule.turn(Some(&mark), now) else {
                panic!("it is due")
            };
            assert_eq!(
                due.wanted,
                wanted.iter().map(|time| at(time)).collect::<Vec<_>>(),
                "{missed:?}"
            );
            assert_eq!(
                (due.last, due.missed + wanted.len()),
                (at("2026-11-28T05:00:00Z"), 3)
            );
        };
        due(Missed::Once, &["2026-11-28T05:00:00Z"]);
        due(
            Missed::All,
            &[
                "2026-11-26T05:00:00Z",
                "2026-11-27T05:00:00Z",
                "2026-11-28T05:00:00Z",
            ],
        );
        due(Missed::Skip, &[]);
        let soon = daily(Missed::Skip);
        let mark = soon.mark(at("2026-11-25T05:00:00Z"));
        let Turn::Due(due) = soon.turn(Some(&mark), at("2026-11-28T05:59:00Z")) else {
            panic!("it is due")
        };
        assert_eq!((due.wanted.len(), due.missed), (1, 2));
    }

    #[test]
    fn nothing_before_the_first_look_is_due() {
        let (now, schedule) = (at("2026-11-28T09:00:00Z"), daily(Missed::All));
        assert_eq!(schedule.turn(None, now), Turn::Begin(now));
        let mark = schedule.mark(at("2026-11-20T09:00:00Z"));
        let of_another = ScheduleMark {
            when: "0 5 * * * Europe/Berlin".to_owned(),
            ..mark.clone()
        };
        assert_eq!(schedule.turn(Some(&of_another), now), Turn::Begin(now));
        assert_eq!(
            schedule.turn(
                Some(&ScheduleMark {
                    until: None,
                    ..mark
                }),
                now
            ),
            Turn::Begin(now)
        );
        // A clock that was set back.
        let ahead = schedule.mark(at("2026-11-29T05:00:00Z"));
        assert_eq!(schedule.turn(Some(&ahead), now), Turn::Wait);
        assert_eq!(
            schedule.next(Some(&ahead), now),
            Some(at("2026-11-30T05:00:00Z"))
        );
        let other_ahead = ScheduleMark {
            when: String::new(),
            ..ahead.clone()
        };
        assert_eq!(
            schedule.turn(Some(&other_ahead), now),
            Turn::Begin(at("2026-11-29T05:00:00Z"))
        );
    }

    #[test]
    fn what_was_due_with_others_is_done_with_before_what_came_later() {
        let (now, schedule) = (at("2026-11-28T09:00:00Z"), daily(Missed::All));
        let due = |rest: Option<&str>| {
            let mark = ScheduleMark {
                rest: rest.map(at),
                ..schedule.mark(at("2026-11-25T05:00:00Z"))
            };
            let Turn::Due(due) = schedule.turn(Some(&mark), now) else {
                panic!("it is due")
            };
            (due.wanted.len(), due.is_rest)
        };
        assert_eq!(due(None), (3, false));
        assert_eq!(due(Some("2026-11-27T05:00:00Z")), (2, true));
        // A clock that was set back, and zones that have other rules by now.
        assert_eq!(due(Some("2026-11-30T05:00:00Z")), (3, true));
        assert_eq!(due(Some("2026-11-25T06:00:00Z")), (3, false));
    }

    #[test]
    fn an_item_says_which_time_it_is_for() {
        let item = daily(Missed::Once).item_for(at("2026-11-28T05:00:00Z"));
        assert_eq!(item.title, "Check backup of 2026-11-28 06:00 {else}");
        assert_eq!(
            item.fields,
            [(Key::QueuedFor, "backup@2026-11-28T06:00+01:00".into())]
        );
        let signed = |sign| read_sign(sign).map(|(name, time)| (name, time.to_rfc3339()));
        assert_eq!(
            signed("a@b@2026-11-28T06:00+01:00"),
            Some(("a@b", "2026-11-28T05:00:00+00:00".to_owned()))
        );
        assert_eq!(
            ["backup", "backup@", "backup@tomorrow", "backup@2026-11-28"].map(signed),
            [const { None }; 4]
        );
    }
}
