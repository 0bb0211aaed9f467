//! Past times as people type them. Times without an offset are local, as in the log.

use chrono::{
    DateTime, FixedOffset, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone,
};

use tavern_core::task::Timestamp;
use tavern_store::config::Period;
use tavern_sys::clock;

/// Parses `2026-11-22T10:00`, `2026-11-22 10:00:30`, `2026-11-22`, `10:00` (the last one), `2h ago`, `2h`,
/// `today` or `yesterday` (their beginning).
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    read(text.trim(), &clock::now().with_timezone(&Local))
}

/// Parses `2026-11-22`, `today` or `yesterday`, and returns the day as [`clock::day_of`] does.
pub(super) fn day(text: &str) -> Result<String, String> {
    let today = clock::now().with_timezone(&Local).date_naive();
    let day = named_day(text, today).or_else(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok());
    day.map(|day| day.to_string())
        .ok_or_else(|| "not a day such as 2026-11-22, today or yesterday".to_owned())
}

fn named_day(text: &str, today: NaiveDate) -> Option<NaiveDate> {
    match text {
        "today" => Some(today),
        "yesterday" => today.pred_opt(),
        _ => None,
    }
}

/// Returns `1 hour` as `1h`.
fn in_short(text: &str) -> Option<String> {
    let (number, unit) = text.split_once(' ')?;
    let unit = ["second", "minute", "hour", "day"]
        .into_iter()
        .find(|name| unit.strip_suffix('s').unwrap_or(unit) == *name)?;
    Some(format!("{number}{}", &unit[..1]))
}

fn read<Z: TimeZone>(text: &str, local: &DateTime<Z>) -> Result<Timestamp, String> {
    let (now, zone) = (local.to_utc(), local.timezone());
    let bad = || "not a time such as 2026-11-22T10:00, 10:00, yesterday or \"2h ago\"".to_owned();
    let ago = text.strip_suffix("ago").map(str::trim);
    let short = ago.and_then(in_short);
    let ago = short.as_deref().or(ago);
    // `2h`, but no bare number.
    let ago = ago.or_else(|| Some(text).filter(|text| text.ends_with(|c: char| c.is_alphabetic())));
    if let Some(period) = ago.and_then(|ago| ago.parse::<Period>().ok()) {
        let ago = TimeDelta::from_std(period.duration()).map_err(|_| bad())?;
        return now.checked_sub_signed(ago).ok_or_else(bad);
    }
    let day = named_day(text, local.date_naive()).map(|day| day.to_string());
    let text = day.unwrap_or_else(|| text.replacen(' ', "T", 1));
    // Missing parts are zero.
    let whole = ["", ":00", "T00:00:00"].map(|rest| format!("{text}{rest}"));
    if let Some(time) = whole
        .iter()
        .find_map(|time| NaiveTime::parse_from_str(time, "%H:%M:%S").ok())
    {
        let today = local.date_naive();
        let last = [Some(today), today.pred_opt()].into_iter().flatten();
        let last = last.filter_map(|day| zone.from_local_datetime(&day.and_time(time)).earliest());
        return last
            .map(|moment| moment.to_utc())
            .find(|moment| *moment <= now)
            .ok_or_else(bad);
    }
    let naive = || {
        whole
            .iter()
            .find_map(|moment| NaiveDateTime::parse_from_str(moment, "%Y-%m-%dT%H:%M:%S").ok())
    };
    let moment = text
        .parse::<DateTime<FixedOffset>>()
        .map(|moment| moment.to_utc())
        .ok();
    let moment = moment
        .or_else(|| Some(zone.from_local_datetime(&naive()?).earliest()?.to_utc()))
        .ok_or_else(bad)?;
    if moment > now {
        Err("this time is in the future".to_owned())
    } else {
        Ok(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_type_them() {
        let now = |offset| DateTime::parse_from_rfc3339(offset).expect("a time");
        let utc = now("2026-11-22T12:00:00Z");
        let rows = [
            ("2026-11-22T10:00", "2026-11-22T10:00:00Z"),
            ("2026-11-21 10:00:30", "2026-11-21T10:00:30Z"),
            ("2026-11-22T10:00:00+02:00", "2026-11-22T08:00:00Z"),
            ("2026-11-22", "2026-11-22T00:00:00Z"),
            ("10:00", "2026-11-22T10:00:00Z"),
            ("13:00", "2026-11-21T13:00:00Z"),
            ("2h ago", "2026-11-22T10:00:00Z"),
            ("1d2h ago", "2026-11-21T10:00:00Z"),
            ("2h", "2026-11-22T10:00:00Z"),
            ("1 hour ago", "2026-11-22T11:00:00Z"),
            ("30 minutes ago", "2026-11-22T11:30:00Z"),
            ("today", "2026-11-22T00:00:00Z"),
            ("yesterday", "2026-11-21T00:00:00Z"),
        ];
        for (text, expected) in rows {
            assert_eq!(
                read(text, &utc),
                Ok(expected.parse().expect("a time")),
                "{text}"
            );
        }
        for text in [
            "",
            "ago",
            "noon",
            "25:00",
            "2026-11-23",
            "2026-13-01",
            "99999999999999d ago",
        ] {
            assert!(read(text, &utc).is_err(), "{text}");
        }
        let east = now("2026-11-23T01:00:00+05:30");
        for (text, expected) in [
            ("2026-11-22", "2026-11-21T18:30:00Z"),
            ("00:30", "2026-11-22T19:00:00Z"),
            ("01:30", "2026-11-21T20:00:00Z"),
            ("2026-11-22 10:00:00 +02:00", "2026-11-22T08:00:00Z"),
        ] {
            assert_eq!(
                read(text, &east),
                Ok(expected.parse().expect("a time")),
                "{text}"
            );
        }
    }
}
