//! One item in full: all that is known of it, as rows.

use crate::{CliError, Context, hints, human, need};
use tavern_core::eligible::{DEFAULT_ROLE, Lack};
use tavern_core::event::Kind;
use tavern_core::lease::{Freshness, Lease};
use tavern_core::need::NeedKind;
use tavern_core::steps::Steps;
use tavern_core::task::{Expected, Mode, Status, Task, TaskId, Timestamp};
use tavern_run::artifacts::Artifacts;
use tavern_run::expiry::expiries;
use tavern_run::record::{Metadata, last_output, runs_of};
use tavern_run::runner::signal::without_signal;
use tavern_run::unmerged::kept;
use tavern_store::config::Config;
use tavern_store::{Board, Error, NamedItem, Then, walk_log};
use tavern_sys::clock;

use super::record::{Child, Record};

/// How much is told of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    Usual,
    /// Also what its holder is known by: token, lease, mode.
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

/// The same as it is now, in words.
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
        for run in runs
            .iter_mut()
            .filter(|run| run.ended.is_some_and(|ended| ended > then.at))
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
    // The log has no heartbeats.
    let work = lease
        .filter(|_| then.is_none())
        .and_then(|lease| lease.work.as_ref());
    let last_output = work.and_then(|work| last_output(board, &work.run));
    let seen = |lease: &Lease| Freshness::of(last_output.unwrap_or(lease.heartbeat_at), now);
    let freshness = lease.filter(|_| then.is_none()).map(seen);
    let kept = if then.is_some() {
        Vec::new()
    } else {
        kept(board, |kept| kept.of_item(board, task))
    };
    let children = then
        .map_or_else(|| board.children(id), |then| then.children(id))
        .into_iter();
    let children: Vec<Child> = children
        .map(|task| Child {
            status: task.status(),
            task: task.id,
            title: task.title,
            on_failure: task.on_failure,
        })
        .collect();
    // There is nothing to be done in the past.
    let lacks = if then.is_none() {
        need::lacks(context, board, name, &found.queue)
    } else {
        Vec::new()
    };
    let to_do = lacks
        .iter()
        .find_map(|lack| hints::lack(lack, name.id(), Some(&found.queue.id)));
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
    let mut row = |name: &str, value: String| {
        text.push_str(&format!("  {name:<11} {}\n", human::one_line(&value)));
    };
    row("status", task.status().to_string());
    row("queue", format!("{}, line {}", found.queue.id, found.line));
    steps
        .iter()
        .for_each(|steps| row("steps", steps.to_string()));
    task.role
        .iter()
        .filter(|role| *role != DEFAULT_ROLE)
        .for_each(|role| row("role", role.clone()));
    task.reason()
        .iter()
        .for_each(|reason| row("reason", (*reason).to_owned()));
    task.trigger
        .iter()
        .for_each(|trigger| row("woken by", trigger.clone()));
    // The queue has the beginning of a long one.
    let asked = || runs.iter().rev().find_map(|run| run.question.clone());
    let line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    task.question().iter().for_each(|question| {
        let whole = asked()
            .map(line)
            .filter(|whole| whole.starts_with(question.trim_end_matches('…')));
        row("asks", whole.unwrap_or_else(|| (*question).to_owned()));
    });
    if detail == Detail::All && task.mode() != Mode::Execute {
        row("mode", task.mode().to_string());
    }
    let known = |id: &TaskId| {
        find(id).map_or_else(
            |_| "unknown".to_owned(),
            |found| found.task.status().to_string(),
        )
    };
    task.parent
        .iter()
        .for_each(|parent| row("parent", format!("{parent} ({})", known(parent))));
    for child in &children {
        row(
            "child",
            format!(
                "{} ({}): {}",
                child.task,
                child.status,
                human::title(&child.title)
            ),
        );
    }
    task.author()
        .iter()
        .for_each(|author| row("author", (*author).to_owned()));
    task.approvals()
        .iter()
        .for_each(|approval| row("approved by", approval.to_string()));
    let config = Config::load(board.dir()).unwrap_or_default();
    let open = task.open_reviews(&task.reviewers(&config.review));
    if matches!(task.status(), Status::InReview | Status::Reviewing) && !open.is_empty() {
        row("waits for", open.join(", "));
    }
    if task.state.rounds > 0 {
        row("rejected", human::count(task.state.rounds as usize, "time"));
    }
    if let Some(lease) = lease {
        row(
            "held by",
            format!(
                "{} ({}), attempt {}",
                lease.agent, lease.role, lease.attempt
            ),
        );
        if detail == Detail::All {
            let end = clock::shown(lease.expires_at());
            row(
                "lease",
                format!("token {}, until {end} if nobody renews it", lease.token),
            );
        }
    }
    if let (None, Some(agent)) = (
        lease,
        task.state
            .holder()
            .and_then(|holder| holder.agent.as_deref()),
    ) {
        row(
            "held by",
            format!(
                "{agent}, not in this clone; to take it: tavern release {} --force",
                task.id
            ),
        );
    }
    let ago = |at: Timestamp| {
        format!(
            "{} ago",
            human::age((now - at).to_std().unwrap_or_default())
        )
    };
    if let (Some(lease), Some(freshness)) = (lease, freshness) {
        let words = match freshness {
            Freshness::Fresh => "fresh",
            Freshness::Stale => "stale",
            Freshness::VeryStale => "very stale",
        };
        let beat = ago(lease.heartbeat_at);
        row(
            "heartbeat",
            if last_output.is_some() {
                beat
            } else {
                format!("{beat} ({words})")
            },
        );
        last_output
            .iter()
            .for_each(|at| row("last output", format!("{} ({words})", ago(*at))));
    }
    if task.state.attempt > 0 {
        row("attempts", task.state.attempt.to_string());
    }
    for dependency in &task.after {
        row("after", format!("{dependency} ({})", known(dependency)));
    }
    task.due.iter().for_each(|due| {
        row(
            "due",
            clock::shown(*due) + if *due < now { " (passed)" } else { "" },
        );
    });
    task.state
        .not_before()
        .iter()
        .for_each(|until| row("not before", clock::shown(*until)));
    let waits = task.status() == Status::Waiting && then.is_none();
    let site = context.light_site(board.clone()).ok().filter(|_| waits);
    for end in site
        .iter()
        .flat_map(|site| expiries(site).unwrap_or_default())
        .filter(|end| end.task == *id)
    {
        row(
            "waits until",
            format!("{}, then it is dead", clock::shown(end.at)),
        );
    }
    task.commit()
        .iter()
        .for_each(|commit| row("commit", (*commit).to_owned()));
    task.done_when
        .iter()
        .for_each(|command| row("done when", command.clone()));
    for run in &runs {
        let outcome = run
            .outcome
            .map_or("running", tavern_run::runner::Outcome::as_str);
        row(
            "run",
            format!(
                "{} {outcome}: {}",
                run.run,
                run.reason.as_deref().unwrap_or_default()
            ),
        );
    }
    if !kept.is_empty() || task.commit().is_some() {
        let places = if kept.is_empty() {
            String::new()
        } else {
            format!(" ({})", kept.join(", "))
        };
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
        row(
            "to do",
            hints::lack(&Lack::Approval, id, queue).unwrap_or_default(),
        );
    }
    let mut beneath = |heading: &str, words: &str| {
        if !words.trim().is_empty() {
            text.push_str(&format!("\n{heading}\n{}", indented(words)));
        }
    };
    beneath("text", &task.description);
    if then.is_none() {
        beneath("rejected", &findings(board, task));
        beneath("answer", &answer(board, &config, task, &runs));
    }
    told(&record, text.trim_end())
}

/// The findings of the last review that rejected it, while it is not merged.
fn findings(board: &Board, task: &Task) -> String {
    let mut found = String::new();
    if task.state.rounds > 0 && task.status() != Status::Completed {
        // A log that can't be read is for `tavern check` to tell.
        drop(walk_log(board, Some(&task.id), &mut |entry| {
            if entry.kind == Kind::Rejected {
                found = entry.cause.unwrap_or_default();
            }
            found.is_empty()
        }));
    }
    found
}

/// The last words of the run that completed an item whose result they are.
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

/// As many lines as a screen has room for.
fn indented(words: &str) -> String {
    const MOST: usize = 40;
    let lines = || words.trim_matches('\n').lines();
    let mut text: String = lines()
        .take(MOST)
        .map(|line| format!("  {}\n", human::printable(line)))
        .collect();
    if let more @ 1.. = lines().count().saturating_sub(MOST) {
        text.push_str(&format!("  … {} more\n", human::count(more, "line")));
    }
    text
}
