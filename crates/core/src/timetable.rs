//! A cron expression in a time zone. Knows nothing of the scheduled items.
//!
//! At clock changes a time counts once. A skipped time is the first moment after the gap; a repeated time is
//! the first of the two. Hourly expressions follow elapsed time instead, so that there is neither a gap nor a
//! pause.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Local, NaiveDateTime, TimeDelta, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};
use croner::parser::{CronParser, Seconds, Year};
use croner::{Cron, Direction};

use super::status::Timestamp;
use crate::suggestion::nearest;

/// Maximum number of past times that are considered.
pub const MOST_PASSED: usize = 100;

/// Format of [`Zone::written`], for `chrono`.
pub const SIGNED: &str = "%Y-%m-%dT%H:%M%:z";

/// Maximum step back of a clock, after which an earlier time on it may be a later moment.
const SET_BACK: TimeDelta = TimeDelta::hours(3);

/// A repeating timetable.
#[derive(Clone, Debug, PartialEq)]
pub struct Timetable {
    cron: Cron,
    zone: Zone,
    /// Whether it names every hour, and so follows elapsed time.
    is_hourly: bool,
}

/// The time zone of a timetable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zone {
    /// The machine's zone.
    #[default]
    Local,
    Named(Tz),
}

/// Error of an invalid timetable, with a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTime {
    pub message: String,
    pub hint: String,
}

/// Times that have passed, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassedTimes {
    pub times: Vec<Timestamp>,
    /// Whether there are older ones, which were not counted.
    pub has_more: bool,
}

impl BadTime {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> BadTime {
        BadTime {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl FromStr for Zone {
    type Err = BadTime;

    fn from_str(name: &str) -> Result<Zone, BadTime> {
        name.parse().map(Zone::Named).map_err(|_| {
            let known = TZ_VARIANTS.iter().map(|zone| zone.name());
            let hint = nearest(name, known).map_or_else(
                || "write one of the IANA database, such as Europe/Berlin or UTC".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            BadTime::new(format!("no time zone `{name}`"), hint)
        })
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Zone::Local => f.write_str("local"),
            Zone::Named(zone) => f.write_str(zone.name()),
        }
    }
}

impl Zone {
    /// Returns a moment in its zone, to the minute: `2026-11-28T06:00+01:00`.
    pub fn written(self, at: Timestamp) -> String {
        self.format(at, SIGNED)
    }

    /// Returns the same for people: `2026-11-28 06:00 +01:00`.
    pub fn shown(self, at: Timestamp) -> String {
        self.format(at, "%Y-%m-%d %H:%M %:z")
    }

    /// Formats a moment with `chrono`.
    pub fn format(self, at: Timestamp, format: &str) -> String {
        match self {
            Zone::Local => at.with_timezone(&Local).format(format).to_string(),
            Zone::Named(zone) => at.with_timezone(&zone).format(format).to_string(),
        }
    }
}

impl Timetable {
    /// Parses five fields as in a crontab, or `@daily` and the like.
    pub fn of_cron(text: &str, zone: Zone) -> Result<Timetable, BadTime> {
        let example = "write five fields, such as \"0 6 * * *\" (minute, hour, day, month, day of the week), or @daily";
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser.parse(text.trim()).map_err(|error| {
            let why = error.to_string();
            let why = why
                .trim_end_matches('.')
                .rsplit(": ")
                .next()
                .unwrap_or_default()
                .replace("CronPattern", "it");
            BadTime::new(
                format!("invalid cron expression `{text}`: {}", why.to_lowercase()),
                example,
            )
        })?;
        let epoch = DateTime::UNIX_EPOCH.naive_utc();
        if cron.find_next_occurrence(&epoch, false).is_err() {
            return Err(BadTime::new(
                format!("`{text}` never matches a date"),
                "no month has such a day: write another",
            ));
        }
        let is_hourly = cron.pattern.hours.values().len() == 24;
        Ok(Timetable {
            cron,
            zone,
            is_hourly,
        })
    }

    /// Parses words: `day at 06:00`, `weekday at 18:30`, `monday at 9:00`, `hour`.
    pub fn of_words(words: &str, zone: Zone) -> Result<Timetable, BadTime> {
        let cron = cron_of(words).ok_or_else(|| {
            let hint = "write `hour`, `day at 06:00`, `weekday at 06:00` or `monday at 06:00`; for anything else use `cron`";
            BadTime::new(format!("invalid time `{words}`"), hint)
        })?;
        Timetable::of_cron(&cron, zone)
    }

    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// Returns the first time after `at`; `None` only in the far future.
    pub fn next_after(&self, at: Timestamp) -> Option<Timestamp> {
        match self.zone {
            Zone::Local => self.next_in(&Local, at),
            Zone::Named(zone) => self.next_in(&zone, at),
        }
    }

    /// Returns the times after `since`, up to `now`: the last [`MOST_PASSED`] of them.
    pub fn passed(&self, since: Timestamp, now: Timestamp) -> PassedTimes {
        if since >= now {
            return PassedTimes::default();
        }
        match self.zone {
            Zone::Local => self.passed_in(&Local, since, now),
            Zone::Named(zone) => self.passed_in(&zone, since, now),
        }
    }

    fn next_in<Z: TimeZone>(&self, zone: &Z, at: Timestamp) -> Option<Timestamp> {
        let local = at.with_timezone(zone);
        if self.is_hourly {
            return self
                .cron
                .find_next_occurrence(&local, false)
                .ok()
                .map(|time| time.to_utc());
        }
        self.cron
            .iter_after(local.naive_local())
            .filter_map(|time| moment(zone, time))
            .find(|time| *time > at)
    }

    fn passed_in<Z: TimeZone>(&self, zone: &Z, since: Timestamp, now: Timestamp) -> PassedTimes {
        let mut times: Vec<Timestamp> = Vec::new();
        let local = now.with_timezone(zone);
        let mut has_more = false;
        let mut take = |time: Timestamp| {
            let is_new = time > since && times.last() != Some(&time);
            has_more = is_new && times.len() == MOST_PASSED;
            times.extend(Some(time).filter(|_| is_new && !has_more));
            time > since && !has_more
        };
        if self.is_hourly {
            self.cron
                .iter_from(local, Direction::Backward)
                .map(|time| time.to_utc())
                .all(&mut take);
        } else {
            let times = self
                .cron
                .iter_from(local.naive_local() + SET_BACK, Direction::Backward);
            times
                .filter_map(|time| moment(zone, time))
                .filter(|time| *time <= now)
                .all(&mut take);
        }
        times.reverse();
        PassedTimes { times, has_more }
    }
}

impl fmt::Display for Timetable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.cron.as_str(), self.zone)
    }
}

