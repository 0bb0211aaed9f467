//! Diagnoses a run from its activity, and picks the reaction. Pure: the time is a value, and the caller keeps
//! earlier diagnoses.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::activity::{Activity, PastCall};
use super::id::TaskId;
use super::period::Period;
use super::rule::{Breach, Consequence};
use super::status::{Timestamp, words};
use super::watch_rules::WatchRules;

words! {
    /// A run's problem.
    Symptom {
        /// The same call fails again and again.
        Looping "looping",
        /// The same call succeeds again and again; the agent may be waiting for something.
        Repeating "repeating",
        /// Most of its calls fail.
        Struggling "struggling",
        /// The agent writes much and changes nothing.
        Runaway "runaway",
        /// The agent does nothing.
        Stuck "stuck",
        /// The run's time is nearly up.
        Late "late",
        /// A rule was broken.
        Violation "violation",
        /// Half of a cap or more is used.
        Spending "spending",
        /// All of a cap is used.
        Spent "spent",
        /// Several children of one item have the same symptom.
        Divergence "divergence",
    }
}

words! {
    /// Urgency of a message.
    Urgency {
        Hint "hint",
        Warning "warning",
        Critical "critical",
    }
}

/// A diagnosed problem of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub symptom: Symptom,
    /// Number of the occurrence; the same number means the same occurrence, looked at again.
    pub occurrence: u64,
    /// Description for people.
    pub why: String,
    advice: Advice,
}

/// Sender name of the watcher's messages.
pub const WATCHER: &str = "the watcher";

impl Trouble {
    /// Returns the trouble of `count` children of one item with the same symptom.
    pub fn of_gang(parent: &TaskId, symptom: Symptom, count: usize) -> Trouble {
        Trouble {
            symptom: Symptom::Divergence,
            occurrence: 0,
            why: format!(
                "{count} children of {parent} have the same problem ({symptom}), and nudges did not help"
            ),
            advice: Advice::Pause,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Advice {
    /// Recorded in the log only.
    Note,
    /// People are notified, too.
    Notify,
    /// Sent once, and never as more than a hint.
    Mention,
    Nudge,
    Warn,
    Pause,
    End,
}

/// The reaction to a trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// The agent can't be reached, so people are notified.
    Noted,
    /// People are notified, beside the log.
    Notified,
    Nudged(Urgency),
    /// The run is ended and its work kept; the item starts over in a new session.
    Restarted,
    /// The run is ended and its work kept; a person is asked whether to continue.
    Paused,
    /// The run is ended as failed.
    Ended,
}

/// Earlier diagnoses and reactions of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// Nudges since the last progress.
    pub nudges: u32,
    /// Troubles reported since then.
    reported: Vec<(Symptom, u64)>,
    progress: u32,
    /// Steps at the last recovery.
    recovered: u32,
    /// Fingerprint of the worktree at the last look, since when it is unchanged, and the output by then.
    pub files: Option<u64>,
    pub files_since: Timestamp,
    pub output: u64,
    /// Steps at which the work last broke no rule.
    pub held_to_rules: Option<u32>,
    /// Time of that check.
    pub held_to_rules_at: Timestamp,
}

/// Returns true if half of the time or tokens of a stuck run is used, so that its files are worth a look.
pub fn is_in_doubt(activity: &Activity, rules: &WatchRules, now: Timestamp) -> bool {
    let idle = 2 * seconds_between(activity.progress_at, now);
    let written = 2 * (activity.output - activity.progress_output.min(activity.output));
    // A run that reports no activity counts as one long call, and is never stuck.
    let is_long =
        activity.hears && !rules.stuck.is_zero() && idle >= rules.stuck.duration().as_secs();
    activity.makes_changes && (is_long || rules.tokens > 0 && written >= rules.tokens)
}

/// Returns true if the run may have changed something since its work last broke no rule.
pub fn may_break_rules(activity: &Activity, watched: &Watched) -> bool {
    !activity.hears || watched.held_to_rules != Some(activity.steps)
}

/// Returns the troubles of a run at `now`.
pub fn judge(activity: &Activity, rules: &WatchRules, now: Timestamp) -> Vec<Trouble> {
    [
        looping(activity, rules),
        repeating(activity, rules),
        struggling(activity, rules),
        runaway(activity, rules),
    ]
    .into_iter()
    .chain([stuck(activity, rules, now), late(activity, rules, now)])
    .flatten()
    .chain(violations(activity))
    .collect()
}

/// Picks the worst new trouble and the reaction to it.
pub fn treat(
    activity: &Activity,
    troubles: Vec<Trouble>,
    rules: &WatchRules,
    watched: &mut Watched,
) -> Option<(Trouble, Reaction)> {
    // As many successes as failures are judged by count as a recovery.
    let has_recovered = activity.has_done_well(rules.failures + 2, watched.recovered);
    if watched.progress != activity.progress || has_recovered {
        (watched.progress, watched.recovered) = (activity.progress, activity.steps);
        watched.forgive();
    }
    let mut news: Vec<Trouble> = troubles
        .into_iter()
        .filter(|it| !watched.reported.contains(&(it.symptom, it.occurrence)))
        .collect();
    // One trouble per look: the worst.
    news.sort_by_key(|it| std::cmp::Reverse(it.advice));
    let worst = news.into_iter().next();
    worst.map(|trouble| {
        watched.reported.push((trouble.symptom, trouble.occurrence));
        let deed = watched.deed(activity, &trouble, rules);
        (trouble, deed)
    })
}

impl Reaction {
    /// Returns true if the reaction ends the run.
    pub fn ends(self) -> bool {
        matches!(
            self,
            Reaction::Restarted | Reaction::Paused | Reaction::Ended
        )
    }
}

impl Watched {
    /// Returns true if this breach was reported to the run before.
    pub fn knows_of(&self, breach: &Breach) -> bool {
        self.reported
            .contains(&(Symptom::Violation, occurrence(breach)))
    }

