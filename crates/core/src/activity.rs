//! Activity of a running agent, as its supervisor sees it. Draws no conclusions.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::TaskId;
use super::rule::Breach;
use super::status::Timestamp;
use super::watch_rules::{MOST_CALLS, WatchSetting};

/// The recorded activity of a run's agent: `runs/<run>/activity.json`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    pub began: Timestamp,
    /// Time of the last sign of activity.
    pub seen: Timestamp,
    /// Time limit of the run in seconds.
    pub limit: Option<u64>,
    /// Whether its role changes files; for other roles unchanged files mean nothing.
    pub makes_changes: bool,
    /// Whether its program reports its activity and receives messages while it runs.
    pub hears: bool,
    /// Watch settings of its queue and item at the start.
    pub watch: Vec<WatchSetting>,
    /// The parent of its item.
    pub parent: Option<TaskId>,
    /// Number of ended tool calls.
    pub steps: u32,
    /// The last of them, oldest first.
    pub calls: VecDeque<PastCall>,
    /// The running tool, if any.
    pub tool: Option<String>,
    /// Beginning of its last message.
    pub last_words: String,
    /// Tokens written.
    pub output: u64,
    pub usd: f64,
    /// Last report of its provider on usage per time window.
    pub windows: Vec<WindowUse>,
    /// Rules that it has broken.
    pub breaches: Vec<Breach>,
    /// Times that it made progress: a call that may have changed something succeeded, and was not a
    /// repetition. For roles that change nothing each such call counts.
    pub progress: u32,
    /// Failed calls.
    pub failed: u32,
    /// Successful new calls since the last failure.
    pub streak: u32,
    /// Pairs of a streak's length and the steps when it last occurred, the longest first; of equal lengths
    /// only the later.
    pub streaks: Vec<(u32, u32)>,
    /// Time of the last progress, and the tokens written by then.
    pub progress_at: Timestamp,
    pub progress_output: u64,
}

/// Usage of a provider's limit in a time window, by all processes with the same account.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WindowUse {
    /// From 0 to 1.
    pub used: f64,
    /// When the window resets.
    pub resets_at: Timestamp,
}

/// An ended tool call.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct PastCall {
    pub tool: String,
    /// Hash of its input.
    pub input: u64,
    pub ok: bool,
    pub seconds: u64,
    /// Whether it made progress.
    #[serde(default)]
    pub got_on: bool,
}

/// The possible effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only read.
    Look,
    /// It may have changed something.
    Change,
}

impl PastCall {
    /// Returns true if tool and input are the same.
    pub fn is_same(&self, other: &PastCall) -> bool {
        self.tool == other.tool && self.input == other.input
    }
}

impl Activity {
    /// Returns the activity of a run that begins.
    pub fn begin(now: Timestamp) -> Activity {
        Activity {
            began: now,
            seen: now,
            progress_at: now,
            ..Activity::default()
        }
    }

    /// Records broken rules.
    pub fn broke(&mut self, breaches: Vec<Breach>) {
        for breach in breaches {
            if self.breaches.len() < MOST_CALLS && !self.breaches.contains(&breach) {
                self.breaches.push(breach);
            }
        }
    }

    /// Records an ended call.
    pub fn ended(&mut self, mut call: PastCall, effect: Effect, now: Timestamp) {
        self.steps += 1;
        let is_new = !self.calls.iter().any(|earlier| earlier.is_same(&call));
        self.failed += u32::from(!call.ok);
        self.streak = if call.ok {
            self.streak + u32::from(is_new)
        } else {
            0
        };
        self.streaks
            .retain(|(length, _)| *length > self.streak || self.streak == 0);
        if self.streak > 0 && self.streaks.len() < MOST_CALLS {
            self.streaks.push((self.streak, self.steps));
        }
        if call.ok && is_new && (effect == Effect::Change || !self.makes_changes) {
            call.got_on = true;
            self.progress += 1;
            self.got_on(now, self.output);
        }
        self.calls.push_back(call);
        if self.calls.len() > MOST_CALLS {
            self.calls.pop_front();
        }
    }

    /// Returns true if a streak of this many new successful calls followed `steps`, even if it is over by now.
    pub fn has_done_well(&self, calls: u32, steps: u32) -> bool {
        self.streaks
            .iter()
            .any(|(length, at)| *length >= calls && *at > steps)
    }

    /// Records progress at `at`, with this many tokens written.
    pub fn got_on(&mut self, at: Timestamp, output: u64) {
        (self.progress_at, self.progress_output) = (at, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_again_what_went_well_before_gets_no_further() {
        let mut activity = Activity {
            makes_changes: true,
            ..Activity::begin(Timestamp::default())
        };
        let mut after = |input, ok, effect| {
            let call = PastCall {
                tool: "Bash".to_owned(),
                input,
                ok,
                seconds: 1,
                got_on: false,
            };
            activity.ended(call, effect, Timestamp::default());
            activity.progress
        };
        assert_eq!(after(1, true, Effect::Change), 1);
        assert_eq!(after(1, true, Effect::Change), 1);
        assert_eq!(after(2, false, Effect::Change), 1);
        assert_eq!(after(3, true, Effect::Look), 1);
        assert_eq!(after(4, true, Effect::Change), 2);
        for input in 5..40 {
            after(input, true, Effect::Look);
        }
        assert_eq!(after(1, true, Effect::Change), 3);
        assert_eq!((activity.calls.len(), activity.steps), (MOST_CALLS, 41));
    }

    #[test]
    fn a_streak_counts_until_it_is_looked_at() {
        let mut activity = Activity::begin(Timestamp::default());
        let mut input = 0;
        let mut after = |ok: bool, times: u32| {
            for _ in 0..times {
                input += 1;
                let call = PastCall {
                    tool: "Read".to_owned(),
                    input,
                    ok,
                    seconds: 1,
                    got_on: false,
                };
                activity.ended(call, Effect::Look, Timestamp::default());
            }
            [
                activity.has_done_well(5, 0),
                activity.has_done_well(5, 15),
                activity.has_done_well(3, 15),
            ]
        };
        assert_eq!(after(true, 4), [false, false, false]);
        assert_eq!(after(false, 1), [false, false, false]);
        assert_eq!(after(true, 6), [true, false, false]);
        assert_eq!(after(false, 8), [true, false, false]);
        assert_eq!(after(true, 3), [true, false, true]);
        assert_eq!(after(true, 2), [true, true, true]);
    }
}
