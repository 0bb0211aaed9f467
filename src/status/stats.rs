//! `tavern-status --stats`: numbers about a board, or about some of its queues.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::record::{Record, Share, SpentBy, Stats};
use crate::overview::since::StandingSince;
use crate::{CliError, Context, format};
use tavern_core::event::Kind;
use tavern_core::monitor::Reaction;
use tavern_core::task::{Status, TaskId, Timestamp};
use tavern_run::readiness::texts;
use tavern_run::record::{Metadata, runs, spent_by_ended};
use tavern_run::watcher_state::Watcher;
use tavern_store::{Board, Entry, Queue, tail_log};
use tavern_sys::clock;

/// Maximum number of rows of each kind in text.
const FEW: usize = 10;

/// Stands for unknown data of a run without files.
const UNKNOWN: &str = "unknown";

/// Prints the numbers from [`gather`].
pub(super) fn print(
    context: &Context,
    board: &Board,
    queues: &[Queue],
    named: &[String],
) -> Result<(), CliError> {
    let stats = gather(board, queues, named)?;
    context.out.record(&Record::Stats(&stats), stats.words())
}

/// Returns the numbers. `named` are the requested queues; if empty, all count, removed ones too.
pub(super) fn gather(board: &Board, queues: &[Queue], named: &[String]) -> Result<Stats, CliError> {
    let now = clock::now();
    let is_meant = |queue: &str| named.is_empty() || queues.iter().any(|meant| meant.id == queue);
    let mut stats = Stats::default();
    let mut entries = tail_log(board, 0)?;
    entries.retain(|entry| entry.queue.as_deref().is_none_or(is_meant));
    let standing = measure(&mut stats, &entries, now);
    stats.watcher = Watcher::of(board);
    // Unreadable queues are reported by the code that shows queues.
    for text in texts(board, queues)
        .0
        .iter()
        .filter(|text| queues.contains(&text.queue))
    {
        let (document, _) = text.content.parse();
        for item in document.items() {
            *stats.depth.entry(item.status.as_str()).or_default() += 1;
            let since = standing
                .of(board, text, &document, item)
                .filter(|_| item.status == Status::Pending);
            let seconds = since.map(|since| (now - since).num_seconds().max(0));
            stats.oldest_pending_seconds = stats.oldest_pending_seconds.max(seconds);
        }
    }
    let kept = runs(board)?;
    kept.iter()
        .filter(|run| is_meant(&run.queue))
        .for_each(|run| stats.add_run(run));
    let kept: HashSet<&str> = kept.iter().map(|run| run.run.as_str()).collect();
    for gone in spent_by_ended(board) {
        if is_meant(&gone.queue) && !kept.contains(gone.run.as_str()) {
            let share = Share {
                usd: gone.usd,
                tokens: gone.tokens,
            };
            stats.add(&gone.task, &gone.agent, UNKNOWN, gone.started, share);
            add_to(&mut stats.spent_by.model, UNKNOWN, share);
        }
    }
    Ok(stats)
}

impl Stats {
    fn add_run(&mut self, run: &Metadata) {
        let usage = &run.usage;
        self.learnings_told += run.knowledge.len();
        self.add(
            &run.task,
            &run.agent,
            &run.role,
            run.started,
            Share {
                usd: usage.usd,
                tokens: usage.fresh(),
            },
        );
        for (model, used) in &usage.models {
            *self.usd_by_model.entry(model.clone()).or_default() += used.usd;
            add_to(
                &mut self.spent_by.model,
                model,
                Share {
                    usd: used.usd,
                    tokens: used.fresh(),
                },
            );
        }
        if usage.models.is_empty() {
            let share = Share {
                usd: usage.usd,
                tokens: usage.fresh(),
            };
            add_to(
                &mut self.spent_by.model,
                run.model.as_deref().unwrap_or(&run.runner),
                share,
            );
        }
    }

    /// Adds the usage of a run, except for its models.
    fn add(&mut self, task: &TaskId, agent: &str, role: &str, started: Timestamp, share: Share) {
        self.runs += 1;
        self.usd += share.usd;
        self.tokens += share.tokens;
        *self.usd_by_agent.entry(agent.to_owned()).or_default() += share.usd;
        add_to(&mut self.spent_by.task, task.as_str(), share);
        add_to(&mut self.spent_by.role, role, share);
        add_to(&mut self.spent_by.day, &clock::day_of(started), share);
    }

