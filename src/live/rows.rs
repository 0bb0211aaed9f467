//! Converts an overview of a board to rows that can be chosen. Pure.

use std::collections::HashMap;

use chrono::TimeDelta;

use crate::format;
use crate::overview::listing::{ItemLine, NeedLine, QueueLine};
use crate::overview::{AgentLine, Overview};
use tavern_core::activity::{Activity, WindowUse};
use tavern_core::lease::Freshness;
use tavern_core::need::NeedKind;
use tavern_core::task::{Mode, Status, TaskId, Timestamp};
use tavern_run::run_name;
use tavern_run::watch::Health;
use tavern_store::AgentState;
use tavern_sys::clock;

use super::style::{Tone, line};

/// The rows of the list, and the line above them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// Counts of agents and items, and the cost.
    pub head: String,
    pub rows: Vec<SceneRow>,
    /// Whether agents work, so seconds are shown.
    pub has_seconds: bool,
}

/// A row of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SceneRow {
    /// Stays the same as long as its subject does.
    pub key: String,
    /// Never cut.
    pub columns: String,
    /// Cut to fit.
    pub words: String,
    /// Shown after the words if it fits.
    pub mark: String,
    pub tone: Tone,
    /// The target of keys; `None` for a heading or a remark.
    pub subject: Option<Subject>,
}

/// The subject of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The name of an item; empty for a queue.
    pub name: String,
    /// The title of an item without an ID, which identifies it while its line changes.
    pub title: String,
    pub task: Option<TaskId>,
    pub queue: String,
    /// The run of the agent that works on it.
    pub run: Option<String>,
    pub status: Option<Status>,
    /// Whether it waits with a question.
    pub is_asked: bool,
}

impl Scene {
    /// Returns the rows of `overview` and the `health` of runs at `now`.
    pub fn of(overview: &Overview, health: &[Health], now: Timestamp) -> Scene {
        let mut scene = Scene::default();
        let runs: HashMap<&TaskId, &Health> =
            health.iter().map(|one| (&one.lease.task, one)).collect();
        let statuses: HashMap<&TaskId, Status> = overview
            .listing
            .items
            .iter()
            .filter_map(|item| Some((item.task.as_ref()?, item.status)))
            .collect();
        let subject_of = |task: &TaskId| Subject {
            name: task.to_string(),
            task: Some(task.clone()),
            run: runs
                .get(task)
                .map(|one| run_name(&one.lease.task, one.lease.token)),
            status: statuses.get(task).copied(),
            ..Subject::default()
        };
        scene.head = head(overview, health, now);
        let untitled: HashMap<(&str, usize), &ItemLine> = overview
            .listing
            .items
            .iter()
            .filter(|item| item.task.is_none())
            .map(|item| ((item.queue.as_str(), item.line), item))
            .collect();
        let subject_at = |queue: &str, line: usize| Subject {
            name: format!("{queue}:{line}"),
            title: untitled
                .get(&(queue, line))
                .map(|item| titled(item))
                .unwrap_or_default(),
            queue: queue.to_owned(),
            ..Subject::default()
        };
        let needs = overview.listing.needs.iter();
        scene.section(
            "Needs you",
            needs.map(|need| need_row(need, &subject_of, &subject_at)),
        );
        scene.section("Problems", problems(overview).into_iter());
        let agents = overview.agents.iter().map(|agent| {
            let health = agent
                .agent
                .task
                .as_ref()
                .and_then(|task| runs.get(task))
                .copied();
            agent_row(agent, health, &subject_of, now)
        });
        scene.section("Agents", agents);
        scene.has_seconds = overview
            .agents
            .iter()
            .any(|agent| agent.alive && is_at_work(agent));
        scene.section("Queues", overview.listing.queues.iter().map(queue_row));
        let items = overview.listing.items.iter();
        scene.section(
            "Items",
            items.map(|item| item_row(item, &subject_of, &subject_at)),
        );
        scene.tell_apart();
        scene
    }

    /// Makes keys of rows unique.
    fn tell_apart(&mut self) {
        let mut known: HashMap<String, usize> = HashMap::new();
        for row in &mut self.rows {
            let number = known.entry(row.key.clone()).or_default();
            *number += 1;
            if *number > 1 {
                row.key.push_str(&format!(" {number}"));
            }
        }
    }

