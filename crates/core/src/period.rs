//! A duration as people write it: `30s`, `2m`, `1h30m`, `500ms`, or a number of seconds.
//!
//! Not read by `humantime`: that has no bare seconds, takes months and years, and writes `1h 30m`, so all but
//! twenty lines of this file would stay.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::number_or_text::NumberOrText;

/// A duration, to the millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(transparent)]
pub struct Period(#[schemars(with = "String")] Duration);

/// Units in milliseconds, longest first, as they are written.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Error of an invalid duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration such as 30s, 2m, 1h30m or 1d")]
pub struct BadPeriod(String);

impl Period {
    /// Returns a period of seconds.
    pub const fn seconds(seconds: u64) -> Period {
        Period(Duration::from_secs(seconds))
    }

    /// Returns a period of minutes.
    pub const fn minutes(minutes: u64) -> Period {
        Period(Duration::from_secs(minutes * 60))
    }

    /// Returns the standard library's type.
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Returns it as a limit; zero means no limit.
    pub const fn limit(self) -> Duration {
        if self.is_zero() {
            Duration::MAX
        } else {
            self.0
        }
    }

    /// Returns true if it is zero, which may mean switched off.
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl FromStr for Period {
    type Err = BadPeriod;

    fn from_str(text: &str) -> Result<Period, BadPeriod> {
        parse(text.trim()).ok_or_else(|| BadPeriod(text.to_owned()))
    }
}

/// Parses whole numbers with units, each at most once, in falling order. A bare number is seconds and may
/// have a fraction.
fn parse(text: &str) -> Option<Period> {
    if let Ok(seconds) = text.parse::<f64>() {
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        return Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|_| is_plain)
            .map(Period::from);
    }
    let mut rest = text;
    let mut milliseconds = 0_u64;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (_, factor) = units.find(|(unit, _)| *unit == &rest[..end])?;
        milliseconds = milliseconds.checked_add(number.checked_mul(*factor)?)?;
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(Period(Duration::from_millis(milliseconds)))
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        for (unit, factor) in UNITS {
            if rest >= factor {
                text.push_str(&format!("{}{unit}", rest / factor));
                rest %= factor;
            }
        }
        f.pad(if text.is_empty() { "0s" } else { &text })
    }
}

impl From<Duration> for Period {
    fn from(duration: Duration) -> Period {
        Period(Duration::from_millis(
            u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        ))
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Period, D::Error> {
        deserializer.deserialize_any(NumberOrText::new("a duration such as 30s, 2m or 1h30m"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    #[test]
    fn periods_read_as_people_write_them() {
        for (text, milliseconds, written) in [
            ("30s", 30_000, "30s"),
            ("2m", 120_000, "2m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90m", 5_400_000, "1h30m"),
            ("1d", 86_400_000, "1d"),
            ("500ms", 500, "500ms"),
            ("1m500ms", 60_500, "1m500ms"),
            ("45", 45_000, "45s"),
            ("0.25", 250, "250ms"),
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
        ] {
            let period: Period = text.parse().expect(text);
            assert_eq!(
                period.duration(),
                Duration::from_millis(milliseconds),
                "{text}"
            );
            assert_eq!(period.to_string(), written);
        }
    }

    #[test]
    fn no_time_at_all_is_no_limit() {
        assert_eq!(Period::default().limit(), Duration::MAX);
        assert_eq!(Period::seconds(2).limit(), Duration::from_secs(2));
    }

    #[test]
    fn what_is_no_period_is_refused() {
        for text in [
            "",
            "s",
            "-1",
            "-1s",
            "1x",
            "1s1m",
            "1m1m",
            "1.5h",
            "1 m",
            "inf",
            "NaN",
            "1e3",
            "99999999999999999d",
        ] {
            assert!(text.parse::<Period>().is_err(), "`{text}`");
        }
    }

    proptest! {
        #[test]
        fn written_periods_read_back(milliseconds in any::<u32>()) {
            let period = Period::from(Duration::from_millis(u64::from(milliseconds)));
            assert_eq!(period.to_string().parse(), Ok(period));
        }
    }
}
