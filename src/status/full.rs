//! One item in full, as rows.

use std::fmt::Display;

use crate::{CliError, Context, format, hints, needs};
use tavern_core::eligible::{DEFAULT_ROLE, Lack};
use tavern_core::event::Kind;
use tavern_core::front::DEFAULT_PRIORITY;
use tavern_core::lease::{Freshness, Lease};
use tavern_core::need::NeedKind;
use tavern_core::problem::listed;
use tavern_core::steps::Steps;
use tavern_core::task::{Expected, Mode, Status, Task, TaskId, Timestamp};
use tavern_run::artifacts::Artifacts;
use tavern_run::record::{Metadata, last_output, runs_of};
use tavern_run::runner::signal::without_signal;
use tavern_run::unmerged_work::kept;
use tavern_run::wait_expiry::expiries;
use tavern_store::config::Config;
use tavern_store::{Board, Error, Found, NamedItem, Then, walk_log};
use tavern_sys::clock;

use super::record::{Child, Record};

/// How much of an item is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    Usual,
    /// Also the data that identify its holder: token, lease, mode.
    All,
}

/// Prints the item as it is, or as it was.
pub(super) fn print(
    context: &Context,
    board: &Board,
    name: &NamedItem,
    then: Option<&Then>,
    detail: Detail,
) -> Result<(), CliError> {
    tell(context, board, name, then, detail, &mut |record, text| {
        if name.id().is_some() {
            return context.out.record(record, text);
        }
        let mut json = serde_json::to_value(record)?;
        json["id"] = serde_json::Value::Null;
        context.out.record(&json, text)
    })
}

/// Returns the item as it is now, in words.
pub fn words(context: &Context, board: &Board, name: &NamedItem) -> Result<String, CliError> {
    let mut words = String::new();
    tell(context, board, name, None, Detail::Usual, &mut |_, text| {
        text.clone_into(&mut words);
        Ok(())
    })?;
    Ok(words)
}

fn tell(
    context: &Context,
    board: &Board,
    name: &NamedItem,
    then: Option<&Then>,
    detail: Detail,
    told: &mut dyn FnMut(&Record<'_>, &str) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let full = FullItem::gather(context, board, name, then, detail)?;
    let steps = Steps::of(&full.found.task.description);
    told(
        &full.record(steps.as_ref()),
        full.text(steps.as_ref()).trim_end(),
    )
}

/// All data of one item.
struct FullItem<'a> {
    context: &'a Context,
    board: &'a Board,
    name: &'a NamedItem,
    /// The past, if requested. It has nothing to be done, and the log has no heartbeats.
    then: Option<&'a Then>,
    detail: Detail,
    now: Timestamp,
    found: Found,
    runs: Vec<Metadata>,
    last_output: Option<Timestamp>,
    freshness: Option<Freshness>,
    /// Places of its unmerged work.
    kept: Vec<String>,
    children: Vec<Child>,
    lacks: Vec<Lack>,
}

