//! Budgets of many runs together: of an item, a queue, a day, a drain, a board.

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::TaskId;
use super::status::{Timestamp, words};
use super::task::Budget;

/// A cap of runs together; unset means unlimited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cap {
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Tokens that did not come from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Minutes of all runs; parallel runs count separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
}

/// The budgets of a board.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    /// For each run, where its item and its role set none.
    pub run: Budget,
    /// For each item, over all its attempts and reviews.
    pub item: Cap,
    /// For each queue.
    pub queue: Cap,
    /// For each day, from midnight; a run counts on the day on which it began.
    pub day: Cap,
    /// For all runs ever.
    pub board: Cap,
    /// From the command line.
    #[serde(skip)]
    pub own: Option<OwnCap>,
}

/// The cap of a drain or an agent, given on its command line.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnCap {
    /// Runs that began earlier don't count.
    pub since: Timestamp,
    /// Counts this agent's runs; `None`: all runs of the board, as for a drain.
    pub agent: Option<String>,
    pub cap: Cap,
}

words! {
    /// The runs that a cap covers.
    CapScope {
        Item "item",
        Queue "queue",
        Day "day",
        Drain "drain",
        Agent "agent",
        Board "board",
    }
}

words! {
    /// The quantity that is capped.
    Measure {
        Usd "usd",
        Tokens "tokens",
        Minutes "minutes",
    }
}

/// Usage of one run so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// `<task>@<token>`.
    pub run: String,
    pub task: TaskId,
    pub queue: String,
    #[serde(default)]
    pub agent: String,
    pub started: Timestamp,
    pub usd: f64,
    pub tokens: u64,
    pub seconds: i64,
}

/// Usage of one cap.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CapUse {
    pub scope: CapScope,
    pub measure: Measure,
    pub used: f64,
    pub most: f64,
}

/// A share of a cap that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapShare {
    pub percent: u32,
    pub scope: CapScope,
    pub measure: Measure,
    pub most: f64,
}

/// Usage of all runs, and their caps.
#[derive(Clone, Debug)]
pub struct Spending {
    caps: Caps,
    spent: Vec<Spent>,
    /// Start of the day.
    day: Timestamp,
    sums: Sums,
}

/// One amount for each measure, in their order.
type Amounts = [f64; Measure::ALL.len()];

/// Sums by item and queue, so that lookups need not scan all runs.
#[derive(Clone, Debug, Default)]
struct Sums {
    items: HashMap<TaskId, Amounts>,
    queues: HashMap<String, Amounts>,
    day: Amounts,
    own: Amounts,
    board: Amounts,
}

impl OwnCap {
    fn counts(&self, spent: &Spent) -> bool {
        spent.started >= self.since
            && self
                .agent
                .as_ref()
                .is_none_or(|agent| spent.agent == *agent)
    }
}

impl Caps {
    /// Returns true if any cap is set.
    pub fn is_set(&self) -> bool {
        *self != Caps::default()
    }

    /// Returns the caps of config.yaml, each with its name there.
    pub fn named(&self) -> [(&'static str, &Cap); 4] {
        [
            ("item", &self.item),
            ("queue", &self.queue),
            ("day", &self.day),
            ("board", &self.board),
        ]
    }

    /// Returns the first cap that is no valid amount: its scope and its measure.
    pub fn fault(&self) -> Option<(&'static str, Measure)> {
        let odd = |cap: &Cap| {
            Measure::ALL
                .into_iter()
                .find(|measure| !cap.most(*measure).is_none_or(is_amount))
        };
        let run = Cap {
            usd: self.run.usd,
            minutes: self.run.minutes,
            tokens: None,
        };
        let named = self.named().into_iter().chain([("run", &run)]);
        named
            .into_iter()
            .find_map(|(name, cap)| Some((name, odd(cap)?)))
    }

    /// Returns true if any cap has this measure.
    pub fn has(&self, measure: Measure) -> bool {
        let own = self.own.as_ref().map(|own| &own.cap);
        self.named()
            .into_iter()
            .map(|(_, cap)| cap)
            .chain(own)
            .any(|cap| cap.most(measure).is_some())
    }
}

/// Returns true if the amount is finite and not negative.
pub fn is_amount(most: f64) -> bool {
    most.is_finite() && most >= 0.0
}

impl Cap {
    fn most(&self, measure: Measure) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "only its share is needed")]
        let tokens = self.tokens.map(|tokens| tokens as f64);
        match measure {
            Measure::Usd => self.usd,
            Measure::Tokens => tokens,
            Measure::Minutes => self.minutes,
        }
    }
}

