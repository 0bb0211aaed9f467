//! A question as an item of a queue of its own: an agent answers it from what was found. The queue is the board's memory of what was
//! asked, and the runs are that of the answers, which later questions find.

use serde::Serialize;

use super::passage::PassageKind;
use super::passage_index::FoundPassage;
use super::searched::{Searched, columns};
use crate::agent::End;
use crate::board::task::{Status, Task, TaskId};
use crate::cli::flags::NewItemFlags;
use crate::cli::{CliError, Context, Exit, Verb, add, agent, human};
use crate::config::{Config, Does};
use crate::files;
use crate::run::record::{Metadata, runs_of};
use crate::runner::signal::without_signal;
use crate::store::Board;

/// The queue of questions.
const QUEUE: &str = "questions";

/// Earlier questions that an answerer is told of.
const MOST_EARLIER: usize = 3;

/// Characters of an earlier answer.
const LONGEST: usize = 300;

#[derive(Serialize)]
struct ModelAnswer<'a> {
    source: &'static str,
    task: &'a TaskId,
    run: &'a str,
    usd: f64,
    text: &'a str,
}

/// Has `role` answer `question`, prints its answer, and then the sources.
pub(super) fn inquire(
    context: &Context,
    board: &Board,
    question: &str,
    role: &str,
    searched: &Searched,
) -> Result<Exit, CliError> {
    let config = Config::load(board.dir())?;
    if config.roles.get(role).is_none_or(|role| role.does != Does::Answer) {
        let known = config.roles.iter().filter(|(_, role)| role.does == Does::Answer).map(|(name, _)| name.as_str());
        let hint = format!("one of: {}", known.collect::<Vec<_>>().join(", "));
        return Err(CliError::usage(format!("no role `{role}` answers questions"), hint));
    }
    let id = TaskId::mint(uuid::Uuid::new_v4().as_u64_pair().0, |id| board.task(id).is_ok());
    let (title, more) = crate::cli::plan::parted(question)?;
    let description = more.into_iter().chain(earlier(board)).chain(found(&searched.found));
    let item = add::Args {
        title: vec![title],
        queue: Some(QUEUE.to_owned()),
        create: true,
        role: Some(role.to_owned()),
        item: NewItemFlags {
            id: Some(id.clone()),
            description: Some(description.collect::<Vec<_>>().join("\n\n")).filter(|text| !text.is_empty()),
            ..NewItemFlags::default()
        },
        ..add::Args::default()
    };
    item.run(context)?;
    let queue = context.queue(board, QUEUE)?;
    let site = context.site(board.clone())?;
    let end = agent::work_queue(context, site, role, &queue)?;
    let task = board.task(&id)?.task;
    let last = runs_of(board, &id)?.pop();
    let exit = match last.as_ref().filter(|_| task.status() == Status::Completed) {
        Some(run) => {
            let text = said(board, run);
            let record = ModelAnswer { source: "answer", task: &id, run: &run.run, usd: run.usage.usd, text: &text };
            context.out.record(&record, printable_lines(&text))?;
            Exit::Done
        }
        None => {
            context.out.note(open(&task, &end));
            match end {
                End::Interrupted => return Ok(context.interrupted().unwrap_or(Exit::Interrupted)),
                End::Capped(_) => Exit::BudgetSpent,
                _ if task.status() == Status::Waiting => Exit::WaitingForPerson,
                _ => Exit::Failed,
            }
        }
    };
    searched.print(context)?;
    Ok(exit)
}

/// Why there is no answer yet, and what to type.
fn open(task: &Task, end: &End) -> String {
    let id = &task.id;
    match (task.status(), end) {
        (Status::Waiting, _) => {
            let question = task.question().unwrap_or_default();
            format!(
                "it asks: {}; tavern tell {id} \"…\", then: tavern agent --role {} --until-empty",
                human::one_line(question),
                task.role.as_deref().unwrap_or_default()
            )
        }
        (_, End::Capped(used)) => format!("nobody answers it: {used}"),
        (status, _) => {
            let reason = task.reason().map(|reason| format!(": {}", human::one_line(reason))).unwrap_or_default();
            format!("nobody has answered it, it is {status}{reason}; to have it found out by items: tavern plan \"…\"")
        }
    }
}

fn printable_lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", human::printable(line))).collect()
}

/// What a run has said last, without its signal.
fn said(board: &Board, run: &Metadata) -> String {
    let bytes = files::read(board.run_dir(&run.run).join("result.txt")).unwrap_or_default();
    without_signal(&String::from_utf8_lossy(&bytes)).to_owned()
}

/// The last questions, and how their answers begin.
fn earlier(board: &Board) -> Option<String> {
    let mut runs = crate::run::record::runs(board).unwrap_or_default();
    runs.retain(|run| run.queue == QUEUE && run.ended.is_some());
    let last = runs.iter().skip(runs.len().saturating_sub(MOST_EARLIER));
    let lines: Vec<String> = last
        .map(|run| {
            let answer: String = said(board, run).chars().take(LONGEST).collect();
            quoted(&format!("{}: {answer} (all of it: tavern runs cat {})", run.title, run.run))
        })
        .collect();
    (!lines.is_empty()).then(|| format!("Asked before, the last below:\n\n{}", lines.join("\n>\n")))
}

/// What the search found. Of what git may have brought only the names are told: its words are nobody's here.
fn found(found: &[FoundPassage]) -> Option<String> {
    let lines: Vec<String> = found
        .iter()
        .map(|hit| {
            let is_made_here = matches!(hit.passage.source, PassageKind::Run | PassageKind::Event);
            let words = if is_made_here { hit.excerpt.as_str() } else { "" };
            quoted(&format!("{}({}) {words}", columns(&hit.passage), hit.passage.todo))
        })
        .collect();
    (!lines.is_empty()).then(|| format!("Found by the search, the best first:\n\n{}", lines.join("\n>\n")))
}

/// A line of a quotation, which is words in any queue.
fn quoted(text: &str) -> String {
    format!("> {}", human::one_line(text))
}
