//! `tavern-status`: queues, items, agents and spending at a glance; one item in full.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::time::Duration;

use chrono::TimeDelta;

use crate::board::document::{Document, Item, parse};
use crate::board::eligible::{DEFAULT_ROLE, Lack, for_roles};
use crate::board::lease::{Freshness, Lease, Life};
use crate::board::steps::Steps;
use crate::board::task::{Mode, Status, Task, TaskId, Timestamp};
use crate::clock;
use crate::config::Config;
use crate::git::Repository;
use crate::process::Bell;
use crate::process::quoted;
use crate::run::expiry::expiries;
use crate::run::readiness::{Readiness, texts};
use crate::run::record::{last_output, runs_of};
use crate::run::unmerged::Unmerged;
use crate::run::{Preflight, Site, run_name};
use crate::store::{AgentState, Archived, Board, Error, NamedItem, Queue, Switch, Text, Then, life, tail_log};

use super::alike::Alike;
use super::moment::moment;
use super::need::{self, tell_of_queues};
use super::strayed::{Strayed, tell_of_tip};
use super::{CliError, Context, Exit, ItemName, Verb, hints, human, left_alone, misread};
use crate::board::need::NeedKind;

mod health;
mod next;
mod record;
mod since;
mod spending;
mod stats;

use next::next;
use record::{Child, Record};
use since::StandingSince;

/// Show queues, items, agents and spending at a glance; or one item in full
#[derive(clap::Args)]
pub struct Args {
    /// Items, by their IDs or lines, such as TODO.md:12; or queues by name or path [default: all queues]
    #[arg(value_name = "ID|QUEUE")]
    pub what: Vec<String>,

    /// List the items, a line each
    #[arg(long, short)]
    pub items: bool,

    /// List only items with this status; may be given several times
    #[arg(long, value_name = "STATUS", value_parser = status_named)]
    pub status: Vec<Status>,

    /// Show depths, ages, waits, run times, throughput, retries and spending
    #[arg(long)]
    pub stats: bool,

    /// Show what each running agent does, how far it is, and whether it gets on
    #[arg(long, conflicts_with = "stats")]
    pub health: bool,

    /// Of an item, show also what its holder is known by: token, lease, mode
    #[arg(long)]
    pub verbose: bool,

    /// Print again whenever the board changes
    #[arg(long, short)]
    pub watch: bool,

    /// Show the state at this time, where you are: `2026-11-22T10:00`, `10:00`, `2h ago`
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with_all = ["watch", "stats", "health"])]
    pub at: Option<Timestamp>,
}

fn status_named(name: &str) -> Result<Status, String> {
    name.parse().map_err(|()| {
        let names = Status::ALL.map(Status::as_str).join(", ");
        format!("unknown status; one of {names}")
    })
}

impl Verb for Args {
    const NAME: &'static str = "tavern-status";
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        // A task file may be looked at anywhere.
        let file = self.what.first().map(|what| match what.parse() {
            Ok(ItemName::Line { queue, .. }) => queue,
            _ => what.clone(),
        });
        let file = file.filter(|file| context.here().join(file).is_file());
        let board = if let Some(file) = file { context.board_or_place(&[file])? } else { context.board()? };
        let tasks = self.tasks(context, &board)?;
        let names: &[String] = if tasks.is_empty() { &self.what } else { &[] };
        if let Some(at) = self.at {
            let then = board.then(at, tasks.first().and_then(NamedItem::id))?;
            let text = format!("as of {}", clock::dated(at));
            context.out.record(&Record::Then { at, log_begins: then.begins }, text)?;
            if let Some(begins) = then.begins {
                context.out.note(format!("the log begins at {}: earlier changes are not known", clock::dated(begins)));
            }
            let queues = context.files(&board.clone().settled()?, names)?;
            for task in &tasks {
                self.one(context, &board, task, Some(&board.then(at, task.id())?))?;
            }
            if tasks.is_empty() {
                self.list(context, &board, then.texts, &queues, None)?;
            }
            return Ok(Exit::Done);
        }
        let bell = Bell::new();
        loop {
            let queues = context.files(&board.clone().settled()?, names)?;
            let watch = self.watch.then(|| board.ring_at_changes(&queues, &bell)).transpose()?;
            let settled = board.clone().settled()?;
            tell_of_queues(context, &settled);
            if tasks.is_empty() {
                left_alone::tell(context, &settled, &queues);
                left_alone::tell_of_marks(context, &settled, &queues);
                misread::tell(context, &settled, &queues);
            }
            tasks.iter().try_for_each(|task| self.one(context, &settled, task, None))?;
            match tasks.is_empty() {
                false => {}
                true if self.health => health::print(context, &settled)?,
                true if self.stats => stats::print(context, &settled, &queues, names)?,
                true => self.all(context, &settled, &queues)?,
            }
            let Some(_watch) = watch else { return Ok(Exit::Done) };
            context.out.text("")?;
            context.out.flush()?;
            bell.wait(Duration::from_secs(30));
        }
    }
}

