//! Layout of the timelines: a row for each agent with its runs, and one for each item with its statuses.

use std::collections::HashMap;

use super::chronicle::{Chronicle, Hue};
use super::time_scale::{Tick, TimeScale, pixel};
use crate::format;
use crate::sanitize::Legible;
use tavern_core::task::{Status, Timestamp};
use tavern_sys::clock;

/// A timeline.
#[derive(Debug)]
pub(super) struct Chart {
    pub height: u32,
    pub ticks: Vec<Tick>,
    pub gaps: Vec<u32>,
    pub rows: Vec<ChartRow>,
    /// Number of omitted rows.
    pub left_out: usize,
}

/// A row of a chart.
#[derive(Debug)]
pub(super) struct ChartRow {
    pub label: Legible,
    pub y: u32,
    pub bars: Vec<Bar>,
}

/// A span of time.
#[derive(Debug)]
pub(super) struct Bar {
    pub x: u32,
    pub width: u32,
    pub class: &'static str,
    /// The sign that distinguishes it without colours, if there is room.
    pub sign: &'static str,
    pub told: String,
    /// Index of the item with the details.
    pub item: usize,
}

/// Pixels of a chart, of the names before its rows, of a row, and above and below all rows.
pub(super) const WIDTH: u32 = 1_180;
const NAMES: f64 = 190.0;
const ROW: u32 = 24;
const TOP: u32 = 8;
const BOTTOM: u32 = 30;

/// Width of a name, in cells.
const CELLS: usize = 25;

/// Maximum number of rows of a chart.
const MOST_AGENTS: usize = 60;
const MOST_ITEMS: usize = 120;

/// Maximum number of bars in an item's row.
const MOST_STAYS: usize = 30;

impl Chart {
    /// Returns the runs of each agent, in the order in which the agents began.
    pub fn of_agents(chronicle: &Chronicle) -> Chart {
        let scale = scale(chronicle);
        let mut agents: Vec<(&Legible, Vec<Bar>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for run in &chronicle.runs {
            let place = *places.entry(run.agent.as_str()).or_insert_with(|| {
                agents.push((&run.agent, Vec::new()));
                agents.len() - 1
            });
            let (title, took) = (
                chronicle.items[run.item].title.cut(60),
                format::took_seconds(run.seconds),
            );
            let told = format!(
                "{} {}: {}, {took}, {}",
                run.name,
                title,
                run.outcome_word(),
                clock::dated(run.started)
            );
            let (from, to) = (
                scale.x(run.started),
                scale.x(run.ended.unwrap_or(chronicle.made)),
            );
            agents[place]
                .1
                .push(Bar::of(from, to, run.hue(), told, run.item));
        }
        let left_out = agents.len().saturating_sub(MOST_AGENTS);
        Chart::new(&scale, agents.into_iter().skip(left_out), left_out)
    }

    /// Returns the statuses of the items that changed last.
    pub fn of_items(chronicle: &Chronicle) -> Chart {
        let scale = scale(chronicle);
        let moved = chronicle
            .items
            .iter()
            .enumerate()
            .filter(|(_, item)| !item.moves.is_empty());
        let mut moved: Vec<(usize, Timestamp)> = moved
            .filter_map(|(number, item)| Some((number, item.moves.last()?.at)))
            .collect();
        moved.sort_by_key(|(_, at)| *at);
        let left_out = moved.len().saturating_sub(MOST_ITEMS);
        let rows = moved.into_iter().skip(left_out).map(|(number, _)| {
            let item = &chronicle.items[number];
            let title = item.title.cut(60);
            let bar = |(status, from, to): (Status, Timestamp, Timestamp)| {
                let word = status.to_string();
                let took = format::took_seconds((to - from).num_seconds().unsigned_abs());
                let (how_long, to) = if status.is_ended() {
                    (String::new(), from)
                } else {
                    (format!(" for {took}"), to)
                };
                let told = format!(
                    "{} {title}: {word}{how_long}, {}",
                    item.name,
                    clock::dated(from)
                );
                Bar::of(
                    scale.x(from),
                    scale.x(to),
                    Hue::of(Some(status)),
                    told,
                    number,
                )
            };
            let stays: Vec<_> = item.stays(chronicle.made).collect();
            let bars = stays[stays.len().saturating_sub(MOST_STAYS)..]
                .iter()
                .copied()
                .map(bar)
                .collect();
            (&item.name, bars)
        });
        Chart::new(&scale, rows, left_out)
    }

    fn new<'n>(
        scale: &TimeScale,
        rows: impl Iterator<Item = (&'n Legible, Vec<Bar>)>,
        left_out: usize,
    ) -> Chart {
        let mut y = TOP;
        let rows = rows.map(|(name, bars)| {
            let row = ChartRow {
                label: name.cut(CELLS),
                y,
                bars,
            };
            y += ROW;
            row
        });
        let rows: Vec<ChartRow> = rows.collect();
        Chart {
            height: y + BOTTOM,
            ticks: scale.ticks(),
            gaps: scale.gaps(),
            rows,
            left_out,
        }
    }

    /// Returns the end of the rows.
    pub fn floor(&self) -> u32 {
        self.height - BOTTOM
    }
}

impl Bar {
    fn of(from: f64, to: f64, hue: Hue, told: String, item: usize) -> Bar {
        let width = pixel(to - from).max(3);
        let sign = if width < 14 || hue == Hue::Idle {
            ""
        } else {
            hue.sign()
        };
        Bar {
            x: pixel(from),
            width,
            class: hue.class(),
            sign,
            told,
            item,
        }
    }
}

/// Returns the scale of both charts: it covers all runs and status changes.
fn scale(chronicle: &Chronicle) -> TimeScale {
    let runs = chronicle
        .runs
        .iter()
        .map(|run| (run.started, run.ended.unwrap_or(chronicle.made)));
    let moves = chronicle
        .items
        .iter()
        .flat_map(|item| &item.moves)
        .map(|moved| (moved.at, moved.at));
    TimeScale::over(runs.chain(moves), NAMES, f64::from(WIDTH) - NAMES - 12.0)
}