impl Spent {
    /// Returns true if both are about one program. A restart under one claim has the same run, but another start.
    pub fn is_of_same(&self, other: &Spent) -> bool {
        self.run == other.run && self.started == other.started
    }

    #[expect(clippy::cast_precision_loss, reason = "only its share is needed")]
    fn used(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Usd => self.usd,
            Measure::Tokens => self.tokens as f64,
            Measure::Minutes => self.seconds as f64 / 60.0,
        }
    }
}

impl CapUse {
    /// Returns the share for `percent` of this cap.
    pub fn passed(&self, percent: u32) -> CapShare {
        CapShare {
            percent,
            scope: self.scope,
            measure: self.measure,
            most: self.most,
        }
    }

    /// Returns the used share, from 0 to 1 and beyond.
    pub fn share(&self) -> f64 {
        if self.most > 0.0 {
            self.used / self.most
        } else {
            1.0
        }
    }

    /// Returns true if the cap is used up, with a tolerance for rounding of sums.
    pub fn is_reached(&self) -> bool {
        self.share() >= 1.0 - 1e-9
    }

    /// Returns the rest of the cap, at least 0.
    pub fn left(&self) -> f64 {
        (self.most - self.used).max(0.0)
    }
}

/// `$4.20 of $5.00 of the day's cap are used`.
impl fmt::Display for CapUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CapUse {
            scope,
            measure,
            used,
            most,
        } = self;
        match measure {
            Measure::Usd => write!(f, "${used:.2} of ${most:.2}"),
            Measure::Tokens => write!(f, "{used:.0} of {most:.0} tokens"),
            Measure::Minutes if *most < 10.0 => write!(f, "{used:.1} of {most:.1} minutes"),
            Measure::Minutes => write!(f, "{used:.0} of {most:.0} minutes"),
        }?;
        write!(f, " of the {scope}'s budget are used")
    }
}

impl Spending {
    /// Returns the sums of `spent`, which has each run once; the day began at `day`.
    pub fn of(caps: Caps, spent: Vec<Spent>, day: Timestamp) -> Spending {
        let own = caps.own.as_ref();
        let is_own = |spent: &Spent| own.is_some_and(|own| own.counts(spent));
        let mut sums = Sums::default();
        for one in &spent {
            add(sums.items.entry(one.task.clone()).or_default(), one);
            add(sums.queues.entry(one.queue.clone()).or_default(), one);
            add(&mut sums.board, one);
            if one.started >= day {
                add(&mut sums.day, one);
            }
            if is_own(one) {
                add(&mut sums.own, one);
            }
        }
        Spending {
            caps,
            spent,
            day,
            sums,
        }
    }

    /// Returns the spending with this usage of the run.
    pub fn with(&self, spent: &Spent) -> Spending {
        let others = self
            .spent
            .iter()
            .filter(|other| !other.is_of_same(spent))
            .cloned();
        Spending::of(
            self.caps.clone(),
            others.chain([spent.clone()]).collect(),
            self.day,
        )
    }

    /// Returns the usage of all caps that apply to `task` in `queue`.
    pub fn uses(&self, task: &TaskId, queue: &str) -> Vec<CapUse> {
        let (item, queue) = (self.sums.items.get(task), self.sums.queues.get(queue));
        let of_item = uses(CapScope::Item, &self.caps.item, item.unwrap_or(&NOTHING));
        let of_queue = uses(CapScope::Queue, &self.caps.queue, queue.unwrap_or(&NOTHING));
        [of_item, of_queue, self.uses_of_all()].concat()
    }

