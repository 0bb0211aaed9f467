//! A time in the past as people type it. Times without an offset are UTC, as the log prints them.

use chrono::{DateTime, NaiveDateTime, NaiveTime, TimeDelta};

use crate::board::task::Timestamp;
use crate::clock;
use crate::config::Period;

/// Reads `2026-11-22T10:00`, `2026-11-22 10:00:30`, `2026-11-22`, `10:00` (the last one) or `2h ago`.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    read(text.trim(), clock::now())
}

fn read(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let bad = || "not a time such as 2026-11-22T10:00, 10:00 or \"2h ago\"".to_owned();
    if let Some(ago) = text.strip_suffix("ago") {
        let period: Period = ago.trim().parse().map_err(|_| bad())?;
        let ago = TimeDelta::from_std(period.duration()).map_err(|_| bad())?;
        return now.checked_sub_signed(ago).ok_or_else(bad);
    }
    let text = text.replacen(' ', "T", 1);
    // What is left out is zero.
    let whole = ["", ":00", "T00:00:00"].map(|rest| format!("{text}{rest}"));
    if let Some(time) = whole.iter().find_map(|time| NaiveTime::parse_from_str(time, "%H:%M:%S").ok()) {
        let today = now.date_naive().and_time(time).and_utc();
        return Ok(if today > now { today - TimeDelta::days(1) } else { today });
    }
    let local = || whole.iter().find_map(|moment| NaiveDateTime::parse_from_str(moment, "%Y-%m-%dT%H:%M:%S").ok());
    let moment = DateTime::parse_from_rfc3339(&text).map(|moment| moment.to_utc()).ok();
    let moment = moment.or_else(|| Some(local()?.and_utc())).ok_or_else(bad)?;
    if moment > now { Err("this time is in the future".to_owned()) } else { Ok(moment) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_type_them() {
        let now = "2026-11-22T12:00:00Z".parse().expect("a time");
        let rows = [
            ("2026-11-22T10:00", "2026-11-22T10:00:00Z"),
            ("2026-11-21 10:00:30", "2026-11-21T10:00:30Z"),
            ("2026-11-22T10:00:00+02:00", "2026-11-22T08:00:00Z"),
            ("2026-11-22", "2026-11-22T00:00:00Z"),
            ("10:00", "2026-11-22T10:00:00Z"),
            ("13:00", "2026-11-21T13:00:00Z"),
            ("2h ago", "2026-11-22T10:00:00Z"),
            ("1d2h ago", "2026-11-21T10:00:00Z"),
        ];
        for (text, expected) in rows {
            assert_eq!(read(text, now), Ok(expected.parse().expect("a time")), "{text}");
        }
        for text in ["", "ago", "noon", "25:00", "2026-11-23", "2026-13-01", "99999999999999d ago"] {
            assert!(read(text, now).is_err(), "{text}");
        }
    }
}
