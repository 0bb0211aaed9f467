//! The state of the board as JSON parts for the page, which hold only data that may be shown. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::log::deed;
use crate::overview::listing::{ItemLine, NeedLine, QueueLine};
use crate::overview::run_line::RunLine;
use crate::overview::spending::SpendingLine;
use crate::overview::{AgentLine, Overview};
use crate::sanitize::Legible;
use tavern_core::activity::Activity;
use tavern_core::task::{Status, Timestamp};
use tavern_run::Metadata;
use tavern_run::watch::Health;
use tavern_store::Entry;
use tavern_sys::secrets::redact;

/// Maximum number of items on the page, and of ended ones among them.
const MOST_ITEMS: usize = 2_000;
const MOST_OVER: usize = 300;

/// Maximum number of needs on the page.
const MOST_NEEDS: usize = 300;

/// The whole state at one time. Clones share their contents.
#[derive(Clone, Debug, Default)]
pub struct Showing {
    parts: Vec<ShowingPart>,
    /// Number of the last event of the log.
    pub last: u64,
}

/// A part, and its number of changes.
#[derive(Clone, Debug)]
struct ShowingPart {
    name: &'static str,
    version: u64,
    json: Arc<str>,
}

/// The versions of parts that a client has seen.
#[derive(Debug, Default)]
pub struct SeenParts(Vec<(&'static str, u64)>);

impl Showing {
    /// Replaces a part. Returns whether it has changed.
    pub fn put(&mut self, name: &'static str, value: impl Serialize) -> bool {
        let mut value = serde_json::to_value(value).unwrap_or_default();
        make_legible(&mut value);
        let json: Arc<str> = value.to_string().into();
        match self.parts.iter_mut().find(|part| part.name == name) {
            Some(part) if part.json == json => return false,
            Some(part) => (part.version, part.json) = (part.version + 1, json),
            None => self.parts.push(ShowingPart {
                name,
                version: 1,
                json,
            }),
        }
        true
    }

    /// Returns the parts that `seen` lacks, and adds them to it.
    pub fn news(&self, seen: &mut SeenParts) -> Vec<(&'static str, Arc<str>)> {
        let is_new = |part: &&ShowingPart| !seen.0.contains(&(part.name, part.version));
        let news = self
            .parts
            .iter()
            .filter(is_new)
            .map(|part| (part.name, Arc::clone(&part.json)))
            .collect();
        seen.0 = self
            .parts
            .iter()
            .map(|part| (part.name, part.version))
            .collect();
        news
    }

    /// Puts an overview, and `fault`, a problem with the settings that the overview lacks.
    pub fn put_overview(
        &mut self,
        overview: &Overview,
        fault: Option<String>,
        health: &[Health],
        runs: &[Metadata],
    ) -> bool {
        let listing = &overview.listing;
        let queues: Vec<&QueueLine> = listing.queues.iter().collect();
        let spent = overview.spending.as_ref().map(SpendingLine::words);
        let problems: Vec<String> = fault.into_iter().chain(overview.problems()).collect();
        let head = serde_json::json!({"queues": queues, "problems": problems, "spent": spent});
        let (cards, left_out) = cards(&listing.items);
        let waiting = |need| Waiting {
            words: NeedLine::words(need),
            need,
        };
        let needs: Vec<Waiting<'_>> = listing.needs.iter().take(MOST_NEEDS).map(waiting).collect();
        let more = listing.needs.len() - needs.len();
        let runs: Vec<RunLine<'_>> = runs.iter().rev().map(RunLine::of).collect();
        let changed = [
            self.put("head", head),
            self.put(
                "needs",
                serde_json::json!({"needs": needs, "left_out": more}),
            ),
            self.put(
                "items",
                serde_json::json!({"items": cards, "left_out": left_out}),
            ),
            self.put("runs", runs),
            self.put_agents(&overview.agents, health),
        ];
        changed.contains(&true)
    }

    /// Puts the agents' activity, which changes while nothing else does.
    pub fn put_agents(&mut self, agents: &[AgentLine], health: &[Health]) -> bool {
        let of = |agent: &AgentLine| {
            let task = agent.agent.task.as_ref();
            let health = health
                .iter()
                .find(|one| task == Some(&one.lease.task) && agent.alive);
            let at_work = health.map(|one| AtWork::of(&one.activity, one.watched.nudges));
            let mut value = serde_json::to_value(agent).unwrap_or_default();
            // The heartbeat's time changes all the time; its freshness is enough.
            value
                .as_object_mut()
                .map(|object| object.remove("heartbeat_at"));
            value["at_work"] = serde_json::to_value(at_work).unwrap_or_default();
            value
        };
        self.put("agents", agents.iter().map(of).collect::<Vec<_>>())
    }
}

/// An item on the board.
#[derive(Serialize)]
struct Card<'a> {
    name: String,
    #[serde(flatten)]
    item: &'a ItemLine,
}

/// Returns the items that the page shows, in their order, and the number of others by status. Items that stand out come
/// first; ended ones come last, and only the newest of them.
fn cards(items: &[ItemLine]) -> (Vec<Card<'_>>, BTreeMap<&'static str, usize>) {
    let mut shown: Vec<usize> = (0..items.len()).collect();
    // Of ended items the newest stand last in the queue, and come first here.
    shown.sort_by_key(|at| match weight(&items[*at]) {
        OVER => (OVER, items.len() - at),
        weight => (weight, *at),
    });
    let over = shown
        .iter()
        .position(|at| weight(&items[*at]) == OVER)
        .unwrap_or(shown.len());
    shown.truncate(MOST_ITEMS.min(over + MOST_OVER));
    shown.sort_unstable();
    let mut left_out = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        if shown.binary_search(&at).is_err() {
            *left_out.entry(item.status.as_str()).or_default() += 1;
        }
    }
    let card = |at| {
        let item: &ItemLine = &items[at];
        Card {
            name: item.name(),
            item,
        }
    };
    (shown.into_iter().map(card).collect(), left_out)
}

