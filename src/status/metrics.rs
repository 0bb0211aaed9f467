//! `tavern-status --metrics`: the board's numbers in the text format of Prometheus, which the node exporter's textfile
//! collector and most others read too.
//!
//! Names and labels are in specs/export.md. They stay stable, since dashboards depend on them.

use std::collections::BTreeMap;

use prometheus::{CounterVec, GaugeVec, Opts, Registry, TextEncoder};

use super::record::Stats;
use super::stats;
use crate::format::Painted;
use crate::overview::listing::WantedItems;
use crate::overview::{AgentLine, Overview};
use crate::{CliError, Context};
use tavern_core::need::NeedKind;
use tavern_core::task::{Status, Timestamp};
use tavern_store::{AgentState, Board, Queue};

/// The numbers of a board, each under its name.
struct Metrics {
    registry: Registry,
    /// The board's folder, which distinguishes boards.
    board: String,
}

/// Values of a number's labels.
type Labels<'a, const N: usize> = [&'a str; N];

pub(super) fn print(
    context: &Context,
    board: &Board,
    queues: &[Queue],
    named: &[String],
) -> Result<(), CliError> {
    let workspace = context
        .light_site(board.clone())
        .ok()
        .map(|workspace| workspace.naming(queues));
    let overview = Overview::gather(board, queues, workspace.as_ref(), WantedItems::Unusual)?;
    let metrics = Metrics {
        registry: Registry::new(),
        board: board.root().to_string_lossy().into_owned(),
    };
    metrics.put_overview(&overview);
    metrics.put_stats(&stats::gather(board, queues, named)?);
    metrics.count(
        "tavern_events_total",
        "Events of the log",
        [],
        [([], to_number(board.last_seq()?))],
    );
    let text = TextEncoder::new()
        .encode_to_string(&metrics.registry.gather())
        .expect("names and labels are in order");
    context.out.record(
        &serde_json::json!({"metrics": text}),
        Painted::whole(text.trim_end()),
    )
}

impl Metrics {
    fn put_overview(&self, overview: &Overview) {
        let Overview {
            listing,
            agents,
            quotas,
            spending,
            switched,
            unread,
            ..
        } = overview;
        let unread = [([], to_number(unread.len() as u64))];
        self.gauge(
            "tavern_queues_with_losses",
            "Queues that can't be read, or have lost text",
            [],
            unread,
        );
        // Zeros are included: an alert on a missing number stays silent.
        let of_status = listing.queues.iter().flat_map(|line| {
            let of = |status: Status| line.items.get(status.as_str()).copied().unwrap_or_default();
            Status::ALL.map(|status| {
                (
                    [line.queue.as_str(), status.as_str()],
                    to_number(of(status) as u64),
                )
            })
        });
        self.gauge(
            "tavern_items",
            "Items, by queue and status",
            ["queue", "status"],
            of_status,
        );
        let faulty = listing
            .queues
            .iter()
            .map(|line| ([line.queue.as_str()], to_number(line.quarantined as u64)));
        self.gauge(
            "tavern_items_with_problems",
            "Items with a problem in their text",
            ["queue"],
            faulty,
        );
        let of = |kind: &NeedKind| {
            listing
                .needs
                .iter()
                .filter(|line| line.need.need == *kind)
                .count()
        };
        let needs = NeedKind::ALL
            .iter()
            .map(|kind| ([kind.as_str()], to_number(of(kind) as u64)));
        self.gauge(
            "tavern_needs",
            "Items that wait for a person, by kind of need",
            ["need"],
            needs,
        );
        let mut states: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        agents
            .iter()
            .for_each(|line| *states.entry((&line.agent.role, state(line))).or_default() += 1.0);
        let states = states
            .iter()
            .map(|((role, state), count)| ([*role, *state], *count));
        self.gauge(
            "tavern_agents",
            "Agents, by role and state",
            ["role", "state"],
            states,
        );
        let closed = quotas
            .iter()
            .map(|line| ([line.runner.as_str()], seconds(line.quota.closed_until)));
        let help = "Unix time until which a runner is closed by its provider's limit";
        self.gauge(
            "tavern_runner_closed_until_seconds",
            help,
            ["runner"],
            closed,
        );
        let is_open = f64::from(u8::from(switched.is_none()));
        self.gauge(
            "tavern_board_open",
            "1, or 0 while the board is paused or stopped",
            [],
            [([], is_open)],
        );
        let caps = spending.iter().flat_map(|line| &line.budgets).map(|cap| {
            let labels = [
                cap.of.scope.as_str(),
                cap.of.measure.as_str(),
                cap.name.as_deref().unwrap_or_default(),
            ];
            (labels, cap.of.share())
        });
        self.gauge(
            "tavern_budget_used_ratio",
            "The share of a budget that is used",
            ["scope", "measure", "name"],
            caps,
        );
    }

