//! What a running agent does, as its supervisor sees it happen. Draws no conclusions.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::TaskId;
use super::rule::Breach;
use super::status::Timestamp;
use super::watch_rules::{MOST_CALLS, WatchSetting};

/// What is known of a run's agent: `runs/<run>/activity.json`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    pub began: Timestamp,
    /// When something was last seen of it.
    pub seen: Timestamp,
    /// Seconds that the run may last.
    pub limit: Option<u64>,
    /// Its role changes files: for others it is no sign of anything that none is changed.
    pub makes_changes: bool,
    /// Its program tells what it does, and hears messages while it runs.
    pub hears: bool,
    /// What its queue and its item said of how it is watched, when it began.
    pub watch: Vec<WatchSetting>,
    /// The item that its item is a child of.
    pub parent: Option<TaskId>,
    /// Calls of tools that have ended.
    pub steps: u32,
    /// The last of them, the oldest first.
    pub calls: VecDeque<PastCall>,
    /// The tool that runs now, if one does.
    pub tool: Option<String>,
    /// The beginning of its last words.
    pub said: String,
    /// Tokens that it has written.
    pub output: u64,
    pub usd: f64,
    /// What its provider last said of what may be used in some time.
    pub windows: Vec<WindowUse>,
    /// The rules that it has broken.
    pub breaches: Vec<Breach>,
    /// How often it got on: a call that may have changed something, and that it had not made just before, went well. Whose role changes
    /// nothing gets on by each such call.
    pub progress: u32,
    /// Calls that did not go well.
    pub failed: u32,
    /// New calls that went well since the last one that did not.
    pub streak: u32,
    /// The steps by which it last had a streak of each length, the longest first; of two as long the later.
    pub streaks: Vec<(u32, u32)>,
    /// When it last got on, and what it had written by then.
    pub progress_at: Timestamp,
    pub progress_output: u64,
}

/// How much is used of what a provider allows in some time, by all who work with the same account.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WindowUse {
    /// From 0 to 1.
    pub used: f64,
    /// When nothing of it is used any more.
    pub resets_at: Timestamp,
}

/// A call of a tool that has ended.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct PastCall {
    pub tool: String,
    /// A digest of what it was given.
    pub input: u64,
    pub ok: bool,
    pub seconds: u64,
    /// It got on by it.
    #[serde(default)]
    pub got_on: bool,
}

/// What a call may have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only looked.
    Look,
    /// It may have changed something.
    Change,
}

impl PastCall {
    /// The same was asked of the same tool.
    pub fn is_same(&self, other: &PastCall) -> bool {
        self.tool == other.tool && self.input == other.input
    }
}

impl Activity {
    /// Of a run that begins.
    pub fn begin(now: Timestamp) -> Activity {
        Activity {
            began: now,
            seen: now,
            progress_at: now,
            ..Activity::default()
        }
    }

    /// It has broken rules.
    pub fn broke(&mut self, breaches: Vec<Breach>) {
        for breach in breaches {
            if self.breaches.len() < MOST_CALLS && !self.breaches.contains(&breach) {
                self.breaches.push(breach);
            }
        }
    }

    /// A call has ended.
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

    /// So many new calls in a row have gone well since it had done `steps`, whoever looked meanwhile.
    pub fn has_done_well(&self, calls: u32, steps: u32) -> bool {
        self.streaks
            .iter()
            .any(|(length, at)| *length >= calls && *at > steps)
    }

    /// It got on by `at`, when it had written so many tokens.
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
