//! Renders a chronicle as one HTML document that runs and loads nothing. The template escapes all untrusted text, and
//! the gathering code bounds its size.

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::chronicle::{Chronicle, Hue, OpenNeed, PartForm, RunPart, RunStory};
use super::graph::{Graph, NODE};
use super::share_table::ShareTable;
use super::timeline::{Chart, WIDTH};
use crate::format;
use crate::sanitize::Legible;
use tavern_core::task::{Status, Timestamp};
use tavern_sys::clock;

const STYLE: &str = include_str!("../../templates/html/style.css");

/// Maximum number of needs at the top of the page.
const MOST_NEEDS: usize = 20;

/// The `.html` in the template's name turns escaping on.
#[derive(Template)]
#[template(path = "html/page.html")]
struct HtmlPage<'a> {
    told: &'a Chronicle,
    needs: Vec<(usize, &'a OpenNeed)>,
    needs_left_out: usize,
    tiles: Vec<Tile>,
    agents: Chart,
    items_chart: Chart,
    /// Indices of the items, the most pressing first.
    order: Vec<usize>,
    rows: Vec<ItemRow>,
    graph: Option<Graph>,
    tables: Vec<ShareTable>,
    style: &'static str,
    style_hash: String,
    version: &'static str,
}

/// A number at the top of the page.
struct Tile {
    name: &'static str,
    value: String,
    note: String,
    class: &'static str,
}

/// The columns of an item; empty where there is nothing to show.
struct ItemRow {
    waited: String,
    worked: String,
    runs: String,
    retries: String,
    cost: String,
    tokens: String,
    summary: String,
}

impl ItemRow {
    fn of(told: &Chronicle, number: usize) -> ItemRow {
        let item = &told.items[number];
        let runs = || item.runs.iter().map(|run| &told.runs[*run]);
        let (usd, tokens) = (
            runs().map(|run| run.usd).sum::<f64>(),
            runs().map(|run| run.tokens).sum::<u64>(),
        );
        let time = |seconds: u64| {
            if seconds == 0 {
                String::new()
            } else {
                format::took_seconds(seconds)
            }
        };
        let seconds = runs().map(|run| run.seconds).sum();
        let cost = if usd > 0.0 {
            format::money(usd)
        } else {
            String::new()
        };
        let words = [
            format::count(item.runs.len(), "run"),
            time(seconds),
            cost.clone(),
        ];
        ItemRow {
            waited: time(item.seconds(told.made, |status| {
                matches!(status, Status::Pending | Status::Waiting)
            })),
            worked: time(seconds),
            runs: some(item.runs.len() as u64),
            retries: some(item.retries() as u64),
            tokens: if tokens > 0 {
                format::short(tokens)
            } else {
                String::new()
            },
            summary: words
                .into_iter()
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" · "),
            cost,
        }
    }

    fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }
}

fn some(number: u64) -> String {
    if number == 0 {
        String::new()
    } else {
        number.to_string()
    }
}