    fn section(&mut self, title: &str, rows: impl Iterator<Item = SceneRow>) {
        let mut rows = rows.peekable();
        if rows.peek().is_some() {
            let key = format!("heading {title}");
            self.rows.push(SceneRow {
                key,
                columns: title.to_owned(),
                tone: Tone::Heading,
                ..SceneRow::default()
            });
            self.rows.extend(rows);
        }
    }
}

/// Describes the providers' limits, from the run that was seen last.
fn allowance<'a>(runs: impl Iterator<Item = &'a Activity>, now: Timestamp) -> Option<String> {
    let last = runs
        .filter(|run| !run.windows.is_empty())
        .max_by_key(|run| run.seen)?;
    let mut open: Vec<_> = last
        .windows
        .iter()
        .filter(|window| window.resets_at > now)
        .collect();
    open.sort_by_key(|window| window.resets_at);
    let words = |window: &WindowUse| {
        let percent = (window.used * 100.0).clamp(0.0, 999.0).floor();
        format!("{percent:.0} % until {}", clock::brief(window.resets_at))
    };
    let all: Vec<String> = open.into_iter().map(words).collect();
    (!all.is_empty()).then(|| format!("the provider's window: {}", all.join(", ")))
}

fn head(overview: &Overview, health: &[Health], now: Timestamp) -> String {
    let working = overview
        .agents
        .iter()
        .filter(|agent| agent.alive && is_at_work(agent))
        .count();
    let mut words = vec![match working {
        0 => "no agent works".to_owned(),
        1 => "1 agent works".to_owned(),
        more => format!("{more} agents work"),
    }];
    match overview.listing.needs.len() {
        0 => {}
        1 => words.push("1 item needs you".to_owned()),
        more => words.push(format!("{more} items need you")),
    }
    words.extend(overview.spending.as_ref().map(|spent| line(&spent.words())));
    words.extend(allowance(health.iter().map(|one| &one.activity), now));
    words.join(" · ")
}

fn problems(overview: &Overview) -> Vec<SceneRow> {
    let row = |(number, words): (usize, String)| SceneRow {
        key: format!("problem {number}"),
        columns: "  ".to_owned(),
        words: line(&words),
        tone: Tone::Bad,
        ..SceneRow::default()
    };
    overview
        .problems()
        .into_iter()
        .enumerate()
        .map(row)
        .collect()
}

fn titled(item: &ItemLine) -> String {
    line(&format!("{}{}", item.above, item.title))
}

/// Returns the key of an item, which stays the same while its line changes.
fn key_of(subject: &Subject) -> String {
    if subject.title.is_empty() {
        subject.name.clone()
    } else {
        format!("{} {}", subject.queue, subject.title)
    }
}

fn need_row(
    need: &NeedLine,
    subject_of: &dyn Fn(&TaskId) -> Subject,
    subject_at: &dyn Fn(&str, usize) -> Subject,
) -> SceneRow {
    let subject = need
        .task
        .as_ref()
        .map_or_else(|| subject_at(&need.queue, need.line), subject_of);
    let name = &subject.name;
    let is_asked = need.need.need == NeedKind::Answer;
    let key = match need.need.need {
        NeedKind::Answer => "a answers",
        NeedKind::Permission | NeedKind::Approval => "y approves",
        NeedKind::Release => "r releases",
        NeedKind::Child | NeedKind::Blocked | NeedKind::Problem | NeedKind::Merge => {
            "Enter shows it"
        }
        NeedKind::Dead => "r revives",
    };
    SceneRow {
        key: format!("need {}", key_of(&subject)),
        columns: format!("  {name:<9} "),
        words: format!(
            "{}{}",
            if is_asked { "asks: " } else { "" },
            line(&need.need.why)
        ),
        mark: key.to_owned(),
        tone: Tone::Asks,
        subject: Some(Subject {
            queue: need.queue.clone(),
            is_asked,
            ..subject
        }),
    }
}

fn is_at_work(line: &AgentLine) -> bool {
    line.agent.state == AgentState::Working
}