/// Returns the first moment at which a clock shows `time`, or else a later time.
fn moment<Z: TimeZone>(zone: &Z, time: NaiveDateTime) -> Option<Timestamp> {
    // Clocks change by whole minutes, and one island has skipped a whole day.
    let minutes = (0..=24 * 60).map(|minutes| time + TimeDelta::minutes(minutes));
    minutes
        .into_iter()
        .find_map(|time| zone.from_local_datetime(&time).earliest())
        .map(|time| time.to_utc())
}

fn cron_of(words: &str) -> Option<String> {
    const DAYS: [&str; 7] = [
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
    ];
    let words = words.to_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    let (day, time) = match words.as_slice() {
        ["hour"] => return Some("0 * * * *".to_owned()),
        [day, "at", time] => (*day, *time),
        _ => return None,
    };
    let days = match day {
        "day" => "*".to_owned(),
        "weekday" => "1-5".to_owned(),
        day => DAYS.iter().position(|name| *name == day)?.to_string(),
    };
    let (hour, minute) = time.split_once(':')?;
    let number = |text: &str, most: u32| {
        text.parse::<u32>()
            .ok()
            .filter(|number| *number < most && text.len() <= 2)
    };
    Some(format!(
        "{} {} * * {days}",
        number(minute, 60)?,
        number(hour, 24)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn table(cron: &str, zone: &str) -> Timetable {
        Timetable::of_cron(cron, zone.parse().expect("a zone")).expect("an expression")
    }

    fn days(zone: &str, cron: &str, from: &str, to: &str) -> Vec<String> {
        let table = table(cron, zone);
        let (from, to) = (at(from), at(to));
        let passed = table.passed(from, to);
        // Whichever way they are asked for, the times are the same.
        let mut next = Vec::new();
        let mut last = from;
        while let Some(time) = table.next_after(last).filter(|time| *time <= to) {
            next.push(time);
            last = time;
        }
        assert_eq!(passed.times, next, "{cron} in {zone}");
        next.into_iter()
            .map(|time| table.zone.shown(time))
            .collect()
    }

    #[test]
    fn a_time_that_a_clock_leaves_out_comes_once_at_the_next_moment() {
        assert_eq!(
            days(
                "Europe/Berlin",
                "30 2 * * *",
                "2026-03-28T00:00:00Z",
                "2026-03-30T12:00:00Z"
            ),
            [
                "2026-03-28 02:30 +01:00",
                "2026-03-29 03:00 +02:00",
                "2026-03-30 02:30 +02:00"
            ]
        );
        assert_eq!(
            days(
                "America/New_York",
                "0,30 2,3 * * *",
                "2026-03-08T06:00:00Z",
                "2026-03-08T12:00:00Z"
            ),
            ["2026-03-08 03:00 -04:00", "2026-03-08 03:30 -04:00"]
        );
        // A whole day, 2011-12-30.
        assert_eq!(
            days(
                "Pacific/Apia",
                "0 6 * * *",
                "2011-12-29T17:00:00Z",
                "2011-12-31T12:00:00Z"
            ),
            ["2011-12-31 00:00 +14:00", "2011-12-31 06:00 +14:00"]
        );
    }

    #[test]
    fn a_time_that_a_clock_shows_twice_comes_once() {
        assert_eq!(
            days(
                "Europe/Berlin",
                "30 2 * * *",
                "2026-10-24T12:00:00Z",
                "2026-10-26T12:00:00Z"
            ),
            ["2026-10-25 02:30 +02:00", "2026-10-26 02:30 +01:00"]
        );
        assert_eq!(
            days(
                "America/New_York",
                "15 1,2 * * *",
                "2026-11-01T04:00:00Z",
                "2026-11-01T12:00:00Z"
            ),
            ["2026-11-01 01:15 -04:00", "2026-11-01 02:15 -05:00"]
        );
        // While the clock shows the hour for the second time, the first one has passed.
        let table = table("30 2 * * *", "Europe/Berlin");
        let now = at("2026-10-25T01:10:00Z");
        assert_eq!(
            table.passed(at("2026-10-25T00:00:00Z"), now).times,
            [at("2026-10-25T00:30:00Z")]
        );
        assert_eq!(table.next_after(now), Some(at("2026-10-26T01:30:00Z")));
    }

    #[test]
    fn what_is_due_every_hour_goes_by_the_time_that_passes() {
        let gaps = |cron, from, to| {
            let times = table(cron, "Europe/Berlin").passed(at(from), at(to)).times;
            times
                .windows(2)
                .map(|two| (two[1] - two[0]).num_minutes())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            gaps(
                "*/30 * * * *",
                "2026-10-24T22:00:00Z",
                "2026-10-25T03:00:00Z"
            ),
            [30; 9]
        );
        assert_eq!(
            gaps(
                "*/30 * * * *",
                "2026-03-28T23:00:00Z",
                "2026-03-29T04:00:00Z"
            ),
            [30; 9]
        );
    }

    #[test]
    fn of_a_long_past_the_last_times_are_known() {
        let table = table("* * * * *", "UTC");
        let passed = table.passed(at("2000-01-01T00:00:00Z"), at("2026-01-01T00:00:30Z"));
        assert_eq!((passed.times.len(), passed.has_more), (MOST_PASSED, true));
        assert_eq!(passed.times.last(), Some(&at("2026-01-01T00:00:00Z")));
        let few = table.passed(at("2026-01-01T00:00:00Z"), at("2026-01-01T01:40:00Z"));
        assert_eq!((few.times.len(), few.has_more), (100, false));
        // A clock that was set back.
        assert_eq!(
            table.passed(at("2026-01-02T00:00:00Z"), at("2026-01-01T00:00:00Z")),
            PassedTimes::default()
        );
    }

    #[test]
    fn words_are_understood() {
        for (words, cron) in [
            ("hour", "0 * * * *"),
            ("day at 06:00", "0 6 * * *"),
            ("Weekday  at 18:30", "30 18 * * 1-5"),
            ("sunday at 9:05", "5 9 * * 0"),
        ] {
            assert_eq!(cron_of(words).as_deref(), Some(cron), "{words}");
            assert!(Timetable::of_words(words, Zone::Local).is_ok());
        }
        for words in [
            "",
            "day",
            "day at 6",
            "day at 24:00",
            "day at 6:60",
            "moonday at 6:00",
            "day at +6:00",
        ] {
            assert_eq!(
                cron_of(words).filter(|_| words != "day at +6:00"),
                None,
                "{words}"
            );
        }
    }

    #[test]
    fn what_can_t_be_read_is_told() {
        let fault = |cron| {
            Timetable::of_cron(cron, Zone::Local)
                .expect_err("no expression")
                .message
        };
        assert_eq!(fault("0 6 31 2 *"), "`0 6 31 2 *` never matches a date");
        assert!(
            fault("0 6 * *").starts_with("invalid cron expression `0 6 * *`: "),
            "{}",
            fault("0 6 * *")
        );
        for odd in [
            "",
            "0 0 6 * * *",
            "61 * * * *",
            "0 6 * * FOO",
            "@reboot",
            "0 6 * * * 2027",
        ] {
            assert!(
                fault(odd).contains("invalid cron expression `"),
                "{odd}: {}",
                fault(odd)
            );
        }
        let zone = "Europe/Berln".parse::<Zone>().expect_err("no zone");
        assert_eq!(zone.hint, "did you mean `Europe/Berlin`?");
    }
}