/// Returns the whole page.
pub(super) fn page(told: &Chronicle) -> String {
    let mut needs: Vec<(usize, &OpenNeed)> = told
        .items
        .iter()
        .enumerate()
        .filter_map(|(number, item)| Some((number, item.need.as_ref()?)))
        .collect();
    needs.sort_by_key(|(_, need)| need.rank);
    let needs_left_out = needs.len().saturating_sub(MOST_NEEDS);
    let tiles = tiles(told, needs.len());
    needs.truncate(MOST_NEEDS);
    let mut order: Vec<usize> = (0..told.items.len()).collect();
    order.sort_by_key(|number| {
        let item = &told.items[*number];
        (
            item.hue(),
            item.status.is_none(),
            std::cmp::Reverse(item.moves.last().map(|moved| moved.at)),
        )
    });
    let page = HtmlPage {
        told,
        needs,
        needs_left_out,
        tiles,
        agents: Chart::of_agents(told),
        items_chart: Chart::of_items(told),
        order,
        rows: (0..told.items.len())
            .map(|number| ItemRow::of(told, number))
            .collect(),
        graph: Graph::of(told),
        tables: ShareTable::all(told),
        style: STYLE,
        style_hash: format!(
            "sha256-{}",
            STANDARD.encode(Sha256::digest(STYLE.as_bytes()))
        ),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render().expect("it is written to memory")
}

fn tiles(told: &Chronicle, needs: usize) -> Vec<Tile> {
    let count = |is_meant: fn(Status) -> bool| {
        told.items
            .iter()
            .filter(|item| item.status.is_some_and(is_meant))
            .count()
    };
    let coloured = |name, number: usize, hue: Hue| Tile {
        name,
        value: number.to_string(),
        note: String::new(),
        class: if number == 0 { "" } else { hue.class() },
    };
    let plain = |name, value: String, note: String| Tile {
        name,
        value,
        note,
        class: "",
    };
    let shares = &told.shares;
    let (usd, tokens) = (
        shares.iter().map(|one| one.usd).sum::<f64>(),
        shares.iter().map(|one| one.tokens).sum(),
    );
    let well = told
        .runs
        .iter()
        .filter(|run| run.hue() == Hue::Good)
        .count();
    let ended = told.runs.iter().filter(|run| run.outcome.is_some()).count();
    let first = told.runs.iter().map(|run| run.started).min();
    let last = told
        .runs
        .iter()
        .map(|run| run.ended.unwrap_or(told.made))
        .max();
    let span = first
        .zip(last)
        .map(|(first, last)| (last - first).num_seconds().unsigned_abs());
    vec![
        coloured("need you", needs, Hue::Wait),
        coloured(
            "completed",
            count(|status| status == Status::Completed),
            Hue::Good,
        ),
        coloured("dead", count(|status| status == Status::Dead), Hue::Bad),
        coloured(
            "under way",
            count(|status| matches!(Hue::of(Some(status)), Hue::Busy | Hue::Review)),
            Hue::Busy,
        ),
        coloured(
            "pending",
            count(|status| status == Status::Pending),
            Hue::Idle,
        ),
        plain(
            "runs",
            shares.len().to_string(),
            if ended > 0 {
                format!("{well} of {ended} went well")
            } else {
                String::new()
            },
        ),
        plain(
            "spent",
            if usd > 0.0 {
                format::money(usd)
            } else {
                "–".to_owned()
            },
            String::new(),
        ),
        plain(
            "tokens",
            if tokens > 0 {
                format::short(tokens)
            } else {
                "–".to_owned()
            },
            String::new(),
        ),
        plain(
            "worked",
            format::took_seconds(shares.iter().map(|one| one.seconds).sum()),
            span.map(|span| format!("within {}", format::took_seconds(span)))
                .unwrap_or_default(),
        ),
    ]
}

/// Methods for the template.
#[expect(
    clippy::unused_self,
    clippy::trivially_copy_pass_by_ref,
    reason = "so a template calls methods of its own"
)]
impl HtmlPage<'_> {
    fn when(&self, at: &Timestamp) -> String {
        clock::dated(*at)
    }

    fn brief(&self, at: &Timestamp) -> String {
        clock::brief(*at)
    }

    fn took(&self, seconds: &u64) -> String {
        format::took_seconds(*seconds)
    }

    fn money(&self, usd: &f64) -> String {
        if *usd > 0.0 {
            format::money(*usd)
        } else {
            String::new()
        }
    }

    fn short(&self, number: &u64) -> String {
        if *number > 0 {
            format::short(*number)
        } else {
            String::new()
        }
    }

    fn bytes(&self, number: &u64) -> String {
        format!("{} bytes", format::short(*number))
    }

    fn count(&self, number: &usize) -> String {
        number.to_string()
    }

    fn status(&self, status: &Status) -> String {
        status.to_string()
    }

    fn chart_width(&self) -> u32 {
        WIDTH
    }

    fn node_width(&self) -> u32 {
        NODE.0
    }

    fn node_height(&self) -> u32 {
        NODE.1
    }

    fn patch_form(&self) -> PartForm {
        PartForm::Patch
    }

    /// Failures and waits are shown unfolded.
    fn is_open(&self, run: &RunStory, part: &RunPart) -> bool {
        match part.name {
            "Verification" => run.verified == Some(false),
            "Result" => matches!(run.hue(), Hue::Bad | Hue::Wait),
            _ => false,
        }
    }

    fn legend(&self) -> [(&'static str, &'static str, &'static str); 6] {
        [
            (Hue::Good, "well, completed"),
            (Hue::Busy, "running"),
            (Hue::Review, "in review or approved"),
            (Hue::Wait, "waits"),
            (Hue::Idle, "pending, stopped"),
            (Hue::Bad, "failed, dead"),
        ]
        .map(|(hue, words)| (hue.class(), hue.sign(), words))
    }

    /// Returns the lines of a patch, each with its mark.
    fn lines<'t>(&self, text: &'t Legible) -> Vec<(char, &'t str)> {
        let kind = |line: &str| match line.as_bytes().first() {
            _ if line.starts_with("diff --git ") => '@',
            Some(mark @ (b'+' | b'-' | b'@')) => char::from(*mark),
            _ => ' ',
        };
        text.as_str()
            .lines()
            .map(|line| (kind(line), line))
            .collect()
    }
}
