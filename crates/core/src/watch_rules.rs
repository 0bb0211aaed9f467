//! Thresholds for diagnosing runs: those of the board, and overrides of a role, a queue or an item.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::period::Period;

/// Number of past calls that are considered.
pub const MOST_CALLS: usize = 20;

/// Thresholds for diagnosing runs. Zero turns a rule off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchRules {
    /// Interval of checks; 0: only by `tavern-watch`, every 30 s.
    pub every: Period,
    /// Failures of the same call in a row, or of any calls among the last `failures` + 2.
    pub failures: u32,
    /// Repetitions of the same call among the last 20.
    pub repeats: u32,
    /// Tokens written since the last progress.
    pub tokens: u64,
    /// Time without progress while no tool runs.
    pub stuck: Period,
    /// Used share of its time, in percent.
    pub late: u32,
    /// Nudges without progress before it is paused, with a question to a person.
    pub nudges: u32,
    /// Number of children of one item in the same trouble after two nudges.
    pub gang: u32,
}

impl Default for WatchRules {
    fn default() -> WatchRules {
        WatchRules {
            every: Period::seconds(30),
            failures: 3,
            repeats: 5,
            tokens: 50_000,
            stuck: Period::minutes(5),
            late: 80,
            nudges: 5,
            gang: 3,
        }
    }
}

/// Override by a role, a queue or an item.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum WatchSetting {
    /// False: no checks. True: the board's thresholds.
    Flag(bool),
    Set(Thresholds),
}

/// Values of [`WatchRules`]; `None`: as set further out.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<Period>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stuck: Option<Period>,
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nudges: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gang: Option<u32>,
}

impl WatchRules {
    /// Returns thresholds with all checks off.
    fn off() -> WatchRules {
        let (every, stuck) = (Period::default(), Period::default());
        WatchRules {
            every,
            failures: 0,
            repeats: 0,
            tokens: 0,
            stuck,
            late: 0,
            nudges: 0,
            gang: 0,
        }
    }

    /// Returns the board's thresholds with the overrides of a run, the nearest last.
    pub fn with<'s>(&self, said: impl IntoIterator<Item = &'s WatchSetting>) -> WatchRules {
        said.into_iter()
            .fold(self.clone(), |rules, setting| match setting {
                WatchSetting::Flag(true) => self.clone(),
                WatchSetting::Flag(false) => WatchRules::off(),
                WatchSetting::Set(set) => set.over(&rules),
            })
    }
}

impl Thresholds {
    fn over(&self, rules: &WatchRules) -> WatchRules {
        WatchRules {
            every: self.every.unwrap_or(rules.every),
            failures: self.failures.unwrap_or(rules.failures),
            repeats: self.repeats.unwrap_or(rules.repeats),
            tokens: self.tokens.unwrap_or(rules.tokens),
            stuck: self.stuck.unwrap_or(rules.stuck),
            late: self.late.unwrap_or(rules.late),
            nudges: self.nudges.unwrap_or(rules.nudges),
            gang: self.gang.unwrap_or(rules.gang),
        }
    }

    /// Parses typed keys and values; `None` if one is invalid.
    pub fn read<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Option<Thresholds> {
        let mut set = Thresholds::default();
        for (name, value) in pairs {
            match name {
                "every" => set.every = Some(value.parse().ok()?),
                "failures" => set.failures = Some(value.parse().ok()?),
                "repeats" => set.repeats = Some(value.parse().ok()?),
                "tokens" => set.tokens = Some(value.parse().ok()?),
                "stuck" => set.stuck = Some(value.parse().ok()?),
                "late" => set.late = Some(value.parse().ok()?),
                "nudges" => set.nudges = Some(value.parse().ok()?),
                "gang" => set.gang = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        set.fault().is_none().then_some(set)
    }

    /// Returns a threshold that can never be reached, in words.
    fn fault(&self) -> Option<String> {
        let most = [
            ("failures", self.failures, MOST_CALLS as u32 - 2),
            ("repeats", self.repeats, MOST_CALLS as u32),
            ("late", self.late, 100),
        ];
        let above = most
            .into_iter()
            .find(|(_, number, most)| number.is_some_and(|number| number > *most));
        above.map(|(name, _, most)| format!("`{name}` is {most} at most; 0 turns it off"))
    }
}

impl<'de> Deserialize<'de> for WatchRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WatchRules, D::Error> {
        Ok(WatchRules::default().with([&WatchSetting::deserialize(deserializer)?]))
    }
}

impl<'de> Deserialize<'de> for WatchSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WatchSetting, D::Error> {
        struct FlagOrMap;

        impl<'de> Visitor<'de> for FlagOrMap {
            type Value = WatchSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or numbers such as {stuck: 20m}")
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<WatchSetting, E> {
                Ok(WatchSetting::Flag(flag))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WatchSetting, A::Error> {
                let set = Thresholds::deserialize(MapAccessDeserializer::new(map))?;
                set.fault().map_or(Ok(WatchSetting::Set(set)), |fault| {
                    Err(A::Error::custom(fault))
                })
            }
        }

        deserializer.deserialize_any(FlagOrMap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    #[test]
    fn the_nearest_word_counts_key_by_key() {
        let setting = |text: &str| yaml::read::<WatchSetting>(text).expect(text);
        let rules = |said: &[&str]| {
            let said: Vec<WatchSetting> = said.iter().map(|text| setting(text)).collect();
            let board: WatchRules = yaml::read("{failures: 4}").expect("they are rules");
            let rules = board.with(&said);
            (
                rules.failures,
                rules.repeats,
                rules.stuck.duration().as_secs(),
            )
        };
        assert_eq!(rules(&[]), (4, 5, 300));
        assert_eq!(rules(&["{stuck: 20m}", "{repeats: 9}"]), (4, 9, 1200));
        assert_eq!(rules(&["{stuck: 20m}", "{stuck: 0}"]), (4, 5, 0));
        assert_eq!(rules(&["false", "{failures: 2}"]), (2, 0, 0));
        assert_eq!(rules(&["false", "true"]), (4, 5, 300));
        assert_eq!(
            yaml::read::<WatchRules>("false").ok(),
            Some(WatchRules::off())
        );
        for (text, says) in [
            ("{stuk: 1}", "unknown field `stuk`"),
            ("soon", "true, false, or numbers such as"),
        ] {
            let error = yaml::read::<WatchSetting>(text)
                .expect_err(text)
                .to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_is_typed_of_an_item_reads_as_in_the_configuration() {
        let typed = [
            ("failures", "4"),
            ("stuck", "20m"),
            ("tokens", "0"),
            ("late", "90"),
            ("nudges", "2"),
        ];
        let more = [("every", "5s"), ("repeats", "7"), ("gang", "2")];
        let all = typed.iter().chain(&more).copied();
        let yaml: String = all
            .clone()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        assert_eq!(Thresholds::read(all), yaml::read(&yaml).ok());
        assert_eq!(Thresholds::read([("stuck", "soon")]), None);
        assert_eq!(Thresholds::read([("stuk", "1")]), None);
    }
}