    /// Returns a line about findings on runs and about watchers, if there are any.
    fn supervision(&self) -> Option<String> {
        let done = [
            ("nudge", self.nudges),
            ("pause", self.pauses),
            ("restart", self.restarts),
            ("end", self.ends),
        ];
        let mut words: Vec<String> = self
            .diagnoses
            .iter()
            .map(|(symptom, count)| format!("{count} {}", format::word(symptom)))
            .collect();
        words.extend(
            done.into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(what, count)| format::count(count, what)),
        );
        words.extend((self.learnings_told > 0).then(|| {
            format!(
                "{} delivered",
                format::count(self.learnings_told, "learning")
            )
        }));
        if let Some(watcher) = &self.watcher {
            words.push(format::count(
                usize::try_from(watcher.looks).unwrap_or(usize::MAX),
                "look",
            ));
            words.extend(
                (watcher.degraded_seconds > 0)
                    .then(|| format!("{} s degraded", watcher.degraded_seconds)),
            );
        }
        (!words.is_empty()).then(|| format!("\nwatched     {}", words.join(", ")))
    }

    fn words(&self) -> String {
        let time = |seconds: Option<i64>| {
            seconds.map_or("-".to_owned(), |seconds| {
                format::age(Duration::from_secs(seconds.unsigned_abs()))
            })
        };
        let mut depth: Vec<String> = self
            .depth
            .iter()
            .map(|(status, count)| format!("{count} {}", format::word(status)))
            .collect();
        if depth.is_empty() {
            depth.push("no items".to_owned());
        }
        let mut text = format!(
            "depth       {}\noldest      {}\nwait        {} (median)\nwork        {} (median)\nthroughput  {} in the last hour, {} in all\nclaims      {}, {} retries, {}",
            depth.join(", "),
            time(self.oldest_pending_seconds),
            time(self.median_wait_seconds),
            time(self.median_work_seconds),
            self.completed_last_hour,
            self.completed,
            self.claims,
            self.retries,
            format::count(self.dead_letters, "dead letter"),
        );
        text.extend(self.supervision());
        if self.usd <= 0.0 && self.tokens == 0 {
            return text;
        }
        let (money, tokens) = (format::money(self.usd), format::short(self.tokens));
        text.push_str(&format!(
            "\nspent       {money}, {tokens} tokens in {}",
            format::count(self.runs, "run")
        ));
        let SpentBy {
            task,
            role,
            model,
            day,
        } = &self.spent_by;
        let ways = [
            ("task", task),
            ("role", role),
            ("model", model),
            ("day", day),
        ];
        for (way, shares) in ways {
            let mut shares: Vec<(&String, &Share)> = shares.iter().collect();
            if way == "day" {
                shares.reverse();
            } else {
                shares.sort_by(|(_, one), (_, other)| {
                    other
                        .usd
                        .total_cmp(&one.usd)
                        .then_with(|| other.tokens.cmp(&one.tokens))
                });
            }
            for (name, share) in shares.iter().take(FEW) {
                let (usd, tokens) = (format::money(share.usd), format::short(share.tokens));
                text.push_str(&format!(
                    "\n  {way:<6} {usd:>9} {tokens:>7} tokens  {}",
                    format::words(name)
                ));
            }
            if shares.len() > FEW {
                text.push_str(&format!("\n  {way:<6} … and {} more", shares.len() - FEW));
            }
        }
        text
    }
}

fn add_to(shares: &mut BTreeMap<String, Share>, name: &str, share: Share) {
    let sum = shares.entry(name.to_owned()).or_default();
    sum.usd += share.usd;
    sum.tokens += share.tokens;
}

/// Measures waits and work times from the log: an item waits from the event that made it pending to its claim. Returns
/// since when items have their status.
fn measure<'a>(stats: &mut Stats, entries: &'a [Entry], now: Timestamp) -> StandingSince<'a> {
    let mut standing = StandingSince::default();
    let mut claimed: BTreeMap<&TaskId, Timestamp> = BTreeMap::new();
    let (mut waits, mut works) = (Vec::new(), Vec::new());
    for entry in entries {
        let since = standing.pass(entry);
        // Completions by agents and by people count. An item that was first seen as completed has no known time of
        // completion.
        let (from, to) = (entry.from(), entry.to());
        let is_new =
            from.is_some_and(|from| from != Status::Completed) && entry.kind != Kind::Undone;
        let is_completed = is_new && to == Some(Status::Completed);
        if is_completed {
            stats.completed += 1;
            stats.completed_last_hour += usize::from((now - entry.time).num_minutes() < 60);
        }
        let Some(task) = &entry.task else { continue };
        if is_completed {
            works.extend(
                claimed
                    .remove(task)
                    .map(|from| (entry.time - from).num_seconds()),
            );
        }
        match entry.kind {
            Kind::Claimed => {
                stats.claims += 1;
                let since = since.filter(|_| entry.from() == Some(Status::Pending));
                waits.extend(since.map(|from| (entry.time - from).num_seconds()));
                claimed.insert(task, entry.time);
            }
            Kind::Diagnosed => {
                let symptom = entry
                    .symptom
                    .map(|symptom| stats.diagnoses.entry(symptom.as_str()).or_default());
                symptom.into_iter().for_each(|count| *count += 1);
                match entry.deed {
                    Some(Reaction::Nudged(_)) => stats.nudges += 1,
                    Some(Reaction::Paused) => stats.pauses += 1,
                    Some(Reaction::Restarted) => stats.restarts += 1,
                    Some(Reaction::Ended) => stats.ends += 1,
                    Some(Reaction::Noted | Reaction::Notified) | None => {}
                }
            }
            Kind::Failed | Kind::SentBack | Kind::Reaped => {
                stats.retries += usize::from(entry.to() == Some(Status::Pending));
            }
            _ => {}
        }
        stats.dead_letters += usize::from(entry.to() == Some(Status::Dead));
    }
    stats.median_wait_seconds = median(waits);
    stats.median_work_seconds = median(works);
    standing
}

fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