impl<'a> FullItem<'a> {
    fn gather(
        context: &'a Context,
        board: &'a Board,
        name: &'a NamedItem,
        then: Option<&'a Then>,
        detail: Detail,
    ) -> Result<FullItem<'a>, CliError> {
        let found = match (name.id(), then) {
            (Some(id), Some(then)) => then.find(id).ok_or_else(|| Error::NoTask(id.clone()))?,
            _ => board.named(name)?,
        };
        let (task, now) = (&found.task, then.map_or_else(clock::now, |then| then.at));
        let children = then
            .map_or_else(|| board.children(&task.id), |then| then.children(&task.id))
            .into_iter();
        let children = children.map(|task| Child {
            status: task.status(),
            task: task.id,
            title: task.title,
            on_failure: task.on_failure,
        });
        let mut full = FullItem {
            context,
            board,
            name,
            then,
            detail,
            now,
            runs: runs_of(board, &task.id)?,
            last_output: None,
            freshness: None,
            kept: Vec::new(),
            children: children.collect(),
            lacks: Vec::new(),
            found,
        };
        match then {
            Some(then) => full.take_back(then.at),
            None => full.look(),
        }
        Ok(full)
    }

    /// Reduces its runs to the data known at `at`.
    fn take_back(&mut self, at: Timestamp) {
        self.runs.retain(|run| run.started <= at);
        for run in self
            .runs
            .iter_mut()
            .filter(|run| run.ended.is_some_and(|ended| ended > at))
        {
            (
                run.ended,
                run.outcome,
                run.reason,
                run.commit,
                run.verified,
                run.question,
            ) = Default::default();
        }
    }

    /// Reads data that exist only for the present.
    fn look(&mut self) {
        if let Some(lease) = &self.found.lease {
            let work = lease.work.as_ref();
            self.last_output = work.and_then(|work| last_output(self.board, &work.run));
            let seen = self.last_output.unwrap_or(lease.heartbeat_at);
            self.freshness = Some(Freshness::of(seen, self.now));
        }
        self.kept = kept(self.board, |kept| {
            kept.of_item(self.board, &self.found.task)
        });
        self.lacks = needs::lacks(self.context, self.board, self.name, &self.found.queue);
    }

    fn record<'r>(&'r self, steps: Option<&'r Steps>) -> Record<'r> {
        let (found, lease) = (&self.found, self.found.lease.as_ref());
        let queue = Some(found.queue.id.as_str());
        Record::Full {
            steps,
            to_do: self
                .lacks
                .iter()
                .find_map(|lack| hints::lack(lack, self.name.id(), queue)),
            kept: &self.kept,
            children: &self.children,
            task: &found.task,
            queue: &found.queue.id,
            line: found.line,
            lease,
            expires_at: lease.map(Lease::expires_at),
            freshness: self.freshness,
            last_output: self.last_output,
            runs: &self.runs,
        }
    }

    fn text(&self, steps: Option<&Steps>) -> String {
        let (task, name) = (&self.found.task, self.name);
        let config = Config::load(self.board.dir()).unwrap_or_default();
        let shown = name
            .id()
            .map_or_else(|| self.found.place(), TaskId::to_string);
        let mut rows = Rows(format!("{shown} {}\n", format::title(&task.title)));
        self.tell_words(&mut rows, steps);
        self.tell_family(&mut rows);
        self.tell_reviews(&mut rows, &config);
        self.tell_holder(&mut rows);
        self.tell_times(&mut rows);
        self.tell_work(&mut rows);
        self.tell_lacks(&mut rows);
        rows.beneath("text", &task.description);
        if self.then.is_none() {
            rows.beneath("rejected", &findings(self.board, task));
            rows.beneath("answer", &answer(self.board, &config, task, &self.runs));
        }
        rows.0
    }

    /// Adds its status and the values of its keys.
    fn tell_words(&self, rows: &mut Rows, steps: Option<&Steps>) {
        let (found, task) = (&self.found, &self.found.task);
        rows.add("status", task.status());
        rows.add("queue", format!("{}, line {}", found.queue.id, found.line));
        rows.add_some("steps", steps);
        let role = task.role.as_ref();
        rows.add_some("role", role.filter(|role| *role != DEFAULT_ROLE));
        rows.add_some(
            "priority",
            Some(task.priority).filter(|priority| *priority != DEFAULT_PRIORITY),
        );
        let tags = Some(listed(&task.tags)).filter(|tags| !tags.is_empty());
        rows.add_some("tags", tags);
        rows.add_some("reason", task.reason());
        rows.add_some("woken by", task.trigger.as_ref());
        if let Some(question) = task.question() {
            // The queue has only the beginning of a long question.
            let asked = self.runs.iter().rev().find_map(|run| run.question.as_ref());
            let whole = asked
                .map(|asked| asked.split_whitespace().collect::<Vec<_>>().join(" "))
                .filter(|whole| whole.starts_with(question.trim_end_matches('…')));
            rows.add("asks", whole.as_deref().unwrap_or(question));
        }
        if self.detail == Detail::All && task.mode() != Mode::Execute {
            rows.add("mode", task.mode());
        }
    }

    /// Returns the status of another item.
    fn known(&self, id: &TaskId) -> String {
        let found = match self.then {
            None => self.board.task(id).ok(),
            Some(then) => then.find(id),
        };
        found.map_or_else(
            || "unknown".to_owned(),
            |found| found.task.status().to_string(),
        )
    }

    /// Adds its parent and its children.
    fn tell_family(&self, rows: &mut Rows) {
        let task = &self.found.task;
        if let Some(parent) = &task.parent {
            rows.add("parent", format!("{parent} ({})", self.known(parent)));
        }
        for child in &self.children {
            let title = format::title(&child.title);
            rows.add(
                "child",
                format!("{} ({}): {title}", child.task, child.status),
            );
        }
        rows.add_some("author", task.author());
    }

    fn tell_reviews(&self, rows: &mut Rows, config: &Config) {
        let task = &self.found.task;
        for approval in task.approvals() {
            rows.add("approved by", approval);
        }
        let open = task.open_reviews(&task.reviewers(&config.review));
        if matches!(task.status(), Status::InReview | Status::Reviewing) && !open.is_empty() {
            rows.add("waits for", open.join(", "));
        }
        if task.state.rounds > 0 {
            rows.add(
                "rejected",
                format::count(task.state.rounds as usize, "time"),
            );
        }
    }

    /// Adds its holder, and the last sign of life.
    fn tell_holder(&self, rows: &mut Rows) {
        let task = &self.found.task;
        let Some(lease) = &self.found.lease else {
            let holder = task.state.holder();
            if let Some(agent) = holder.and_then(|holder| holder.agent.as_deref()) {
                let words = "not in this clone; to take it: tavern release";
                rows.add("held by", format!("{agent}, {words} {} --force", task.id));
            }
            return;
        };
        let (agent, role, attempt) = (&lease.agent, &lease.role, lease.attempt);
        rows.add("held by", format!("{agent} ({role}), attempt {attempt}"));
        if self.detail == Detail::All {
            let end = clock::shown(lease.expires_at());
            rows.add(
                "lease",
                format!("token {}, until {end} unless renewed", lease.token),
            );
        }
        let Some(freshness) = self.freshness else {
            return;
        };
        let words = match freshness {
            Freshness::Fresh => "fresh",
            Freshness::Stale => "stale",
            Freshness::VeryStale => "very stale",
        };
        let ago = |at: Timestamp| {
            let age = (self.now - at).to_std().unwrap_or_default();
            format!("{} ago", format::age(age))
        };
        let beat = ago(lease.heartbeat_at);
        match self.last_output {
            Some(at) => {
                rows.add("heartbeat", beat);
                rows.add("last output", format!("{} ({words})", ago(at)));
            }
            None => rows.add("heartbeat", format!("{beat} ({words})")),
        }
    }

    /// Returns the items that it waits for by their titles or headings, with their statuses.
    fn named_dependencies(&self) -> Vec<(String, Status)> {
        let Ok(text) = self.board.read(&self.found.queue) else {
            return Vec::new();
        };
        let (document, _) = text.content.parse();
        let item = document
            .items()
            .iter()
            .find(|item| item.line == self.found.line);
        let named = item.and_then(|item| document.named_by(item).ok());
        let named = named.unwrap_or_default().into_iter();
        named
            .map(|at| document.item(at))
            .map(|item| (document.called(item), item.status))
            .collect()
    }

    /// Adds its attempts, its dependencies and its times.
    fn tell_times(&self, rows: &mut Rows) {
        let task = &self.found.task;
        if task.state.attempt > 0 {
            rows.add("attempts", task.state.attempt);
        }
        for dependency in &task.after {
            rows.add(
                "after",
                format!("{dependency} ({})", self.known(dependency)),
            );
        }
        for (name, status) in self.named_dependencies() {
            rows.add("after", format!("{name} ({status})"));
        }
        if let Some(due) = task.due {
            let passed = if due < self.now { " (passed)" } else { "" };
            rows.add("due", clock::shown(due) + passed);
        }
        rows.add_some("not before", task.state.not_before().map(clock::shown));
        if task.status() == Status::Waiting && self.then.is_none() {
            let workspace = self.context.light_site(self.board.clone()).ok();
            let ends = workspace.and_then(|workspace| expiries(&workspace).ok());
            let ends = ends.into_iter().flatten();
            for end in ends.filter(|end| end.task == task.id) {
                let at = clock::shown(end.at);
                rows.add("waits until", format!("{at}, then it is dead"));
            }
        }
    }

    /// Adds its runs, and the places of its work.
    fn tell_work(&self, rows: &mut Rows) {
        let task = &self.found.task;
        rows.add_some("commit", task.commit());
        for command in &task.done_when {
            rows.add("done when", command);
        }
        for run in &self.runs {
            let reason = run.reason.as_deref().unwrap_or_default();
            rows.add("run", format!("{} {}: {reason}", run.run, run.state()));
        }
        let usd: f64 = self.runs.iter().map(|run| run.usage.usd).sum();
        if usd > 0.0 {
            rows.add("cost", format::money(usd));
        }
        if !self.kept.is_empty() || task.commit().is_some() {
            let places = if self.kept.is_empty() {
                String::new()
            } else {
                format!(" ({})", self.kept.join(", "))
            };
            rows.add("its work", format!("tavern diff {}{places}", task.id));
        }
    }

    /// Adds the things it lacks, with commands to type.
    fn tell_lacks(&self, rows: &mut Rows) {
        let task = &self.found.task;
        let (id, queue) = (self.name.id(), Some(self.found.queue.id.as_str()));
        let to_do = |lack: &Lack| hints::lack(lack, id, queue).unwrap_or_default();
        for lack in &self.lacks {
            match (NeedKind::of(lack), lack) {
                (None, Lack::Problem { .. }) => {
                    rows.add("problem", hints::sentence(lack, id, queue));
                }
                (Some(_), _) | (None, Lack::Status(_)) => rows.add("to do", to_do(lack)),
                // Dependencies are shown above.
                (None, Lack::Dependencies(_)) if !lack.is_stuck() => {}
                _ => rows.add("not ready", hints::sentence(lack, id, queue)),
            }
        }
        if !self.lacks.is_empty() || self.then.is_some() {
            return;
        }
        if task.answered().is_some() {
            rows.add("answered", "the next free agent goes on with it");
        }
        if task.status() == Status::InReview {
            rows.add("to do", to_do(&Lack::Approval));
        }
    }
}