impl Args {
    /// The items that were named; none where queues were.
    fn tasks(&self, context: &Context, board: &Board) -> Result<Vec<NamedItem>, CliError> {
        if self.what.iter().any(|one| board.queue(one, &context.here()).is_ok()) {
            return Ok(Vec::new());
        }
        let parse = |one: &String| {
            let name: ItemName = one.parse().map_err(|_| {
                let hint = "name an item such as T-k3f9, a queue, or a file";
                CliError::usage(format!("`{one}` is neither an item nor a queue"), hint)
            })?;
            // The log knows items by their IDs.
            if self.at.is_some() { Ok(NamedItem::Id(context.id_of(board, &name)?)) } else { context.item(board, &name) }
        };
        self.what.iter().map(parse).collect()
    }

    fn all(&self, context: &Context, board: &Board, queues: &[Queue]) -> Result<(), CliError> {
        let switched = match board.switch() {
            Switch::On => None,
            Switch::Paused(reason) => Some(("paused", reason)),
            Switch::Stopped(reason) => Some(("stopped", reason)),
        };
        if let Some((state, reason)) = switched {
            let text = format!("the board is {state}: {reason}");
            context.out.record(&Record::Switch { state, reason: &reason }, text)?;
        }
        let (texts, lost) = texts(board, queues);
        for lost in lost.iter().filter(|lost| queues.iter().any(|queue| queue.id == lost.queue)) {
            context.out.note(format!("{}: {}", lost.queue, lost.foremost()));
        }
        // Of settings that can't be read `tavern check` tells.
        let site = context.light_site(board.clone()).ok().map(|site| site.naming(queues));
        let needs = self.list(context, board, texts, queues, site.as_ref())?;
        if !needs.is_empty() {
            context.out.text("waits for you:")?;
        }
        for (record, text) in &needs {
            context.out.record(record, format_args!("  {text}"))?;
        }
        site.iter().try_for_each(|site| spending::print(context, site, queues))?;
        for strayed in Strayed::recent(board)? {
            context.out.record(&Record::Strayed(&strayed), &strayed)?;
        }
        if let Some(site) = &site {
            tell_of_tip(context, site);
        }
        agents(context, board)
    }

