//! The usage of all runs, ended and live, against the caps of config.yaml.

use std::time::{Duration, Instant};

use super::record::{Metadata, run_name, run_of, spent_by_ended};
use super::workspace::Workspace;
use crate::runner::Limits;
use tavern_core::cap::{CapUse, Measure, Spending, Spent, passed};
use tavern_core::lease::{Lease, Life};
use tavern_store::life;
use tavern_sys::clock;

/// How often the usage of a silent run is checked, since other runs count towards the same caps.
const INTERVAL: Duration = Duration::from_secs(5);

/// Returns the usage of all runs of the board so far; `None` if nothing is capped.
pub fn spending(workspace: &Workspace) -> Option<Spending> {
    workspace
        .config
        .budget
        .is_set()
        .then(|| spending_of_all(workspace))
}

/// Returns the same, even if nothing is capped.
pub fn spending_of_all(workspace: &Workspace) -> Spending {
    Spending::of(
        workspace.config.budget.clone(),
        spent(workspace),
        clock::day_began(clock::now()),
    )
}

/// Returns the usage of each run so far.
fn spent(workspace: &Workspace) -> Vec<Spent> {
    let (mut spent, now) = (spent_by_ended(&workspace.board), clock::now());
    let live = |lease: &Lease| {
        let run = run_of(&workspace.board, &run_name(&lease.task, lease.token))?;
        let is_dead = life(&lease.holder) == Life::Gone || !lease.is_live(now);
        Some(run.spent(if is_dead { lease.heartbeat_at } else { now }))
    };
    let held = workspace.board.leases().unwrap_or_default();
    let mut live: Vec<Spent> = held.iter().filter_map(live).collect();
    live.retain(|one| !spent.iter().any(|ended| ended.is_of_same(one)));
    spent.append(&mut live);
    spent
}

/// Follows the usage of one run.
pub(super) struct Meter<'a> {
    workspace: &'a Workspace,
    /// Its usage at the last look.
    logged: Spent,
    looked_at: Instant,
}

impl<'a> Meter<'a> {
    /// Begins with a run.
    pub fn begin(workspace: &'a Workspace, run: &Metadata) -> Meter<'a> {
        Meter {
            workspace,
            logged: run.spent(run.started),
            looked_at: clock::instant(),
        }
    }

    /// Returns the time until the next look.
    pub fn patience(&self) -> Duration {
        let is_capped = self.workspace.config.budget.is_set();
        if is_capped {
            INTERVAL.saturating_sub(self.looked_at.elapsed())
        } else {
            Duration::MAX
        }
    }

    /// Returns the shares of caps that its new usage has passed, and the cap that is reached.
    pub fn look(&mut self, run: &Metadata) -> (Vec<(u32, CapUse)>, Option<CapUse>) {
        self.looked_at = clock::instant();
        let Some(now) = spending(self.workspace) else {
            return (Vec::new(), None);
        };
        let (task, queue) = (&run.task, &run.queue);
        let before = now.with(&std::mem::replace(
            &mut self.logged,
            run.spent(clock::now()),
        ));
        let now = now.with(&self.logged);
        let both = before
            .uses(task, queue)
            .into_iter()
            .zip(now.uses(task, queue));
        let passed = both.filter_map(|(before, now)| Some((passed(&before, &now)?, now)));
        (passed.collect(), now.reached(task, queue))
    }
}

/// Returns the limits of a run, reduced to the rest of the caps.
pub(super) fn within_caps(limits: &Limits, uses: &[CapUse]) -> Limits {
    /// The Claude CLI accepts no limit of 0.
    const LEAST_USD: f64 = 0.000_001;
    let left = |measure: Measure| {
        uses.iter()
            .filter(|of| of.measure == measure)
            .map(CapUse::left)
            .reduce(f64::min)
    };
    let usd = left(Measure::Usd).map(|usd| usd.max(LEAST_USD));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is the rest, in tokens"
    )]
    let tokens = left(Measure::Tokens).map(|tokens| tokens.ceil() as u64);
    // Whole seconds, as runs are measured, so that a run that ends by this limit has reached the cap.
    let seconds =
        left(Measure::Minutes).map(|minutes| (minutes * 60.0 - 1e-6).ceil().clamp(0.0, 1e9));
    Limits {
        usd: limits.usd.into_iter().chain(usd).reduce(f64::min),
        tokens: limits.tokens.into_iter().chain(tokens).min(),
        wall: limits
            .wall
            .into_iter()
            .chain(seconds.map(Duration::from_secs_f64))
            .min(),
        ..*limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tavern_core::cap::CapScope;

    #[test]
    fn a_run_may_use_what_is_left_and_no_more_than_its_own_limits() {
        let of = |measure: Measure, used: f64, most: f64| CapUse {
            scope: CapScope::Day,
            measure,
            used,
            most,
        };
        let uses = [
            of(Measure::Usd, 1.0, 4.0),
            of(Measure::Usd, 9.0, 10.0),
            of(Measure::Tokens, 10.0, 4.0),
            of(Measure::Minutes, 1.0, 1.02),
        ];
        let own = Limits {
            usd: Some(2.0),
            tokens: Some(5),
            turns: Some(7),
            ..Limits::default()
        };
        let within = within_caps(&own, &uses);
        assert_eq!(
            (within.usd, within.tokens, within.turns),
            (Some(1.0), Some(0), Some(7))
        );
        assert_eq!(within.wall, Some(Duration::from_secs(2)));
        assert_eq!(within_caps(&own, &[]), own);
        assert_eq!(within_caps(&own, &[of(Measure::Usd, 0.0, 4.0)]), own);
        assert!(
            within_caps(&own, &[of(Measure::Usd, 4.0, 4.0)])
                .usd
                .is_some_and(|usd| usd > 0.0 && usd < 0.001)
        );
    }
}
