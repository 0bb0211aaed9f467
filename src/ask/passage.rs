//! The texts of a board (items, runs, learnings, log) as searchable passages.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;

use crate::{CliError, Context};
use tavern_core::document::parse;
use tavern_core::event::Kind;
use tavern_core::task::{TaskId, Timestamp};
use tavern_run::record::{Metadata, runs};
use tavern_run::runner::Outcome;
use tavern_run::runner::signal::without_signal;
use tavern_store::{Archived, Board, walk_log};
use tavern_sys::files;
use tavern_sys::secrets::redact;

/// Bytes that are searched of one passage, and of all.
const LONGEST: usize = 64 << 10;
const MOST: usize = 64 << 20;

/// The number of newest events that are searched.
const MOST_EVENTS: usize = 50_000;

/// The source of a passage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PassageKind {
    #[default]
    Item,
    Run,
    Learning,
    Event,
}

/// A text of the board.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Passage {
    pub source: PassageKind,
    /// The ID of an item or a learning, the name of a run, the number of an event.
    pub name: String,
    pub task: Option<TaskId>,
    pub title: String,
    /// The status of the item, the outcome of the run, or the kind of the event.
    pub state: String,
    pub at: Option<Timestamp>,
    /// The author.
    pub by: Option<String>,
    /// The command that shows all of it.
    pub todo: String,
    #[serde(skip)]
    pub text: String,
}

/// The passages of a board.
#[derive(Debug, Default)]
pub struct Passages {
    /// Runs first, then learnings, items, events; each newest first.
    pub all: Vec<Passage>,
    bytes: usize,
    /// The number of passages that were left out because of the size limit.
    pub left_out: usize,
}

impl Passages {
    /// Reads all passages, with a progress bar on a terminal. Skips unreadable ones.
    ///
    /// # Errors
    /// The board can't be listed.
    pub fn gather(context: &Context, board: &Board) -> Result<Passages, CliError> {
        let mut passages = Passages::default();
        let runs = runs(board)?;
        let progress = context.out.progress(runs.len(), "runs");
        for run in runs.into_iter().rev() {
            progress.inc(1);
            passages.add(of_run(board, run));
        }
        for file in board.knowledge().into_iter().rev() {
            let Ok(learning) = file.learning else {
                continue;
            };
            passages.add(Passage {
                source: PassageKind::Learning,
                todo: format!("tavern learn show {}", file.id),
                name: file.id,
                task: None,
                title: learning.tags.join(" "),
                state: learning.kind.as_str().to_owned(),
                at: Some(learning.created),
                by: Some(learning.by),
                text: learning.text,
            });
        }
        let mut titles = HashMap::new();
        for queue in board.queues()? {
            let Ok(text) = board.read(&queue) else {
                continue;
            };
            passages.add_items(&queue.id, &text.content, &mut titles);
        }
        for text in Archived::of(board).contents() {
            passages.add_items("archive", text, &mut titles);
        }
        passages.add_events(board, &titles)?;
        Ok(passages)
    }

    fn add(&mut self, mut passage: Passage) {
        // Redacted before the cut: half a key is not recognized.
        if let Cow::Owned(told) = redact(&passage.text) {
            passage.text = told;
        }
        if passage.text.len() > LONGEST {
            passage
                .text
                .truncate(passage.text.floor_char_boundary(LONGEST));
        }
        if self.bytes + passage.text.len() > MOST {
            self.left_out += 1;
            return;
        }
        self.bytes += passage.text.len();
        self.all.push(passage);
    }

    fn add_items(&mut self, queue: &str, text: &str, titles: &mut HashMap<TaskId, String>) {
        let (document, _) = parse(text);
        for item in document.items() {
            let title = document.title(item).to_owned();
            item.id
                .iter()
                .for_each(|id| drop(titles.insert(id.clone(), title.clone())));
            // An archived item has an ID, or can't be named.
            let name = item
                .id
                .as_ref()
                .map_or_else(|| format!("{queue}:{}", item.line), ToString::to_string);
            self.add(Passage {
                source: PassageKind::Item,
                todo: format!("tavern status {name}"),
                name,
                title,
                state: item.status.as_str().to_owned(),
                at: None,
                by: None,
                text: document.description(item),
                task: item.id.clone(),
            });
        }
    }

    fn add_events(
        &mut self,
        board: &Board,
        titles: &HashMap<TaskId, String>,
    ) -> Result<(), CliError> {
        let mut seen = 0;
        walk_log(board, None, &mut |entry| {
            seen += 1;
            // Messages are read elsewhere, and a learning has its own file.
            let is_own = !matches!(entry.kind, Kind::Told | Kind::Learned | Kind::Diagnosed);
            if let Some(cause) = entry.cause.filter(|_| is_own) {
                let title = entry.task.as_ref().and_then(|task| titles.get(task));
                self.add(Passage {
                    source: PassageKind::Event,
                    name: entry.seq.to_string(),
                    todo: entry
                        .task
                        .as_ref()
                        .map_or("tavern log".to_owned(), |task| format!("tavern log {task}")),
                    title: title.cloned().unwrap_or_default(),
                    state: entry.kind.as_str().to_owned(),
                    at: Some(entry.time),
                    by: entry.by.or(entry.agent),
                    task: entry.task,
                    text: cause,
                });
            }
            seen < MOST_EVENTS
        })?;
        Ok(())
    }
}

fn of_run(board: &Board, run: Metadata) -> Passage {
    let said = files::read(board.run_dir(&run.run).join("result.txt")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let said = without_signal(&said);
    let reason = run
        .reason
        .as_deref()
        .filter(|_| run.outcome != Some(Outcome::Success));
    let others = [run.summary.as_str(), reason.unwrap_or_default()];
    // A summary is mostly the beginning of the message.
    let others = others
        .into_iter()
        .filter(|part| !said.contains(part.trim_end_matches('…')));
    Passage {
        source: PassageKind::Run,
        todo: format!("tavern runs show {}", run.run),
        state: run.state().to_owned(),
        title: run.title,
        at: Some(run.ended.unwrap_or(run.started)),
        by: Some(run.agent),
        text: others.chain([said]).collect::<Vec<_>>().join("\n"),
        name: run.run,
        task: Some(run.task),
    }
}