    /// Returns true if the run got two or more nudges, and this symptom was reported without progress since.
    pub fn is_told_in_vain(&self, symptom: Symptom) -> bool {
        self.nudges > 1
            && self
                .reported
                .iter()
                .any(|(reported, _)| *reported == symptom)
    }

    /// Resets the nudges after progress, so that the next one is gentle again. Troubles of calls and time are
    /// not repeated.
    pub fn forgive(&mut self) {
        self.nudges = 0;
        self.reported
            .retain(|(symptom, _)| !matches!(symptom, Symptom::Stuck | Symptom::Runaway));
    }

    fn deed(&mut self, activity: &Activity, trouble: &Trouble, rules: &WatchRules) -> Reaction {
        let is_enough = rules.nudges > 0 && self.nudges >= rules.nudges;
        match trouble.advice {
            Advice::Note => Reaction::Noted,
            Advice::Notify => Reaction::Notified,
            Advice::End => Reaction::Ended,
            Advice::Pause if trouble.symptom == Symptom::Violation => Reaction::Paused,
            _ if !activity.hears => Reaction::Noted,
            Advice::Warn => Reaction::Nudged(Urgency::Warning),
            Advice::Mention => Reaction::Nudged(Urgency::Hint),
            Advice::Nudge if !is_enough => {
                self.nudges += 1;
                Reaction::Nudged(match self.nudges {
                    1 => Urgency::Hint,
                    2 | 3 => Urgency::Warning,
                    _ => Urgency::Critical,
                })
            }
            Advice::Nudge | Advice::Pause => Reaction::Paused,
        }
    }
}

fn looping(activity: &Activity, rules: &WatchRules) -> Option<Trouble> {
    let count = rules.failures as usize;
    let last = last_of(activity, count)?;
    let (first, tool) = (last[0], &last[0].tool);
    let is_so = |call: &PastCall| !call.ok && call.is_same(first);
    let times = activity
        .calls
        .iter()
        .rev()
        .take_while(|call| is_so(call))
        .count();
    (times >= count).then(|| Trouble {
        symptom: Symptom::Looping,
        occurrence: u64::from(activity.steps) / count as u64,
        why: format!("the same call of {tool} failed {times} times in a row"),
        advice: Advice::Nudge,
    })
}

fn struggling(activity: &Activity, rules: &WatchRules) -> Option<Trouble> {
    let count = rules.failures as usize;
    let last = last_of(activity, count + 2)?;
    let failed = last.iter().filter(|call| !call.ok).count();
    let is_so = count > 0 && failed >= count && looping(activity, rules).is_none();
    is_so.then(|| Trouble {
        symptom: Symptom::Struggling,
        occurrence: u64::from(activity.failed) / count as u64,
        why: format!("{failed} of its last {} calls failed", last.len()),
        advice: Advice::Nudge,
    })
}

fn repeating(activity: &Activity, rules: &WatchRules) -> Option<Trouble> {
    let last = activity.calls.back()?;
    let count = since_progress(activity)
        .filter(|call| call.is_same(last) && call.ok)
        .count();
    let is_so = rules.repeats > 0 && last.ok && count >= rules.repeats as usize;
    is_so.then(|| Trouble {
        symptom: Symptom::Repeating,
        occurrence: last.input,
        why: format!("it made the same call of {} {count} times", last.tool),
        advice: Advice::Mention,
    })
}

fn runaway(activity: &Activity, rules: &WatchRules) -> Option<Trouble> {
    let written = activity.output - activity.progress_output.min(activity.output);
    let is_so = activity.makes_changes && rules.tokens > 0 && written >= rules.tokens;
    is_so.then(|| Trouble {
        symptom: Symptom::Runaway,
        occurrence: 0,
        why: format!("it wrote {written} tokens and changed nothing"),
        advice: Advice::Pause,
    })
}

fn stuck(activity: &Activity, rules: &WatchRules, now: Timestamp) -> Option<Trouble> {
    let idle = seconds_between(activity.progress_at.max(activity.seen), now);
    let most = rules.stuck.duration().as_secs();
    let is_so = most > 0 && idle >= most && activity.tool.is_none();
    is_so.then(|| Trouble {
        symptom: Symptom::Stuck,
        occurrence: idle / most,
        why: format!("it did nothing for {}", Period::seconds(idle)),
        advice: Advice::Nudge,
    })
}

/// Reports a run that has used most of its time.
fn late(activity: &Activity, rules: &WatchRules, now: Timestamp) -> Option<Trouble> {
    let (used, limit) = (
        seconds_between(activity.began, now),
        activity.limit.filter(|limit| *limit > 0)?,
    );
    (rules.late > 0 && used * 100 >= limit * u64::from(rules.late)).then(|| Trouble {
        symptom: Symptom::Late,
        occurrence: 0,
        why: format!(
            "{} of its {} are used",
            Period::seconds(used.min(limit)),
            Period::seconds(limit)
        ),
        advice: Advice::Mention,
    })
}

/// Reports each breach once in a run.
fn violations(activity: &Activity) -> impl Iterator<Item = Trouble> {
    activity.breaches.iter().map(|breach| Trouble {
        symptom: Symptom::Violation,
        occurrence: occurrence(breach),
        why: breach.words(),
        advice: match breach.consequence {
            Consequence::Log => Advice::Note,
            Consequence::Notify => Advice::Notify,
            Consequence::Warn => Advice::Warn,
            Consequence::Pause => Advice::Pause,
            Consequence::Reap => Advice::End,
        },
    })
}

fn occurrence(breach: &Breach) -> u64 {
    xxh3_64(breach.words().as_bytes())
}

/// Returns the calls since the last progress, that call included, latest first.
fn since_progress(activity: &Activity) -> impl Iterator<Item = &PastCall> {
    let calls = &activity.calls;
    let first = calls.iter().rposition(|call| call.got_on).unwrap_or(0);
    calls.iter().skip(first).rev()
}

fn last_of(activity: &Activity, count: usize) -> Option<Vec<&PastCall>> {
    let calls = &activity.calls;
    (count > 0 && calls.len() >= count).then(|| calls.iter().skip(calls.len() - count).collect())
}

fn seconds_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from((to - from).num_seconds()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::activity::Effect;

    /// A run of at most ten minutes with a call each second, and the findings after each call.
    struct Run {
        activity: Activity,
        watched: Watched,
        now: Timestamp,
        found: Vec<(Symptom, Reaction)>,
    }

    impl Run {
        fn begin() -> Run {
            let activity = Activity {
                makes_changes: true,
                hears: true,
                limit: Some(600),
                ..Activity::default()
            };
            Run {
                activity,
                watched: Watched::default(),
                now: Timestamp::default(),
                found: Vec::new(),
            }
        }

        fn call(&mut self, input: u64, ok: bool, effect: Effect) {
            self.now += TimeDelta::seconds(1);
            self.activity.seen = self.now;
            let call = PastCall {
                tool: "Bash".to_owned(),
                input,
                ok,
                seconds: 1,
                got_on: false,
            };
            self.activity.ended(call, effect, self.now);
            self.look();
        }

        fn look(&mut self) {
            let rules = WatchRules::default();
            let troubles = judge(&self.activity, &rules, self.now);
            let found = treat(&self.activity, troubles, &rules, &mut self.watched);
            self.found
                .extend(found.map(|(trouble, deed)| (trouble.symptom, deed)));
        }

        fn symptoms(&self) -> Vec<Symptom> {
            self.found.iter().map(|(symptom, _)| *symptom).collect()
        }
    }

    #[test]
    fn tests_that_pass_again_after_each_edit_are_no_trouble() {
        let mut run = Run::begin();
        for edit in 0..100 {
            run.call(100 + edit, true, Effect::Change);
            run.call(1, true, Effect::Change);
            run.call(2, true, Effect::Look);
        }
        assert_eq!(run.symptoms(), []);
    }

    #[test]
    fn who_looks_around_and_recovers_from_each_failure_is_never_paused() {
        let mut run = Run::begin();
        for round in 0..20 {
            (0..3).for_each(|call| run.call(1000 * round + call, false, Effect::Look));
            (10..22).for_each(|call| run.call(1000 * round + call, true, Effect::Look));
        }
        assert!(
            run.found
                .iter()
                .all(|(_, deed)| *deed == Reaction::Nudged(Urgency::Hint)),
            "{:?}",
            run.found
        );
        // Without recovery the run is paused.
        let mut run = Run::begin();
        (0..40).for_each(|call| run.call(call, false, Effect::Look));
        assert_eq!(
            run.found.last().map(|(_, deed)| *deed),
            Some(Reaction::Paused)
        );
    }

    #[test]
    fn who_stops_after_much_that_went_well_is_told_every_five_minutes() {
        let mut run = Run::begin();
        run.activity.limit = None;
        (0..10).for_each(|call| run.call(call, true, Effect::Change));
        for _ in 0..32 {
            run.now += TimeDelta::seconds(30);
            run.look();
        }
        let nudged = [Urgency::Hint, Urgency::Warning, Urgency::Warning]
            .map(|urgency| (Symptom::Stuck, Reaction::Nudged(urgency)));
        assert_eq!(run.found, nudged);
    }

    #[test]
    fn failures_are_told_once_and_not_again_after_a_change() {
        let mut run = Run::begin();
        (0..3).for_each(|call| run.call(call, false, Effect::Look));
        (10..20).for_each(|call| run.call(call, true, Effect::Change));
        assert_eq!(run.symptoms(), [Symptom::Struggling]);
    }

    #[test]
    fn a_time_that_is_nearly_up_is_told_once_whatever_is_done() {
        let mut run = Run::begin();
        (0..600).for_each(|call| run.call(call, true, Effect::Change));
        assert_eq!(run.symptoms(), [Symptom::Late]);
    }
}