    /// Returns the usage of the caps that apply to every item.
    pub fn uses_of_all(&self) -> Vec<CapUse> {
        let of_day = uses(CapScope::Day, &self.caps.day, &self.sums.day);
        [
            of_day,
            self.uses_of_own(),
            uses(CapScope::Board, &self.caps.board, &self.sums.board),
        ]
        .concat()
    }

    /// Returns the usage of the command line's cap.
    pub fn uses_of_own(&self) -> Vec<CapUse> {
        let Some(own) = &self.caps.own else {
            return Vec::new();
        };
        let scope = if own.agent.is_some() {
            CapScope::Agent
        } else {
            CapScope::Drain
        };
        uses(scope, &own.cap, &self.sums.own)
    }

    /// Returns the reached cap for `task` in `queue`; of several the widest, which holds up most items.
    pub fn reached(&self, task: &TaskId, queue: &str) -> Option<CapUse> {
        self.uses(task, queue).into_iter().rfind(CapUse::is_reached)
    }

    /// Returns the command line's cap, if it is reached.
    pub fn reached_own(&self) -> Option<CapUse> {
        self.uses_of_own().into_iter().find(CapUse::is_reached)
    }

    /// Returns the usage of today's runs, and of all runs.
    pub fn sums(&self, measure: Measure) -> (f64, f64) {
        (
            self.sums.day[measure as usize],
            self.sums.board[measure as usize],
        )
    }

    /// Returns the items that had runs.
    pub fn items(&self) -> impl Iterator<Item = &TaskId> {
        self.sums.items.keys()
    }
}

const NOTHING: Amounts = [0.0; Measure::ALL.len()];

fn add(amounts: &mut Amounts, spent: &Spent) {
    amounts
        .iter_mut()
        .zip(Measure::ALL)
        .for_each(|(amount, measure)| *amount += spent.used(measure));
}

fn uses(scope: CapScope, cap: &Cap, amounts: &Amounts) -> Vec<CapUse> {
    let of = |(measure, used): (Measure, &f64)| {
        Some(CapUse {
            scope,
            measure,
            used: *used,
            most: cap.most(measure)?,
        })
    };
    Measure::ALL
        .into_iter()
        .zip(amounts)
        .filter_map(of)
        .collect()
}

/// Shares of a cap that are reported, once each, in percent.
const TOLD: [u32; 4] = [100, 90, 75, 50];