/// An agent's current work, in words for a row.
struct AgentWords {
    name: String,
    state: &'static str,
    task: String,
    /// How long it has worked on the item; empty if unknown.
    long: String,
    /// Its tool, and the time since its last sign of life.
    tool: String,
    /// Its last message, or else the reason of its wait.
    spoken: String,
    mark: String,
    tone: Tone,
}

impl AgentWords {
    fn of(of: &AgentLine, health: Option<&Health>, now: Timestamp) -> AgentWords {
        let agent = &of.agent;
        let seconds = |since: Timestamp| {
            (now - since)
                .max(TimeDelta::zero())
                .num_seconds()
                .unsigned_abs()
        };
        let state = match agent.state {
            _ if !of.alive => "gone",
            AgentState::Working => of
                .mode
                .filter(|mode| *mode != Mode::Execute)
                .map_or("works", Mode::as_str),
            AgentState::Waiting => "waits",
        };
        let is_stale = of.freshness != Freshness::Fresh && is_at_work(of);
        let tone = match agent.state {
            _ if !of.alive || is_stale => Tone::Bad,
            AgentState::Working => Tone::Works,
            AgentState::Waiting => Tone::Plain,
        };
        let mut words = AgentWords {
            name: format::cut(&line(&agent.name), 20).into_owned(),
            state,
            task: agent.task.as_ref().map_or("-", TaskId::as_str).to_owned(),
            long: String::new(),
            tool: String::new(),
            spoken: line(agent.doing.as_deref().unwrap_or_default()),
            mark: String::new(),
            tone,
        };
        let Some(Health {
            activity, watched, ..
        }) = health.filter(|_| of.alive && is_at_work(of))
        else {
            return words;
        };
        words.long = format::took_seconds(seconds(activity.began));
        let seen = format::took_seconds(seconds(activity.seen));
        let tool = activity.tool.as_deref().map(line);
        words.tool = format!(
            "{} {seen}",
            format::cut(tool.as_deref().unwrap_or("thinks"), 16)
        );
        if !activity.last_words.is_empty() {
            words.spoken = format!("“{}”", line(&activity.last_words));
        }
        let mut marks = vec![format::count(activity.steps as usize, "step")];
        marks.extend((activity.usd > 0.0).then(|| format::money(activity.usd)));
        marks.extend((watched.nudges > 0).then(|| format::count(watched.nudges as usize, "nudge")));
        words.mark = marks.join(", ");
        words
    }
}

fn agent_row(
    of: &AgentLine,
    health: Option<&Health>,
    subject_of: &dyn Fn(&TaskId) -> Subject,
    now: Timestamp,
) -> SceneRow {
    let (agent, words) = (&of.agent, AgentWords::of(of, health, now));
    let AgentWords {
        name,
        state,
        task,
        long,
        tool,
        ..
    } = &words;
    let mut columns = format!("  {name:<10} {state:<8} {task:<9} ");
    if !long.is_empty() {
        columns.push_str(&format!("{long:>6} {tool} "));
    }
    SceneRow {
        key: format!("agent {}", agent.name),
        columns,
        words: words.spoken,
        mark: words.mark,
        tone: words.tone,
        subject: agent.task.as_ref().map(subject_of).map(|subject| Subject {
            run: agent.run.clone(),
            ..subject
        }),
    }
}

/// Below this width, columns are as narrow as their content.
const NARROW: usize = 70;

/// Returns the rows of agents for a small area of `width` cells.
pub fn short_rows(
    agents: &[AgentLine],
    health: &[Health],
    now: Timestamp,
    width: usize,
) -> Vec<SceneRow> {
    let row = |of: &AgentLine| {
        let is_its = |one: &&Health| of.agent.task.as_ref() == Some(&one.lease.task);
        let AgentWords {
            name,
            state,
            task,
            long,
            tool,
            spoken,
            mark,
            tone,
        } = AgentWords::of(of, health.iter().find(is_its), now);
        let does = if state == "works" {
            String::new()
        } else {
            format!("{state} ")
        };
        let columns = match (width < NARROW, task.as_str()) {
            (_, "-") => format!("{name} {does}"),
            (true, _) => format!("{name} {task} {does}{long} {tool} "),
            (false, _) => format!("{name:<10} {task:<9} {does}{long:>6} {tool} "),
        };
        SceneRow {
            columns,
            words: spoken,
            mark,
            tone,
            ..SceneRow::default()
        }
    };
    agents.iter().map(row).collect()
}