/// Weight of ended items.
const OVER: u8 = 6;

/// Returns the sort weight of an item; the lowest is shown first.
fn weight(item: &ItemLine) -> u8 {
    match item.status {
        Status::InProgress | Status::Reviewing => 0,
        Status::InReview | Status::Approved => 1,
        Status::Waiting => 2,
        Status::Dead => 3,
        Status::Completed | Status::Cancelled => OVER,
        Status::Draft | Status::Pending
            if item.quarantined || item.not_ready.is_some() || item.is_due =>
        {
            4
        }
        Status::Draft | Status::Pending => 5,
    }
}

/// An item that waits for a person.
#[derive(Serialize)]
struct Waiting<'a> {
    words: String,
    #[serde(flatten)]
    need: &'a NeedLine,
}

/// An agent's activity.
#[derive(Serialize)]
struct AtWork<'a> {
    began: Timestamp,
    seen: Timestamp,
    steps: u32,
    tool: Option<&'a str>,
    last_words: &'a str,
    usd: f64,
    nudges: u32,
}

impl AtWork<'_> {
    fn of(activity: &Activity, nudges: u32) -> AtWork<'_> {
        let Activity {
            began,
            seen,
            steps,
            usd,
            ..
        } = *activity;
        AtWork {
            began,
            seen,
            steps,
            tool: activity.tool.as_deref(),
            last_words: &activity.last_words,
            usd,
            nudges,
        }
    }
}

/// An event of the log.
#[derive(Debug)]
pub struct EventLine {
    pub seq: u64,
    pub json: String,
}

impl EventLine {
    pub fn of(entry: &Entry) -> EventLine {
        let task = entry.task.as_ref();
        let mut value = serde_json::json!({"seq": entry.seq, "time": entry.time, "task": task, "text": deed(entry)});
        make_legible(&mut value);
        EventLine {
            seq: entry.seq,
            json: value.to_string(),
        }
    }
}

/// Returns as JSON the lines of a text, how much of it is left out, and the command that prints all of it.
pub fn text(text: &str, command: &str) -> String {
    /// Maximum bytes and lines of a text on the page.
    const MOST: usize = 512 << 10;
    const MOST_LINES: usize = 20_000;
    let end = text.floor_char_boundary(MOST);
    let end = text[..end]
        .match_indices('\n')
        .nth(MOST_LINES - 1)
        .map_or(end, |(at, _)| at + 1);
    // Some secrets span several lines.
    let lines: Vec<String> = redact(&text[..end])
        .lines()
        .map(|line| shown_line(line).to_string())
        .collect();
    let command = shown_line(command);
    serde_json::json!({"lines": lines, "left_out": text.len() - end, "command": command.as_str()})
        .to_string()
}