    /// The items of `queues`; the other texts are looked at for what items say of each other. What items need here is
    /// looked at only of the present. Gives what waits for a person, as JSON and in words.
    fn list(
        &self,
        context: &Context,
        board: &Board,
        mut texts: Vec<Text>,
        queues: &[Queue],
        site: Option<&Site>,
    ) -> Result<Vec<(Record<'static>, String)>, CliError> {
        let (mut needs, now) = (Vec::new(), clock::now());
        let roles = site.map(|site| site.config.known_roles());
        texts.sort_by_key(|text| queues.iter().position(|queue| *queue == text.queue).unwrap_or(usize::MAX));
        let shown = texts.iter().filter(|text| queues.contains(&text.queue)).count();
        let documents: Vec<Document<'_>> = texts.iter().map(|text| parse(&text.content).0).collect();
        let named: Vec<_> = texts.iter().map(|text| text.queue.id.as_str()).zip(&documents).collect();
        let here = site.map(|site| (site.config.known_roles(), Preflight::of(site)));
        let ids: Vec<&str> = texts.iter().map(|text| text.queue.id.as_str()).collect();
        let readiness = Readiness::of(&named, &ids, Some(board), here);
        let archived = Archived::of(board);
        let of_document = |number: usize| {
            let items = 0..documents[number].items().len();
            items.map(|index| readiness.lacks(number, index, None)).collect()
        };
        let all_lacks: Vec<Vec<Vec<Lack>>> = (0..shown).map(of_document).collect();
        let next = site.map(|site| next(site, &texts, &documents, &all_lacks)).unwrap_or_default();
        // Without a flag the items that somebody may wonder about; a queue of ten thousand stays one screen.
        let is_asked_for = !self.status.is_empty() || self.items;
        let entries = if is_asked_for && site.is_some() { tail_log(board, 0)? } else { Vec::new() };
        let standing = site.filter(|_| is_asked_for).map(|_| StandingSince::after(&entries));
        for (number, document) in documents[..shown].iter().enumerate() {
            let queue = &texts[number].queue;
            let counts = document.counts();
            let items = || document.items().iter().enumerate();
            let quarantined = items().filter(|(index, _)| readiness.is_faulty(number, *index)).count();
            let lacks = &all_lacks[number];
            let unfit = lacks.iter().filter(|lacks| lacks.iter().any(Lack::is_of_settings)).count();
            let archived = archived.count(queue);
            let items_by_status = counts.iter().copied().collect();
            let record = Record::Queue { queue: &queue.id, items: items_by_status, quarantined, unfit, archived };
            let mut words: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
            if words.is_empty() {
                words.push(format!("no items; add one: tavern add --queue {} \"…\"", quoted(&queue.id)));
            }
            if archived > 0 {
                words.push(format!("{archived} archived"));
            }
            if quarantined > 0 {
                words.push(format!("{quarantined} with problems: tavern check"));
            }
            if unfit > 0 {
                words.push(format!("{unfit} that no configured agent can take: tavern check"));
            }
            context.out.record(&record, format!("{}: {}", queue.id, words.join(", ")))?;
            let name_of = |item: &Item<'_>| {
                item.id.as_ref().map_or_else(|| format!("{}:{}", queue.id, item.line), ToString::to_string)
            };
            let width = items().map(|(_, item)| name_of(item).chars().count()).max().unwrap_or_default().max(8);
            let (mut alike, apart) = (Alike::default(), LazyCell::new(|| document.apart()));
            for (index, item) in items() {
                let (line, task) = (item.line, item.id.as_ref());
                if let Some(need) = need::of(&lacks[index], task, &queue.id) {
                    let text = need::sentence(&format!("{}:{line}", queue.id), task, &need);
                    let record = Record::Need { queue: queue.id.clone(), line, task: task.cloned(), need };
                    needs.push((record, text));
                }
                // What a person has to do is told of below.
                let is_told = |lack: &&Lack| lack.is_stuck() && NeedKind::of(lack).is_none() || is_dead(lack);
                let lack = lacks[index].iter().find(is_told);
                let is_faulty = readiness.is_faulty(number, index);
                let is_unfit = lack.is_some_and(Lack::is_of_settings);
                let is_usual =
                    matches!(item.status, Status::Pending | Status::Draft | Status::Completed | Status::Cancelled);
                let due = item.due.filter(|due| !item.status.is_ended() && *due - now < NEAR);
                let is_shown = match self.status.as_slice() {
                    // What an item waits for is listed by itself.
                    [] if is_usual && !is_asked_for => {
                        due.is_some()
                            || lack
                                .is_some_and(|lack| !is_unfit && !is_faulty && !matches!(lack, Lack::Dependencies(_)))
                    }
                    statuses => statuses.is_empty() || statuses.contains(&item.status),
                };
                if !is_shown {
                    continue;
                }
                let titled = roles.as_ref().map_or(Cow::Borrowed(item), |roles| for_roles(document, item, roles));
                let title = document.title(&titled);
                // Of an item without keys there is nothing to read.
                let read = task.filter(|_| item.metadata.is_some() || item.block.is_some());
                let mode = read.map_or(Mode::Execute, |id| document.task(item, id.clone()).mode());
                let reason = || read.and_then(|id| document.task(item, id.clone()).reason().map(str::to_owned));
                let not_ready = lack.map(|lack| match reason().filter(|_| is_dead(lack)) {
                    Some(reason) => format!("{reason}; {}", hints::lack(lack, task, None).unwrap_or_default()),
                    None => hints::sentence(lack, task, Some(&queue.id)),
                });
                let may_be_taken = matches!(item.status, Status::Pending | Status::InReview | Status::Waiting);
                let ready = site.is_some() && may_be_taken && lacks[index].is_empty();
                let waits = lacks[index].first().filter(|_| may_be_taken && not_ready.is_none());
                let waits_for = waits.map(hints::lacking);
                let next_for = next.get(&(number, index)).map(String::as_str);
                let since = standing.as_ref().and_then(|standing| standing.of(board, &texts[number], document, item));
                let steps = Steps::of(&document.description(item));
                let how_far = steps.as_ref().filter(|steps| !steps.open.is_empty()).map(Steps::to_string);
                let record = Record::Item {
                    queue: &queue.id,
                    line,
                    task,
                    status: item.status,
                    priority: item.priority,
                    title,
                    due: item.due,
                    quarantined: is_faulty,
                    since,
                    ready,
                    next_for,
                    waits_for: waits_for.as_deref(),
                    not_ready: not_ready.as_deref(),
                    mode,
                    steps,
                };
                let said = not_ready.as_ref().filter(|_| is_usual && !is_asked_for && due.is_none());
                if said.is_some_and(|why| !alike.shows(&format!("{}, {why}", item.status), task)) {
                    context.out.json(&record)?;
                    continue;
                }
                let why = not_ready.as_ref().or(waits_for.as_ref().filter(|_| is_asked_for));
                let mark = match (why, mode) {
                    _ if is_faulty => "has a problem".to_owned(),
                    _ if is_unfit => "no agent can take it".to_owned(),
                    (Some(why), _) => human::words(why).into_owned(),
                    _ if is_asked_for && next_for == Some(DEFAULT_ROLE) => "next".to_owned(),
                    _ if let (true, Some(role)) = (is_asked_for, next_for) => format!("next for {role}"),
                    _ if is_asked_for && ready => "ready".to_owned(),
                    (None, Mode::Execute) => String::new(),
                    (None, mode) => mode.to_string(),
                };
                let mut columns = format!("  {:<width$} {:<11} ", name_of(item), item.status);
                if standing.is_some() {
                    let age = since.map(|since| human::age((clock::now() - since).to_std().unwrap_or_default()));
                    columns.push_str(&format!("p{} {:>3} ", item.priority, age.as_deref().unwrap_or("-")));
                }
                let due = due.map(|due| when_due(due, now));
                let marks: Vec<String> =
                    due.into_iter().chain(how_far).chain(Some(mark).filter(|mark| !mark.is_empty())).collect();
                let listed = apart.get(&index).map_or(title.into(), |above| format!("{above}{title}"));
                context.out.row(&record, &columns, &listed, &marks.join("; "))?;
            }
            alike.left_out().try_for_each(|text| context.out.text(format_args!("  {text}")))?;
        }
        Ok(needs)
    }

    /// The item as it is, or as it was.
    fn one(&self, context: &Context, board: &Board, name: &NamedItem, then: Option<&Then>) -> Result<(), CliError> {
        let find = |id: &TaskId| match then {
            None => board.task(id),
            Some(then) => then.find(id).ok_or_else(|| Error::NoTask(id.clone())),
        };
        let found = match name.id().filter(|_| then.is_some()) {
            Some(id) => find(id)?,
            None => board.named(name)?,
        };
        let (task, lease, id) = (&found.task, found.lease.as_ref(), &found.task.id);
        let now = then.map_or_else(clock::now, |then| then.at);
        let mut runs = runs_of(board, id)?;
        if let Some(then) = then {
            runs.retain(|run| run.started <= then.at);
            for run in runs.iter_mut().filter(|run| run.ended.is_some_and(|ended| ended > then.at)) {
                (run.ended, run.outcome, run.reason, run.commit, run.verified, run.question) = Default::default();
            }
        }
        // The log has no heartbeats.
        let work = lease.filter(|_| then.is_none()).and_then(|lease| lease.work.as_ref());
        let last_output = work.and_then(|work| last_output(board, &work.run));
        let seen = |lease: &Lease| Freshness::of(last_output.unwrap_or(lease.heartbeat_at), now);
        let freshness = lease.filter(|_| then.is_none()).map(seen);
        let kept = if then.is_some() { Vec::new() } else { kept(board, task) };
        let children = then.map_or_else(|| board.children(id), |then| then.children(id)).into_iter();
        let children: Vec<Child> = children
            .map(|task| Child { status: task.status(), task: task.id, title: task.title, on_failure: task.on_failure })
            .collect();
        // There is nothing to be done in the past.
        let lacks = if then.is_none() { need::lacks(context, board, name, &found.queue) } else { Vec::new() };
        let to_do = lacks.iter().find_map(|lack| hints::lack(lack, name.id(), Some(&found.queue.id)));
        let steps = Steps::of(&task.description);
        let record = Record::Full {
            steps: steps.as_ref(),
            to_do,
            kept: &kept,
            children: &children,
            task,
            queue: &found.queue.id,
            line: found.line,
            lease,
            expires_at: lease.map(Lease::expires_at),
            freshness,
            last_output,
            runs: &runs,
        };
        let shown = name.id().map_or_else(|| found.place(), TaskId::to_string);
        let mut text = format!("{shown} {}\n", human::title(&task.title));
        let mut row = |name: &str, value: String| text.push_str(&format!("  {name:<11} {}\n", human::one_line(&value)));
        row("status", task.status().to_string());
        row("queue", format!("{}, line {}", found.queue.id, found.line));
        steps.iter().for_each(|steps| row("steps", steps.to_string()));
        task.role.iter().filter(|role| *role != DEFAULT_ROLE).for_each(|role| row("role", role.clone()));
        task.reason().iter().for_each(|reason| row("reason", (*reason).to_owned()));
        task.trigger.iter().for_each(|trigger| row("woken by", trigger.clone()));
        // The queue has the beginning of a long one.
        let asked = || runs.iter().rev().find_map(|run| run.question.clone());
        let line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        task.question().iter().for_each(|question| {
            let whole = asked().map(line).filter(|whole| whole.starts_with(question.trim_end_matches('…')));
            row("asks", whole.unwrap_or_else(|| (*question).to_owned()));
        });
        if self.verbose && task.mode() != Mode::Execute {
            row("mode", task.mode().to_string());
        }
        let known =
            |id: &TaskId| find(id).map_or_else(|_| "unknown".to_owned(), |found| found.task.status().to_string());
        task.parent.iter().for_each(|parent| row("parent", format!("{parent} ({})", known(parent))));
        for child in &children {
            row("child", format!("{} ({}): {}", child.task, child.status, human::title(&child.title)));
        }
        task.author().iter().for_each(|author| row("author", (*author).to_owned()));
        task.approvals().iter().for_each(|approval| row("approved by", approval.to_string()));
        let reviewers = Config::load(board.dir()).unwrap_or_default().review;
        let open = task.open_reviews(&task.reviewers(&reviewers));
        if matches!(task.status(), Status::InReview | Status::Reviewing) && !open.is_empty() {
            row("waits for", open.join(", "));
        }
        if task.state.rounds > 0 {
            row("rejected", human::count(task.state.rounds as usize, "time"));
        }
        if let Some(lease) = lease {
            row("held by", format!("{} ({}), attempt {}", lease.agent, lease.role, lease.attempt));
            if self.verbose {
                let end = clock::shown(lease.expires_at());
                row("lease", format!("token {}, until {end} if nobody renews it", lease.token));
            }
        }
        if let (None, Some(agent)) = (lease, task.state.holder().and_then(|holder| holder.agent.as_deref())) {
            row("held by", format!("{agent}, not in this clone; to take it: tavern release {} --force", task.id));
        }
        let ago = |at: Timestamp| format!("{} ago", human::age((now - at).to_std().unwrap_or_default()));
        if let (Some(lease), Some(freshness)) = (lease, freshness) {
            let words = match freshness {
                Freshness::Fresh => "fresh",
                Freshness::Stale => "stale",
                Freshness::VeryStale => "very stale",
            };
            let beat = ago(lease.heartbeat_at);
            row("heartbeat", if last_output.is_some() { beat } else { format!("{beat} ({words})") });
            last_output.iter().for_each(|at| row("last output", format!("{} ({words})", ago(*at))));
        }
        if task.state.attempt > 0 {
            row("attempts", task.state.attempt.to_string());
        }
        for dependency in &task.after {
            row("after", format!("{dependency} ({})", known(dependency)));
        }
        task.due.iter().for_each(|due| row("due", clock::shown(*due) + if *due < now { " (passed)" } else { "" }));
        task.state.not_before().iter().for_each(|until| row("not before", clock::shown(*until)));
        let waits = task.status() == Status::Waiting && then.is_none();
        let site = context.light_site(board.clone()).ok().filter(|_| waits);
        for end in site.iter().flat_map(|site| expiries(site).unwrap_or_default()).filter(|end| end.task == *id) {
            row("waits until", format!("{}, then it is dead", clock::shown(end.at)));
        }
        task.commit().iter().for_each(|commit| row("commit", (*commit).to_owned()));
        task.done_when.iter().for_each(|command| row("done when", command.clone()));
        for run in &runs {
            let outcome = run.outcome.map_or("running", crate::runner::Outcome::as_str);
            row("run", format!("{} {outcome}: {}", run.run, run.reason.as_deref().unwrap_or_default()));
        }
        if !kept.is_empty() || task.commit().is_some() {
            let places = if kept.is_empty() { String::new() } else { format!(" ({})", kept.join(", ")) };
            row("its work", format!("tavern diff {}{places}", task.id));
        }
        let (id, queue) = (name.id(), Some(found.queue.id.as_str()));
        for lack in &lacks {
            match (NeedKind::of(lack), lack) {
                (None, Lack::Problem { .. }) => row("problem", hints::sentence(lack, id, queue)),
                (Some(_), _) | (None, Lack::Status(_)) => {
                    row("to do", hints::lack(lack, id, queue).unwrap_or_default());
                }
                // What it comes after stands above.
                (None, Lack::Dependencies(_)) if !lack.is_stuck() => {}
                _ => row("not ready", hints::sentence(lack, id, queue)),
            }
        }
        if task.answered().is_some() && lacks.is_empty() && then.is_none() {
            row("answered", "the next free agent goes on with it".to_owned());
        }
        if task.status() == Status::InReview && lacks.is_empty() && then.is_none() {
            row("to do", hints::lack(&Lack::Approval, id, queue).unwrap_or_default());
        }
        if id.is_some() {
            return context.out.record(&record, text.trim_end());
        }
        let mut json = serde_json::to_value(&record)?;
        json["id"] = serde_json::Value::Null;
        context.out.record(&json, text.trim_end())
    }
}