fn queue_row(of: &QueueLine) -> SceneRow {
    let mut words: Vec<String> = of
        .counts
        .iter()
        .map(|(status, count)| format!("{count} {}", format::word(status)))
        .collect();
    words.extend((of.archived > 0).then(|| format!("{} archived", of.archived)));
    words.extend((of.quarantined > 0).then(|| format!("{} with problems", of.quarantined)));
    words.extend((of.unfit > 0).then(|| format!("{} that no agent can take", of.unfit)));
    if words.is_empty() {
        words.push("no items".to_owned());
    }
    SceneRow {
        key: format!("queue {}", of.queue),
        columns: format!("  {:<10} ", line(&of.queue)),
        words: words.join(", "),
        mark: String::new(),
        tone: if of.quarantined + of.unfit > 0 {
            Tone::Bad
        } else {
            Tone::Plain
        },
        subject: Some(Subject {
            queue: of.queue.clone(),
            ..Subject::default()
        }),
    }
}

fn item_row(
    item: &ItemLine,
    subject_of: &dyn Fn(&TaskId) -> Subject,
    subject_at: &dyn Fn(&str, usize) -> Subject,
) -> SceneRow {
    let name = item.name();
    let subject = item
        .task
        .as_ref()
        .map_or_else(|| subject_at(&item.queue, item.line), subject_of);
    let why = item.not_ready.as_ref().or(item.waits_for.as_ref());
    let mark = match (why, &item.next_for) {
        _ if item.quarantined => match &item.problem {
            Some(problem) => format!("{}; tavern check", format::words(&line(problem))),
            None => "has a problem: tavern check".to_owned(),
        },
        (Some(why), _) => format::words(&line(why)).into_owned(),
        (None, Some(role)) => format!("next for {}", line(role)),
        _ if item.ready => "ready".to_owned(),
        _ => String::new(),
    };
    let steps = item
        .steps
        .as_ref()
        .filter(|steps| !steps.open.is_empty())
        .map(|steps| format!("{steps} "));
    let is_wrong = item.quarantined || item.is_unfit || item.status == Status::Dead;
    SceneRow {
        key: format!("item {}", key_of(&subject)),
        columns: format!(
            "  {name:<9} {:<11} p{} {}",
            item.status,
            item.priority,
            steps.unwrap_or_default()
        ),
        words: titled(item),
        mark,
        tone: match item.status {
            _ if is_wrong => Tone::Bad,
            status if status.is_held() => Tone::Works,
            _ => Tone::Plain,
        },
        subject: Some(Subject {
            queue: item.queue.clone(),
            status: Some(item.status),
            is_asked: subject.is_asked,
            ..subject
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_allows_is_told_by_the_run_that_was_seen_last() {
        let at = |seconds: i64| {
            Timestamp::from_timestamp(1_795_000_000 + seconds, 0).expect("it is one")
        };
        let run = |seen: i64, windows: &[(f64, i64)]| {
            let windows = windows.iter().map(|(used, resets)| WindowUse {
                used: *used,
                resets_at: at(*resets),
            });
            Activity {
                seen: at(seen),
                windows: windows.collect(),
                ..Activity::begin(at(0))
            }
        };
        assert_eq!(allowance([run(1, &[])].iter(), at(5)), None);
        let all = [
            run(3, &[(0.219, 90_000), (0.638, 600)]),
            run(1, &[(0.9, 600)]),
            run(4, &[]),
        ];
        let told = allowance(all.iter(), at(5)).expect("there is a number");
        assert!(
            told.starts_with("the provider's window: 63 % until ")
                && told.contains(", 21 % until "),
            "{told}"
        );
        assert!(allowance(all.iter(), at(700)).is_some_and(|told| !told.contains("63")));
        assert_eq!(allowance(all.iter(), at(100_000)), None);
    }
}