/// Returns a line, sanitized and cut to a readable length.
pub fn shown_line(line: &str) -> Legible {
    Legible::whole_line(line, 4_000)
}

/// Sanitizes and shortens all strings in `value`: secrets are redacted, and control and hidden characters removed.
fn make_legible(value: &mut Value) {
    match value {
        Value::String(text) => *text = Legible::line(text).to_string(),
        Value::Array(values) => values.iter_mut().for_each(make_legible),
        Value::Object(values) => values.values_mut().for_each(make_legible),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tavern_core::task::Mode;

    #[test]
    fn who_has_seen_a_part_is_told_of_it_when_it_is_another() {
        let (mut showing, mut seen) = (Showing::default(), SeenParts::default());
        assert!(showing.put("a", 1) && showing.put("b", "x\u{202e}\u{1b}[2J"));
        let told = |showing: &Showing, seen: &mut SeenParts| -> Vec<String> {
            showing
                .news(seen)
                .into_iter()
                .map(|(name, json)| format!("{name} {json}"))
                .collect()
        };
        assert_eq!(told(&showing, &mut seen), ["a 1", "b \"x··[2J\""]);
        assert_eq!(told(&showing, &mut seen), [""; 0]);
        assert!(!showing.put("a", 1) && showing.put("a", 2) && showing.put("a", 3));
        assert_eq!(told(&showing, &mut seen), ["a 3"]);
        assert_eq!(told(&showing, &mut SeenParts::default()).len(), 2);
    }

    /// Returns a queue with items of these statuses, in these numbers.
    fn items(statuses: &[(Status, usize)]) -> Vec<ItemLine> {
        let all = statuses
            .iter()
            .flat_map(|(status, count)| std::iter::repeat_n(*status, *count))
            .enumerate();
        let item = |(at, status)| ItemLine {
            queue: "main".to_owned(),
            line: at + 1,
            task: None,
            status,
            priority: 2,
            title: "One".to_owned(),
            due: None,
            quarantined: false,
            problem: None,
            since: None,
            ready: false,
            next_for: None,
            waits_for: None,
            not_ready: None,
            mode: Mode::Execute,
            steps: None,
            is_due: false,
            is_unfit: false,
            above: String::new(),
        };
        all.map(item).collect()
    }

    #[test]
    fn what_somebody_wonders_about_is_shown_first_and_what_is_not_shown_is_counted() {
        use Status::{Completed, Dead, InProgress, InReview, Pending};
        let many = [
            (Completed, 500),
            (Pending, 900),
            (InReview, 1_990),
            (Pending, 5),
            (Dead, 4),
            (InProgress, 3),
        ];
        let items = items(&many);
        let (cards, left_out) = cards(&items);
        let count = |status| {
            cards
                .iter()
                .filter(|card| card.item.status == status)
                .count()
        };
        assert_eq!(
            [InProgress, InReview, Dead, Pending].map(count),
            [3, 1_990, 4, 3]
        );
        assert_eq!(
            left_out,
            BTreeMap::from([("completed", 500), ("pending", 902)])
        );
        assert!(
            cards.is_sorted_by_key(|card| card.item.line),
            "they stand in their order"
        );
    }

    #[test]
    fn of_what_is_over_the_last_are_shown() {
        let items = items(&[(Status::Completed, 302), (Status::Pending, 1)]);
        let (cards, left_out) = cards(&items);
        assert_eq!((cards.len(), cards[0].item.line), (301, 3));
        assert_eq!(left_out, BTreeMap::from([("completed", 2)]));
    }

    #[test]
    fn a_text_is_bounded() {
        let shown = text(
            &format!(
                "a\tb\u{7}\n{}\n{}",
                "x".repeat(10_000),
                "y\n".repeat(1 << 20)
            ),
            "tavern diff T-1",
        );
        let shown: Value = serde_json::from_str(&shown).expect("it is JSON");
        assert_eq!(shown["lines"][0], "a\tb·");
        assert_eq!(
            shown["lines"][1].as_str().map(|line| line.chars().count()),
            Some(4_001)
        );
        assert!(shown["left_out"].as_u64() > Some(1 << 20));
        assert_eq!(shown["command"], "tavern diff T-1");
    }
}
