//! A question as an item of its own queue: an agent answers it from search results. Later questions find the
//! runs with the answers.

use serde::Serialize;

use super::passage::{Passage, PassageKind};
use super::passage_index::FoundPassage;
use super::searched::{Searched, columns};
use crate::{CliError, Context, Exit, agent, format};
use tavern_core::document::parse;
use tavern_core::metadata::Key;
use tavern_core::new_item::{NewItem, render};
use tavern_core::task::{Status, Task, TaskId};
use tavern_run::agent::End;
use tavern_run::made_here;
use tavern_run::record::{Metadata, runs_of};
use tavern_run::runner::signal::without_signal;
use tavern_store::config::Does;
use tavern_store::{Board, Note};
use tavern_sys::files;

/// The queue of questions.
const QUEUE: &str = "questions";

/// The number of earlier questions in an answerer's prompt.
const MOST_EARLIER: usize = 3;

/// The maximal length of an earlier answer, in characters.
const LONGEST: usize = 300;

#[derive(Serialize)]
struct ModelAnswer<'a> {
    source: &'static str,
    task: &'a TaskId,
    run: &'a str,
    usd: f64,
    text: &'a str,
}

/// Has `role` answer `question`, and prints the answer, then the sources. Nothing is queued if no agent could
/// answer.
///
/// # Errors
/// No agent could answer, or the board can't be read or written.
pub(super) fn inquire(
    context: &Context,
    board: &Board,
    question: &str,
    role: &str,
    most: u16,
) -> Result<Exit, CliError> {
    let workspace = context.site(board.clone())?;
    let Some(settings) = workspace
        .config
        .roles
        .get(role)
        .filter(|role| role.does == Does::Answer)
    else {
        let known = workspace
            .config
            .roles
            .iter()
            .filter(|(_, role)| role.does == Does::Answer)
            .map(|(name, _)| name.as_str());
        let hint = format!("one of: {}", known.collect::<Vec<_>>().join(", "));
        return Err(CliError::usage(
            format!("no role `{role}` answers questions"),
            hint,
        ));
    };
    if workspace.config.runs_scripts(&settings.runner) {
        let message = format!(
            "role `{role}` has the runner `{}`, which only runs scripts",
            settings.runner
        );
        return Err(CliError::refused(
            message,
            format!("give `{role}` another runner in .tavern/config.yaml"),
        ));
    }
    agent::may_begin(context, &workspace, role)?;
    let searched = Searched::of(context, board, question, most)?;
    let queue = context.queue_or_new(board, QUEUE)?;
    let context_of_it = [earlier(board), found(&searched.found)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n\n");
    let new = item_of(question, role, &context_of_it)?;
    let task = board
        .add(&queue, new, Status::Pending, &Note::default())?
        .task;
    made_here(board, [&task]);
    let id = task.id;
    let end = agent::work_item(context, workspace, role, &queue, &id);
    let task = board.task(&id)?.task;
    if task.status() == Status::Pending {
        context.out.note(format!(
            "the question stays queued as {id}; to take it back: tavern cancel {id}"
        ));
    }
    let end = end?;
    let last = runs_of(board, &id)?.pop();
    let exit = if let Some(run) = last.as_ref().filter(|_| task.status() == Status::Completed) {
        let text = said(board, run);
        let record = ModelAnswer {
            source: "answer",
            task: &id,
            run: &run.run,
            usd: run.usage.usd,
            text: &text,
        };
        context.out.record(&record, printable_lines(&text))?;
        Exit::Done
    } else {
        context.out.note(open(&task, &end));
        match end {
            End::Interrupted => return Ok(context.interrupted().unwrap_or(Exit::Interrupted)),
            End::Capped(_) => Exit::BudgetSpent,
            End::Stopped(_) => Exit::Refused,
            _ if task.status() == Status::Waiting => Exit::WaitingForPerson,
            _ => Exit::Failed,
        }
    };
    searched.print(context)?;
    Ok(exit)
}

/// Returns the question as an item. A question that would parse as more than a title (an ID, keys, a tick)
/// goes whole into the description.
fn item_of(question: &str, role: &str, more: &str) -> Result<NewItem, CliError> {
    let (title, rest) = crate::plan::parted(question)?;
    let new = |title: &str, words: &[&str]| NewItem {
        id: None,
        title: title.to_owned(),
        fields: vec![(Key::Role, role.into())],
        yaml_fields: Vec::new(),
        description: words
            .iter()
            .filter(|words| !words.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join("\n\n"),
    };
    let rest: Vec<String> = rest
        .iter()
        .flat_map(|rest| rest.lines())
        .map(quoted)
        .collect();
    let typed = new(&title, &[&rest.join("\n"), more]);
    let block = render(&typed);
    let (document, problems) = parse(&block);
    let is_words = match document.items() {
        [item] => {
            let is_plain = item.id.is_none() && !item.checked && item.status == Status::Pending;
            is_plain
                && document.title(item) == title
                && document.left_out(item).is_none()
                && problems.is_empty()
        }
        _ => false,
    };
    let lines: Vec<String> = question.lines().map(quoted).collect();
    Ok(if is_words {
        typed
    } else {
        new("A question", &[&lines.join("\n"), more])
    })
}

/// Explains why there is no answer yet, with a hint.
fn open(task: &Task, end: &End) -> String {
    let id = &task.id;
    match (task.status(), end) {
        (Status::Waiting, _) => {
            let question = task.question().unwrap_or_default();
            format!(
                "it asks: {}; tavern tell {id} \"…\", then: tavern agent --role {} --until-empty",
                format::one_line(question),
                task.role.as_deref().unwrap_or_default()
            )
        }
        (_, End::Capped(used)) => format!("no agent answers it: {used}"),
        (status, _) => {
            let reason = task
                .reason()
                .map(|reason| format!(": {}", format::one_line(reason)))
                .unwrap_or_default();
            format!(
                "it has no answer, it is {status}{reason}; to have it researched by items: tavern plan \"…\""
            )
        }
    }
}

fn printable_lines(text: &str) -> String {
    text.lines()
        .map(|line| format!("{}\n", format::printable(line)))
        .collect()
}

/// Returns the last message of a run, without its signal.
fn said(board: &Board, run: &Metadata) -> String {
    let bytes = files::read(board.run_dir(&run.run).join("result.txt")).unwrap_or_default();
    without_signal(&String::from_utf8_lossy(&bytes)).to_owned()
}

/// Returns the last questions, and the beginnings of their answers.
fn earlier(board: &Board) -> Option<String> {
    let mut runs = tavern_run::record::runs(board).unwrap_or_default();
    runs.retain(|run| run.queue == QUEUE && run.ended.is_some());
    let last = runs.iter().skip(runs.len().saturating_sub(MOST_EARLIER));
    let lines: Vec<String> = last
        .map(|run| {
            let answer: String = said(board, run).chars().take(LONGEST).collect();
            quoted(&format!(
                "{}: {answer} (all of it: tavern runs cat {})",
                run.title, run.run
            ))
        })
        .collect();
    (!lines.is_empty()).then(|| format!("Asked before, the last below:\n\n{}", lines.join("\n>\n")))
}

/// Returns the search results. An answerer gets the words of runs and messages, which were written here. Of
/// everything else it gets only the name, since it may come from git.
fn found(found: &[FoundPassage]) -> Option<String> {
    let line = |hit: &FoundPassage| {
        let Passage {
            source,
            name,
            task,
            state,
            todo,
            ..
        } = &hit.passage;
        let is_message =
            ["sent", "asked", "failed", "rejected", "resumed", "revived"].contains(&state.as_str());
        Some(quoted(&match source {
            PassageKind::Run => format!("{}({todo}) {}", columns(&hit.passage), hit.excerpt),
            PassageKind::Event if is_message => {
                format!("{}({todo}) {}", columns(&hit.passage), hit.excerpt)
            }
            PassageKind::Learning => format!("learning {name} ({todo})"),
            _ => format!("item {} ({todo})", task.as_ref()?),
        }))
    };
    let lines: Vec<String> = found.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| {
        format!(
            "Found by the search, the best first:\n\n{}",
            lines.join("\n>\n")
        )
    })
}

/// Returns a quoted line, which parses as prose in any queue.
fn quoted(text: &str) -> String {
    format!("> {}", format::one_line(text))
}