    fn put_stats(&self, stats: &Stats) {
        let Stats {
            oldest_pending_seconds: oldest,
            watcher,
            spent_by,
            diagnoses,
            ..
        } = stats;
        let oldest = oldest.map(|seconds| ([], to_number(seconds.unsigned_abs())));
        let help = "Age of the oldest pending item";
        self.gauge("tavern_oldest_pending_seconds", help, [], oldest);
        let looked = watcher.iter().map(|watcher| ([], seconds(watcher.looked)));
        self.gauge(
            "tavern_watcher_looked_seconds",
            "Unix time of the last look of `tavern watch`",
            [],
            looked,
        );
        for (name, help, count) in [
            (
                "tavern_completed_total",
                "Completions of items, also by hand",
                stats.completed,
            ),
            ("tavern_claims_total", "Claims of items", stats.claims),
            (
                "tavern_retries_total",
                "Retries of items after a failed or lost run",
                stats.retries,
            ),
            (
                "tavern_dead_letters_total",
                "Items that died",
                stats.dead_letters,
            ),
            ("tavern_runs_total", "Runs of agents", stats.runs),
        ] {
            self.count(name, help, [], [([], to_number(count as u64))]);
        }
        let found = diagnoses
            .iter()
            .map(|(symptom, count)| ([*symptom], to_number(*count as u64)));
        self.count(
            "tavern_diagnoses_total",
            "Diagnoses of runs, by symptom",
            ["symptom"],
            found,
        );
        let usd = spent_by
            .model
            .iter()
            .map(|(model, share)| ([model.as_str()], share.usd));
        self.count(
            "tavern_spent_usd_total",
            "US dollars that runs have used, by model",
            ["model"],
            usd,
        );
        let tokens = spent_by
            .model
            .iter()
            .map(|(model, share)| ([model.as_str()], to_number(share.tokens)));
        self.count(
            "tavern_spent_tokens_total",
            "Tokens that runs have used, by model",
            ["model"],
            tokens,
        );
    }

    fn gauge<'a, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: Labels<'_, N>,
        values: impl IntoIterator<Item = (Labels<'a, N>, f64)>,
    ) {
        let vector = GaugeVec::new(self.named(name, help), &labels).expect("the name is in order");
        values
            .into_iter()
            .for_each(|(labels, value)| vector.with_label_values(&labels).set(value));
        self.registry
            .register(Box::new(vector))
            .expect("each name is registered once");
    }

    /// Adds a counter.
    fn count<'a, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: Labels<'_, N>,
        values: impl IntoIterator<Item = (Labels<'a, N>, f64)>,
    ) {
        let vector =
            CounterVec::new(self.named(name, help), &labels).expect("the name is in order");
        values
            .into_iter()
            .for_each(|(labels, value)| vector.with_label_values(&labels).inc_by(value.max(0.0)));
        self.registry
            .register(Box::new(vector))
            .expect("each name is registered once");
    }

    fn named(&self, name: &str, help: &str) -> Opts {
        Opts::new(name, help).const_label("board", &self.board)
    }
}

fn state(line: &AgentLine) -> &'static str {
    match line.agent.state {
        _ if !line.alive => "gone",
        AgentState::Working => "working",
        AgentState::Waiting => "waiting",
    }
}

/// Prometheus has 64-bit floating-point numbers only: exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "no board counts so far")]
fn to_number(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact for the next hundred million years"
)]
fn seconds(at: Timestamp) -> f64 {
    at.timestamp() as f64
}
