//! Usage, summed up by agent, role, model and day.

use std::collections::HashMap;

use super::chronicle::{Chronicle, RunShare};
use crate::format;

/// Usage, summed up in one way.
#[derive(Debug)]
pub(super) struct ShareTable {
    pub by: &'static str,
    pub rows: Vec<ShareRow>,
    /// Number of omitted smaller rows.
    pub left_out: usize,
}

/// Usage of one agent, role, model or day.
#[derive(Debug, Default)]
pub(super) struct ShareRow {
    pub name: String,
    pub runs: usize,
    pub usd: f64,
    pub tokens: u64,
    pub seconds: u64,
    /// Share of the whole, from 0 to 100.
    pub percent: u32,
}

/// Maximum number of rows.
const MOST: usize = 60;

impl ShareTable {
    /// Returns the tables by agent, role, model and day.
    pub fn all(chronicle: &Chronicle) -> Vec<ShareTable> {
        let shares = &chronicle.shares;
        let mut days = ShareTable::of("Day", shares, |share| {
            vec![(share.day.clone(), share.usd, share.tokens)]
        });
        days.rows.sort_by(|one, other| other.name.cmp(&one.name));
        let whole = |name: &str, share: &RunShare| vec![(name.to_owned(), share.usd, share.tokens)];
        let models = |share: &RunShare| {
            share
                .models
                .iter()
                .map(|(name, usd, tokens)| (name.as_str().to_owned(), *usd, *tokens))
                .collect()
        };
        vec![
            ShareTable::of("Agent", shares, |share| whole(share.agent.as_str(), share)),
            ShareTable::of("Role", shares, |share| whole(share.role.as_str(), share)),
            ShareTable::of("Model", shares, models),
            days,
        ]
    }

    fn of(
        by: &'static str,
        shares: &[RunShare],
        parts: impl Fn(&RunShare) -> Vec<(String, f64, u64)>,
    ) -> ShareTable {
        let mut rows: HashMap<String, ShareRow> = HashMap::new();
        for share in shares {
            for (name, usd, tokens) in parts(share) {
                let row = rows.entry(name.clone()).or_insert_with(|| ShareRow {
                    name,
                    ..ShareRow::default()
                });
                row.runs += 1;
                row.usd += usd;
                row.tokens += tokens;
                row.seconds += share.seconds;
            }
        }
        let mut rows: Vec<ShareRow> = rows.into_values().collect();
        // By money if any was reported; else by tokens; else by time.
        let sum = |of: fn(&ShareRow) -> f64| rows.iter().map(of).sum::<f64>();
        let measures: [fn(&ShareRow) -> f64; 3] = [
            |row| row.usd,
            |row| row.tokens as f64,
            |row| row.seconds as f64,
        ];
        let of = measures
            .into_iter()
            .find(|of| sum(*of) > 0.0)
            .unwrap_or(measures[2]);
        let total = sum(of).max(f64::MIN_POSITIVE);
        for row in &mut rows {
            row.percent = percent(of(row) / total);
        }
        rows.sort_by(|one, other| {
            of(other)
                .total_cmp(&of(one))
                .then_with(|| one.name.cmp(&other.name))
        });
        let left_out = rows.len().saturating_sub(MOST);
        rows.truncate(MOST);
        ShareTable { by, rows, left_out }
    }
}

#[expect(clippy::cast_sign_loss, reason = "it is a share of a sum")]
fn percent(part: f64) -> u32 {
    (part * 100.0).round() as u32
}

impl ShareRow {
    pub fn money(&self) -> String {
        if self.usd > 0.0 {
            format::money(self.usd)
        } else {
            "–".to_owned()
        }
    }

    pub fn tokens(&self) -> String {
        if self.tokens > 0 {
            format::short(self.tokens)
        } else {
            "–".to_owned()
        }
    }

    pub fn time(&self) -> String {
        format::took_seconds(self.seconds)
    }
}
