//! Usage of runs, and the rest of their budgets, as plain values.

use schemars::JsonSchema;
use serde::Serialize;

use crate::format;
use tavern_core::cap::{CapScope, CapUse, Measure, Spending};
use tavern_core::task::TaskId;
use tavern_run::Workspace;
use tavern_run::spending::spending_of_all;
use tavern_store::Queue;

/// Usage of all runs.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct SpendingLine {
    pub usd_today: f64,
    pub usd: f64,
    pub tokens_today: f64,
    pub tokens: f64,
    pub minutes_today: f64,
    pub minutes: f64,
    pub budgets: Vec<CapLine>,
}

/// Usage of one cap.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CapLine {
    #[serde(flatten)]
    pub of: CapUse,
    /// Name of the item or queue.
    pub name: Option<String>,
}

impl CapLine {
    fn words(&self) -> String {
        let CapLine { of, name } = self;
        name.as_ref()
            .map_or_else(|| of.to_string(), |name| format!("{name}: {of}"))
    }
}

impl SpendingLine {
    /// Returns the usage in one line.
    pub fn words(&self) -> String {
        let sums = || {
            format!(
                "{} today, {} in all",
                format::money(self.usd_today),
                format::money(self.usd)
            )
        };
        // Some programs report no cost.
        let is_money = self.usd > 0.0
            || self
                .budgets
                .iter()
                .any(|cap| cap.of.measure == Measure::Usd);
        let words: Vec<String> = is_money
            .then(sums)
            .into_iter()
            .chain(self.budgets.iter().map(CapLine::words))
            .collect();
        format!("spent: {}", words.join("; "))
    }
}

/// Returns the usage; `None` unless money was spent or there is a cap.
pub fn of(workspace: &Workspace, queues: &[Queue]) -> Option<SpendingLine> {
    let all = spending_of_all(workspace);
    let (usd_today, usd) = all.sums(Measure::Usd);
    let budgets = budgets(&all, queues);
    if usd == 0.0 && budgets.is_empty() {
        return None;
    }
    let (tokens_today, tokens) = all.sums(Measure::Tokens);
    let (minutes_today, minutes) = all.sums(Measure::Minutes);
    Some(SpendingLine {
        usd_today,
        usd,
        tokens_today,
        tokens,
        minutes_today,
        minutes,
        budgets,
    })
}

/// Returns the budgets on all items, on each shown queue, and on the item that has used most of its own.
fn budgets(all: &Spending, queues: &[Queue]) -> Vec<CapLine> {
    let of = |task: &TaskId, queue: &str, scope: CapScope| {
        let uses = all.uses(task, queue).into_iter();
        uses.filter(move |of| of.scope == scope).collect::<Vec<_>>()
    };
    let nobody = TaskId::nobody();
    let mut lines: Vec<CapLine> = all
        .uses_of_all()
        .into_iter()
        .map(|of| CapLine { of, name: None })
        .collect();
    for queue in queues {
        let uses = of(&nobody, &queue.id, CapScope::Queue);
        lines.extend(uses.into_iter().map(|of| CapLine {
            of,
            name: Some(queue.id.clone()),
        }));
    }
    let of_items = all.items().flat_map(|task| {
        of(task, "", CapScope::Item)
            .into_iter()
            .map(move |of| (of, task))
    });
    let most = of_items.max_by(|(one, task), (other, other_task)| {
        one.share()
            .total_cmp(&other.share())
            .then_with(|| other_task.cmp(task))
    });
    lines.extend(most.map(|(of, task)| CapLine {
        of,
        name: Some(task.to_string()),
    }));
    lines
}
