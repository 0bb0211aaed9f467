//! `tavern-status --since`: current needs for a person, and since a time: ended items and their cost.

use std::collections::BTreeMap;

use super::record::{DigestSums, ItemEnd, Record};
use crate::overview::listing::{Listing, WantedItems};
use crate::overview::queue_read::QueueRead;
use crate::{CliError, Context, format, hints};
use tavern_core::document::title_of;
use tavern_core::eligible::Lack;
use tavern_core::task::{Status, TaskId, Timestamp};
use tavern_run::readiness::texts;
use tavern_run::record::{Metadata, runs};
use tavern_store::{Board, Entry, Queue, walk_log};
use tavern_sys::clock;

pub(super) fn print(
    context: &Context,
    board: &Board,
    queues: &[Queue],
    since: Timestamp,
) -> Result<(), CliError> {
    let is_meant = |queue: Option<&str>| {
        queue.is_none_or(|queue| queues.iter().any(|meant| meant.id == queue))
    };
    let workspace = context
        .light_site(board.clone())
        .ok()
        .map(|workspace| workspace.naming(queues));
    let (texts, _) = texts(board, queues);
    let read = QueueRead::all(&texts);
    let needs = Listing::gather(
        board,
        &read,
        queues,
        workspace.as_ref(),
        WantedItems::Unusual,
    )?
    .needs;
    let mut ended = ended_since(board, since)?;
    ended.retain(|item| is_meant(item.queue.as_deref()));
    let mut counts = BTreeMap::new();
    ended
        .iter()
        .for_each(|item| *counts.entry(item.status.as_str()).or_default() += 1);
    let mut runs = runs(board)?;
    // The agent that merged an item is not the one that worked it.
    for item in &mut ended {
        let last = runs
            .iter()
            .rfind(|run| Some(&run.task) == item.task.as_ref());
        item.agent = last.map(|run| run.agent.clone()).or(item.agent.take());
    }
    runs.retain(|run| run.ended.is_some_and(|at| at >= since) && is_meant(Some(&run.queue)));
    let digest = DigestSums {
        since,
        needs: needs.len(),
        ended: counts,
        runs: runs.len(),
        usd: runs.iter().map(|run| run.usage.usd).sum(),
        tokens: runs.iter().map(|run| run.usage.fresh()).sum(),
    };
    context
        .out
        .record(&Record::Digest(&digest), digest.words())?;
    if !needs.is_empty() {
        context.out.text("waits for you:")?;
    }
    for need in &needs {
        context
            .out
            .record(&Record::Need(need), format_args!("  {}", need.words()))?;
    }
    for status in [Status::Dead, Status::Completed, Status::Cancelled] {
        let such: Vec<&ItemEnd> = ended.iter().filter(|item| item.status == status).collect();
        if !such.is_empty() {
            context.out.text(format_args!("{status}:"))?;
        }
        for item in such {
            let name = item.task.as_ref().map_or("-", TaskId::as_str);
            let columns = format!("  {name:<10} {} ", clock::brief(item.at));
            let why = item.why.as_ref().map(|why| format::words(why).into_owned());
            let todo = hints::lack(&Lack::Status(status), item.task.as_ref(), None);
            let mark = match status {
                Status::Dead => why.into_iter().chain(todo).collect::<Vec<_>>().join("; "),
                _ => item.cost(&runs).unwrap_or_default(),
            };
            context
                .out
                .row(&Record::Ended(item), &columns, &item.title, &mark)?;
        }
    }
    Ok(())
}

impl DigestSums {
    fn words(&self) -> String {
        let ended = self
            .ended
            .iter()
            .map(|(status, count)| format!("{count} {}", format::word(status)));
        let mut words: Vec<String> = ended.collect();
        if words.is_empty() {
            words.push("nothing has ended".to_owned());
        }
        let mut spent = format::count(self.runs, "run");
        if self.usd > 0.0 || self.tokens > 0 {
            spent += &format!(
                ", {}, {} tokens",
                format::money(self.usd),
                format::short(self.tokens)
            );
        }
        format!(
            "since {}: {}; {spent}",
            clock::dated(self.since),
            words.join(", ")
        )
    }
}

impl ItemEnd {
    /// Returns the item's end from the event that ended it.
    fn of(entry: Entry, status: Status) -> ItemEnd {
        let title = entry.change.after().and_then(title_of);
        ItemEnd {
            queue: entry.queue,
            task: entry.task,
            title: title.unwrap_or_default(),
            status,
            at: entry.time,
            agent: entry.agent,
            why: entry.cause,
        }
    }

    /// Returns the agent that worked on it, and the cost.
    fn cost(&self, runs: &[Metadata]) -> Option<String> {
        let own = || {
            runs.iter()
                .filter(|run| Some(&run.task) == self.task.as_ref())
        };
        let usd: f64 = own().map(|run| run.usage.usd).sum();
        let money = (usd > 0.0).then(|| format::money(usd));
        let who = self.agent.clone();
        Some(who.into_iter().chain(money).collect::<Vec<_>>().join(", "))
            .filter(|words| !words.is_empty())
    }
}

/// Returns the last status change of each item since then, if it ended the item; the oldest first.
fn ended_since(board: &Board, since: Timestamp) -> Result<Vec<ItemEnd>, CliError> {
    let mut last: BTreeMap<String, Option<ItemEnd>> = BTreeMap::new();
    walk_log(board, None, &mut |entry| {
        if entry.time < since {
            return false;
        }
        // An item that was first seen as ended has not ended since.
        let moved = entry.from().zip(entry.to()).filter(|(from, to)| from != to);
        let name = entry.task.as_ref().map(|id| id.as_str().to_owned());
        let name = name.or_else(|| entry.change.after().map(str::to_owned));
        if let (Some((_, to)), Some(name)) = (moved, name) {
            last.entry(name)
                .or_insert_with(|| to.is_ended().then(|| ItemEnd::of(entry, to)));
        }
        true
    })?;
    let mut ended: Vec<ItemEnd> = last.into_values().flatten().collect();
    ended.sort_by_key(|item| item.at);
    Ok(ended)
}