/// Only a person brings it back.
fn is_dead(lack: &Lack) -> bool {
    matches!(lack, Lack::Status(Status::Dead))
}

/// An item that is due so soon is told of.
const NEAR: TimeDelta = TimeDelta::days(1);

fn when_due(due: Timestamp, now: Timestamp) -> String {
    format!("{} {}", if due < now { "was due" } else { "due" }, clock::shown(due))
}

fn agents(context: &Context, board: &Board) -> Result<(), CliError> {
    let now = clock::now();
    for agent in board.agents() {
        // While it works, its lease is what it renews.
        let lease = agent.task.as_ref().and_then(|task| board.lease(task).ok().flatten());
        let lease = lease.filter(|lease| agent.run == Some(run_name(&lease.task, lease.token)));
        let heartbeat_at = lease.map_or(agent.heartbeat_at, |lease| lease.heartbeat_at.max(agent.heartbeat_at));
        let last_output = agent.run.as_ref().and_then(|run| last_output(board, run));
        let freshness = Freshness::of(last_output.unwrap_or(heartbeat_at), now);
        let alive = life(&agent.holder) != Life::Gone;
        let mode = agent.task.as_ref().and_then(|task| Some(board.task(task).ok()?.task.mode()));
        let record = Record::Agent { heartbeat_at, freshness, alive, last_output, mode, agent: &agent };
        let state = match agent.state {
            _ if !alive => "gone",
            AgentState::Working => mode.filter(|mode| *mode != Mode::Execute).map_or("working", Mode::as_str),
            AgentState::Waiting => "waiting",
        };
        let task = agent.task.as_ref().map_or("-", TaskId::as_str);
        let columns = format!("{:<10} {state:<8} {task:<8} ", agent.name);
        let ago = |at: Timestamp| human::age((now - at).to_std().unwrap_or_default());
        let program = last_output.map(|at| format!(", its program {} ago", ago(at))).unwrap_or_default();
        let is_at_work = agent.state == AgentState::Working;
        let seen = if is_at_work { format!("seen {} ago{program}", ago(heartbeat_at)) } else { String::new() };
        context.out.row(&record, &columns, agent.doing.as_deref().unwrap_or_default(), &seen)?;
    }
    for (runner, quota) in board.quotas(now) {
        context.out.record(&Record::Quota { runner: &runner, quota: &quota }, quota.told_of(&runner))?;
    }
    Ok(())
}

/// Where work on an item is that is not merged. A display only: it needs no settings that can be read.
fn kept(board: &Board, task: &Task) -> Vec<String> {
    let integration = Config::load(board.dir()).unwrap_or_default().integration.branch;
    let Ok(repository) = Repository::discover(board.root()) else { return Vec::new() };
    Unmerged::of(&repository, &integration).of_item(board, task)
}