/// Returns the highest reported share that was passed between `before` and `now`.
pub fn passed(before: &CapUse, now: &CapUse) -> Option<u32> {
    let is_passed = |percent: &u32| {
        let share = f64::from(*percent) / 100.0;
        before.share() < share && now.share() >= share
    };
    TOLD.into_iter().find(is_passed)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn spent(run: &str, queue: &str, hours: i64, usd: f64) -> Spent {
        let task = run
            .split('@')
            .next()
            .expect("a task")
            .parse()
            .expect("an ID");
        let started = Timestamp::default() + TimeDelta::hours(hours);
        let (run, queue, agent) = (run.to_owned(), queue.to_owned(), "Sam".to_owned());
        Spent {
            run,
            task,
            queue,
            agent,
            started,
            usd,
            tokens: 1000,
            seconds: 60,
        }
    }

    fn usd(usd: f64) -> Cap {
        Cap {
            usd: Some(usd),
            ..Cap::default()
        }
    }

    #[test]
    fn each_cap_counts_its_own_runs() {
        let all = vec![
            spent("T-1@1", "a", 1, 1.0),
            spent("T-1@2", "a", 30, 2.0),
            spent("T-2@3", "b", 40, 4.0),
        ];
        let since = Timestamp::default() + TimeDelta::hours(35);
        let own = Some(OwnCap {
            since,
            agent: None,
            cap: usd(4.5),
        });
        let caps = Caps {
            run: Budget::default(),
            item: usd(4.0),
            queue: usd(4.0),
            day: usd(8.0),
            board: usd(9.0),
            own,
        };
        let day = Timestamp::default() + TimeDelta::hours(24);
        let spending = Spending::of(caps, all, day);
        let used = |task: &str, queue: &str| -> Vec<f64> {
            spending
                .uses(&task.parse().expect("an ID"), queue)
                .iter()
                .map(|of| of.used)
                .collect()
        };
        assert_eq!(used("T-1", "a"), [3.0, 3.0, 6.0, 4.0, 7.0]);
        assert_eq!(used("T-2", "b"), [4.0, 4.0, 6.0, 4.0, 7.0]);
        let reached = |task: &str, queue: &str| {
            spending
                .reached(&task.parse().expect("an ID"), queue)
                .map(|of| (of.scope, of.to_string()))
        };
        assert_eq!(reached("T-1", "a"), None);
        let (scope, words) = reached("T-2", "b").expect("it is");
        assert_eq!(
            (scope, words.as_str()),
            (
                CapScope::Queue,
                "$4.00 of $4.00 of the queue's budget are used"
            )
        );
        assert_eq!(
            (spending.sums(Measure::Usd), spending.reached_own()),
            ((6.0, 7.0), None)
        );
    }

    #[test]
    fn an_agent_has_its_own_runs_counted() {
        let of = |agent: &str| {
            let own = Some(OwnCap {
                since: Timestamp::default(),
                agent: Some(agent.to_owned()),
                cap: usd(1.0),
            });
            let spent = vec![spent("T-1@1", "a", 1, 1.0)];
            let reached = Spending::of(
                Caps {
                    own,
                    ..Caps::default()
                },
                spent,
                Timestamp::default(),
            )
            .reached_own();
            reached.map(|of| of.to_string())
        };
        assert_eq!(
            of("Sam").as_deref(),
            Some("$1.00 of $1.00 of the agent's budget are used")
        );
        assert_eq!(of("Pippin"), None);
    }

    #[test]
    fn sums_of_fractions_reach_their_cap_and_what_is_no_amount_is_found() {
        let of = |most: f64| CapUse {
            scope: CapScope::Item,
            measure: Measure::Usd,
            used: 0.1 + 0.2 - 4e-17,
            most,
        };
        assert_eq!([of(0.3).is_reached(), of(0.31).is_reached()], [true, false]);
        for (cap, is_wrong) in [
            (0.0, false),
            (1.5, false),
            (-0.1, true),
            (f64::NAN, true),
            (f64::INFINITY, true),
        ] {
            let fault = Caps {
                day: usd(cap),
                ..Caps::default()
            }
            .fault();
            assert_eq!(fault, is_wrong.then_some(("day", Measure::Usd)), "{cap}");
        }
    }

    #[test]
    fn tokens_and_minutes_are_capped_too_and_nothing_is_a_cap() {
        let cap = Cap {
            usd: None,
            tokens: Some(2000),
            minutes: Some(1.0),
        };
        let all = || vec![spent("T-1@1", "a", 1, 1.0)];
        let of = |cap: &Cap| {
            let caps = Caps {
                board: cap.clone(),
                ..Caps::default()
            };
            let spending = Spending::of(caps, all(), Timestamp::default());
            spending
                .reached(&"T-9".parse().expect("an ID"), "x")
                .map(|of| of.to_string())
        };
        assert_eq!(
            of(&cap).as_deref(),
            Some("1.0 of 1.0 minutes of the board's budget are used")
        );
        assert_eq!(
            of(&Cap {
                minutes: None,
                ..cap.clone()
            }),
            None
        );
        assert_eq!(
            of(&usd(0.0)).as_deref(),
            Some("$1.00 of $0.00 of the board's budget are used")
        );
    }

    #[test]
    fn a_share_is_told_when_it_is_passed() {
        let at = |used: f64| CapUse {
            scope: CapScope::Day,
            measure: Measure::Usd,
            used,
            most: 10.0,
        };
        let told = |before: f64, now: f64| passed(&at(before), &at(now));
        assert_eq!(
            [
                told(0.0, 4.9),
                told(4.9, 5.0),
                told(5.0, 7.4),
                told(5.0, 7.5),
                told(1.0, 9.5),
                told(9.5, 12.0)
            ],
            [None, Some(50), None, Some(75), Some(90), Some(100)]
        );
    }
}