/// The text of an item: rows of a name and a value, and longer texts beneath them.
struct Rows(String);

impl Rows {
    fn add(&mut self, name: &str, value: impl Display) {
        let value = value.to_string();
        let row = format!("  {name:<11} {}\n", format::one_line(&value));
        self.0.push_str(&row);
    }

    fn add_some(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    fn beneath(&mut self, heading: &str, words: &str) {
        if !words.trim().is_empty() {
            let block = format!("\n{heading}\n{}", beginning(words));
            self.0.push_str(&block);
        }
    }
}

/// Returns the findings of the last rejecting review, until the item is completed.
fn findings(board: &Board, task: &Task) -> String {
    let mut found = String::new();
    if task.state.rounds > 0 && task.status() != Status::Completed {
        // `tavern check` reports a log that can't be read.
        drop(walk_log(board, Some(&task.id), &mut |entry| {
            if entry.kind == Kind::Rejected {
                found = entry.cause.unwrap_or_default();
            }
            found.is_empty()
        }));
    }
    found
}

/// Returns the last words of the run that completed an item, if an answer is its result.
fn answer(board: &Board, config: &Config, task: &Task, runs: &[Metadata]) -> String {
    let is_answer = |run: &&Metadata| config.expected(task, &run.role) == Some(Expected::Answer);
    let said = runs
        .last()
        .filter(|_| task.status() == Status::Completed)
        .filter(is_answer)
        .map(|run| Artifacts::open(board, &run.run).read("result.txt"));
    said.map(|said| without_signal(&said).to_owned())
        .unwrap_or_default()
}

/// Returns as many lines as fit on a screen.
fn beginning(words: &str) -> String {
    const MOST: usize = 40;
    let lines = || words.trim_matches('\n').lines();
    let mut text = format::indented(lines().take(MOST).map(format::printable));
    if let more @ 1.. = lines().count().saturating_sub(MOST) {
        text.push_str(&format!("  … {} more\n", format::count(more, "line")));
    }
    text
}
