//! The only place that reads the time. Records are in UTC and whole seconds; durations use a clock that can't be set.
//!
//! Knows nothing of leases or back-off: rules take the time as a value. In debug builds `TAVERN_TEST_NOW` replaces the
//! time of records: a moment (`2026-11-22T10:00:00Z`) stands still, a shift (`+90`, `-3600`, in seconds) runs on.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the file that reads the clocks"
)]

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Local, NaiveTime, TimeDelta, Utc};

use tavern_core::task::Timestamp;

/// Returns the wall clock in UTC, truncated to the second, so that it survives writing and reading. It may jump;
/// measure with [`instant`].
pub fn now() -> Timestamp {
    let real = whole_seconds(SystemTime::now());
    #[cfg(debug_assertions)]
    if let Some(moment) = MOMENT.get() {
        return moment;
    }
    #[cfg(debug_assertions)]
    if let Ok(text) = std::env::var("TAVERN_TEST_NOW") {
        return replaced(&text, real);
    }
    real
}

#[cfg(debug_assertions)]
thread_local! {
    static MOMENT: Cell<Option<Timestamp>> = const { Cell::new(None) };
}

/// Runs `work` at a fixed moment, for tests of libraries; tests of programs set `TAVERN_TEST_NOW`.
#[cfg(debug_assertions)]
pub fn at_moment<R>(moment: Timestamp, work: impl FnOnce() -> R) -> R {
    let before = MOMENT.replace(Some(moment));
    let done = work();
    MOMENT.set(before);
    done
}

/// Formats a moment for people: in their time zone, which is named, with the date unless it is today.
pub fn shown(at: Timestamp) -> String {
    let (local, today) = (
        at.with_timezone(&Local),
        now().with_timezone(&Local).date_naive(),
    );
    if local.date_naive() == today {
        local.format("%H:%M:%S %:z").to_string()
    } else {
        dated(at)
    }
}

/// Formats a moment with the date.
pub fn dated(at: Timestamp) -> String {
    at.with_timezone(&Local)
        .format("%Y-%m-%d %H:%M:%S %:z")
        .to_string()
}

/// Formats a moment for a column: without the year, the seconds and the zone.
pub fn brief(at: Timestamp) -> String {
    at.with_timezone(&Local).format("%m-%d %H:%M").to_string()
}

/// Returns the local date of a moment.
pub fn day_of(at: Timestamp) -> String {
    at.with_timezone(&Local).format("%Y-%m-%d").to_string()
}

/// Returns the start of the local day of `now`; 24 hours before `now` if the clock skipped midnight.
pub fn day_began(now: Timestamp) -> Timestamp {
    let midnight = now
        .with_timezone(&Local)
        .with_time(NaiveTime::MIN)
        .earliest();
    midnight.map_or(now - TimeDelta::days(1), |midnight| {
        midnight.with_timezone(&Utc)
    })
}

/// Returns the monotonic clock, for durations and timeouts.
pub fn instant() -> Instant {
    Instant::now()
}

/// Returns how long ago `time` (such as a file's) was; `None` if it is in the future.
pub fn since(time: SystemTime) -> Option<Duration> {
    SystemTime::now().duration_since(time).ok()
}

/// Returns `time` (such as a file's) as a timestamp in whole seconds.
pub fn whole_seconds(time: SystemTime) -> Timestamp {
    let seconds = DateTime::<Utc>::from(time).timestamp();
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

/// A time limit on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Returns the deadline `duration` from now; never, if that is too long for the clock.
    pub fn after(duration: Duration) -> Deadline {
        Deadline(instant().checked_add(duration))
    }

    /// The deadline that never passes.
    pub const NEVER: Deadline = Deadline(None);

    /// Returns the time left: zero if it has passed, the maximum if it never does.
    pub fn left(self) -> Duration {
        self.0.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(instant())
        })
    }

    /// Returns true if the deadline has passed.
    pub fn has_passed(self) -> bool {
        self.left().is_zero()
    }
}

#[cfg(debug_assertions)]
fn replaced(text: &str, real: Timestamp) -> Timestamp {
    let shift = text
        .starts_with(['+', '-'])
        .then(|| text.parse::<i64>().ok())
        .flatten();
    let moment = match shift {
        Some(seconds) => {
            TimeDelta::try_seconds(seconds).and_then(|delta| real.checked_add_signed(delta))
        }
        None => DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|moment| moment.to_utc()),
    };
    moment.expect("TAVERN_TEST_NOW is a moment such as 2026-11-22T10:00:00Z or a shift such as +90")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_in_whole_seconds() {
        assert_eq!(now().timestamp_subsec_nanos(), 0);
        let before_the_epoch = SystemTime::UNIX_EPOCH - Duration::from_millis(1500);
        assert_eq!(whole_seconds(before_the_epoch).timestamp(), -2);
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_test_sets_or_shifts_the_time() {
        let real = DateTime::from_timestamp(1_000_000, 0).expect("in range");
        assert_eq!(
            replaced("2026-11-22T10:00:00Z", real).to_rfc3339(),
            "2026-11-22T10:00:00+00:00"
        );
        assert_eq!(replaced("+90", real).timestamp(), 1_000_090);
        assert_eq!(replaced("-1000000", real).timestamp(), 0);
    }

    #[test]
    fn deadlines_end() {
        assert!(Deadline::after(Duration::ZERO).has_passed());
        assert!(!Deadline::after(Duration::from_secs(3600)).has_passed());
        assert!(!Deadline::after(Duration::MAX).has_passed());
        assert_eq!(Deadline::NEVER.left(), Duration::MAX);
    }
}
